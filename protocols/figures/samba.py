"""Figure 8 of the SAMBA paper: what each panel runs, and on how much.

a  time of a run against N for six policies     in the clear, as published (in one process; launched), on shares
b  time of a step against K for six policies    in the clear, as published (in one process), on shares
c  cumulative reward against N, two data sets,  in the clear, after agreement with both protocols
   with means as the text has them, and as the arm files of its authors
d  share of each participant's computing time   as published

On shares: two computing parties, a process for all owners, and DC, on material dealt beforehand.  The paper's own pages
were not at hand: sizes are ours.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from enum import Enum

import numpy as np

from bandits.samba import NAMES, BernoulliArms, Policy, SeededCoins, Seeds, by_name, play
from mpc.errors import ConfigError

from ..bench import samba_mpc
from ..bench.samba import plain_seconds
from ..bench.samba_mpc import even_arms
from ..run.simulate import simulate
from ..samba.classic.messages import Spec
from ..samba.classic.run import ClassicRun, play_classic
from ..samba.data_arms import Means, Ratings, rated
from ..samba.mpc.run import Federation
from ..samba.mpc.settings import Settings
from .making import Figure, FigureSet
from .samba_plots import draw
from .size import Size
from .units import Rows, Unit

FIGURES = ("a", "b", "c", "d")
ARMS = 10
_POINTS = 12  # of a reward curve
_RUNS = 10  # of a unit
_TRIES = 3  # of what one process does: the quickest counts


class Mode(Enum):
    """How a run is played."""

    PLAIN = "in the clear"
    CLASSIC = "classic, one process"
    LAUNCHED = "classic, K + 3 processes"
    SHARES = "mpc, launched"


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


def _a(size: Size) -> Iterator[Unit]:
    for pulls in (16,) if size.quick else (250, 500, 1000, 2000):
        for policy in ("ucb", "pursuit") if size.quick else NAMES:
            yield Unit(f"{policy}-{pulls}", times, (size, policy, 4 if size.quick else ARMS, pulls, tuple(Mode)))


def _b(size: Size) -> Iterator[Unit]:
    modes = (Mode.PLAIN, Mode.CLASSIC, Mode.SHARES)
    for arms in (4,) if size.quick else (10, 25, 50, 100):
        for policy in ("ucb", "softmax") if size.quick else NAMES:
            yield Unit(f"{policy}-{arms}", times, (size, policy, arms, arms + (12 if size.quick else 200), modes))


def _c(size: Size) -> Iterator[Unit]:
    for data in (Data.EVEN,) if size.folder is None else _RATED:
        for spec in PLAYED[2:4] if size.quick else PLAYED:
            for first in range(0, size.runs, _RUNS):
                runs = min(_RUNS, size.runs - first)
                name = f"{data.name.lower()}-{label_of(spec).replace(' ', '-')}-runs-{first}-to-{first + runs - 1}"
                yield Unit(name, rewards, (size, data, spec, first, runs))


def _d(size: Size) -> Iterator[Unit]:
    for arms in (4,) if size.quick else (10, 100):
        for policy in ("ucb", "thompson") if size.quick else NAMES:
            yield Unit(f"{policy}-{arms}", shares_of_time, (size, policy, arms, arms + (12 if size.quick else 1000)))


def times(size: Size, policy: str, arms: int, pulls: int, modes: tuple[Mode, ...]) -> Rows:
    """Seconds on the clock of the steps that choose, in each mode."""
    steps = pulls - arms
    means = even_arms(arms)
    rows = []
    for mode in modes:
        if mode is Mode.PLAIN:
            seconds = plain_seconds(policy, means, pulls, _TRIES, time.perf_counter) * steps / pulls
        elif mode is Mode.SHARES:
            seconds = 1e-3 * samba_mpc.measure(policy, arms, steps).milliseconds * steps
        else:
            tries = 1 if mode is Mode.LAUNCHED else _TRIES
            runs = [_classic(size, policy, means, pulls, processes=mode is Mode.LAUNCHED) for _ in range(tries)]
            seconds = min(run.seconds_per_step for run in runs) * steps
        rows.append({
            "policy": policy, "K": arms, "N": pulls, "mode": mode.value, "seconds": round(seconds, 6),
            "milliseconds_per_step": round(1e3 * seconds / steps, 6),
        })  # fmt: skip
    return rows


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


def shares_of_time(size: Size, policy: str, arms: int, pulls: int) -> Rows:
    """Computing seconds of each participant of a run as published; and those of its steps, without keys and sum."""
    done = _classic(size, policy, even_arms(arms), pulls, processes=False)
    whole = sum(done.seconds.values())
    return [
        {"policy": policy, "K": arms, "N": pulls, "bits": done.bits, "participant": name, "seconds": round(seconds, 6),
         "step_seconds": round(done.step_seconds[name], 6), "share": round(seconds / whole, 6)}
        for name, seconds in done.seconds.items()
    ]  # fmt: skip


def _arms(size: Size, data: Data) -> BernoulliArms:
    if data is Data.EVEN or size.folder is None:
        return even_arms(8)
    return rated(*_RATED[data], size.folder)


def _policy(spec: Spec, arms: int) -> Policy:
    return by_name(spec.name, arms, eps=spec.eps, tau=spec.tau, beta=spec.beta)


def _agree(size: Size, arms: BernoulliArms, spec: Spec) -> None:
    pulls = len(arms) + (10 if size.quick else 100)
    published = play_classic(spec, arms, pulls, seed=1, bits=256, insecure=True)
    settings = Settings(spec.name, len(arms), pulls, eps=spec.eps, tau=spec.tau, beta=spec.beta)
    if not (published.pulls_equal_reference and simulate(Federation(settings, 2, 1, arms), seed=1).equal):
        raise ConfigError(f"{label_of(spec)} and a protocol differ: the policy in the clear is no stand-in")


def _classic(size: Size, policy: str, means: BernoulliArms, pulls: int, *, processes: bool) -> ClassicRun:
    return play_classic(
        policy, means, pulls, seed=1, processes=processes, bits=size.bits, insecure=size.quick, reference=False
    )


FIGURE_SET = FigureSet(
    "samba",
    "the panels of SAMBA's figure 8 are a, b, c and d",
    {
        "a": Figure("8a", _a),
        "b": Figure("8b", _b),
        "c": Figure("8c", _c, "panel c is on MovieLens and Jester: name the folder of their folders"),
        "d": Figure("8d", _d),
    },
    draw,
    {"steps": (10_000, 120), "runs": (20, 2)},
)
