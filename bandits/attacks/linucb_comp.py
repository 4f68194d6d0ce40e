"""Comp of LinUCB-DS, who is to see indices of permuted arms only, finds everything out.  Knows public arms; numpy only.

Comp decrypts a list of B_i = <x_i, A^-1 b> + omega |x_i|_(A^-1) in each step.  Arms and constants are public, so for a
guess of the arm pulled before, A is known and b = (what is known) + r x has one unknown:

    sum of the list  = r <sum x_i, A^-1 x> + known      gives the reward r
    the sorted list  = the sorted indices that follow   confirms the guess, and matching both gives the permutation

The first arm has K guesses.  Later ones have one, or a few where indices tie: the arm at the place that Comp itself
answered.  The arm of the last list is known as well, its reward is not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..linear_problem import Exploration

_TIE = 1e-6  # indices this close could be confused, so both arms are tried
_SAME = 1e-5  # how far apart two rewards of equal sign may lie


@dataclass(frozen=True)
class Recovered:
    """arms: (N,) pulled ones.  rewards: (N - 1,).  orders: (N - 1, K), which arm stands where in each list.

    mismatch: (N - 1,), the largest difference of a sorted list and the predicted one; rounding, if all is right.
    theta: (d,), by regression on what was recovered.
    """

    arms: np.ndarray
    rewards: np.ndarray
    orders: np.ndarray
    mismatch: np.ndarray
    theta: np.ndarray


def recover(lists: np.ndarray, arms: np.ndarray, exploration: Exploration) -> Recovered:
    """From (N - 1, K) decrypted lists, in reals."""
    gram = np.diag(exploration.regulariser(arms.shape[1]))
    sums = np.zeros(arms.shape[1])
    guesses = np.arange(len(arms))
    pulled, rewards, orders, mismatch = [], [], [], []
    for pulls, seen in enumerate(lists, start=1):
        omega = exploration.omega(pulls, arms.shape[1])
        arm, reward, indices = _best_guess(seen, arms, gram, sums, omega, guesses)
        pulled.append(arm)
        rewards.append(reward)
        gram = gram + np.outer(arms[arm], arms[arm])
        sums = sums + reward * arms[arm]
        order = np.empty(len(arms), np.int64)
        order[seen.argsort(kind="stable")] = indices.argsort(kind="stable")
        orders.append(order)
        mismatch.append(float(np.abs(np.sort(seen) - np.sort(indices)).max()))
        guesses = np.nonzero(indices >= indices.max() - _TIE)[0]
    pulled.append(int(guesses[0]))
    found = np.array(pulled), np.array(rewards), np.array(orders), np.array(mismatch)
    return Recovered(*found, theta=_regression(arms[found[0][:-1]], found[1]))


def without_signs(recovered: Recovered, arms: np.ndarray, noise: float) -> np.ndarray | None:
    """theta without the noise, where that is a sign times `noise`: the mean of an arm's two rewards is what it pays.

    None where such arms do not span all dimensions.
    """
    means: dict[int, float] = {}
    for arm in np.unique(recovered.arms[:-1]).tolist():
        paid = recovered.rewards[recovered.arms[:-1] == arm]
        if abs(float(np.ptp(paid)) - 2.0 * noise) < _SAME:
            means[arm] = float(paid.max() + paid.min()) / 2.0
    rows = arms[list(means)]
    if not means or np.linalg.matrix_rank(rows) < arms.shape[1]:
        return None
    return np.asarray(np.linalg.lstsq(rows, np.array(list(means.values())), rcond=None)[0])


def _best_guess(
    seen: np.ndarray, arms: np.ndarray, gram: np.ndarray, sums: np.ndarray, omega: float, guesses: np.ndarray
) -> tuple[int, float, np.ndarray]:
    """The arm that explains a list best, its reward, and the indices by arm that follow."""
    found = []
    ranked = np.sort(seen)
    for arm in guesses.tolist():
        x = arms[arm]
        inverse = np.linalg.inv(gram + np.outer(x, x))
        known = arms @ (inverse @ sums) + omega * np.sqrt(np.maximum(((arms @ inverse) * arms).sum(axis=1), 0.0))
        slopes = arms @ (inverse @ x)
        reward = _reward(seen, known, slopes)
        indices = known + reward * slopes
        found.append((float(np.abs(np.sort(indices) - ranked).max()), arm, reward, indices))
    _, arm, reward, indices = min(found, key=lambda guess: guess[0])
    return arm, reward, indices


def _reward(seen: np.ndarray, known: np.ndarray, slopes: np.ndarray) -> float:
    """From the sum of the list; from the sum of its squares where arms cancel out in the sum."""
    total = slopes.sum()
    if abs(total) > 1e-6 * np.abs(slopes).sum():
        return float((seen.sum() - known.sum()) / total)
    square, linear = float(slopes @ slopes), float(known @ slopes)
    inner = max(0.0, linear**2 - square * float(known @ known - seen @ seen))
    roots = [(-linear + sign * inner**0.5) / square for sign in (1.0, -1.0)] if square else [0.0]
    ranked = np.sort(seen)
    return min(roots, key=lambda root: float(np.abs(np.sort(known + root * slopes) - ranked).max()))


def _regression(contexts: np.ndarray, rewards: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.lstsq(contexts, rewards, rcond=None)[0])
