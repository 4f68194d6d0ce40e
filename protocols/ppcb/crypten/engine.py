"""A run of the bandit by CrypTen, on the contexts, coins and outcomes of a run of ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from bandits.linear import Choice
from mpc.errors import ConfigError
from mpc.ledger import Entry, Ledger

from ...run.crypten_parties import Said, masked_entries, play_on_crypten
from ...run.program import home_of
from ..dealt_coins import choices
from ..run import Bandit, Difference, Run, compared
from ..settings import Policy, Settings, Variant

_PARTY = "protocols.ppcb.crypten.party"
_NEWTON = 7  # of the paper's example


@dataclass(frozen=True)
class Beside:
    """What CrypTen's parties gave, beside a run of ours: both with the same coins, and one twin.

    rewards: (steps, 1).  sent: bytes that a party sends in a step.
    """

    ours: Run
    rewards: np.ndarray
    differences: tuple[Difference, ...]
    rounds: float
    sent: float
    seconds: float
    ledger: tuple[Entry, ...]

    @property
    def steps(self) -> int:
        return len(self.rewards)


def check_engine(settings: Settings) -> None:
    """ConfigError where CrypTen's Algorithm 1 cannot play what is asked for."""
    if settings.variant is Variant.PUBLISHED or not settings.tie_bits:
        raise ConfigError(
            "--engine crypten stands beside the recast and takes its coins, the draw among close scores too: leave out "
            "--variant and --tie-bits 0"
        )
    alone = settings.replicas, settings.batch, settings.delay
    if alone != (1, 1, 0) or settings.policy is not Policy.EPSILON_GREEDY or settings.refresh:
        raise ConfigError(
            "--engine crypten plays Algorithm 1 as published: epsilon-greedy, context by context; leave out --policy, "
            "--replicas, --batch, --delay and --refresh"
        )
    replace(settings, variant=Variant.PUBLISHED, state_bits=settings.fraction_bits)  # refuses what leaves its ranges


def beside(program: Bandit, ours: Run, *, watch: Callable[[int], None] = lambda _: None) -> Beside:
    """CrypTen's run of the steps that ours has played."""
    given, done = ours.settings, ours.steps
    told = _coins(ours)
    draws, explores, drawn = (np.stack(column) for column in zip(*map(_as_scores, told), strict=True))
    pulled: list[int] = []

    def hear(said: Said) -> None:
        if "arm" in said:
            pulled.append(said["arm"])
            watch(len(pulled))

    own = program.private(None)
    private = {party: {"features": own[home_of(party)]["features"][:done, 0, 0]} for party in range(program.parties)}
    outcomes = program.world.outcomes[:done, 0, 0]
    private[0] |= {"outcomes": outcomes, "draws": draws, "explores": explores, "drawn": drawn}
    newton = _NEWTON if given.newton is None else given.newton
    said = play_on_crypten(
        _PARTY, program.parties,
        {"parties": program.parties, "arms": given.arms, "dim": given.dim, "widths": list(given.widths), "steps": done,
         "ridge": given.ridge, "bits": given.fraction_bits, "newton": newton},
        private=private, heard=hear,
    )  # fmt: skip
    costs = [party[-1] for party in said]
    arms = np.array(pulled).reshape(done, 1, 1)
    _, rewards, _, _, differences = compared(given, program.world, arms, iter(told))
    opened = dict(costs[0]["opened"])
    opened["party 0"] -= done * given.arms  # one-hots of the arms
    ledger = Ledger()
    ledger.record("party 0", "arm", done, "it is pulled")
    ledger.record("party 0", "reward", done, "its own input")
    ledger.record("party 0", "coin", done, "it shares them, as it deals all else")
    masked_entries(ledger, opened)
    return Beside(
        ours, rewards, differences, costs[0]["rounds"] / done,
        float(np.mean([each["bytes"] for each in costs])) / 2 / done, max(each["seconds"] for each in costs) / done,
        tuple(ledger),
    )  # fmt: skip


def _coins(ours: Run) -> list[Choice]:
    coins = ours.ended.coins
    assert coins is not None, "a run without material from stores knows its coins"
    return list(_some(choices(
        coins.key, ours.ended.items, range(-(-ours.steps // coins.per_block)), ours.settings, steps=coins.per_block
    ), ours.steps))  # fmt: skip


def _some(given: Iterator[Choice], count: int) -> Iterator[Choice]:
    for _, choice in zip(range(count), given):
        yield choice


def _as_scores(choice: Choice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What is added to scores, whether to explore, and scores in [0, 1) from which an exploring step picks its arm."""
    order = choice.order.reshape(-1)
    drawn = order.argsort(kind="stable").argsort(kind="stable") / order.size
    return choice.unit * choice.ties.reshape(-1), choice.explore.reshape(-1).astype(np.float64), drawn
