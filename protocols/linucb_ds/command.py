"""`masked run|launch linucb-ds` and `spectralucb-ds`: a linear bandit that its owner outsources, and its reference."""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.coins import Noise
from bandits.linear_problem import LinearProblem, ProblemError, load_arms, load_theta
from bandits.movielens import movielens, spectral_movielens
from bandits.oful import Confidence
from bandits.spectral import neighbour_graph, spectral_problem
from mpc.errors import ConfigError
from offline import Plan

from ..commands.operation import natural
from ..run.folder import check_picture, reserved
from ..run.interrupt import Interrupt
from ..run.keeping import Keep
from ..run.outcome import said_when_stopped, save_result, show
from ..run.progress import Progress
from .classic.run import play_classic
from .mpc.launch import Launch, launched
from .mpc.run import Run
from .mpc.settings import Settings
from .mpc.simulate import plan_of, simulate
from .report import classic_document, classic_text, document, text

LINUCB, SPECTRAL = "linucb-ds", "spectralucb-ds"
CLASSIC, MPC = "classic", "mpc"
MOVIELENS, NORMAL = "movielens", "normal"
_EXAMPLES = """examples:
  masked {how} {program} --arms-file arms.npy --theta theta.npy --budget 200
  masked {how} {program} --data movielens --data-dir DIR --dim 5 --arms 50 --user 7 --budget 200
  masked {how} {program} ... --hide-arms                on shares, and nobody learns an arm
  masked {how} {program} ... --mode classic --bits 2048  the published protocol, with Paillier
  masked {how} {program} ... --budget 5000 --out runs/a  Ctrl-C, then the same with --resume
  masked {how} {program} ... --json                     one JSON document for other tools
"""


class Played(NamedTuple):
    """A run's document and text, and what its reference was paid, where one was played."""

    facts: dict[str, Any]
    text: str
    rewards: Sequence[float] | None
    title: str


Player = Callable[[argparse.Namespace, LinearProblem, "Keep | None"], Played]
"""Plays a run in one mode."""


def register(run: Any, launch: Any) -> None:
    """Add both programs to `run` and `launch`."""
    for program, what in ((LINUCB, "LinUCB"), (SPECTRAL, "SpectralUCB on a graph of the arms")):
        for programs, how, more in (
            (run, "run", "all roles in this process"),
            (launch, "launch", "a process for each role"),
        ):
            parser = programs.add_parser(
                program, help=f"{what} that its owner outsources", description=f"{what}, outsourced: {more}.",
                epilog=_EXAMPLES.format(how=how, program=program),
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )  # fmt: skip
            _options(parser, program, processes=how == "launch")


def add_problem(parser: argparse.ArgumentParser, program: str) -> None:
    """The options that a problem and its settings are made of."""
    game = parser.add_argument_group("the bandit")
    game.add_argument("--arms-file", type=Path, help="(K, d) arms: .npy, .csv or .txt")
    game.add_argument("--theta", type=Path, help="(d,) theta, the data owner's secret: .npy, .csv or .txt")
    game.add_argument(
        "--data",
        choices=[NORMAL, MOVIELENS],
        help="instead of files: normal arms and theta (where nothing is named), or movies as arms and a user as theta",
    )
    game.add_argument("--data-dir", type=Path, help="the folder with u.data of MovieLens 100K")
    game.add_argument("--dim", type=int, help="latent dimensions (5; of the movies' graph 10)")
    game.add_argument("--arms", type=int, default=50, help="how many, where --data makes them (50)")
    game.add_argument(
        "--user", type=int, default=0, help="whose ratings theta stands for; of normal arms, their seed (0)"
    )
    if program == SPECTRAL:
        game.add_argument("--neighbours", type=int, default=10, help="nearest arms that each is joined to (10)")
    game.add_argument("--gamma", type=float, default=1.0, help="the regulariser (1)")
    game.add_argument("--delta", type=float, default=0.01, help="how often confidence may fail (0.01)")
    game.add_argument("--noise", type=float, default=1.0, help="R, the size of the noise of a reward (1)")
    game.add_argument("--noise-kind", choices=[kind.value for kind in Noise], default=Noise.SIGN.value, help="(sign)")
    run = parser.add_argument_group("the run")
    shown = run.add_mutually_exclusive_group()
    shown.add_argument("--reveal", choices=["arms"], help="the computing parties learn the arms, as P does (default)")
    shown.add_argument("--hide-arms", action="store_true", help="nothing but the cumulative reward comes out")
    run.add_argument("--budget", type=int, default=200, help="N, how many pulls are paid for (200)")
    run.add_argument("--parties", type=int, default=2, help="computing parties of mode mpc (2)")


