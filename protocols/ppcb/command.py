"""`masked run ppcb` and `masked launch ppcb`: the private contextual bandit, with its plaintext twin beside it."""

from __future__ import annotations

import re
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from bandits.environments import Environment
from mpc.errors import ConfigError
from mpc.interop.crypten import crypten_python

from ..run.apart import Apart
from ..run.choices import chosen, values
from ..run.exits import say
from ..run.folder import Keep, notes_in
from ..run.launch import launch
from ..run.on_shares import OnShares
from ..run.options import MPC, System, add_problem, processes_of
from ..run.parser import count_or_names, whole
from ..run.program import Program
from ..run.rehearsal import rehearse
from ..run.report import Report
from ..run.simulate import simulate
from .clients import Tally, pulled
from .crypten.engine import beside, check_engine
from .crypten.report import report as beside_report
from .data_options import add_data, check_data, environment_of
from .library.names import Names
from .live.program import Live
from .report import report
from .run import Bandit, Run
from .settings import Argmax, Division, Policy, Settings, Truncation, Variant

_ABOUT = """The private contextual bandit, on a data set: {more}.

The computing parties own the features, a block each.  For every context they choose an arm on shares: the puller learns
it, the payer sees what came of it and shares the reward, and the regressions that learn from it stay shares.  The
plaintext twin plays beside the run, with the same coins.
"""
_EXAMPLES = """examples:
  masked {how} {name} --steps 500                                    digits, 10 arms, 3 parties
  masked {how} {name} --data mnist --data-dir DIR --steps 5000        MNIST, from a folder with its files
  masked {how} {name} --data digits --task clusters --arms 5          arms by K-means, as many as wanted
  masked {how} {name} --owners 12,5,3 --reward-range -1,1             blocks of features; --parties 2 --owners 20,0
  masked {how} {name} --variant published --steps 100                 the algorithm as its paper has it
  masked {how} {name} --steps 2000 --out runs/a                       Ctrl-C, then the same with --resume
  masked {how} {name} --steps 640 --batch 64                          64 contexts together: half the bytes for each,
                                                                    an eighth of the time, 29 rounds for all
  masked {how} {name} --policy linucb --alpha 0.5 --eps 0             private LinUCB
  masked {how} {name} --engine crypten --steps 300                    Algorithm 1 by CrypTen 0.4.1, beside ours
  masked {how} {name} --json                                          one JSON document for other tools
"""
OURS, CRYPTEN = "ours", "crypten"
_N = TypeVar("_N", int, float)
_NEGATIVE = re.compile(r"^-[\d.][-\d.,e+]*$")
_TIE_BITS = 8
_LONG = 2.0  # seconds of loading after which it is said


