"""What a peer may send in place of a message, and how it is heard: for tests of what travels.  Knows frames.

Each frame is made from a true one: bytes changed, cut off, doubled, fields set to what hurts, another kind, or noise.
It is heard as a message of a round, as a client's, as a header alone, and as a hello.
"""

from __future__ import annotations

import random
import socket
from collections import Counter
from collections.abc import Callable

import numpy as np

from ..errors import MaskedError
from .frames import HEADER_BYTES, Kind, Nodes, pack, unpack
from .hello import Hello
from .party_mesh import PartyMesh
from .transport import Stamp

_STAMP = Stamp(1, b"8 bytes.", "fuzz:1")
_PAYLOAD = 24
_SECONDS = 0.02  # that a round may take: what does not come is a silence
_LIMITS = (0, 1, 255, 1 << 16, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)
_HELLO = Hello(2, 1, 0, "fuzz", "0" * 64, "", "1" * 64, "2" * 64, "3" * 64, "4" * 16, "", 0, {"arms": 3, "eps": 0.1})


def frame(draw: random.Random) -> bytes:
    """What a peer sends in place of a message; now and then the message itself."""
    kind = draw.choice([Kind.DATA, Kind.DATA, *Kind])
    stamp = draw.choice([_STAMP, Stamp(draw.choice(_LIMITS), draw.randbytes(8), "elsewhere")])
    length = _PAYLOAD if draw.random() < 0.7 else draw.choice(_LIMITS)
    raw = bytearray(pack(kind, draw.choice([1, 1, 1, 0, 7, 0xFFFF]), stamp, length) + draw.randbytes(_PAYLOAD))
    return _changed(raw, draw)


def greeting(draw: random.Random) -> bytes:
    """What a caller sends in place of a hello."""
    return _changed(bytearray(_HELLO.pack()), draw)


def _changed(raw: bytearray, draw: random.Random) -> bytes:
    way = draw.randrange(6)
    if way == 0:
        for _ in range(draw.randrange(1, 9)):
            raw[draw.randrange(len(raw))] = draw.randrange(256)
    elif way == 1:
        del raw[draw.randrange(len(raw)) :]
    elif way == 2:
        raw *= draw.randrange(2, 5)
    elif way == 3:
        return draw.randbytes(draw.randrange(400))
    elif way == 4:
        at = draw.randrange(len(raw))
        raw[at:at] = draw.randbytes(draw.randrange(1, 40))
    return bytes(raw)


def heard(raw: bytes, *, closes: bool, client: bool) -> None:
    """Hear it as party 0 of two, in a round or from a client."""
    ours, theirs = socket.socketpair()
    mesh = PartyMesh(0, 1 if client else 2, {1: ours}, _SECONDS)
    try:
        theirs.sendall(raw)
        if closes:
            theirs.shutdown(socket.SHUT_WR)
        if client:
            mesh.receive_from_client(1, "fuzz:1", _PAYLOAD)
        else:
            mesh.exchange(_STAMP, np.zeros((1, _PAYLOAD), np.uint8), {})
    finally:
        theirs.close()
        ours.close()


def fuzz(count: int, seed: int, progress: Callable[[int], None] = lambda _: None) -> Counter[str]:
    """How so many frames ended, by the kind of error; anything but a declared one is raised."""
    draw, ends = random.Random(seed), Counter[str]()
    for at in range(count):
        way = at % 4
        raw = greeting(draw) if way == 3 else frame(draw)
        try:
            if way == 3:
                Hello.unpack(raw)
            elif way == 2:
                unpack(raw[:HEADER_BYTES], 1, Nodes(2))
            else:
                heard(raw, closes=draw.random() < 0.98, client=way == 1)
            ends["accepted"] += 1
        except MaskedError as error:
            assert all(line.isprintable() for line in str(error).splitlines()), "a peer's bytes reached a terminal"
            ends[type(error).__name__] += 1
        if at % 10_000 == 0:
            progress(at)
    return ends
