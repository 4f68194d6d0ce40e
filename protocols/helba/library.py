"""HELBA as a library object: features of all arms, an arm, what it paid.

bandit = EncryptedLinearBandit(Settings(Constants(dim=3, norm=1.0), arms=5, steps=1000), parties=3)
arm = bandit.predict(features)
bandit.learn(reward=0.7)
"""

from __future__ import annotations

import numpy as np

from mpc.client import ClientProgram, Receive, Send
from mpc.errors import ConfigError, RangeError
from mpc.ledger import Ledger
from mpc.meter import Cost
from mpc.session import Session
from mpc.share import Share
from mpc.turns import Turn, in_turn
from offline import InProcessDealer

from .clients import check
from .program import FEATURE_BITS, USER
from .run import Parties
from .settings import Settings


class EncryptedLinearBandit:
    """Users' features, arms and rewards are secret shares among N parties, and so is the regression over all of them.

    settings: the constants, K, T and who learns when a batch ends.  The parties and the users are all played here, with
    fresh keys; with `session`, this is one party's end on a network, whose role "user" is a process that sends the
    features, receives the arm and sends the reward of each step: leave them out here.  Threads may share it: calls take
    turns, and the arm that one was told is paid before another is.
    """

    def __init__(self, settings: Settings, *, parties: int = 3, session: Session | None = None) -> None:
        self.settings, self.turn = settings, Turn()
        self._features = np.zeros((settings.arms, settings.constants.dim))
        self._reward, self._arm = np.zeros(()), -1
        self._here = session is None
        self._session = session or Session.simulate(parties, InProcessDealer(parties), clients={USER: self._user()})
        self._parties = Parties(self._session, settings, None, 0)
        self._pulled: Share | None = None

    @property
    def learned(self) -> int:
        """Steps that were paid."""
        return self._parties.done

    @property
    def ledger(self) -> Ledger:
        """Who learned what."""
        return self._session.ledger

    @property
    def cost(self) -> Cost:
        """Of all calls so far."""
        return self._session.meter.total

    @in_turn
    def predict(self, features: np.ndarray | None = None) -> int | None:
        """The arm for (K, d) features, as its user learns it; None in a process of a network."""
        if self._pulled is not None:
            raise ConfigError("the last arm is not paid yet: learn its reward before the next prediction")
        if self.learned >= self.settings.steps:
            raise RangeError(f"all {self.settings.steps:,} steps of this bandit are played: make one for more")
        if self._mine(features, "features"):
            given = np.asarray(features, float)
            if given.shape != self._features.shape:
                wanted = f"{self._features.shape}, a row an arm"
                raise ConfigError(f"features of shape {wanted}, are wanted, not {given.shape}")
            check(given, np.zeros(self.settings.arms), self.settings.constants, self.learned)
            self._features[...] = given
        self._pulled = self._parties.decide()
        return self._arm if self._here else None

    @in_turn
    def learn(self, reward: float | None = None) -> None:
        """What the last arm paid."""
        if self._pulled is None:
            raise ConfigError("there is no arm to be paid for: predict first")
        if self._mine(reward, "reward"):
            check(self._features[:1], np.array([reward], float), self.settings.constants, self.learned)
            self._reward[...] = reward
        self._parties.pay(self._pulled)
        self._pulled = None

    def _mine(self, given: object, what: str) -> bool:
        """Whether the user is in this process; refuses its numbers where it is not."""
        if self._here is (given is None):
            cure = "give" if self._here else "on a network its process sends them: leave out"
            raise ConfigError(f"a user's {what} come from it alone: {cure} the {what} here")
        return self._here

    def _user(self) -> ClientProgram:
        while True:  # what is sent is read when the parties take it
            yield Send(self._features, FEATURE_BITS)
            self._arm = int((yield Receive(())))
            yield Send(self._reward, FEATURE_BITS)
