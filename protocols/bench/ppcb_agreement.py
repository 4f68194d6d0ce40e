"""Long runs beside their plaintext twin: the same arms, the same reward, and a state that is the exact one.

For each seed: where the first other arm was pulled, if any, and how close the twin's two best scores were there; the
average rewards.  Close means below 2^-12, with 28 state bits below 2^-15, and with a table alone, whose reciprocal is
off by some 1e-5, below 2^-10.  For the state at the end, against regressions on the run's own arms: the largest error
of P_a, and its smallest eigenvalue.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np

from bandits.linear import LinearBandit
from mpc.errors import ConfigError

from ..ppcb.data_options import add_data, check_data, environment_of
from ..ppcb.run import Bandit, Run, episodes_of
from ..ppcb.settings import Division, Settings
from ..run.exits import exit_codes
from ..run.progress import Progress
from ..run.simulate import simulate

_DIM = 20


def main() -> None:
    """Run, compare, print."""
    parser = argparse.ArgumentParser(prog="scripts/agreement", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    add_data(parser)
    parser.add_argument("--steps", type=int, default=2000, help="length of each run (2000)")
    parser.add_argument("--seeds", type=int, default=20, help="runs, seeded 1, 2, ... (20)")
    parser.add_argument("--parties", type=int, default=3, help="computing parties (3)")
    parser.add_argument("--reciprocal", default="table+newton", choices=["table", "table+newton", "newton"])
    parser.add_argument("--state-bits", type=int, default=20, help="fraction bits of the regressions, at least (20)")
    parser.add_argument("--refresh", type=int, help="decisions between refreshes (as often as it takes; 0: never)")
    parser.add_argument("--json", type=Path, help="write the document to this file as well")
    parser.set_defaults(arms=10, dim=_DIM)
    options = parser.parse_args()
    with exit_codes(place="name another file with --json"):
        _check(options)
        if options.json is not None:  # before the run: it may take an hour
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.touch()
        document = compare(options)
        text = json.dumps(document, indent=1)
        print(text)
        if options.json is not None:
            options.json.write_text(text + "\n")
    if document["disagreements"]:
        raise SystemExit(1)


def _check(options: argparse.Namespace) -> None:
    check_data(options)
    for name, least in (("steps", 1), ("seeds", 1), ("parties", 2)):
        if (given := getattr(options, name)) < least:
            raise ConfigError(f"--{name} is at least {least}, not {given}")
    if options.parties > _DIM:
        raise ConfigError(f"{options.parties} parties of {_DIM} features: each owns at least one, so at most {_DIM}")


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """One document; `disagreements` counts first differences where scores were not close."""
    environment = environment_of(options)
    settings = Settings(
        arms=10, dim=_DIM, replicas=options.seeds, division=Division(options.reciprocal), state_bits=options.state_bits,
        refresh=options.refresh, steps=max(options.steps, 1 << 16),
    )  # fmt: skip
    progress = Progress(options.steps)
    program = Bandit.on(environment, settings, parties=options.parties, steps=options.steps, seed=1)
    run = simulate(program, seed=1, watch=progress)
    progress.end()
    assert run.twin_rewards is not None
    bits = run.settings.state_bits
    close = 2.0**-10 if settings.division is Division.TABLE else 2.0**-12 if bits < 28 else 2.0**-15
    rewards, twin = run.rewards.mean(axis=0), run.twin_rewards.mean(axis=0)
    error, smallest = _state(run, episodes_of(environment, settings, options.steps, 1))
    return {
        "data": options.data, "steps": options.steps, "seeds": options.seeds, "parties": options.parties,
        "reciprocal": options.reciprocal, "state_bits": run.settings.state_bits, "refresh": run.settings.refresh,
        "rounds_per_step": run.cost.rounds / run.steps, "close_means_below": close,
        "same_arms_at_every_step": options.seeds - len(run.differences),
        "first_differences": [{"seed": 1 + d.replica, "step": d.step, "gap": d.gap} for d in run.differences],
        "disagreements": sum(d.gap >= close for d in run.differences),
        "average_reward": float(rewards.mean()), "twin_average_reward": float(twin.mean()),
        "largest_reward_difference_of_a_seed": float(np.abs(rewards - twin).max()),
        "largest_error_of_P": error, "smallest_eigenvalue_of_P": smallest,
        "seconds": run.seconds, "dealing_seconds": run.offline_seconds,
    }  # fmt: skip


def _state(run: Run, episodes: list[Any]) -> tuple[float, float]:
    """max |P_a - exact| and the smallest eigenvalue, over all arms and runs."""
    given, dim = run.settings, run.settings.dim
    exact = LinearBandit(given.replicas, given.arms, dim, ridge=given.ridge)
    contexts = np.stack([episode.contexts for episode in episodes], axis=1)
    for x, arms, rewards in zip(contexts, run.arms, run.rewards, strict=True):
        exact.update(x[:, None], arms[:, None], rewards[:, None])
    p = run.regressions[:, :, :dim]
    return float(np.abs(p - exact.inverse).max()), float(np.linalg.eigvalsh(p).min())


if __name__ == "__main__":
    main()
