"""What happens behind a yield: one round for all that was asked.  Knows requests, bytes and nodes; no protocol."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from . import ring
from .client import HostedClient, link_text
from .errors import ConfigError
from .ledger import EVERYONE
from .net.transport import Stamp, Transport
from .pairs import PairStreams
from .prg import Prg, fresh_key
from .rounds import Input, Open, Request, Reveal, position
from .share import BinaryShare, Share

if TYPE_CHECKING:
    from .session import Session

Listener = Callable[[Request, np.ndarray, Any], None]
"""For tests: sees each request, the bytes its hosted parties send as (hosted, n), and what came back."""

_LOCAL = Stamp(0, bytes(8), "")
_ALL = -1  # the destination of what every party gets
_ROUNDS_KEPT = 4096


@dataclass(frozen=True)
class _Round:
    """What follows from the kinds and shapes of a round's requests alone, worked out once.

    to: the destination of each.  spans: where the payload of each lies in what goes there.  digest: of all of them.
    """

    to: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    digest: bytes
    reveals: bool
    met: bool  # whether the parties exchange anything
    sent: int
    opened: int
    hops: int


class Exchange:
    """Plays the rounds of a session and keeps its meter and ledger."""

    def __init__(
        self,
        session: Session,
        transport: Transport,
        pairs: PairStreams,
        nodes: Mapping[str, int],
        clients: Mapping[str, HostedClient],
        listener: Listener | None,
    ) -> None:
        self.round = 0
        self._framed = 0  # bytes of headers that are booked; those of the start are booked with the first round
        self._session = session
        self._transport = transport
        self._parties = transport.parties
        self._networked = len(transport.hosted) < transport.parties
        self._pairs = pairs
        self._nodes = nodes
        self._clients = clients
        self._listener = listener
        self._rounds: dict[tuple[tuple[Any, ...], ...], _Round] = {}

    def play(self, requests: tuple[Request, ...], program: Any) -> list[Any]:
        """One round: reveals to clients leave first, then all parties exchange, then inputs of clients come in."""
        if not requests:
            return []
        kinds = tuple([_signature(request) for request in requests])
        payloads = [self._payload(request) for request in requests]
        known = self._rounds.get(kinds) or self._laid_out(kinds, requests, payloads)
        if known.reveals:  # before anything is sent: a disclosure counts even if the round then fails
            self._record(requests)
        stamp = self._stamp(known.digest, program) if self._networked else _LOCAL
        batches: dict[int, list[np.ndarray]] = {}
        for node, payload in zip(known.to, payloads):
            if node < self._parties:
                batches.setdefault(node, []).append(payload)
        if known.hops and self._networked:
            self._tell_clients(requests, known, payloads)
        received: dict[int, np.ndarray] = {}
        if known.met:
            self.round += 1
            common = _joined(batches.pop(_ALL, [np.empty((payloads[0].shape[0], 0), np.uint8)]))
            direct = {node: _joined(parts) for node, parts in batches.items()}
            rows, received = self._transport.exchange(stamp, common, direct)
            received[_ALL] = rows
        self._book(requests, known)
        return self._replies(requests, known, payloads, received)

    def _laid_out(
        self, kinds: tuple[tuple[Any, ...], ...], requests: tuple[Request, ...], payloads: list[np.ndarray]
    ) -> _Round:
        to = tuple(self._destination(request) for request in requests)
        spans, ends, sent, opened = [], dict.fromkeys(to, 0), 0, 0
        for request, node, payload in zip(requests, to, payloads):
            size = payload.shape[1]
            spans.append((ends[node], ends[node] + size))
            ends[node] += size
            sent += size * (self._parties - 1) if node == _ALL else size
            opened += size if isinstance(request, Open) else 0
        hops = sum(node >= self._parties for node in to)
        reveals = any(isinstance(request, Reveal) for request in requests)
        known = _Round(to, tuple(spans), _digest(kinds), reveals, hops < len(to), sent, opened, hops)
        if len(self._rounds) >= _ROUNDS_KEPT:
            self._rounds.clear()
        self._rounds[kinds] = known
        return known

    def _tell_clients(self, requests: tuple[Request, ...], known: _Round, payloads: list[np.ndarray]) -> None:
        for request, node, payload in zip(requests, known.to, payloads):
            if node >= self._parties and isinstance(request, Reveal):
                self._transport.send_to_client(node, _reveal_text(request), payload)

    def _record(self, requests: tuple[Request, ...]) -> None:
        reveals = [request for request in requests if isinstance(request, Reveal)]
        self._session.ledger.record_all((each.to, each.what, each.share.size, each.why) for each in reveals)

    def _replies(
        self,
        requests: tuple[Request, ...],
        known: _Round,
        payloads: list[np.ndarray],
        received: dict[int, np.ndarray],
    ) -> list[Any]:
        replies = []
        for request, node, (start, stop), payload in zip(requests, known.to, known.spans, payloads):
            rows = received[node][:, start:stop] if node in received else None
            reply: Any
            if isinstance(request, Open):
                assert rows is not None
                reply = _opened(request, rows, self._parties)
            elif isinstance(request, Reveal):
                reply = self._revealed(request, rows, payload)
            else:
                reply = self._input(request, node)
            if self._listener is not None:
                self._listener(request, payload, reply)
            replies.append(reply)
        return replies

    def _destination(self, request: Request) -> int:
        if isinstance(request, Open) or (isinstance(request, Reveal) and request.to == EVERYONE):
            return _ALL
        role = request.to if isinstance(request, Reveal) else request.role
        if role in self._nodes:
            if isinstance(request, Reveal):
                request.share.wide()  # what a client's end of the link takes
            return self._nodes[role]
        if role.startswith("party ") and role[6:].isdigit() and int(role[6:]) < self._parties:
            if isinstance(request, Input):
                raise ConfigError(f"{role} computes: it shares its input with session.share, without a round")
            return int(role[6:])
        known = [EVERYONE, *(f"party {p}" for p in range(self._parties)), *self._nodes]
        raise ConfigError(f"there is no role {role!r}; this session has {', '.join(known)}")

    def _payload(self, request: Request) -> np.ndarray:
        """What the hosted parties send, as bytes (hosted, n): reduced to the ring that is opened, or re-randomised."""
        if isinstance(request, Open):
            words, dtype = request.words, ring.dtype_for(request.bits)
            if words.dtype != dtype:
                words = words.astype(dtype)
            if request.bits != 8 * dtype.itemsize:
                words = words & ring.narrow_mask(request.bits)
        elif isinstance(request, Reveal):
            share = request.share
            if share.session is not self._session:
                raise TypeError("a share of another session is revealed: run the program in the session of its shares")
            if isinstance(share, BinaryShare):
                zero = self._pairs.zero(share.shape, xor=True).astype(share.words.dtype)
                words = (share.words ^ zero) & ring.narrow_mask(share.width)
            else:
                words = share.words + self._pairs.zero(share.shape).astype(share.words.dtype, copy=False)
        else:
            return np.empty((len(self._transport.hosted), 0), np.uint8)
        return np.ascontiguousarray(words).reshape(words.shape[0], words[0].size).view(np.uint8)

    def _revealed(self, request: Reveal, rows: np.ndarray | None, payload: np.ndarray) -> Any:
        client = self._clients.get(request.to)
        if client is not None:
            client.learn(_joint(request, payload), 0 if isinstance(request.share, BinaryShare) else request.share.scale)
        if rows is None:
            return None
        scale = 0 if isinstance(request.share, BinaryShare) else request.share.scale
        values = ring.decode(_joint(request, rows), scale)
        return ring.as_torch(values) if request.torch else values

    def _input(self, request: Input, node: int) -> Share:
        client = self._clients.get(request.role)
        if client is not None:
            words = client.give(request.shape, request.scale)
            shares = Prg(fresh_key()).words((self._parties, *request.shape))
            shares[0] += words - shares.sum(axis=0, dtype=np.uint64)
        else:
            count = 8 * math.prod(request.shape)
            what = link_text("input", request.shape, request.scale, request.of)
            shares = self._transport.receive_from_client(node, what, count).view(np.uint64).reshape(1, *request.shape)
        return Share(self._session, shares, request.scale)

    def _book(self, requests: tuple[Request, ...], known: _Round) -> None:
        total = self._session.meter.total
        total.rounds += known.met
        total.sent_bytes += known.sent
        total.opened_bytes += known.opened
        total.client_hops += known.hops
        total.frame_bytes += self._transport.frame_bytes - self._framed
        self._framed = self._transport.frame_bytes
        in_round = {}
        for request, node, (start, stop) in zip(requests, known.to, known.spans):
            for cost in request.labels:
                cost.sent_bytes += (stop - start) * (self._parties - 1 if node == _ALL else 1)
                if node < self._parties:
                    in_round[id(cost)] = cost
                    cost.opened_bytes += stop - start if isinstance(request, Open) else 0
                else:
                    cost.client_hops += 1
        for cost in in_round.values():
            cost.rounds += 1

    def _stamp(self, signature: bytes, program: Any) -> Stamp:
        at = position(program)
        trail = self._session.trail
        return Stamp(self.round + 1, signature if trail is None else trail.with_position(signature, at), at)


def _reveal_text(request: Reveal) -> str:
    scale = 0 if isinstance(request.share, BinaryShare) else request.share.scale
    return link_text("reveal", request.share.shape, scale)


def _opened(request: Open, rows: np.ndarray, parties: int) -> np.ndarray:
    dtype = ring.dtype_for(request.bits)
    words = rows.view(dtype).reshape(parties, *request.words.shape[1:])
    if request.apart:
        return words.copy()
    total = reduce(np.bitwise_xor if request.xor else np.add, words)  # a few rows: quicker than along an axis
    if request.bits != 8 * dtype.itemsize:
        total = total & ring.narrow_mask(request.bits)
    return np.asarray(total)


def _joint(request: Reveal, rows: np.ndarray) -> np.ndarray:
    """The words behind the parties' shares, as uint64; signed numbers of a narrower ring keep their sign."""
    share = request.share
    words = rows.view(share.words.dtype).reshape(rows.shape[0], *share.shape)
    if isinstance(share, BinaryShare):
        return np.asarray(np.bitwise_xor.reduce(words, axis=0)).astype(np.uint64)
    total = np.asarray(words.sum(axis=0, dtype=words.dtype))
    return total if share.ring == 64 else total.view(f"i{share.ring // 8}").astype(np.int64).view(np.uint64)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _signature(request: Request) -> tuple[Any, ...]:
    if isinstance(request, Open):
        return "open", request.words.shape[1:], request.bits, request.xor, request.apart
    if isinstance(request, Reveal):
        share = request.share
        kind = ("bits", share.width) if isinstance(share, BinaryShare) else ("scale", share.scale, share.ring)
        return "reveal", share.shape, *kind, _role(request.to)
    if isinstance(request, Input):
        return "input", request.shape, request.scale, _role(request.role)
    cure = "write 'yield from'" if hasattr(request, "send") else "yield Open, Reveal or Input"
    raise TypeError(f"a program yielded {type(request).__name__}, which is no request of a round: {cure}")


def _role(role: object) -> str:
    if not isinstance(role, str):
        raise ConfigError(f"a role is named by text such as 'party 1', not {role!r}")
    return role


def _digest(signature: tuple[Any, ...]) -> bytes:
    return hashlib.blake2b(repr(signature).encode(), digest_size=8).digest()
