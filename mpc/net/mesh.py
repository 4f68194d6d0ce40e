"""A mesh of sockets: rounds, their deadlines, and last words.  Knows nodes, sockets and deadlines; no shares.

One message per peer and round: header and payload in one send.  Small messages are sent and then received; large
ones are moved in both directions at once, so that two parties that send to each other cannot block each other.
A round has one deadline, however its bytes come.  Who waits for somebody for long, in the mesh or outside it, says so
to its other peers, whose wait begins anew: whoever waits for the silent one itself is the first to lose it, and names
it to all.  How nodes meet, and whether what they send is encrypted, is `tcp`'s and `tls`'s.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from ..errors import Desync, MaskedError, PeerLost, StoppedTogether, Told
from .frames import (
    HEADER_BYTES,
    WORDS_LIMIT,
    Header,
    Kind,
    Nodes,
    aborted,
    expect,
    farewell,
    is_expected,
    pack,
    shown,
    unpack,
    went_on,
)
from .links import Link
from .transport import Stamp

_MOMENT = 120_000  # nanoseconds in which a party that has a core of its own often answers
_SHARED_MOMENT = 400_000  # where parties share cores: to yield hands ours to the one waited for, sooner than to sleep
_LAST_WORDS = 0.5  # seconds in which a node that stops with an error is heard out
_SOON = 0.25  # of a round's time; then a node's peers are told for whom it waits
_STALLED = 5.0  # seconds; then whoever watches this process is told what a round waits for
_WORDS = 1000  # that a peer may say between two messages
_STANDS = 1.0  # seconds that a round has at least when a link that was cut is made again
_TELL, _KEPT = 1 << 18, 1 << 22  # bytes of a link: after which the sender hears that they came; that it keeps
_AGAIN = 4  # how often in a wait a peer's word that it waits itself begins the time anew: such chains are short
_LONGEST = 1 << 30  # milliseconds that the kernel waits at a time
_FAREWELLS = 3.0  # times as long for a link to be made again, whose other end may have ended and left
_FAREWELL = 2.0  # seconds that a party which has ended waits for the others to end


class Mesh:
    """Connections of one node to others, by node number, which behave as non-blocking sockets do.

    unread: whether a connection holds bytes that no poll shows, as one that decrypts whole records may.
    stalled: told, in a line, of a round in which nothing moves.
    """

    def __init__(
        self, node: int, parties: int, peers: dict[int, socket.socket], timeout: float, names: Sequence[str] = (), *,
        unread: Callable[[socket.socket], bool] = lambda _: False, stalled: Callable[[str], None] | None = None,
    ) -> None:  # fmt: skip
        self.node = node
        self.parties = parties
        self.nodes = Nodes(parties, tuple(names))
        self.frame_bytes = 0
        self._peers = peers
        self._unread, self._stalled = unread, stalled
        self._timeout = timeout
        self._closed = False
        self._moment = 0 if node >= parties else _MOMENT if parties <= (os.cpu_count() or 1) else _SHARED_MOMENT
        self._unsent: dict[int, memoryview] = {}  # what is left of frames under way
        self._noted: dict[int, int] = {}  # up to which decision a client has its notes on the disk
        self._words: dict[int, int] = {}  # of each peer since its last message: headers that are none
        self._end: Stamp | None = None  # of a party's word that all is over, which may still come when this one leaves
        self._waits: dict[int, list[str]] = {}  # for whom a peer waits, as it has said since its last message
        for sock in peers.values():
            sock.setblocking(False)
            if sock.family == socket.AF_INET:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def _begin(self) -> None:
        """From now on a round has its time, however its bytes come.

        What is there when that is over counts: this process may have been kept from looking.
        """
        self._began = time.monotonic()
        self._until = self._began + self._timeout
        self._told = False
        self._said = self._stalled is None

    def say_waiting(self, whom: str) -> None:
        """Tell all peers that this node waits for somebody who is none of them."""
        self._tell_waiting(whom)

    def await_outside(self, descriptor: int, seconds: float) -> bool:
        """Between two messages, wait for what comes from outside the mesh: whether it did.

        A peer that leaves meanwhile is noticed, and ends the wait with what it said last.
        """
        stamp, until = Stamp(0, bytes(8), "waiting for the world outside"), time.monotonic() + seconds
        while ready := dict(self._polled(dict.fromkeys(self._peers, select.POLLRDHUP), until, descriptor)):
            if -1 in ready:
                return True
            for peer, link in ((peer, self._peers[peer]) for peer in ready):
                if not isinstance(link, Link) or link.look() or link.ended:
                    raise self._broken(peer, stamp)
        return False

    def _tell_waiting(self, whom: str, but: int | None = None) -> None:
        """The same, to all but the one it waits for and those in the middle of whose frame it is."""
        self._told = True
        notice = pack(Kind.WAITS, self.node, Stamp(0, bytes(8), whom), 0)
        for peer, sock in self._peers.items():
            if peer == but or self._unsent.get(peer):
                continue
            with contextlib.suppress(OSError):
                if self._ready(peer, select.POLLOUT, 0.0):
                    sent = 0
                    with contextlib.suppress(BlockingIOError):
                        sent = sock.send(notice)
                    self._unsent[peer] = memoryview(notice)[sent:]

    def _hear_waiting(self, peer: int, whom: str) -> None:
        """A peer waits for somebody: it has the whole time of a round again, and who waits for this node hears of it.

        Not so if it waits for this node, nor again and again: a round must end.
        """
        said = self._waits.setdefault(peer, [])
        said.append(whom)
        if whom != self.nodes.name(self.node) and len(said) <= _AGAIN:
            self._begin()
            self._tell_waiting(whom, but=peer)

    def _next_word(self) -> float:
        """When this node has waited for so long that it says so; once it has, when the round is over."""
        word = self._until if self._told else self._until - (1.0 - _SOON) * self._timeout
        return word if self._said else min(word, self._began + _STALLED)

    def say(self, peer: int, payload: bytes, stamp: Stamp) -> None:
        """One message to one peer, outside any round."""
        self._begin()
        self._tell(peer, memoryview(payload), stamp)

    def _tell(self, peer: int, payload: memoryview, stamp: Stamp) -> None:
        frame: list[bytes | memoryview] = [pack(Kind.DATA, self.node, stamp, len(payload)), payload]
        if self._send(peer, frame, stamp) is not None:
            raise self._broken(peer, stamp)

    def hear(self, peer: int, count: int, stamp: Stamp) -> bytes:
        """The same, from one peer: so many bytes."""
        self._begin()
        row = bytearray(HEADER_BYTES + count)
        self._receive(peer, memoryview(row), stamp)
        return bytes(row[HEADER_BYTES:])

    def _speak(self, peer: int, stamp: Stamp, left: int) -> None:
        """The next word: to whoever watches this process, or to the other peers."""
        if not self._said and time.monotonic() >= self._began + _STALLED:
            self._said = True
            assert self._stalled is not None
            self._stalled(
                f"round {stamp.round} has stood for {time.monotonic() - self._began:.0f} s at {stamp.position}: "
                f"{left:,} bytes between this one and {self.nodes.name(peer)} are due"
            )
        elif not self._told:
            self._tell_waiting(self.nodes.name(peer), but=peer)

    def _in_time(self, peer: int, events: int, stamp: Stamp, left: int) -> bool:
        """Whether a peer's socket is ready before the round is over.  left: bytes that it is waited for with."""
        self._check_links(stamp)
        if events & select.POLLOUT:
            self._check_left(peer)
        while not self._ready(peer, events, word := self._next_word()):
            self._check_links(stamp)
            if word >= self._until:
                if not self._stands_still(peer):
                    return False
                continue
            self._speak(peer, stamp, left)
        return True

    def _check_links(self, stamp: Stamp, of: Iterable[int] | None = None) -> None:
        """PeerLost of a peer whose link has ended, whoever is waited for: that one may wait for it in turn.

        Of one that has left and said why before, that: it may be the only one who knows that the other is gone.
        of: those alone that are still wanted.
        """
        for peer in self._peers if of is None else of:
            if isinstance(link := self._peers[peer], Link) and (link.ended or link.parted) and not link.leaving:
                self._check_left(peer)
                if link.ended:
                    raise self._lost(peer, stamp)

    def _check_left(self, peer: int) -> None:
        """The error of a peer that said why it leaves, and then took no more: nobody reads what it said meanwhile."""
        if not isinstance(link := self._peers[peer], Link):
            return
        rest = link.left
        while len(rest) >= HEADER_BYTES:
            try:
                header = unpack(rest[:HEADER_BYTES], peer, self.nodes)
            except Desync:  # whoever reads it says so
                return
            rest = rest[HEADER_BYTES:]
            if header.kind is Kind.ABORT:
                error = aborted(rest[: min(header.length, WORDS_LIMIT)], peer, self.nodes)
                if isinstance(error, StoppedTogether) and not link.ended:  # others may still send what comes before
                    return
                raise error
            rest = rest[header.length :]

    def _stands_still(self, peer: int) -> bool:
        """Whether a round's time does: its link is cut, and somebody else says when to give up."""
        link = self._peers[peer]
        if not isinstance(link, Link) or link.up or link.lost:
            return False
        self._until = time.monotonic() + _STANDS
        return True

    def _ready(self, peer: int, events: int, until: float) -> bool:
        """The same, before that time is over."""
        sock = self._peers[peer]
        if events & select.POLLIN and self._unread(sock):
            return True
        return bool(self._polled({peer: events}, until))

    def _send(self, peer: int, parts: Sequence[bytes | memoryview], stamp: Stamp) -> OSError | None:
        """Send a frame.  An error is returned: what the peer said before it left still waits to be read."""
        self.frame_bytes += HEADER_BYTES
        self._await_room(peer, stamp)
        return self._put(peer, parts, stamp)

    def _put(self, peer: int, parts: Sequence[bytes | memoryview], stamp: Stamp) -> OSError | None:
        """The same, of words too that nobody waits for and none counts."""
        if before := self._unsent.get(peer):
            parts = [before, *parts]
        sock, done, wanted = self._peers[peer], 0, sum(len(part) for part in parts)
        try:
            with contextlib.suppress(BlockingIOError):
                done = sock.sendmsg(parts)
            if done == wanted:
                self._unsent.pop(peer, None)
                return None
            self._unsent[peer] = memoryview(b"".join(parts))[done:]
            while rest := self._unsent[peer]:
                if not self._in_time(peer, select.POLLOUT, stamp, len(rest)):
                    raise self._silent(peer, stamp)
                with contextlib.suppress(BlockingIOError):
                    self._unsent[peer] = rest[sock.send(rest) :]
        except OSError as error:
            self._unsent.pop(peer, None)
            return error
        return None

    def _receive(self, peer: int, into: memoryview, stamp: Stamp) -> None:
        """Fill `into`, header and payload; the header is judged as soon as it is there."""
        done, checked = 0, False
        while done < len(into) or not checked:
            if not (count := 0 if done else self._soon(peer, into, stamp)):
                if not self._in_time(peer, select.POLLIN, stamp, len(into) - done):
                    raise self._silent(peer, stamp)
                count = self._taken(peer, into[done:], stamp)
            done += count
            if not checked and done >= HEADER_BYTES:
                done = self._judge(peer, into, done, stamp)
                checked = done >= HEADER_BYTES
        self._say_arrived(peer, stamp)

    def _say_arrived(self, peer: int, stamp: Stamp) -> None:
        """Between two frames, tell the other end of a link that may be cut how much of it is here, now and then."""
        link = self._peers[peer]
        if isinstance(link, Link) and link.received - link.told >= _TELL:
            link.told = link.received
            self._put(peer, [pack(Kind.ARRIVED, self.node, Stamp(link.received, bytes(8), ""), 0)], stamp)

    def _await_room(self, peer: int, stamp: Stamp) -> None:
        """Before a frame, wait until the other end of a link that may be cut has said that most of it arrived."""
        link = self._peers[peer]
        while isinstance(link, Link) and link.kept > _KEPT:
            raw = self._next_header(peer, stamp)
            header = unpack(raw, peer, self.nodes)
            if header.kind is Kind.ABORT:
                raise self._aborted(peer, header, b"")
            if header.kind is not Kind.ARRIVED:  # the peer goes on, and hears and says more as it does
                link.push_back(raw)
                return
            link.arrived(header.round)

    def _next_header(self, peer: int, stamp: Stamp) -> bytes:
        """Whatever a peer says next."""
        raw, done = bytearray(HEADER_BYTES), 0
        while done < HEADER_BYTES:
            if not self._in_time(peer, select.POLLIN, stamp, HEADER_BYTES - done):
                raise self._silent(peer, stamp)
            done += self._taken(peer, memoryview(raw)[done:], stamp)
        return bytes(raw)

    def _come(self, peer: int, raw: dict[int, bytes], stamp: Stamp) -> Header | None:
        """The same, where all of it is there; what has come of it stays in `raw`."""
        into = bytearray(HEADER_BYTES - len(raw.setdefault(peer, b"")))
        raw[peer] += bytes(into[: self._taken(peer, memoryview(into), stamp)])
        return unpack(raw.pop(peer), peer, self.nodes) if len(raw[peer]) == HEADER_BYTES else None

    def _taken(self, peer: int, into: memoryview, stamp: Stamp) -> int:
        """How much of it is there, 0 where nothing has come; PeerLost where nothing will."""
        try:
            count = self._peers[peer].recv_into(into)
        except BlockingIOError:
            return 0
        except OSError as error:
            raise self._lost(peer, stamp) from error
        if not count:
            raise self._lost(peer, stamp)
        return count

    def _soon(self, peer: int, into: memoryview, stamp: Stamp) -> int:
        """What comes within a moment, 0 if nothing does: sleeping and waking up takes longer than many an answer."""
        deadline, sock = time.perf_counter_ns() + self._moment, self._peers[peer]
        link = sock if isinstance(sock, Link) else None
        while self._moment:
            if (link is None or not link.idle()) and (count := self._taken(peer, into, stamp)):
                return count
            if time.perf_counter_ns() > deadline:
                break
            os.sched_yield()
        return 0

    def _judge(self, peer: int, got: memoryview, done: int, stamp: Stamp) -> int:
        """How many of the `done` bytes are of the message waited for, whose header must fit.

        A peer's word that it waits for somebody, or that it has noted something, is taken out.
        """
        while done >= HEADER_BYTES:
            if is_expected(got[:HEADER_BYTES], peer, stamp, len(got) - HEADER_BYTES):
                self._heard_out(peer)
                break
            as_last = is_expected(got[:HEADER_BYTES], peer, stamp, len(got) - HEADER_BYTES, Kind.LAST)
            if as_last and self._may_stop(peer):
                self._heard_out(peer)
                break
            header = unpack(got[:HEADER_BYTES], peer, self.nodes)
            if header.kind is Kind.ABORT:
                raise self._aborted(peer, header, bytes(got[HEADER_BYTES:done]))
            if header.kind is Kind.ARRIVED and isinstance(link := self._peers[peer], Link):
                link.arrived(header.round)
                got[: done - HEADER_BYTES] = bytes(got[HEADER_BYTES:done])
                done -= HEADER_BYTES
                continue
            self._words[peer] = self._words.get(peer, 0) + 1
            if self._words[peer] > _WORDS:
                raise Desync(f"{self.nodes.name(peer)} says {_WORDS} things and sends nothing: run the same release")
            if header.kind is Kind.WAITS:
                self._hear_waiting(peer, header.position)
            elif header.kind is Kind.NOTED:
                self._noted[peer] = header.round
                if header.position == stamp.position:  # it is what this node waits for
                    self._heard_out(peer)
                    break
            else:
                expect(header, peer, stamp, len(got) - HEADER_BYTES, self.nodes, self.node)
                break
            got[: done - HEADER_BYTES] = bytes(got[HEADER_BYTES:done])
            done -= HEADER_BYTES
        return done

    def _may_stop(self, peer: int) -> bool:
        """A peer was asked to stop, and says so in its message of a round; of a client it is none."""
        return False

    def _heard_out(self, peer: int) -> None:
        """A message has come: what the peer said before it is over."""
        self._words.pop(peer, None)
        self._waits.pop(peer, None)

    def _aborted(self, peer: int, header: Header, text: bytes) -> MaskedError:
        length = min(header.length, WORDS_LIMIT)
        return aborted(text[:length] + self._rest(peer, length - len(text)), peer, self.nodes)

    def _rest(self, peer: int, count: int) -> bytes:
        """Up to `count` bytes, fewer where the connection or the time ends."""
        parts, sock, until = list[bytes](), self._peers[peer], self._until
        while count > 0 and (not parts or time.monotonic() < until) and self._ready(peer, select.POLLIN, until):
            try:
                part = sock.recv(min(count, 1 << 16))
            except OSError:
                break
            if not part:
                break
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def _silent(self, peer: int, stamp: Stamp) -> PeerLost:
        said = f", after it had said that it waits for {shown(self._waits[peer][-1])}" if peer in self._waits else ""
        how = f"was silent for {self._timeout:g} s in round {stamp.round}{said}"
        return PeerLost(f"{self.nodes.name(peer)} {how}", peer=peer)

    def _lost(self, peer: int, stamp: Stamp) -> PeerLost:
        who, link = self.nodes.name(peer), self._peers[peer]
        if isinstance(link, Link) and link.ended:
            return PeerLost(f"{who} is lost in round {stamp.round}: {link.ended}", peer=peer)
        return PeerLost(f"{who} closed its connection in round {stamp.round}: it died or was stopped", peer=peer)

    def _broken(self, peer: int, stamp: Stamp) -> MaskedError:
        """What a connection means that takes no more: the peer's last words, behind whatever else it sent."""
        self._begin()
        while len(raw := self._rest(peer, HEADER_BYTES)) == HEADER_BYTES:
            try:
                header = unpack(raw, peer, self.nodes)
                if header.kind is Kind.ABORT:
                    return self._aborted(peer, header, b"")
                if header.kind is Kind.BYE:
                    expect(header, peer, stamp, 0, self.nodes, self.node)
            except MaskedError as error:
                return error
            for start in range(0, header.length, 1 << 16):  # what it announces may be more than there is memory
                if not self._rest(peer, min(1 << 16, header.length - start)):
                    break
            if time.monotonic() > self._until:
                break
        return self._lost(peer, stamp)

    def close(self, reason: Told | None = None) -> None:
        """Say BYE, or why this node stops, and leave.

        A party that has ended waits a moment for the others to end as well: one that goes on is a Desync here too.
        """
        if self._closed:
            return
        self._closed = True
        lasting = [sock for sock in self._peers.values() if isinstance(sock, Link)]
        for link in lasting:
            if reason:
                link.leave()
            link.over = not reason
        last = b"".join(farewell(reason, self.node))
        listening = reason or lasting or self.node < self.parties
        try:
            heard = self._part(last, (_LAST_WORDS if reason else _FAREWELL) if listening else 0.0)
        finally:
            for link in lasting:
                link.leave()
            for sock in self._peers.values():
                with contextlib.suppress(OSError):  # what is not read makes the kernel reset it, with our last words
                    sock.recv(1 << 16, socket.MSG_DONTWAIT)
                sock.close()
        if reason:
            return
        for peer, raw in heard.items():
            if peer < self.parties and len(raw) == HEADER_BYTES:
                header = unpack(raw, peer, self.nodes)
                if header.kind is Kind.DATA and not (self._end and is_expected(raw, peer, self._end, 0)):
                    raise went_on(header, peer, self.nodes, self.node)

    def _part(self, last: bytes, seconds: float) -> dict[int, bytes]:
        """Finish the frames under way, send the last one, and hear the peers out; gives the next header of each.

        Reading on until the peers close keeps the kernel from resetting a connection before our last words are read.
        A link that is cut meanwhile is waited for: what it lost is wanted at its other end.
        """
        left = {q: memoryview(bytes(self._unsent.get(q, b"")) + last) for q in self._peers}
        heard, deadline = dict.fromkeys(self._peers, b""), time.monotonic() + seconds
        last_of_all = time.monotonic() + _FAREWELLS * seconds
        hear = (
            {q for q, sock in self._peers.items() if q < self.parties or isinstance(sock, Link)} if seconds else set()
        )
        active = set(self._peers)
        while active:
            wanted = {q: select.POLLOUT * bool(left[q]) | select.POLLIN * (q in hear) for q in active}
            over = time.monotonic() >= deadline
            ready = self._polled(wanted, max(deadline, time.monotonic()) if not over else time.monotonic())
            for q, events in ready:
                sock = self._peers[q]
                try:
                    if events & select.POLLOUT and left[q]:
                        left[q] = left[q][sock.send(left[q], socket.MSG_DONTWAIT) :]
                        if not left[q] and not isinstance(sock, Link):
                            sock.shutdown(socket.SHUT_WR)
                    if events & ~select.POLLOUT:
                        more = sock.recv(1 << 16, socket.MSG_DONTWAIT)
                        heard[q] = self._last_heard(q, heard[q] + more)
                        if not more:
                            hear.discard(q)
                except BlockingIOError:
                    continue
                except OSError:
                    left[q] = left[q][:0]
                    hear.discard(q)
                if not left[q] and isinstance(sock, Link) and sock.leaving:
                    sock.shutdown(socket.SHUT_WR)  # each has heard the other's last word, or will
                if not left[q] and q not in hear:
                    active.discard(q)
            if over and not ready:
                if not seconds or time.monotonic() > last_of_all or not any(map(self._stands_still, active)):
                    break
                deadline = time.monotonic() + _STANDS
        return heard

    def _polled(self, wanted: Mapping[int, int], until: float, beside: int = -1) -> list[tuple[int, int]]:
        """Whose sockets are ready for something, and for what, before that time is over; or a descriptor beside, as -1.

        A link is ready for all when there is a connection again, or never will be: to try it tells.
        """
        poll, of, ready = select.poll(), dict[int, tuple[int, int]](), dict[int, int]()
        if beside >= 0:
            poll.register(beside, select.POLLIN)
            of[beside] = -1, 0
        for q, events in wanted.items():
            sock, fd = self._peers[q], -1
            if isinstance(sock, Link):
                sock.drain()
                poll.register(sock.wakes, select.POLLIN)
                of[sock.wakes] = q, events
                until = 0.0 if sock.lost else until
                ready |= {q: events} if sock.lost else {}
            if (fd := sock.fileno()) >= 0:
                poll.register(fd, events)
                of[fd] = q, 0
        for fd, events in poll.poll(_milliseconds(until)):
            q, woken = of[fd]
            ready[q] = ready.get(q, 0) | (woken or events)
        return list(ready.items())

    def _last_heard(self, peer: int, raw: bytes) -> bytes:
        """The next header, behind words on what has arrived; with it, a link's other end wants nothing more."""
        link = self._peers[peer]
        while isinstance(link, Link) and len(raw) >= HEADER_BYTES:
            with contextlib.suppress(Desync):
                if (header := unpack(raw[:HEADER_BYTES], peer, self.nodes)).kind is Kind.ARRIVED:
                    link.arrived(header.round)
                    raw = raw[HEADER_BYTES:]
                    continue
            link.leave()
            break
        return raw[:HEADER_BYTES]


def _milliseconds(until: float) -> float:
    return min(1000 * max(0.0, until - time.monotonic()), _LONGEST)
