"""One process's end of a run on shares: theta comes in, arms are pulled, the sum goes out.  Knows no file."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from bandits.fixed_point import PublicMap
from mpc.client import ClientProgram, Receive, Send
from mpc.errors import RangeError
from mpc.ledger import EVERYONE
from mpc.session import Session

from .mpc_hidden import HiddenState, pull
from .mpc_settings import Settings
from .mpc_shown import ARM, choose, reveal_total, reward_of, share_theta

_SLACK = 1.0 + 2.0**-10


class Player(Protocol):
    """A run between its first and its last pull."""

    done: int

    def turn(self) -> None:
        """One pull."""

    def finish(self) -> None:
        """Tell the customer."""


class ShownArms:
    """Arms and noise are the computing parties' own, drawn alike by all of them: `first`, and (N,) `noise`."""

    def __init__(self, session: Session, settings: Settings, *, first: int, noise: np.ndarray) -> None:
        self.session, self.settings, self.done = session, settings, 0
        self.arms: list[int] = []
        self._first, self._noise = first, noise
        self._map = PublicMap(settings.arms, settings.exploration, settings.budget)
        session.ledger.record(EVERYONE, ARM, 1, "they draw the first")
        session.ledger.record(EVERYONE, "noise of a reward", settings.budget, "they draw it")
        _agree(session, settings)
        self._theta = session.run(share_theta(settings))
        self._total = session.constant(0.0, settings.scales.reward)

    def turn(self) -> None:
        """One pull."""
        session, settings = self.session, self.settings
        arm = session.run(choose(session, self._theta, self._map, settings)) if self.done else self._first
        noise = float(self._noise[self.done])
        self._total = self._total + reward_of(session, self._theta, arm, noise, settings)
        self._map.update(arm, noise)
        self.arms.append(arm)
        self.done += 1

    def finish(self) -> None:
        """Tell the customer."""
        self.session.run(reveal_total(self._total))


class HiddenArms:
    """Nothing but the sum of rewards comes out.

    chosen: this process's shares of each pulled arm's one-hot; a simulation holds all and can check them.
    """

    def __init__(self, session: Session, settings: Settings) -> None:
        self.session, self.settings, self.done = session, settings, 0
        self.chosen: list[np.ndarray] = []
        _agree(session, settings)
        theta = session.run(share_theta(settings))
        self.state = HiddenState.start(session, theta, settings.ranges)

    def turn(self) -> None:
        """One pull."""
        settings = self.settings
        omega = settings.exploration.omega(self.done, settings.dim) if self.done else None
        onehot = self.session.run(pull(self.session, self.state, settings.ranges, omega))
        self.chosen.append(onehot.words)
        self.done += 1

    def finish(self) -> None:
        """Tell the customer."""
        self.session.run(reveal_total(self.state.total))


def owner(theta: np.ndarray, settings: Settings) -> ClientProgram:
    """DO: shares theta, once it keeps the bound S that ranges follow from."""
    norm = float(np.linalg.norm(theta))
    if theta.shape != (settings.dim,) or not norm <= settings.exploration.theta_norm * _SLACK:
        raise RangeError(
            f"theta has shape {theta.shape} and norm {norm:.6g}: ({settings.dim},) and at most "
            f"{settings.exploration.theta_norm:g} are declared; scale it or declare a larger theta_norm"
        )
    yield Send(theta, settings.scales.theta)


def customer(told: list[int]) -> ClientProgram:
    """DC: learns the sum of rewards, as a word."""
    told.append(int((yield Receive((), 0))))


def _agree(session: Session, settings: Settings) -> None:
    """Parties with other settings find out in the first round."""
    if session.trail is not None:
        session.trail.note("linear bandit", settings.digest)