def planned(options: argparse.Namespace, program: str) -> Plan:
    """What a pull on shares draws; where arms are shown, every pull but the first."""
    return plan_of(_settings(options, problem_of(options, program)), options.parties)


def _options(parser: argparse.ArgumentParser, program: str, *, processes: bool) -> None:
    add_problem(parser, program)
    parser.add_argument("--mode", choices=[CLASSIC, MPC], default=MPC, help="as published, or on shares (mpc)")
    parser.add_argument(
        "--seed", type=natural, default=1, help="of the first arm and the noise; in 'run' of everything (1)"
    )
    parser.add_argument("--bits", type=int, default=2048, help="of the keys of mode classic (2048)")
    kept = parser.add_argument_group("what is kept")
    kept.add_argument("--out", type=Path, help=f"folder of results and checkpoints (runs/{program}; none with --json)")
    kept.add_argument("--checkpoint-every", type=int, default=100, metavar="N", help="pulls between two (100)")
    kept.add_argument(
        "--resume",
        action="store_true",
        help="go on from the last checkpoint in --out; without it a new run discards what is there",
    )
    kept.add_argument("--plot", type=Path, help="write the reference's reward curve to this picture as well")
    kept.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    if processes:
        where = parser.add_argument_group("processes")
        where.add_argument("--timeout", type=float, default=60.0, help="seconds until a silent peer is lost (60)")
        where.add_argument("--material", type=Path, help="draw from the stores below this directory; no dealer then")
        where.add_argument("--session", default="local", help="the session the stores were dealt for (local)")
    players: dict[str, Player] = {
        CLASSIC: partial(_classic, processes=processes),
        MPC: _launched if processes else _simulated,
    }
    parser.set_defaults(run=partial(_run, program, players))


def problem_of(options: argparse.Namespace, program: str) -> LinearProblem:
    """Arms, theta and constants as the options name them."""
    constants = {"gamma": options.gamma, "delta": options.delta, "noise": options.noise}
    files = options.arms_file is not None or options.theta is not None
    if files and options.data is not None:
        raise ConfigError("--data makes arms and theta itself: leave it away, or --arms-file and --theta")
    try:
        if options.data == MOVIELENS:
            if options.data_dir is None:
                raise ConfigError("--data movielens needs the folder of its u.data: name it with --data-dir")
            size = {"arms": options.arms, "user": options.user, **constants}
            if program == LINUCB:
                return movielens(options.data_dir, dim=options.dim or 5, **size)
            return spectral_movielens(options.data_dir, dim=options.dim or 10, neighbours=options.neighbours, **size)
        if not files:
            arms, theta = normal_arms(options.arms, options.dim or 5, options.user)
        elif options.arms_file is None or options.theta is None:
            raise ConfigError("--arms-file and --theta go together: name both")
        else:
            arms, theta = load_arms(options.arms_file), load_theta(options.theta)
        if program == LINUCB:
            return LinearProblem(arms, theta, Confidence.of(arms, theta, **constants))
        if arms.shape[1:] != theta.shape:
            raise ConfigError(
                f"arms of shape {arms.shape} and theta of shape {theta.shape}: both need the same dimension"
            )
        return spectral_problem(neighbour_graph(arms, options.neighbours), arms @ theta, **constants)
    except ProblemError as error:
        raise ConfigError(str(error)) from error


