"""torch.distributed's gloo as a transport.  The door to torch.distributed; knows ranks and tensors of bytes, no shares.

Gloo aborts the process when two parties disagree on a message's size, and returns garbage when they disagree on its
shape alone.  So each round first exchanges our header, of fixed size, and a payload follows only where the headers
fit.  Gloo has no encryption: it is for parties inside one trust domain.

Of a peer that dies in the middle of a message gloo tells at once, but for once in some hundreds of times: then the
round's time ends the wait.
"""

from __future__ import annotations

import atexit
import time
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import numpy as np

from ..errors import ConfigError, PeerLost, Told
from ..extras import extra
from .frames import (
    HEADER_BYTES,
    WORDS_LIMIT,
    Header,
    Kind,
    Nodes,
    aborted,
    expect,
    farewell,
    noted_stamp,
    pack,
    unpack,
    went_on,
)
from .transport import DEFAULT_TIMEOUT, Stamp, check_timeout

with extra("gloo"):
    import torch
    import torch.distributed as dist

_FAREWELL = 2.0  # seconds that a party which leaves waits for the others to hear it


class _Links:
    """A node's client links: each message is a header of fixed size, and then what it announced."""

    def __init__(self, node: int, parties: int, timeout: float, names: Sequence[str]) -> None:
        self.node = node
        self.parties = parties
        self.nodes = Nodes(parties, tuple(names))
        self.frame_bytes = 0
        self._timeout = timeout
        self._counts: dict[tuple[int, str], int] = {}
        self._noted: dict[int, int] = {}  # up to which decision a client has its notes on the disk

    def say_waiting(self, whom: str) -> None:
        """Gloo carries nothing between two rounds; the peers hear of it with this node's last words."""

    def _send(self, peer: int, what: str, payload: np.ndarray) -> None:
        stamp, until = self._stamp(peer, "sent", what), time.monotonic() + self._timeout
        self.frame_bytes += HEADER_BYTES
        for part in (pack(Kind.DATA, self.node, stamp, payload.size), payload):
            self._wait(peer, stamp, dist.isend, _tensor(part), until)

    def _receive(self, peer: int, what: str, count: int) -> np.ndarray:
        stamp, until = self._stamp(peer, "received", what), time.monotonic() + self._timeout
        header = self._header(peer, stamp, until)
        while header.kind is Kind.NOTED:
            header = self._header(peer, stamp, until)
        expect(header, peer, stamp, count, self.nodes, self.node)
        payload = torch.empty(count, dtype=torch.uint8)
        if count:
            self._wait(peer, stamp, dist.irecv, payload, until)
        return payload.numpy()

    def _header(self, peer: int, stamp: Stamp, until: float) -> Header:
        """The next header of a peer; what it says of its notes is remembered."""
        raw = torch.empty(HEADER_BYTES, dtype=torch.uint8)
        self._wait(peer, stamp, dist.irecv, raw, until)
        header = unpack(raw.numpy().tobytes(), peer, self.nodes)
        if header.kind is Kind.NOTED:
            self._noted[peer] = header.round
        return header

    def _wait(self, peer: int, stamp: Stamp, move: Any, tensor: torch.Tensor, until: float) -> None:
        if not tensor.numel():
            return
        try:
            move(tensor, peer).wait(_left(until))
        except RuntimeError as error:
            raise self._gone(peer, str(error), stamp) from error

    def _gone(self, peer: int, why: str, stamp: Stamp) -> PeerLost:
        """What a broken connection means."""
        silent = "imed out" in why
        how = f"was silent for {self._timeout:g} s" if silent else "closed its connection: it died or was stopped,"
        return PeerLost(f"{self.nodes.name(peer)} {how} in round {stamp.round}", peer=peer)

    def _stamp(self, peer: int, way: str, what: str) -> Stamp:
        """The count-th message of this link in this direction; its position is what it carries."""
        count = self._counts[peer, way] = self._counts.get((peer, way), 0) + 1
        return Stamp(count, bytes(8), what)


class GlooClient(_Links):
    """A client in the process group: the clients' ranks follow the parties'."""

    def __init__(self, *, clients: int, timeout: float = DEFAULT_TIMEOUT, names: Sequence[str] = ()) -> None:
        node, world = _start(None, -1, -1, timeout)
        super().__init__(node, world - clients, timeout, names)
        self._unheard: list[tuple[int, Stamp, Any, torch.Tensor]] = []

    def send(self, payloads: np.ndarray, what: str) -> None:
        """Row p to party p."""
        for party, payload in enumerate(payloads):
            self._send(party, what, payload)

    def receive(self, count: int, what: str) -> np.ndarray:
        """(parties, count) bytes, row p from party p."""
        return np.stack([self._receive(party, what, count) for party in range(self.parties)])

    def say_noted(self, done: int) -> None:
        """To all parties, which listen when the decision is over: another client may have to hear of it before that."""
        self._hear_out()
        stamp = noted_stamp(done)
        for party in range(self.parties):
            word = _tensor(pack(Kind.NOTED, self.node, stamp, 0))
            try:
                self._unheard.append((party, stamp, dist.isend(word, party), word))
            except RuntimeError as error:
                raise self._gone(party, str(error), stamp) from error

    def _hear_out(self) -> None:
        """Until what was said of notes was heard."""
        until, unheard, self._unheard = time.monotonic() + self._timeout, self._unheard, []
        for party, stamp, sent, _ in unheard:
            try:
                sent.wait(_left(until))
            except RuntimeError as error:
                raise self._gone(party, str(error), stamp) from error

    def close(self, reason: Told | None = None) -> None:
        """Leave; a party that still waits finds the connection closed."""
        try:
            if reason is None:
                self._hear_out()
        finally:
            _destroy()


