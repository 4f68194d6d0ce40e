"""A mesh of plain sockets on one machine, on loopback or in its kernel.  Knows how its nodes meet; `mesh` has the rest.

Plain sockets hide nothing, so `joining` refuses any address but loopback.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence

from ..errors import ConfigError
from .client_mesh import ClientMesh
from .frames import Nodes
from .joining import Address, check_here, check_loopback, listen, meet
from .keys import Keys
from .party_mesh import PartyMesh
from .transport import DEFAULT_TIMEOUT, check_timeout


class Tcp(PartyMesh):
    """A computing party on this machine."""

    @classmethod
    def join(
        cls,
        node: int,
        addresses: Sequence[Address],
        *,
        keys: Keys,
        clients: int = 0,
        listener: socket.socket | None = None,
        timeout: float = DEFAULT_TIMEOUT,
        starting: float | None = None,
        names: Sequence[str] = (),
    ) -> Tcp:
        """Meet the other parties and all clients, each of which proves who it is by its key in `keys`.

        A node calls those with lower numbers and is called by the others.  timeout: seconds that a round may take.
        starting: seconds until all have met, else as many.  names: of all nodes, for messages.
        """
        parties = len(addresses)
        if parties < 2 or not 0 <= node < parties:
            raise ConfigError(f"party {node} of {parties}: parties are numbered from 0, and there are at least 2")
        check_timeout(timeout)
        for address in addresses:
            check_loopback(address)
        own = listener or listen(*addresses[node])
        deadline = time.monotonic() + (timeout if starting is None else starting)
        awaited, nodes = [*range(node + 1, parties), *range(parties, parties + clients)], Nodes(parties, tuple(names))
        try:
            check_here(own)
            called = dict(enumerate(addresses[:node]))
            peers = meet(node, called, own, awaited, keys, deadline, nodes, patience=timeout)
        finally:
            own.close()
        return cls(node, parties, peers, timeout, names)


class TcpClient(ClientMesh):
    """A client on this machine."""

    @classmethod
    def join(
        cls, node: int, addresses: Sequence[Address], *, keys: Keys, timeout: float = DEFAULT_TIMEOUT,
        starting: float | None = None, names: Sequence[str] = (),
    ) -> TcpClient:  # fmt: skip
        """Call all parties; clients have the numbers behind theirs.  timeout, starting: as a party's."""
        parties, deadline = len(addresses), time.monotonic() + (timeout if starting is None else starting)
        if node < parties:
            raise ConfigError(f"clients of {parties} parties have numbers from {parties}, not {node}")
        check_timeout(timeout)
        peers = meet(node, dict(enumerate(addresses)), None, (), keys, deadline, Nodes(parties, tuple(names)))
        return cls(node, parties, peers, timeout, names)