def normal_arms(arms: int, dim: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """(K, d) arms and theta with standard normal coordinates."""
    if arms < 1 or dim < 1 or seed < 0:
        raise ConfigError(f"{arms} arms of {dim} dimensions by seed {seed}: at least 1, 1 and 0")
    rng = np.random.default_rng([seed, dim, arms])
    return rng.normal(size=(arms, dim)), rng.normal(size=dim)


def _run(program: str, players: dict[str, Player], options: argparse.Namespace) -> None:
    out: Path | None = options.out or (None if options.json else Path("runs") / program)
    _check(options, out)
    problem = problem_of(options, program)
    keep = None if out is None else Keep(out / "checkpoints", options.checkpoint_every, options.resume)
    lock = nullcontext() if keep is None else reserved(keep.folder)
    with said_when_stopped(options.budget, out), lock:
        played = players[options.mode](options, problem, keep)
    facts = {"program": program, **played.facts}
    files = save_result(facts, options, out)
    curves = [*([out / "reward.png"] if out is not None else []), *([options.plot] if options.plot else [])]
    if played.rewards is not None and curves:
        from .plots import reward_curve

        for path in curves:
            reward_curve(problem, played.rewards, facts["cumulative_reward"], played.title, path)
        files += curves
    show(facts, played.text, files, options)


def _check(options: argparse.Namespace, out: Path | None) -> None:
    """What argparse does not know."""
    if options.budget < 1:
        raise ConfigError(f"a budget is at least 1 pull, not {options.budget}")
    if options.seed >> 128:
        raise ConfigError("a seed lies between 0 and 2^128 - 1")
    if options.mode == CLASSIC and options.hide_arms:
        raise ConfigError("--hide-arms is of --mode mpc: in the published protocol P knows the arms it pulls")
    if options.mode == CLASSIC and options.resume:
        raise ConfigError("--resume is of --mode mpc: keys are never written, so a classic run starts anew")
    if options.mode == MPC and options.parties < 2:
        raise ConfigError(f"secret sharing needs at least 2 parties, not {options.parties}")
    if options.resume and out is None:
        raise ConfigError("--resume needs the folder of the run's checkpoints: name it with --out")
    if options.checkpoint_every < 1:
        raise ConfigError(f"at least 1 pull between checkpoints, not {options.checkpoint_every}")
    if options.plot is not None:
        check_picture(options.plot)
    material = getattr(options, "material", None)
    if options.mode == CLASSIC and material is not None:
        raise ConfigError("--material is of --mode mpc: Paillier's protocol draws nothing that is dealt")
    if options.plot is not None and material is not None:
        raise ConfigError("--plot draws the reference, whose coins are the dealer's alone with --material: drop one")


def _settings(options: argparse.Namespace, problem: LinearProblem) -> Settings:
    return Settings.of(problem, options.budget, noise=Noise(options.noise_kind), hide=options.hide_arms)


def _simulated(options: argparse.Namespace, problem: LinearProblem, keep: Keep | None) -> Played:
    progress = Progress(options.budget, "pull")
    with Interrupt() as interrupt:

        def report(done: int) -> bool:
            progress(done)
            return not interrupt.asked

        run = simulate(
            problem, _settings(options, problem), parties=options.parties, seed=options.seed, progress=report,
            keep=keep,
        )  # fmt: skip
    progress.end()
    return _told(options, run)


def _launched(options: argparse.Namespace, problem: LinearProblem, keep: Keep | None) -> Played:
    how = Launch(options.parties, options.seed, options.timeout, options.material, options.session, keep)
    with tempfile.TemporaryDirectory(prefix="masked-") as scratch:
        return _told(options, launched(problem, _settings(options, problem), how, Path(scratch)))


def _told(options: argparse.Namespace, run: Run) -> Played:
    rewards = None if run.reference is None else run.reference.rewards
    shown = "arms hidden" if run.settings.hide else "arms shown"
    title = f"{run.settings.count} arms, d = {run.settings.dim}, {run.parties} parties, {shown}"
    return Played(document(run, seed=options.seed), text(run), rewards, title)


def _classic(options: argparse.Namespace, problem: LinearProblem, _: Keep | None, *, processes: bool) -> Played:
    progress = Progress(options.budget, "pull")
    run = play_classic(
        problem, options.budget, seed=options.seed, noise=Noise(options.noise_kind), bits=options.bits,
        processes=processes, watch=progress, timeout=options.timeout if processes else 60.0,
    )  # fmt: skip
    progress.end()
    rewards = [math.ldexp(pull.reward, -run.scales.reward) for pull in run.reference.pulls]
    title = f"{len(problem.arms)} arms, d = {problem.dim}, keys of {run.bits} bits"
    return Played(classic_document(run, seed=options.seed), classic_text(run), rewards, title)
