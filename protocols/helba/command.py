"""`masked run helba` and `masked launch helba`: the encrypted linear contextual bandit, and its policy in the clear."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bandits.helba import Batches, Constants, HelbaError, Problem, fresh, rows_of, toy
from bandits.linear_problem import ProblemError
from bandits.movielens import chosen
from mpc.errors import ConfigError
from mpc.net.transport import DEFAULT_TIMEOUT

from ..published.ckks import Scheme
from ..published.kept import forget, stopped
from ..run.apart import Apart
from ..run.folder import Keep
from ..run.options import MPC, System
from ..run.program import Program
from ..run.report import Report
from .ckks.apart import Ciphertexts
from .ckks.cast import KEEPING
from .ckks.run import play_ckks
from .ckks.run import report as ckks_report
from .ckks.settings import Settings as CkksSettings
from .game import Game
from .report import report
from .run import Encrypted, Run
from .settings import Settings

_PROBLEMS = {"toy": toy, "fresh": fresh}
MOVIELENS = "movielens"
CKKS = "ckks"
_ABOUT = """The encrypted linear contextual bandit (HELBA): {more}.

At each step a user shares features of every arm to the computing parties; they tell it the arm with the largest
optimistic index, and it shares what the arm paid.  The parties learn nothing else but, with --batches public, when a
batch of steps ends.  Mode ckks: as published, under homomorphic encryption; users hold a key, a server computes on what
it cannot read and users refresh, seconds a step.  The policy in the clear plays beside the run.
"""
_EXAMPLES = """examples:
  masked {how} {name}                                             the paper's problem: 130 steps, 2 arms, 2 dimensions
  masked {how} {name} --batches hidden                            nothing but the arm comes out, and only to its user
  masked {how} {name} --data fresh --dim 20 --arms 10 --norm 1 --steps 2000
  masked {how} {name} --data movielens --data-dir DIR --dim 5 --arms 20 --norm 1 --steps 500
  masked {how} {name} --eta none                                  a batch ends by the trace alone
  masked {how} {name} --mode ckks --steps 12                      as published; needs the extra ckks
  masked {how} {name} --steps 2000 --out runs/a                    Ctrl-C, then the same with --resume
