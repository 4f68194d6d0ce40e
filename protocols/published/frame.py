"""How a message of a published protocol is framed, and what is said of one that does not fit.  Knows no protocol.

    head: magic, version, kind, fields of the protocol's own, length of the rest

Numbers have fixed sizes, ciphertexts are as long as n^2, nothing is pickled.  What does not fit is refused with the
sender's name.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Any, NamedTuple

from mpc.errors import Desync

from .paillier import Integer, PublicKey


class Message(NamedTuple):
    """A message that has the right length and is of a kind that is due.  fields: the protocol's own, of its head."""

    kind: Any
    sender: str
    rest: bytes
    fields: tuple[Any, ...] = ()

    def exactly(self, length: int, what: str = "") -> bytes:
        """The rest, which is to be of so many bytes; what: how an error calls them."""
        if len(self.rest) != length:
            raise Desync(
                f"{self.sender} sent {len(self.rest)} bytes of {self.kind.name} where {what or length} are due: the "
                "message is truncated, or made for another set-up; give all participants the same"
            )
        return self.rest

    def numbers(self, layout: struct.Struct) -> tuple[Any, ...]:
        """The rest as numbers."""
        return layout.unpack(self.exactly(layout.size))

    def ciphertexts(self, key: PublicKey, count: int) -> list[Integer]:
        """As many of Paillier's as are due, each of which can be one."""
        size = key.ciphertext_bytes
        raw = self.exactly(count * size, f"{count} ciphertexts of {size} bytes")
        return key.unpack(raw, sender=self.sender)


class Frame:
    """The heads of one protocol.  fields: its own ones, as `struct` writes them."""

    def __init__(self, magic: bytes, version: int, kinds: type[IntEnum], fields: str) -> None:
        self.head = struct.Struct(f"<4sBB{fields}I")
        self._magic, self._version = magic, version
        self._kinds = {kind.value: kind for kind in kinds}

    def pack(self, kind: IntEnum, rest: bytes, *fields: Any) -> bytes:
        """A message."""
        return self.head.pack(self._magic, self._version, kind, *fields, len(rest)) + rest

    def unpack(self, raw: bytes, sender: str, kinds: tuple[IntEnum, ...]) -> Message:
        """A message of one of these kinds."""
        size = self.head.size
        if len(raw) < size:
            raise Desync(f"{sender} sent {len(raw)} bytes where {_names(kinds)} is due: the message is truncated")
        magic, version, number, *fields, length = self.head.unpack_from(raw)
        if magic != self._magic or version != self._version:
            raise Desync(
                f"{sender} sent no message of this version where {_names(kinds)} is due: run the same release "
                "everywhere"
            )
        kind = self._kinds.get(number)
        if kind not in kinds:
            name = f"kind {number}" if kind is None else kind.name
            raise Desync(f"{sender} sent {name} where {_names(kinds)} is due: run the same release everywhere")
        if len(raw) - size != length:
            raise Desync(f"{sender} sent {len(raw) - size} of {length} bytes of {kind.name}: the message is truncated")
        return Message(kind, sender, raw[size:], tuple(fields))


def _names(kinds: tuple[IntEnum, ...]) -> str:
    return " or ".join(kind.name for kind in kinds)
