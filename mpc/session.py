"""One run of one process: the parties it hosts, their inputs, and the programs it drives.  Knows no protocol.

This module alone says what party 0 does differently: it adds public constants.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from types import TracebackType
from typing import Any, TypeVar

import numpy as np

from . import ring
from .client import ClientProgram, HostedClient
from .correlations import Correlation, Source
from .errors import ConfigError, RangeError, told_to_peers
from .exchange import Exchange, Listener
from .ledger import EVERYONE, Ledger
from .meter import Cost, Meter
from .net.memory import Memory
from .net.transport import Transport
from .pairs import PairStreams, agree_on_pairs
from .prg import Unshared
from .rounds import Rounds
from .share import BinaryShare, Share
from .trail import Trail

T = TypeVar("T")


class Session(Unshared):
    """N parties, of which this process hosts one or all.

    transport: moves messages.  source: hands out correlated randomness.  roles: names of the clients, in node order.
    clients: programs of the clients, where this process hosts all parties.  pair_keys: fixed seeds for tests; parties
    agree on fresh ones otherwise.  ledger, meter: where this session counts, beside what they have counted already.
    """

    def __init__(
        self,
        transport: Transport,
        source: Source,
        *,
        roles: Sequence[str] = (),
        clients: Mapping[str, ClientProgram] | None = None,
        pair_keys: Mapping[tuple[int, int], bytes] | None = None,
        listener: Listener | None = None,
        ledger: Ledger | None = None,
        meter: Meter | None = None,
    ) -> None:
        super().__init__()
        self.source = source
        self.stock: deque[tuple[Correlation, tuple[np.ndarray, ...]]] | None = None  # of the program that runs now
        self.parties = transport.parties
        self.hosted = transport.hosted
        self.ledger = Ledger() if ledger is None else ledger
        self.meter = Meter() if meter is None else meter
        self.trail = Trail() if len(self.hosted) < self.parties else None
        self.transport = transport
        self._first = self.hosted.index(0) if 0 in self.hosted else None
        names = [*roles, *(clients or ())]
        if len(set(names)) < len(names) or any(name == EVERYONE or name.startswith("party ") for name in names):
            raise ConfigError(f"clients need distinct names, none of them {EVERYONE!r} or a party's: {names}")
        nodes = {role: self.parties + i for i, role in enumerate(names)}
        if clients and len(self.hosted) < self.parties:
            raise ConfigError("on a network each client is a process of its own: name it in roles")
        self._clients = {role: HostedClient(role, program) for role, program in (clients or {}).items()}
        with _TellsPeers(self):
            self._pairs: PairStreams = agree_on_pairs(transport, source, pair_keys, names)
        self._exchange = Exchange(self, transport, self._pairs, nodes, self._clients, listener)

    @classmethod
    def simulate(
        cls,
        parties: int,
        source: Source,
        *,
        clients: Mapping[str, ClientProgram] | None = None,
        pair_keys: Mapping[tuple[int, int], bytes] | None = None,
        listener: Listener | None = None,
        ledger: Ledger | None = None,
        meter: Meter | None = None,
    ) -> Session:
        """All parties in this process."""
        return cls(
            Memory(parties), source, clients=clients, pair_keys=pair_keys, listener=listener, ledger=ledger, meter=meter
        )

    def counted(self) -> dict[str, Any]:
        """What this session cost and who learned what, as plain data that `resume` takes."""
        return {"cost": asdict(self.meter.total), "ledger": [asdict(entry) for entry in self.ledger]}

    def resume(self, cost: Mapping[str, Any], ledger: Sequence[Mapping[str, Any]]) -> None:
        """Go on counting from what an earlier session had `counted`."""
        self.meter.add(Cost(**cost))
        for entry in ledger:
            self.ledger.record(**entry)

    @property
    def round(self) -> int:
        """How many rounds have been played."""
        return self._exchange.round

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """The next correlated randomness, as arrays (hosted, *shape)."""
        if self.stock is not None:
            assert self.stock and self.stock[0][0] == item, "a program is supplied with what it draws, in its order"
            return self.stock.popleft()[1]
        drawn = self.source.draw(item)
        if self.trail is not None:
            self.trail.drew(item, getattr(self.source, "block", 0))
        return drawn

    def public(self, words: np.ndarray) -> np.ndarray:
        """A share of public words: party 0 has them, the others 0."""
        words = np.asarray(words)
        shared = np.zeros((len(self.hosted), *words.shape), words.dtype)
        if self._first is not None:
            shared[self._first] = words
        return shared

    def plus(self, shared: np.ndarray, words: np.ndarray | np.unsignedinteger[Any]) -> np.ndarray:
        """Shared words (hosted, *shape) plus public ones, which fit the shape: party 0 adds them."""
        if self._first is None:
            return shared
        total = shared.copy()
        total[self._first] += words
        return total

    def constant(self, values: Any, scale: int = ring.FRACTION_BITS) -> Share:
        """A share of public real values."""
        return Share(self, self.public(ring.encode(values, scale)), scale)

    def share(
        self,
        values: Any = None,
        *,
        owner: int = 0,
        shape: tuple[int, ...] | None = None,
        scale: int = ring.FRACTION_BITS,
        bound: float | None = None,
    ) -> Share:
        """Share an input of party `owner`, without a message: the others expand the seed they hold with it.

        The owner gives `values` (numpy or torch; |v| < 2^(62 - scale), and <= bound if declared), the others `shape`.
        """
        words = ring.encode(values, scale, bound=bound) if self._owns(owner, values) else None
        return Share(self, self._dealt_out(words, owner, _agreed_shape(words, shape, owner), scale=scale), scale)

    def share_bits(
        self, values: Any = None, *, owner: int = 0, shape: tuple[int, ...] | None = None, width: int = 64
    ) -> BinaryShare:
        """XOR-share non-negative integers below 2^width, or any 64-bit integers at width 64; else as `share`."""
        words = ring.encode_bits(values, width) if self._owns(owner, values) else None
        shared = self._dealt_out(words, owner, _agreed_shape(words, shape, owner), scale=None)
        return BinaryShare(self, shared.astype(ring.dtype_for(width)) & ring.narrow_mask(width), width)

    def fresh(self, share: Share) -> Share:
        """The same value in other words: a sharing of 0, which the pairs of parties know, is added without a message.

        Cost: no round, no byte; N - 1 words of pad for each number.
        """
        if share.session is not self:
            raise TypeError("a share of another session: make it fresh in the session of its words")
        if self.trail is not None:
            self.trail.note("fresh", share.shape, share.ring)
        zero = self._pairs.zero(share.shape).astype(share.words.dtype, copy=False)
        return Share(self, share.words + zero, share.scale)

    def run(self, program: Rounds[T]) -> T:
        """Drive a program to its end; each of its yields is one round, which a forked half is refused."""
        if not hasattr(program, "send"):
            raise TypeError(f"a session runs a program, a generator of rounds, not {type(program).__name__}")
        self.require_own()
        started = time.perf_counter()
        reply: Any = None
        with _TellsPeers(self), np.errstate(over="ignore"):
            try:
                while True:
                    yielded = program.send(reply)
                    self.require_own()
                    if isinstance(yielded, tuple):
                        reply = tuple(self._exchange.play(yielded, program))
                    else:
                        reply = self._exchange.play((yielded,), program)[0]
            except StopIteration as stop:
                return stop.value
            finally:
                self.meter.total.seconds += time.perf_counter() - started

    def close(self) -> None:
        """Leave in peace; clients in this process do what follows their last answer.

        A forked half leaves without a word, since the connections are its parent's.
        """
        if self.forked:
            return
        for client in self._clients.values():
            client.finish()
        self.transport.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is None:
            self.close()
        elif not self.forked:
            self.transport.close(reason=told_to_peers(error or kind()))

    def __repr__(self) -> str:
        return f"Session(parties={self.parties}, hosted={self.hosted}, round={self.round})"

    def _owns(self, owner: int, values: Any) -> bool:
        if not isinstance(owner, int) or not 0 <= owner < self.parties:
            raise ConfigError(f"the owner is one of the parties 0..{self.parties - 1}, not {owner!r}")
        if owner in self.hosted and values is None:
            raise ConfigError(f"party {owner} owns this input: it must give the values")
        return owner in self.hosted

    def _dealt_out(
        self, words: np.ndarray | None, owner: int, shape: tuple[int, ...], *, scale: int | None
    ) -> np.ndarray:
        """Each other party's row is its pair stream with the owner; the owner's makes the total right, or the XOR."""
        xor = scale is None
        if self.trail is not None:
            self.trail.note("share", owner, shape, scale)
        shared = np.zeros((len(self.hosted), *shape), np.uint64)
        row = {party: i for i, party in enumerate(self.hosted)}
        own = shared[row[owner], ...] if owner in row else None  # a view; '...' keeps a scalar an array, which wraps
        for other in range(self.parties):
            if other == owner or not (other in row or owner in row):
                continue
            pad = self._pairs.words(owner, other, shape)
            if other in row:
                shared[row[other]] = pad
            if own is not None:
                own[...] = own ^ pad if xor else own - pad
        if own is not None and words is not None:
            own[...] = own ^ words if xor else own + words
        return shared


class _TellsPeers:
    """Tell the peers before an error leaves this process, so that none of them waits in vain.

    A fork of it tells nothing: the connections are its parent's.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if kind is not None and kind is not StopIteration and not self._session.forked:
            self._session.transport.close(reason=told_to_peers(error or kind()))


def _agreed_shape(words: np.ndarray | None, shape: tuple[int, ...] | None, owner: int) -> tuple[int, ...]:
    if words is None:
        if shape is None:
            raise ConfigError(f"party {owner} owns this input: the others declare its shape")
        return shape
    if shape is not None and words.shape != shape:
        raise RangeError(f"the input was declared with shape {shape}, the values have {words.shape}")
    return words.shape
