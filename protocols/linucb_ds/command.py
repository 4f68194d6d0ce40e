"""`masked run|launch linucb-ds` and `spectralucb-ds`: a linear bandit that its owner outsources, and its reference."""

from __future__ import annotations

import argparse
import math
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bandits.coins import Noise
from bandits.linear_problem import LinearProblem, ProblemError, load_arms, load_theta
from mpc.errors import ConfigError

from ..run.apart import Apart
from ..run.folder import Keep, check_free
from ..run.on_shares import OnShares
from ..run.options import CLASSIC, MPC, System
from ..run.program import Program
from ..run.report import Report
from .classic.apart import Classic
from .classic.run import play_classic
from .mpc.run import Outsourced, Run
from .mpc.settings import SUM_BITS, Settings
from .problems import LINUCB, NEIGHBOURS, PAPER, SPECTRAL, as_published, made_up, of
from .report import classic_document, classic_text, document, text

MOVIELENS, NORMAL = "movielens", "normal"
VALKO, PRINTED = "valko", "printed"
OURS, AS_PUBLISHED = "ours", "paper"
_ARMS, _BITS = 50, 2048
_CONSTANTS = {OURS: {"gamma": 1.0, "delta": 0.01, "noise": 1.0}, AS_PUBLISHED: PAPER}
_ROLES = """

DO, the data owner, has theta: the arm x pays <x, theta> and noise.  DC, the data customer, pays for N pulls and learns
the sum of what they brought.  Mode mpc: DO shares theta to the computing parties, which find the arm of the largest
index on shares; they learn which arm is pulled, or with --hide-arms nothing.  Mode classic: the published protocol, in
which a server called P pulls the arms, and one called Comp decrypts masked lists.  The policy in the clear plays beside
the run, with the same coins.
"""
_EXAMPLES = """examples:
  masked {how} {name} --arms-file arms.npy --theta theta.npy --budget 200
  masked {how} {name} --data movielens --data-dir DIR --dim 5 --arms 50 --user 7 --budget 200
  masked {how} {name} ... --hide-arms                on shares, and nobody learns an arm
  masked {how} {name} ... --mode classic --bits 2048  the published protocol, with Paillier
  masked {how} {name} ... --mode classic --cores 2    the same, its costly steps in two processes
  masked {how} {name} ... --constants paper           gamma, delta, R and S as in the paper's experiments
  masked {how} {name} ... --budget 5000 --out runs/a  Ctrl-C, then the same with --resume
  masked {how} {name} ... --json                     one JSON document for other tools
"""


