"""What the parties of the transport tests run.  Knows a session; not which transport carries it."""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from mpc import ops
from mpc.cases import cases
from mpc.errors import RangeError
from mpc.net.transport import Transport
from mpc.prg import KEY_BYTES, Prg
from mpc.rounds import Open, Reveal
from mpc.session import Session
from offline import InsecureSeededDealer

Program = Callable[[Session], Any]


def pair_keys(parties: int) -> dict[tuple[int, int], bytes]:
    """The same pairwise seeds in every process."""
    stream = Prg(bytes(range(KEY_BYTES)))
    return {pair: stream.bytes(KEY_BYTES).tobytes() for pair in itertools.combinations(range(parties), 2)}


def seeded(transport: Transport, *, roles: tuple[str, ...] = ()) -> Session:
    """A session of which nothing is left to chance."""
    party = transport.hosted[0] if len(transport.hosted) == 1 else None
    source = InsecureSeededDealer(transport.parties, 7, party=party)
    return Session(transport, source, roles=roles, pair_keys=pair_keys(transport.parties))


def every_operation(session: Session) -> dict[str, Any]:
    """A digest of each hosted party's shares, one of what all learned, and the cost."""
    shares = {party: hashlib.blake2b() for party in session.hosted}
    learned = hashlib.blake2b()
    for number, case in enumerate(cases(quick=True)):
        values = case.inputs(np.random.default_rng(number))
        result = session.run(case.program(session, *case.share(session, values)))
        for party, row in zip(session.hosted, result.words, strict=True):
            shares[party].update(np.ascontiguousarray(row).tobytes())
        learned.update(np.ascontiguousarray(session.run(_reveal(result))).tobytes())
    total = session.meter.total
    return {
        "shares": {str(party): digest.hexdigest() for party, digest in shares.items()},
        "learned": learned.hexdigest(),
        "cost": [total.rounds, total.opened_bytes, total.sent_bytes, total.client_hops],
    }


def _reveal(share: Any, to: str = "everyone") -> Any:
    return (yield Reveal(share, to))


def opening(session: Session, shape: tuple[int, ...], bits: int = 64, **how: bool) -> Any:
    """One round that opens ones."""
    return (yield Open(session.public(np.ones(shape, np.uint64)), bits, **how))


def rounds(session: Session, count: int, shape: tuple[int, ...] = (4,)) -> Any:
    """Several such rounds."""
    for _ in range(count):
        last = yield from opening(session, shape)
    return last


def _odd(session: Session) -> bool:
    return session.hosted == (1,)


def other_operation(session: Session) -> Any:
    x = session.share(np.arange(4.0) if 0 in session.hosted else None, shape=(4,))
    return session.run(ops.square(session, x) if _odd(session) else ops.truncate(session, x, 3))


def other_shape(session: Session) -> Any:
    return session.run(opening(session, (3, 2) if _odd(session) else (2, 3)))


def other_bits(session: Session) -> Any:
    return session.run(opening(session, (8,), 32) if _odd(session) else opening(session, (4,), 64))


def other_meaning(session: Session) -> Any:
    return session.run(opening(session, (4,), xor=_odd(session)))


def other_size(session: Session) -> Any:
    return session.run(opening(session, (300_000,) if _odd(session) else (4,)))


def ends_early(session: Session) -> Any:
    return session.run(rounds(session, 2 if _odd(session) else 3))


def goes_on(session: Session) -> Any:
    return session.run(rounds(session, 4 if _odd(session) else 3))


def large_goes_on(session: Session) -> Any:
    return session.run(rounds(session, 2 if _odd(session) else 1, (300_000,)))


DESYNCS: dict[str, Program] = {
    "other_operation": other_operation,
    "other_shape": other_shape,
    "other_bits": other_bits,
    "other_meaning": other_meaning,
    "other_size": other_size,
    "ends_early": ends_early,
    "goes_on": goes_on,
    "large_goes_on": large_goes_on,
}


def endless(session: Session) -> Any:
    """Rounds without an end, small and large; says when some are over."""
    session.run(rounds(session, 20))
    print("ready", flush=True)
    while True:
        session.run(rounds(session, 20))
        session.run(rounds(session, 1, (100_000,)))


def out_of_range(session: Session) -> Any:
    """The last party's own input does not fit."""
    session.run(rounds(session, 3))
    if session.parties - 1 in session.hosted:
        raise RangeError("values leave the declared bound |v| <= 3: scale or clip them, or declare a larger bound")
    return session.run(rounds(session, 3))


def stays_silent(session: Session) -> Any:
    """The last party lives and does not answer."""
    session.run(rounds(session, 3))
    if session.parties - 1 in session.hosted:
        threading.Event().wait(10)
    return session.run(rounds(session, 3))


def large(session: Session) -> Any:
    """4 MB in every direction, then nothing at all, then many small rounds."""
    first = session.run(rounds(session, 2, (1 << 19,)))
    empty = session.run(opening(session, (0,)))
    last = session.run(rounds(session, 300))
    return [int(first.sum()), list(empty.shape), int(last.sum())]


def to_one(session: Session) -> Any:
    """A reveal to party 1 alone, in one round with one to all."""
    x = session.share(np.array([1.5, -2.0]) if 0 in session.hosted else None, shape=(2,))

    def program() -> Any:
        return (yield Reveal(x, "party 1"), Reveal(2 * x), Reveal(x, "party 0"))

    return [None if value is None else value.tolist() for value in session.run(program())]


PROGRAMS: dict[str, Program] = {
    **DESYNCS,
    "every_operation": every_operation,
    "endless": endless,
    "out_of_range": out_of_range,
    "stays_silent": stays_silent,
    "large": large,
    "to_one": to_one,
}
