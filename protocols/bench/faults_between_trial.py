"""One trial between machines: start all roles, do harm at a moment, see what the others see, go on, compare.

    moment      while all meet, or a while after a decision, spread over the whole run
    limit       from then until all roles have ended by themselves
    again       who was hit is started again with --resume, it alone or with all others

Faults are rows of `FAULTS`.  What the others see is the first line of their logs that names who was hit.
"""

from __future__ import annotations

import random
import re
import shutil
import signal
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from ..run.config import DEALER
from .faults_between import Playing, Session
from .faults_kinds import can_mount, disk_of_its_own, fill, mend
from .faults_loaded import Loaded
from .faults_processes import Launched
from .faults_trial import GOLDEN, Trial, claimed_twice

_MEETING = 0.2  # of the moments lie before the first decision
_BACK = (0.3, 3.0)  # seconds until who was hit is started again
_PATIENT = {"start": 60.0, "round": 30.0, "back": 60.0, "link": 20.0}
_SHORT = {"start": 25.0, "round": 6.0, "back": 3.0, "link": 2.0}  # where who was lost does not come back
_LIMIT = 150.0  # seconds until all have ended
_SHORT_LIMIT = 60.0
_LONGEST = 300.0  # seconds that an undisturbed run may take
_FROZEN = 5.0
_CUT = 2.0
_LATE = 0.05  # seconds after a decision in which harm is done
_SAID = 3000
_LOOK = 0.005
_ENDED = "all others had ended"
_OVER = "this run is over"  # says a role that was started again when the others had ended


class Hits(Enum):
    """What a fault is done to."""

    PARTY = "party"
    CLIENT = "client"
    DEALER = "dealer"
    ROLE = "any role"
    KEEPER = "a role that keeps what it made"
    LINK = "link"
    ALL = "all"


class Ends(Enum):
    """How it is to end."""

    PASSES = "all go on by themselves"
    ALONE = "who was hit is started again, alone"
    TOGETHER = "all end, and are started again"


@dataclass(frozen=True)
class Fault:
    """signals: sent to who was hit, with a pause between them.  silent: a link carries nothing, and nobody hears so."""

    name: str
    hits: Hits
    ends: Ends
    signals: tuple[signal.Signals, ...] = ()
    silent: bool = False
    full: bool = False
    code: int = 2


_KILL, _INT = signal.SIGKILL, signal.SIGINT
FAULTS = (
    Fault("kill9 of a party", Hits.PARTY, Ends.ALONE, (_KILL,)),
    Fault("kill9 of a client", Hits.CLIENT, Ends.ALONE, (_KILL,)),
    Fault("kill9 of the dealer", Hits.DEALER, Ends.ALONE, (_KILL,)),
    Fault("kill9 for good", Hits.ROLE, Ends.TOGETHER, (_KILL,)),
    Fault("stop 5 s", Hits.ROLE, Ends.PASSES, (signal.SIGSTOP, signal.SIGCONT)),
    Fault("link cut 2 s", Hits.LINK, Ends.PASSES),
    Fault("link cut for good", Hits.LINK, Ends.TOGETHER),
    Fault("link silent 2 s", Hits.LINK, Ends.PASSES, silent=True),
    Fault("link silent for good", Hits.LINK, Ends.TOGETHER, silent=True),
    Fault("disk full", Hits.KEEPER, Ends.ALONE, full=True),
    Fault("ctrl-c of a party", Hits.PARTY, Ends.TOGETHER, (_INT,), code=130),
    Fault("kill9 of all", Hits.ALL, Ends.TOGETHER, (_KILL,)),
)


@dataclass
class Seen(Trial):
    """decided: before the harm.  seen: by whom, in how many seconds.  first: what each says."""

    decided: int = 0
    seen: dict[str, float] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)
    back: float = 0.0  # seconds from the new start until all had ended


@dataclass(frozen=True)
class Undisturbed:
    """A run that nobody disturbed: its time, that of the meeting, its arms."""

    seconds: float
    meeting: float
    arms: Sequence[int]

    @property
    def roles(self) -> Sequence[str]:
        """In words, for reports."""
        return [f"{self.meeting:.1f} s of them to meet"]


def undisturbed(case: Session, mark: str, scratch: Path, number: int, loaded: Loaded | None) -> Undisturbed:
    """Run it, twice: the first loads modules."""
    for turn in range(2):
        run = _run(case, f"{mark}{turn}-", scratch, scratch / f"undisturbed-{number}-{turn}", loaded)
    return run


