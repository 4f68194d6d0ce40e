"""Rows of HELBA's figures: regret, batches, updates, times, and the cost of security."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bandits.helba import HELBA, OFUL, RSOFUL, Batches, Constants, Policy, RSOFULTrace, fresh, play, toy
from mpc.errors import ConfigError

from ..bench.helba import from_material, plain_seconds
from ..bench.helba_agreement import Make
from ..helba.ckks.run import play_ckks
from ..helba.ckks.settings import Settings as Published
from ..helba.run import Encrypted
from ..helba.settings import Settings
from ..published.ckks import Scheme
from ..run.simulate import simulate
from .units import Rows

Policies = dict[str, Callable[[], Policy]]
_EVERY = 5  # steps of a curve in the table
SHARES, CIPHERTEXTS = "HELBA, on shares", "HELBA, on ciphertexts"
LEVELS = (128, 192, 256)  # bits of security
_DEGREES = (1 << 13, 1 << 14, 1 << 15)


def _policies(given: Constants) -> Policies:
    kinds: dict[str, Callable[[Constants], Policy]] = {
        "OFUL": OFUL, "RSOFUL": RSOFUL, "RSOFUL-TR": RSOFULTrace, "HELBA": HELBA,
    }  # fmt: skip
    return {name: lambda kind=kind: kind(given) for name, kind in kinds.items()}  # type: ignore[misc]


def _rules() -> Policies:
    """HELBA by what ends a batch."""
    growths = {"eta = 0.1": 0.1, "eta = 0.2": 0.2, "eta = 1": 1.0, "the trace alone": None}
    rules: Policies = {"each step": lambda: HELBA(Constants(), Batches.NONE)}
    for name, growth in growths.items():
        rules[name] = lambda growth=growth: HELBA(Constants(growth=growth))  # type: ignore[misc]
    return rules


def regrets(steps: int, run: int) -> Rows:
    """Figure 1: one run of every policy, and of HELBA on shares."""
    given = Constants()
    problem = toy(given, steps, run)
    lost = {name: problem.lost(play(policy(), problem).arms) for name, policy in _policies(given).items()}
    shares = simulate(Encrypted(Settings(given, steps=steps), 2, problem=problem), seed=run)
    lost[SHARES] = problem.lost(shares.arms)
    return [
        {"run": run, "policy": name, "t": t, "regret": round(float(regret[:t].sum()), 6)}
        for name, regret in lost.items()
        for t in _curve(steps)
    ]


def on_ciphertexts(steps: int, run: int) -> Rows:
    """One run as published, with the smallest degree that is safe."""
    problem = toy(Constants(), steps, run)
    regret = problem.lost(play_ckks(Published(Constants(), steps=steps, scheme=scheme_at(128)), problem).arms).cumsum()
    return [
        {"run": run, "policy": CIPHERTEXTS, "t": t, "regret": round(float(regret[t - 1]), 6)} for t in _curve(steps)
    ]


def security(steps: int, level: int) -> Rows:
    """The first steps of the paper's problem, with the smallest degree that the library's guard allows."""
    problem = toy(Constants(), steps, 1)
    run = play_ckks(Published(Constants(), steps=steps, scheme=scheme_at(level)), problem)
    scheme = run.settings.scheme
    return [{"security": level, "degree": scheme.degree, "modulus_bits": scheme.bits, "T": steps,
             "cpu_seconds_per_step": round(run.cpu_seconds / steps, 4),
             "arms_equal": run.first_difference is None}]  # fmt: skip


def scheme_at(level: int) -> Scheme:
    """Of the smallest degree at this level of security."""
    for degree in _DEGREES:
        scheme = Scheme.of(degree, 2, level)
        try:
            _ = scheme.context
        except ConfigError:
            if degree == _DEGREES[-1]:
                raise
            continue
        break
    return scheme


def by_rule(make: Make, steps: int, run: int) -> Rows:
    """Regret by what ends a batch, and how often one ended."""
    problem = make(Constants(), steps, run)
    rows = []
    for name, policy in _rules().items():
        played = play(policy(), problem)
        rows.append({"problem": make.__name__, "T": steps, "run": run, "rule": name,
                     "regret": round(played.regret, 6), "updates": int(played.ends.sum())})  # fmt: skip
    return rows


def updates(steps: int, run: int) -> Rows:
    """How often the regression is renewed, and what is lost, up to several T of one run."""
    problem = fresh(Constants(), steps, run)
    rows: Rows = []
    for name, policy in _policies(Constants()).items():
        played = play(policy(), problem)
        lost = problem.lost(played.arms)
        rows += [
            {"run": run, "policy": name, "T": t, "updates": int(played.ends[:t].sum()),
             "regret": round(float(lost[:t].sum()), 6)}
            for t in (10, 18, 32, 56, 100, 178, 316, 562, 1000, 1778, 3162, 5623, 10_000)
            if t <= steps
        ]  # fmt: skip
    return rows


def times(steps: int) -> Rows:
    """Seconds of a run of the paper's problem, longer ones too."""
    settings = Settings(Constants(), steps=steps)
    problem = toy(settings.constants, steps, 1)
    run, dealing = from_material(problem, settings)
    seconds = {"on shares": run.seconds, "dealing": dealing * steps, "in the clear": plain_seconds(problem, settings)}
    return [{"T": steps, "what": what, "seconds": round(spent, 6)} for what, spent in seconds.items()]


def _curve(steps: int) -> list[int]:
    return np.unique([1, *range(_EVERY, steps + 1, _EVERY), steps]).tolist()