class LinUCBDS(System):
    """LinUCB-DS."""

    name = LINUCB
    summary = "LinUCB that its owner outsources"
    about = "LinUCB, outsourced: {more}." + _ROLES
    examples, step, modes = _EXAMPLES, "pull", (CLASSIC, MPC)
    untold = ", before DC was told anything"

    def add_problem(self, parser: ArgumentParser) -> None:
        """Arms, theta, constants and the run."""
        add_problem(parser, self.name)

    def add_options(self, parser: ArgumentParser, *, processes: bool) -> None:
        """The size of keys, and what to work with."""
        parser.add_argument("--bits", type=int, default=_BITS, help=f"of the keys of mode classic ({_BITS})")
        parser.add_argument(
            "--cores",
            type=int,
            default=1,
            help="processes in which P, and Comp, share what takes long; mode classic (1)",
        )

    def add_apart(self, parser: ArgumentParser) -> None:
        """Bounds of what only DO knows."""
        self.add_options(parser, processes=True)
        parser.add_argument("--theta-norm", type=float, help="S, at least theta's norm")
        if self.name == SPECTRAL:
            parser.add_argument("--smoothness", type=float, help="C, at least theta's norm by the graph's Laplacian")

    def apart(self, options: Namespace) -> Apart:
        """Arms and bounds are public, and theta is DO's alone; as published, DO tells P what it knows of the rest."""
        if options.mode == CLASSIC:
            public = partial(public_problem, options, self.name)
            return Classic(
                self.name, public, options.budget, Noise(options.noise_kind), options.bits, options.cores
            )  # fmt: skip
        return OnShares(program_of(options, public_problem(options, self.name)))

    def check(self, options: Namespace) -> None:
        """What argparse does not know."""
        if options.budget < 1:
            raise ConfigError(f"a budget is at least 1 pull, not {options.budget}")
        if options.mode == CLASSIC and options.hide_arms:
            raise ConfigError("--hide-arms is of --mode mpc: in the published protocol P knows the arms it pulls")
        if options.mode == CLASSIC and options.sum_bits is not None:
            raise ConfigError("--sum-bits is of --mode mpc: in the published protocol DC decrypts the whole sum")
        if options.mode != CLASSIC and getattr(options, "cores", 1) != 1:  # plans have no such option
            raise ConfigError("--cores is of --mode classic: on shares the time of a pull is that of its rounds")
        if options.mode != CLASSIC and getattr(options, "bits", _BITS) != _BITS:
            raise ConfigError("--bits is of --mode classic: on shares there is no key; leave it out")
        if options.mode == CLASSIC and options.resume:
            raise ConfigError("--resume is of --mode mpc: keys are never written, so a classic run starts anew")

    def steps(self, options: Namespace) -> int:
        """Pulls that are paid for."""
        return int(options.budget)

    def program(self, options: Namespace, *, processes: bool) -> Outsourced:
        """On shares."""
        return program_of(options, problem_of(options, self.name))

    def report(self, options: Namespace, program: Program[Any], run: Run) -> Report:
        """Rewards are nobody's to see: what is drawn is the reference."""
        settings, reference = run.settings, run.reference
        shown = "arms hidden" if settings.hide else "arms shown"
        title = f"{settings.count} arms, d = {settings.dim}, {run.parties} parties, {shown}"
        rewards = None if reference is None else reference.rewards
        assert isinstance(program, Outsourced)
        return _report(document(run), text(run), program.problem, rewards, run.cumulative_reward, title)

    def classic(
        self, options: Namespace, keep: Keep | None, *, processes: bool, watch: Callable[[int], None]
    ) -> Report:
        """As published, with Paillier; it keeps nothing, and takes nothing's place that another run kept."""
        if keep is not None:
            check_free(keep, ())
        problem = problem_of(options, self.name)
        run = play_classic(
            problem, options.budget, seed=options.seed, noise=Noise(options.noise_kind), bits=options.bits,
            cores=options.cores, processes=processes, watch=watch, timeout=options.timeout or 60.0,
        )  # fmt: skip
        rewards = [math.ldexp(pull.reward, -run.scales.reward) for pull in run.reference.pulls]
        title = f"{len(problem.arms)} arms, d = {problem.dim}, keys of {run.bits} bits"
        return _report(classic_document(run), classic_text(run), problem, rewards, run.cumulative_reward, title)


class SpectralUCBDS(LinUCBDS):
    """SpectralUCB-DS."""

    name = SPECTRAL
    summary = "SpectralUCB on a graph of the arms, outsourced"
    about = "SpectralUCB on a graph of the arms, outsourced: {more}." + _ROLES


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
    game.add_argument("--arms", type=int, help=f"how many, where --data makes them ({_ARMS})")
    game.add_argument(
        "--user", type=int, default=0, help="user whose ratings define theta; the seed with --data normal (default: 0)"
    )
    if program == SPECTRAL:
        game.add_argument("--neighbours", type=int, default=NEIGHBOURS, help="nearest arms that each is joined to (10)")
        game.add_argument(
            "--omega", choices=[VALKO, PRINTED], default=VALKO,
            help="the width of confidence: as in Valko et al., or as the paper of SpectralUCB-DS prints it (valko)",
        )  # fmt: skip
    game.add_argument(
        "--constants", choices=list(_CONSTANTS), default=OURS,
        help="paper: gamma 0.01, delta 0.001, R 0.01 where they are not said, and log t for the bound S, or C (ours)",
    )  # fmt: skip
    game.add_argument("--gamma", type=float, help="the regulariser (1)")
    game.add_argument("--delta", type=float, help="how often confidence may fail (0.01)")
    game.add_argument("--noise", type=float, help="R, the size of the noise of a reward (1)")
    game.add_argument(
        "--noise-kind",
        choices=[kind.value for kind in Noise],
        default=Noise.SIGN.value,
        help="of a reward: plus or minus R, or normal; both are ours (sign)",
    )
    run = parser.add_argument_group("the run")
    shown = run.add_mutually_exclusive_group()
    shown.add_argument("--reveal", choices=["arms"], help="the computing parties learn the arms, as P does (default)")
    shown.add_argument("--hide-arms", action="store_true", help="nothing but the cumulative reward comes out")
    run.add_argument(
        "--sum-bits", type=int, help=f"of the sum that DC learns, of the largest there can be; mode mpc ({SUM_BITS})"
    )
    run.add_argument("--budget", type=int, default=200, help="N, how many pulls are paid for (200)")


