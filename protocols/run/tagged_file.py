"""A file that a role keeps: whole or not there, on the disk, and authenticated in the place where it lies.

    HOME/home.key    drawn with the first file of a run that is kept there, deleted with the run
    HOME/NAME        the content, and a line with its tag: a MAC under that key over NAME and the content

So a file that was damaged or cut off, that is of another home, of another run or by another name does not pass.  This
finds damage, mix-ups and edits by whoever cannot read the home; who can read it has the key.
"""

from __future__ import annotations

import contextlib
import hmac
from collections.abc import Callable, Iterator
from pathlib import Path

from mpc.errors import ConfigError
from mpc.files import mac, make_folder, write_whole
from mpc.prg import KEY_BYTES, fresh_key

HOME_KEY = "home.key"
_TAG = 66  # bytes: a line of its own behind the content
_PERSON = b"mb-kept"


def write_kept(path: Path, content: bytes) -> None:
    """Write it in one move, into a home that its owner alone can read."""
    with writing(path):
        prepare(path.parent)
        write_whole(path, content + _tag(path, content))


def prepare(home: Path) -> None:
    """A home that is there, with a key."""
    make_folder(home)
    if not (home / HOME_KEY).exists():
        write_whole(home / HOME_KEY, fresh_key())


def read_kept(path: Path, *, cure: str) -> bytes:
    """What was kept there, or ConfigError with the cure."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): {cure}") from error
    if not hmac.compare_digest(raw[-_TAG:], _tag(path, raw[:-_TAG])):
        raise ConfigError(f"{path} is damaged, or not of this place and run: {cure}")
    return raw[:-_TAG]


def key_of(home: Path) -> bytes:
    """Under which all that lies there is authenticated."""
    try:
        key = (home / HOME_KEY).read_bytes()
    except OSError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{home / HOME_KEY} is missing or damaged, and nothing beside it can be trusted: put it back")
    return key


def write(path: Path, content: str) -> None:
    """A text for other processes of the run, whole when they see it."""
    with writing(path):
        write_whole(path, content.encode())


def chained(key: bytes, name: str, before: bytes, content: bytes) -> bytes:
    """The tag of what is appended to a file behind what has the tag `before`."""
    return mac(key, name, before, content, person=_PERSON)[:16]


@contextlib.contextmanager
def writing(path: Path, *, cure: str = "make room there, or choose another place") -> Iterator[None]:
    """A place that takes nothing is said in a line, also where a role writes that another process started."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path} cannot be written ({error.strerror}): {cure}") from error


@contextlib.contextmanager
def put_back(home: Path, names: tuple[str, ...], say: Callable[[str], None]) -> Iterator[None]:
    """Files of a home that somebody removed meanwhile are written again at the end, and it is said."""
    own = {path: path.read_bytes() for name in names if (path := home / name).exists()}
    try:
        yield
    finally:
        if gone := [path for path in own if not path.exists()]:
            with writing(home):
                home.mkdir(mode=0o700, parents=True, exist_ok=True)
                for path in gone:
                    write_whole(path, own[path])
            say(f"{home} was removed while the run was at work: what roles had kept there until then is lost")


def _tag(path: Path, content: bytes) -> bytes:
    return f"\n{mac(key_of(path.parent), path.name, content, person=_PERSON).hex()}\n".encode()
