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
same counts as `unharmed`.

The table goes to stdout, a line for each trial to stderr; exit code 1 if anything was wrong.  With --log each trial is
a line of JSON in a file, and the same command goes on behind the last one: a campaign may be run in pieces.

examples:
  scripts/faults --trials 1 --log faults.jsonl --table faults.md   one trial in each cell: about an hour
  scripts/faults --trials 3 --log faults.jsonl --table faults.md   later: two more in each, and the table of all
  scripts/faults --system samba --fault kill9 stop                 one system, or one mode of it: --system 'samba mpc'
  scripts/faults --timeout 20 --jobs 3                             on a machine with other work: silence is longer there
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, closing
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from mpc.errors import ConfigError

from .faults_cases import CASES, Case
from .faults_kinds import FAULTS, Fault, Hits
from .faults_loaded import Loaded
from .faults_processes import end_all
from .faults_trial import Trial, play, undisturbed
from .lines import keep, kept

_NAMES = list(dict.fromkeys(name for case in CASES for name in (case.system, case.name)))
_FAULTS = [fault.name for fault in FAULTS]
_COLUMNS = (
    "system", "mode", "fault", "trials", "hung", "orphans", "wrong results", "drawn twice", "cause named once, rightly",
    "exit codes", "gone on", "same arms", "as it should be", "longest end (s)",
)  # fmt: skip
Cell = tuple[Case, Fault, int]
_T = TypeVar("_T")


def cells(cases: Sequence[Case], faults: Sequence[Fault], trials: int) -> list[Cell]:
    """All trials there are, one of each cell after the other; what keeps nothing has no file to be damaged."""
    return [
        (case, fault, number)
        for number in range(trials)
        for case in cases
        for fault in faults
        if case.keeps or fault.hits in (Hits.ROLE, Hits.LAUNCHER)
    ]


def campaign(
    wanted: Sequence[Cell], *, seed: int = 1, timeout: float = 10.0, jobs: int = 1, forked: bool = False,
    say: Callable[[str], None],
) -> Generator[Trial, None, None]:  # fmt: skip
    """Trials as they end, one case after the other; none of their processes is alive afterwards."""
    mark = secrets.token_hex(8)
    with ExitStack() as stack:
        name = stack.enter_context(tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True))
        loaded = None
        if forked:
            (register := Path(name) / "register").mkdir()
            loaded = stack.enter_context(closing(Loaded(register)))
        for at, case in enumerate(dict.fromkeys(case for case, _, _ in wanted)):
            scratch, own = Path(name) / f"case-{at}", f"{mark}-{at}-"
            scratch.mkdir()
            case.deal(scratch)
            with ThreadPoolExecutor(jobs) as pool:
                timed = range(min(jobs, 2))
                runs = [pool.submit(undisturbed, case, f"{own}{at}-", scratch, at, loaded) for at in timed]
                beside = min((run.result() for run in _ended(own, runs)), key=lambda run: run.seconds)
            say(f"{case.name}: undisturbed {beside.seconds:.1f} s, {', '.join(beside.roles)}")
            with ThreadPoolExecutor(jobs) as pool:
                played = [
                    pool.submit(
                        play, case, fault, number, beside, f"{own}{fault.name}-{number}-", scratch, loaded,
                        timeout=timeout, seed=seed,
                    )
                    for own_case, fault, number in wanted
                    if own_case is case
                ]  # fmt: skip
                yield from (trial.result() for trial in _ended(own, played))


def _ended(mark: str, trials: Sequence[Future[_T]]) -> Iterator[Future[_T]]:
    """Each as it ends; when the campaign is stopped, none goes on."""
    try:
        yield from as_completed(trials)
    finally:
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
    names = [case.name for case in CASES]
    return names.index(f"{trial.system} {trial.mode}"), _FAULTS.index(trial.fault)


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
    return [Trial(**said) for said in kept(log)]


def _options() -> argparse.Namespace:
    about = (__doc__ or "").replace("{faults}", ", ".join(_FAULTS))
    parser = argparse.ArgumentParser(prog="scripts/faults", description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--trials", type=int, default=1, help="of each fault in each system and mode (1)")
    parser.add_argument("--system", nargs="+", metavar="NAME", choices=_NAMES, default=[case.name for case in CASES],
                        help=f"of {', '.join(_NAMES)} (all)")  # fmt: skip
    parser.add_argument("--fault", nargs="+", metavar="FAULT", choices=_FAULTS, default=_FAULTS, help="(all)")
    parser.add_argument("--seed", type=int, default=1, help="of the moments, of the order of roles, of what is hit (1)")
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
    cases = [case for case in CASES if {case.name, case.system} & {*options.system}]
    found = logged(options.log)
    had = {(trial.system, trial.mode, trial.fault, trial.number, trial.seed) for trial in found}
    wanted = [
        (case, fault, number)
        for case, fault, number in cells(cases, [f for f in FAULTS if f.name in options.fault], options.trials)
        if (case.system, case.mode, fault.name, number, options.seed) not in had
    ]
    trials = campaign(
        wanted, seed=options.seed, timeout=options.timeout, jobs=options.jobs, forked=options.forked, say=_say
    )  # fmt: skip
    try:
        with closing(trials):
            for trial in trials:
                found.append(trial)
                keep(options.log, asdict(trial))
                _say(_line(trial))
    finally:
        print(table(found))
        if options.table is not None:
            options.table.write_text(table(found) + "\n")
        if options.json is not None:
            told = [{name: value for name, value in asdict(trial).items() if name != "said"} for trial in found]
            options.json.write_text(json.dumps(told, indent=1) + "\n")
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Hit, watch, print."""
    options = _options()
    for how in (signal.SIGINT, signal.SIGTERM):  # a launch takes over what its shell ignores
        signal.signal(how, signal.default_int_handler)
    try:
        for name, least in (("trials", 1), ("jobs", 1), ("timeout", 1)):
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
