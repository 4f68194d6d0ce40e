"""`masked run|launch PROGRAM`: the options that all programs have, and what a command does with them, once.

A system gives what is its own as a `System`: its options, how a program is made of them, and its report.  A new option
of all programs is added here.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from abc import ABC, abstractmethod
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from mpc.errors import ConfigError
from mpc.launch import Place, place
from mpc.net.transport import DEFAULT_TIMEOUT, check_timeout
from mpc.scratch import remove_left, scratch_folder
from offline import Plan

from .apart import Apart
from .config import ON_SHARES
from .exits import exit_codes, say
from .folder import CHECKPOINTS, PICTURES, Keep, check_file, check_picture, reserved, settle
from .launch import Processes, launch
from .on_shares import OnShares
from .parser import Parser
from .plan_command import add_plan
from .program import Program
from .progress import Progress
from .rehearsal import rehearse
from .report import Report, show
from .simulate import simulate
from .stopping import Interrupt, Stopped
from .terminal import on_terminals
from .torchrun import check_dealt, check_place, follow, one_voice, reported, torchrun

CLASSIC, MPC = "classic", ON_SHARES
IN_THIS_PROCESS, IN_PROCESSES = "all roles in this process", "a process for each role"
_OF_PROCESSES = "material", "session", "timeout"


class System(ABC):
    """A program of the command line."""

    name: ClassVar[str]
    summary: ClassVar[str]  # a line of help
    about: ClassVar[str] = ""  # what `--help` says first, the summary by default; {more} is how the roles are played
    examples: ClassVar[str] = ""  # {how} is run or launch, {name} the program
    parties: ClassVar[int] = 2  # computing parties, if nobody says how many
    step: ClassVar[str] = "step"
    unit: ClassVar[str] = ""  # what checkpoints count, where a decision is on several steps
    every: ClassVar[int] = 100
    modes: ClassVar[tuple[str, ...]] = (MPC,)
    untold: ClassVar[str] = ""  # what has not happened where a run was stopped
    seeded_apart: ClassVar[bool] = True  # whether --seed means something to its roles on machines of their own
    draws_reference: ClassVar[bool] = True  # whether its picture is of a reference, whose coins a dealer beside it has

    @abstractmethod
    def add_problem(self, parser: ArgumentParser) -> None:
        """The options that decide what a decision draws, beside --parties: of runs and of plans."""

    def add_options(self, parser: ArgumentParser, *, processes: bool) -> None:  # noqa: B027  many have none
        """Its other options, of runs alone."""

    def check(self, options: Namespace) -> None:  # noqa: B027  many have nothing to add
        """What argparse does not know; ConfigError before anything is loaded or written."""

    def clients(self, options: Namespace, *, processes: bool) -> tuple[str, ...]:
        """The clients of a run, as torchrun has to start them."""
        return tuple(role.name for role in self.planned(options).roles)

    @abstractmethod
    def program(self, options: Namespace, *, processes: bool) -> Program[Any]:
        """The program with its inputs, which may take a while to load."""

    def planned(self, options: Namespace) -> Program[Any]:
        """The program that a plan is made of, without the inputs where they take long."""
        return self.program(options, processes=False)

    @abstractmethod
    def report(self, options: Namespace, program: Program[Any], run: Any) -> Report:
        """What a run gave."""

    def running(self, program: Program[Any], keep: Keep | None) -> Callable[[int], str]:
        """What is said beside the progress."""
        return lambda _: ""

    def steps(self, options: Namespace) -> int:
        """How many steps were asked for."""
        return self.planned(options).decisions

    def add_apart(self, parser: ArgumentParser) -> None:  # noqa: B027  many have none
        """Options beside those of the problem that all its roles must know, where each is on a machine of its own."""

    def add_plan(self, parser: ArgumentParser) -> None:  # noqa: B027  many have none
        """Of these, the options that decide what a decision draws."""

    def apart(self, options: Namespace) -> Apart:
        """Its roles on machines of their own; no option names what one of them alone has."""
        if options.mode == MPC:
            return OnShares(self.planned(options))
        raise ConfigError(f"{self.name} has no mode {options.mode!r} between machines: there is {MPC!r}")

    def otherwise(self, options: Namespace) -> str:
        """The option by which this run is not on our shares; empty where it is."""
        return "" if options.mode == MPC else f"--mode {options.mode}"

    def classic(
        self, options: Namespace, keep: Keep | None, *, processes: bool, watch: Callable[[int], None]
    ) -> Report:
        """Play the protocol as it was published, or as `otherwise` says."""
        raise ConfigError(f"{self.name} has no --mode {options.mode}")


def register(system: System, run: Any, launch_: Any) -> None:
    """Add the program to `run` and `launch`."""
    for programs, how, more in ((run, "run", IN_THIS_PROCESS), (launch_, "launch", IN_PROCESSES)):
        about = system.about or f"{system.summary}: {{more}}"
        parser = programs.add_parser(
            system.name, help=system.summary, description=about.format(more=more),
            epilog=system.examples.format(how=how, name=system.name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        processes = how == "launch"
        add_problem(system, parser)
        system.add_options(parser, processes=processes)
        _add_common(parser, system, processes=processes)
        parser.set_defaults(run=partial(_run, system, processes=processes))


def main(system: System, arguments: Sequence[str] | None = None) -> None:
    """A command line of one program, `SCRIPT run|launch|plan NAME`, as `masked` has it for its own programs."""
    words = sys.argv[1:] if arguments is None else arguments
    with on_terminals(plain="--json" in words), exit_codes():
        options = _parser_of(system).parse_args(words)
        options.run(options)


def _parser_of(system: System) -> ArgumentParser:
    parser = Parser(description=system.summary)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    run, launch_, plan = (
        commands.add_parser(name, help=what).add_subparsers(dest="program", metavar="PROGRAM", required=True)
        for name, what in (("run", IN_THIS_PROCESS), ("launch", IN_PROCESSES), ("plan", "what a run draws"))
    )
    register(system, run, launch_)
    add_plan(plan, system.name, partial(planned, system), add=partial(add_planned, system), summary=system.summary)
    return parser


def add_problem(system: System, parser: ArgumentParser) -> None:
    """What a plan depends on: the system's own options, and how many parties there are."""
    system.add_problem(parser)
    usual = system.parties
    parser.add_argument("--parties", type=int, default=usual, metavar="N", help=f"computing parties ({usual})")


