"""Classic LinUCB-DS and SpectralUCB-DS on machines of their own: DO alone has arms, constants and theta beforehand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from bandits.coins import Noise
from bandits.fixed_point import Scales
from bandits.linear_problem import LinearProblem

from ...published.apart import AsPublished
from ...published.drive import Play, Watch
from ...published.paillier import check_bits, require_packages
from ...run.desk import FileDesk
from ...run.program import Brings, Fresh
from ..constants import as_json
from ..problems import completed
from .cast import CALLS, PUBLISHED, ROLES, play_of
from .messages import Role
from .roles import Outcome

_SEED_BYTES = 16


class Classic(AsPublished[Outcome]):
    """public_problem: arms and constants, and a theta of zeros; DO asks for it alone."""

    def __init__(
        self,
        program: str,
        public_problem: Callable[[], LinearProblem],
        budget: int,
        noise: Noise,
        bits: int,
        cores: int,
    ) -> None:
        require_packages()
        check_bits(bits)
        self.budget, self.noise, self.bits, self.cores = budget, noise, bits, cores
        self._public_problem = public_problem
        super().__init__(PUBLISHED, ROLES, CALLS, unit="pull", decisions=budget)
        self.name = program

    def public(self) -> Mapping[str, Any]:
        """Arms and constants come from DO."""
        return {"budget": self.budget, "noise_kind": self.noise.value, "bits": self.bits}

    @property
    def purpose(self) -> str:
        """In words."""
        return f"{self.budget:,} pulls, as published"

    def brings(self, role: str) -> Brings:
        """DO has theta, or on a graph what each node pays on average: one row."""
        return Brings(self._public_problem().dim, 1, "theta") if role == Role.DO else Brings()

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> dict[str, Any]:
        """P draws the coins of all."""
        common = {"bits": self.bits, "insecure": False, "cores": self.cores}
        if role == Role.P:
            return {**common, "seed": int.from_bytes(fresh("coins")[:_SEED_BYTES], "big"), "noise": self.noise.value}
        if role == Role.DC:
            return {**common, "budget": self.budget}
        if rows is None:
            return common
        problem = completed(self._public_problem(), rows[0])
        return {
            **common, "arms": problem.arms.tolist(), "theta": problem.theta.tolist(), **as_json(problem.exploration),
            "scales": asdict(Scales()),
        }  # fmt: skip

    def played(
        self, role: str, given: Any, common: Mapping[str, bytes], desk: FileDesk, watch: Watch
    ) -> Play[Outcome]:  # fmt: skip
        """As in a process of a launch."""
        return play_of([str(each) for each in ROLES].index(role), given, watch)

    def ends(self, role: str, done: Outcome) -> Mapping[str, Any]:
        """DC's sum."""
        return {"cumulative_reward": done.total * 2.0**-done.scale} if role == Role.DC else {}
