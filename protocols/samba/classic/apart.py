"""Classic SAMBA on machines of their own: owners and Comp agree on a key, and owners on their seeds, with nobody else.

All call the Controller; owners call Comp, who draws the key that they have in common, and the first owner, who draws
what owners alone know.  So Controller, Comp and owner 0 listen, and everybody else may sit behind NAT.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from mpc.errors import ConfigError

from ...published.apart import AsPublished
from ...published.drive import Play, Watch
from ...published.paillier import check_bits, require_packages
from ...run.apart import Common
from ...run.desk import FileDesk
from ...run.program import Brings, Fresh
from ..owners import check_recorded, owners_name, paid_by, require_local
from .cast import PUBLISHED, calls_of, play_of
from .messages import COMP, CONTROLLER, CUSTOMER, Spec
from .outcome import Outcome
from .roles import check_budget

_KEY, _EXPLORING, _MASKS = "key", "common", "masks"


class Classic(AsPublished[Outcome]):
    """spec: the policy that DC orders.  arms: K, how many owners there are."""

    def __init__(self, spec: Spec, arms: int, budget: int, bits: int) -> None:
        require_packages()
        check_bits(bits)
        require_local(spec.policy())
        check_budget(budget, arms)
        self.spec, self.arms, self.budget, self.bits = spec, arms, budget, bits
        self.owners = tuple(owners_name(range(arm, arm + 1)) for arm in range(arms))
        names = (CONTROLLER, COMP, CUSTOMER, *self.owners)
        super().__init__(PUBLISHED, names, calls_of(names), unit="pull", decisions=budget, centre=CONTROLLER)

    @property
    def common(self) -> Common:
        """The Controller knows neither, and Comp not what owners have among themselves."""
        return {_KEY: (COMP, *self.owners), _EXPLORING: self.owners, _MASKS: self.owners}

    def public(self) -> Mapping[str, Any]:
        """What DC orders, and how many owners there are."""
        return {**asdict(self.spec), "arms": self.arms, "budget": self.budget, "bits": self.bits}

    @property
    def purpose(self) -> str:
        """In words."""
        return f"{self.spec.name}, {self.budget:,} pulls of {self.arms} arms, as published"

    def brings(self, role: str) -> Brings:
        """An owner: what its arm would pay at each step, if that is known."""
        return Brings(0, self.budget, "step", 1) if role in self.owners else Brings()

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> tuple[dict[str, Any], np.ndarray | None]:
        """Everybody's own coins."""
        given: dict[str, Any] = {"arms": self.arms, "bits": self.bits}
        if role == CONTROLLER:
            return {
                **given,
                "seed": fresh("order").hex(),
                "hosts": [[i, i + 1] for i in range(self.arms)],
                "start": 0,
            }, None
        if role == COMP:
            return {**given, "seed": fresh("point").hex()}, None
        if role == CUSTOMER:
            return {**given, "spec": asdict(self.spec), "budget": self.budget, "insecure": False}, None
        arm = self.owners.index(role)
        if rows is not None:
            check_recorded([arm], rows)
        noise = [fresh(f"noise {arm}").hex()]
        return {**given, "rows": [arm, arm + 1], "noise": noise, "keep": None}, rows

    def played(
        self, role: str, given: Any, common: Mapping[str, bytes], desk: FileDesk, watch: Watch
    ) -> Play[Outcome]:  # fmt: skip
        """With what it has in common with others."""
        own, rows = given
        own = {**own, **{name: secret.hex() for name, secret in common.items()}}
        pay = paid_by([self.owners.index(role)], rows, desk) if role in self.owners else None
        return play_of(self.names.index(role), own, watch, pay=pay)

    def ends(self, role: str, done: Outcome) -> Mapping[str, Any]:
        """DC's sum."""
        if role == CUSTOMER and done.total is None:
            raise ConfigError("the run was stopped before DC was told anything: start it anew")
        return {"cumulative_reward": done.total} if role == CUSTOMER else {}