def check_parties(parties: int) -> None:
    """ConfigError unless there is somebody to share with."""
    if parties < 2:
        raise ConfigError(f"secret sharing needs at least 2 parties, not {parties}")


def add_planned(system: System, parser: ArgumentParser) -> None:
    """What a plan depends on, of a run between machines too."""
    add_problem(system, parser)
    system.add_plan(parser)


def planned(system: System, options: Namespace) -> Plan:
    """The plan of a run; says how many steps of it the run draws."""
    check_parties(options.parties)
    system.check(options)
    program = system.planned(options)
    steps, rehearsed = program.draws(), rehearse(program)
    if not rehearsed.plan.items:
        raise ConfigError(f"a run of {program.name} draws nothing: launch it without --material")
    how = f"'masked offline deal {options.out} --steps {'N' if program.served else steps} --out DIR'"
    if program.served:
        print(f"each {program.unit} of {program.purpose[0]} that has work draws a step of this plan, dealt by {how}")
    else:
        print(f"a run of {program.purpose[0]} draws {steps:,} steps of this plan, dealt by {how}")
    return rehearsed.plan


def natural(text: str) -> int:
    """A seed from the command line."""
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"a seed is a whole number from 0, not {text!r}")
    return int(text)


def _add_common(parser: ArgumentParser, system: System, *, processes: bool) -> None:
    modes = "as published, or on shares (mpc)" if len(system.modes) > 1 else "on shares, as this program always is"
    parser.add_argument("--mode", choices=system.modes, default=MPC, help=modes)
    parser.add_argument(
        "--seed", type=natural, default=1, help="of the inputs that are made up; in 'run' of everything (1)"
    )
    kept = parser.add_argument_group("what is kept")
    kept.add_argument(
        "--out", type=Path, help=f"folder of results and checkpoints (runs/{system.name}; none with --json)"
    )
    kept.add_argument(
        "--checkpoint-every", type=int, default=system.every, metavar="N",
        help=f"{system.unit or system.step}s between two checkpoints ({system.every})",
    )  # fmt: skip
    unfinished = kept.add_mutually_exclusive_group()
    unfinished.add_argument(
        "--resume", action="store_true", help="go on from the last checkpoint of the unfinished run in --out"
    )
    unfinished.add_argument("--overwrite", action="store_true", help="discard that run; without either, none begins")
    kept.add_argument("--plot", type=Path, help=f"write the reward curve to this file as well: {', '.join(PICTURES)}")
    kept.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    where = parser.add_argument_group("processes" if processes else "processes, where torchrun starts them")
    where.add_argument("--timeout", type=float, help=f"seconds until a silent peer is lost ({DEFAULT_TIMEOUT:g})")
    where.add_argument("--material", type=Path, help="draw from the stores below this directory; no dealer then")
    where.add_argument("--session", help="the session the stores were dealt for (local)")


