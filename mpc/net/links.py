"""One connection after another to the same peer, which a mesh sees as one socket that never breaks.  Knows bytes.

Each side counts what it has received.  What was sent and is not known to have arrived stays here, and goes out again,
byte for byte, over the next connection: nothing is ever made anew, so nothing goes under other masks.  How much stays
is bounded by the receiver's word of what has arrived, see `Mesh`.

A cut is noticed by whoever uses the link; while there is no connection, it waits as a socket does that has nothing.
Who makes the next one is `remaking`'s.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

_SAVED = 1 << 22  # bytes; its peer sends the rest again


class Link:
    """theirs: the name of the peer's end, drawn for this link.  closed: told when its owner has closed it."""

    family = socket.AF_UNSPEC

    def __init__(self, sock: socket.socket, theirs: str) -> None:
        self.theirs = theirs
        self.closed: Callable[[], None] = lambda: None
        self.received = 0  # bytes, over all connections
        self.told = 0  # so many of them the peer was told of
        self.ended = ""  # why there will be no further connection
        self.over = False  # whether its owner has come to the end of its program
        self.parted = False  # whether the peer's side has ended, and what it said before is still to be read
        self.down_since: float | None = None
        self._sock, self._lock = sock, threading.Lock()
        self._sent: deque[bytes] = deque()  # and not known to have arrived
        self._start = self._end = 0  # of these bytes, counted over all connections
        self._again = memoryview(b"")  # what of them goes out once more
        self._back = b""  # what was read ahead
        self._rest: bool  # whether the record that was read last has more
        self._leaving = False
        self._wakes, self._wake = os.pipe()
        os.set_blocking(self._wakes, False)
        os.set_blocking(self._wake, False)
        self._prepare(sock)

    def _prepare(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._rest = False
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        if isinstance(sock, ssl.SSLSocket):
            sock.suppress_ragged_eofs = False  # type: ignore[attr-defined]

    @property
    def kept(self) -> int:
        """Bytes that are not known to have arrived."""
        return self._end - self._start

    @property
    def up(self) -> bool:
        """Whether there is a connection."""
        return self.down_since is None

    @property
    def lost(self) -> bool:
        """Whether there is no connection, and will be none."""
        return not self.up and (bool(self.ended) or self._leaving)

    def fileno(self) -> int:
        """To be polled; -1 without a connection."""
        return self._sock.fileno() if self.up else -1

    @property
    def wakes(self) -> int:
        """A descriptor that shows that a connection is gone, is there again, or never will be."""
        return self._wakes

    def drain(self) -> None:
        """What it has shown is seen."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakes, 1 << 12)

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""

    def unread(self) -> bool:
        """Whether bytes are here that no poll shows."""
        return bool(self._back) or (self._rest and self.up)

    def idle(self) -> bool:
        """Whether to read would give nothing; where it decrypts, to find out by trying takes ten times as long."""
        return self.up and not self.unread() and not self._poll.poll(0)

    def send(self, data: Any, flags: int = 0) -> int:
        """As much as the kernel takes."""
        with self._lock:
            self._check()
            if self._again and not self._push():
                raise BlockingIOError
            try:
                count = self._sock.send(data)
            except BlockingIOError:
                raise
            except OSError as error:
                raise self._cut(error) from error
            self._sent.append(bytes(data if count == len(data) else memoryview(data)[:count]))
            self._end += count
            return count

    def sendmsg(self, buffers: Iterable[Any], *_: Any) -> int:
        """All parts, as one."""
        return self.send(b"".join(buffers))

    def recv(self, count: int, flags: int = 0) -> bytes:
        """What is there."""
        into = bytearray(count)
        return bytes(into[: self.recv_into(into)])

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """The same, into a buffer.  A connection that ends is cut: who leaves in peace says so in a frame before."""
        view = memoryview(buffer)
        with self._lock:
            if self._back:
                count = min(len(view), len(self._back))
                view[:count], self._back = self._back[:count], self._back[count:]
                return count
            self._check()
            try:
                count = self._sock.recv_into(view)
            except BlockingIOError:
                raise
            except OSError as error:
                raise self._cut(error) from error
            if not count:
                raise self._cut(ConnectionError("closed"))
            self.received += count
            self._rest = count == len(view) and self._pending()
            return count

    def _pending(self) -> bool:
        """Whether it holds bytes that it has decrypted."""
        return isinstance(self._sock, ssl.SSLSocket) and self._sock.pending() > 0

    def push_back(self, data: bytes) -> None:
        """What was read ahead is to be read again."""
        with self._lock:
            self._back = data + self._back

    @property
    def left(self) -> bytes:
        """What is still to be read of a connection that is gone, or whose other side is; nothing while there is one."""
        return b"" if self.up and not self.parted else self._back

    def arrived(self, count: int) -> None:
        """The peer has received so many bytes, over all connections."""
        with self._lock:
            self._let_go(count)

    def look(self) -> bool:
        """Notice that the peer's side has ended, and go on sending what goes out once more.

        Gives whether something is still to be read in front of that end, which is here then.
        """
        with self._lock:
            if not self.up or self.ended or self._leaving:
                return False
            poll = select.poll()
            poll.register(self._sock, select.POLLRDHUP)
            if poll.poll(0):
                self._save()
                self.parted = bool(self._back) or self._readable()
                if self.parted:
                    return True
                self._cut(ConnectionError("closed"))
            elif self._again:
                self._push()
            return False

    def _readable(self) -> bool:
        """Whether something is still to be read in front of the end; its owner comes to the end by itself."""
        if self._pending():
            return True
        with contextlib.suppress(OSError):
            return bool(socket.socket.recv(self._sock, 1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
        return False

    def cut(self) -> int:
        """Let go of the connection, if there is one; gives what was received until then."""
        with self._lock:
            if self.up:
                self._cut(ConnectionError("replaced"))
            return self.received

    def install(self, sock: socket.socket, received: int) -> bool:
        """The next connection, whose other end has received so many bytes; false where that cannot be."""
        with self._lock:
            if self.ended or self._leaving or not self._start <= received <= self._end:
                return False
            self._let_go(received)
            self._again = memoryview(b"".join(self._sent))
            self._sock.close()
            self._prepare(sock)
            self._sock, self.down_since, self.parted = sock, None, False
            self._push()
            self._tell()
            return True

    def end(self, why: str) -> None:
        """There will be no further connection."""
        with self._lock:
            if not self.ended and not self._leaving:
                self.ended = why
                if self.up:
                    self._cut(ConnectionError(why))
                self._tell()

    @property
    def leaving(self) -> bool:
        """Whether its owner ends."""
        return self._leaving

    def wake(self) -> None:
        """Whoever polls it is to look again: another link of its node has ended."""
        with self._lock:
            if self._wake >= 0:
                self._tell()

    def leave(self) -> None:
        """Its owner ends: a cut is final from now on."""
        self._leaving = True

    def shutdown(self, how: int) -> None:
        """Of the connection."""
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._sock, how)

    def close(self) -> None:
        """For good."""
        with self._lock:
            self._leaving, self.ended = True, self.ended or "closed here"
            self._sock.close()
            for descriptor in (self._wakes, self._wake):
                with contextlib.suppress(OSError):
                    os.close(descriptor)
            self._wakes = self._wake = -1
            self.down_since = self.down_since or time.monotonic()
        self.closed()

    def _tell(self) -> None:
        with contextlib.suppress(BlockingIOError):  # it shows already
            os.write(self._wake, b"1")

    def _check(self) -> None:
        if self.ended:
            raise ConnectionError(self.ended)
        if not self.up:
            raise ConnectionError("closed") if self._leaving else BlockingIOError

    def _cut(self, error: OSError) -> OSError:
        """The connection is gone; what is raised for it."""
        self._save()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(self._sock, socket.SHUT_RDWR)  # wakes whoever polls it
        self.down_since = time.monotonic()
        self._again = memoryview(b"")
        self._tell()
        return error if self._leaving or self.ended else BlockingIOError()

    def _save(self) -> None:
        """A connection that takes no more may still have brought something: a peer that left, and why."""
        with contextlib.suppress(OSError):
            while len(self._back) < _SAVED and (part := self._sock.recv(1 << 16)):
                self._back += part
                self.received += len(part)

    def _push(self) -> bool:
        """Whether all that goes out once more has gone."""
        while self._again:
            try:
                self._again = self._again[self._sock.send(self._again) :]
            except BlockingIOError:
                return False
            except OSError as error:
                self._cut(error)
                return False
        return True

    def _let_go(self, count: int) -> None:
        while self._sent and self._start < count:
            first = self._sent.popleft()
            rest = first[count - self._start :]
            self._start += len(first) - len(rest)
            if rest:
                self._sent.appendleft(rest)
