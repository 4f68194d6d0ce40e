"""What server, users and key owner send each other.  Knows layouts of messages; no protocol.

head: magic, version, kind, digest of the settings, step, detail, length of the rest
"""

from __future__ import annotations

import struct
from enum import Enum, IntEnum
from typing import NamedTuple

from mpc.errors import ConfigError

from ...published.frame import Frame, Message

RESULT = struct.Struct("<d")


class Role(str, Enum):
    """By node."""

    SERVER = "server"
    USER = "user"
    OWNER = "key owner"

    def __str__(self) -> str:
        return self.value


class Kind(IntEnum):
    """What a message is.  detail of REFRESH: level and plan; of CHOICE: whether a test follows."""

    SECRET = 1
    PRODUCTS = 2
    SHIFTS = 3
    NOTHING = 4
    FEATURES = 5
    REFRESH = 6
    REFRESHED = 7
    CHOICE = 8
    LEARN = 9
    PULLED = 10
    TEST = 11
    RESULT = 12
    NEXT = 13


_FRAME = Frame(b"MBhe", 1, Kind, "8sIBB")


class Frames(NamedTuple):
    """Of participants who agree on the settings of this digest."""

    digest: str

    @property
    def _sent(self) -> bytes:
        return bytes.fromhex(self.digest)[:8]

    def pack(self, kind: Kind, rest: bytes = b"", *, step: int = 0, level: int = 0, plan: int = 0) -> bytes:
        """A message."""
        return _FRAME.pack(kind, rest, self._sent, step, level, plan)

    def unpack(self, raw: bytes, sender: Role, *kinds: Kind, step: int = 0) -> Message:
        """A message of one of these kinds, of this step."""
        message = _FRAME.unpack(raw, sender, kinds)
        digest, at, *_ = message.fields
        if digest != self._sent:
            raise ConfigError(f"{sender} plays with other settings: give all participants the same")
        if at != step:
            raise ConfigError(f"{sender} sent {message.kind.name} of step {at} at step {step}: start the run anew")
        return message
