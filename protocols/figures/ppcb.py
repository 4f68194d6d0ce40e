"""The figures of "Privacy-Preserving Contextual Bandits": what each runs, and on how much.  Knows no plot.

1  reward against steps for four eps                          secure
2  reward against eta for three lengths, eta infinite beside  twin, after agreement with the secure run
3  time against arms for several N, 4 against N               processes on this machine
5  reward against eta for several numbers of arms             twin, after agreement
6  advantage of membership inference during training          twin
7  reward against fraction bits, both truncations             secure
8  reward against Newton iterations                           secure
table 1  rounds and bytes of a step, published and recast     secure
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from bandits.attacks.membership import Attack, attack_at_checkpoints
from bandits.data import load
from bandits.environments import Environment, Task
from bandits.linear import Choice, LinearBandit
from bandits.play import play
from bandits.privacy import eps_for
from mpc.errors import ConfigError

from ..ppcb.run import Bandit, Run
from ..ppcb.settings import Division, Settings, Truncation, Variant
from ..run.folder import Keep
from ..run.launch import Processes, launch
from ..run.simulate import simulate
from .making import Figure, FigureSet, Size
from .ppcb_plots import draw
from .units import Rows, Unit

FIGURES = ("1", "2", "3", "4", "5", "6", "7", "8")
CLASSES, DIM = 10, 20
_CLOSE = 2.0**-12  # scores that fixed point may order otherwise than the twin
_POINTS = 120  # of a curve
_CHECKPOINTS = 12  # of an attack
FEWEST_STEPS = _CHECKPOINTS  # of a run


def _environment(size: Size, arms: int | None = None) -> Environment:
    """The ten classes of the data set; where the number of arms varies, so many clusters."""
    return _loaded(size.data, arms, size.folder, None if arms is None else Task.CLUSTERS)


@lru_cache(maxsize=4)
def _loaded(data: str, arms: int | None, folder: Path | None, task: Task | None) -> Environment:
    return load(data, arms=arms or CLASSES, dim=DIM, data=folder, task=None if data == "synthetic" else task)


def _one(size: Size) -> Iterator[Unit]:
    for eps in (0.01, 0.05, 0.1, 0.5):
        yield Unit(f"eps-{eps:g}", reward_curve, (size, eps))


def _two(size: Size) -> Iterator[Unit]:
    yield Unit("twin", reward_by_eta, (size, None, tuple(round(size.steps * part) for part in (1 / 6, 1 / 2, 1))))


def _five(size: Size) -> Iterator[Unit]:
    for arms in (3, 5) if size.quick else (5, 10, 20, 50):
        yield Unit(f"arms-{arms}", reward_by_eta, (size, arms, (size.steps,)))


def _three(size: Size) -> Iterator[Unit]:
    for parties in (2,) if size.quick else (2, 3, 5):
        for arms in (2, 5) if size.quick else (5, 10, 20, 50, 100):
            yield Unit(f"parties-{parties}-arms-{arms}", step_time, (size, parties, arms))


def _four(size: Size) -> Iterator[Unit]:
    for parties in (2, 3) if size.quick else (2, 3, 4, 5, 6, 8):
        yield Unit(f"parties-{parties}", step_time, (size, parties, 10))


def _six(size: Size) -> Iterator[Unit]:
    yield Unit("yeom", attack_advantage, (size,))


def _seven(size: Size) -> Iterator[Unit]:
    for bits in (14, 26) if size.quick else (14, 16, 18, 20, 22, 24, 26):
        for truncation in Truncation:
            yield Unit(f"bits-{bits}-{truncation.value}", reward_by_bits, (size, bits, truncation.value))


def _eight(size: Size) -> Iterator[Unit]:
    for newton in (0, 3) if size.quick else (0, 1, 2, 3, 4, 6, 8, 10):
        yield Unit(f"newton-{newton}", reward_by_newton, (size, newton))


def _table(size: Size) -> Iterator[Unit]:
    for variant in Variant:
        for parties in (2,) if size.quick else (2, 3):
            yield Unit(f"{variant.value}-{parties}", cost_of_step, (size, variant.value, parties))


def reward_curve(size: Size, eps: float) -> Rows:
    """Average reward so far at some steps, of each run and its twin."""
    run = _secure(size, f"1-eps-{eps:g}", Settings(arms=10, dim=DIM, eps=eps, replicas=size.runs, steps=1 << 16))
    at = np.unique(np.geomspace(10, size.steps, _POINTS).astype(int))
    twin = run.twin_rewards
    assert twin is not None
    so_far, twin_so_far = (rewards.cumsum(axis=0)[at - 1] / at[:, None] for rewards in (run.rewards, twin))
    return [
        {"eps": eps, "step": int(step), "run": number, "reward": _short(so_far[i, number]),
         "twin_reward": _short(twin_so_far[i, number]), **_made_with(run)}
        for i, step in enumerate(at) for number in range(size.runs)
    ]  # fmt: skip


def reward_by_eta(size: Size, clusters: int | None, lengths: tuple[int, ...]) -> Rows:
    """Average reward of the twin for a range of eta; first the secure run must agree with it on a sample."""
    environment, arms = _environment(size, clusters), clusters or CLASSES
    sample = 60 if size.quick else 500
    _agree(environment, arms, sample)
    etas = [0.0, *np.linspace(0.5, 8.0, 4 if size.quick else 16)]
    grid = [(eta, eps_for(arms, eta)) for eta in etas] + [(float("inf"), 0.0)]
    eps = np.repeat([eps for _, eps in grid], size.runs)
    episodes = [environment.episode(size.steps, 1 + number) for _ in grid for number in range(size.runs)]
    rng = np.random.default_rng([arms, size.steps])
    coins = (Choice.draw(rng, len(eps), arms, eps) for _ in range(size.steps))
    paid = np.zeros((size.steps, len(eps)), np.float32)
    for record in play(LinearBandit(len(eps), arms, DIM), episodes, coins):
        paid[record.step] = record.rewards
    return [
        {"arms": arms, "eta": "inf" if eta == float("inf") else round(eta, 6), "eps": eps_, "steps": length,
         "run": number, "reward": _short(paid[:length, k * size.runs + number].mean()), "agreement_steps": sample}
        for k, (eta, eps_) in enumerate(grid) for length in lengths for number in range(size.runs)
    ]  # fmt: skip


def step_time(size: Size, parties: int, arms: int) -> Rows:
    """Milliseconds of a step with a process for each role, dealing aside."""
    steps = 20 if size.quick else 300
    environment = _environment(size, arms)
    settings = Settings(arms=arms, dim=DIM)
    run = launch(Bandit.on(environment, settings, parties=parties, steps=steps, seed=1), Processes())
    return [{
        "parties": parties, "arms": arms, "steps": steps, "milliseconds": round(1e3 * run.seconds / steps, 4),
        "rounds": run.cost.rounds / steps, "bytes": run.cost.opened_bytes / steps,
        "dealing_milliseconds": round(1e3 * run.offline_seconds / steps, 4), "offline_bytes": run.offline_bytes / steps,
    }]  # fmt: skip


def attack_advantage(size: Size) -> Rows:
    """Yeom et al. at checkpoints during training, with 95 % intervals over all runs."""
    checkpoints = 3 if size.quick else _CHECKPOINTS
    rows = attack_at_checkpoints(
        _environment(size), Attack.YEOM, eps=0.1, steps=size.steps, checkpoints=checkpoints, runs=size.runs, seed=1
    )
    return [
        {"step": row.step, "advantage": _short(row.advantage.value), "lower": _short(row.advantage.lower),
         "upper": _short(row.advantage.upper), "members": row.advantage.members, "others": row.advantage.others,
         "runs": size.runs}
        for row in rows
    ]  # fmt: skip


def reward_by_bits(size: Size, bits: int, truncation: str) -> Rows:
    """Average reward with so many fraction bits for everything."""
    settings = Settings(
        arms=10, dim=DIM, replicas=size.runs, fraction_bits=bits, state_bits=bits, division=Division.TABLE_NEWTON,
        truncation=Truncation(truncation), refresh=0,
    )  # fmt: skip
    run = _secure(size, f"7-{bits}-{truncation}", settings)
    return _averages(run, {"bits": bits, "truncation": truncation})


def reward_by_newton(size: Size, newton: int) -> Rows:
    """Average reward with the published reciprocal and so many iterations."""
    settings = Settings(arms=10, dim=DIM, replicas=size.runs, division=Division.NEWTON, newton=newton)
    run = _secure(size, f"8-{newton}", settings)
    return _averages(run, {"newton": newton})


def cost_of_step(size: Size, variant: str, parties: int) -> Rows:
    """Rounds and bytes of a step at 10 arms and 20 dimensions."""
    settings = Settings(arms=10, dim=DIM, variant=Variant(variant))
    run = simulate(Bandit.on(_environment(size), settings, parties=parties, steps=5, seed=1), seed=1)
    return [{
        "variant": variant, "parties": parties, "rounds": run.cost.rounds / 5, "bytes": run.cost.opened_bytes / 5,
        "client_hops": run.cost.client_hops / 5, "offline_bytes": run.offline_bytes / 5,
    }]  # fmt: skip


def _secure(size: Size, name: str, settings: Settings) -> Run:
    folder = size.keep / name
    resume = any(folder.glob("checkpoint-*.npz"))
    settings = replace(settings, steps=max(size.steps, 1 << 16))
    program = Bandit.on(_environment(size), settings, parties=2, steps=size.steps, seed=1)
    return simulate(program, seed=1, keep=Keep(folder, 5000, resume))


def _agree(environment: Environment, arms: int, steps: int) -> None:
    settings = Settings(arms=arms, dim=DIM, replicas=5)
    run = simulate(Bandit.on(environment, settings, parties=2, steps=steps, seed=1), seed=1)
    apart = [difference for difference in run.differences if difference.gap >= _CLOSE]
    if apart:
        raise ConfigError(
            f"secure and plain differ at step {apart[0].step} by {apart[0].gap:.2g}: the twin is no stand-in"
        )


def _averages(run: Run, row: dict[str, object]) -> Rows:
    assert run.twin_rewards is not None
    pairs = zip(run.rewards.mean(axis=0), run.twin_rewards.mean(axis=0), strict=True)
    return [
        {**row, "run": number, "reward": _short(own), "twin_reward": _short(twin), **_made_with(run)}
        for number, (own, twin) in enumerate(pairs)
    ]


def _made_with(run: Run) -> dict[str, object]:
    """What the length of the run led to."""
    return {"state_bits": run.settings.state_bits, "refresh": run.settings.refresh}


def _short(value: float) -> float:
    return round(float(value), 6)


FIGURE_SET = FigureSet(
    "ppcb",
    "the figures of ppcb are 1 to 8",
    {
        **{n: Figure(n, of) for n, of in zip(FIGURES, (_one, _two, _three, _four, _five, _six, _seven, _eight))},
        "table1": Figure("table-1", _table),
    },
    draw,
    {"data": ("mnist", "digits"), "steps": (60_000, 120), "runs": (10, 2)},
)
