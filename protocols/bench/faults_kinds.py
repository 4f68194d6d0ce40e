"""The faults: what is done to a role, to the launcher, to the folder of a run, or to a file that it kept.

Knows signals, mounts and bytes; nothing of a launch but what `Launched` shows of it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from .faults_processes import Launched, Process

_PAUSE = (0.1, 1.0)  # seconds between two signals to a launcher
_TIMES = 20  # that a folder in use is tried again
FROZEN = 5.0  # seconds, where a role is frozen and goes on
_DISK = 24 << 20  # bytes, beside what lies there from the start


class Hits(Enum):
    """What a fault is done to."""

    ROLE = "a role"
    LAUNCHER = "the launcher"
    FOLDER = "the folder"
    KEPT = "a kept file"


@dataclass(frozen=True)
class Fault:
    """signals: sent one after the other, seconds apart that are drawn from `pauses`.

    harm: done to a folder, or to a file of a run whose launcher was killed.  passes: whether the run is to finish all
    the same.  error: what the error line has to say, where no role is to blame.
    """

    name: str
    hits: Hits
    signals: tuple[signal.Signals, ...] = ()
    pauses: tuple[float, float] = _PAUSE
    harm: Callable[[Path, random.Random], None] | None = None
    passes: bool = False
    errors: tuple[int, ...] = ()

    def strike(self, launched: Launched, role: Process | None, dice: random.Random) -> None:
        """Send the signals."""
        for number, how in enumerate(self.signals):
            if number and launched.ended_within(dice.uniform(*self.pauses)):
                return
            if role is not None:
                role.hit(how)
            else:
                launched.signal(how)


def fill(disk: Path, _: random.Random) -> None:
    """Take all the room that is left."""
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass


def shut(disk: Path, _: random.Random) -> None:
    """Mount the folder of results over itself, read-only; files that are open stay as they are."""
    out = disk / "out"
    out.mkdir(exist_ok=True)
    _mount("--bind", out, out)
    for more in range(_TIMES, -1, -1):
        try:
            return _mount("-o", "remount,ro,bind", out)
        except ChildProcessError:  # a role has a file open there, for a moment
            if not more:
                raise
            time.sleep(_PAUSE[0])


def take_away(disk: Path, _: random.Random) -> None:
    """Remove the folder of results."""
    for _again in range(3):  # roles may be writing
        shutil.rmtree(disk / "out", ignore_errors=True)


def cut(file: Path, dice: random.Random) -> None:
    """Only a part of it is left."""
    os.truncate(file, dice.randrange(1, max(2, file.stat().st_size)))


def flip(file: Path, dice: random.Random) -> None:
    """One byte is another."""
    raw = bytearray(file.read_bytes())
    if raw:
        raw[dice.randrange(len(raw))] ^= dice.randrange(1, 256)
        put(file, bytes(raw))


def empty(file: Path, _: random.Random) -> None:
    """Nothing of it is left."""
    os.truncate(file, 0)


def put(file: Path, raw: bytes) -> None:
    """The content of a file that stays the same file."""
    with file.open("r+b") as there:
        there.truncate(0)
        there.write(raw)


@contextlib.contextmanager
def disk_of_its_own(folder: Path, beside: Path | None = None) -> Iterator[None]:
    """A small disk, with room for a copy of `beside`, mounted there until the block is left."""
    folder.mkdir(parents=True, exist_ok=True)
    copied = 0 if beside is None else 2 * sum(file.stat().st_size for file in beside.rglob("*"))
    _mount("-t", "tmpfs", "-o", f"size={_DISK + copied}", "tmpfs", folder)
    try:
        yield
    finally:
        mend(folder)
        _mount("--lazy", folder, command="umount")


def mend(disk: Path) -> None:
    """There is room again, and all can be written."""
    while _mounted(disk / "out"):
        _mount("--lazy", disk / "out", command="umount")
    (disk / "filler").unlink(missing_ok=True)


def can_mount() -> bool:
    """Whether this user may."""
    return os.geteuid() == 0 and shutil.which("mount") is not None


def _mounted(folder: Path) -> bool:
    return any(line.split()[4] == str(folder) for line in Path("/proc/self/mountinfo").read_text().splitlines())


def _mount(*words: str | Path, command: str = "mount") -> None:
    done = subprocess.run([command, *map(str, words)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise ChildProcessError(f"{command} {' '.join(map(str, words))}: {done.stderr.strip()}")


_INT, _KILL = signal.SIGINT, signal.SIGKILL
FAULTS = (
    Fault("kill9", Hits.ROLE, (_KILL,)),
    Fault("stop", Hits.ROLE, (signal.SIGSTOP,)),
    Fault("stop-5s", Hits.ROLE, (signal.SIGSTOP, signal.SIGCONT), (FROZEN, FROZEN), passes=True),
    Fault("ctrl-c", Hits.LAUNCHER, (_INT,)),
    Fault("ctrl-c-twice", Hits.LAUNCHER, (_INT,) * 2),
    Fault("ctrl-c-thrice", Hits.LAUNCHER, (_INT,) * 3),
    Fault("sigterm", Hits.LAUNCHER, (signal.SIGTERM,)),
    Fault("sighup", Hits.LAUNCHER, (signal.SIGHUP,)),
    Fault("kill9-launcher", Hits.LAUNCHER, (_KILL,)),
    Fault("disk-full", Hits.FOLDER, harm=fill, errors=(errno.ENOSPC,)),
    Fault("read-only", Hits.FOLDER, harm=shut, errors=(errno.EROFS,)),
    Fault("gone", Hits.FOLDER, harm=take_away),
    Fault("cut", Hits.KEPT, (_KILL,), harm=cut),
    Fault("flip", Hits.KEPT, (_KILL,), harm=flip),
    Fault("empty", Hits.KEPT, (_KILL,), harm=empty),
)