"""


class Helba(System):
    """HELBA."""

    name, step = "helba", "step"
    summary = "the encrypted linear contextual bandit"
    about, examples = _ABOUT, _EXAMPLES
    draws_reference = seeded_apart = False  # users bring the problem, and coins are the dealer's
    modes = (CKKS, MPC)

    def add_problem(self, parser: ArgumentParser) -> None:
        """The options that settings are made of."""
        usual = Constants()
        game = parser.add_argument_group("the bandit")
        game.add_argument("--steps", type=int, default=130, metavar="T", help="how many (130)")
        game.add_argument("--arms", type=int, default=2, metavar="K", help="of each step (2)")
        game.add_argument("--dim", type=int, default=usual.dim, metavar="D", help="of the features (2)")
        game.add_argument("--norm", type=float, default=usual.norm, metavar="L", help="the longest features (5.5)")
        game.add_argument("--ridge", type=float, default=usual.ridge, metavar="LAMBDA", help="the regulariser (1)")
        game.add_argument("--trace", type=float, default=usual.trace, metavar="C", help="at which a batch ends (1)")
        game.add_argument(
            "--eta", type=_growth, default=usual.growth, help="growth of time at which a batch ends; or none (0.1)"
        )
        game.add_argument("--sigma", type=float, default=usual.noise, help="of the noise of a reward (0.5)")
        game.add_argument(
            "--theta-norm", type=float, default=usual.theta_norm, metavar="S", help="at least theta's (1)"
        )
        game.add_argument("--delta", type=float, default=usual.delta, help="how often confidence may fail (0.1)")
        game.add_argument("--reward", type=float, default=usual.reward, metavar="R", help="the largest; cut there (3)")
        game.add_argument("--no-union-bound", action="store_true", help="narrower widths, which hold as well")
        game.add_argument(
            "--batches", default=Batches.PUBLIC.value, metavar="WHO",
            help="public: all know when one ends; hidden: nobody; none: an update each step (public)",
        )  # fmt: skip

    def add_options(self, parser: ArgumentParser, *, processes: bool) -> None:
        """The problem."""
        data = parser.add_argument_group("the problem")
        data.add_argument(
            "--data", choices=[*_PROBLEMS, MOVIELENS], default="toy",
            help="4 contexts, new ones each step, or some movies each step for a user (toy)",
        )  # fmt: skip
        data.add_argument("--data-dir", type=Path, help="the folder with u.data of MovieLens 100K")
        data.add_argument("--user", type=int, default=0, help="of MovieLens, whose ratings define theta (0)")
        self.add_apart(parser)

    def add_apart(self, parser: ArgumentParser) -> None:
        """Ciphertexts."""
        usual = Scheme()
        keys = parser.add_argument_group("ciphertexts of mode ckks")
        keys.add_argument("--security", type=int, default=usual.security, help="bits: 128, 192 or 256 (128)")
        keys.add_argument(
            "--degree", type=int, default=usual.degree, metavar="N",
            help="of polynomials (16384); 8192 is safe at 128 bits, and quicker",
        )  # fmt: skip
        keys.add_argument(
            "--products", type=int, default=usual.products, metavar="P",
            help="how many, one after the other, between two refreshes (2)",
        )  # fmt: skip

    def apart(self, options: Namespace) -> Apart:
        """Users bring the problem."""
        return Ciphertexts(ckks_settings_of(options)) if options.mode == CKKS else super().apart(options)

    def check(self, options: Namespace) -> None:
        """What argparse does not know."""
        if options.mode == MPC:
            usual = Scheme()
            for name in ("security", "degree", "products"):
                if getattr(options, name, given := getattr(usual, name)) != given:  # plans have no such option
                    raise ConfigError(f"--{name} is of --mode {CKKS}: on shares nothing is encrypted; leave it out")
            settings_of(options)
            return
        ckks_settings_of(options).scheme.context  # noqa: B018  refused before anything is written

    def steps(self, options: Namespace) -> int:
        """T."""
        return int(options.steps)

    def program(self, options: Namespace, *, processes: bool) -> Encrypted:
        """With its problem."""
        settings = settings_of(options)
        problem = problem_of(options, settings)
        return Encrypted(settings, options.parties, seed=options.seed, data=options.data, problem=problem)

    def planned(self, options: Namespace) -> Encrypted:
        """No problem is needed to plan."""
        return Encrypted(settings_of(options), options.parties)

    def classic(
        self, options: Namespace, keep: Keep | None, *, processes: bool, watch: Callable[[int], None]
    ) -> Report:
        """As published, with CKKS."""
        settings = ckks_settings_of(options)
        problem = problem_of(options, settings)
        timeout = options.timeout or DEFAULT_TIMEOUT
        homes = [] if keep is None else [keep.folder / role.value for role in KEEPING]
        with stopped(keep, homes):
            run = play_ckks(settings, problem, processes=processes, watch=watch, timeout=timeout, keep=keep)
        report = ckks_report(run, options.seed)
        return report if keep is None else replace(report, settle=partial(forget, keep.folder, homes))

    def report(self, options: Namespace, program: Program[Any], run: Run) -> Report:
        """Beside the policy in the clear."""
        return report(program, run)


def settings_of(options: Namespace) -> Settings:
    """Of a run on shares."""
    return Settings(_constants(options), options.arms, options.steps, _batches(options))


def ckks_settings_of(options: Namespace) -> CkksSettings:
    """Of a run on ciphertexts."""
    scheme = Scheme.of(options.degree, options.products, options.security)
    return CkksSettings(_constants(options), options.arms, options.steps, _batches(options), scheme)


def _batches(options: Namespace) -> Batches:
    names = {kind.value: kind for kind in Batches}
    if options.batches not in names:
        raise ConfigError(f"--batches is one of {', '.join(names)}, not {options.batches!r}")
    return names[options.batches]


def _constants(options: Namespace) -> Constants:
    try:
        return Constants(
            options.dim, options.norm, options.ridge, options.trace, options.eta, options.sigma, options.theta_norm,
            options.delta, options.reward, not options.no_union_bound,
        )  # fmt: skip
    except HelbaError as error:
        raise ConfigError(str(error)) from error


def problem_of(options: Namespace, settings: Game) -> Problem:
    """Features and rewards of all steps."""
    given, size = settings.constants, {"arms": settings.arms}
    if options.data != MOVIELENS:
        if options.data_dir is not None or options.user:
            raise ConfigError("--data-dir and --user are of --data movielens: name it, or leave them out")
        return _PROBLEMS[options.data](given, settings.steps, options.seed, **size)
    if options.data_dir is None:
        raise ConfigError("--data movielens needs the folder of its u.data: name it with --data-dir")
    try:
        found = chosen(options.data_dir, given.dim, settings.arms, options.user)
        return rows_of(found.movies, found.users[options.user], given, settings.steps, options.seed, **size)
    except (ProblemError, HelbaError) as error:
        raise ConfigError(str(error)) from error


def _growth(text: str) -> float | None:
    if text == "none":
        return None
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"a number, or none, not {text!r}") from None
