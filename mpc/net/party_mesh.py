"""A computing party's end of a mesh: rounds with the other parties, and messages from and to clients."""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from .frames import HEADER_BYTES, Header, Kind, expect, noted_stamp, pack
from .links import Link
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

    def end_together(self, stamp: Stamp, clients: Iterable[int], done: int) -> None:
        """Behind the last round: all clients have noted up to a decision, and all parties have said that this is so.

        What another party has heard counts here as well: its word means that all clients have noted, and that it leaves
        in peace means that all parties have said so.  Nobody waits for one that died between its words to two others.
        """
        self._begin()
        self._end = stamp
        others, heard, raw, said = set(self._others), set[int](), dict[int, bytes](), False
        while not (said and heard == others):
            missing = set() if heard else {node for node in clients if self._noted.get(node, 0) < done}
            if not said and not missing:
                said = True
                self._begin()
                for q in others:
                    self._unsent[q] = memoryview(bytes(self._unsent.get(q, b"")) + pack(Kind.DATA, self.node, stamp, 0))
                self.frame_bytes += HEADER_BYTES * len(others)
            needed = missing | (others - heard)
            self._check_links(stamp, needed)
            live = [q for q, sock in self._peers.items() if not isinstance(sock, Link) or not sock.lost]
            if not (ready := [(q, select.POLLIN) for q in live if self._unread(self._peers[q])]):
                wanted = {q: select.POLLIN | select.POLLOUT * bool(self._unsent.get(q)) for q in live}
                ready = self._polled(wanted, word := self._next_word())
                if not ready and word < self._until:
                    self._speak(min(needed), stamp, HEADER_BYTES)
                elif not ready and not any(map(self._stands_still, needed)):
                    raise self._silent(min(needed), stamp)
            for q, events in ready:
                if events & select.POLLOUT and self._unsent.get(q):
                    self._push(q, self._unsent)
                header = self._come(q, raw, stamp) if events & ~select.POLLOUT else None
                if header is not None and self._hear_of_end(q, header, stamp, heard, said=said):
                    return

    def _hear_of_end(self, peer: int, header: Header, stamp: Stamp, heard: set[int], *, said: bool) -> bool:
        """What a peer says then: whether it leaves, as all have said that all is over."""
        link = self._peers[peer]
        if header.kind is Kind.ABORT:
            raise self._aborted(peer, header, b"")
        if header.kind is Kind.BYE and said:
            if isinstance(link, Link):  # its other end wants nothing more
                link.leave()
            return True
        if header.kind is Kind.ARRIVED and isinstance(link, Link):
            link.arrived(header.round)
        elif header.kind is Kind.WAITS:
            self._hear_waiting(peer, header.position)
        elif header.kind is Kind.NOTED:
            self._noted[peer] = header.round
        else:
            expect(header, peer, stamp, 0, self.nodes, self.node)
            heard.add(peer)
            self._heard_out(peer)
        return False

    def _client_stamp(self, node: int, way: str, what: str) -> Stamp:
        """The count-th message of this link in this direction; its position is what it carries."""
        count = self._client_rounds[node, way] = self._client_rounds.get((node, way), 0) + 1
        return Stamp(count, bytes(8), what)
