"""Plain sockets between nodes that may be apart: to measure what encryption costs, and for nothing else.

Nobody proves anything here and nothing is hidden, so no program is run over them: `tcp` stays on one machine, and `tls`
is for more.  Who calls whom is as in `tls`; who calls says its number.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Mapping

from ..errors import PeerLost
from .joining import Address

_PAUSE = 0.05  # seconds between two calls


def insecure_links(
    node: int, called: Mapping[int, Address], awaited: Iterable[int], listener: socket.socket | None, seconds: float
) -> dict[int, socket.socket]:  # fmt: skip
    """Connections to those that this node calls and to those that call it.  listener: of one that is called."""
    deadline = time.monotonic() + seconds
    links = {other: _call(node, other, address, deadline) for other, address in called.items()}
    missing = set(awaited)
    while missing and listener is not None:
        listener.settimeout(max(0.1, deadline - time.monotonic()))
        try:
            sock, _ = listener.accept()
            sock.settimeout(max(0.1, deadline - time.monotonic()))
            (other,) = sock.recv(1)
        except (OSError, ValueError) as error:
            raise PeerLost(f"node {min(missing)} did not call in time", peer=min(missing)) from error
        missing.discard(other)
        links[other] = sock
    return links


def _call(node: int, other: int, address: Address, deadline: float) -> socket.socket:
    while True:
        try:
            sock = socket.create_connection(address, timeout=max(0.1, deadline - time.monotonic()))
            sock.sendall(bytes([node]))
            return sock
        except OSError as error:
            if time.monotonic() + _PAUSE > deadline:
                raise PeerLost(f"node {other} did not answer in time", peer=other) from error
            time.sleep(_PAUSE)
