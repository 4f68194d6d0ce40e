"""The header in front of every message, and what a header that does not fit means.  Knows bytes; no sockets.

128 bytes, fixed, so that a receiver knows who is where before it trusts a length: magic, kind, version, sender,
round, length of the payload, digest of what is exchanged, and the sender's position in its program as text.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from ..errors import Desync, MaskedError, PeerLost
from .transport import Stamp

_LAYOUT = struct.Struct("<4sBBHQQ8s96s")
_MAGIC = b"MBnd"
_VERSION = 1
HEADER_BYTES = _LAYOUT.size
_TEXT_BYTES = 96


class Kind(IntEnum):
    """What a frame is."""

    DATA = 1
    ABORT = 2  # the sender stops with an error; the payload says which
    BYE = 3  # the sender's program has ended
    HELLO = 4


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
    text = stamp.position.encode()[-_TEXT_BYTES:]
    return _LAYOUT.pack(_MAGIC, kind, _VERSION, sender, stamp.round, length, stamp.digest, text)


def unpack(raw: bytes | memoryview, peer: int) -> Header:
    """A header from bytes."""
    magic, kind, version, sender, round_, length, digest, text = _LAYOUT.unpack(raw)
    if magic != _MAGIC or version != _VERSION or kind not in list(Kind):
        raise Desync(f"what {name(peer)} sends is no message of this protocol version: run the same release everywhere")
    position = text.rstrip(b"\0").decode(errors="replace")
    return Header(Kind(kind), sender, round_, length, digest, position)


def expect(header: Header, peer: int, stamp: Stamp, length: int, parties: int) -> None:
    """Raise what a header means that is not the message waited for; ABORT is left to `aborted`."""
    who = name(peer, parties)
    ours = _tail(stamp.position)
    if header.kind is Kind.BYE:
        raise Desync(
            f"{who} has ended its program, this party is in round {stamp.round} at {ours}: "
            "run the same program everywhere"
        )
    if header.sender != peer:
        raise Desync(f"{who} introduces itself as {name(header.sender, parties)}: check the addresses")
    same = (header.round, header.digest, header.position, header.length) == (stamp.round, stamp.digest, ours, length)
    if header.kind is not Kind.DATA or not same:
        raise Desync(
            f"{who} is in round {header.round} at {header.position} with {header.length} bytes, this party in round "
            f"{stamp.round} at {ours} with {length} bytes: run the same program with the same arguments everywhere"
        )


def abort_payload(error_kind: str, peer: int | str, text: str) -> bytes:
    """What an ABORT carries: the kind of error, whom it blames, and its text."""
    return f"{error_kind}\n{peer}\n{text}".encode()[:2000]


def aborted(payload: bytes, sender: int, parties: int) -> MaskedError:
    """The error that a peer's ABORT means here."""
    kind, _, rest = payload.decode(errors="replace").partition("\n")
    blamed, _, text = rest.partition("\n")
    reporter = name(sender, parties)
    if kind == "Desync":
        return Desync(f"{text} (reported by {reporter})")
    if kind == "PeerLost" and blamed.isdigit():
        return PeerLost(f"{text} (reported by {reporter})", peer=int(blamed))
    return PeerLost(f"{reporter} stopped with {kind}{': ' if text else ''}{text}", peer=sender)


def name(node: int, parties: int | None = None) -> str:
    """How a node is called in messages."""
    return f"client {node - parties}" if parties is not None and node >= parties else f"party {node}"


def _tail(position: str) -> str:
    return position.encode()[-_TEXT_BYTES:].decode(errors="replace")
