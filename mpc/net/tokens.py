"""A token for each role, in a file of its own that its owner alone can read: who bears it may ask as that role.

    FOLDER/puller.token     43 letters and a line's end, from 32 random bytes

Knows files and letters; no network.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NoReturn

from ..errors import ConfigError
from ..files import make_folder, write_new

_LETTERS = 43
_CURE = "make it with --make-tokens, or serve without any by --no-tokens"


class Tokens:
    """Digests of them, by role."""

    __slots__ = ("_digests",)

    def __init__(self, given: Mapping[str, str]) -> None:
        self._digests = {role: _digest(token) for role, token in given.items()}
        for role, digest in self._digests.items():
            if twin := [other for other, its in self._digests.items() if other != role and its == digest]:
                raise ConfigError(f"{role} and {twin[0]} have the same token: delete one of the files and make it anew")

    @classmethod
    def read(cls, folder: Path, roles: Iterable[str]) -> Tokens:
        """From their files, of every role."""
        return cls({role: _read(_path(folder, role)) for role in roles})

    def role_of(self, token: str) -> str | None:
        """Whose it is.  All are compared, each in constant time."""
        digest, found = _digest(token), None
        for role, own in self._digests.items():
            if hmac.compare_digest(digest, own):
                found = role
        return found

    def __repr__(self) -> str:
        return f"Tokens(of {len(self._digests)} roles, hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("tokens are never pickled")


def make_tokens(folder: Path, roles: Iterable[str]) -> list[Path]:
    """Those that are not there yet; gives their files."""
    try:
        if not folder.is_dir():  # one that was there may be for others too; the files are not
            make_folder(folder)
        made = [path for role in roles if not (path := _path(folder, role)).exists()]
        for path in made:
            write_new(path, f"{secrets.token_urlsafe(32)}\n".encode())
    except OSError as error:
        raise ConfigError(f"{folder} cannot be written ({error.strerror}): choose another place for tokens") from error
    return made


def _path(folder: Path, role: str) -> Path:
    return folder / f"{role.replace(' ', '-')}.token"


def _read(path: Path) -> str:
    try:
        text, mode = path.read_text(encoding="ascii").strip(), path.stat().st_mode & 0o077
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"{path} is missing or cannot be read: {_CURE}") from None
    if mode:
        raise ConfigError(f"others than its owner may read {path}: chmod 600 {path}")
    if len(text) < _LETTERS or not text.isprintable() or " " in text:
        raise ConfigError(f"{path} holds no token, of {_LETTERS} letters and more: delete it, and {_CURE}")
    return text


def _digest(token: str) -> bytes:
    return hashlib.blake2b(token.encode(errors="surrogateescape"), digest_size=32).digest()
