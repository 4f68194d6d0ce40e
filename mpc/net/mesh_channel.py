"""A dealer that is a node of a mesh: its messages are frames of its links with the parties.  Knows bytes; no items.

So they are encrypted as all else is, go on after a cut, and wait while the other side is far behind: a link keeps a few
megabytes at most that its other end has not said to have received, and the kernel some more.
"""

from __future__ import annotations

import numpy as np

from .client_mesh import ClientMesh
from .party_mesh import PartyMesh

_WHAT = "material"


class ToParty:
    """The dealer's way to one party."""

    def __init__(self, link: ClientMesh, party: int) -> None:
        self._link, self._party = link, party

    def send(self, message: bytes) -> None:
        """The next one; waits while the party is far behind."""
        self._link.send_to(self._party, message, _WHAT)

    def close(self) -> None:
        """The link is the mesh's."""


class FromDealer:
    """A party's way from the dealer.  node: the dealer's."""

    ahead = False  # a mesh is read by one thread; what comes ahead of use waits in the link

    def __init__(self, mesh: PartyMesh, node: int) -> None:
        self._mesh, self._node = mesh, node

    def receive(self, *, timeout: float | None = None, limit: int) -> bytes:
        """The next message, of so many bytes, within the time of a round."""
        return np.asarray(self._mesh.receive_from_client(self._node, _WHAT, limit)).tobytes()

    def close(self) -> None:
        """The link is the mesh's."""
