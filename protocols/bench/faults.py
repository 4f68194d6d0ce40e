"""Faults in launched programs: roles killed or frozen, the launcher ended, the disk full, folders gone, files damaged.

A black box: `masked launch ...` is started, harm is done at a moment, and from outside it is seen that

  - the launcher ends by itself, within 3 timeouts + 30 s + 4 times an undisturbed run, and leaves no process behind
    (5 s later) and no temporary file (of a launcher that was killed: none after the next start);
  - its stderr has one `error:` line, which names the role that was hit, as the error that the launcher raised does, or
    why the disk takes nothing; after Ctrl-C one line `stopped ...` and exit code 130; never a traceback;
  - a kept file that was damaged is refused in a line, or done without;
  - the same command with --resume, or a new run where nothing was kept, ends with the arms of the undisturbed run:
    ppcb beside its twin with the same coins, samba and linucb-ds beside their reference, all beside the undisturbed
    run where all follows from the seed;
  - no store of material has claimed a block twice.

Faults: {faults}.
Roles take turns, and moments are spread over the time that an undisturbed run, timed first, takes on this machine
beside another; every second one over the part of it behind the first checkpoint.  Where a run has ended before its
moment, it is timed anew by that, and another one is hit.  A fault that comes so late that the run ends well all the
same counts as `unharmed`; where most are, the machine is too quick for these runs: --longer makes them longer.

With --machines, sessions of `masked party` instead, each role a process with a file and a folder of its own, one link a
wire that can be cut: {between}.  Who was hit is started again with --resume, alone while the others wait, or with all
others where that is for good; every role has a line that names the cause, in the seconds that the second table has; all
come to the arms of the undisturbed run, or, with material dealt beforehand, to those that follow from the arms before.

The table goes to stdout, a line for each trial to stderr; exit code 1 if anything was wrong.  With --log each trial is
a line of JSON in a file, and the same command goes on behind the last one: a campaign may be run in pieces.

examples:
  scripts/faults --trials 1 --log faults.jsonl --table faults.md   one trial in each cell: about an hour
  scripts/faults --trials 3 --log faults.jsonl --table faults.md   later: two more in each, and the table of all
  scripts/faults --system samba --fault kill9 stop                 one system, or one mode of it: --system 'samba mpc'
  scripts/faults --timeout 20 --jobs 3                             on a machine with other work: silence is longer there
  scripts/faults --forked --longer 10                              where a run takes half a second, its start aside
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from mpc.errors import ConfigError
from mpc.lifeline import ENDS

from . import faults_between_trial as between
from . import faults_trial as launched
from .faults_between import SESSIONS
from .faults_cases import CASES
from .faults_kinds import FAULTS, Hits
from .faults_loaded import Loaded
from .faults_processes import end_all
from .faults_trial import Trial
from .lines import keep, kept


@dataclass(frozen=True)
class Ground:
    """What is played, what is done to it, how it is when nobody disturbs it, and how a trial goes."""

    cases: Sequence[Any]
    faults: Sequence[Any]
    undisturbed: Callable[..., Any]
    play: Callable[..., Trial]

    @property
    def names(self) -> list[str]:
        """Of systems, and of their modes."""
        return list(dict.fromkeys(name for case in self.cases for name in (case.system, case.name)))


LAUNCHED = Ground(CASES, FAULTS, launched.undisturbed, launched.play)
BETWEEN = Ground(SESSIONS, between.FAULTS, between.undisturbed, between.play)
_CASES = [case.name for ground in (LAUNCHED, BETWEEN) for case in ground.cases]
_FAULTS = [fault.name for ground in (LAUNCHED, BETWEEN) for fault in ground.faults]
_COLUMNS = (
    "system", "mode", "fault", "trials", "hung", "orphans", "wrong results", "drawn twice", "cause named once, rightly",
    "exit codes", "gone on", "same arms", "as it should be", "longest end (s)",
)  # fmt: skip
_STOPS = (signal.SIGINT, signal.SIGTERM)
Cell = tuple[Any, Any, int]
"""A case and a fault of one ground, and the number of the trial."""
_T = TypeVar("_T")


def cells(cases: Sequence[Any], faults: Sequence[Any], trials: int) -> list[Cell]:
    """All trials there are, one of each cell after the other; what keeps nothing has no file to be damaged."""
    return [
        (case, fault, number)
        for number in range(trials)
        for case in cases
        for fault in faults
        if case.keeps or fault.hits not in (Hits.FOLDER, Hits.KEPT)
    ]


def campaign(
    ground: Ground, wanted: Sequence[Cell], *, seed: int = 1, timeout: float = 10.0, jobs: int = 1,
    forked: bool = False, say: Callable[[str], None],
) -> Generator[Trial, None, None]:  # fmt: skip
    """Trials as they end, in the order wanted; none of their processes is alive afterwards.

    All cases are timed before the first trial: so trials of all cells take turns, and cells grow evenly.
    """
    mark, over = secrets.token_hex(8), threading.Event()
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True))
        loaded = None
        if forked and wanted:  # else it would load everything for nothing
            (register := Path(name) / "register").mkdir()
            loaded = stack.enter_context(closing(Loaded(register)))
        grounds: dict[Any, tuple[Any, Path, str]] = {}
        for at, case in enumerate(dict.fromkeys(case for case, _, _ in wanted)):
            scratch, own = Path(name) / f"case-{at}", f"{mark}-{at}-"
            scratch.mkdir()
            case.deal(scratch)
            with ThreadPoolExecutor(jobs) as pool:
                timed = range(min(jobs, 2))
                runs = [pool.submit(ground.undisturbed, case, f"{own}{at}-", scratch, at, loaded) for at in timed]
                beside = min((run.result() for run in _ended(own, runs, over)), key=lambda run: run.seconds)
            say(f"{case.name}: undisturbed {beside.seconds:.1f} s, {', '.join(beside.roles)}")
            grounds[case] = beside, scratch, own
        with ThreadPoolExecutor(jobs) as pool:
            played = []
            for case, fault, number in wanted:
                beside, scratch, own = grounds[case]
                trial_mark = f"{own}{fault.name.replace(' ', '_')}-{number}-"
                played.append(
                    pool.submit(
                        ground.play, case, fault, number, beside, trial_mark, scratch, loaded,
                        timeout=timeout, seed=seed, over=over,
                    )
                )  # fmt: skip
            with closing(_ended(f"{mark}-", played, over)) as ended:  # where one fails, none behind it is played
                for trial in ended:
                    yield trial.result()


def _ended(
    mark: str, trials: Sequence[Future[_T]], over: threading.Event
) -> Generator[Future[_T], None, None]:  # fmt: skip
    """Each as it ends; when the campaign is stopped, none goes on, nor launches anything more."""
    try:
        yield from as_completed(trials)
    finally:
        if not all(trial.done() for trial in trials):
            over.set()
        for trial in trials:
            trial.cancel()
        while not all(trial.done() for trial in trials):
            end_all(mark)
            time.sleep(0.1)


def _line(trial: Trial) -> str:
    """One trial, as progress."""
    words = "; ".join(" ".join(what.split()) for what in trial.wrong) or trial.skipped or "as it should be"
    what = trial.file or trial.role
    return (
        f"{trial.system} {trial.mode}, {trial.fault} {trial.number}: {what} at {trial.moment:.2f} s, ended in "
        f"{trial.seconds_to_end:.1f} s with {trial.exit_code}, {trial.resumed}: {words}"
    )


def table(trials: Iterable[Trial]) -> str:
    """Markdown, a row for each system, mode and fault, and one for all.  Causes are of the trials that did harm."""
    played = [trial for trial in trials if not trial.skipped]
    rows: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in sorted(played, key=_place):
        rows.setdefault((trial.system, trial.mode, trial.fault), []).append(trial)
    rows["all", "", ""] = played
    lines = [_row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
    return "\n".join([*lines, *(_row([*key, *_cells(group)]) for key, group in rows.items())])


def _place(trial: Trial) -> tuple[int, int]:
    return _CASES.index(f"{trial.system} {trial.mode}"), _FAULTS.index(trial.fault)


def _cells(group: Sequence[Trial]) -> list[str]:
    harmed = [trial for trial in group if trial.harmed]
    codes = Counter(trial.exit_code for trial in group if trial.ended)
    ways = Counter(("refused, then " if trial.refused else "") + trial.resumed for trial in group)
    return [
        str(len(group)), str(sum(t.seconds_to_end > 0 and not t.ended for t in group)),
        str(sum(len(t.orphans) for t in group)),
        str(sum(not t.same and t.resumed != "no" for t in group)), str(sum(t.drawn_twice for t in group)),
        f"{sum(t.named for t in harmed)} of {len(harmed)}",
        ", ".join(f"{code}: {count}" for code, count in sorted(codes.items(), key=str)),
        ", ".join(f"{count} {way}" for way, count in sorted(ways.items())), str(sum(t.same for t in group)),
        str(sum(not t.wrong for t in group)), f"{max((t.seconds_to_end for t in group), default=0.0):.1f}",
    ]  # fmt: skip


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def logged(log: Path | None) -> list[Trial]:
    """The trials of a log; a line that was cut short was not played."""
    return [(between.Seen if "seen" in trial else Trial)(**trial) for trial in kept(log)]


def tables(trials: Sequence[Trial]) -> str:
    """The table, and between machines what the others saw."""
    seen = [trial for trial in trials if isinstance(trial, between.Seen)]
    return table(trials) + (f"\n\n{between.seen(seen)}" if seen else "")


def _options() -> argparse.Namespace:
    of = {"{faults}": LAUNCHED, "{between}": BETWEEN}
    about = __doc__ or ""
    for name, ground in of.items():
        about = about.replace(name, ", ".join(fault.name for fault in ground.faults))
    parser = argparse.ArgumentParser(prog="scripts/faults", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--trials", type=int, default=1, help="of each fault in each system and mode (1)")
    parser.add_argument(
        "--system",
        nargs="+",
        metavar="NAME",
        choices=LAUNCHED.names + BETWEEN.names,
        help=f"of {', '.join(LAUNCHED.names)} (all); between machines of {', '.join(BETWEEN.names)}",
    )
    parser.add_argument(
        "--machines", action="store_true", help="sessions between machines, in place of programs that are launched"
    )
    parser.add_argument("--fault", nargs="+", metavar="FAULT", choices=_FAULTS, default=_FAULTS,
                        help="(all)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="of the moments, of the order of roles, of what is hit (1)")
    parser.add_argument("--longer", type=int, default=1, metavar="TIMES",
                        help="so many times the steps of each program, for a quick machine (1)")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=10.0, help="of the launches that are hit, in seconds (10)")
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time (1); more only where cores are free")
    parser.add_argument("--forked", action="store_true",
                        help="fork launchers and roles off an interpreter that has loaded all: five times as quick, "
                        "and no moment lies in the loading")  # fmt: skip
    parser.add_argument(
        "--log", type=Path, help="append each trial as a line of JSON; those that it has are not played"
    )
    parser.add_argument("--table", type=Path, help="write the table to this file as well")
    parser.add_argument("--json", type=Path, help="write every trial to this file; what was said is in --log")
    return parser.parse_args()


def _played(options: argparse.Namespace) -> list[Trial]:
    """Play what the log has not; what there is when it is stopped is printed and written too."""
    ground = BETWEEN if options.machines else replace(
        LAUNCHED, cases=[case.longer(options.longer) for case in LAUNCHED.cases]
    )  # fmt: skip
    cases = [case for case in ground.cases if {case.name, case.system} & {*(options.system or ground.names)}]
    found = logged(options.log)
    had = {(trial.system, trial.mode, trial.fault, trial.number, trial.seed) for trial in found}
    wanted = [
        (case, fault, number)
        for case, fault, number in cells(cases, [f for f in ground.faults if f.name in options.fault], options.trials)
        if (case.system, case.mode, fault.name, number, options.seed) not in had
    ]
    trials = campaign(
        ground, wanted, seed=options.seed, timeout=options.timeout, jobs=options.jobs, forked=options.forked, say=_say
    )  # fmt: skip
    try:
        with closing(trials):
            for trial in trials:
                found.append(trial)
                keep(options.log, asdict(trial))
                _say(_line(trial))
    finally:
        print(tables(found))
        if options.table is not None:
            options.table.write_text(tables(found) + "\n")
        if options.json is not None:
            told = [{name: value for name, value in asdict(trial).items() if name != "said"} for trial in found]
            options.json.write_text(json.dumps(told, indent=1) + "\n")
    return found


def _stop(*_: object) -> None:
    """Once: what was launched is to be ended, and no second signal comes in between."""
    for how in _STOPS:
        signal.signal(how, signal.SIG_IGN)
    _say("stopping: what was launched is ended")
    raise KeyboardInterrupt


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Hit, watch, print."""
    options = _options()
    for how in _STOPS:  # a launch takes over what its shell ignores
        signal.signal(how, _stop)
    for how in {*ENDS} - {*_STOPS}:
        if signal.getsignal(how) is signal.SIG_IGN:  # by nohup or a shell, for the campaign: what it launches hears it
            signal.signal(how, lambda *_: None)
    try:
        for name, least in (("trials", 1), ("jobs", 1), ("longer", 1), ("timeout", 1)):
            if (given := getattr(options, name)) < least:
                raise ConfigError(f"--{name} is at least {least}, not {given:g}")
        for path in (options.json, options.log, options.table):  # before the trials: they may take hours
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        found = _played(options)
    except (ConfigError, ChildProcessError) as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None
    if any(trial.wrong for trial in found):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
