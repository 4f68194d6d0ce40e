"""One trial of the fault campaign: launch, do harm at a moment, see how all ends, go on, compare.

    moment      a signal to a role or to the launcher, or harm to the folder
    limit       from then until the launcher ends by itself: 3 timeouts + 30 s + 4 times an undisturbed run
    + 5 s       until no process of the launch is alive
    again       the same command with --resume; where that is refused because nothing was kept, with --overwrite

Knows the command line, what it prints and keeps, and /proc.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import struct
import threading
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .faults_cases import Case, Result
from .faults_kinds import Fault, Hits, can_mount, disk_of_its_own, mend, put
from .faults_loaded import Loaded
from .faults_processes import Launched, Process, processes

GOLDEN = 0.6180339887498949  # numbers that go on by it spread evenly, however many there are
_ATTEMPTS = 10  # where the run had ended before the moment, as it may again and again beside other work
_PATIENT = 60.0  # --timeout of the runs that are to finish, so that other work on the machine does not end them
_LONGEST = 300.0  # seconds that an undisturbed run may take
_NO_LINE_YET = 0.1  # seconds in which a process that was just forked may hear nothing but the kernel
_SAID = 4000  # characters that are kept of what a launch said
_CODES = {
    signal.SIGINT: (130, -signal.SIGINT),  # the second: when all was said, or in code that Python compiled at run time
    signal.SIGTERM: (130, 143, -signal.SIGTERM),
    signal.SIGHUP: (129, -signal.SIGHUP),
    signal.SIGKILL: (-signal.SIGKILL,),
}
_CLAIM = struct.Struct("<QQ16s")  # of a store's cursor: next free block, whether the one before is used up, tag


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody disturbed.

    roles: from when to when each was there, in seconds.  homes: who kept something, and kept: since when all did.
    """

    seconds: float
    roles: Mapping[str, tuple[float, float]]
    kept: float
    homes: frozenset[str]
    result: Result


@dataclass
class Trial:
    """What one trial showed.  An empty `wrong` means that all was as it should be."""

    system: str
    mode: str
    fault: str
    number: int
    seed: int
    role: str
    moment: float
    forked: bool = False
    late: bool = False  # the moment counts from when all had kept something
    skipped: str = ""
    ended: bool = False
    seconds_to_end: float = 0.0
    exit_code: int | None = None
    orphans: list[str] = field(default_factory=list)
    litter: list[str] = field(default_factory=list)
    harmed: bool = True  # not when the fault came too late to matter
    named: bool = False  # the cause, once and rightly
    file: str = ""  # that was damaged
    refused: bool = False
    resumed: str = "no"
    same: bool = False
    drawn_twice: int = 0
    wrong: list[str] = field(default_factory=list)
    said: str = ""


def undisturbed(case: Case, mark: str, scratch: Path, number: int, loaded: Loaded | None) -> Undisturbed:
    """Run it: its time on this machine, who plays when, and who keeps anything from when on.

    Once more where it was over before anybody was seen.
    """
    for attempt in range(_ATTEMPTS):
        if (found := _timed(case, f"{mark}{attempt}-", scratch, f"{number}-{attempt}", loaded)).roles:
            return found
    raise ChildProcessError(f"{case.name}, undisturbed: no role was seen in {_ATTEMPTS} runs: give --longer 10")


def _timed(case: Case, mark: str, scratch: Path, name: str, loaded: Loaded | None) -> Undisturbed:
    home = _with_material(scratch, scratch / f"undisturbed-{name}")
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    since, homes = 0.0, set[str]()
    words = case.words(home, home / "material", _PATIENT)
    with Launched(words, mark, home / "said", home / "tmp", loaded=loaded) as launched:
        while not launched.ended_within(0.1) and launched.seconds < _LONGEST:
            for role in processes(mark, case.nodes, everywhere=False):
                if role.names:
                    first.setdefault(role.name, launched.seconds)
                    last[role.name] = launched.seconds
            if found := set(_kept(home / "out")) - homes:
                homes, since = homes | found, launched.seconds
        if (result := _result(launched, home)) is None:
            raise ChildProcessError(f"{case.name}, undisturbed: exit code {launched.code}: {launched.said()[-2000:]}")
        roles = {name: (first[name], last[name]) for name in last}
        return Undisturbed(launched.seconds, roles, since, frozenset(homes), result)


