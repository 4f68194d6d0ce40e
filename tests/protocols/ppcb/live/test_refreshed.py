"""A service whose words do not last as long as its steps: its turns bring the regressions back to the exact sums."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.ppcb.live.program import Live
from protocols.ppcb.settings import Settings
from protocols.run.rehearsal import rehearse

from ..library.runs import made, taught
from .test_turns import Played

PARTIES, DIM, BATCH = 2, 8, 4
WIDE: dict[str, Any] = {"arms": 3, "dim": DIM, "owners": PARTIES, "bound": 2.0, "batch": BATCH, "eps": 0.0}
CLEAR = 2.0**-6  # between the two best scores: no draw, and no rounding, falls otherwise
NEAR = 1e-5  # words of 28 bits are off by less, and Newton's two iterations from 2^-15 as well


def settings_of(**more: Any) -> Settings:
    return Settings(**{**WIDE, "steps": 5000, "state_bits": 28, **more}).for_run(PARTIES, 5000)


def rows_of(count: int) -> np.ndarray:
    """Contexts at the bound of both owners."""
    x = np.random.default_rng(2).normal(size=(count, DIM))
    for block in (slice(0, 4), slice(4, 8)):
        x[:, block] *= WIDE["bound"] / np.linalg.norm(x[:, block], axis=-1, keepdims=True)
    return x


class Refreshing(Played):
    """The same of these settings, which learns of whole batches."""

    def __init__(self, folder: Path, settings: Settings, kept: Any = None, done: int = 0) -> None:
        super().__init__(folder, PARTIES, kept, done, program=Live(settings, PARTIES, 10_000), widths=(4, 4))
        self.rows, self.arms, self.rewards = list[np.ndarray](), list[int](), list[float]()

    @property
    def behind(self) -> int:
        return int(self.turns.state()["unrefreshed"][0])

    @property
    def refreshes(self) -> int:
        """By the rounds that they took."""
        return self.session.meter["refresh"].rounds // 9

    def decide(self, x: np.ndarray) -> list[dict[str, int]]:
        """Arms for these contexts, as many as a turn takes."""
        names = [f"{self.turns.done}-{at}" for at in range(len(x))]
        for feed, block in zip(self.owners.each, np.split(x, 2, axis=1)):
            feed.put(names, block.tolist())
        asked = self.ask(*names)
        self.play(2)
        told: list[dict[str, int]] = asked.result(0)["decisions"]
        return told

    def paid(self, x: np.ndarray, told: list[dict[str, int]]) -> np.ndarray:
        """What the arms pay: linear in the context."""
        theta = np.random.default_rng(5).normal(size=(3, DIM)) / 20.0
        arms = [each["arm"] for each in told]
        rewards = np.clip(0.5 + (x * theta[arms]).sum(axis=1), 0.0, 1.0).round(4)
        self.pay(*zip([each["decision_id"] for each in told], rewards.tolist()))
        self.rows.extend(x)
        self.arms.extend(arms)
        self.rewards.extend(rewards.tolist())
        return rewards

    def off(self) -> float:
        """How far the regressions are from the exact ones."""
        exact = taught(np.array(self.rows), np.array(self.arms), np.array(self.rewards), 3)
        return float(np.abs(self.learned() - exact).max())


def test_words_that_do_not_last_are_refreshed_and_arms_are_the_in_process_bandit_s(tmp_path: Path) -> None:
    """On a schedule that is a run's where batches are full; a bandit of the library learns of the same rows."""
    settings = settings_of(refresh=2)
    played = Refreshing(tmp_path, settings)
    bandit = made(n_arms=3, dim=DIM, bound=WIDE["bound"], parties=PARTIES, steps=5000, eps=0.0)
    clear = 0
    for which, x in enumerate(np.split(rows_of(28), 7)):
        told = played.decide(x)
        own = bandit.predict(x).arm
        scores = np.sort(x @ taught(np.array(played.rows).reshape(-1, DIM), np.array(played.arms),
                                    np.array(played.rewards), 3)[:, -1].T, axis=1)  # fmt: skip
        for mine, theirs, gap in zip(told, own, scores[:, -1] - scores[:, -2]):
            if gap > CLEAR:
                assert mine["arm"] == theirs
                clear += 1
        rewards = played.paid(x, told)
        played.play(2)
        bandit.partial_fit([each["arm"] for each in told], rewards, x)
        assert (played.refreshes, played.behind) == ((which + 1) // 2, 4 * ((which + 1) % 2))
        assert played.refreshes == 0 or played.behind or played.off() < NEAR
    assert clear >= 16 and played.payer.learned == 28


def test_rewards_that_come_one_by_one_are_never_further_behind_than_full_batches(tmp_path: Path) -> None:
    played = Refreshing(tmp_path, settings_of(refresh=2))
    x = rows_of(8)
    told = [*played.decide(x[:4]), *played.decide(x[4:])]
    behind = []
    for at in range(8):
        played.paid(x[at : at + 1], told[at : at + 1])
        played.play(2)
        behind.append(played.behind)
    assert behind == [1, 2, 3, 4, 0, 1, 2, 3], "a turn may learn from 4 more, and 8 are the most"


def test_a_refresh_brings_back_what_was_lost_and_a_turn_that_was_lost_refreshes_again(tmp_path: Path) -> None:
    """A kill in the turn of the refresh, or behind it before all kept it: all go on from the turn before."""
    settings = settings_of(refresh=2)
    played = Refreshing(tmp_path, settings)
    x = rows_of(12)
    first = played.decide(x[:4])
    played.paid(x[:4], first)
    second = played.decide(x[4:8])
    assert played.behind == 4 and played.refreshes == 0
    played.turns._held.table = played.turns._held.table + 2.0**-15  # as much rounding would
    kept, done = {name: array.copy() for name, array in played.turns.state().items()}, played.turns.done
    assert played.off() > 2 * NEAR
    played.paid(x[4:8], second)
    played.play(1)
    assert played.refreshes == 1 and played.off() < NEAR, "which is not kept: all die here"
    again = Refreshing(tmp_path, settings, kept, done)
    again.rows, again.arms, again.rewards = played.rows, played.arms, played.rewards
    again.play(2)
    assert (again.refreshes, again.behind, again.payer.learned, again.payer.passed_over) == (1, 0, 4, 0)
    assert again.off() < NEAR and np.abs(again.learned() - played.learned()).max() < NEAR
    third = again.decide(x[8:])
    scores = x[8:] @ again.learned()[:, -1].T
    for each, row in zip(third, scores):
        assert row[each["arm"]] > row.max() - CLEAR


@pytest.mark.parametrize("refresh", [1, 2, 7])
def test_every_turn_draws_the_same_whether_it_refreshes_or_not(
    refresh: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = Refreshing(tmp_path, settings_of(refresh=refresh))
    wanted = rehearse(played.program).plan.items
    drawn: list[Any] = []
    draw = played.session.source.draw

    def draws(item: Any) -> Any:
        drawn.append(item)
        return draw(item)

    monkeypatch.setattr(played.session.source, "draw", draws)
    for x in np.split(rows_of(12), 3):
        drawn.clear()
        told = played.decide(x)
        assert tuple(drawn) == wanted
        drawn.clear()
        played.paid(x, told)
        played.play(2)
        assert tuple(drawn) == wanted, "a turn that learned, and an idle one that draws nothing"


def test_a_service_that_needs_refreshes_has_them_and_goes_on_at_another_pace() -> None:
    long = settings_of(bound=10.0, batch=1, state_bits=20)
    assert long.refresh, "words of 30 bits do not last so long"
    own = Live(long, PARTIES, 9)
    assert Live(replace(long, refresh=3), PARTIES, 9).kept_for() == own.kept_for()
    assert Live(replace(long, refresh=0), PARTIES, 9).kept_for() != own.kept_for(), "it kept no sums"
    assert Live(settings_of(), PARTIES, 9).kept_for()["settings"]["refresh"] is None
