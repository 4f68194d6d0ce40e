"""`masked run|launch samba`: a bandit whose arms belong to owners, as published and on shares, and its reference."""

from __future__ import annotations

import argparse
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bandits.samba import NAMES, Seeds
from mpc.errors import ConfigError

from ..published.kept import stopped
from ..run.apart import Apart
from ..run.folder import Keep
from ..run.on_shares import OnShares
from ..run.options import CLASSIC, MPC, System
from ..run.program import Program
from ..run.progress import Progress
from ..run.report import Report
from ..run.stopping import Interrupt, Stopped
from .classic.apart import Classic
from .classic.checkpoints import forget, home_of
from .classic.messages import Spec
from .classic.run import play_classic
from .data_arms import add_arms, arms_of
from .mpc.program import CUSTOMER
from .mpc.run import Federation, Run
from .mpc.settings import MOST_HOSTS, Settings, hosts_of
from .report import classic_document, classic_text, document, text

SAMBA = "samba"
OPTIMISED, TEXT = "optimised", "text"
_BITS = 2048
_EXPLORING = "epsilon-greedy", "epsilon-decreasing"
_OF_POLICIES = {"eps": (0.1, "epsilon-greedy"), "tau": (0.06, "softmax"), "beta": (0.1, "pursuit")}  # by default
_ABOUT = """Federated multi-armed bandits (SAMBA): {more}.

K owners each hold one arm; DC, the data customer, pays for N pulls and learns the sum of what they brought.  Each arm
is pulled once, then a policy chooses.  Mode mpc: each step the owners share a score to the computing parties, which
find the largest, or draw, on shares and tell each owner its own bit; nobody learns anything else.  Mode classic: the
published protocol, in which a server called Comp decrypts masked scores.  The plaintext policy plays beside the run,
with the same coins.

An arms file holds the number of arms, then a mean for each: an arm pays 1 with that chance, else 0.  Without a file ten
arms are played, or --arms K, with means from 0.1 to 0.55: 0.1, 0.15, ... 0.55 of ten.
"""
_EXAMPLES = """examples:
  masked {how} {name}                                  ucb, the ten arms, 1000 pulls, on shares
  masked {how} {name} --policy thompson --arms-file means.txt --budget 5000
  masked {how} {name} --policy softmax --tau 0.02 --mode classic
  masked {how} {name} --policy epsilon-greedy --mode classic --exploring text   to the paper's letter
  masked {how} {name} --budget 100000 --out runs/a     Ctrl-C, then the same with --resume
  masked {how} {name} --json                           one JSON document for other tools
  masked launch samba --hosts 1                        all owners in one process
  masked {how} samba --policy thompson --data jester --data-dir DIR --budget 100000
  masked {how} samba --data movielens --means files --data-dir DIR    means as in the authors' arm files
  masked offline plan samba -o plan.json               material for N - K steps, dealt beforehand:
  masked offline deal plan.json --steps 990 --out material
  masked launch samba --material material
"""


