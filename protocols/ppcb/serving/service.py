"""All parts of the service of one folder, put together.  Knows no option of a command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.net.requests import Site

from ...run.folder import reserved
from ..library.bandit import PrivateContextualBandit
from ..settings import Policy
from .answers import Answers
from .batches import Batches
from .durable import DurableBandit
from .endpoints import Endpoints, waiting_of
from .measures import Measures


@dataclass(frozen=True)
class Wanted:
    """What a bandit is made with; of one that is there already it must say the same, or None.

    arms: how many, or their names.  owners: how many features each has.
    """

    arms: int | Sequence[str] | None = None
    owners: Sequence[int] | None = None
    eps: float | None = None
    policy: str | None = None
    alpha: float | None = None
    ridge: float | None = None
    bound: float | None = None
    reward_range: tuple[float, float] | None = None
    most_unpaid: int | None = None
    steps: int | None = None

    def make(self) -> PrivateContextualBandit:
        """A new one."""
        if self.arms is None or self.owners is None:
            raise ConfigError("there is no bandit in this folder yet: say --arms and --owners to make one")
        if self.alpha is not None and self.policy in (None, Policy.EPSILON_GREEDY.value):
            raise ConfigError("--alpha is of --policy linucb and thompson: epsilon-greedy has --eps alone")
        named = {"n_arms": self.arms} if isinstance(self.arms, int) else {"arms": self.arms}
        given: dict[str, Any] = {
            name: value for name, value in vars(self).items() if value is not None and name not in ("arms", "owners")
        }
        return PrivateContextualBandit(
            dim=sum(self.owners), owners=self.owners, parties=len(self.owners), **named, **given
        )

    def check(self, found: DurableBandit) -> None:
        """ConfigError where something else was said than the folder's bandit is; more steps are taken on."""
        settings, bandit = found.bandit.settings, found.bandit
        own: dict[str, Any] = {
            "arms": len(bandit.arms) if isinstance(self.arms, int) else list(bandit.arms),
            "owners": list(found.widths), "eps": settings.eps, "policy": settings.policy.value,
            "alpha": settings.alpha, "ridge": settings.ridge, "bound": settings.bound,
            "reward_range": settings.reward_range, "most_unpaid": found.held.most_unpaid,
        }  # fmt: skip
        for name, value in own.items():
            said = getattr(self, name)
            if said is not None and said != value:
                flag = name.replace("_", "-")
                raise ConfigError(
                    f"the bandit of this folder has --{flag} {value}, not {said}: leave it out, or name another folder"
                )
        if self.steps is not None and self.steps < settings.steps:
            raise ConfigError(
                f"the bandit of this folder was declared for --steps {settings.steps:,}, and never for fewer: leave "
                f"{self.steps:,} out"
            )
        if self.steps is not None and self.steps > settings.steps:
            found.extend(self.steps)


@dataclass(frozen=True)
class Service:
    """endpoints: what is asked.  found: the bandit, which one thread has."""

    endpoints: Endpoints
    measures: Measures
    found: DurableBandit

    @property
    def site(self) -> Site:
        """What is there to be asked."""
        its = self.endpoints
        return Site(its.endpoints(), its.pages(), its.guarded, self.measures.asked)


@contextmanager
def opened(
    folder: Path, wanted: Wanted, *, most: int = 64, longest: int = 4096, say: Callable[[str], None]
) -> Iterator[Service]:
    """While it is entered, requests are served.  most: contexts of a batch.  longest: contexts, rewards that wait."""
    with reserved(folder, "--folder"):
        found = DurableBandit(folder, wanted.make)
        wanted.check(found)
        answers, measures = Answers(), Measures()
        answers.put(found.answers)
        batches = Batches(found, answers, measures, most=most, longest=longest, say=say)
        with batches.at_work():
            yield Service(
                Endpoints(found, waiting_of(found.bandit.settings), batches, answers, measures), measures, found
            )
