"""How a role between machines stands, for whoever watches it: `/healthz`, and Prometheus' text.  Knows counts, clocks.

Nothing that a user brings or learns is in it, but counts of rounds, bytes, seconds and decisions, and of the last error
the words that may travel (`MaskedError.told`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from mpc.errors import MaskedError, PeerLost
from mpc.meter import Cost

from .exposition import TEXT, exposition

JSON = "application/json"
_LONGEST = 300  # letters of an error
_HELP = {
    "masked_up": ("gauge", "1 while the role has its place, by its state"),
    "masked_decisions_total": ("counter", "decisions that were made"),
    "masked_decisions_wanted": ("gauge", "decisions of the whole run"),
    "masked_rounds_total": ("counter", "rounds among the computing parties"),
    "masked_sent_bytes_total": ("counter", "payload that this party sent"),
    "masked_frame_bytes_total": ("counter", "headers around it"),
    "masked_client_hops_total": ("counter", "messages of clients that no round carried"),
    "masked_seconds_total": ("counter", "seconds in rounds and messages, waiting included"),
    "masked_label_rounds_total": ("counter", "rounds by what they were spent on"),
    "masked_label_sent_bytes_total": ("counter", "payload by what it was sent for"),
    "masked_label_seconds_total": ("counter", "seconds by what they were spent on"),
    "masked_lost_total": ("counter", "times that another role was lost, and waited for"),
    "masked_material_steps": ("gauge", "steps of material that are left in the store"),
    "masked_material_hours": ("gauge", "hours that these last at the pace so far"),
    "masked_last_error_info": ("gauge", "the kind and the words of the last error"),
}


@dataclass
class Status:
    """role, session, program: whose this is.  decisions: of the whole run.

    cost, labels, stock: ask for what was spent, in all and by label, and for the steps of material that are left.
    """

    role: str
    session: str
    program: str
    decisions: int
    state: str = "starting"
    done: int = 0
    lost: int = 0
    error: str = ""
    kind: str = ""
    cost: Callable[[], Cost] = field(default=Cost, repr=False)
    labels: Callable[[], Mapping[str, Cost]] = field(default=dict, repr=False)
    stock: Callable[[], int | None] = field(default=lambda: None, repr=False)
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    _first: tuple[float, int] | None = None
    _last: float = 0.0

    def made(self, done: int) -> None:
        """So many decisions are made."""
        self._last = self.clock()
        self._first = self._first or (self._last, done)
        self.done, self.state = done, "running"

    @contextmanager
    def until_the_end(self) -> Iterator[None]:
        """Around all that the role does."""
        try:
            yield
        except BaseException as error:
            self.failed(error)
            raise
        self.state = "over"

    def waits(self, lost: PeerLost) -> None:
        """Another role is gone, and waited for."""
        self._note(lost)
        self.state, self.lost = "waiting", self.lost + 1

    def failed(self, error: BaseException) -> None:
        """The run is over, and why."""
        self._note(error)
        self.state = "failed"

    def _note(self, error: BaseException) -> None:
        self.kind = type(error).__name__
        self.error = " ".join(error.told.split())[:_LONGEST] if isinstance(error, MaskedError) else ""

    @property
    def pace(self) -> float | None:
        """Seconds of a decision; None before there were two."""
        if self._first is None or self.done <= self._first[1]:
            return None
        return (self._last - self._first[0]) / (self.done - self._first[1])

    def health(self) -> tuple[int, str, str]:
        """200 while all is well, 503 after an error."""
        said = {
            "role": self.role, "session": self.session, "program": self.program, "state": self.state,
            "decisions": self.done, "of": self.decisions, "material_steps": self.stock(), "last_error": self.error,
        }  # fmt: skip
        return 503 if self.state == "failed" else 200, JSON, json.dumps(said) + "\n"

    def metrics(self) -> tuple[int, str, str]:
        """As Prometheus reads it."""
        values = ((name, {**self._own(), **labels}, value) for name, labels, value in self._values())
        return 200, TEXT, exposition(_HELP, values)

    def pages(self) -> Mapping[str, Callable[[], tuple[int, str, str]]]:
        """By path."""
        return {"/healthz": self.health, "/metrics": self.metrics}

    def _own(self) -> dict[str, str]:
        return {"role": self.role, "session": self.session, "program": self.program}

    def _values(self) -> Iterator[tuple[str, dict[str, str], float]]:
        yield "masked_up", {"state": self.state}, float(self.state != "failed")
        yield "masked_decisions_total", {}, self.done
        yield "masked_decisions_wanted", {}, self.decisions
        cost = self.cost()
        yield "masked_rounds_total", {}, cost.rounds
        yield "masked_sent_bytes_total", {}, cost.sent_bytes
        yield "masked_frame_bytes_total", {}, cost.frame_bytes
        yield "masked_client_hops_total", {}, cost.client_hops
        yield "masked_seconds_total", {}, cost.seconds
        for label, spent in self.labels().items():
            yield "masked_label_rounds_total", {"label": label}, spent.rounds
            yield "masked_label_sent_bytes_total", {"label": label}, spent.sent_bytes
            yield "masked_label_seconds_total", {"label": label}, spent.seconds
        yield "masked_lost_total", {}, self.lost
        if (left := self.stock()) is not None:
            yield "masked_material_steps", {}, left
            if self.pace is not None:
                yield "masked_material_hours", {}, left * self.pace / 3600.0
        if self.kind:
            yield "masked_last_error_info", {"kind": self.kind, "words": self.error}, 1.0
