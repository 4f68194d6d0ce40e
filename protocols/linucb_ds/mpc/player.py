"""The computing parties' end of a run: theta comes in, arms are pulled, the sum goes out.  Knows rounds; no file."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bandits.fixed_point import PublicMap
from mpc.errors import ConfigError
from mpc.ledger import EVERYONE
from mpc.rounds import labelled
from mpc.session import Session
from mpc.share import Share

from .hidden import HiddenState, pull
from .settings import Settings
from .shown import ARM, choose, pass_over_ending, reveal_total, reward_of, share_theta


class ShownArms:
    """Arms and noise are the computing parties' own, drawn alike by all of them: `first`, and (N,) `noise`.

    kept: `state` of the same run after some pulls.
    """

    def __init__(
        self, session: Session, settings: Settings, *, first: int, noise: np.ndarray,
        kept: Mapping[str, np.ndarray] | None = None,
    ) -> None:  # fmt: skip
        self.session, self.settings, self.done = session, settings, 0
        self.arms: list[int] = []
        self._first, self._noise = first, noise
        self._map = PublicMap(settings.arms, settings.exploration, settings.budget)
        if kept is None:
            session.ledger.record(EVERYONE, ARM, 1, "they draw the first")
            session.ledger.record(EVERYONE, "noise of a reward", settings.budget, "they draw it")
            _agree(session, settings, 0)
            self._theta = session.run(labelled(session, "theta", share_theta(settings)))
            self._total = session.constant(0.0, settings.scales.reward)
            return
        for arm in _arms_in(kept, settings):
            self._pulled(arm)
        _agree(session, settings, self.done)
        hosted, scales = len(session.hosted), settings.scales
        self._theta = Share(session, _words_in(kept, "theta", (hosted, settings.dim)), scales.theta)
        self._total = Share(session, _words_in(kept, "total", (hosted,)), scales.reward)

    def turn(self) -> None:
        """One pull."""
        session, settings = self.session, self.settings
        arm = self._first
        if self.done:
            pass_over_ending(session, settings)
            choosing = choose(session, self._theta, self._map, settings)
            arm = session.run(labelled(session, "select", choosing))
        noise = float(self._noise[self.done])
        self._total = self._total + reward_of(self._theta, arm, noise, settings)
        self._pulled(arm)

    def finish(self) -> None:
        """Tell the customer."""
        _tell(self.session, self._total, self.settings)

    def state(self) -> dict[str, np.ndarray]:
        """Shares of theta and of the sum, and the arms, from which the rest follows."""
        return {"theta": self._theta.words, "total": self._total.words, "arms": np.array(self.arms, np.int64)}

    def _pulled(self, arm: int) -> None:
        self._map.update(arm, float(self._noise[self.done]))
        self.arms.append(arm)
        self.done += 1


class HiddenArms:
    """Nothing but the sum of rewards comes out.

    chosen: this process's shares of each one-hot since it began.  arms: what they say where one process hosts all
    parties, as a simulation does; else empty.  kept: `state` of the same run after `done` pulls.
    """

    def __init__(
        self, session: Session, settings: Settings, *, done: int = 0, kept: Mapping[str, np.ndarray] | None = None
    ) -> None:
        self.session, self.settings, self.done = session, settings, done
        self.chosen: list[np.ndarray] = []
        self.arms: list[int] = []
        self._knows = len(session.hosted) == session.parties
        _agree(session, settings, done)
        if kept is None:
            theta = session.run(labelled(session, "theta", share_theta(settings)))
            self.held = HiddenState.start(session, theta, settings.ranges)
            return
        hosted, count = len(session.hosted), settings.count
        shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("estimates", "roots", "squares", "means"), (hosted, count))
        shapes |= {"gram": (hosted, count, count), "total": (hosted,)}
        words = {name: _words_in(kept, name, shape) for name, shape in shapes.items()}
        self.held = HiddenState.of(session, words, settings.ranges)
        self.arms = _arms_in(kept, settings) if self._knows else []

    def turn(self) -> None:
        """One pull."""
        settings = self.settings
        omega = settings.exploration.omega(self.done, settings.dim) if self.done else None
        pass_over_ending(self.session, settings)
        onehot = self.session.run(pull(self.session, self.held, settings.ranges, omega))
        self.chosen.append(onehot.words)
        if self._knows:
            self.arms.append(int(onehot.words.sum(axis=0, dtype=np.uint64).argmax()))
        self.done += 1

    def finish(self) -> None:
        """Tell the customer."""
        _tell(self.session, self.held.total, self.settings)

    def state(self) -> dict[str, np.ndarray]:
        """Shares of the state; and of a process that hosts all parties, the arms, for what it may be compared with."""
        return {**self.held.words(), **({"arms": np.array(self.arms, np.int64)} if self._knows else {})}


def _tell(session: Session, total: Share, settings: Settings) -> None:
    session.run(labelled(session, "total", reveal_total(session, total, settings)))


def _agree(session: Session, settings: Settings, done: int) -> None:
    """Parties with other settings, or after another number of pulls, find out in the first round."""
    if session.trail is not None:
        session.trail.note("linear bandit", settings.digest, done)


def _words_in(kept: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    words = kept.get(name)
    if words is None or words.shape != shape or words.dtype != np.uint64:
        raise ConfigError("the checkpoint does not hold the shares of this run: start it anew, without --resume")
    return words


def _arms_in(kept: Mapping[str, np.ndarray], settings: Settings) -> list[int]:
    arms = kept.get("arms", np.zeros(0))
    if (
        arms.dtype != np.int64
        or not 0 < arms.size <= settings.budget
        or not set(arms.tolist()) <= set(range(settings.count))
    ):
        raise ConfigError("the checkpoint does not hold the arms of this run: start it anew, without --resume")
    return [int(arm) for arm in arms]
