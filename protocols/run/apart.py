"""What roles on machines of their own play together: who there is, who calls whom, what all agree on, what each brings.

`OnShares` is any `Program`, `published.apart.AsPublished` any published protocol.  Where a role's file, keys and links
are found is `member_process`'s; what it does with them, once it has its `Seat`, is said there.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError
from mpc.meter import Cost
from mpc.net.channel import Channel
from mpc.net.member import Links, Member, Met, called_by, calling

from .alignment import Rows
from .config import Config
from .going_on import Seeds
from .line_desk import Lines
from .program import Brings, Fresh
from .status import Status

SECRET_BYTES = 32
Meet = Callable[[float], Met]
"""Gives connections to all that a role has links with, by node; in at most so many seconds."""
Asked = Callable[[], AbstractContextManager[Callable[[], bool]]]
"""Entered while a role plays: whether it was asked to stop."""
Common = Mapping[str, tuple[str, ...]]
"""Secrets that some roles have in common and nobody else knows: the first of them draws it, and hands it on."""


@dataclass(frozen=True)
class Seat:
    """Where one role sits.

    own: what `Apart.brought` made of what it alone has.  meet: the others, once at a time.  world: what a client tells
    and hears; it is given where that is recorded, if it is.  say: a line for whoever watches this process.
    resume: it goes on with what it kept.  asked: whether to stop.
    rows: the ids of a party's rows.  status: how this role stands.
    """

    config: Config
    member: Member
    own: Any = field(repr=False)
    fresh: Seeds = field(repr=False)
    meet: Meet
    world: Callable[[Path | None], Lines]
    say: Callable[[str], None]
    resume: bool
    asked: Asked
    rows: Rows
    status: Status


class Apart(ABC):
    """One run, as every role knows it.

    name: of the program.  unit: what it counts, `decisions` of them.  parties: so many nodes, the first, compute.
    names: of all nodes.
    """

    name: str
    unit: str
    decisions: int
    parties: int
    names: tuple[str, ...]

    @property
    @abstractmethod
    def common(self) -> Common:
        """See `Common`."""

    @property
    def beside(self) -> Links:
        """Links beyond those that computing parties need."""
        given = (roles for roles in self.common.values())
        at = self.names.index
        return frozenset((at(taker), at(giver)) for giver, *takers in given for taker in takers)

    @abstractmethod
    def public(self) -> Mapping[str, Any]:
        """What all must agree on."""

    @abstractmethod
    def brings(self, role: str) -> Brings:
        """What a role has in a file."""

    @abstractmethod
    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> Any:
        """What it alone has."""

    @property
    @abstractmethod
    def purpose(self) -> str:
        """What this run is, in words."""

    @property
    def cost(self) -> Cost | None:
        """Of one of what it counts, where that is known beforehand."""
        return None

    def computing(self) -> float:
        """Seconds that a party of this machine computes for one of what it counts."""
        return 0.0

    def check(self, config: Config, *, resume: bool) -> None:  # noqa: B027  most need nothing else
        """ConfigError where a role's machine lacks what it needs beside keys and data.  resume: it goes on."""

    @abstractmethod
    def play(self, seat: Seat) -> None:
        """Meet the others, play the role, print and write what came of it."""


def links_of(node: int, apart: Apart) -> tuple[list[int], list[int]]:
    """Whom a node calls, and who calls it."""
    return called_by(node, apart.parties, apart.beside), calling(node, apart.parties, len(apart.names), apart.beside)


def agreed_secrets(apart: Apart, seat: Seat, links: Met) -> dict[str, bytes]:
    """The secrets that this role has in common with others, handed on over the links between them."""
    found, me, timeout = dict[str, bytes](), seat.config.role, seat.config.round
    for name, (giver, *takers) in sorted(apart.common.items()):
        if me == giver:
            found[name] = seat.fresh(name)
            for taker in takers:
                _channel(apart, links, taker).send(found[name], timeout=timeout)
        elif me in takers:
            given = _channel(apart, links, giver).receive(timeout=timeout, limit=SECRET_BYTES)
            if given is None or len(given) != SECRET_BYTES:
                raise ConfigError(f"{giver} hands on no {SECRET_BYTES} bytes: run the same release everywhere")
            found[name] = given
    return found


def _channel(apart: Apart, links: Met, role: str) -> Channel:
    node = apart.names.index(role)
    return Channel(links[node], role, peer=node)
