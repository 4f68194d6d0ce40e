"""One run of one process: the parties it hosts, and the exchange behind every yield.  Knows no protocol.

This module alone says what party 0 does differently: it adds public constants.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from . import ring
from .client import ClientProgram, HostedClient
from .correlations import Correlation, Source
from .errors import ConfigError, MaskedError, RangeError
from .ledger import EVERYONE, Ledger
from .meter import Meter
from .net.memory import Memory
from .net.transport import Stamp, Transport
from .prg import KEY_BYTES, Prg, fresh_key
from .rounds import Input, Open, Request, Reveal, Rounds, position
from .share import Share

T = TypeVar("T")
STATEMENT_BYTES = 64

Listener = Callable[[Request, np.ndarray, Any], None]
"""For tests: sees each request, the bytes its hosted parties send as (hosted, n), and what came back."""


class Session:
    """N parties, of which this process hosts one or all.

    transport: moves messages.  source: hands out correlated randomness.  roles: names of the clients, in node order.
    clients: programs of the clients, where this process hosts all parties.
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
    ) -> None:
        self.transport = transport
        self.source = source
        self.parties = transport.parties
        self.hosted = transport.hosted
        self.ledger = Ledger()
        self.meter = Meter()
        self.round = 0
        self._listener = listener
        self._networked = len(self.hosted) < self.parties
        self._first = self.hosted.index(0) if 0 in self.hosted else None
        self._roles = {role: self.parties + i for i, role in enumerate([*roles, *(clients or ())])}
        self._clients = {role: HostedClient(role, program) for role, program in (clients or {}).items()}
        if self._clients and self._networked:
            raise ConfigError("on a network each client is a process of its own: name it in roles")
        with _closing_on_error(transport):
            self._pairs = self._start(pair_keys)

    @classmethod
    def simulate(cls, parties: int, source: Source, **options: Any) -> Session:
        """All parties in this process."""
        return cls(Memory(parties), source, **options)

    # -- what protocols use ---------------------------------------------------------------------------------------

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """The next correlated randomness, as arrays (hosted, *shape)."""
        return self.source.draw(item)

    def public(self, words: np.ndarray) -> np.ndarray:
        """A share of public words: party 0 has them, the others 0."""
        words = np.asarray(words)
        shared = np.zeros((len(self.hosted), *words.shape), words.dtype)
        if self._first is not None:
            shared[self._first] = words
        return shared

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
        if not 0 <= owner < self.parties:
            raise ConfigError(f"the owner is one of the parties 0..{self.parties - 1}, not {owner}")
        if owner in self.hosted:
            if values is None:
                raise ConfigError(f"party {owner} owns this input: it must give the values")
            words = ring.encode(values, scale, bound=bound)
            if shape is not None and words.shape != shape:
                raise RangeError(f"the input was declared with shape {shape}, the values have {words.shape}")
            shape = words.shape
        elif shape is None:
            raise ConfigError(f"party {owner} owns this input: the others declare its shape")
        shared = np.zeros((len(self.hosted), *shape), np.uint64)
        for other in range(self.parties):
            if other == owner or not {other, owner} & set(self.hosted):
                continue
            pad = self._pairs[_pair(owner, other)].words(shape)
            if other in self.hosted:
                shared[self.hosted.index(other)] = pad
            if owner in self.hosted:
                shared[self.hosted.index(owner)] -= pad
        if owner in self.hosted:
            shared[self.hosted.index(owner)] += words
        return Share(self, shared, scale)

    def run(self, program: Rounds[T]) -> T:
        """Drive a program to its end; each of its yields is one round."""
        started = time.perf_counter()
        reply: Any = None
        with _closing_on_error(self.transport), np.errstate(over="ignore"):
            try:
                while True:
                    yielded = program.send(reply)
                    if isinstance(yielded, tuple):
                        reply = tuple(self._exchange(yielded, program))
                    else:
                        reply = self._exchange((yielded,), program)[0]
            except StopIteration as stop:
                return stop.value
            finally:
                self.meter.total.seconds += time.perf_counter() - started

    def close(self) -> None:
        """Leave in peace."""
        self.transport.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session(parties={self.parties}, hosted={self.hosted}, round={self.round})"

    # -- one round ------------------------------------------------------------------------------------------------

    def _exchange(self, requests: tuple[Request, ...], program: Any) -> list[Any]:
        if not requests:
            return []
        hosted = len(self.hosted)
        payloads = [self._payload(request) for request in requests]
        stamp = self._stamp(requests, program)
        common: list[np.ndarray] = []
        direct: dict[int, list[np.ndarray]] = {}
        for request, payload in zip(requests, payloads, strict=True):
            node = self._node(request)
            if node is None:
                common.append(payload)
            elif isinstance(request, Reveal) and node < self.parties:
                direct.setdefault(node, []).append(payload)
            elif isinstance(request, Reveal) and self._networked:
                self.transport.send_to_client(node, stamp, payload)
        rows, own = np.empty((self.parties, 0), np.uint8), {}
        if common or direct:
            self.round += 1
            rows, own = self.transport.exchange(
                stamp, _joined(common, hosted), {node: _joined(parts, hosted) for node, parts in direct.items()}
            )
        self._book(requests, payloads)
        replies, cursor = [], {None: 0, **dict.fromkeys(direct, 0)}
        for request, payload in zip(requests, payloads, strict=True):
            node = self._node(request)
            if node is None or node < self.parties:
                start = cursor[node]
                cursor[node] = stop = start + payload.shape[1]
                got = rows if node is None else own.get(node)
                reply = self._reply(request, None if got is None else got[:, start:stop])
            else:
                reply = self._meet_client(request, node, stamp, payload)
            if self._listener is not None:
                self._listener(request, payload, reply)
            replies.append(reply)
        return replies

    def _payload(self, request: Request) -> np.ndarray:
        """What the hosted parties send, as bytes (hosted, n): reduced to the ring that is opened, or re-randomised."""
        if isinstance(request, Open):
            words, dtype = request.words, ring.dtype_for(request.bits)
            if words.dtype != dtype:
                words = words.astype(dtype)
            if request.bits != 8 * dtype.itemsize:
                words = words & dtype.type(ring.mask(request.bits))
        elif isinstance(request, Reveal):
            words = request.share.words + self._zero(request.share.shape)
        else:
            return np.empty((len(self.hosted), 0), np.uint8)
        return np.ascontiguousarray(words).reshape(words.shape[0], words[0].size).view(np.uint8)

    def _node(self, request: Request) -> int | None:
        """Whom a request concerns: None for all parties."""
        if isinstance(request, Open):
            return None
        role = request.to if isinstance(request, Reveal) else request.role
        if role == EVERYONE and isinstance(request, Reveal):
            return None
        if role in self._roles:
            return self._roles[role]
        if role.startswith("party ") and role[6:].isdigit() and int(role[6:]) < self.parties:
            if isinstance(request, Input):
                raise ConfigError(f"{role} computes: it shares its input with session.share, without a round")
            return int(role[6:])
        known = [EVERYONE, *(f"party {p}" for p in range(self.parties)), *self._roles]
        raise ConfigError(f"there is no role {role!r}; this session has {', '.join(known)}")

    def _reply(self, request: Request, rows: np.ndarray | None) -> Any:
        if isinstance(request, Open) and rows is not None:
            dtype = ring.dtype_for(request.bits)
            words = rows.view(dtype).reshape(self.parties, *request.words.shape[1:])
            if request.apart:
                return words
            total = np.bitwise_xor.reduce(words, axis=0) if request.xor else np.add.reduce(words, axis=0, dtype=dtype)
            return np.asarray(total) if request.bits == 8 * dtype.itemsize else total & dtype.type(ring.mask(request.bits))
        if isinstance(request, Reveal):
            self.ledger.record(request.to, request.what, request.share.size, request.why)
            if rows is None:
                return None
            words = rows.view(np.uint64).reshape(self.parties, *request.share.shape).sum(axis=0, dtype=np.uint64)
            return _disclosed(np.asarray(words), request)
        return None

    def _meet_client(self, request: Request, node: int, stamp: Stamp, payload: np.ndarray) -> Any:
        client = self._clients.get(request.to if isinstance(request, Reveal) else getattr(request, "role", ""))
        if isinstance(request, Reveal):
            self.ledger.record(request.to, request.what, request.share.size, request.why)
            if client is not None:
                words = payload.view(np.uint64).sum(axis=0, dtype=np.uint64).reshape(request.share.shape)
                client.learn(words, request.share.scale)
            return None
        assert isinstance(request, Input)
        if client is not None:
            words = client.give(request.shape, request.scale)
            shares = Prg(fresh_key()).words((self.parties, *request.shape))
            shares[0] += words - shares.sum(axis=0, dtype=np.uint64)
        else:
            count = 8 * int(np.prod(request.shape, dtype=np.int64))
            shares = self.transport.receive_from_client(node, stamp, count).view(np.uint64).reshape(-1, *request.shape)
        return Share(self, shares, request.scale)

    def _book(self, requests: tuple[Request, ...], payloads: list[np.ndarray]) -> None:
        total = self.meter.total
        for request, payload in zip(requests, payloads, strict=True):
            node, size = self._node(request), payload.shape[1]
            for cost in (total, *request.labels):
                if node is None:
                    cost.sent_bytes += size * (self.parties - 1)
                    cost.opened_bytes += size if isinstance(request, Open) else 0
                elif node < self.parties:
                    cost.sent_bytes += size
                else:
                    cost.sent_bytes += size
                    cost.client_hops += 1
        in_round = [r for r in requests if (node := self._node(r)) is None or node < self.parties]
        if in_round:
            total.rounds += 1
            for cost in {id(cost): cost for request in in_round for cost in request.labels}.values():
                cost.rounds += 1
        total.frame_bytes = self.transport.frame_bytes

    def _stamp(self, requests: tuple[Request, ...], program: Any) -> Stamp:
        if not self._networked:
            return Stamp(self.round, b"", "")
        return Stamp(self.round, _digest(tuple(_signature(r) for r in requests)), position(program))

    # -- seeds ----------------------------------------------------------------------------------------------------

    def _start(self, pair_keys: Mapping[tuple[int, int], bytes] | None) -> dict[tuple[int, int], Prg]:
        """Agree on pairwise seeds and on where the sources stand: one exchange, before any input."""
        pairs = [(p, q) for p in range(self.parties) for q in range(p + 1, self.parties) if {p, q} & set(self.hosted)]
        statement = np.frombuffer(self.source.statement().ljust(STATEMENT_BYTES, b"\0"), np.uint8)
        if statement.size != STATEMENT_BYTES:
            raise ConfigError(f"a source states at most {STATEMENT_BYTES} bytes, this one {statement.size}")
        common = np.repeat(statement[None], len(self.hosted), axis=0)
        ours = {q: np.frombuffer(fresh_key(), np.uint8) for q in range(self.parties)}
        keys = dict(pair_keys or {})
        if self._networked:
            me = self.hosted[0]
            stamp = Stamp(0, _digest(("start", self.parties)), "the start of the session")
            rows, own = self.transport.exchange(stamp, common, {q: ours[q][None] for q in range(self.parties)})
            if pair_keys is None:
                keys = {_pair(me, q): (own[me][q] ^ ours[q]).tobytes() for q in range(self.parties) if q != me}
            self.source.agree([row.tobytes() for row in rows])
        else:
            self.source.agree([statement.tobytes()] * self.parties)
            keys = keys or {pair: fresh_key() for pair in pairs}
        if missing := [pair for pair in pairs if len(keys.get(pair, b"")) != KEY_BYTES]:
            raise ConfigError(f"no key for the pairs {missing}")
        return {pair: Prg(keys[pair]) for pair in pairs}

    def _zero(self, shape: tuple[int, ...]) -> np.ndarray:
        """A pairwise sharing of 0: each pair adds and subtracts the same stream."""
        zero = np.zeros((len(self.hosted), *shape), np.uint64)
        for (p, q), prg in self._pairs.items():
            pad = prg.words(shape)
            if p in self.hosted:
                zero[self.hosted.index(p)] += pad
            if q in self.hosted:
                zero[self.hosted.index(q)] -= pad
        return zero