class Samba(System):
    """SAMBA."""

    name = SAMBA
    seeded_apart = False  # each owner draws its own coins
    summary = "a bandit whose arms belong to owners, federated"
    about, examples = _ABOUT, _EXAMPLES
    every, modes = 1000, (CLASSIC, MPC)
    step, untold = "pull", ", before DC was told anything"

    def add_problem(self, parser: ArgumentParser) -> None:
        """The options that settings are made of."""
        game = parser.add_argument_group("the bandit")
        game.add_argument("--policy", default="ucb", metavar="NAME", help=f"{', '.join(NAMES)} (ucb)")
        game.add_argument("--budget", type=int, default=1000, metavar="N", help="how many pulls DC pays for (1000)")
        game.add_argument("--eps", type=float, default=0.1, help="how often epsilon-greedy explores (0.1)")
        game.add_argument("--tau", type=float, default=0.06, help="softmax's temperature, from 0.001 (0.06)")
        game.add_argument("--beta", type=float, default=0.1, help="pursuit's pace (0.1)")
        add_arms(parser)

    def add_options(self, parser: ArgumentParser, *, processes: bool) -> None:
        """The size of keys, and how many processes play the owners."""
        parser.add_argument("--bits", type=int, default=_BITS, help=f"of DC's Paillier key in mode classic ({_BITS})")
        parser.add_argument(
            "--exploring", choices=[OPTIMISED, TEXT], default=OPTIMISED,
            help="what owners send in mode classic where a step explores: nothing, or, as the paper's text has it, a 0",
        )  # fmt: skip
        parser.add_argument(
            "--hosts", type=int,
            help=f"processes that play the owners of mode mpc, in blocks (K, at most {MOST_HOSTS})"
            if processes
            else argparse.SUPPRESS,
        )  # fmt: skip

    def add_apart(self, parser: ArgumentParser) -> None:
        """How owners are hosted, and the size of keys."""
        self.add_options(parser, processes=True)

    def apart(self, options: Namespace) -> Apart:
        """Each owner knows its own arm: how many there are is all that is public of them."""
        if options.arms_file is not None or options.data is not None:
            raise ConfigError("owners bring their own arms: say with 'arms' how many there are, and leave out the rest")
        if options.arms is None:
            raise ConfigError("how many owners there are is public: say it with 'arms'")
        if options.mode == CLASSIC:
            return Classic(_spec(options), options.arms, options.budget, options.bits)
        options.hosts = options.hosts or options.arms
        return OnShares(Federation(_settings(options, options.arms, processes=True), options.parties, 0))

    def check(self, options: Namespace) -> None:
        """What argparse does not know."""
        if options.mode == CLASSIC and options.hosts:
            raise ConfigError("--hosts is of --mode mpc: in the published protocol each owner is alone")
        if options.mode != CLASSIC and getattr(options, "bits", _BITS) != _BITS:  # a plan is of mode mpc
            raise ConfigError("--bits is of --mode classic: on shares there is no key; leave it out")
        if getattr(options, "exploring", OPTIMISED) == TEXT and options.mode != CLASSIC:
            raise ConfigError("--exploring is of --mode classic: on shares nobody is told that a step explores")
        if getattr(options, "exploring", OPTIMISED) == TEXT and options.policy not in _EXPLORING:
            raise ConfigError(f"--exploring is of {' and '.join(_EXPLORING)}: no step of {options.policy} explores")
        check_constants(options, [options.policy])

    def steps(self, options: Namespace) -> int:
        """Pulls that are paid for."""
        return int(options.budget)

    def clients(self, options: Namespace, *, processes: bool) -> tuple[str, ...]:
        """The hosts of the owners, and DC."""
        return (*_settings(options, len(arms_of(options)), processes=processes).roles, CUSTOMER)

    def program(self, options: Namespace, *, processes: bool) -> Federation:
        """On shares."""
        arms = arms_of(options)
        settings = _settings(options, len(arms), processes=processes)
        return Federation(settings, options.parties, options.seed, arms, _beside(options.budget))

    def report(self, options: Namespace, program: Program[Any], run: Run) -> Report:
        """Rewards are each owner's own: what is drawn is the reference."""
        pulled = None if run.reference is None else run.reference.arms.tolist()
        return _report(options, document(run), text(run), pulled)

    def classic(
        self, options: Namespace, keep: Keep | None, *, processes: bool, watch: Callable[[int], None]
    ) -> Report:
        """As published, with AES-GCM and Paillier."""
        arms = arms_of(options)
        with ExitStack() as stack:
            interrupt = None if processes else stack.enter_context(Interrupt())
            owners = [] if keep is None else [home_of(keep.folder, range(arm, arm + 1)) for arm in range(len(arms))]
            stack.enter_context(stopped(keep, owners))
            run = play_classic(
                _spec(options), arms,
                options.budget, seed=options.seed, processes=processes, watch=watch, bits=options.bits, keep=keep,
                stop=None if interrupt is None else lambda: bool(interrupt.asked),
                timeout=options.timeout or 60.0,
            )  # fmt: skip
        if not run.finished:
            raise Stopped(run.done)
        pulled = None if run.reference is None else run.reference.arms.tolist()
        report = _report(options, classic_document(run), classic_text(run), pulled)
        return report if keep is None else replace(report, settle=partial(forget, keep.folder))


def check_constants(options: Namespace, policies: Sequence[str]) -> None:
    """ConfigError for a constant that none of the policies has."""
    for name, (usual, policy) in _OF_POLICIES.items():
        if getattr(options, name) != usual and policy not in policies:
            raise ConfigError(f"--{name} is of --policy {policy}, not of {options.policy}: leave it out")


def _beside(budget: int) -> Callable[[int], None]:
    """Progress of the reference, which plays when the run is over."""
    progress = Progress(budget, "pull of the reference")

    def watch(done: int) -> None:
        progress(done)
        if done == budget:
            progress.end()

    return watch


def _spec(options: Namespace) -> Spec:
    return Spec(options.policy, options.eps, options.tau, options.beta, zeros=options.exploring == TEXT)


def _settings(options: Namespace, arms: int, *, processes: bool) -> Settings:
    hosts = getattr(options, "hosts", None)
    if hosts is None:
        hosts = hosts_of(arms, processes)
    return Settings(options.policy, arms, options.budget, hosts, eps=options.eps, tau=options.tau, beta=options.beta)


def _report(options: Namespace, facts: dict[str, Any], text: str, pulled: Sequence[int] | None) -> Report:
    def draw(path: Path) -> None:
        from ..run.plots import paid_so_far

        arms, seed = arms_of(options), Seeds.of(options.seed).rewards
        rewards = np.array([arms.reward(seed, int(arm), t) for t, arm in enumerate(pulled or (), start=1)])
        title = f"{options.policy}, {len(arms)} arms, mode {options.mode}"
        best, mean = float(arms.means.max()), float(arms.means.mean())
        paid_so_far(rewards, float(facts["cumulative_reward"]), best=best, mean=mean, title=title, path=path)

    return Report(facts, text, options.budget, draw if pulled is not None else None)
