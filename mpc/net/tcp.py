"""A mesh of plain sockets on loopback.  Knows nodes, sockets and deadlines; no shares.

One message per peer and round: header and payload in one send.  Small messages are sent and then received; large
ones are moved in both directions at once, so that two parties that send to each other cannot block each other.
Plain sockets hide nothing, so this transport refuses any address but loopback.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import struct
import time
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..errors import ConfigError, Desync, MaskedError, PeerLost
from .frames import HEADER_BYTES, Header, Kind, abort_payload, aborted, expect, name, pack, unpack
from .transport import DEFAULT_TIMEOUT, Stamp

_SMALL = 1 << 16  # fits both sockets' buffers twice over
_BUFFER = 1 << 20
_START = Stamp(0, bytes(8), "joining")

Address = tuple[str, int]


def listen(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """A listening socket on loopback."""
    _check_loopback(host)
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; choose another port") from error
    sock.listen(64)
    return sock


class _Mesh:
    """Connections of one node to others, by node number."""

    def __init__(self, node: int, parties: int, peers: dict[int, socket.socket], timeout: float) -> None:
        self.node = node
        self.parties = parties
        self.frame_bytes = 0
        self._peers = peers
        self._timeout = timeout
        self._closed = False
        for sock in peers.values():
            sock.setblocking(True)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            limit = struct.pack("ll", int(timeout), int(timeout % 1 * 1e6))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)

    def _send(self, peer: int, parts: Sequence[bytes | memoryview], stamp: Stamp) -> None:
        self.frame_bytes += HEADER_BYTES
        wanted = sum(len(part) for part in parts)
        try:
            done = self._peers[peer].sendmsg(parts)
            if done < wanted:
                self._peers[peer].sendall(b"".join(parts)[done:])
        except OSError as error:
            raise self._lost(peer, stamp, error) from error

    def _receive(self, peer: int, into: memoryview, stamp: Stamp) -> None:
        """Fill `into`, header and payload; the header is judged as soon as it is there."""
        sock, done, checked = self._peers[peer], 0, False
        while done < len(into) or not checked:
            try:
                count = sock.recv_into(into[done:])
            except OSError as error:
                raise self._lost(peer, stamp, error) from error
            if not count:
                raise self._lost(peer, stamp, None)
            done += count
            if not checked and done >= HEADER_BYTES:
                self._judge(peer, into, done, stamp)
                checked = True

    def _judge(self, peer: int, got: memoryview, done: int, stamp: Stamp) -> None:
        header = unpack(got[:HEADER_BYTES], peer)
        if header.kind is Kind.ABORT:
            raise aborted(self._abort_text(peer, header, bytes(got[HEADER_BYTES:done])), peer, self.parties)
        expect(header, peer, stamp, len(got) - HEADER_BYTES, self.parties)

    def _abort_text(self, peer: int, header: Header, text: bytes) -> bytes:
        while len(text) < header.length:
            try:
                more = self._peers[peer].recv(header.length - len(text))
            except OSError:
                break
            if not more:
                break
            text += more
        return text[: header.length]

    def _lost(self, peer: int, stamp: Stamp, error: OSError | None) -> MaskedError:
        """What a broken or silent connection means: the peer's last words, if it left any."""
        who = name(peer, self.parties)
        if isinstance(error, BlockingIOError):
            return PeerLost(f"{who} was silent for {self._timeout:g} s in round {stamp.round}", peer=peer)
        if error is not None and (words := self._last_words(peer)) is not None:
            return words
        return PeerLost(f"{who} closed its connection in round {stamp.round}: it died or was stopped", peer=peer)

    def _last_words(self, peer: int) -> MaskedError | None:
        """An ABORT that waits unread behind a failed send."""
        sock = self._peers[peer]
        try:
            raw = sock.recv(1 << 16, socket.MSG_DONTWAIT)
            if len(raw) < HEADER_BYTES:
                return None
            header = unpack(raw[:HEADER_BYTES], peer)
        except (OSError, MaskedError):
            return None
        if header.kind is not Kind.ABORT:
            return None
        return aborted(self._abort_text(peer, header, raw[HEADER_BYTES:]), peer, self.parties)

    def close(self, reason: str = "") -> None:
        """Say BYE, or why this node stops, and leave."""
        if self._closed:
            return
        self._closed = True
        kind, payload = Kind.BYE, b""
        if reason:
            error_kind, _, text = reason.partition(": ")
            kind, payload = Kind.ABORT, abort_payload(error_kind, _blamed(text), text)
        for sock in self._peers.values():
            try:
                sock.send(pack(kind, self.node, Stamp(0, bytes(8), ""), len(payload)) + payload, socket.MSG_DONTWAIT)
                sock.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        if reason:
            self._drain(0.5)
        for sock in self._peers.values():
            sock.close()

    def _drain(self, seconds: float) -> None:
        """Read what is still under way, so that closing does not reset a connection before our last words are read."""
        open_, deadline = list(self._peers.values()), time.monotonic() + seconds
        while open_ and (left := deadline - time.monotonic()) > 0:
            for sock in select.select(open_, [], [], left)[0]:
                try:
                    alive = sock.recv(1 << 16, socket.MSG_DONTWAIT)
                except OSError:
                    alive = b""
                if not alive:
                    open_.remove(sock)


