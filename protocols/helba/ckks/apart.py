"""HELBA on ciphertexts on machines of their own: users bring features and rewards, the server and key owner nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...published.apart import AsPublished
from ...published.ckks import Vault
from ...published.drive import Play, Watch
from ...run.desk import FileDesk
from ...run.program import Brings, Fresh
from ..clients import check_all
from .cast import CALLS, PUBLISHED, ROLES, play_of
from .messages import Role
from .outcome import Outcome
from .settings import Settings


class Ciphertexts(AsPublished[Outcome]):
    """settings: what all agree on."""

    def __init__(self, settings: Settings) -> None:
        Vault(settings.scheme)  # says what is missing or refused before anything starts
        self.settings = settings
        super().__init__(PUBLISHED, ROLES, CALLS, unit="step", decisions=settings.steps, centre=Role.SERVER.value)

    def public(self) -> Mapping[str, Any]:
        """Settings."""
        return self.settings.as_json()

    @property
    def purpose(self) -> str:
        """In words."""
        return f"{self.settings.steps:,} steps of {self.settings.arms} arms, on ciphertexts"

    def brings(self, role: str) -> Brings:
        """The users: features of all arms, arm by arm, and what each pays."""
        given = self.settings
        columns = given.arms * (given.constants.dim + 1)
        return Brings(columns, given.steps, "step") if role == Role.USER else Brings()

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> dict[str, Any]:
        """A row for each step."""
        given = self.settings
        if rows is None:
            return {"settings": given.as_json()}
        features, rewards = np.split(rows, [given.arms * given.constants.dim], axis=1)
        shape = given.steps, given.arms, given.constants.dim
        check_all(features.reshape(shape), rewards, given.constants)
        return {"settings": given.as_json(), "features": features.reshape(shape), "rewards": rewards}

    def played(
        self, role: str, given: Any, common: Mapping[str, bytes], desk: FileDesk, watch: Watch
    ) -> Play[Outcome]:  # fmt: skip
        """As in a process of a launch."""
        return play_of(self.names.index(role), given, watch)

    def ends(self, role: str, done: Outcome) -> Mapping[str, Any]:
        """Arms and ends are in the outcome."""
        return {}
