"""Figure 8 of the SAMBA paper: what each panel runs, and on how much.

a  time of a run against N, K = 100, two data sets   in the clear, as published, on shares; launched at a tenth of N
b  time of a run against K, two data sets            in the clear, as published, on shares
c  cumulative reward against N, two data sets,       in the clear, after agreement with both protocols
   with means as the text has them, and as the arm files of its authors
d  share of each participant's computing time        as published, K = 10 and 100

A run of N pulls passes all smaller N, so its clock is read there; panels a, b and d have runs in common.  A run plays
all participants in one process, on shares two computing parties with their dealer; keys and the sum are not in a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from enum import Enum

import numpy as np

from bandits.samba import NAMES, BernoulliArms, Policy, SeededCoins, Seeds, by_name, play
from mpc.errors import ConfigError

from ..bench import samba_mpc
from ..bench.samba_mpc import even_arms
from ..run.simulate import simulate
from ..samba.classic.messages import Spec
from ..samba.classic.run import play_classic
from ..samba.data_arms import Means, Ratings, rated
from ..samba.mpc.run import Federation
from ..samba.mpc.settings import Settings
from .making import Figure, FigureSet
from .samba_plots import draw
from .size import Size
from .units import Rows, Unit

FIGURES = ("a", "b", "c", "d")
_POINTS = 12  # of a reward curve
_MARKS = 6  # of a time, from N / 2 to N
_RUNS = 10  # of a unit
_SHARED = "runs"  # the folder of what panels a, b and d have in common


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


_RATED = {
    Data.MOVIELENS: (Ratings.MOVIELENS, Means.FILES),
    Data.JESTER: (Ratings.JESTER, Means.FILES),
    Data.MOVIELENS_TEXT: (Ratings.MOVIELENS, Means.TEXT),
    Data.JESTER_TEXT: (Ratings.JESTER, Means.TEXT),
}


PLAYED = (
    Spec("epsilon-greedy"), Spec("epsilon-decreasing"), Spec("ucb"), Spec("thompson"), Spec("softmax", tau=0.06),
    Spec("softmax", tau=0.02), Spec("pursuit", beta=0.1), Spec("pursuit", beta=0.2),
)  # fmt: skip


def label_of(spec: Spec) -> str:
    """A policy with the constant that counts."""
    more = {"epsilon-greedy": f" {spec.eps:g}", "softmax": f" {spec.tau:g}", "pursuit": f" {spec.beta:g}"}
    return spec.name + more.get(spec.name, "")


def spec_of(policy: str, data: Data) -> Spec:
    """With the constants that the paper found best for these arms."""
    jester = data in (Data.JESTER, Data.JESTER_TEXT)
    return Spec(policy, tau=0.02 if jester else 0.06, beta=0.2 if jester else 0.1)


def _timed(size: Size, arms: Sequence[int], modes: Sequence[Mode]) -> Iterator[Unit]:
    """Runs on the clock, by number of run, so that all is there once, then twice."""
    sets = (Data.EVEN,) if size.folder is None else (Data.MOVIELENS_TEXT, Data.JESTER_TEXT)
    for run in range(size.runs):
        for count in arms:
            for data in sets:
                for policy in ("ucb", "pursuit") if size.quick else NAMES:
                    for mode in modes:
                        if mode is not Mode.SHARES or (run == 0 and data is sets[0]):  # rounds do not depend on means
                            name = f"{mode.name.lower()}-{data.name.lower()}-{policy}-{count}-run-{run}"
                            passes = 2 if policy == "pursuit" else 1
                            weight = {Mode.PLAIN: 4.0, Mode.CLASSIC: 15.0 + count, Mode.SHARES: 120.0 + 3 * count}[mode]
                            yield Unit(name, times, (size, data, policy, count, mode, run), weight=passes * weight)


def _sizes(size: Size) -> tuple[int, ...]:
    return (4,) if size.quick else (10, 25, 50, 100)


def _a(size: Size) -> Iterator[Unit]:
    yield from _timed(size, _sizes(size)[-1:], (Mode.PLAIN, Mode.CLASSIC, Mode.SHARES))
    for mode in (Mode.LAUNCHED, Mode.LAUNCHED_SHARES):
        yield Unit(f"{mode.name.lower()}-ucb", launched, (size, _sizes(size)[-1], mode), weight=100.0)


def _b(size: Size) -> Iterator[Unit]:
    yield from _timed(size, _sizes(size), (Mode.PLAIN, Mode.CLASSIC, Mode.SHARES))


def _c(size: Size) -> Iterator[Unit]:
    for data in (Data.EVEN,) if size.folder is None else _RATED:
        for spec in PLAYED[2:4] if size.quick else PLAYED:
            for first in range(0, size.runs, _RUNS):
                runs = min(_RUNS, size.runs - first)
                name = f"{data.name.lower()}-{label_of(spec).replace(' ', '-')}-runs-{first}-to-{first + runs - 1}"
                yield Unit(
                    name, rewards, (size, data, spec, first, runs), weight=6.0 if spec.name == "thompson" else 1.0
                )


def _d(size: Size) -> Iterator[Unit]:
    yield from _timed(size, (_sizes(size)[0], _sizes(size)[-1])[: 1 if size.quick else 2], (Mode.CLASSIC,))


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
    return rated(*_RATED[data], size.folder, count or 100)


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


_FOLDER = "this panel is on MovieLens and Jester: name the folder of their folders"

FIGURE_SET = FigureSet(
    "samba",
    "the panels of SAMBA's figure 8 are a, b, c and d",
    {
        "a": Figure("8a", _a, _FOLDER, runs=5, timed=True, kept=_SHARED, minutes=190),
        "b": Figure("8b", _b, _FOLDER, runs=5, timed=True, kept=_SHARED, minutes=210),
        "c": Figure("8c", _c, _FOLDER, minutes=110),
        "d": Figure("8d", _d, _FOLDER, runs=5, timed=True, kept=_SHARED),
    },
    draw,
    {"steps": (100_000, 120), "runs": (50, 2)},
)
