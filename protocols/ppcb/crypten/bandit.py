"""One party's part of Algorithm 1 as CrypTen computes it.  Knows CrypTensors; no coin, no clock.

    s_a = w_a . x;  where y says to explore, drawn scores instead;  o = one-hot argmax of s
    u_a = P_a x;  P_a -= o_a u_a u_a' / (1 + x'u_a);  b_a += o_a r x;  w_a = P_a b_a          for every arm a

CrypTen's own example of it is written for an earlier version and does not run with 0.4.1.  What it fixes is taken from
it: 20 fraction bits, 7 Newton iterations for the reciprocal, before which CrypTen finds the sign.  The rest is as
CrypTen has it by default, above all its argmax (log_reduction) and its provider, TrustedFirstParty, which has party 0
deal the correlated randomness inside the call.  The example also opens each reward for its log; that is left out.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from mpc import ring

METHODS = ("log_reduction", "double_log_reduction", "accelerated_cascade", "pairwise")


def configured(
    *, bits: int = 20, newton: int = 7, method: str = METHODS[0], known_sign: bool = False
) -> dict[str, Any]:
    """CrypTen's configuration.  known_sign: it is told that 1 + x'u is positive, which its example does not do."""
    return {
        "encoder.precision_bits": bits, "functions.reciprocal_nr_iters": newton, "functions.max_method": method,
        "functions.reciprocal_all_pos": known_sign,
    }  # fmt: skip


def shared(crypten: ModuleType, values: np.ndarray, owner: int) -> Any:
    """A CrypTensor of the owner's values, rounded as our inputs are; the others' matter for their shape only."""
    scale = 2.0**crypten.cfg.encoder.precision_bits
    return crypten.cryptensor(ring.as_torch(np.rint(values * scale) / scale), src=owner)


def pick(scores: Any, explore: Any, drawn: Any) -> Any:
    """[one-hot of the best arm] of the scores, or of those that were drawn where `explore` is 1."""
    return (scores * (1 - explore) + drawn * explore).argmax(one_hot=True)


class CryptenBandit:
    """The regressions of all arms; P is symmetric, and every party knows what it starts as."""

    def __init__(self, crypten: ModuleType, arms: int, dim: int, *, ridge: float = 1.0) -> None:
        self.inverse = shared(crypten, np.tile(np.eye(dim) / ridge, (arms, 1, 1)), 0)
        self.rewarded = shared(crypten, np.zeros((arms, dim)), 0)
        self.weights = shared(crypten, np.zeros((arms, dim)), 0)

    def scores(self, x: Any) -> Any:
        """[w_a . x] of all arms."""
        return self.weights.matmul(x)

    def learn(self, x: Any, onehot: Any, reward: Any) -> None:
        """Sherman and Morrison for every arm, of which the one-hot lets one through."""
        u = self.inverse.matmul(x)
        outer = u.unsqueeze(1) * u.unsqueeze(2)
        gain = outer * (u.matmul(x) + 1).view(-1, 1, 1).reciprocal()
        self.inverse -= gain * onehot.view(-1, 1, 1)
        self.rewarded += (x * reward).unsqueeze(0) * onehot.unsqueeze(1)
        self.weights = self.rewarded.unsqueeze(1).matmul(self.inverse).squeeze(1)
