"""How TCP is set for a link between machines: messages leave at once, a silence is not taken for an end, and the window
that was found is kept.  Knows sockets alone."""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path

KEEP_ALIVE = 60  # seconds, well below the four minutes after which routers forget a link
_PROBE, _PROBES = 15, 4
_WINDOW = b"bbr"
"""How TCP is to find its window, where this machine's users may choose it.  The usual ways forget it in a fifth of a
second of silence: after it, the first message of more than 14 kB takes a round trip more, and each doubling another."""
_WINDOWS_NEAR = b"cubic", b"reno"
_NEAR = 0.002  # seconds of a round trip; below it there is little to save, and bbr holds back what could leave
_ROUND_TRIP, _LEAST_ROUND_TRIP = 68, 148  # where Linux's tcp_info has them, each a word of microseconds
_RESTARTS = Path("/proc/sys/net/ipv4/tcp_slow_start_after_idle")


def prepare(sock: socket.socket) -> None:
    """Messages leave at once, and a link that is idle stays known on its way."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_CONGESTION"):
        for way in (_WINDOW,) if round_trip(sock) > _NEAR else _WINDOWS_NEAR:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, way)
                break
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {"TCP_KEEPIDLE": KEEP_ALIVE, "TCP_KEEPINTVL": _PROBE, "TCP_KEEPCNT": _PROBES}
    for name, value in options.items():
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def round_trip(sock: socket.socket) -> float:
    """Seconds, the least that TCP has seen, as it met the other side or later; 0 where this system does not say it."""
    told = b""
    if hasattr(socket, "TCP_INFO"):
        with contextlib.suppress(OSError):
            told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _LEAST_ROUND_TRIP + 4)
    words = [told[at : at + 4] for at in (_ROUND_TRIP, _LEAST_ROUND_TRIP)]
    return 1e-6 * min((int.from_bytes(word, sys.byteorder) for word in words if len(word) == 4), default=0)


def keeps_window(sock: socket.socket) -> bool:
    """Whether what is sent after a silence finds the window that TCP had before it, as far as this machine says."""
    if hasattr(socket, "TCP_CONGESTION") and _WINDOW in sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16):
        return True
    with contextlib.suppress(OSError):
        return _RESTARTS.read_text().strip() == "0"
    return False
