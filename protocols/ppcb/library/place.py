"""Where the library's parties live: all in this process, or this process is one party's end of a network.

In one process every call plays its clients in a session of its own, on one dealer, one ledger and one meter: a hosted
client must say what it wants next as soon as it has learned something, and only the next call knows that.  It also
means that a call that is refused leaves nothing half done.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mpc.client import ClientProgram
from mpc.ledger import Ledger
from mpc.meter import Meter
from mpc.prg import KEY_BYTES
from mpc.session import Session
from offline import InProcessDealer

from ...run.seeded_dealer import MeteredDealer
from .arguments import ArgumentError, whole_number


class Hosting(Protocol):
    """Gives each call its session."""

    parties: int
    hosted: tuple[int, ...]
    ledger: Ledger
    meter: Meter

    @property
    def whole(self) -> bool:
        """Whether all parties, the puller and the payer are here."""

    def session(self, clients: Mapping[str, ClientProgram], call: int) -> Session:
        """The session for a call; the number is never given twice."""


class InOneProcess:
    """All parties, and the clients of each call."""

    whole = True

    def __init__(self, parties: int, dealer: InProcessDealer) -> None:
        self.parties, self.hosted = parties, tuple(range(parties))
        self.dealer, self.ledger, self.meter = dealer, Ledger(), Meter()

    @classmethod
    def of(cls, parties: int, seed: int | None) -> InOneProcess:
        """With a dealer of fresh keys, or of keys from a seed, whose coins can be dealt again."""
        if seed is None:
            return cls(parties, InProcessDealer(parties))
        seed = whole_number(seed, "seed")
        if not 0 <= seed < 1 << 8 * KEY_BYTES:
            raise ArgumentError(f"a seed lies in [0, 2^{8 * KEY_BYTES}), not {seed}")
        return cls(parties, MeteredDealer(parties, seed))

    def session(self, clients: Mapping[str, ClientProgram], call: int) -> Session:
        """A fresh one, which draws from a block of the dealer's that is its own."""
        self.dealer.enter(call)
        return Session.simulate(self.parties, self.dealer, clients=clients, ledger=self.ledger, meter=self.meter)


class OneEnd:
    """One party; the others, the puller and the payer are processes of their own."""

    whole = False

    def __init__(self, session: Session) -> None:
        if not isinstance(session, Session):
            raise ArgumentError(f"one party's end takes its session on the network, not {type(session).__name__}")
        if len(session.hosted) == session.parties:
            raise ArgumentError("this session hosts every party: make a PrivateContextualBandit without `over`")
        self.parties, self.hosted = session.parties, session.hosted
        self.ledger, self.meter = session.ledger, session.meter
        self._session = session

    def session(self, clients: Mapping[str, ClientProgram], call: int) -> Session:
        """The one session; clients are not here."""
        return self._session
