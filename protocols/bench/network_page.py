"""The page of `scripts/bench network`: what was measured, as a document and as tables, and goals that were missed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from mpc.tables import markdown

from .network_party import GATHER, GLOO, TCP, TLS, UNIX
from .report import head, ratio

ARMS, DIM = 10, 20
TIMES_TCP, TIMES_GLOO, TIMES_DELAY = 2.0, 2.0, 1.1
_FARTHEST = 40.0  # milliseconds one way, for which the step has a goal
_ABOUT = """Each party is a process, and so are the bandit's puller and payer. Times are
medians of the slowest party; exchanges are timed in turns, so whatever else the machine does hits all ways alike. gloo
is our rounds over torch.distributed, a header and then the payload; its own all_gather stands beside it. A delay is one
way, over a line of our own between network namespaces, which TCP takes for a network: 0 ms shows what the line itself
takes. On it plain TCP and gloo find their window as most machines have it (cubic, or reno where a namespace may not
have that), and TLS asks for bbr, which it gets where users may have it. 'Window kept' is plain TCP where an
administrator has set net.ipv4.tcp_slow_start_after_idle to 0."""
_EXCHANGES = (
    ("N", "d"), ("one way, ms", "s"), ("bytes", ","), ("TLS, us", ",.0f"), ("TCP, us", ",.0f"), ("unix, us", ",.0f"),
    ("gloo, us", ",.0f"), ("all_gather, us", ",.0f"), ("times TCP", ".2f"), ("all_gather's times TLS", ".1f"),
)  # fmt: skip
_SILENT = (
    ("N", "d"), ("one way, ms", "s"), ("bytes", ","), ("TLS, ms", ".1f"), ("TCP, ms", ".1f"), ("gloo, ms", ".1f"),
    ("TLS, in delays", ".1f"), ("in a row, in delays", ".1f"),
)  # fmt: skip
_STEPS = (
    ("N", "d"), ("one way, ms", "s"), ("TLS, ms", ",.2f"), ("TCP, ms", ",.2f"), ("unix, ms", ".2f"),
    ("gloo, ms", ",.2f"), ("CrypTen, ms", ",.0f"), ("rounds", "g"), ("clients' messages", "g"),
    ("bytes to each peer", ",.0f"), ("of rounds and messages x delay", ".3f"), ("goal", "g"),
)  # fmt: skip


@dataclass(frozen=True)
class Distance:
    """delay: milliseconds one way over a line of our own; None on loopback.  kept: an administrator has seen to it that
    TCP keeps its window in silence.
    """

    delay: float | None
    kept: bool = False

    @property
    def text(self) -> str:
        """In a table."""
        return "loopback" if self.delay is None else f"{self.delay:g}{', window kept' * self.kept}"


@dataclass(frozen=True)
class Exchange:
    """Microseconds of one exchange.  silent: of the first after a second of silence, the mean over parties."""

    parties: int
    distance: Distance
    way: str
    size: int
    microseconds: float
    silent: float | None = None


@dataclass(frozen=True)
class Step:
    """A step of the bandit, the median over steps of the slowest party; rounds, clients' messages, bytes to a peer."""

    parties: int
    distance: Distance
    way: str
    microseconds: float
    rounds: float
    hops: float
    opened: float


@dataclass(frozen=True)
class Results:
    """All that is measured.  peers: CrypTen's steps.  notes: what a reader must know."""

    exchanges: list[Exchange]
    steps: list[Step]
    peers: list[dict[str, Any]]
    notes: list[str]


def as_json(results: Results) -> str:
    """One document."""
    return json.dumps(asdict(results), indent=1)


def as_markdown(results: Results) -> str:
    """A page for a reader."""
    return "\n".join([
        *head("Links: exchanges and steps, near and far", "network", _ABOUT),
        *(line for note in results.notes for line in (note, "")),
        "## One exchange",
        "",
        *markdown(_EXCHANGES, [_exchange_line(group) for group in _grouped(results.exchanges)]),
        *_after_silence(results),
        "",
        "## A step of the bandit",
        "",
        f"{ARMS} arms, {DIM} dimensions. Ours draws material that was dealt before; CrypTen deals inside its step.",
        "",
        *markdown(_STEPS, [_step_line(group, results.peers) for group in _stepped(results.steps)]),
    ]) + "\n"  # fmt: skip


