"""An adversary who knows the public distribution of contexts alone: it plays bandits of its own and watches the arms.

    likelihood of x from arm a = mean of pi(a | x) over its bandits / mean of pi(a | y) over them and public contexts y

Both means count one bandit more that chooses uniformly, so no arm is impossible.
"""

from __future__ import annotations

import numpy as np

from ..choice import arm_probabilities
from ..environments import Environment
from ..linear import Choice
from .game import Learner

_BANDITS = 16
_SAMPLE = 64  # public contexts that stand for the distribution


class Outsider:
    """Bandits on public rows of an environment, whose rewards the outsider can draw."""

    def __init__(
        self, environment: Environment, public: np.ndarray, eps: float, learner: Learner, rng: np.random.Generator
    ) -> None:
        self._environment, self._public, self._eps, self._rng = environment, public, eps, rng
        self._policy = learner(_BANDITS)
        self._sample = environment.contexts[rng.permutation(public)[:_SAMPLE]]

    def likelihoods(self, contexts: np.ndarray) -> np.ndarray:
        """(contexts, arms): how many times as likely an arm is for this context as for a public one, at this step."""
        asked = np.concatenate([contexts, self._sample])
        scores = self._policy.scores(np.broadcast_to(asked, (_BANDITS, *asked.shape)), self._coins())
        arms = scores.shape[-1]
        means = (arm_probabilities(scores, self._eps).sum(axis=0) + 1.0 / arms) / (_BANDITS + 1)
        return np.asarray(means[: len(contexts)] / means[len(contexts) :].mean(axis=0))

    def learn(self) -> None:
        """One step of the outsider's own bandits."""
        rows = self._rng.choice(self._public, (_BANDITS, 1))
        x, choice = self._environment.contexts[rows], self._coins()
        arms = choice.pick(self._policy.scores(x, choice))
        paid = self._rng.random(arms.shape) < self._environment.chances[rows, arms]
        self._policy.update(x, arms, paid.astype(np.float64))

    def _coins(self) -> Choice:
        return Choice.draw(self._rng, _BANDITS, self._environment.arms, self._eps)
