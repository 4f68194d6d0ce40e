"""Rows of rewards of the contextual bandit: over time, against eta, fraction bits and Newton iterations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from bandits.environments import Environment
from bandits.linear import Choice, LinearBandit
from bandits.play import play
from bandits.privacy import eta_per_step
from mpc.errors import ConfigError

from ..ppcb.run import Bandit, Run
from ..ppcb.settings import Division, Settings, Truncation
from ..run.folder import Keep
from ..run.simulate import simulate
from .ppcb_data import CLASSES, DIM, environment
from .size import Size
from .sources import fingerprint
from .units import Rows

_CLOSE = 2.0**-12  # scores that fixed point may order otherwise than the twin
_POINTS = 120  # of a curve
_LARGEST_ETA, _ETAS = 10.0, 14


def over_time(size: Size, eps: float, first: int, runs: int) -> Rows:
    """Average reward so far at some steps, of runs `first` on, and of their twins."""
    run = _secure(size, f"1-eps-{eps:g}-from-{first}", Settings(CLASSES, DIM, eps, replicas=runs), 1 + first)
    assert run.twin_rewards is not None
    return _curves(run.rewards, run.twin_rewards, {"eps": eps, "played": "secure"}, _made_with(run), first)


def over_time_by_twin(size: Size, eps: float, runs: int) -> Rows:
    """The same of the twin alone, on other coins, after the secure run agreed with it on a sample."""
    data = environment(size)
    sample = agree(data, CLASSES, eps, size)
    paid = _twin(data, np.full(runs, eps), size.steps, [*range(runs)])
    return _curves(None, paid, {"eps": eps, "played": "twin"}, {"agreement_steps": sample}, 0)


def against_eta(size: Size, clusters: int | None, lengths: tuple[int, ...], first: int, runs: int) -> Rows:
    """Average reward of the twin for a range of eta = log(A / eps); run 0 asks the secure run to agree on a sample."""
    data, arms = environment(size, clusters), clusters or CLASSES
    sample = _sample(size) if first else agree(data, arms, 0.1, size)
    etas = [*np.linspace(math.log(arms), max(_LARGEST_ETA, math.log(arms) + 6.0), 4 if size.quick else _ETAS), math.inf]
    eps = [min(1.0, arms * math.exp(-eta)) for eta in etas]
    numbers = range(first, first + runs)
    paid = _twin(data, np.repeat(eps, runs), max(lengths), [*numbers] * len(eps))
    return [
        {"arms": arms, "eta": _number(eta), "sharper_eta": _number(eta_per_step(arms, one)), "eps": _short(one, 9),
         "steps": length, "run": number, "reward": _short(paid[:length, k * runs + number - first].mean()),
         "agreement_steps": sample}
        for k, (eta, one) in enumerate(zip(etas, eps)) for length in lengths for number in numbers
    ]  # fmt: skip


def by_bits(size: Size, bits: int, truncation: str, first: int, runs: int) -> Rows:
    """Average reward with so many fraction bits for everything."""
    settings = Settings(
        CLASSES, DIM, replicas=runs, fraction_bits=bits, state_bits=bits, division=Division.TABLE_NEWTON,
        truncation=Truncation(truncation), refresh=0,
    )  # fmt: skip
    run = _secure(size, f"7-{bits}-{truncation}-from-{first}", settings, 1 + first)
    return _averages(run, {"bits": bits, "truncation": truncation}, first)


def by_newton(size: Size, newton: int, first: int, runs: int) -> Rows:
    """Average reward with the published reciprocal and so many iterations."""
    settings = Settings(CLASSES, DIM, replicas=runs, division=Division.NEWTON, newton=newton)
    run = _secure(size, f"8-{newton}-from-{first}", settings, 1 + first)
    return _averages(run, {"newton": newton}, first)


def _secure(size: Size, name: str, settings: Settings, seed: int) -> Run:
    """Replica r of it is seeded by seed + r, so a run is the same in any piece but for its coins."""
    folder = size.keep / f"{name}-{fingerprint(__name__)}"
    resume = any(folder.glob("checkpoint-*.npz"))
    settings = replace(settings, steps=max(size.steps, 1 << 16))
    program = Bandit.on(environment(size), settings, parties=2, steps=size.steps, seed=seed)
    return simulate(program, seed=seed, keep=Keep(folder, 5000, resume))


def agree(data: Environment, arms: int, eps: float, size: Size) -> int:
    """Over how many steps a secure run and its twin pulled the same arms, near ties aside; or ConfigError."""
    steps, settings = _sample(size), Settings(arms, DIM, eps, replicas=5)
    run = simulate(Bandit.on(data, settings, parties=2, steps=steps, seed=1), seed=1)
    apart = [difference for difference in run.differences if difference.gap >= _CLOSE]
    if apart:
        raise ConfigError(
            f"secure and plain differ at step {apart[0].step} by {apart[0].gap:.2g}: the twin is no stand-in"
        )
    return steps


def _sample(size: Size) -> int:
    return 60 if size.quick else 500


def _twin(data: Environment, eps: np.ndarray, steps: int, runs: list[int]) -> np.ndarray:
    """(steps, replicas) rewards; replica k plays the episode of its run with its own eps."""
    episodes = [data.episode(steps, 1 + number) for number in runs]
    rng = np.random.default_rng([data.arms, steps, runs[0]])
    coins: Iterator[Choice] = (Choice.draw(rng, len(eps), data.arms, eps) for _ in range(steps))
    paid = np.zeros((steps, len(eps)), np.float32)
    for record in play(LinearBandit(len(eps), data.arms, DIM), episodes, coins):
        paid[record.step] = record.rewards
    return paid


def _curves(
    rewards: np.ndarray | None, twin: np.ndarray, row: dict[str, object], more: dict[str, object], first: int
) -> Rows:
    at = np.unique(np.geomspace(10, len(twin), _POINTS).astype(int))
    so_far = [None if paid is None else paid.cumsum(axis=0)[at - 1] / at[:, None] for paid in (rewards, twin)]
    return [
        {**row, "step": int(step), "run": first + number,
         **{name: _short(side[i, number]) for name, side in zip(("reward", "twin_reward"), so_far) if side is not None},
         **more}
        for i, step in enumerate(at) for number in range(twin.shape[1])
    ]  # fmt: skip


def _averages(run: Run, row: dict[str, object], first: int) -> Rows:
    assert run.twin_rewards is not None
    pairs = zip(run.rewards.mean(axis=0), run.twin_rewards.mean(axis=0), strict=True)
    return [
        {**row, "run": first + number, "reward": _short(own), "twin_reward": _short(twin), **_made_with(run)}
        for number, (own, twin) in enumerate(pairs)
    ]


def _made_with(run: Run) -> dict[str, object]:
    """What the length of the run led to."""
    return {"state_bits": run.settings.state_bits, "refresh": run.settings.refresh}


def _number(value: float) -> float | str:
    return "inf" if value == math.inf else _short(value)


def _short(value: float, digits: int = 6) -> float:
    return round(float(value), digits)