def _run(case: Session, mark: str, scratch: Path, home: Path, loaded: Loaded | None) -> Undisturbed:
    started, meeting = time.monotonic(), 0.0
    with Playing(case, scratch, home, mark, loaded, threading.Event(), _PATIENT) as playing:
        playing.start(*playing.names)
        while playing.ended_within(0.05) and time.monotonic() < started + _LONGEST:
            meeting = meeting or (time.monotonic() - started if playing.decided else 0.0)
        seconds, arms = time.monotonic() - started, playing.learned()
        if wrong := case.judge(scratch, arms, playing.heard(), arms):
            said = "\n".join(launched.said()[-500:] for launched in playing.all)
            raise ChildProcessError(f"{case.name}, undisturbed: {wrong}: {said}")
    return Undisturbed(seconds, meeting, arms)


def play(
    case: Session, fault: Fault, number: int, beside: Undisturbed, mark: str, scratch: Path, loaded: Loaded | None, *,
    timeout: float, seed: int, over: threading.Event,
) -> Seen:  # fmt: skip
    """Roles and links take turns, and moments are spread over the run.  timeout: more seconds, on a busy machine."""
    cell = random.Random(f"{seed} {case.name} {fault.name}")
    dice = random.Random(f"{seed} {case.name} {fault.name} {number}")
    offset = cell.random()
    trial = Seen(case.system, case.mode, fault.name, number, seed, "", 0.0, loaded is not None, False)
    names = case.apart.names
    candidates = {
        Hits.PARTY: names[: case.parties], Hits.CLIENT: ("puller", "payer"), Hits.ROLE: names, Hits.ALL: ("all",),
        Hits.KEEPER: [name for name in names if name != DEALER], Hits.DEALER: names[-1:] if case.dealer else (),
    }.get(fault.hits, ())  # fmt: skip
    links = case.links if fault.hits is Hits.LINK else []
    if not candidates and not links:
        trial.skipped = "there is no dealer"
    if fault.full and not can_mount():
        trial.skipped = "this user cannot mount"
    if trial.skipped:
        return trial
    wired = links[number % len(links)] if links else None
    trial.role = " to ".join(wired) if wired else sorted(candidates)[number % len(candidates)]
    part = (offset + number * GOLDEN) % 1.0
    home = scratch / f"trial-{FAULTS.index(fault)}-{number}"  # no role's name is in it
    times = dict(_SHORT if fault.ends is Ends.TOGETHER else _PATIENT)
    times |= {"round": times["round"] + timeout - 10.0}
    with ExitStack() as around:
        if fault.full:
            around.enter_context(disk_of_its_own(_disk(home, trial.role)))
        playing = around.enter_context(Playing(case, scratch, home, mark, loaded, over, times, wired))
        _Scene(case, fault, trial, beside, playing, scratch, dice, part, over).play()
    shutil.rmtree(home, ignore_errors=True)
    return trial


def _disk(home: Path, role: str) -> Path:
    return home / role.replace(" ", "-") / "runs"


