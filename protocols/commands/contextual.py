"""`masked run ppcb` and `masked launch ppcb`: the private contextual bandit, with its plaintext twin beside it."""

from __future__ import annotations

import argparse
import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bandits.environments import DATA_SETS, Environment
from bandits.privacy import eta_bound, eta_per_step
from mpc.errors import ConfigError

from ..ppcb.program import Settings
from ..ppcb.roles import launched
from ..ppcb.simulate import Run, simulate
from ..progress import Progress
from .operation import natural


def register(run: Any, launch: Any) -> None:
    """Add `ppcb` to the programs of `run` and `launch`."""
    text = "the private contextual bandit, on a data set"
    _options(run.add_parser("ppcb", help=text), _simulated)
    parser = launch.add_parser("ppcb", help=f"{text}: a process for each owner, the puller, the payer and the dealer")
    _options(parser, _launched)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds until a silent peer is lost (60)")


def _options(
    parser: argparse.ArgumentParser, player: Callable[[argparse.Namespace, Settings, Environment], Run]
) -> None:
    parser.add_argument("--data", default="digits", help=f"{', '.join(DATA_SETS)} (digits)")
    parser.add_argument("--data-dir", type=Path, help="the folder with the files of a data set that is not embedded")
    parser.add_argument("--arms", type=int, default=10, help="how many arms (10)")
    parser.add_argument("--dim", type=int, default=20, help="dimensions of a context (20)")
    parser.add_argument("--steps", type=int, default=500, help="how long to play (500)")
    parser.add_argument("--parties", type=int, default=3, help="computing parties, who own the features (3)")
    parser.add_argument("--eps", type=float, default=0.1, help="how often to explore (0.1)")
    parser.add_argument("--seed", type=natural, default=1, help="of contexts and rewards, never of masks (1)")
    parser.add_argument("--replicas", type=int, default=1, help="independent bandits in one run (1)")
    parser.add_argument("--ridge", type=float, default=1.0, help="the regulariser (1)")
    parser.add_argument("--newton", type=int, default=0, help="Newton iterations behind the reciprocal's table (0)")
    parser.add_argument("--state-bits", type=int, default=20, help="fraction bits of the regressions (20)")
    parser.add_argument("--plot", type=Path, help="write the reward curve to this PNG")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    parser.set_defaults(run=_run, player=player)


def _run(options: argparse.Namespace) -> None:
    if options.parties < 2 or options.steps < 1:
        raise ConfigError(f"at least 2 parties and 1 step, not {options.parties} and {options.steps}")
    if options.parties > options.dim:
        raise ConfigError(f"{options.parties} owners of {options.dim} features: each owns at least one")
    settings = Settings(
        arms=options.arms, dim=options.dim, eps=options.eps, replicas=options.replicas, ridge=options.ridge,
        newton=options.newton, state_bits=options.state_bits, steps=max(options.steps, 1 << 16),
    )  # fmt: skip
    from bandits.data import DataError, load  # scikit-learn takes a second to import, and no other command needs it

    try:
        environment = load(options.data, arms=options.arms, dim=options.dim, data=options.data_dir)
    except DataError as error:
        raise ConfigError(str(error)) from error
    run = options.player(options, settings, environment)
    if options.plot is not None:
        from ..ppcb.plots import reward_curve

        reward_curve(run, options.plot)
    print(json.dumps(document(run, options.seed), indent=1) if options.json else _text(run, options.plot))


def _simulated(options: argparse.Namespace, settings: Settings, environment: Environment) -> Run:
    progress = Progress(options.steps)
    run = simulate(
        environment, settings, parties=options.parties, steps=options.steps, seed=options.seed,
        progress=lambda done, reward: progress(done, f"  reward {reward:.4f}"),
    )  # fmt: skip
    progress.end()
    return run


def _launched(options: argparse.Namespace, settings: Settings, environment: Environment) -> Run:
    episodes = [environment.episode(options.steps, options.seed + replica) for replica in range(settings.replicas)]
    with tempfile.TemporaryDirectory(prefix="masked-") as folder:
        return launched(
            settings,
            episodes,
            parties=options.parties,
            steps=options.steps,
            folder=Path(folder),
            timeout=options.timeout,
        )


def document(run: Run, seed: int) -> dict[str, Any]:
    """The run as other tools read it; averages and differences of all replicas, first_difference of the earliest."""
    first = min(run.differences, key=lambda difference: difference.step, default=None)
    eta = eta_per_step(run.settings.arms, run.settings.eps)
    return {
        "steps": run.steps,
        "parties": run.parties,
        "arms": run.settings.arms,
        "dim": run.settings.dim,
        "eps": run.settings.eps,
        "seed": seed,
        "replicas": run.settings.replicas,
        "average_reward": float(run.rewards.mean()),
        "twin_average_reward": float(run.twin_rewards.mean()),
        "first_difference": None if first is None else {"step": first.step, "gap": first.gap},
        "rounds_per_step": run.cost.rounds / run.steps,
        "client_hops_per_step": run.cost.client_hops / run.steps,
        "bytes_per_step_per_party": run.cost.opened_bytes / run.steps,
        "sent_bytes_per_step_per_party": run.cost.sent_bytes / run.steps,
        "offline_bytes_per_step": run.offline_bytes / run.steps,
        "seconds_per_step": run.seconds / run.steps,
        "offline_seconds_per_step": run.offline_seconds / run.steps,
        "eta_per_step": eta if math.isfinite(eta) else None,
        "ledger": [asdict(entry) for entry in run.ledger],
    }


def _text(run: Run, plot: Path | None) -> str:
    facts = document(run, 0)
    eta, bound = eta_per_step(run.settings.arms, run.settings.eps), eta_bound(run.settings.arms, run.settings.eps)
    if run.differences:
        where = ", ".join(f"replica {d.replica} at step {d.step}, gap {d.gap:.2g}" for d in run.differences[:5])
        same = f"differs from the twin, where two scores were closer than fixed point can tell: {where}"
    else:
        same = "pulled the same arms as its plaintext twin at every step"
    rows = [
        f"{run.steps} steps, {run.settings.arms} arms, {run.parties} parties, {run.settings.replicas} replicas; {same}",
        f"average reward {facts['average_reward']:.4f}, twin {facts['twin_average_reward']:.4f}",
        f"a step took {facts['rounds_per_step']:g} rounds, {facts['bytes_per_step_per_party']:,.0f} bytes from each "
        f"party to each other and {1e3 * facts['seconds_per_step']:.2f} ms;",
        f"offline, {facts['offline_bytes_per_step']:,.0f} bytes and {1e3 * facts['offline_seconds_per_step']:.2f} ms",
        "",
        "who learned what",
        *(f"  {entry.role} learned {entry.what} ({entry.count} values): {entry.why}" for entry in run.ledger),
        "  payer knew the rewards: it shared them",
        "",
        f"each pulled arm is {eta:.3f}-differentially private in its context (at most log(A / eps) = {bound:.3f}),",
        "against everyone but the dealer, who draws the coins",
    ]
    return "\n".join(rows + ([f"\nreward curve: {plot}"] if plot is not None else []))