def play(
    case: Case, fault: Fault, number: int, beside: Undisturbed, mark: str, scratch: Path, loaded: Loaded | None, *,
    timeout: float, seed: int, over: threading.Event,
) -> Trial:  # fmt: skip
    """Roles take turns, and moments are spread over the whole time of what is hit, however many trials there are.

    over: set where the campaign is stopped; nothing is launched then any more.

    Every second one lies behind the first checkpoint: processes take longer to start than a small run takes.
    """
    cell = random.Random(f"{seed} {case.name} {fault.name}")
    roles, offset = sorted(beside.roles), cell.random()
    cell.shuffle(roles)
    role = roles[number % len(roles)] if fault.hits is Hits.ROLE else "launcher"
    start, end = beside.roles.get(role, (0.0, beside.seconds))
    turn = (number + number // len(roles)) % 2 == 1
    late = fault.hits is Hits.KEPT or (turn and bool(beside.homes) and end > beside.kept)
    if late:
        start, end = 0.0, end - beside.kept
    part, pace = (offset + number * GOLDEN) % 1.0, 1.0
    for attempt in range(_ATTEMPTS):
        moment = pace * (start + part * (end - start))
        when = round(moment, 2)
        trial = Trial(case.system, case.mode, fault.name, number, seed, role, when, loaded is not None, late)
        if fault.hits is Hits.FOLDER and not can_mount():
            trial.skipped = "this user cannot mount"
        if fault.hits is Hits.KEPT and not beside.homes:
            trial.skipped = "nothing is kept"
        if trial.skipped:
            return trial
        home = scratch / f"{fault.name}-{number}-{attempt}"
        dice = random.Random(f"{seed} {case.name} {fault.name} {number}")
        disk = home / "disk"
        material = scratch / "material"
        with disk_of_its_own(disk, material) if fault.hits is Hits.FOLDER else contextlib.nullcontext():
            _with_material(scratch, disk)
            scene = _Scene(case, fault, beside, mark, home, disk, timeout, dice, trial, loaded, over)
            missed = scene.play()
        if missed is None:
            shutil.rmtree(home, ignore_errors=not trial.wrong)
            return trial
        if missed:  # that run ended before the moment, and is a newer measure
            pace = min(0.7 * pace, missed / beside.seconds)
        else:
            part = (1.0 + part) / 2.0
    trial.wrong.append(f"{role} was not there at the moment in {_ATTEMPTS} runs")
    return trial


def _with_material(scratch: Path, folder: Path) -> Path:
    """A folder for one run, with material of its own where that is dealt."""
    folder.mkdir(parents=True, exist_ok=True)
    if (scratch / "material").exists():
        shutil.copytree(scratch / "material", folder / "material")
    return folder


@dataclass(frozen=True)
class _Scene:
    case: Case
    fault: Fault
    beside: Undisturbed
    mark: str
    home: Path
    disk: Path
    timeout: float
    dice: random.Random
    trial: Trial
    loaded: Loaded | None
    over: threading.Event

    def play(self) -> float | None:
        """The whole trial; the seconds of a run that had ended before the moment, 0 of one that had not begun."""
        trial, fault = self.trial, self.fault
        timeout = _PATIENT if fault.passes else self.timeout
        with self._launched("first", timeout, told=fault.hits is Hits.ROLE) as launched:
            if not self._has_kept(launched) or launched.ended_within(trial.moment):
                return launched.seconds
            role = launched.find(trial.role, self.case.nodes) if fault.hits is Hits.ROLE else None
            if role is None and fault.hits is Hits.ROLE:
                return launched.seconds
            first = launched.seconds
            self.fault.strike(launched, role, self.dice)
            if fault.hits is Hits.FOLDER and fault.harm is not None:
                fault.harm(self.disk, self.dice)
            struck = launched.seconds
            trial.ended = launched.ended_within(3 * timeout + 30 + 4 * self.beside.seconds)
            trial.seconds_to_end, trial.exit_code = round(launched.seconds - struck, 2), launched.code
            trial.orphans = launched.orphans(self.case.nodes) if trial.ended else []
            trial.said = launched.said()
            ours = re.search(r'File ".*/protocols/(?!bench/faults_)', trial.said)
            silent = not trial.said and launched.code == -signal.SIGINT and first < _NO_LINE_YET
            if silent or ("KeyboardInterrupt" in trial.said and not ours):
                return 0.0  # Python had not read the first line of the program
            killed = signal.SIGKILL in fault.signals and role is None
            trial.litter = [] if killed or not trial.ended else launched.litter()
            result = _result(launched, self.disk)
        if fault.hits is Hits.KEPT and not self._harmable():
            return struck  # it had come to its end, and forgotten what it had kept
        self._judge_end(launched, role, result)
        claims = left = self._claims()
        if fault.hits is Hits.FOLDER:
            mend(self.disk)
        if fault.hits is Hits.KEPT:
            result, left = self._damaged(claims)
        trial.harmed = result is None or fault.hits is Hits.KEPT
        if result is None:
            result = self._go_on()
        elif not trial.harmed:
            trial.resumed = "unharmed"
        self._judge_result(result, claims, left)
        return None

    def _launched(self, name: str, timeout: float, *more: str, told: bool = False) -> Launched:
        if self.over.is_set():
            raise ChildProcessError("the campaign is stopped")
        words = self.case.words(self.disk, self.disk / "material", timeout, *more)
        return Launched(words, self.mark, self.home / name, self.disk / "tmp", told=told, loaded=self.loaded)

    def _again(self, name: str, *more: str) -> tuple[Result | None, bool, str]:
        """What another sitting gives, whether it was refused in a line, and how it ended."""
        with self._launched(name.replace(" ", "-"), _PATIENT, *more) as launched:
            launched.ended_within(2 * _PATIENT + 10 * self.beside.seconds)
            said, result = launched.said(), _result(launched, self.disk)
            if launched.code is not None:
                self.trial.litter = launched.litter()
            refused = launched.code == 2 and len(_errors(said)) == 1 and "Traceback" not in said
            words = _end_of(said).replace(f"{self.disk}/", "")  # it is gone when they are read
            return result, refused, f"{name}, exit code {launched.code}: {words}"

    def _go_on(self) -> Result | None:
        """With --resume; anew only where there is nothing to go on from."""
        ways = {"went on": ("--resume",), "anew": ("--overwrite",)} if self.case.keeps else {"anew": ()}
        for way, more in ways.items():
            kept = self._in_common() and "whose result is lost" not in self.trial.said
            result, refused, how = self._again(way, *more)
            if result is not None:
                self.trial.resumed = way
                return result
            if way == "anew" or not refused or kept:
                self.trial.wrong.append(how)
                return None
        return None

    def _damaged(self, claims: dict[str, bytes]) -> tuple[Result | None, dict[str, bytes]]:
        """Harm one file of those that were kept; a run that goes on refuses it, or does without.

        Gives what that run ended with, and what was left of the claims where it went on.
        """
        assert self.fault.harm is not None
        file = self.dice.choice(self.dice.choice(self._harmable()))
        raw, self.trial.file = file.read_bytes(), str(file.relative_to(self.disk))
        self.fault.harm(file, self.dice)
        left = self._claims()
        result, self.trial.refused, how = self._again("damaged", "--resume")
        if result is not None:
            self.trial.resumed = "went on in spite"
            return result, left
        if not self.trial.refused:
            self.trial.wrong.append(how)
        put(file, raw)
        return None, claims

    def _harmable(self) -> list[list[Path]]:
        """What was kept, and what is left of material; nothing where the run has forgotten what it had kept."""
        homes = [self.disk / "out" / "checkpoints", self.disk / "material"]
        kept, *material = [[file for file in sorted(home.rglob("*")) if _counts(file)] for home in homes]
        return [kept, *filter(None, material)] if kept else []

    def _has_kept(self, launched: Launched) -> bool:
        """Wait until all have kept something, where the moment counts from then; False where the run ended before."""
        while self.trial.late and not self._in_common():
            if launched.ended_within(0.02):
                return False
        return True

    def _in_common(self) -> set[int]:
        """Decisions that all who keep anything have kept."""
        found = _kept(self.disk / "out")
        each = [found.get(home, set()) for home in self.beside.homes]
        return set.intersection(*each) if each else set()

    def _claims(self) -> dict[str, bytes]:
        """What the stores have noted of their use."""
        return {file.parent.name: file.read_bytes() for file in (self.disk / "material").glob("*/cursor")}

    def _judge_end(self, launched: Launched, role: Process | None, result: Result | None) -> None:
        """Whether it ended, left nothing, and named one cause, the right one."""
        trial, fault = self.trial, self.fault
        errors, stopped = _errors(trial.said), sum(line.startswith("stopped") for line in _lines(trial.said))
        if fault.passes or result is not None:
            trial.named = result is not None
        elif role is not None:
            trial.named = len(errors) == 1 and any(_names(errors[0], name) for name in role.names)
            trial.named &= launched.blamed() == role.node
        elif fault.hits is Hits.FOLDER:
            trial.named = len(errors) == 1 and all(os.strerror(how) in errors[0] for how in fault.errors)
        else:
            trial.named = not errors and stopped in ((1,) if signal.SIGINT in fault.signals else (0, 1))
            trial.named &= trial.exit_code in _CODES[fault.signals[0]]
        trial.named &= "Traceback" not in trial.said
        end = _end_of(trial.said)
        found = {
            f"hung for {trial.seconds_to_end:.0f} s, and had said: {end}": not trial.ended,
            f"left processes: {', '.join(trial.orphans)}": bool(trial.orphans),
            f"left files: {', '.join(trial.litter)}": bool(trial.litter),
            f"cause not named once and rightly: {end}": trial.ended and not trial.named,
        }
        trial.wrong += [what for what, wrong in found.items() if wrong]
        trial.litter, trial.said = [], trial.said[-_SAID:]

    def _judge_result(
        self, result: Result | None, claims: Mapping[str, bytes], left: Mapping[str, bytes]
    ) -> None:  # fmt: skip
        """Whether all came to the undisturbed run's end, nothing is left, and nothing was drawn twice.

        claims: when the first run had ended.  left: of them, by what was done to the files since.
        """
        trial = self.trial
        if result is not None:
            if bool(result.steps) == bool(self.beside.result.steps):
                differs = self.case.same(result, self.beside.result)
            else:  # taken away with its folder, behind the last write: what was printed is what there is
                done, wanted = result.document.get("steps"), self.beside.result.document.get("steps")
                gone = self.fault.hits is Hits.FOLDER and done == wanted
                differs = "" if gone else f"no steps.npz of its {done} steps"
            trial.same = not differs
            trial.wrong += [f"WRONG RESULT: {differs}"] if differs else []
        if trial.litter:
            trial.wrong.append(f"files left in the end: {', '.join(trial.litter)}")
        trial.drawn_twice = sum(
            claimed_twice(claims.get(store, b""), raw, left.get(store, b"")) for store, raw in self._claims().items()
        )
        if trial.drawn_twice:
            trial.wrong.append(f"{trial.drawn_twice} blocks of material claimed twice")


def claimed_twice(before: bytes, after: bytes, left: bytes | None = None) -> int:
    """Claims of a block that was claimed already, and 1 where the log of claims is not the one before and more.

    left: what was left of the one before, where it was damaged; what it claimed counts all the same.
    """
    kept = _whole(before if left is None else left)
    claims = _CLAIM.iter_unpack(_whole(before) + _whole(after)[len(kept) :])
    blocks = Counter(block for block, used_up, _ in claims if not used_up)
    return sum(blocks.values()) - len(blocks) + (not after.startswith(kept))


def _whole(raw: bytes) -> bytes:
    return raw[: len(raw) // _CLAIM.size * _CLAIM.size]


def _counts(file: Path) -> bool:
    """Whether it is a file that a run goes on from."""
    return (
        file.is_file() and file.suffix != ".new" and file.name not in ("lock", "finished") and file.stat().st_size > 0
    )


def _kept(out: Path) -> dict[str, set[int]]:
    """Which decisions each home has kept, below a folder of results."""
    found: dict[str, set[int]] = {}
    with contextlib.suppress(OSError):  # it may go while we look
        for file in (out / "checkpoints").rglob("checkpoint-*.npz"):
            found.setdefault(file.parent.name, set()).add(int(file.stem.split("-")[1]))
    return found


def _result(launched: Launched, home: Path) -> Result | None:
    """What a run that ended well printed and wrote; a signal may come after that, while Python ends."""
    said, code = launched.said("stdout"), launched.code
    late = code is not None and code < 0 and code != -signal.SIGKILL and said and "stopped" not in launched.said()
    return Result.read(json.loads(said), home / "out") if code == 0 or late else None


def _lines(said: str) -> list[str]:
    return [line.strip() for line in said.splitlines() if line.strip()]


def _errors(said: str) -> list[str]:
    """Each error, with all that follows it."""
    lines = _lines(said)
    at = [number for number, line in enumerate(lines) if line.startswith("error: ")]
    return ["\n".join(lines[start:end]) for start, end in zip(at, [*at[1:], None], strict=False)]


def _names(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", text) is not None


def _end_of(said: str) -> str:
    return " / ".join(_lines(said))[-400:] or "it said nothing"