class Tcp(_Mesh):
    """A computing party's end."""

    def __init__(self, node: int, parties: int, peers: dict[int, socket.socket], timeout: float) -> None:
        super().__init__(node, parties, peers, timeout)
        self.hosted = (node,)
        self._others = [q for q in range(parties) if q != node]
        self._client_rounds: dict[tuple[int, str], int] = {}

    @classmethod
    def join(
        cls,
        node: int,
        addresses: Sequence[Address],
        *,
        token: bytes,
        clients: int = 0,
        listener: socket.socket | None = None,
        timeout: float = DEFAULT_TIMEOUT,
    ) -> Tcp:
        """Meet the other parties and all clients; `token` must be the same everywhere.

        A node calls those with lower numbers and is called by the others.
        """
        parties = len(addresses)
        if parties < 2 or not 0 <= node < parties:
            raise ConfigError(f"party {node} of {parties}: parties are numbered from 0, and there are at least 2")
        own = listener or listen(*addresses[node])
        peers: dict[int, socket.socket] = {}
        deadline = time.monotonic() + timeout
        try:
            for other in range(node):
                peers[other] = call(node, other, addresses[other], token, deadline)
            waiting = {*range(node + 1, parties), *range(parties, parties + clients)}
            while waiting:
                sock, other = take_call(node, own, token, waiting, deadline)
                waiting.discard(other)
                peers[other] = sock
        except BaseException:
            for sock in peers.values():
                sock.close()
            raise
        finally:
            own.close()
        return cls(node, parties, peers, timeout)

    def exchange(
        self, stamp: Stamp, common: np.ndarray, direct: Mapping[int, np.ndarray]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """One round; see `Transport`."""
        me, n = self.node, common.shape[1]
        own = direct.get(me)
        size = HEADER_BYTES + n + (0 if own is None else own.shape[1])
        rows = np.empty((self.parties, size), np.uint8)
        rows[me, HEADER_BYTES : HEADER_BYTES + n] = common[0]
        if own is not None:
            rows[me, HEADER_BYTES + n :] = own[0]
        outgoing: dict[int, list[bytes | memoryview]] = {}
        for q in self._others:
            extra = direct.get(q)
            length = n + (0 if extra is None else extra.shape[1])
            outgoing[q] = [pack(Kind.DATA, me, stamp, length), memoryview(common[0])]
            if extra is not None:
                outgoing[q].append(memoryview(extra[0]))
        if size <= _SMALL and all(sum(map(len, parts)) <= _SMALL for parts in outgoing.values()):
            for q, parts in outgoing.items():
                self._send(q, parts, stamp)
            for q in self._others:
                self._receive(q, memoryview(rows[q]), stamp)
        else:
            self._both_ways(outgoing, {q: memoryview(rows[q]) for q in self._others}, stamp)
        end = HEADER_BYTES + n
        return rows[:, HEADER_BYTES:end], {} if own is None else {me: rows[:, end:]}

    def _both_ways(
        self, outgoing: dict[int, list[bytes | memoryview]], incoming: dict[int, memoryview], stamp: Stamp
    ) -> None:
        """Send and receive at once, whatever a socket is ready for."""
        self.frame_bytes += HEADER_BYTES * len(outgoing)
        poll, by_fd = select.poll(), {sock.fileno(): q for q, sock in self._peers.items() if q in outgoing}
        to_send = {q: memoryview(b"".join(parts)) for q, parts in outgoing.items()}
        done, checked = dict.fromkeys(incoming, 0), dict.fromkeys(incoming, False)
        for fd in by_fd:
            poll.register(fd, select.POLLIN | select.POLLOUT)
        active = set(by_fd)
        while active:
            ready = poll.poll(self._timeout * 1000)
            if not ready:
                raise self._lost(by_fd[min(active)], stamp, BlockingIOError())
            for fd, events in ready:
                q = by_fd[fd]
                sock = self._peers[q]
                try:
                    if events & select.POLLOUT and to_send[q]:
                        to_send[q] = to_send[q][sock.send(to_send[q], socket.MSG_DONTWAIT) :]
                    if events & ~select.POLLOUT and done[q] < len(incoming[q]):
                        count = sock.recv_into(incoming[q][done[q] :], flags=socket.MSG_DONTWAIT)
                        if not count:
                            raise self._lost(q, stamp, None)
                        done[q] += count
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise self._lost(q, stamp, error) from error
                if not checked[q] and done[q] >= HEADER_BYTES:
                    self._judge(q, incoming[q], done[q], stamp)
                    checked[q] = True
                sending, receiving = bool(to_send[q]), done[q] < len(incoming[q])
                if not sending and not receiving:
                    poll.unregister(fd)
                    active.discard(fd)
                else:
                    poll.modify(fd, select.POLLOUT * sending | select.POLLIN * receiving)

    def send_to_client(self, node: int, stamp: Stamp, payload: np.ndarray) -> None:
        """Send (1, n) bytes to a client."""
        at = self._client_stamp(node, "down")
        self._send(node, [pack(Kind.DATA, self.node, at, payload.shape[1]), memoryview(payload[0])], stamp)

    def receive_from_client(self, node: int, stamp: Stamp, count: int) -> np.ndarray:
        """Receive (1, count) bytes from a client."""
        row = np.empty(HEADER_BYTES + count, np.uint8)
        self._receive(node, row.data, self._client_stamp(node, "up"))
        return row[None, HEADER_BYTES:]

    def _client_stamp(self, node: int, way: str) -> Stamp:
        count = self._client_rounds[node, way] = self._client_rounds.get((node, way), 0) + 1
        return Stamp(count, bytes(8), "client")


class TcpClient(_Mesh):
    """A client's end: it is connected to the parties only."""

    def __init__(self, node: int, parties: int, peers: dict[int, socket.socket], timeout: float) -> None:
        super().__init__(node, parties, peers, timeout)
        self._sent = self._received = 0

    @classmethod
    def join(
        cls, node: int, addresses: Sequence[Address], *, token: bytes, timeout: float = DEFAULT_TIMEOUT
    ) -> TcpClient:
        """Call all parties; clients have the numbers behind theirs."""
        parties, deadline = len(addresses), time.monotonic() + timeout
        if node < parties:
            raise ConfigError(f"clients of {parties} parties have numbers from {parties}, not {node}")
        return cls(node, parties, {p: call(node, p, at, token, deadline) for p, at in enumerate(addresses)}, timeout)

    def send(self, payloads: np.ndarray) -> None:
        """Row p to party p."""
        self._sent += 1
        stamp = Stamp(self._sent, bytes(8), "client")
        for party, payload in enumerate(payloads):
            self._send(party, [pack(Kind.DATA, self.node, stamp, payload.size), memoryview(payload)], stamp)

    def receive(self, count: int) -> np.ndarray:
        """(parties, count) bytes, row p from party p."""
        self._received += 1
        stamp = Stamp(self._received, bytes(8), "client")
        rows = np.empty((self.parties, HEADER_BYTES + count), np.uint8)
        for party in range(self.parties):
            self._receive(party, memoryview(rows[party]), stamp)
        return np.ascontiguousarray(rows[:, HEADER_BYTES:])


def _check_loopback(host: str) -> None:
    try:
        loopback = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = False
    if not loopback:
        raise ConfigError(f"plain sockets stay on this machine: use a loopback address such as 127.0.0.1, not {host!r}")


def _buffers(sock: socket.socket) -> None:
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER)


