"""What is public of a run, however it is played.  Knows no feature."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, TypeVar

from bandits.helba import Batches, Constants
from mpc.errors import ConfigError

from ..run.choices import whole_number
from ..run.program import digest

G = TypeVar("G", bound="Game")


@dataclass(frozen=True)
class Game:
    """arms: K.  steps: T.  batches: who learns when a batch ends."""

    constants: Constants = field(default_factory=Constants)
    arms: int = 2
    steps: int = 130
    batches: Batches = Batches.PUBLIC

    def __post_init__(self) -> None:
        for name in ("arms", "steps"):
            object.__setattr__(self, name, whole_number(getattr(self, name), name))
        if not isinstance(self.batches, Batches):
            kinds = ", ".join(f"Batches.{kind.name}" for kind in Batches)
            raise ConfigError(f"batches are one of {kinds}, not {self.batches!r}")
        if self.arms < 1 or self.steps < 1:
            raise ConfigError(f"{self.arms} arms and {self.steps} steps: at least 1 of each")

    @cached_property
    def digest(self) -> str:
        """Of all that those who play must agree on."""
        return digest(self.as_json())

    def as_json(self) -> dict[str, Any]:
        """By name, as JSON takes it."""
        own = {"steps": self.steps, "arms": self.arms, "batches": self.batches.value}
        return {**own, **asdict(self.constants)}

    @classmethod
    def from_json(cls: type[G], given: Mapping[str, Any]) -> G:
        """What `as_json` gave."""
        rest = dict(given)
        steps, arms, batches = (rest.pop(name) for name in ("steps", "arms", "batches"))
        return cls(Constants(**rest), arms, steps, Batches(batches))
