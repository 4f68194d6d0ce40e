"""A wire between two nodes that carries bytes until it is cut or falls silent, for tests of what travels."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Sequence
from typing import Any

_LOOK = 0.02  # seconds between two looks whether it carries again


class Wire:
    """Forwards connections to an address.  cuts: of each connection in turn, after how many bytes it is cut, both ways
    counted from when the test `begins`; of those behind them, never.  closed: nobody is let through.  silent: it
    carries nothing, and nobody hears that it does not.  carried: what each connection has brought there, and back.
    """

    def __init__(self, to: Any, cuts: Sequence[int] = ()) -> None:
        self._to, self._cuts = to, list(cuts)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = self._listener.getsockname()
        self.made, self.carried = 0, list[tuple[bytearray, bytearray]]()
        self.begins, self.closed, self.silent = threading.Event(), threading.Event(), threading.Event()
        self._open: list[socket.socket] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                outer, _ = self._listener.accept()
            except OSError:
                return
            if self.closed.is_set():
                outer.close()
                continue
            self.made += 1
            left = self._cuts.pop(0) if self._cuts else None
            threading.Thread(target=self._carry, args=(outer, left), daemon=True).start()

    def _carry(self, outer: socket.socket, left: int | None) -> None:
        with contextlib.suppress(OSError), outer, socket.create_connection(self._to) as inner:
            self._open += [outer, inner]
            other, carried = {outer: inner, inner: outer}, (bytearray(), bytearray())
            self.carried.append(carried)
            open_ends = [outer, inner]
            while open_ends and (left is None or left > 0):
                for sock in select.select(open_ends, [], [])[0]:
                    while self.silent.is_set():
                        time.sleep(_LOOK)
                    more = sock.recv(1 << 16 if left is None else min(1 << 16, left))
                    if not more:  # who leaves by itself loses nothing, nor does the other side, which may still speak
                        open_ends.remove(sock)
                        other[sock].shutdown(socket.SHUT_WR)
                        continue
                    carried[sock is inner].extend(more)
                    other[sock].sendall(more)
                    left = left - len(more) if left is not None and self.begins.is_set() else left
                    if left is not None and left <= 0:
                        break
            if not open_ends:
                return
            for sock in other:
                reset(sock)

    def cut(self) -> None:
        """All connections, now."""
        for sock in self._open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._open.clear()

    def close(self) -> None:
        """No more connections."""
        self.silent.clear()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes who accepts
        self._listener.close()


def reset(sock: socket.socket) -> None:
    """What is under way is lost."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
