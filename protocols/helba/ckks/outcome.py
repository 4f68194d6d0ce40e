"""What a participant ends with.  Knows names and counts; no ciphertext."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...published.outcome import Outcome as Plain


@dataclass
class Outcome(Plain):
    """ends: by step, the server's.  arms: by step, the users'.

    refreshes: how many.  masked: numbers under masks.  rounds: how often the server waited for a user.  key_bytes: of
    the server's keys.
    """

    ends: list[bool] = field(default_factory=list)
    arms: list[int] = field(default_factory=list)
    refreshes: int = 0
    masked: int = 0
    rounds: int = 0
    key_bytes: int = 0
