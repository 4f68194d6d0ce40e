"""What a run cost.  Knows rounds, bytes and seconds, in total and by label; no content."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass
class Cost:
    """A sum of costs.

    rounds: exchanges among the computing parties, each waiting for the one before.
    opened_bytes: payload each party sent to each of its peers in Opens.
    sent_bytes: all payload that one party sent, to all peers and clients, Opens and Reveals.
    frame_bytes: headers around that payload.
    client_hops: messages to or from a client that a round did not already carry.
    seconds: time inside the program and waiting for its messages.
    """

    rounds: int = 0
    opened_bytes: int = 0
    sent_bytes: int = 0
    frame_bytes: int = 0
    client_hops: int = 0
    seconds: float = 0.0


class Meter:
    """Costs of a session: `meter.total`, and `meter["argmax"]` for what ran under that label."""

    def __init__(self) -> None:
        self.total = Cost()
        self._labels: dict[str, Cost] = {}

    def __getitem__(self, label: str) -> Cost:
        return self._labels.setdefault(label, Cost())

    def labels(self) -> dict[str, Cost]:
        """All labelled costs."""
        return dict(self._labels)

    def add(self, cost: Cost) -> None:
        """Add what was counted elsewhere to the total."""
        for part in fields(cost):
            setattr(self.total, part.name, getattr(self.total, part.name) + getattr(cost, part.name))

    def reset(self) -> None:
        """Start from zero."""
        self.total = Cost()
        self._labels.clear()

    def __repr__(self) -> str:
        return f"Meter({self.total})"
