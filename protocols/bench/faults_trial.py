"""One trial of the fault campaign: launch, hit a process at a moment, see how all ends, go on, compare.

    moment      kill -9 or SIGSTOP of a role, or Ctrl-C once or twice
    limit       from then until the launcher ends by itself: 3 timeouts + 15 s + the time of an undisturbed run
    + 5 s       until no process of the launch is alive
    again       the same command with --resume; where it says that nothing was kept, without

Knows the command line, what it prints, and /proc.
"""

from __future__ import annotations

import json
import random
import re
import signal
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from .faults_cases import Case, Result
from .faults_processes import DEALER, Launched, processes

_PROMISED = re.compile(r"--resume goes on|go on with --resume")
_NOTHING_KEPT = re.compile(r"no checkpoint|nothing (was |is )?(kept|to go on)|keys are never written")
_WITNESS = (
    r"{0}( \([^)]*\))?,? (failed with exit code|reported|says|said|waited)|"
    r"(reported by|seen by|told by|says|said|did not (join|call|answer)) {0}(?!\w)"
)
"""How an error names one that misses another."""
_PAUSE = (0.1, 1.0)  # seconds between two Ctrl-C
_EARLIER = 0.7  # of the moment, where the run had ended before it; so often:
_ATTEMPTS = 4
_PATIENT = 60.0  # --timeout of the runs that nobody disturbs, so that other work on the machine does not end them
_SAID = 4000  # characters that are kept of what a launch said
_STOPPED = (130, -signal.SIGINT)  # the second: a Ctrl-C when all was said, or in code that Python compiled at run time