def _run(system: System, options: Namespace, *, processes: bool) -> None:
    here = place()
    if here is None:
        remove_left()  # before anything can be refused
    with contextlib.nullcontext() if here is None else reported():
        with one_voice(here):
            out = _checked(system, options, here, processes=processes)
        if here is not None:
            _ranked(system, options, out, here)
            return
        with _reserved(out), _told_to_stop(system, options, out):
            report = _played(system, options, out, processes=processes)
            _finish(system, options, report, out)


def _played(system: System, options: Namespace, out: Path | None, *, processes: bool) -> Report:
    keep = _keep_in(system, options, out)
    if system.otherwise(options):
        progress = Progress(system.steps(options), system.step)
        report = system.classic(options, keep, processes=processes, watch=progress)
        progress.end()
        return report
    program = system.program(options, processes=processes)
    progress = Progress(program.decisions, program.unit)
    with contextlib.ExitStack() as stack:
        kept = keep
        if kept is None and program.partial:  # for a result of what was reached when it is stopped
            kept = Keep(stack.enter_context(scratch_folder()) / "keep", options.checkpoint_every)
        more = system.running(program, kept)
        if processes:
            run = launch(
                program, processes_of(options), keep=keep, watch=lambda done: progress(done, more(done)), say=say
            )  # fmt: skip
        else:
            interrupt = stack.enter_context(Interrupt())

            def watch(done: int) -> bool:
                progress(done, more(done))
                return not interrupt.asked

            run = simulate(program, seed=options.seed, keep=keep, watch=watch)
    progress.end()
    return _reported(system, options, program, run, keep)


def _ranked(system: System, options: Namespace, out: Path | None, here: Place) -> None:
    """As one of the ranks that torchrun started; without a folder, only the end is kept, and only for the result."""
    keep = _keep_in(system, options, out)
    clients, how = system.clients(options, processes=True), processes_of(options)
    with one_voice(here):
        check_dealt(how, keep)
    if here.node:
        follow(how, here, clients)
        return
    program = system.program(options, processes=True)
    with _reserved(out):
        run = torchrun(program, how, keep=keep)
        _finish(system, options, _reported(system, options, program, run, keep), out)


def _reported(system: System, options: Namespace, program: Program[Any], run: Any, keep: Keep | None) -> Report:
    report = system.report(options, program, run)
    return report if keep is None else replace(report, settle=partial(settle, program, keep.folder))


