"""What can be played: each system's library object or policy behind one pair of calls.  Knows systems; no table.

    choose(contexts) -> arms          paid(contexts, arms, rewards)

A name makes a policy for an environment, so that a grid of experiments is a list of words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bandits.environments import Environment
from bandits.helba import HELBA, Batches, Constants
from bandits.linear import Choice, LinearBandit
from bandits.linucb import LinUCB
from bandits.samba import NAMES, SeededCoins, Seeds, by_name
from bandits.samba import Policy as ArmsOnly
from bandits.thompson import ThompsonSampling
from mpc.errors import ConfigError

from ..helba.library import EncryptedLinearBandit
from ..helba.settings import Settings
from ..ppcb import PrivateContextualBandit


@runtime_checkable
class Playable(Protocol):
    """What the loop asks of a policy."""

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """(contexts,) arms for (contexts, dim)."""

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Learn what these arms paid, after each `choose`."""


class Private:
    """A bandit of the library, all its parties in this process; arms are places among those it has."""

    def __init__(self, bandit: PrivateContextualBandit) -> None:
        self.bandit, self._place = bandit, {arm: at for at, arm in enumerate(bandit.arms)}
        self._decisions: Any = None

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """By secret shares."""
        told = self.bandit.predict(contexts)
        self._decisions = told.decision_id
        return np.array([self._place[arm] for arm in told.arm], np.int64)

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """By the numbers of these decisions."""
        self.bandit.learn(decision_id=self._decisions, reward=rewards)


class Clear:
    """A plaintext policy with a regression for each arm, and coins of its own."""

    def __init__(self, policy: LinearBandit, arms: int, eps: float, seed: int) -> None:
        self.policy, self._arms, self._eps, self._rng = policy, arms, eps, np.random.default_rng([11, seed])

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """By scores, or with probability eps any arm."""
        coins = Choice.draw(self._rng, 1, self._arms, self._eps, batch=len(contexts))
        return coins.pick(self.policy.scores(contexts[None], coins))[0]

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """One after the other."""
        self.policy.update(contexts[None], arms[None], rewards[None])


class WithoutContexts:
    """A policy of SAMBA, which looks at no context and takes rewards of 0 and 1."""

    def __init__(self, policy: ArmsOnly, seed: int) -> None:
        self.policy, self._done = policy, 0
        self._coins = SeededCoins(Seeds.of(seed), policy.arms)

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """One arm for each."""
        steps = range(self._done + 1, self._done + 1 + len(contexts))
        self._done += len(contexts)
        return np.array([self.policy.pull(t, self._coins) for t in steps], np.int64)

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """0 or 1 each."""
        if not np.isin(rewards, (0.0, 1.0)).all():
            raise ConfigError("policies of SAMBA learn from rewards of 0 and 1: play an environment that pays these")
        for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
            self.policy.update(arm, int(reward))


class OneRegression:
    """HELBA, on shares or in the clear: one regression for all arms, where arm a has the context in block a."""

    def __init__(self, policy: HELBA | EncryptedLinearBandit, arms: int) -> None:
        self.policy, self._arms = policy, arms

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """Of one context: a step waits for its reward."""
        if len(contexts) != 1:
            raise ConfigError(f"HELBA is paid before it decides again: play it with batch=1, not {len(contexts)}")
        features = np.kron(np.eye(self._arms), contexts)
        if isinstance(self.policy, HELBA):
            return np.array([self.policy.indices(features).argmax()])
        return np.array([self.policy.predict(features)])

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Of that step."""
        if isinstance(self.policy, HELBA):
            self.policy.learn(np.kron(np.eye(self._arms)[arms[0]], contexts[0]), float(rewards[0]))
        else:
            self.policy.learn(float(rewards[0]))


class Uniform:
    """Any arm, and nothing learned."""

    def __init__(self, arms: int, seed: int) -> None:
        self._arms, self._rng = arms, np.random.default_rng([12, seed])

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """Each as likely."""
        return self._rng.integers(self._arms, size=len(contexts))

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """It does not matter."""


def playable(policy: Any, arms: int, seed: int) -> Playable:
    """A policy as the loop asks it; ConfigError for what cannot be played.  seed: of its coins, where it has none."""
    if isinstance(policy, PrivateContextualBandit):
        return Private(policy)
    if isinstance(policy, LinearBandit):
        return Clear(policy, arms, 0.0, seed)
    if isinstance(policy, ArmsOnly):
        return WithoutContexts(policy, seed)
    if isinstance(policy, (HELBA, EncryptedLinearBandit)):
        return OneRegression(policy, arms)
    if isinstance(policy, Playable):
        return policy
    raise ConfigError(
        f"{type(policy).__name__} cannot be played: give a bandit of the library, a plaintext policy, or what has "
        "`choose` and `paid`"
    )


_Maker = Callable[[Environment, int, int, float], Playable]


def _private(kind: str, environment: Environment, steps: int, seed: int, eps: float) -> Playable:
    ends = float(min(0.0, environment.chances.min())), float(max(1.0, environment.chances.max()))
    return Private(
        PrivateContextualBandit(
            environment.arms, environment.dim, eps, policy=kind, parties=2, steps=steps, seed=seed, reward_range=ends
        )
    )


def _clear(made: Callable[..., LinearBandit], environment: Environment, steps: int, seed: int, eps: float) -> Playable:
    return Clear(made(1, environment.arms, environment.dim), environment.arms, eps, seed)


def _arms_only(name: str, environment: Environment, steps: int, seed: int, eps: float) -> Playable:
    return WithoutContexts(by_name(name, environment.arms, eps=eps), seed)


def _helba(private: bool, environment: Environment, steps: int, seed: int, eps: float) -> Playable:
    arms, dim = environment.arms, environment.arms * environment.dim
    constants = Constants(dim=dim, norm=1.0, theta_norm=float(environment.arms) ** 0.5, reward=1.0)
    if private:
        return OneRegression(EncryptedLinearBandit(Settings(constants, arms=arms, steps=steps), parties=2), arms)
    return OneRegression(HELBA(constants, Batches.PUBLIC), arms)


POLICIES: dict[str, _Maker] = {
    **{f"private {kind}": partial(_private, kind) for kind in ("epsilon-greedy", "linucb", "thompson")},
    "epsilon-greedy": partial(_clear, LinearBandit),
    "linucb": partial(_clear, LinUCB),
    "thompson": partial(_clear, ThompsonSampling),
    "private helba": partial(_helba, True),
    "helba": partial(_helba, False),
    **{f"samba {name}": partial(_arms_only, name) for name in NAMES},
    "uniform": lambda environment, steps, seed, eps: Uniform(environment.arms, seed),
}
"""Each policy by the name that an experiment gives it; "private" ones compute on shares of two parties."""


def make(name: str, environment: Environment, *, steps: int, seed: int, eps: float = 0.1) -> Playable:
    """The policy of this name, for so many steps on this environment."""
    if name not in POLICIES:
        raise ConfigError(f"there is no policy {name!r}: choose one of {', '.join(POLICIES)}")
    return POLICIES[name](environment, steps, seed, eps)