class Fault(Enum):
    """What is done to a launch."""

    KILL = "kill9"
    STOP = "stop"
    CTRL_C = "ctrl-c"
    CTRL_C_TWICE = "ctrl-c-twice"

    @property
    def of_a_role(self) -> bool:
        """Whether a role is hit, and not the launcher."""
        return self in (Fault.KILL, Fault.STOP)


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody disturbed.  roles: whom it had, by node, and when each was seen last, in seconds."""

    seconds: float
    roles: Mapping[str, float]
    result: Result


@dataclass
class Trial:
    """What one trial showed.  An empty `wrong` means that all was as it should be."""

    system: str
    mode: str
    fault: str
    number: int
    role: str
    moment: float
    names: tuple[str, ...] = ()  # as whom an error may name what was hit
    hit: bool = False
    ended: bool = False
    seconds_to_end: float = 0.0
    exit_code: int | None = None
    orphans: list[str] = field(default_factory=list)
    litter: list[str] = field(default_factory=list)
    harmed: bool = True  # not when the fault came too late to matter
    named_once: bool = False
    named_rightly: bool = False
    resumed: str = "no"
    same: bool = False
    wrong: list[str] = field(default_factory=list)
    said: str = ""


def undisturbed(case: Case, mark: str, scratch: Path, *, limit: float) -> Undisturbed:
    """Run a case twice, and keep the faster one: its time on a warm machine, and who plays how long."""
    runs = []
    for turn in (1, 2):
        home, roles = scratch / f"undisturbed-{turn}", dict.fromkeys((*case.nodes, DEALER), 0.0)
        with Launched(_command(case, home, _PATIENT), mark, home) as launched:
            while not launched.ended_within(0.1) and launched.seconds < limit:
                roles |= {role.name: launched.seconds for role in processes(mark, case.nodes) if role.names}
            result = _result(launched, home)
            if result is None:
                raise ChildProcessError(
                    f"{case.name}, undisturbed: exit code {launched.code}: {launched.said()[-2000:]}"
                )
            runs.append(Undisturbed(launched.seconds, {role: last for role, last in roles.items() if last}, result))
    return min(runs, key=lambda run: run.seconds)


def play(
    case: Case, fault: Fault, number: int, trials: int, beside: Undisturbed, mark: str, scratch: Path, *,
    timeout: float, seed: int,
) -> Trial:  # fmt: skip
    """Trial `number` of so many: roles take turns, and moments are spread over the whole time of what is hit."""
    order = random.Random(f"{seed} {case.name} {fault.value}")
    places, roles = list(range(trials)), list(beside.roles)
    order.shuffle(places)
    order.shuffle(roles)
    dice = random.Random(f"{seed} {case.name} {fault.value} {number}")
    role = roles[number % len(roles)] if fault.of_a_role else "launcher"
    moment = (places[number] + dice.random()) / trials * beside.roles.get(role, beside.seconds)
    pause = dice.uniform(*_PAUSE)
    for attempt in range(_ATTEMPTS):
        home = scratch / f"{case.name}-{fault.value}-{number}-{attempt}".replace(" ", "-")
        trial = Trial(case.system, case.mode, fault.value, number, role, round(moment, 2))
        with Launched(_command(case, home, timeout), mark, home) as launched:
            if not _hit(launched, case, trial, fault, pause):
                moment *= _EARLIER
                continue
            trial.hit, hit_at = True, launched.seconds
            trial.ended = launched.ended_within(3 * timeout + 15 + beside.seconds)
            trial.seconds_to_end = round(launched.seconds - hit_at, 2)
            trial.exit_code = launched.code
            trial.orphans = launched.orphans(case.nodes) if trial.ended else []
            trial.litter = launched.litter() if trial.ended else []
            trial.said = launched.said()
            if _only_python(trial.said):
                moment += _PAUSE[1]
                continue
            result = _result(launched, home)
        _judge_words(trial, fault, {*case.nodes, *beside.roles, DEALER} - {*trial.names})
        trial.harmed = result is None
        if result is None:
            result = _go_on(trial, case, mark, home, limit=_PATIENT + 10 * beside.seconds)
        else:
            trial.resumed = "unharmed"
        _judge(trial, case, result, beside)
        trial.said = trial.said[-_SAID:]
        return trial
    trial.wrong.append(f"{role} was not there at the moment in {_ATTEMPTS} runs")
    return trial


def _command(case: Case, home: Path, timeout: float, *more: str) -> list[str]:
    home.mkdir(parents=True, exist_ok=True)
    launch = [sys.executable, "-m", "protocols", "launch", case.system, *case.arguments(home)]
    return [*launch, "--seed", "1", "--timeout", f"{timeout:g}", "--json", "--out", str(home / "out"), *more]


def _hit(launched: Launched, case: Case, trial: Trial, fault: Fault, pause: float) -> bool:
    """Do it when its moment has come, and the role is there; whether the run still ran, and it was."""
    if launched.ended_within(trial.moment):
        return False
    if not fault.of_a_role:
        launched.interrupt()
        if fault is Fault.CTRL_C_TWICE and not launched.ended_within(pause):
            launched.interrupt()
        return True
    there = launched.find(trial.role, case.nodes)
    if there is None:
        return False
    trial.names = there.names
    there.hit(signal.SIGKILL if fault is Fault.KILL else signal.SIGSTOP)
    return True


def _only_python(said: str) -> bool:
    """Whether a Ctrl-C came before Python had read the first line of the program."""
    return "KeyboardInterrupt" in said and "protocols" not in said


def _result(launched: Launched, home: Path) -> Result | None:
    """What a run that ended well printed and wrote; a Ctrl-C may come after that, while Python ends."""
    late = launched.code == -signal.SIGINT and launched.said("stdout") and "stopped" not in launched.said()
    if launched.code != 0 and not late:
        return None
    return Result.read(json.loads(launched.said("stdout")), home / "out")


def _judge_words(trial: Trial, fault: Fault, others: Collection[str]) -> None:
    """Whether stderr has one cause, and the right one; others: whom it may name as witnesses only."""
    lines = [line.strip() for line in trial.said.splitlines()]
    errors = [at for at, line in enumerate(lines) if line.startswith("error: ")]
    if not fault.of_a_role:
        trial.named_once = not errors and sum(line.startswith("stopped") for line in lines) == 1
        trial.named_rightly = trial.exit_code in _STOPPED and "Traceback" not in trial.said
        return
    trial.named_once = len(errors) == 1
    cause = "\n".join(lines[errors[0] :]) if errors else ""
    for witness in others:
        cause = re.sub(_WITNESS.format(re.escape(witness)), "", cause)
    right = any(_names(cause, name) for name in trial.names)
    wrong = any(_names(cause, name) for name in others)
    trial.named_rightly = right and not wrong and "Traceback" not in trial.said


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", text) is not None


def _go_on(trial: Trial, case: Case, mark: str, home: Path, *, limit: float) -> Result | None:
    """Run with --resume, and anew where that says that there is nothing to go on from, in place of what is there."""
    promised = _PROMISED.search(trial.said) is not None
    for way, more in (("went on", ["--resume"]), ("anew", ["--overwrite"])):
        scratch = home / way.replace(" ", "-")
        with Launched(_command(case, home, _PATIENT, *more), mark, scratch) as launched:
            launched.ended_within(limit)
            if result := _result(launched, home):
                trial.resumed = way
                return result
            said = launched.said()
            if launched.code != 2 or promised or not _NOTHING_KEPT.search(said):
                trial.wrong.append(f"{way}, exit code {launched.code}: {_end_of(said)}")
                return None
    return None


def _judge(trial: Trial, case: Case, result: Result | None, beside: Undisturbed) -> None:
    """Say in `wrong` what was not as it should be."""
    if result is not None:
        differs = case.same(result, beside.result)
        trial.same = not differs
        trial.wrong += [differs] if differs else []
    named = [("not once", trial.named_once), ("not rightly", trial.named_rightly)]
    how = " and ".join(way for way, well in named if not well)
    faults = {
        f"hung for {trial.seconds_to_end:.0f} s, and had said: {_end_of(trial.said)}": not trial.ended,
        f"left processes: {', '.join(trial.orphans)}": bool(trial.orphans),
        f"left files: {', '.join(trial.litter)}": bool(trial.litter),
        f"cause named {how}: {_end_of(trial.said)}": trial.ended and trial.harmed and bool(how),
    }
    trial.wrong += [what for what, wrong in faults.items() if wrong]


def _end_of(said: str) -> str:
    return " / ".join(line.strip() for line in said.splitlines() if line.strip())[-400:] or "it said nothing"
