"""What a service did, in numbers: for Prometheus and for `/healthz`.  Knows counts and times; nothing that was sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ...run.exposition import exposition

_SAID = {
    "masked_serve_up": ("gauge", "1 while batches can be kept"),
    "masked_serve_requests_total": ("counter", "requests that were answered, by path and status"),
    "masked_serve_decisions_total": ("counter", "decisions that were told since the start"),
    "masked_serve_rewards_total": ("counter", "rewards that were learned from since the start"),
    "masked_serve_batches_total": ("counter", "batches: requests that were taken together"),
    "masked_serve_saves_total": ("counter", "saves of the whole bandit"),
    "masked_serve_seconds_total": ("counter", "seconds of the bandit's thread, by what they were spent on"),
    "masked_serve_processor_seconds_total": ("counter", "those in which it had a processor"),
    "masked_serve_waiting_requests": ("gauge", "requests that wait for a batch"),
    "masked_serve_waiting_contexts": ("gauge", "contexts that wait for a decision"),
    "masked_serve_unpaid_decisions": ("gauge", "decisions that wait for a reward"),
    "masked_serve_learned": ("gauge", "rewards that were learned from, ever"),
    "masked_serve_log_bytes": ("gauge", "bytes of the log since the last save"),
    "masked_serve_disclosed": ("gauge", "values that were told, ever, as the ledger counts them"),
}
_FROM_ZERO = "decisions", "rewards", "batches", "saves"  # shown before there is one: their rates begin at the start


class Measures:
    """Counts that threads add to; gauges are asked for."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._counts: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {(name, ()): 0 for name in _FROM_ZERO}
        self.gauges: dict[str, Callable[[], float]] = {}
        self.failed = ""

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """To `masked_serve_NAME_total`."""
        key = name, tuple(sorted(labels.items()))
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + amount

    def asked(self, path: str, status: int) -> None:
        """A request was answered."""
        self.add("requests", path=path, status=str(status))

    @contextmanager
    def spent(self, on: str) -> Iterator[None]:
        """The time in this block, by the clock and of this thread's processor."""
        start, used = self._clock(), time.thread_time()
        try:
            yield
        finally:
            self.add("seconds", self._clock() - start, on=on)
            self.add("processor_seconds", time.thread_time() - used, on=on)

    def total(self, name: str, **labels: str) -> float:
        """What was added, of all whose labels these are among."""
        with self._lock:
            found = list(self._counts.items())
        return sum(value for (key, own), value in found if key == name and labels.items() <= dict(own).items())

    def text(self) -> str:
        """As Prometheus reads it."""
        with self._lock:
            counts = sorted(self._counts.items())
        values: list[tuple[str, Mapping[str, str], float]] = [("masked_serve_up", {}, float(not self.failed))]
        values += [(f"masked_serve_{name}_total", dict(labels), value) for (name, labels), value in counts]
        values += [(f"masked_serve_{name}", {}, ask()) for name, ask in self.gauges.items()]
        return exposition(_SAID, values)
