"""The header in front of every message, and what a header that does not fit means.  Knows bytes; no sockets.

128 bytes, fixed, so that a receiver knows who is where before it trusts a length: magic, kind, version, sender,
round, length of the payload, digest of what is exchanged, and the sender's position in its program as text.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from ..errors import DEALER, FAILED, STOPPED, Desync, MaskedError, PeerLost, StoppedTogether, Told
from .transport import Stamp

_LAYOUT = struct.Struct("<4sBBHQQ8s96s")
_MAGIC = b"MBnd"
_VERSION = 1
HEADER_BYTES = _LAYOUT.size
WORDS_LIMIT = 2000  # bytes of an ABORT's payload
DEALER_NODE = 0xFFFF
_TEXT_BYTES = 96


class Kind(IntEnum):
    """What a frame is."""

    DATA = 1
    ABORT = 2  # the sender stops with an error; the payload says which
    BYE = 3  # the sender's program has ended
    HELLO = 4
    WAITS = 5  # the sender waits for somebody, who stands in place of the position
    NOTED = 6  # what the sender notes is on its disk, up to the decision that stands in place of the round
    READY = 7  # the sender has met all
    ARRIVED = 9  # so many bytes, in place of the round, have come from the receiver of this
    LAST = 8  # DATA, and the sender wishes that all stop after this decision


_ASKED = ("KeyboardInterrupt", "SystemExit")  # kinds of an end that its owner wanted, and no error
_MENDED = ("OSError", "MemoryError")  # of what a machine lacked: there may be room again, and its role come back
_KINDS = {int(kind): kind for kind in Kind}


@dataclass(frozen=True)
class Nodes:
    """Who is who: the first numbers are the parties', those behind them the clients'; the launcher may name all."""

    parties: int | None = None
    names: tuple[str, ...] = ()

    def name(self, node: int) -> str:
        """How a node is called in messages."""
        if node in (DEALER, DEALER_NODE):
            return "the dealer"
        if 0 <= node < len(self.names):
            return self.names[node]
        return f"client {node - self.parties}" if self.parties is not None and node >= self.parties else f"party {node}"


ANYBODY = Nodes()


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


def noted_stamp(done: int) -> Stamp:
    """Of a client's word that it has on its disk what it noted up to a decision."""
    return Stamp(done, bytes(8), "notes on the disk")


def shown(text: str) -> str:
    """What a peer says, as a terminal may show it in a line."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def unpack(raw: bytes | memoryview, peer: int, nodes: Nodes = ANYBODY) -> Header:
    """A header from bytes; Desync for any bytes that are none."""
    if len(raw) == HEADER_BYTES:
        magic, kind, version, sender, round_, length, digest, text = _LAYOUT.unpack(raw)
        if magic == _MAGIC and version == _VERSION and kind in _KINDS:
            return Header(_KINDS[kind], sender, round_, length, digest, text.rstrip(b"\0").decode(errors="replace"))
    who = nodes.name(peer)
    raise Desync(f"what {who} sends is no message of this protocol version: run the same release everywhere")


def is_expected(
    raw: bytes | memoryview, peer: int, stamp: Stamp, length: int, kind: Kind = Kind.DATA
) -> bool:  # fmt: skip
    """Whether this is the header of the message waited for; if not, `unpack` and `expect` say what it means."""
    return raw == pack(kind, peer, stamp, length)


def expect(header: Header, peer: int, stamp: Stamp, length: int, nodes: Nodes, me: int) -> None:
    """Raise what a header means that is not the message waited for; ABORT is left to `aborted`."""
    who, we = nodes.name(peer), nodes.name(me)
    ours = _tail(stamp.position)
    if header.kind is Kind.BYE:
        raise Desync(
            f"{who} has ended its program, {we} is in round {stamp.round} at {ours}: run the same program everywhere"
        )
    if header.sender != peer:
        raise Desync(f"{who} introduces itself as {nodes.name(header.sender)}: check the addresses")
    same = (header.round, header.digest, header.position, header.length) == (stamp.round, stamp.digest, ours, length)
    if header.kind is not Kind.DATA or not same:
        raise Desync(
            f"{who} is in round {header.round} at {shown(header.position)} with {header.length} bytes, {we} in round "
            f"{stamp.round} at {ours} with {length} bytes: run the same program with the same arguments everywhere"
        )


def went_on(header: Header, peer: int, nodes: Nodes, me: int) -> Desync:
    """What a message means that comes after this node has ended its program."""
    return Desync(
        f"{nodes.name(peer)} is in round {header.round} at {shown(header.position)}, {nodes.name(me)} has ended its "
        "program: run the same program everywhere"
    )


def farewell(reason: Told | None, sender: int) -> tuple[bytes, bytes]:
    """The last header and its payload: BYE; or, for a reason, an ABORT with that and whom it names."""
    if reason is None:
        return pack(Kind.BYE, sender, Stamp(0, bytes(8), ""), 0), b""
    peer, reporter = ("" if node is None else node for node in (reason.peer, reason.reporter))
    payload = f"{reason.kind}\n{peer}\n{reporter}\n{reason.text}".encode(errors="replace")[:WORDS_LIMIT]
    return pack(Kind.ABORT, sender, Stamp(0, bytes(8), ""), len(payload)), payload


def aborted(payload: bytes, sender: int, nodes: Nodes) -> MaskedError:
    """The error that a peer's ABORT means here: this node is a witness."""
    said = [*payload.decode(errors="replace").split("\n", 3), "", "", ""][:4]
    kind, peer, told_by, text = shown(said[0]), *said[1:3], "\n".join(map(shown, said[3].split("\n")))
    who = nodes.name(sender)
    stopped = f"{who} stopped with {kind}{': ' if text else ''}{text}"
    reporter = int(told_by) if told_by.isdecimal() else sender
    reported = stopped if not text else text if told_by.isdecimal() else f"{text} (reported by {who})"
    if kind == "Desync":
        return Desync(reported, reporter=reporter)
    if kind == STOPPED and text.isdecimal():
        return StoppedTogether(f"{who} and all others stop after decision {int(text):,}", peer=sender, done=int(text))
    if kind in ("PeerLost", FAILED) and (peer.isdecimal() or peer == str(DEALER)):
        lost = f"{who} lost {nodes.name(int(peer))}"
        return PeerLost(reported if text else lost, peer=int(peer), reporter=reporter, failed=kind == FAILED)
    return PeerLost(stopped, peer=sender, failed=kind not in (*_ASKED, *_MENDED))


def _tail(position: str) -> str:
    """A position as its receiver reads it."""
    return _cut(position).rstrip(b"\0").decode(errors="replace")


def _cut(position: str) -> bytes:
    return position.encode(errors="replace")[-_TEXT_BYTES:]