@dataclass(frozen=True)
class _Scene:
    case: Session
    fault: Fault
    trial: Seen
    beside: Undisturbed
    playing: Playing
    scratch: Path
    dice: random.Random
    part: float
    over: threading.Event

    def play(self) -> None:
        """The whole trial."""
        trial, fault, playing = self.trial, self.fault, self.playing
        names = playing.names
        started = time.monotonic()
        playing.start(*names)
        self._await_moment(started)
        trial.moment, trial.decided = round(time.monotonic() - started, 2), playing.decided
        if not playing.ended_within(0.0):
            trial.harmed, trial.resumed = False, "unharmed"
            self._judge_result()
            return
        first, struck = dict(playing.now), time.time()
        since = time.monotonic()
        hit = self._strike()
        left = self._end(hit)
        trial.ended, trial.seconds_to_end = not left, round(time.monotonic() - since, 2)
        if left:
            trial.wrong.append(f"hung: {', '.join(left)}")
        for role, launched in first.items():
            self._look(role, launched, struck, hit)
        self._judge_logs()
        if left:
            return
        if fault.ends is Ends.TOGETHER and not all(map(playing.is_over, names)):
            others = [name for name in names if name not in hit]
            if others and all(map(playing.is_over, others)):  # they had all that they wanted of who was hit
                trial.harmed, trial.resumed = False, _ENDED
            else:
                self._go_on()
        self._judge_result()
        if self.trial.wrong:
            trial.said = "\n".join(
                f"{launched.code} {line}" for launched in playing.all for _, _, line in playing.log(launched)
            )[-_SAID:]

    def _await_moment(self, started: float) -> None:
        """While all meet, or a while after a decision."""
        part = (self.part - _MEETING) / (1.0 - _MEETING)
        if part < 0:
            until = started + self.part / _MEETING * self.beside.meeting
            while time.monotonic() < until:
                time.sleep(_LOOK)
            return
        self.trial.late = True
        decision = 1 + int(part * (len(self.beside.arms) - 1))
        until = started + _LIMIT
        while self.playing.decided < decision and time.monotonic() < until and not self.over.is_set():
            time.sleep(_LOOK)
        time.sleep(self.dice.uniform(0.0, _LATE))

    def _strike(self) -> list[str]:
        """Do harm; gives whose names the others are to say."""
        fault, playing, role = self.fault, self.playing, self.trial.role
        hit = list(playing.names) if fault.hits is Hits.ALL else role.split(" to ")
        if playing.wire is not None:
            (playing.wire.silent if fault.silent else playing.wire.closed).set()
            if not fault.silent:
                playing.wire.cut()
            if fault.ends is Ends.PASSES:
                time.sleep(_CUT)
                playing.wire.silent.clear()
                playing.wire.closed.clear()
            return hit
        if fault.full:
            fill(_disk(playing.home, role), self.dice)
            return hit
        for at, how in enumerate(fault.signals):
            time.sleep(_FROZEN if at else 0.0)
            for each in hit:
                playing.now[each].signal(how)
        return hit

    def _end(self, hit: Sequence[str]) -> list[str]:
        """Wait until all have ended; gives those that do not."""
        fault, playing = self.fault, self.playing
        if fault.ends is Ends.TOGETHER:
            return playing.ended_within(_SHORT_LIMIT)
        if fault.ends is Ends.ALONE:
            (role,) = hit
            until = time.monotonic() + _LIMIT
            launched = playing.now[role]
            while not launched.ended_within(_LOOK) and playing.ended_within(0.0, role) and time.monotonic() < until:
                pass
            launched.ended_within(10.0)  # the others have ended, or it has
            if fault.full:
                mend(_disk(playing.home, role))
            if launched.code == 0 or playing.is_over(role):
                self.trial.harmed, self.trial.resumed = False, "unharmed"
                return playing.ended_within(_LIMIT)
            if fault.full and launched.code != 2:
                self.trial.wrong.append(f"{role} ended with {launched.code} when its disk was full")
            time.sleep(self.dice.uniform(*_BACK))
            if not playing.ended_within(0.0, role) and all(
                playing.is_over(name) for name in playing.names if name != role
            ):
                self.trial.harmed, self.trial.resumed = False, _ENDED
                return []
            since = time.monotonic()
            playing.start(role, resume=True)
            left = playing.ended_within(_LIMIT)
            self.trial.back, self.trial.resumed = round(time.monotonic() - since, 2), "alone"
            if any(_OVER in line for _, _, line in playing.log(playing.now[role])):
                self.trial.harmed, self.trial.resumed = False, _ENDED
            return left
        left = playing.ended_within(_LIMIT)
        self.trial.resumed = "by itself"
        return left

    def _look(self, role: str, launched: Launched, struck: float, hit: Sequence[str]) -> None:
        """What a role's log says of who was hit."""
        others = [name for name in hit if name != role]
        for at, _, line in self.playing.log(launched):
            if (
                at >= struck
                and not line.startswith("written: ")
                and any(re.search(rf"\b{name}\b", line) for name in others)
            ):
                self.trial.seen[role] = round(at - struck, 2)
                self.trial.first[role] = _plain(line, self.playing.names)
                return

    def _judge_logs(self) -> None:
        """Whether each ended with a line and the right code, and who should have seen it has."""
        trial, fault, playing = self.trial, self.fault, self.playing
        trial.named = True
        for role, launched in playing.now.items():
            tail = [(level, line) for _, level, line in playing.log(launched)][-3:]
            # One that still loads knows no file, and so not how to say it.
            loading = launched.code == fault.code and tail == [("none", "stopped")]
            if any(level == "none" for level, _ in tail) and not loading:
                trial.wrong.append(f"{role} says {tail}")
            if launched.code in (0, -signal.SIGKILL) or (fault.code == 130 and launched.code == 130):
                continue
            if fault.code == 130 and launched.code == -signal.SIGINT and playing.is_over(role):  # all had been said
                continue
            if (trial.role, trial.resumed) == (role, _ENDED) and launched.code == 2:
                continue
            if fault.ends is not Ends.TOGETHER or launched.code != 2 or not tail or tail[-1][0] != "error":
                trial.wrong.append(f"{role} ended with {launched.code}: {tail[-1:]}")
            elif fault.hits is not Hits.ALL and role not in trial.seen and role not in trial.role.split(" to "):
                trial.named = False
                trial.wrong.append(f"{role} does not say who was lost: {tail[-1:]}")
        if fault.ends is Ends.ALONE and trial.late and trial.harmed:
            missing = [role for role in playing.names if role != trial.role and role not in trial.seen]
            if missing:
                trial.named = False
                trial.wrong.append(f"{', '.join(missing)} did not see it")

    def _go_on(self) -> None:
        """All that have not come to the end are started again."""
        playing, trial = self.playing, self.trial
        if playing.wire is not None:
            playing.wire.silent.clear()
            playing.wire.closed.clear()
        trial.exit_code = max((launched.code or 0 for launched in playing.now.values()), key=abs)
        roles = [role for role in playing.names if not playing.is_over(role)]
        since = time.monotonic()
        playing.now.clear()
        playing.start(*roles, resume=True)
        if left := playing.ended_within(_LIMIT):
            trial.wrong.append(f"hung with --resume: {', '.join(left)}")
        trial.back, trial.resumed = round(time.monotonic() - since, 2), "together"
        for role, launched in playing.now.items():
            if launched.code:
                said = [line for _, _, line in playing.log(launched)][-1:]
                trial.wrong.append(f"{role} ended with {launched.code} with --resume: {said}")

    def _judge_result(self) -> None:
        trial, playing = self.trial, self.playing
        wrong = self.case.judge(self.scratch, playing.learned(), playing.heard(), self.beside.arms)
        trial.same = not wrong
        trial.wrong += [f"WRONG RESULT: {wrong}"] if wrong else []
        cursors = [playing.home_of(role) / "material" / "store" / "cursor" for role in playing.names]
        claims = [claimed_twice(b"", file.read_bytes()) for file in cursors if file.exists()]
        if twice := playing.twice() + sum(claims):
            trial.drawn_twice = twice
            trial.wrong.append(f"{twice} keys or blocks of material drawn twice")
        trial.orphans = playing.orphans()
        trial.wrong += [f"left processes: {', '.join(trial.orphans)}"] if trial.orphans else []