class Gloo(_Links):
    """One party in torch's default process group: rank p is party p; the ranks of `clients` clients follow."""

    def __init__(
        self, *, init_method: str | None = None, party: int = -1, parties: int = -1, clients: int = 0,
        timeout: float = DEFAULT_TIMEOUT, starting: float | None = None, names: Sequence[str] = (),
    ) -> None:  # fmt: skip
        check_timeout(timeout)
        node, world = _start(init_method, party, parties, timeout if starting is None else starting)
        if world - clients < 2:
            _destroy()
            more = f" and {clients} clients: torchrun --nproc-per-node {clients + 2}" if clients else (
                ": torchrun --nproc-per-node 2"
            )  # fmt: skip
            raise ConfigError(f"secret sharing needs at least 2 parties{more} or more")
        super().__init__(node, world - clients, timeout, names)
        self.hosted, self._clients = (self.node,), clients
        self._others = [q for q in range(self.parties) if q != self.node]
        self._closed = False
        self._lost: set[int] = set()  # peers whose connection broke
        self._parted: set[int] = set()  # peers that have sent their last header
        self._owed: dict[int, bytes] = {}  # payloads announced and not sent yet
        self._due: dict[int, int] = {}  # sizes of payloads announced to us
        self._group: Any = None

    def group_of_parties(self) -> Any:
        """A process group of the computing parties alone, for what else they compute together; clients stay outside.

        All parties ask for it at the same point.
        """
        if self._group is None:
            try:
                self._group = dist.new_group(
                    list(range(self.parties)), timeout=timedelta(seconds=self._timeout), use_local_synchronization=True
                )
            except RuntimeError as error:
                raise ConfigError(f"the parties have no group of their own: {_first_line(error)}") from error
        return self._group

    def all_gather(self, own: np.ndarray) -> np.ndarray:
        """(parties, n): torch's own call of that name, no header before it; to measure `exchange` beside it."""
        rows = [torch.empty(own.size, dtype=torch.uint8) for _ in range(self.parties)]
        dist.all_gather(rows, _tensor(own), group=self.group_of_parties())
        return np.stack([row.numpy() for row in rows])

    def exchange(
        self, stamp: Stamp, common: np.ndarray, direct: Mapping[int, np.ndarray]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """One round; see `Transport`."""
        me, n = self.node, common.shape[1]
        own = direct.get(me)
        expected = n + (0 if own is None else own.shape[1])
        outgoing = {
            q: common[0] if q not in direct else np.concatenate([common[0], direct[q][0]]) for q in self._others
        }
        headers = {q: pack(Kind.DATA, me, stamp, part.size) for q, part in outgoing.items()}
        self.frame_bytes += HEADER_BYTES * len(headers)
        until = time.monotonic() + self._timeout
        arrived, broken = self._swap(headers, dict.fromkeys(self._others, HEADER_BYTES), until)
        self._owed = {q: part.tobytes() for q, part in outgoing.items() if part.size and q not in broken}
        fits = {q: unpack(raw, q, self.nodes) for q, raw in arrived.items()}
        self._part_with({q: header for q, header in fits.items() if header.kind is not Kind.DATA})
        self._due = {q: header.length for q, header in fits.items() if q not in self._parted}
        self._hear_why({q: header for q, header in fits.items() if header.kind is Kind.ABORT})
        for q, header in fits.items():
            expect(header, q, stamp, expected, self.nodes, me)
        self._raise_lost(broken, stamp)
        rows = np.empty((self.parties, expected), np.uint8)
        rows[me, :n] = common[0]
        if own is not None:
            rows[me, n:] = own[0]
        self._owed, self._due = {}, {}
        arrived, broken = self._swap(outgoing, dict.fromkeys(self._others, expected), until)
        self._raise_lost(broken, stamp)
        for q, payload in arrived.items():
            rows[q] = np.frombuffer(payload, np.uint8)
        return rows[:, :n], {} if own is None else {me: rows[:, n:]}

    def _swap(
        self, outgoing: Mapping[int, bytes | np.ndarray], counts: Mapping[int, int], deadline: float | None = None
    ) -> tuple[dict[int, bytes], dict[int, str]]:
        """Send each peer its bytes and receive a count from each: what arrived, and what broke, by peer.

        Everything is posted, and waited for, before anything is judged: a peer must find what we announced to it.
        """
        incoming = {q: torch.empty(count, dtype=torch.uint8) for q, count in counts.items()}
        broken: dict[int, str] = {}
        work: list[tuple[int, Any]] = []
        for q in self._others:
            try:
                if q in outgoing and len(outgoing[q]):
                    work.append((q, dist.isend(_tensor(outgoing[q]), q)))
                if counts.get(q):
                    work.append((q, dist.irecv(incoming[q], q)))
            except RuntimeError as error:
                broken.setdefault(q, str(error))
        deadline = deadline or time.monotonic() + self._timeout
        for q, pending in work:
            if q in broken:  # gloo may tell of a broken connection one way alone
                continue
            try:
                pending.wait(_left(deadline))
            except RuntimeError as error:
                broken.setdefault(q, str(error))
        self._lost |= broken.keys()
        return {q: tensor.numpy().tobytes() for q, tensor in incoming.items() if q not in broken}, broken

    def _part_with(self, leaving: Mapping[int, Header]) -> None:
        """These peers have sent their last header: nothing more goes to them."""
        self._parted |= leaving.keys()
        for q in leaving:
            self._owed.pop(q, None)

    def _hear_why(self, stopped: Mapping[int, Header]) -> None:
        words, _ = self._swap({}, {q: min(header.length, WORDS_LIMIT) for q, header in stopped.items()})
        for q in stopped:
            raise aborted(words.get(q, b""), q, self.nodes)

    def _raise_lost(self, broken: Mapping[int, str], stamp: Stamp) -> None:
        """Blame the first that broke; where one was silent, the others broke when gloo gave up on it."""
        for q, why in sorted(broken.items(), key=lambda item: "imed out" not in item[1]):
            raise self._gone(q, why, stamp)

    def send_to_client(self, node: int, what: str, payload: np.ndarray) -> None:
        """Send (1, n) bytes to a client."""
        self._check_client(node)
        self._send(node, what, payload[0])

    def receive_from_client(self, node: int, what: str, count: int) -> np.ndarray:
        """Receive (1, count) bytes from a client."""
        self._check_client(node)
        return self._receive(node, what, count)[None]

    def await_noted(self, node: int, done: int) -> None:
        """Wait until a client says so; it may have said it before what it sent last."""
        self._check_client(node)
        stamp, until = noted_stamp(done), time.monotonic() + self._timeout
        while self._noted.get(node, 0) < done:
            header = self._header(node, stamp, until)
            if header.kind is not Kind.NOTED:
                expect(header, node, stamp, 0, self.nodes, self.node)

    def _check_client(self, node: int) -> None:
        if node >= self.parties + self._clients:
            raise ConfigError(
                f"gloo carries no clients but those it was started with, {self._clients}: join(clients=...) under "
                "torchrun, or the tcp transport"
            )

    def close(self, reason: Told | None = None) -> None:
        """Part from the peers and destroy the group.

        Gloo delivers a message only to who receives it, so that the last one needs the peers to be heard as well, for
        a moment: first what was announced in either direction, then the last header of each.  A peer that goes on
        after this party has ended is a Desync here too.
        """
        if self._closed:
            return
        self._closed = True
        last, words = farewell(reason, self.node)
        deadline = time.monotonic() + min(_FAREWELL, self._timeout)
        try:
            self._swap(self._owed, self._due, deadline)
            here = [q for q in self._others if q not in self._lost | self._parted]
            arrived, _ = self._swap(dict.fromkeys(here, last), dict.fromkeys(here, HEADER_BYTES), deadline)
            heard = {q: unpack(raw, q, self.nodes) for q, raw in arrived.items()}
            more = {q: min(header.length, WORDS_LIMIT) for q, header in heard.items() if header.kind is Kind.ABORT}
            self._swap(dict.fromkeys((q for q in heard if heard[q].kind is not Kind.BYE), words), more, deadline)
        finally:
            _destroy()
        for q, header in heard.items():
            if not reason and header.kind is Kind.DATA:
                raise went_on(header, q, self.nodes, self.node)


def _start(init_method: str | None, rank: int, world: int, timeout: float) -> tuple[int, int]:
    """Start the default process group; gives this process's rank and how many there are."""
    check_timeout(timeout)
    if dist.is_initialized():
        raise ConfigError("torch.distributed already has a process group: close it before a session starts one")
    try:
        dist.init_process_group(
            "gloo", init_method=init_method, rank=rank, world_size=world, timeout=timedelta(seconds=timeout)
        )
    except (ValueError, RuntimeError) as error:
        raise ConfigError(f"torch.distributed could not start: {_first_line(error)}") from error
    atexit.register(_destroy)
    return dist.get_rank(), dist.get_world_size()


def _left(until: float) -> timedelta:
    return timedelta(seconds=max(0.001, until - time.monotonic()))


def _tensor(content: bytes | np.ndarray) -> torch.Tensor:
    """A copy: gloo holds on to what it sends."""
    return torch.from_numpy(np.array(np.frombuffer(content, np.uint8)))


def _destroy() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
