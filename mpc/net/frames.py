"""The header in front of every message, and what a header that does not fit means.  Knows bytes; no sockets.

128 bytes, fixed, so that a receiver knows who is where before it trusts a length: magic, kind, version, sender,
round, length of the payload, digest of what is exchanged, and the sender's position in its program as text.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from enum import IntEnum

from ..errors import Desync, MaskedError, PeerLost
from .transport import Stamp

_LAYOUT = struct.Struct("<4sBBHQQ8s96s")
_MAGIC = b"MBnd"
_VERSION = 1
HEADER_BYTES = _LAYOUT.size
WORDS_LIMIT = 2000  # bytes of an ABORT's payload
DEALER_NODE = 0xFFFF
_TEXT_BYTES = 96
_BLAME = re.compile(r"(party|client) (\d{1,5}) ")


class Kind(IntEnum):
    """What a frame is."""

    DATA = 1
    ABORT = 2  # the sender stops with an error; the payload says which
    BYE = 3  # the sender's program has ended
    HELLO = 4


_KINDS = {int(kind): kind for kind in Kind}


@dataclass(frozen=True)
class Header:
    """A header, unpacked."""

    kind: Kind
    sender: int
    round: int
    length: int
    digest: bytes
    position: str


def pack(kind: Kind, sender: int, stamp: Stamp, length: int) -> bytes:
    """A header as bytes; of a long position the innermost end is kept."""
    return _LAYOUT.pack(_MAGIC, kind, _VERSION, sender, stamp.round, length, stamp.digest, _cut(stamp.position))


def unpack(raw: bytes | memoryview, peer: int, parties: int | None = None) -> Header:
    """A header from bytes; Desync for any bytes that are none."""
    if len(raw) == HEADER_BYTES:
        magic, kind, version, sender, round_, length, digest, text = _LAYOUT.unpack(raw)
        if magic == _MAGIC and version == _VERSION and kind in _KINDS:
            return Header(_KINDS[kind], sender, round_, length, digest, text.rstrip(b"\0").decode(errors="replace"))
    who = name(peer, parties)
    raise Desync(f"what {who} sends is no message of this protocol version: run the same release everywhere")


def is_expected(raw: bytes | memoryview, peer: int, stamp: Stamp, length: int) -> bool:
    """Whether this is the header of the message waited for; if not, `unpack` and `expect` say what it means."""
    return raw == pack(Kind.DATA, peer, stamp, length)


def expect(header: Header, peer: int, stamp: Stamp, length: int, parties: int, me: int) -> None:
    """Raise what a header means that is not the message waited for; ABORT is left to `aborted`."""
    who, we = name(peer, parties), name(me, parties)
    ours = _tail(stamp.position)
    if header.kind is Kind.BYE:
        raise Desync(
            f"{who} has ended its program, {we} is in round {stamp.round} at {ours}: run the same program everywhere"
        )
    if header.sender != peer:
        raise Desync(f"{who} introduces itself as {name(header.sender, parties)}: check the addresses")
    same = (header.round, header.digest, header.position, header.length) == (stamp.round, stamp.digest, ours, length)
    if header.kind is not Kind.DATA or not same:
        raise Desync(
            f"{who} is in round {header.round} at {header.position} with {header.length} bytes, {we} in round "
            f"{stamp.round} at {ours} with {length} bytes: run the same program with the same arguments everywhere"
        )


def went_on(header: Header, peer: int, parties: int, me: int) -> Desync:
    """What a message means that comes after this node has ended its program."""
    return Desync(
        f"{name(peer, parties)} is in round {header.round} at {header.position}, {name(me, parties)} has ended its "
        "program: run the same program everywhere"
    )


def farewell(reason: str, sender: int, parties: int) -> tuple[bytes, bytes]:
    """The last header and its payload: BYE; or, for a reason "Kind: text", an ABORT with that and whom it blames."""
    if not reason:
        return pack(Kind.BYE, sender, Stamp(0, bytes(8), ""), 0), b""
    kind, _, text = reason.partition(": ")
    blamed = ""
    if found := _BLAME.match(text):
        blamed = str(int(found[2]) + (parties if found[1] == "client" else 0))
    payload = f"{kind}\n{blamed}\n{text}".encode(errors="replace")[:WORDS_LIMIT]
    return pack(Kind.ABORT, sender, Stamp(0, bytes(8), ""), len(payload)), payload


def aborted(payload: bytes, sender: int, parties: int) -> MaskedError:
    """The error that a peer's ABORT means here."""
    kind, _, rest = payload.decode(errors="replace").partition("\n")
    blamed, _, text = rest.partition("\n")
    reporter = name(sender, parties)
    reported = text if "(reported by " in text else f"{text} (reported by {reporter})"
    if kind == "Desync":
        return Desync(reported)
    if kind == "PeerLost" and blamed.isdecimal():
        return PeerLost(reported, peer=int(blamed))
    return PeerLost(f"{reporter} stopped with {kind}{': ' if text else ''}{text}", peer=sender)


def name(node: int, parties: int | None = None) -> str:
    """How a node is called in messages."""
    if node == DEALER_NODE:
        return "the dealer"
    return f"client {node - parties}" if parties is not None and node >= parties else f"party {node}"


def _tail(position: str) -> str:
    """A position as its receiver reads it."""
    return _cut(position).rstrip(b"\0").decode(errors="replace")


def _cut(position: str) -> bytes:
    return position.encode(errors="replace")[-_TEXT_BYTES:]
