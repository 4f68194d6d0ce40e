"""Random sequences of calls of the library, against a plain ridge regression: the same arms are pulled.

A sequence makes a bandit of two or three parties with 2 to 4 arms, named or numbered, and does what comes: predict one
context or several, as arrays or frames, among all arms or a few; learn late, in any order, sometimes of another arm
than was predicted; learn from logged rows; fit anew; add and remove arms; extend; forget; save and load.  The reference
keeps the rows that were learned from, solves the normal equations, and picks with the dealer's coins.  Where its two
best are closer than 2^-11, fixed point may order them otherwise; those are counted apart.  With --log each sequence is
a line of JSON in a file, and the same command goes on behind the last one.

examples:
  scripts/library_sequences                      1,000 sequences of 40 calls
  scripts/library_sequences --log lines.jsonl    the same, to be stopped and gone on with
  scripts/library_sequences --sequences 20       a short form
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError
from mpc.extras import installed

from ..ppcb import PrivateContextualBandit
from ..run.exits import exit_codes
from ..run.progress import Progress
from .lines import keep, kept

_NEAR = 2.0**-11
_DIM = 4
_COLUMNS = ["age", "dose", "pressure", "weight"]
_NAMES: list[Hashable] = ["aspirin", ("statin", 20), 3.5, "none", "rest", 17, "walk", ("a", "b"), "tea", "sleep"]
_CALLS = {
    "predict": 10, "learn": 10, "logged": 3, "overridden": 2, "add": 1, "remove": 1, "save": 1, "extend": 1,
    "forget": 1, "fit": 1,
}  # fmt: skip


class Ridge:
    """Rows by arm, and the weights that follow from all of them together."""

    def __init__(self) -> None:
        self.rows: dict[Hashable, list[tuple[np.ndarray, float]]] = {}

    def learn(self, arm: Hashable, x: np.ndarray, reward: float) -> None:
        """A row of an arm that is still there."""
        if arm in self.rows:
            self.rows[arm].append((x, reward))

    def scores(self, x: np.ndarray, arms: list[Hashable]) -> np.ndarray:
        """(contexts, arms): (I + X'X)^-1 X'r, times each context."""
        weights = []
        for arm in arms:
            rows = np.array([row for row, _ in self.rows[arm]]).reshape(-1, _DIM)
            paid = np.array([reward for _, reward in self.rows[arm]])
            weights.append(np.linalg.solve(np.eye(_DIM) + rows.T @ rows, rows.T @ paid))
        return x @ np.array(weights).T


@dataclass
class Found:
    """arms: how many were pulled.  near: of them, how many differ where scores nearly tie.  wrong: differ elsewhere."""

    arms: int = 0
    near: int = 0
    wrong: int = 0
    calls: Counter[str] = field(default_factory=Counter)

    def add(self, other: Found) -> None:
        """Of another sequence."""
        self.arms, self.near, self.wrong = self.arms + other.arms, self.near + other.near, self.wrong + other.wrong
        self.calls += other.calls


class Sequence:
    """One bandit, its reference, and what waits for a reward."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.rng, self.folder, self.found = np.random.default_rng([7, seed]), folder, Found()
        count = int(self.rng.integers(2, 5))
        self.named = bool(self.rng.integers(2))
        self.framed = bool(self.rng.integers(2)) and installed("pandas")
        which: dict[str, Any] = {"arms": _NAMES[:count]} if self.named else {"n_arms": count}
        self.bandit = PrivateContextualBandit(
            **which, dim=_DIM, eps=float(self.rng.choice([0.0, 0.2])), parties=int(self.rng.integers(2, 4)), steps=60,
            seed=seed,
        )  # fmt: skip
        self.reference, self.next_name = Ridge(), count
        self.reference.rows = {arm: [] for arm in self.bandit.arms}
        self.waiting: dict[int, tuple[np.ndarray, Hashable]] = {}
        self.unchecked: list[tuple[np.ndarray, list[Hashable], list[Hashable]]] = []

    def play(self, calls: int) -> Found:
        """So many calls, each drawn by its weight."""
        names, weights = list(_CALLS), np.array(list(_CALLS.values()), float)
        for name in self.rng.choice(names, size=calls, p=weights / weights.sum()):
            self.found.calls[str(name)] += 1
            getattr(self, f"_{name}")()
        self._check()
        self.bandit.close()
        return self.found

    def _contexts(self, count: int) -> tuple[np.ndarray, Any]:
        """Rows, and the same as this sequence gives them."""
        x = self.rng.normal(size=(count, _DIM))
        x *= self.rng.random((count, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
        if not self.framed:
            return x, x if count > 1 else x[0]
        import pandas

        return x, pandas.DataFrame(x, columns=_COLUMNS)

    def _some(self, least: int = 1) -> list[Hashable]:
        arms = list(self.bandit.arms)
        chosen = self.rng.permutation(len(arms))[: self.rng.integers(least, len(arms) + 1)]
        return [arms[at] for at in sorted(chosen.tolist())]

    def _predict(self) -> None:
        x, given = self._contexts(int(self.rng.integers(1, 5)))
        among = self._some(2) if self.rng.random() < 0.3 else list(self.bandit.arms)
        told = self.bandit.predict(given, among if len(among) < len(self.bandit.arms) else None)
        arms = [told.arm] if np.ndim(told.decision_id) == 0 else told.arm.tolist()
        self.unchecked.append((self.reference.scores(x, among), among, arms))
        for row, arm, decision in zip(x, arms, np.atleast_1d(told.decision_id).tolist(), strict=True):
            self.waiting[decision] = row, arm

    def _paid(self) -> tuple[list[int], np.ndarray]:
        most = min(len(self.waiting), 4)
        which = self.rng.permutation(list(self.waiting))[:most].tolist()
        room = max(0, self.bandit.settings.steps - self.bandit.learned)
        return which[:room], self.rng.integers(0, 2, min(most, room)).astype(float)

    def _learn(self, other: bool = False) -> None:
        which, rewards = self._paid()
        if not which:
            return
        arms = [self.waiting[decision][1] for decision in which]
        if other:
            present = list(self.bandit.arms)
            arms = [present[self.rng.integers(len(present))] for _ in arms]
        self.bandit.learn(decision_id=which, reward=rewards, action=arms if other else None)
        for decision, arm, reward in zip(which, arms, rewards.tolist(), strict=True):
            self.reference.learn(arm, self.waiting.pop(decision)[0], reward)

    def _overridden(self) -> None:
        self._learn(other=True)

    def _rows(self, count: int) -> tuple[list[Hashable], np.ndarray, np.ndarray, Any]:
        x, given = self._contexts(count)
        arms = [self.bandit.arms[at] for at in self.rng.integers(len(self.bandit.arms), size=count)]
        return arms, self.rng.integers(0, 2, count).astype(float), x, given

    def _logged(self) -> None:
        if self.bandit.learned + 3 > self.bandit.settings.steps:
            return
        arms, rewards, x, given = self._rows(3)
        self.bandit.partial_fit(arms, rewards, given)
        for arm, row, reward in zip(arms, x, rewards.tolist(), strict=True):
            self.reference.learn(arm, row, reward)

    def _fit(self) -> None:
        arms, rewards, x, given = self._rows(3)
        self.bandit.fit(arms, rewards, given)
        self.reference.rows, self.waiting = {arm: [] for arm in self.bandit.arms}, {}
        for arm, row, reward in zip(arms, x, rewards.tolist(), strict=True):
            self.reference.learn(arm, row, reward)

    def _add(self) -> None:
        if self.next_name < len(_NAMES) and len(self.bandit.arms) < 5:
            name = _NAMES[self.next_name] if self.named else None
            self.next_name += 1
            self.reference.rows[self.bandit.add_arm(name)] = []

    def _remove(self) -> None:
        if len(self.bandit.arms) > 2:
            arm = self.bandit.arms[self.rng.integers(len(self.bandit.arms))]
            self.bandit.remove_arm(arm)
            del self.reference.rows[arm]

    def _extend(self) -> None:
        self.bandit.extend(self.bandit.settings.steps + 20)

    def _forget(self) -> None:
        if self.waiting:
            decision = next(iter(self.waiting))
            self.bandit.forget(decision)
            del self.waiting[decision]

    def _save(self) -> None:
        self._check()
        self.bandit.save(self.folder)
        self.bandit.close()
        self.bandit = PrivateContextualBandit.load(self.folder, seed=int(self.rng.integers(1 << 30)))

    def _check(self) -> None:
        """Every arm of this object so far, by the coins that its dealer drew."""
        for (scores, among, arms), coins in zip(self.unchecked, self.bandit.coins(), strict=True):
            ranks = coins.ranks(scores[None])[0]
            picked = coins.pick(scores[None])[0].tolist()
            for row, at, arm in zip(ranks, picked, arms, strict=True):
                self.found.arms += 1
                if among[at] != arm:
                    near = bool(abs(row[at] - row[among.index(arm)]) < _NEAR)
                    self.found.near += near
                    self.found.wrong += not near
        self.unchecked = []


def campaign(sequences: int, calls: int, seed: int, log: Path | None = None) -> Found:
    """All of them, but for those that the log has; where they stand goes to stderr."""
    found, progress, played = Found(), Progress(sequences, "sequence"), _played(log)
    for at in range(sequences):
        if (one := played.get((seed + at, calls))) is None:
            with tempfile.TemporaryDirectory() as folder:
                one = Sequence(seed + at, Path(folder)).play(calls)
            keep(log, {"seed": seed + at, "of": calls, **vars(one)})
        found.add(one)
        progress(at + 1)
    progress.end()
    return found


def _played(log: Path | None) -> dict[tuple[int, int], Found]:
    """By the seed of each and its number of calls."""
    try:
        return {
            (said.pop("seed"), said.pop("of")): Found(**{**said, "calls": Counter(said["calls"])}) for said in kept(log)
        }
    except (KeyError, TypeError, ValueError):
        raise ConfigError(f"{log} is no log of this campaign: name another --log") from None


def main() -> None:
    """Play, compare, print."""
    parser = argparse.ArgumentParser(
        prog="scripts/library_sequences", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sequences", type=int, default=1000, help="how many (1000)")
    parser.add_argument("--calls", type=int, default=40, help="of each (40)")
    parser.add_argument("--seed", type=int, default=1, help="of the first; the others follow (1)")
    parser.add_argument("--log", type=Path, help="append each as a line of JSON; those that it has are not played")
    options = parser.parse_args()
    with exit_codes():
        found = campaign(options.sequences, options.calls, options.seed, options.log)
        listed = ", ".join(f"{count:,} {name}" for name, count in sorted(found.calls.items()))
        print(f"{options.sequences:,} sequences of {options.calls} calls: {listed}")
        print(f"{found.arms:,} arms: {found.wrong} differ from the reference, and {found.near} more at a near tie")
        if found.wrong:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
