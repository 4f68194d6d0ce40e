"""Figures of LinUCB-DS that are ours and in no paper: what each runs, and on how much.

modes  time of a run against N, d and K, as published with Paillier and on shares, beside plaintext   processes here
work   share of the work of each participant; cumulative reward against N                      processes; simulated
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from bandits.coins import Coins
from bandits.linear_problem import LinearProblem, ProblemError
from bandits.oful import OFUL, play
from mpc.errors import ConfigError

from ..bench.linucb import on_shares
from ..linucb_ds.classic.messages import Role
from ..linucb_ds.classic.run import ClassicRun, play_classic
from ..linucb_ds.mpc.run import Outsourced
from ..linucb_ds.mpc.settings import Settings
from ..linucb_ds.problems import NEIGHBOURS, made_up
from ..published.drive import SUM
from ..run.simulate import simulate
from .size import Size
from .units import Rows, Unit

_DIM, _ARMS, _PULLS = 5, 10, 100  # of the base case
_OURS: Mapping[str, float] = {}


class Policy(Enum):
    """The paper's two."""

    LINUCB = "LinUCB-DS"
    SPECTRAL = "SpectralUCB-DS"


class Mode(Enum):
    """How a run is played."""

    CLASSIC = "classic"
    SHOWN = "mpc, arms shown"
    HIDDEN = "mpc, arms hidden"
    PLAIN = "plaintext"


@dataclass(frozen=True)
class Point:
    """One run.  varied: which of N, d, K the panel varies; in SpectralUCB d is K."""

    policy: Policy
    varied: str
    pulls: int = _PULLS
    dim: int = _DIM
    arms: int = _ARMS

    @property
    def name(self) -> str:
        """Of a file."""
        return f"{self.policy.value}-{self.varied}-{self.pulls}-{self.dim}-{self.arms}"


def modes(size: Size) -> Iterator[Unit]:
    """Units of figure modes."""
    for point in points(quick=size.quick):
        yield Unit(point.name, times, (size, point))


def works(size: Size) -> Iterator[Unit]:
    """Units of figure work."""
    for policy in Policy:
        for arms in (4,) if size.quick else (10, 25):
            point = Point(policy, "K", pulls=12 if size.quick else _PULLS, arms=arms)
            yield Unit(f"work-{point.name}", work, (size, point))
        for user in range(2 if size.quick else 5):
            yield Unit(f"reward-{policy.value}-{user}", rewards, (size, policy, user))


def points(*, quick: bool) -> Iterator[Point]:
    """Of figure modes."""
    if quick:
        for policy in Policy:
            yield Point(policy, "N", pulls=6, dim=3, arms=4)
        return
    for policy in Policy:
        yield from (Point(policy, "N", pulls=n) for n in (25, 50, 100, 200))
        yield from (Point(policy, "K", arms=k) for k in (5, 10, 20, 40))
    yield from (Point(Policy.LINUCB, "d", dim=d) for d in (2, 5, 10, 20))


def problem_of(
    size: Size, policy: Policy, *, dim: int, arms: int, user: int = 0, constants: Mapping[str, float] = _OURS
) -> LinearProblem:
    """Movies for a user, whose graph has dimensions of its own; without their file, normal arms."""
    wanted = dim if size.folder is None or policy is Policy.LINUCB else None
    neighbours = 3 if size.folder is None else NEIGHBOURS
    try:
        return made_up(
            policy.value.lower(), arms=arms, dim=wanted, seed=user, folder=size.folder, neighbours=neighbours,
            constants=constants,
        )  # fmt: skip
    except ProblemError as error:
        raise ConfigError(str(error)) from error


def times(size: Size, point: Point) -> Rows:
    """Seconds of a run in each mode: its pulls, what is prepared before them, and what was dealt beforehand."""
    problem = problem_of(size, point.policy, dim=point.dim, arms=point.arms)
    run = classic(size, problem, point.pulls, processes=True)
    spent = {part: spent.wall for part, spent in run.parts[Role.P].items()}
    after = run.seconds_per_step * (point.pulls - 1) + spent[SUM]
    found = [(Mode.CLASSIC, after, sum(spent.values()) - after, 0.0)]
    for mode, hide in ((Mode.SHOWN, False), (Mode.HIDDEN, True)):
        shares, dealing = on_shares(problem, Settings.of(problem, point.pulls, hide=hide))
        found.append((mode, shares.seconds, 0.0, 1e-6 * dealing * point.pulls))
    found.append((Mode.PLAIN, _plain_seconds(problem, point.pulls), 0.0, 0.0))
    return [
        {"policy": point.policy.value, "varied": point.varied, "N": point.pulls, "d": problem.dim, "K": point.arms,
         "mode": mode.value, "bits": size.bits if mode is Mode.CLASSIC else "", "seconds": round(seconds, 6),
         "preparation_seconds": round(prepared, 6), "dealing_seconds": round(dealt, 6)}
        for mode, seconds, prepared, dealt in found
    ]  # fmt: skip


def work(size: Size, point: Point) -> Rows:
    """Seconds that each participant's processor works in a run as published, keys aside."""
    problem = problem_of(size, point.policy, dim=point.dim, arms=point.arms)
    run = classic(size, problem, point.pulls, processes=True)
    whole = sum(run.work.values())
    return [
        {"panel": "work", "policy": point.policy.value, "N": point.pulls, "d": problem.dim, "K": point.arms,
         "bits": run.bits, "role": role, "seconds": round(seconds, 6), "share": round(seconds / whole, 6)}
        for role, seconds in run.work.items()
    ]  # fmt: skip


def rewards(size: Size, policy: Policy, user: int) -> Rows:
    """What DC learns of runs of several lengths, arms shown; beside float64, the best arm and random arms."""
    arms = 6 if size.quick else 15
    problem = problem_of(size, policy, dim=_DIM, arms=arms, user=user)
    average = float((problem.arms @ problem.theta).mean())
    rows: Rows = []
    for pulls in (5, 10) if size.quick else (25, 50, 100, 200, 400):
        run = simulate(Outsourced(Settings.of(problem, pulls), 2, user, problem), seed=user)
        coins = Coins.draw(user, budget=pulls, arms=arms, size=problem.exploration.noise)
        plain = sum(pull.reward for pull in play(OFUL(problem.arms, problem.exploration), problem, coins))
        rows.append({
            "panel": "reward", "policy": policy.value, "N": pulls, "d": problem.dim, "K": arms, "user": user,
            "reward": round(run.cumulative_reward, 6), "unit": run.settings.unit, "float64": round(plain, 6),
            "best": round(pulls * problem.best, 6), "random": round(pulls * average, 6),
        })  # fmt: skip
    return rows


def classic(
    size: Size, problem: LinearProblem, pulls: int, *, processes: bool, cores: int = 1, bits: int = 2048
) -> ClassicRun:  # fmt: skip
    """As published; in one process its participants take turns, so that each has all cores."""
    run = play_classic(
        problem, pulls, seed=1, bits=256 if size.quick else bits, insecure=size.quick, processes=processes, cores=cores
    )  # fmt: skip
    if not run.exact:
        raise ConfigError("the run with Paillier is not the reference's: its time would say nothing")
    return run


def _plain_seconds(problem: LinearProblem, pulls: int) -> float:
    """The least of three."""
    coins = Coins.draw(1, budget=pulls, arms=len(problem.arms), size=problem.exploration.noise)
    spent = []
    for _ in range(3):
        started = time.perf_counter()
        for _ in play(OFUL(problem.arms, problem.exploration), problem, coins):
            pass
        spent.append(time.perf_counter() - started)
    return min(spent)
