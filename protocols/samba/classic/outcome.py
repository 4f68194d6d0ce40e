"""What a participant of classic SAMBA ends with: counts, and who learns what.  Knows no message."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...published import outcome
from ...published.paillier import Counts
from ..owners import LocalPolicy, Select
from .messages import COMP, CONTROLLER

_MASKED = {
    Select.LARGEST: "masked score, arms permuted: its ratio to the list's others",
    Select.DRAW: "masked weight, arms permuted: its exact ratio to the list's others",
}


@dataclass
class Operations:
    """seals, opens: of AES-GCM.  masks: products of a word and a mask.  permutations: of a list, there or back."""

    seals: int = 0
    opens: int = 0
    masks: int = 0
    permutations: int = 0
    paillier: Counts = field(default_factory=Counts)

    def __add__(self, other: Operations) -> Operations:
        return Operations(
            self.seals + other.seals, self.opens + other.opens, self.masks + other.masks,
            self.permutations + other.permutations, self.paillier + other.paillier,
        )  # fmt: skip


@dataclass
class Outcome(outcome.Outcome):
    """done: steps.  state: of owners, the part that a game is made of.  total: DC's."""

    counts: Operations = field(default_factory=Operations)
    done: int = 0
    state: dict[str, list[int]] = field(default_factory=dict, repr=False)
    total: int | None = field(default=None, repr=False)

    @classmethod
    def from_json(cls, given: dict[str, Any]) -> Outcome:
        """What `as_json` gave."""
        counts = given["counts"]
        operations = Operations(**{**counts, "paillier": Counts(**counts["paillier"])})
        return super().from_json({**given, "counts": operations})


def customer_learned(done: Outcome) -> None:
    """DC."""
    done.learned("cumulative reward", 1, "it pays for the pulls")


def order_learned(done: Outcome, why: str, role: str = "") -> None:
    """Whoever is told what DC orders."""
    done.learned("policy and budget", 1, why, role)


def controller_learned(done: Outcome, policy: LocalPolicy, steps: int) -> None:
    """The Controller, in so many steps that choose."""
    if policy.may_explore and not policy.zeros:
        done.learned("whether a step explores", steps, "owners then send no scores")


def comp_learned(done: Outcome, policy: LocalPolicy, arms: int, steps: int, explored: int) -> None:
    """Comp, in so many steps that choose; a list of a step that explores has no scores."""
    if policy.may_explore:
        why = "all scores are 0 then" if policy.zeros else "it then points at any place"
        done.learned("whether a step explores", steps, why)
    for select in policy.selects:
        done.learned(_MASKED[select], (steps - explored) * arms, "it selects among them")
    done.learned("place of the selected arm, arms permuted", steps * policy.iterations, "it selects it")


def owners_learned(done: Outcome, policy: LocalPolicy, rows: range, steps: int) -> None:
    """Each owner of `rows`, in so many steps that choose; all know which of them explore."""
    for owner in rows:
        role = f"owner {owner}"
        if policy.may_explore:
            why = "it sends 0 then" if policy.zeros else "it sends no score then"
            done.learned("whether a step explores", steps, why, role)
        updates = steps * (policy.iterations - 1)
        done.learned("whether its score is the largest", updates, "its own probability moves", role)
        done.learned("whether it is pulled", steps, "it pulls its arm", role)


def earlier(policy: LocalPolicy, arms: int, steps: int, explored: int) -> list[Outcome]:
    """What was learned in an earlier sitting of so many steps that chose; DC learned nothing yet."""
    controller, comp, owners = Outcome(CONTROLLER), Outcome(COMP), Outcome("owners")
    controller_learned(controller, policy, steps)
    comp_learned(comp, policy, arms, steps, explored)
    owners_learned(owners, policy, range(arms), steps)
    return [controller, comp, owners]