class PPCB(System):
    """The private contextual bandit."""

    name = "ppcb"
    summary = "the private contextual bandit, on a data set"
    seeded_apart = False  # coins are the dealer's
    about, examples, unit, draws_reference, parties = _ABOUT, _EXAMPLES, "decision", False, 3

    def add_problem(self, parser: ArgumentParser) -> None:
        """The length of a run, on which its state bits and refreshes depend, and settings."""
        parser.add_argument("--steps", type=int, default=500, help="contexts to decide on, in each replica (500)")
        add_settings(parser)

    def add_apart(self, parser: ArgumentParser) -> None:
        """Whether contexts and rewards come by the way."""
        parser.add_argument("--live", action="store_true", help="for 'masked serve': they come while it runs")
        parser.add_argument("--turns", type=whole, default=10**9, help="of a service, at most (1e9)")

    def add_plan(self, parser: ArgumentParser) -> None:
        """A service draws what its turns do."""
        self.add_apart(parser)

    def apart(self, options: Namespace) -> Apart:
        """A service is another program on the same settings."""
        if not options.live or options.mode != MPC:
            return super().apart(options)
        return OnShares(_live(options))

    def add_options(self, parser: ArgumentParser, *, processes: bool) -> None:
        """The data, and who computes."""
        add_data(parser)
        parser.add_argument(
            "--engine", choices=[OURS, CRYPTEN], default=OURS,
            help="crypten: the same steps by CrypTen as well, in one report; scripts/setup_crypten installs it (ours)",
        )  # fmt: skip

    def check(self, options: Namespace) -> None:
        """What argparse does not know."""
        settings_of(options)
        if options.policy == Policy.EPSILON_GREEDY.value and options.alpha != 1.0:
            raise ConfigError("--alpha is of --policy linucb and thompson: epsilon-greedy has --eps alone")
        if hasattr(options, "data"):  # a plan takes no data
            check_data(options)
        if self.otherwise(options):
            if options.resume:
                raise ConfigError("--engine crypten keeps nothing to go on from: leave out --resume, start again")
            check_engine(settings_of(options))
            crypten_python()

    def otherwise(self, options: Namespace) -> str:
        """CrypTen's run is not on our shares."""
        return f"--engine {CRYPTEN}" if getattr(options, "engine", OURS) == CRYPTEN else ""

    def classic(
        self, options: Namespace, keep: Keep | None, *, processes: bool, watch: Callable[[int], None]
    ) -> Report:
        """The steps by us, and then by CrypTen."""
        program = self.program(options, processes=processes)
        ours = launch(program, processes_of(options), say=say) if processes else simulate(program, seed=options.seed)
        return beside_report(beside(program, ours, watch=watch), processes=processes)

    def steps(self, options: Namespace) -> int:
        """Contexts in each replica."""
        return int(options.steps)

    def program(self, options: Namespace, *, processes: bool) -> Bandit:
        """The bandit on its data set, of which every owner's block keeps the bound."""
        environment = _environment(options)
        made = Bandit.on(
            environment, settings_of(options), parties=options.parties, steps=options.steps, seed=options.seed
        )
        made.options = options_of(options)
        return made

    def planned(self, options: Namespace) -> Program[Any]:
        """No data is needed to plan."""
        if getattr(options, "live", False):
            return _live(options)
        settings = settings_of(options).for_run(options.parties, options.steps)
        return Bandit(settings, options.parties, -(-options.steps // settings.batch) * settings.batch)

    def running(self, program: Program[Any], keep: Keep | None) -> Callable[[int], str]:
        """The reward so far, and what a decision costs."""
        assert isinstance(program, Bandit)
        cost = rehearse(program).cost
        noted = None if keep is None else notes_in(program, keep.folder)

        def more(done: int) -> str:
            paid = program.paid
            if not paid.count and noted is not None:  # the payer is in another process
                arms = noted.glance()
                paid = Tally()
                paid.add(pulled(program.world.outcomes[: len(arms)], arms))
            return f"  reward {paid.average:.4f}  {cost.rounds:g} rounds  {cost.opened_bytes / 1e3:,.1f} kB"

        return more

    def report(self, options: Namespace, program: Program[Any], run: Run) -> Report:
        """Beside the twin."""
        return report(run)


def add_settings(parser: ArgumentParser) -> None:
    """The options that settings are made of, the length of the run aside."""
    bandit = parser.add_argument_group("the bandit")
    bandit.add_argument("--arms", type=count_or_names, default=10, help="how many; of a service, or their names (10)")
    bandit.add_argument("--dim", type=int, default=20, help="dimensions of a context (20)")
    bandit.add_argument("--eps", type=float, default=0.1, help="how often to explore (0.1)")
    bandit.add_argument("--policy", default=Policy.EPSILON_GREEDY.value, help=f"{values(Policy)} (epsilon-greedy)")
    bandit.add_argument("--alpha", type=float, default=1.0, help="optimism of linucb, spread of thompson (1)")
    bandit.add_argument("--ridge", type=float, default=1.0, help="the regulariser (1)")
    bandit.add_argument("--bound", type=float, default=1.0, help="the largest norm of one owner's features (1)")
    bandit.add_argument(
        "--owners", metavar="D0,D1,...", help="features of each party, 0 where it has none (as equal as can be)"
    )
    bandit.add_argument("--reward-range", default="0,1", metavar="LOW,HIGH", help="where every reward lies (0,1)")
    parser._negative_number_matcher = _NEGATIVE  # so that -1,1 is a value and no option
    batch = "contexts decided on, and learned from, together: of 64 each takes a fraction of what one takes alone (1)"
    bandit.add_argument("--batch", type=int, default=1, help=batch)
    bandit.add_argument("--delay", type=int, default=0, help="decisions by which rewards are late (0)")
    bandit.add_argument("--replicas", type=int, default=1, help="independent bandits in one run (1)")
    how = parser.add_argument_group("the protocol")
    how.add_argument(
        "--variant", default=Variant.RECAST.value,
        help="recast: in as few rounds as we know; published: Algorithm 1 of the paper, step by step (recast)",
    )  # fmt: skip
    how.add_argument("--reciprocal", help=f"how 1 / x is found: {values(Division)} (table)")
    how.add_argument(
        "--newton", type=int, help="Newton's iterations for 1 / x (1 behind a table, 10 alone, 7 as published)"
    )
    how.add_argument(
        "--argmax",
        help="pairs: all pairs of arms at once, by tables; strings: the same in a round less; circuit: by circuits; "
        "tournament: in two levels (pairs)",
    )
    how.add_argument(
        "--truncation", default=Truncation.EXACT.value,
        help="how a product loses its extra digits: exact, or published, which fails now and then (exact)",
    )  # fmt: skip
    how.add_argument("--fraction-bits", type=int, default=20, help="of contexts, rewards and scores (20)")
    how.add_argument(
        "--state-bits", type=int, help="of the regressions, at least (as --fraction-bits; more for long runs)"
    )
    ties = (
        "no arm loses to one whose score is lower by 2^-B of the rewards' range; closer ones are drawn among "
        f"({_TIE_BITS}; 0: only equal scores)"
    )
    how.add_argument("--tie-bits", type=int, metavar="B", help=ties)
    refresh = "decisions after which the regressions are brought back to the exact sums (as it takes; 0: never)"
    how.add_argument("--refresh", type=int, metavar="N", help=refresh)


def settings_of(options: Namespace) -> Settings:
    """Settings from these options."""
    if options.steps < 1:
        raise ConfigError(f"at least 1 step, not {options.steps}")
    if options.parties > options.dim and options.owners is None:
        raise ConfigError(
            f"{options.parties} owners of {options.dim} features: each owns at least one, or say which with --owners"
        )
    variant = chosen(Variant, options.variant, "--variant")
    if variant is Variant.PUBLISHED and options.tie_bits is not None:
        raise ConfigError("--tie-bits is of the recast: Algorithm 1 as published compares scores alone; leave it out")
    if options.batch > 1 and (options.reciprocal is not None or options.newton is not None):
        raise ConfigError(
            "--reciprocal and --newton are of 1 / x, and a batch is learned from by the inverse of a matrix: leave "
            "them out, or --batch"
        )
    if variant is Variant.PUBLISHED and (options.argmax is not None or options.reciprocal is not None):
        raise ConfigError(
            "--argmax and --reciprocal are of the recast: Algorithm 1 as published has its own argmax, in two passes, "
            "and its own reciprocal, of --newton iterations; leave them out"
        )
    division = chosen(Division, _or(options.reciprocal, Division.TABLE.value), "--reciprocal")
    if division is Division.TABLE and options.newton:
        division = Division.TABLE_NEWTON
    low, high = _numbers(options.reward_range, float, "--reward-range", 2)
    names = names_of(options)
    settings = Settings(
        arms=len(names) or options.arms, dim=options.dim, eps=options.eps, replicas=options.replicas,
        batch=options.batch, delay=options.delay, policy=chosen(Policy, options.policy, "--policy"),
        alpha=options.alpha, ridge=options.ridge, bound=options.bound, owners=options.parties,
        fraction_bits=options.fraction_bits,
        state_bits=_or(options.state_bits, options.fraction_bits), division=division, newton=options.newton,
        argmax=chosen(Argmax, _or(options.argmax, Argmax.PAIRS.value), "--argmax"),
        truncation=chosen(Truncation, options.truncation, "--truncation"), variant=variant, refresh=options.refresh,
        steps=max(options.steps, 1 << 16), reward_range=(low, high), tie_bits=_or(options.tie_bits, _TIE_BITS),
        widths=_widths(options),
    )  # fmt: skip
    decisions = -(-options.steps // settings.batch)
    if settings.delay >= decisions:
        raise ConfigError(
            f"rewards that are {settings.delay} decisions late never come in a run of {decisions}: more --steps, or a "
            "smaller --delay"
        )
    return settings


def names_of(options: Namespace) -> Sequence[str]:
    """What the arms are called; none where they are numbers."""
    if isinstance(options.arms, int):
        return ()
    if not getattr(options, "live", False):
        raise ConfigError("names of arms are for a service (live = true), not for a run: say how many there are")
    names = Names.of(options.arms, None).arms or {}
    return [str(name) for name in names.values()]


def _live(options: Namespace) -> Live:
    settings = settings_of(options).for_run(options.parties, options.steps)
    return Live(replace(settings, steps=options.steps), options.parties, options.turns, names_of(options))


def options_of(options: Namespace) -> str:
    """Those of a plan, its length aside, that are not as they are by default, as a command has them."""
    parser = ArgumentParser()
    add_problem(PPCB(), parser)
    given = ((name, getattr(options, name), usual) for name, usual in vars(parser.parse_args([])).items())
    return " ".join(
        f"--{name.replace('_', '-')} {value}" for name, value, usual in given if value != usual and name != "steps"
    )


def _widths(options: Namespace) -> tuple[int, ...]:
    """Of the owners' blocks, if they are said."""
    if options.owners is None:
        return ()
    if (count := options.owners.count(",") + 1) != options.parties:
        raise ConfigError(
            f"--owners {options.owners} has {count} block{'s' * (count > 1)} and there are {options.parties} parties: "
            f"say --parties {count}, or give {options.parties} blocks"
        )
    return _numbers(options.owners, int, "--owners", options.parties)


def _numbers(given: str, kind: type[_N], flag: str, count: int) -> tuple[_N, ...]:
    """So many numbers, with commas between them."""
    try:
        found = tuple(kind(word) for word in given.split(","))
    except ValueError:
        found = ()
    if len(found) != count:
        named = "whole numbers" if kind is int else "numbers"
        raise ConfigError(f"{flag} takes {count} {named} with commas between them, not {given!r}")
    return found


def _or(given: Any, usual: Any) -> Any:
    return usual if given is None else given


def _environment(options: Namespace) -> Environment:
    """The data set; says so where it takes a while."""
    note = threading.Timer(_LONG, say, [f"loading {options.data}: its contexts by PCA, then its arms"])
    note.daemon = True
    note.start()
    try:
        return environment_of(options)
    finally:
        note.cancel()