def _finish(system: System, options: Namespace, report: Report, out: Path | None) -> None:
    """Print and write what there is; only then is the run a finished one.  Exit code 130 if it was stopped."""
    given = {name: value for name, value in vars(options).items() if name not in ("run", "command", "json")}
    named = {"program": system.name, "mode": options.mode, "seed": options.seed}
    named = {name: value for name, value in named.items() if name not in report.document}
    report = replace(report, document={**named, **report.document})
    show(report, given, out, options.plot, as_json=options.json)
    if report.done < system.steps(options):
        sys.stdout.flush()
        raise _stopped(system, options, report.done, out)
    report.settle()


def _checked(system: System, options: Namespace, here: Place | None, *, processes: bool) -> Path | None:
    """The folder of what is kept, if anything is."""
    if options.seed >> 128:
        raise ConfigError("a seed lies between 0 and 2^128 - 1")
    if options.resume and options.json and options.out is None:
        raise ConfigError("--resume needs the folder of the run's checkpoints: name it with --out")
    if options.checkpoint_every < 1:
        unit = system.unit or system.step
        raise ConfigError(f"at least 1 {unit} between checkpoints, not {options.checkpoint_every}")
    other = system.otherwise(options)
    if options.mode == MPC:
        check_parties(options.parties)
    elif options.parties != system.parties:
        raise ConfigError(f"--parties is of --mode {MPC}: who takes part in --mode {options.mode} is as published")
    if other and here is not None:
        raise ConfigError(f"torchrun starts computing parties, and {other} has none: use 'masked launch {system.name}'")
    if here is None and not processes:
        for name in _OF_PROCESSES:
            if getattr(options, name) is not None:
                raise ConfigError(
                    f"--{name} is for parties in processes of their own: use 'masked launch {system.name}'"
                )
    if other and options.material is not None:
        raise ConfigError(f"--material is of runs on our shares: {other} draws nothing that is dealt")
    if options.timeout is not None:
        check_timeout(options.timeout)
    if options.plot is not None and options.material is not None and system.draws_reference:
        raise ConfigError("--plot draws the reference, whose coins are the dealer's alone with --material: drop one")
    system.check(options)
    if here is not None:
        check_place(here, options.parties, system.clients(options, processes=True))
    if options.plot is not None and (here is None or not here.node):
        check_picture(options.plot)
    return options.out or (None if options.json else Path("runs") / system.name)


@contextlib.contextmanager
def _reserved(out: Path | None) -> Iterator[None]:
    """The folder is this run's, and takes its result."""
    if out is None:
        yield
        return
    with reserved(out / CHECKPOINTS):
        for name in ("result.json", "reward.png"):
            check_file(out / name, "--out")
        yield


def _keep_in(system: System, options: Namespace, out: Path | None) -> Keep | None:
    """A folder for each mode, which share the lock and result.json."""
    if out is None:
        return None
    around = out / CHECKPOINTS
    folder = around / options.mode if len(system.modes) > 1 else around
    return Keep(folder, options.checkpoint_every, options.resume, options.overwrite, around)


def processes_of(options: Namespace) -> Processes:
    """How its processes are started."""
    timeout = DEFAULT_TIMEOUT if options.timeout is None else options.timeout
    return Processes(timeout, options.material, options.session or "local")


@contextlib.contextmanager
def _told_to_stop(system: System, options: Namespace, out: Path | None) -> Iterator[None]:
    try:
        yield
    except Stopped as stopped:
        raise _stopped(system, options, stopped.done, out) from None


def _stopped(system: System, options: Namespace, done: int, out: Path | None) -> SystemExit:
    """A run that was stopped says how to go on, and exits with 130."""
    cure = f": go on with --resume and --out {out}" if out is not None else ", and nothing is kept without --out"
    say(f"stopped at {system.step} {done:,} of {system.steps(options):,}{system.untold}{cure}")
    return SystemExit(130)