class _closing_on_error:
    """Tell the peers before an error leaves this process, so that none of them waits in vain."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is not None and not issubclass(kind, StopIteration):
            detail = f": {error}" if isinstance(error, MaskedError) else ""
            self._transport.close(reason=f"{kind.__name__}{detail}")


def _pair(p: int, q: int) -> tuple[int, int]:
    return (p, q) if p < q else (q, p)


def _joined(parts: list[np.ndarray], hosted: int) -> np.ndarray:
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts, axis=1) if parts else np.empty((hosted, 0), np.uint8)


def _signature(request: Request) -> tuple[Any, ...]:
    if isinstance(request, Open):
        return "open", request.words.shape[1:], request.bits, request.xor, request.apart
    if isinstance(request, Reveal):
        return "reveal", request.share.shape, request.share.scale, request.to
    return "input", request.shape, request.scale, request.role


@lru_cache(maxsize=4096)
def _digest(signature: tuple[Any, ...]) -> bytes:
    return hashlib.blake2b(repr(signature).encode(), digest_size=8).digest()


def _disclosed(words: np.ndarray, request: Reveal) -> Any:
    values = ring.decode(words, request.share.scale)
    if not request.torch:
        return values
    import torch

    return torch.from_numpy(np.atleast_1d(values)).reshape(values.shape)
