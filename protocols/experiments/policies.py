"""What pulls arm by arm: a system's library object, or a policy in the clear, behind one pair of calls.

    choose(contexts) -> arms          paid(contexts, arms, rewards)

Knows systems; no table.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, Protocol, runtime_checkable

import numpy as np

from bandits.coins import Coins
from bandits.environments import Episodic
from bandits.helba import HELBA
from bandits.linear import Choice, LinearBandit
from bandits.oful import OFUL
from bandits.samba import Policy as ArmsOnly
from bandits.samba import SeededCoins, Seeds
from mpc.errors import ConfigError

from ..helba import EncryptedLinearBandit
from ..ppcb import PrivateContextualBandit
from .problems import features_of


@runtime_checkable
class Playable(Protocol):
    """What the loop asks of a policy."""

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """(contexts,) arms for (contexts, dim)."""

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Learn what these arms paid, after each `choose`."""


class _Made:
    """What is made for so many arms.  dims: how many features of a context it takes; any where none are said."""

    def __init__(self, arms: int, *dims: int) -> None:
        self._arms, self._dims = arms, dims

    def check(self, environment: Episodic) -> None:
        """ConfigError for an environment of others."""
        if self._arms != environment.arms:
            raise ConfigError(
                f"the policy has {self._arms} arms, and {environment.name} pays {environment.arms}: make one for these"
            )
        if self._dims and environment.dim not in self._dims:
            raise ConfigError(
                f"the policy takes contexts of {' or '.join(map(str, self._dims))} features, and those of "
                f"{environment.name} have {environment.dim}: make one for these"
            )


class Private(_Made):
    """A bandit of the library, all its parties in this process; arms with names are places among those it has."""

    def __init__(self, bandit: PrivateContextualBandit) -> None:
        super().__init__(len(bandit.arms), bandit.dim)
        self.bandit, self._place = bandit, {arm: at for at, arm in enumerate(bandit.arms)}
        self._decisions: Any = None

    def check(self, environment: Episodic) -> None:
        """Numbers are the environment's own."""
        super().check(environment)
        others = [(arm, at) for arm, at in self._place.items() if arm != at]
        if others and all(isinstance(arm, Integral) for arm in self._place):
            arm, at = others[0]
            raise ConfigError(
                f"{environment.name} pays arms 0 to {self._arms - 1}, and the policy has arm {arm} in place of {at}: "
                "make one of which none was removed, or with names that are no numbers"
            )

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """By secret shares."""
        told = self.bandit.predict(contexts)
        self._decisions = told.decision_id
        return np.array([self._place[arm] for arm in told.arm], np.int64)

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """By the numbers of these decisions."""
        self.bandit.learn(decision_id=self._decisions, reward=rewards)


class Clear(_Made):
    """A plaintext policy with a regression for each arm, and coins of its own."""

    def __init__(self, policy: LinearBandit, eps: float, seed: int) -> None:
        replicas, arms, dim = policy.weights.shape
        if replicas != 1:
            raise ConfigError(f"an episode is played by 1 replica, not by {replicas}: make a policy of 1")
        super().__init__(arms, dim)
        self.policy, self._eps, self._rng = policy, eps, np.random.default_rng([11, seed])

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """By scores, or with probability eps any arm."""
        coins = Choice.draw(self._rng, 1, self._arms, self._eps, batch=len(contexts))
        return coins.pick(self.policy.scores(contexts[None], coins))[0]

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """One after the other."""
        self.policy.update(contexts[None], arms[None], rewards[None])


class WithoutContexts(_Made):
    """A policy of SAMBA, which looks at no context and takes rewards of 0 and 1."""

    def __init__(self, policy: ArmsOnly, seed: int) -> None:
        super().__init__(policy.arms)
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


class OneRegression(_Made):
    """HELBA, on shares or in the clear: one regression for all arms, by `features_of` a context."""

    def __init__(self, policy: HELBA | EncryptedLinearBandit, arms: int) -> None:
        own = policy.settings.constants if isinstance(policy, EncryptedLinearBandit) else policy.constants
        super().__init__(arms, *([own.dim // arms] if own.dim % arms == 0 else []), arms * own.dim)
        self.policy, self._dim = policy, own.dim

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """Of one context: a step waits for its reward."""
        if len(contexts) != 1:
            raise ConfigError(f"HELBA is paid before it decides again: play it with batch=1, not {len(contexts)}")
        features = features_of(contexts, self._arms, self._dim)[0]
        if isinstance(self.policy, HELBA):
            return np.array([self.policy.indices(features).argmax()])
        return np.array([self.policy.predict(features)])

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Of that step."""
        if isinstance(self.policy, HELBA):
            self.policy.learn(features_of(contexts, self._arms, self._dim)[0, arms[0]], float(rewards[0]))
        else:
            self.policy.learn(float(rewards[0]))


class FixedFeatures(_Made):
    """LinUCB or SpectralUCB, which look at their arms and at no context.  coins: the first arm, and ties."""

    def __init__(self, policy: OFUL, coins: Coins) -> None:
        super().__init__(len(policy.arms))
        self.policy, self._coins = policy, coins

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """Of one step, which waits for its reward."""
        if len(contexts) != 1:
            raise ConfigError(f"LinUCB-DS is paid before it decides again: play it with batch=1, not {len(contexts)}")
        done = self.policy.pulls
        if done >= self._coins.budget:
            raise ConfigError(f"all {done:,} steps that coins were drawn for are played: make a policy for more")
        return np.array([self.policy.pull(self._coins.ties[done]) if done else self._coins.first])

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Of that step."""
        self.policy.update(int(arms[0]), float(rewards[0]))


class Uniform(_Made):
    """Any arm, and nothing learned."""

    def __init__(self, arms: int, seed: int) -> None:
        super().__init__(arms)
        self._rng = np.random.default_rng([12, seed])

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        """Each as likely."""
        return self._rng.integers(self._arms, size=len(contexts))

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """It does not matter."""


def playable(policy: Any, environment: Episodic, seed: int) -> Playable:
    """A policy as the loop asks it; ConfigError for what cannot be played.  seed: of its coins, where it has none."""
    player = _player(policy, environment.arms, seed)
    if isinstance(player, _Made):
        player.check(environment)
    return player


def _player(policy: Any, arms: int, seed: int) -> Playable:
    if isinstance(policy, PrivateContextualBandit):
        return Private(policy)
    if isinstance(policy, LinearBandit):
        return Clear(policy, 0.0, seed)
    if isinstance(policy, ArmsOnly):
        return WithoutContexts(policy, seed)
    if isinstance(policy, EncryptedLinearBandit):
        return OneRegression(policy, policy.settings.arms)
    if isinstance(policy, HELBA):
        return OneRegression(policy, arms)
    if isinstance(policy, Playable):
        return policy
    raise ConfigError(
        f"{type(policy).__name__} cannot be played: give a bandit of the library, a plaintext policy, or what has "
        "`choose` and `paid`"
    )