def _plain(line: str, names: Sequence[str]) -> str:
    """With names, numbers and the folders of a path left out."""
    line = re.sub(r"/[^\s:]*/", "", line)
    for name in sorted(names, key=len, reverse=True):
        line = re.sub(rf"\b{name}\b", "R", line)
    return re.sub(r"\d[\d.,]*", "n", line)


def seen(trials: Sequence[Seen]) -> str:
    """What the others saw, and in how many seconds, as a table in Markdown: of all sessions together, then of each."""
    played = [trial for trial in trials if not trial.skipped]
    modes = list(dict.fromkeys(trial.mode for trial in played))
    lines = [
        "| session | fault | trials | what was hit | seen by the last after (s): median, longest | "
        "what the others say first |",
        "| --- | --- | ---: | --- | --- | --- |",
    ]
    for mode in ["all", *modes] if len(modes) > 1 else modes:
        for fault in (each.name for each in FAULTS):
            group = [trial for trial in played if trial.fault == fault and mode in ("all", trial.mode)]
            lines += [f"| {mode} | {fault} | {_seen(group)} |"] if group else []
    return "\n".join(lines)


def _seen(group: Sequence[Seen]) -> str:
    last = [max(trial.seen.values()) for trial in group if trial.seen]
    said = Counter(line for trial in group for line in trial.first.values())
    most = "; ".join(f"{count} x {line[:110]}" for line, count in said.most_common(2))
    hit = ", ".join(f"{count} {role}" for role, count in sorted(Counter(trial.role for trial in group).items()))
    seconds = f"{statistics.median(last):.1f}, {max(last):.1f}" if last else "-"
    return " | ".join([str(len(group)), hit, seconds, most.replace("|", "/")])
