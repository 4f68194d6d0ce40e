"""Faults in launched programs: each role killed or frozen, the launcher interrupted, at moments spread over a run.

A black box: `masked launch ...` is started, a process is hit, and from outside it is seen

  - that the launcher ends by itself, within 3 timeouts + 15 s + the time of an undisturbed run, and leaves no process
    behind (5 s later) and no temporary file;
  - that its stderr has one `error:` line, which names the process that was hit and no other as the cause; after Ctrl-C
    one line `stopped ...`, exit code 130 (or an end by SIGINT), no error and no traceback;
  - that the same command with --resume, or a new run where it says that nothing was kept, ends with the arms of the
    undisturbed run: ppcb beside its twin with the same coins; samba and linucb-ds beside their reference, and beside
    the undisturbed run where all follows from the seed.

Faults: kill9 (SIGKILL of a role), stop (SIGSTOP of a role, for ever), ctrl-c (SIGINT to the launcher), ctrl-c-twice
(again 0.1 to 1 s later).  Roles take turns: computing parties, puller, payer, owners, DO, DC, Comp, the dealer.  A
fault that comes so late that the run ends well all the same counts as `unharmed`.

The table goes to stdout, a line for each trial to stderr, everything to --json; exit code 1 if anything was wrong.

examples:
  scripts/faults                                        20 trials of each fault in each system and mode: some hours
  scripts/faults --trials 2 --json faults.json          a small pass
  scripts/faults --system samba --fault kill9 stop      one system, or one mode of it: --system 'samba mpc'
  scripts/faults --timeout 10                           on a machine with other work: silence is longer there
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
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

from mpc.errors import ConfigError

from .faults_cases import CASES, Case
from .faults_processes import end_all
from .faults_trial import Fault, Trial, play, undisturbed

_LONGEST_UNDISTURBED = 300.0
_NAMES = list(dict.fromkeys(name for case in CASES for name in (case.system, case.name)))
_FAULTS = [fault.value for fault in Fault]
_COLUMNS = (
    "system", "mode", "fault", "trials", "ended", "hung", "orphans", "files left", "cause named once", "named rightly",
    "exit codes", "resumed", "same", "longest end (s)",
)  # fmt: skip


def campaign(
    cases: Sequence[Case], faults: Sequence[Fault], *, trials: int, seed: int = 1, timeout: float = 5.0, jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> Generator[Trial, None, None]:  # fmt: skip
    """Trials as they end, one case after the other; none of their processes is alive afterwards."""
    mark = secrets.token_hex(8)
    with tempfile.TemporaryDirectory(prefix="faults-") as name:
        for at, case in enumerate(cases):
            scratch, own = Path(name) / f"case-{at}", f"{mark}-{at}-"
            beside = undisturbed(case, own, scratch, limit=_LONGEST_UNDISTURBED)
            say(f"{case.name}: undisturbed {beside.seconds:.1f} s, {', '.join(beside.roles)}")
            with ThreadPoolExecutor(jobs) as pool:
                yield from _ended(own, [
                    pool.submit(
                        play, case, fault, number, trials, beside, f"{own}{fault.value}-{number}-", scratch,
                        timeout=timeout, seed=seed,
                    )
                    for fault in faults
                    for number in range(trials)
                ])  # fmt: skip


def _ended(mark: str, trials: Sequence[Future[Trial]]) -> Iterator[Trial]:
    """Each as it ends; when the campaign is stopped, none goes on."""
    try:
        for trial in as_completed(trials):
            yield trial.result()
    finally:
        for trial in trials:
            trial.cancel()
        while not all(trial.done() for trial in trials):
            end_all(mark)
            time.sleep(0.1)


def _line(trial: Trial, trials: int) -> str:
    """One trial, as progress."""
    words = "; ".join(" ".join(what.split()) for what in trial.wrong) or "as it should be"
    return (
        f"{trial.system} {trial.mode}, {trial.fault} {trial.number + 1} of {trials}: {trial.role} at "
        f"{trial.moment:.2f} s, ended in {trial.seconds_to_end:.1f} s with {trial.exit_code}, {trial.resumed}: {words}"
    )


def table(trials: Iterable[Trial]) -> str:
    """Markdown, a row for each system, mode and fault.  Causes are counted of the trials that did harm."""
    rows: dict[tuple[str, str, str], list[Trial]] = {}
    for trial in trials:
        rows.setdefault((trial.system, trial.mode, trial.fault), []).append(trial)
    lines = [_row(_COLUMNS), _row(["---"] * len(_COLUMNS))]
    return "\n".join([*lines, *(_row([*key, *_cells(group)]) for key, group in rows.items())])


def _cells(group: Sequence[Trial]) -> list[str]:
    ended, harmed = [t for t in group if t.ended], [t for t in group if t.harmed]
    named = (sum(t.named_once for t in harmed), sum(t.named_rightly for t in harmed))
    codes = Counter(t.exit_code for t in ended)
    ways = Counter(t.resumed for t in group)
    resumed = ", ".join(f"{count} {way}" for way, count in sorted(ways.items()) if way != "no")
    return [
        str(len(group)), str(len(ended)), str(sum(t.hit and not t.ended for t in group)),
        str(sum(len(t.orphans) for t in group)), str(sum(len(t.litter) for t in group)),
        f"{named[0]} of {len(harmed)}", f"{named[1]} of {len(harmed)}",
        ", ".join(f"{code}: {count}" for code, count in sorted(codes.items(), key=str)),
        f"{len(group) - ways['no']} ({resumed})", str(sum(t.same for t in group)),
        f"{max((t.seconds_to_end for t in group), default=0.0):.1f}",
    ]  # fmt: skip


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--trials", type=int, default=20, help="of each fault in each system and mode (20)")
    parser.add_argument("--system", nargs="+", metavar="NAME", choices=_NAMES, default=[case.name for case in CASES],
                        help=f"of {', '.join(_NAMES)} (all)")  # fmt: skip
    parser.add_argument("--fault", nargs="+", metavar="FAULT", choices=_FAULTS, default=_FAULTS,
                        help=f"of {', '.join(_FAULTS)} (all)")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, help="of the moments and of the order of roles (1)")
    parser.add_argument("--timeout", type=float, default=5.0, help="of the launches that are hit, in seconds (5)")
    parser.add_argument("--jobs", type=int, default=1, help="trials at a time (1); more only where cores are free")
    parser.add_argument("--json", type=Path, help="write every trial, with what was said, to this file")
    return parser.parse_args()


def _played(options: argparse.Namespace) -> list[Trial]:
    """Play all; what there is when it is stopped is printed and written too."""
    cases = [case for case in CASES if {case.name, case.system} & {*options.system}]
    faults = [fault for fault in Fault if fault.value in options.fault]
    trials = campaign(
        cases, faults, trials=options.trials, seed=options.seed, timeout=options.timeout, jobs=options.jobs, say=_say
    )
    found: list[Trial] = []
    try:
        with closing(trials):
            for trial in trials:
                found.append(trial)
                _say(_line(trial, options.trials))
    finally:
        print(table(found))
        if options.json is not None:
            options.json.write_text(json.dumps([asdict(trial) for trial in found], indent=1) + "\n")
    return found


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    """Hit, watch, print."""
    options = _options()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        for name, least in (("trials", 1), ("jobs", 1), ("timeout", 1)):
            if (given := getattr(options, name)) < least:
                raise ConfigError(f"--{name} is at least {least}, not {given:g}")
        if options.json is not None:  # before the trials: they may take hours
            options.json.parent.mkdir(parents=True, exist_ok=True)
            options.json.touch()
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