def call(node: int, other: int, address: Address, token: bytes, deadline: float) -> socket.socket:
    """Connect to a party that may not listen yet."""
    _check_loopback(address[0])
    while True:
        sock = socket.socket()
        _buffers(sock)
        sock.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            sock.connect(address)
            _greet(sock, node, token)
            _greeted(sock, {other}, token)
            return sock
        except OSError as error:
            sock.close()
            if time.monotonic() + 0.05 > deadline:
                raise PeerLost(
                    f"party {other} at {address[0]}:{address[1]} did not answer: is it started?", peer=other
                ) from error
            time.sleep(0.02)
        except MaskedError:
            sock.close()
            raise


def take_call(
    node: int, own: socket.socket, token: bytes, waiting: Iterable[int], deadline: float
) -> tuple[socket.socket, int]:
    """Accept a call of one of the nodes waited for; strangers are turned away."""
    while True:
        own.settimeout(max(0.01, deadline - time.monotonic()))
        try:
            sock, _ = own.accept()
        except OSError as error:
            missing = min(waiting)
            raise PeerLost(f"node {missing} did not call within the timeout: is it started?", peer=missing) from error
        _buffers(sock)
        sock.settimeout(max(0.1, min(5.0, deadline - time.monotonic())))
        try:
            other = _greeted(sock, set(waiting), token)
            _greet(sock, node, token)
            return sock, other
        except (OSError, ConfigError, Desync):
            sock.close()


def _greet(sock: socket.socket, node: int, token: bytes) -> None:
    sock.sendall(pack(Kind.HELLO, node, _START, len(token)) + token)


def _greeted(sock: socket.socket, expected: set[int], token: bytes) -> int:
    raw = b""
    while len(raw) < HEADER_BYTES + len(token):
        more = sock.recv(HEADER_BYTES + len(token) - len(raw))
        if not more:
            raise ConnectionError("closed during the greeting")
        raw += more
    header = unpack(raw[:HEADER_BYTES], min(expected))
    if header.kind is not Kind.HELLO or header.sender not in expected:
        raise ConfigError(f"node {header.sender} calls where {sorted(expected)} are expected: check the party numbers")
    if raw[HEADER_BYTES:] != token:
        raise ConfigError(f"node {header.sender} belongs to another session: start all parties with the same token")
    return header.sender


def _blamed(text: str) -> int | str:
    """The party a PeerLost text begins with."""
    words = text.split(" ", 2)
    return words[1] if len(words) > 1 and words[0] == "party" else ""