def _grouped(rows: list[Exchange]) -> list[dict[str, Exchange]]:
    """By everything but the way."""
    groups = dict[tuple[int, Distance, int], dict[str, Exchange]]()
    for row in rows:
        groups.setdefault((row.parties, row.distance, row.size), {})[row.way] = row
    return list(groups.values())


def _stepped(rows: list[Step]) -> list[dict[str, Step]]:
    groups = dict[tuple[int, Distance], dict[str, Step]]()
    for row in rows:
        groups.setdefault((row.parties, row.distance), {})[row.way] = row
    return list(groups.values())


def _exchange_line(group: dict[str, Exchange]) -> tuple[Any, ...]:
    first, times = group[TLS], {way: row.microseconds for way, row in group.items()}
    return (
        first.parties, first.distance.text, first.size, *(times.get(way) for way in (TLS, TCP, UNIX, GLOO, GATHER)),
        ratio(times[TLS], times[TCP]), ratio(times.get(GATHER), times[TLS]),
    )  # fmt: skip


def _after_silence(results: Results) -> list[str]:
    rows = []
    for group in _grouped(results.exchanges):
        first = group[TLS]
        if first.silent is None or not first.distance.delay:
            continue
        after = {way: row.silent / 1e3 for way, row in group.items() if row.silent is not None}
        rows.append(
            (first.parties, first.distance.text, first.size, *(after.get(way) for way in (TLS, TCP, GLOO)),
             after[TLS] / first.distance.delay, first.microseconds / 1e3 / first.distance.delay)
        )  # fmt: skip
    if not rows:
        return []
    words = "When nothing was said for a second, TCP begins with a small window again; TLS has asked it not to."
    return ["", "## The first after silence", "", words, "", *markdown(_SILENT, rows)]


def _step_line(group: dict[str, Step], peers: list[dict[str, Any]]) -> tuple[Any, ...]:
    first, times = group[TLS], {way: row.microseconds / 1e3 for way, row in group.items()}
    where = (first.parties, first.distance)
    beside = [each for each in peers if (each["parties"], Distance(each["delay"])) == where]
    return (
        first.parties, first.distance.text, *(times.get(way) for way in (TLS, TCP, UNIX, GLOO)),
        beside[0]["microseconds"] / 1e3 if beside else None, first.rounds, first.hops, first.opened,
        _of_delay(first), TIMES_DELAY if first.distance.delay == _FARTHEST else None,
    )  # fmt: skip


def _of_delay(step: Step) -> float | None:
    """How much longer a step takes than its messages are under way, one behind the other."""
    return step.microseconds / 1e3 / ((step.rounds + step.hops) * step.distance.delay) if step.distance.delay else None


def missed(results: Results) -> list[str]:
    """The goals that this run did not reach."""
    out = []
    for group in _grouped(results.exchanges):
        first, times = group[TLS], {way: row.microseconds for way, row in group.items()}
        if first.distance.delay is not None or first.size != 8:
            continue
        if (found := times[TLS] / times[TCP]) > TIMES_TCP:
            out.append(f"N = {first.parties}: 8 bytes over TLS take {found:.2f} times TCP's, the goal is {TIMES_TCP:g}")
        if GATHER in times and (found := times[GATHER] / times[TLS]) < TIMES_GLOO:
            out.append(f"N = {first.parties}: TLS is {found:.1f} times faster than gloo, the goal is {TIMES_GLOO:g}")
    for steps in _stepped(results.steps):
        step = steps[TLS]
        if step.distance.delay == _FARTHEST and (part := _of_delay(step)) is not None and part > TIMES_DELAY:
            took = f"takes {part:.2f} times what its messages do, the goal is {TIMES_DELAY:g}"
            out.append(f"N = {step.parties}: a step over {step.distance.text} ms {took}")
    return out
