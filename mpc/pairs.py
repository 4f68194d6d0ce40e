"""Seeds that two parties share: inputs without a message, and sharings of zero.  Knows keys; no values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from .correlations import Source
from .errors import ConfigError
from .net.transport import Stamp, Transport
from .prg import KEY_BYTES, Prg, fresh_key

STATEMENT_BYTES = 64


class PairStreams:
    """One stream for each pair that a hosted party belongs to; both ends consume it in the order of the program."""

    def __init__(self, hosted: tuple[int, ...], keys: Mapping[tuple[int, int], bytes]) -> None:
        self._rows = {party: i for i, party in enumerate(hosted)}
        self._streams = {pair: Prg(key) for pair, key in keys.items()}

    def words(self, p: int, q: int, shape: tuple[int, ...]) -> np.ndarray:
        """The next words that p and q both know."""
        return self._streams[_pair(p, q)].words(shape)

    def zero(self, shape: tuple[int, ...], *, xor: bool = False) -> np.ndarray:
        """A sharing of 0 among all parties: each pair adds and subtracts the same words."""
        zero = np.zeros((len(self._rows), *shape), np.uint64)
        for (p, q), stream in self._streams.items():
            pad = stream.words(shape)
            for party, sign in ((p, 1), (q, -1)):
                if party in self._rows:
                    row = self._rows[party]
                    zero[row] = zero[row] ^ pad if xor else zero[row] + pad if sign > 0 else zero[row] - pad
        return zero

    def __repr__(self) -> str:
        return f"PairStreams({len(self._streams)} pairs)"


def agree_on_pairs(
    transport: Transport, source: Source, fixed: Mapping[tuple[int, int], bytes] | None, roles: Sequence[str] = ()
) -> PairStreams:
    """Agree on pairwise seeds, on the clients' roles and on where the sources stand: one exchange, before any input.

    Each of two parties sends the other half a key, so neither chooses it alone.
    """
    hosted, parties = transport.hosted, transport.parties
    pairs = [(p, q) for p in range(parties) for q in range(p + 1, parties) if p in hosted or q in hosted]
    statement = np.frombuffer(source.statement().ljust(STATEMENT_BYTES, b"\0"), np.uint8)
    if statement.size != STATEMENT_BYTES:
        raise ConfigError(f"a source states at most {STATEMENT_BYTES} bytes, this one {statement.size}")
    if len(hosted) == parties:
        source.agree([statement.tobytes()] * parties)
        keys = dict(fixed) if fixed else {pair: fresh_key() for pair in pairs}
    else:
        me = hosted[0]
        halves = {q: np.frombuffer(fresh_key(), np.uint8) for q in range(parties)}
        rows, own = transport.exchange(
            Stamp(0, bytes(8), f"the start of a session of {parties} parties and clients {list(roles)}"),
            statement[None],
            {q: half[None] for q, half in halves.items()},
        )
        source.agree([row.tobytes() for row in rows])
        keys = dict(fixed) if fixed else {
            _pair(me, q): (own[me][q] ^ halves[q]).tobytes() for q in range(parties) if q != me
        }  # fmt: skip
    if missing := [pair for pair in pairs if len(keys.get(pair, b"")) != KEY_BYTES]:
        raise ConfigError(f"no key of {KEY_BYTES} bytes for the pairs {missing}")
    return PairStreams(hosted, {pair: keys[pair] for pair in pairs})


def _pair(p: int, q: int) -> tuple[int, int]:
    return (p, q) if p < q else (q, p)
