"""What systems play by `masked run`, as environments of the one loop.  Knows each system's problem; no policy.

An episode is what the run of the same seed plays: who pulls the same arm in the same step is paid the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from bandits.coins import Noise
from bandits.environments import Episode, Episodic
from bandits.fixed_point import arm_words, reals, words
from bandits.helba import Constants, Problem, fresh, toy
from bandits.linear_problem import LinearProblem, ProblemError
from bandits.samba import BernoulliArms, SambaError, Seeds
from mpc.errors import ConfigError

from ..helba import Settings as HelbaSettings
from ..helba.game import Game
from ..linucb_ds.mpc.dealt_coins import own_coins
from ..linucb_ds.mpc.settings import Settings as LinearSettings
from ..linucb_ds.problems import LINUCB, SPECTRAL, made_up
from ..linucb_ds.problems import of as problem_of
from ..samba.data_arms import built_in

_ALWAYS = np.full(2, 0.5**0.5)  # the context where there is none: two owners have a feature each


@dataclass(frozen=True)
class OwnersArms:
    """Arms of owners that pay 1 with a chance each, else 0, as `masked run samba` has them; no contexts."""

    paid: BernoulliArms
    name: str = "samba"

    dim, ends = len(_ALWAYS), (0.0, 1.0)

    @classmethod
    def of(cls, means: Sequence[float] | np.ndarray) -> OwnersArms:
        """Arms that pay so often."""
        try:
            return cls(BernoulliArms(np.asarray(means, np.float64)))
        except SambaError as error:
            raise ConfigError(str(error)) from error

    @property
    def arms(self) -> int:
        """K."""
        return len(self.paid)

    def episode(self, steps: int, seed: int) -> Episode:
        """By the seed's coins of rewards, each by its arm and step."""
        own = Seeds.of(seed).rewards
        rows = [[self.paid.reward(own, arm, t) for arm in range(self.arms)] for t in range(1, steps + 1)]
        return _without_contexts(np.array(rows, np.float64), self.paid.means)


@dataclass(frozen=True)
class FixedArms:
    """Arms x that pay <x, theta> and noise, as `masked run linucb-ds` has them; no contexts.

    noise: how it is drawn; a step's is the same for all arms.
    """

    problem: LinearProblem
    noise: Noise = Noise.SIGN
    name: str = LINUCB

    dim = len(_ALWAYS)

    @classmethod
    def of(cls, arms: np.ndarray, theta: np.ndarray, name: str = LINUCB, noise: Noise = Noise.SIGN) -> FixedArms:
        """(K, d) arms and (d,) theta, with bounds that fit them.  name: of the system that has such a problem."""
        try:
            return cls(problem_of(name, np.asarray(arms, np.float64), np.asarray(theta, np.float64)), noise, name)
        except ProblemError as error:
            raise ConfigError(str(error)) from error

    @property
    def arms(self) -> int:
        """K."""
        return len(self.problem.arms)

    @property
    def ends(self) -> tuple[float, float]:
        """A mean, and the largest noise, a little rounded."""
        paid = self.problem.arms @ self.problem.theta
        most = self.problem.exploration.noise * self.noise.largest + 1e-6
        return float(paid.min() - most), float(paid.max() + most)

    def settings(self, steps: int) -> LinearSettings:
        """Of a run with arms shown, as all of them agree on."""
        return LinearSettings.of(self.problem, steps, noise=self.noise)

    def episode(self, steps: int, seed: int) -> Episode:
        """In the integers that the run computes with."""
        settings = self.settings(steps)
        scales, drawn = settings.scales, own_coins(settings, seed).noise
        paid = arm_words(self.problem.arms, scales) @ words(self.problem.theta, scales.theta)
        outcomes = reals(paid + words(drawn, scales.reward)[:, None], scales.reward)
        return _without_contexts(outcomes, self.problem.arms @ self.problem.theta)


@dataclass(frozen=True)
class UsersFeatures:
    """Users with features of every arm, as `masked run helba` has them; a context is these, arm by arm.

    few: the same few contexts again and again, as in the paper; else new ones each step.
    """

    constants: Constants
    arms: int = 2
    few: bool = True
    name: str = "helba"

    @property
    def dim(self) -> int:
        """Of all arms together."""
        return self.arms * self.constants.dim

    @property
    def ends(self) -> tuple[float, float]:
        """-R and R."""
        return -self.constants.reward, self.constants.reward

    def episode(self, steps: int, seed: int) -> Episode:
        """All drawn from the seed."""
        drawn = (toy if self.few else fresh)(self.constants, steps, seed, arms=self.arms)
        return Episode(drawn.features.reshape(steps, -1), drawn.rewards, drawn.means)


def features_of(contexts: np.ndarray, arms: int, dim: int) -> np.ndarray:
    """(n, arms, dim) features of every arm: those a context has, or the context in the arm's own block, else 0."""
    if contexts.shape[1] == arms * dim:
        return contexts.reshape(-1, arms, dim)
    return np.einsum("ab,nj->nabj", np.eye(arms), contexts).reshape(len(contexts), arms, -1)


def helba_settings(environment: Episodic, steps: int) -> HelbaSettings:
    """Those of its users; of contexts, each arm's own block makes the features, and theta is all arms' together."""
    arms = environment.arms
    if isinstance(environment, UsersFeatures):
        return HelbaSettings(environment.constants, arms, steps)
    most = max(map(abs, environment.ends))
    constants = Constants(dim=arms * environment.dim, norm=1.0, theta_norm=float(arms) ** 0.5, reward=most)
    return HelbaSettings(constants, arms, steps)


def users_problem(episode: Episode, settings: Game) -> Problem:
    """An episode as HELBA's users bring it."""
    return Problem(
        features_of(episode.contexts, settings.arms, settings.constants.dim), episode.means, episode.outcomes
    )


def _linear(name: str, arms: int, dim: int) -> Episodic:
    return FixedArms(made_up(name, arms=arms, dim=dim), name=name)


PROBLEMS: dict[str, Callable[[int, int], Episodic]] = {
    "samba": lambda arms, _: OwnersArms(built_in(arms)),
    LINUCB: partial(_linear, LINUCB),
    SPECTRAL: partial(_linear, SPECTRAL),
    "helba": lambda arms, dim: UsersFeatures(Constants(dim=dim), arms),
}
"""By a system's name, for so many arms and dimensions: what `masked run` of it plays if nothing else is named."""


def owned(environment: object, name: str) -> OwnersArms:
    """The environment, if arms that are simulated by their means can be played in it."""
    if isinstance(environment, OwnersArms):
        return environment
    raise ConfigError(f"{name} plays arms by their means: play it on the environment 'samba'")


def fixed(environment: object, name: str) -> FixedArms:
    """The environment, if a policy of fixed arms can play it."""
    if isinstance(environment, FixedArms):
        return environment
    raise ConfigError(
        f"{name} knows its arms by features that never change: play it on the environment {LINUCB!r} or {SPECTRAL!r}"
    )


def _without_contexts(outcomes: np.ndarray, means: np.ndarray) -> Episode:
    return Episode(np.tile(_ALWAYS, (len(outcomes), 1)), outcomes, np.broadcast_to(means, outcomes.shape))
