"""Timing one operation in one session.  Knows the clock; the material is dealt before it starts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpc.cases import Case
from mpc.correlations import Correlation, layout
from mpc.net.transport import Stamp
from mpc.rounds import Open, Rounds
from mpc.scratch import scratch_folder
from mpc.session import Session
from offline import InProcessDealer, Plan, Recorder, TrustedDealer, deal
from offline.batch import room

WARM_UPS = 3


@dataclass(frozen=True)
class Row:
    """One line of the report; the JSON keys are these names."""

    op: str
    parties: int
    transport: str
    size: int
    rounds: int
    bytes_per_party: int
    offline_bytes: int
    microseconds: float
    plain_microseconds: float | None
    offline_microseconds: float | None = None
    peer_microseconds: float | None = None
    peer_rounds: int | None = None


class Prepared(InProcessDealer):
    """A dealer for all parties in one process that makes its items ahead, so that dealing is not timed."""

    def __init__(self, parties: int, items: Iterable[Correlation]) -> None:
        super().__init__(parties)
        self._ready = iter([self.make(item) for item in items])

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """The next prepared item."""
        return layout(item).views(next(self._ready))


@contextmanager
def dealt(plan: Plan, steps: int) -> Iterator[Path]:
    """A folder of one's own in which `material` is dealt, for as long as a launched program is timed."""
    with scratch_folder() as folder:
        deal(plan, steps, folder / "material", block_steps=20)
        os.sync()  # or the kernel writes the material back while the parties are timed
        yield folder


def plan_case(case: Case, parties: int) -> Plan:
    """What one step of a case draws."""
    recorder = Recorder(parties)
    with Session.simulate(parties, recorder) as session:
        values = case.inputs(np.random.default_rng(0))
        session.run(case.program(session, *case.share(session, values)))
    return Plan(case.name, parties, tuple(recorder.items))


def time_case(session: Session, case: Case, repeats: int) -> tuple[int, int, float]:
    """Rounds, bytes sent to all peers, and the median over repeats of the slowest party's microseconds."""
    shares = case.share(session, case.inputs(np.random.default_rng(1)))
    nanoseconds = np.zeros(repeats, np.uint64)
    for repeat in range(-WARM_UPS, repeats):
        session.run(_together_now(session))
        session.meter.reset()
        started = time.perf_counter_ns()
        session.run(case.program(session, *shares))
        spent = time.perf_counter_ns() - started
        if repeat >= 0:
            nanoseconds[repeat] = spent
    rounds, sent = session.meter.total.rounds, session.meter.total.sent_bytes
    slowest = session.run(_all_times(session, nanoseconds)).max(axis=0)
    return rounds, sent, float(np.median(slowest)) / 1e3


def time_dealing(plan: Plan) -> float:
    """Median microseconds in which a dealer makes one step's corrections, of as many as it deals together."""
    dealer, steps = TrustedDealer(plan.parties), room(plan.items, plan.parties)
    return _median(lambda: dealer.deal(plan.items, range(steps)), 9) / steps


def time_exchange(session: Session, repeats: int) -> float:
    """Microseconds of one exchange of 8 bytes, without a program around it."""
    transport, payload = session.transport, np.zeros((len(session.hosted), 8), np.uint8)
    stamp = Stamp(0, bytes(8), "exchange")
    return _median(lambda: transport.exchange(stamp, payload, {}), repeats, warm_ups=100)


def time_plain(function: Callable[..., object], values: tuple[np.ndarray, ...]) -> float:
    """Median microseconds of the plaintext twin."""
    return _median(lambda: function(*values), 51)


def _median(timed: Callable[[], object], repeats: int, *, warm_ups: int = 0) -> float:
    """Microseconds of a call."""
    spent = []
    for _ in range(warm_ups + repeats):
        started = time.perf_counter_ns()
        timed()
        spent.append(time.perf_counter_ns() - started)
    return float(np.median(spent[warm_ups:])) / 1e3


def _together_now(session: Session) -> Rounds[None]:
    """A round that opens nothing of interest: all parties leave it at about the same time."""
    yield Open(session.public(np.zeros(1, np.uint64)))


def _all_times(session: Session, own: np.ndarray) -> Rounds[np.ndarray]:
    """Each process's times, (parties, repeats); public, so they are opened without a mask."""
    rows = np.repeat(own[None], len(session.hosted), axis=0)
    return (yield Open(rows, apart=True))
