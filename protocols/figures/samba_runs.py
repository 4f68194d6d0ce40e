"""Rows of Figure 8 of the SAMBA paper: runs on the clock, in every mode, and what they earned."""

from __future__ import annotations

import time
from enum import Enum

import numpy as np

from bandits.samba import BernoulliArms, Policy, SeededCoins, Seeds, by_name, play
from mpc.errors import ConfigError

from ..bench import samba_mpc
from ..bench.samba_mpc import even_arms
from ..run.simulate import simulate
from ..samba.classic.messages import Spec
from ..samba.classic.run import play_classic
from ..samba.data_arms import Means, Ratings, rated
from ..samba.mpc.run import Federation
from ..samba.mpc.settings import Settings
from .size import Size
from .units import Rows

_POINTS = 12  # of a reward curve
_MARKS = 6  # of a time, from N / 2 to N


class Mode(Enum):
    """How a run is played."""

    PLAIN = "in the clear"
    CLASSIC = "as published"
    SHARES = "on shares"
    LAUNCHED = "as published, K + 3 processes"
    LAUNCHED_SHARES = "on shares, launched"


class Data(Enum):
    """Arms of a reward curve: whose ratings, and how their means are counted."""

    MOVIELENS = "MovieLens, the authors' files"
    JESTER = "Jester, the authors' files"
    MOVIELENS_TEXT = "MovieLens, the text's formula"
    JESTER_TEXT = "Jester, the text's formula"
    EVEN = "even"  # where it is about whether it runs


RATED = {
    Data.MOVIELENS: (Ratings.MOVIELENS, Means.FILES),
    Data.JESTER: (Ratings.JESTER, Means.FILES),
    Data.MOVIELENS_TEXT: (Ratings.MOVIELENS, Means.TEXT),
    Data.JESTER_TEXT: (Ratings.JESTER, Means.TEXT),
}


def label_of(spec: Spec) -> str:
    """A policy with the constant that counts."""
    more = {"epsilon-greedy": f" {spec.eps:g}", "softmax": f" {spec.tau:g}", "pursuit": f" {spec.beta:g}"}
    return spec.name + more.get(spec.name, "")


def spec_of(policy: str, data: Data) -> Spec:
    """With the constants that the paper found best for these arms."""
    jester = data in (Data.JESTER, Data.JESTER_TEXT)
    return Spec(policy, tau=0.02 if jester else 0.06, beta=0.2 if jester else 0.1)


def times(size: Size, data: Data, policy: str, count: int, mode: Mode, run: int) -> Rows:
    """Seconds of the steps that choose, after so many pulls; as published, of each participant in the whole run too."""
    spec, arms, pulls = spec_of(policy, data), _arms(size, data, count), max(size.steps, count + 12)
    clock = _Clock(count, pulls)
    row = {"data": data.value, "policy": policy, "K": count, "run": run, "mode": mode.value}
    spent: dict[str, float] = {}
    if mode is Mode.PLAIN:
        seeds = Seeds.of(run)
        for pulled, _ in enumerate(
            play(_policy(spec, count), arms, pulls, SeededCoins(seeds, count), seeds.rewards), 1
        ):
            clock(pulled)
    elif mode is Mode.SHARES:
        simulate(Federation(_settings(spec, count, pulls), 2, run, arms), seed=run, watch=clock)
    else:
        done = play_classic(
            spec, arms, pulls, seed=run, bits=size.bits, insecure=size.quick, watch=clock, reference=False
        )  # fmt: skip
        spent = {name: round(seconds, 6) for name, seconds in done.seconds.items()}
    rows = [
        {**row, "N": n, "seconds": round(seconds, 6), "processor_seconds": round(processor, 6)}
        for n, seconds, processor in clock.read()
    ]
    rows[-1].update(spent)
    return rows


def launched(size: Size, count: int, mode: Mode) -> Rows:
    """UCB with a process for each participant, at a tenth of N."""
    pulls = max(count + 12, size.steps // 10)
    steps = pulls - count
    if mode is Mode.LAUNCHED:
        done = play_classic(
            "ucb", even_arms(count), pulls, seed=1, processes=True, bits=size.bits, insecure=size.quick, reference=False
        )  # fmt: skip
        seconds = done.seconds_per_step * steps
    else:
        seconds = 1e-3 * samba_mpc.measure("ucb", count, steps).milliseconds * steps
    return [{
        "data": Data.EVEN.value, "policy": "ucb", "K": count, "run": 0, "mode": mode.value, "N": pulls,
        "seconds": round(seconds, 6),
    }]  # fmt: skip


class _Clock:
    """Is told how many pulls are done, and notes the time at some."""

    def __init__(self, arms: int, pulls: int) -> None:
        self._arms, self._began = arms, (0.0, 0.0)
        self._marks = {int(n) for n in np.linspace(pulls / 2, pulls, _MARKS) if n > arms + 1}
        self._found: list[tuple[int, float, float]] = []

    def __call__(self, done: int) -> None:
        if done <= self._arms + 1:  # the first step that chooses may be the first one that is told
            self._began = time.perf_counter(), time.process_time()
        elif done in self._marks:
            now = time.perf_counter(), time.process_time()
            self._found.append((done, now[0] - self._began[0], now[1] - self._began[1]))

    def read(self) -> list[tuple[int, float, float]]:
        """Pulls, seconds on the clock and of the processor."""
        return self._found


def rewards(size: Size, data: Data, spec: Spec, first: int, runs: int) -> Rows:
    """Cumulative reward after so many pulls, of each run; first both protocols must agree with their references."""
    arms = _arms(size, data)
    if size.steps < len(arms):
        raise ConfigError(f"{size.steps} pulls of {len(arms)} arms: give at least so many with --steps")
    _agree(size, arms, spec)
    at = np.unique(np.geomspace(len(arms), size.steps, _POINTS).astype(int))
    rows = []
    for number in range(first, first + runs):
        seeds = Seeds.of(number)
        steps = play(_policy(spec, len(arms)), arms, size.steps, SeededCoins(seeds, len(arms)), seeds.rewards)
        paid = np.cumsum([step.reward for step in steps])
        rows += [
            {"data": data.value, "policy": label_of(spec), "run": number, "N": int(n), "reward": int(paid[n - 1]),
             "best": round(float(n * arms.means.max()), 6), "random": round(float(n * arms.means.mean()), 6)}
            for n in at
        ]  # fmt: skip
    return rows


def _arms(size: Size, data: Data, count: int = 0) -> BernoulliArms:
    if data is Data.EVEN or size.folder is None:
        return even_arms(count or 8)
    return rated(*RATED[data], size.folder, count or 100)


def _policy(spec: Spec, arms: int) -> Policy:
    return by_name(spec.name, arms, eps=spec.eps, tau=spec.tau, beta=spec.beta)


def _agree(size: Size, arms: BernoulliArms, spec: Spec) -> None:
    pulls = len(arms) + (10 if size.quick else 100)
    published = play_classic(spec, arms, pulls, seed=1, bits=256, insecure=True)
    shares = simulate(Federation(_settings(spec, len(arms), pulls), 2, 1, arms), seed=1)
    if not (published.pulls_equal_reference and shares.equal):
        raise ConfigError(f"{label_of(spec)} and a protocol differ: the policy in the clear is no stand-in")


def _settings(spec: Spec, arms: int, pulls: int) -> Settings:
    return Settings(spec.name, arms, pulls, eps=spec.eps, tau=spec.tau, beta=spec.beta)
