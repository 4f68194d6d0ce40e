"""A computing party's end of a mesh: rounds with the other parties, and messages from and to clients."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from .frames import HEADER_BYTES, Kind, noted_stamp, pack
from .mesh import Mesh
from .transport import Stamp

_SMALL = 1 << 16  # fits both sockets' buffers twice over
_TURN = 1 << 18  # bytes that are received of one peer before another is looked at


class PartyMesh(Mesh):
    """A computing party's end.  small: bytes of a message that is sent whole before anything is received."""

    small = _SMALL

    def __init__(
        self, node: int, parties: int, peers: dict[int, socket.socket], timeout: float, names: Sequence[str] = (), *,
        unread: Callable[[socket.socket], bool] = lambda _: False, stalled: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(node, parties, peers, timeout, names, unread=unread, stalled=stalled)
        self.hosted = (node,)
        self._others = [q for q in range(parties) if q != node]
        self.wishes: Callable[[], bool] = lambda: False  # whether this process was asked to stop
        self.stopping = False  # whether any party was: all know it after the same round
        self._client_rounds: dict[tuple[int, str], int] = {}

    def exchange(
        self, stamp: Stamp, common: np.ndarray, direct: Mapping[int, np.ndarray]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """One round; see `Transport`."""
        self._begin()
        me, n = self.node, common.shape[1]
        own = direct.get(me)
        size = HEADER_BYTES + n + (0 if own is None else own.shape[1])
        rows = np.empty((self.parties, size), np.uint8)
        rows[me, HEADER_BYTES : HEADER_BYTES + n] = common[0]
        if own is not None:
            rows[me, HEADER_BYTES + n :] = own[0]
        outgoing: dict[int, list[bytes | memoryview]] = {}
        kind = Kind.LAST if self.wishes() else Kind.DATA
        self.stopping |= kind is Kind.LAST
        for q in self._others:
            extra = direct.get(q)
            length = n + (0 if extra is None else extra.shape[1])
            outgoing[q] = [pack(kind, me, stamp, length), memoryview(common[0])]
            if extra is not None:
                outgoing[q].append(memoryview(extra[0]))
        if size <= self.small and all(sum(map(len, parts)) <= self.small for parts in outgoing.values()):
            broken = [q for q, parts in outgoing.items() if self._send(q, parts, stamp) is not None]
            for q in self._others:
                self._receive(q, memoryview(rows[q]), stamp)
            if broken:
                raise self._broken(broken[0], stamp)
        else:
            self._both_ways(outgoing, {q: memoryview(rows[q]) for q in self._others}, stamp)
        end = HEADER_BYTES + n
        return rows[:, HEADER_BYTES:end], {} if own is None else {me: rows[:, end:]}

    def _both_ways(
        self, outgoing: dict[int, list[bytes | memoryview]], incoming: dict[int, memoryview], stamp: Stamp
    ) -> None:
        """Send and receive at once, whatever a socket is ready for."""
        self.frame_bytes += HEADER_BYTES * len(outgoing)
        whole = {q: memoryview(b"".join([self._unsent.get(q, b""), *parts])) for q, parts in outgoing.items()}
        self._unsent.update(whole)
        to_send = self._unsent
        done, checked = dict.fromkeys(incoming, 0), dict.fromkeys(incoming, False)
        broken: list[int] = []
        for q in whole:
            self._await_room(q, stamp)
        active = set(outgoing)
        while active:
            more = [q for q in active if done[q] < len(incoming[q])]
            ready = [(q, select.POLLIN) for q in more if self._unread(self._peers[q])]
            if not ready:
                wanted = {q: select.POLLOUT * bool(to_send[q]) | select.POLLIN * (q in more) for q in active}
                ready = self._polled(wanted, word := self._next_word())
            self._check_links(stamp)
            if not ready:
                behind = min(active)
                if word < self._until:
                    self._speak(behind, stamp, len(to_send[behind]) + len(incoming[behind]) - done[behind])
                elif not any(self._stands_still(q) for q in active):
                    raise self._silent(behind, stamp)
            for q, events in ready:
                if events & select.POLLOUT and to_send[q] and not self._push(q, to_send):
                    broken.append(q)
                if events & ~select.POLLOUT and done[q] < len(incoming[q]):
                    done[q] += self._pull(q, incoming[q][done[q] :], stamp)
                if not checked[q] and done[q] >= HEADER_BYTES:
                    done[q] = self._judge(q, incoming[q], done[q], stamp)
                    checked[q] = done[q] >= HEADER_BYTES
                if not to_send[q] and done[q] >= len(incoming[q]):
                    active.discard(q)
        if broken:
            raise self._broken(broken[0], stamp)
        for q in outgoing:
            self._say_arrived(q, stamp)

    def _may_stop(self, peer: int) -> bool:
        self.stopping |= peer < self.parties
        return peer < self.parties

    def _push(self, peer: int, to_send: dict[int, memoryview]) -> bool:
        """Send what the socket takes; false where it takes nothing any more."""
        try:
            to_send[peer] = to_send[peer][self._peers[peer].send(to_send[peer]) :]
        except BlockingIOError:
            pass
        except OSError:
            to_send[peer] = to_send[peer][:0]
            return False
        return True

    def _pull(self, peer: int, into: memoryview, stamp: Stamp) -> int:
        """Receive what is there, and no more at once than leaves the others, and what is to be sent, their turn.

        A connection that encrypts gives a record at a time: to poll before each takes longer than to decrypt it.
        """
        into, done = into[:_TURN], 0
        while done < len(into):
            try:
                count = self._peers[peer].recv_into(into[done:])
            except BlockingIOError:
                break
            except OSError as error:
                if done:  # the next one fails alike
                    break
                raise self._lost(peer, stamp) from error
            if not count:
                if done:
                    break
                raise self._lost(peer, stamp)
            done += count
        return done

    def send_to_client(self, node: int, what: str, payload: np.ndarray) -> None:
        """Send (1, n) bytes to a client."""
        self._begin()
        self._tell(node, memoryview(payload[0]), self._client_stamp(node, "down", what))

    def receive_from_client(self, node: int, what: str, count: int) -> np.ndarray:
        """Receive (1, count) bytes from a client."""
        self._begin()
        row = np.empty(HEADER_BYTES + count, np.uint8)
        self._receive(node, row.data, self._client_stamp(node, "up", what))
        return row[None, HEADER_BYTES:]

    def await_noted(self, node: int, done: int) -> None:
        """Wait until a client says so; it may have said it before what it sent last."""
        self._begin()
        while self._noted.get(node, 0) < done:
            self._receive(node, memoryview(bytearray(HEADER_BYTES)), noted_stamp(done))

    def _client_stamp(self, node: int, way: str, what: str) -> Stamp:
        """The count-th message of this link in this direction; its position is what it carries."""
        count = self._client_rounds[node, way] = self._client_rounds.get((node, way), 0) + 1
        return Stamp(count, bytes(8), what)
