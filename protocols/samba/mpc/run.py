"""A run on shares: what it asks of `protocols.run`, and what it reached beside the plaintext policy with its coins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bandits.samba import Arms, BernoulliArms, Played, RecordedArms, Seeds, run
from bandits.samba.coins import derived
from mpc.client import ClientProgram
from mpc.errors import ConfigError
from mpc.session import Session

from ...run.program import Arrays, Brings, Counted, Desk, Ended, Facts, Fresh, Program, Role, fingerprint
from ..owners import game_of
from .clients import COMMON, Host, customer, host, inputs, recorded
from .dealt_coins import DealtCoins
from .program import CUSTOMER, Parties
from .settings import Settings

Watch = Callable[[int], None]


class Federation(Program["Run"]):
    """SAMBA on shares: K owners in blocks, each block at a host, and DC.

    seed: of what the arms pay, and in a simulation of all coins.  arms: None in a role.
    watch: told how far the reference is, which is played after the run.
    """

    name, unit, seeded = "samba", "pull", True

    def __init__(
        self, settings: Settings, parties: int, seed: int, arms: Arms | None = None,
        watch: Watch | None = None,
    ) -> None:  # fmt: skip
        super().__init__(parties, settings.budget)
        if arms is not None and len(arms) != settings.arms:
            raise ConfigError(f"settings for {settings.arms} arms and {len(arms)} means: give both the same number")
        if isinstance(arms, RecordedArms) and len(arms.outcomes) < settings.budget:
            raise ConfigError(f"{len(arms.outcomes):,} steps were recorded of {settings.budget:,} pulls: record more")
        self.settings, self.seed, self._arms, self._watch = settings, seed, arms, watch
        self.idle = settings.arms
        hosts = (Role(name, home=f"host-{at}") for at, name in enumerate(settings.roles))
        self.roles = (*hosts, Role(CUSTOMER, patient=True))

    @property
    def arms(self) -> Arms:
        """What the arms pay, of whoever starts the run."""
        assert self._arms is not None, "a role knows its own arms"
        return self._arms

    def public(self) -> dict[str, Any]:
        """Settings."""
        return {"settings": self.settings.as_json(), "parties": self.parties}

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Federation:
        """As a role knows it."""
        return cls(Settings(**given["settings"]), given["parties"], 0)

    def facts(self) -> Facts:
        """Settings; what the arms pay is told apart by a hash."""
        means = fingerprint(self.arms.outcomes if isinstance(self.arms, RecordedArms) else self.arms.means)
        return {**self.settings.as_json(), "parties": self.parties, "seed": self.seed, "means": means}

    def blank(self) -> Federation:
        """One host, and arms that all pay alike."""
        settings = replace(self.settings, hosts=1, budget=max(self.settings.budget, self.settings.arms + 1))
        return Federation(settings, self.parties, 0, BernoulliArms(np.full(settings.arms, 0.5)))

    def seeds(self, key: bytes | None) -> Seeds:
        """Of the owners: in a launch all but those of the rewards follow from a fresh key."""
        own = Seeds.of(self.seed)
        if key is None:
            return own
        return Seeds(*(derived(key, purpose) for purpose in Seeds._fields))._replace(rewards=own.rewards)

    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        """To each host its owners' means, seeds and noise."""
        seeds = self.seeds(key)
        return {role: inputs(block, seeds, self.arms) for role, block in zip(self.settings.roles, self.settings.blocks)}

    def player(self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int) -> Parties:
        """They hold nothing between two steps."""
        return Parties(session, self.settings, done)

    def client(self, role: str, own: Arrays, desk: Desk) -> ClientProgram:
        """A host plays its owners, from where they stood; DC learns the sum."""
        if role == CUSTOMER:
            return customer()
        return host(Host.of(self.settings, self._block(role), own if desk.kept is None else desk.kept, desk), desk)

    def brings(self, role: str) -> Brings:
        """A host: what its owners' arms would pay at each step, if that is known."""
        return Brings(0, self.settings.budget, "step", len(self._block(role))) if role != CUSTOMER else Brings()

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> Arrays:
        """Owners draw their own coins."""
        if role not in self.settings.roles:
            return {}
        return recorded(self._block(role), rows, fresh)

    def told(self, role: str, left: Any) -> Facts:
        """DC's sum."""
        return {"cumulative_reward": left} if role == CUSTOMER else {}

    @property
    def common(self) -> Mapping[str, tuple[str, ...]]:
        """All owners explore in the same steps."""
        return {COMMON: self.settings.roles} if self.settings.local.may_explore else {}

    def _block(self, role: str) -> range:
        roles = self.settings.roles
        return self.settings.blocks[roles.index(role)] if role in roles else range(0)

    def result(self, ended: Ended) -> Run:
        """What all owners together know, and the sum as DC learned it."""
        settings, reference = self.settings, None
        if ended.coins is not None:
            seeds = self.seeds(ended.coins.clients)
            coins = DealtCoins(ended.coins.key, ended.items, settings.arms, seeds)
            reference = run(settings.reference(), self.arms, settings.budget, coins, seeds.rewards, self._watch)
        game = game_of(ended.clients.values(), settings.budget)
        return Run(settings, self.parties, ended.left[CUSTOMER], game, reference, ended)

    @property
    def purpose(self) -> tuple[str, str]:
        """Said where material does not fit."""
        given = self.settings
        return f"{given.policy}, {given.budget:,} pulls of {given.arms} arms", super().purpose[1]


@dataclass(frozen=True)
class Run(Counted):
    """A run that reached its end.

    total: the sum as the customer learned it.  reference: None where the coins are the dealer's alone.
    """

    settings: Settings
    parties: int
    total: int
    game: Played
    reference: Played | None
    ended: Ended

    @property
    def equal(self) -> bool | None:
        """Whether it pulled as the reference did, and the customer learned its sum; None without one."""
        if self.reference is None:
            return None
        return self.game.equals(self.reference) and self.total == self.reference.total