def program_of(options: argparse.Namespace, problem: LinearProblem) -> Outsourced:
    """What the options mean on shares."""
    settings = Settings.of(
        problem, options.budget, noise=Noise(options.noise_kind), hide=options.hide_arms,
        sum_bits=SUM_BITS if options.sum_bits is None else options.sum_bits,
    )  # fmt: skip
    return Outsourced(settings, options.parties, options.seed, problem)


def problem_of(options: argparse.Namespace, program: str) -> LinearProblem:
    """Arms, theta and constants as the options name them."""
    constants = _constants(options)
    neighbours = options.neighbours if program == SPECTRAL else NEIGHBOURS
    files = options.arms_file is not None or options.theta is not None
    movies = options.data == MOVIELENS
    if files and options.data is not None:
        raise ConfigError("--data makes arms and theta itself: leave it away, or --arms-file and --theta")
    if files and (options.arms_file is None or options.theta is None):
        raise ConfigError("--arms-file and --theta go together: name both")
    if options.data_dir is not None and not movies:
        raise ConfigError("--data-dir is of --data movielens: name it, or leave out --data-dir")
    if files and (options.arms is not None or options.dim is not None or options.user):
        raise ConfigError("--arms, --dim and --user are of what --data makes: a file has its own; leave them out")
    if movies and options.data_dir is None:
        raise ConfigError("--data movielens needs the folder of its u.data: name it with --data-dir")
    try:
        if files:
            found = of(program, load_arms(options.arms_file), load_theta(options.theta), neighbours, constants)
        else:
            found = made_up(
                program, arms=_ARMS if options.arms is None else options.arms, dim=options.dim, seed=options.user,
                folder=options.data_dir if movies else None, neighbours=neighbours, constants=constants,
            )  # fmt: skip
    except ProblemError as error:
        raise ConfigError(str(error)) from error
    return _as_named(options, found)


def public_problem(options: argparse.Namespace, program: str) -> LinearProblem:
    """The same as all roles know it, where theta is one's own: arms, constants and bounds, and a theta of zeros."""
    wanted = ["arms_file", "theta_norm", *(["smoothness"] if program == SPECTRAL else [])]
    if missing := [name for name in wanted if getattr(options, name) is None]:
        raise ConfigError(f"{missing[0]} is missing: arms and bounds of theta are public, and the same at all roles")
    if options.theta is not None or options.data is not None:
        raise ConfigError("theta is DO's own, in the file that its data.file names: leave out 'theta' and 'data'")
    neighbours = options.neighbours if program == SPECTRAL else NEIGHBOURS
    try:
        arms = load_arms(options.arms_file)
        found = of(program, arms, np.zeros(arms.shape[1]), neighbours, _constants(options))
        bounds = {name: getattr(options, name) for name in wanted[1:]}
        return _as_named(options, replace(found, exploration=replace(found.exploration, **bounds)))  # type: ignore[type-var]
    except ProblemError as error:
        raise ConfigError(str(error)) from error


def _constants(options: argparse.Namespace) -> dict[str, float]:
    said = {name: getattr(options, name) for name in ("gamma", "delta", "noise")}
    return {name: _CONSTANTS[options.constants][name] if value is None else value for name, value in said.items()}


def _as_named(options: argparse.Namespace, found: LinearProblem) -> LinearProblem:
    """With the widths that the options name."""
    printed = hasattr(options, "omega") and options.omega == PRINTED  # LinUCB has no such option
    return as_published(found, growing=options.constants == AS_PUBLISHED, printed=printed)


def _report(
    facts: dict[str, Any], text: str, problem: LinearProblem, rewards: Sequence[float] | None, told: float, title: str
) -> Report:
    def draw(path: Path) -> None:
        from ..run.plots import paid_so_far

        mean = float((problem.arms @ problem.theta).mean())
        paid_so_far(np.array(rewards), told, best=problem.best, mean=mean, title=title, path=path)

    return Report(facts, text, int(facts["budget"]), draw if rewards is not None else None)
