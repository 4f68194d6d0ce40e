"""A host's side: what it sends, what it refuses, and what it goes on from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bandits.samba import Seeds
from mpc import ConfigError, RangeError
from mpc.errors import Desync
from protocols.samba.mpc.clients import Host, inputs
from protocols.samba.mpc.settings import Settings
from protocols.samba.owners import Holdings, LocalPolicy

from .runs import POLICIES, rising, simulation


def hosted(policy: str, arms: int = 6, **more: Any) -> Host:
    settings = Settings(policy, arms, 100, **more)
    own = Host.of(settings, settings.blocks[-1], inputs(settings.blocks[-1], Seeds.of(3), rising(arms)))
    own.first_pulls()
    return own


def turned(own: Host, t: int, winner: int) -> list[list[int]]:
    """One step in which this owner of all is chosen each time; gives the words of each iteration."""
    said = []
    for iteration in range(1, own.settings.local.iterations + 1):
        said.append(own.words(t, iteration).tolist())
        own.told((own.owners.mine.numbers == winner).astype(np.int64), t, iteration)
    return said


@pytest.mark.parametrize("policy", POLICIES)
def test_words_keep_their_range(policy: str) -> None:
    own = hosted(policy)
    for t in range(7, 60):
        for iteration, words in enumerate(turned(own, t, t % 6), start=1):
            assert min(words) >= 0 and max(words) < 1 << (own.settings.score_bits(iteration) - 1)
        assert own.done == t


@pytest.mark.parametrize("policy", ["thompson", "softmax"])
def test_words_are_drawn_once(policy: str) -> None:
    """Asked again, an owner says the same: noise is not drawn twice."""
    own = hosted(policy)
    first = own.words(7, 1).tolist()
    assert own.words(7, 1).tolist() == first
    own.told(np.zeros(6, np.int64), 7, 1)
    assert own.words(8, 1).tolist() != first


@pytest.mark.parametrize("policy", POLICIES)
def test_a_host_goes_on_where_it_stood(policy: str) -> None:
    """From any moment: also between computing words and hearing the answer."""
    whole, other = hosted(policy, hosts=2), hosted(policy, hosts=2)
    for t in range(7, 30):
        expected = turned(whole, t, t % 6)
        other.words(t, 1)
        fresh = hosted(policy, hosts=2)
        fresh.restore({name: array.copy() for name, array in other.state().items()})
        other = fresh
        assert turned(other, t, t % 6) == expected
        assert other.done == whole.done
    assert other.owners.sums.tolist() == whole.owners.sums.tolist()
    assert other.owners.steps == whole.owners.steps


def test_other_owners_are_not_taken_up() -> None:
    kept = hosted("ucb", hosts=2).state()
    for own in (hosted("ucb", hosts=3), hosted("pursuit", hosts=2), hosted("ucb")):
        with pytest.raises(ConfigError, match="start the run again"):
            own.restore(
                {name: array for name, array in kept.items() if name != "at"} if own.settings.hosts == 1 else kept
            )


@pytest.mark.parametrize(
    ("score", "said"), [(np.nan, "not a number"), (-1.0, "negative"), (np.inf, "too large"), (9.0, "leaves the range")]
)
def test_a_score_that_is_none_names_its_owner(score: float, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a run: the message has the owner and the step, never the score."""
    own = simulation("ucb", 5, 40, hosts=2)
    for _ in range(10):
        own.turn()
    policy = own.player.settings.local
    honest = type(policy).score

    def spoilt(mine: Holdings, t: int, iteration: int) -> np.ndarray:
        scores = honest(policy, mine, t, iteration)
        return np.where(mine.numbers == 3, score, scores) if t == 18 else scores

    monkeypatch.setattr(policy, "score", spoilt)
    with pytest.raises(RangeError, match=rf"^owner 3's score at step 18 .*{said}"):
        for _ in range(10):
            own.turn()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"policy": "greedy"}, "there is no policy 'greedy': choose one of epsilon-greedy"),
        ({"policy": "reinforcement-comparison"}, "breaks score locality"),
        ({"budget": 5}, "a budget of 5 pulls for 6 arms: each arm is pulled once first, so give at least 6"),
        ({"policy": "softmax", "tau": 0.0}, "tau = 0 gives no weights"),
        ({"policy": "softmax", "tau": 1e-4}, "tau lies between"),
        ({"policy": "epsilon-greedy", "eps": 1.5}, "eps is a probability, 1.5 is not"),
        ({"policy": "epsilon-greedy", "eps": float("nan")}, "eps is a probability, nan is not"),
        ({"policy": "pursuit", "beta": -0.1}, "beta is a probability, -0.1 is not"),
        ({"hosts": 0}, "6 owners play in 1 to 6 processes, not in 0"),
        ({"hosts": 7}, "6 owners play in 1 to 6 processes, not in 7"),
    ],
)
def test_settings_that_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Settings(**{"policy": "ucb", "arms": 6, "budget": 20, **given})


@pytest.mark.parametrize("policy", ["ucb", "pursuit"])
@pytest.mark.parametrize("bit", [-1, 2, 1 << 32])
def test_an_answer_that_is_no_bit_names_its_owner(policy: str, bit: int) -> None:
    own = hosted(policy, hosts=2)  # owners 3 to 5
    own.words(7, 1)
    pulls, state = own.owners.pulls.tolist(), own.state()
    with pytest.raises(Desync, match=r"^owner 4 was answered neither 0 nor 1 at step 7"):
        own.told(np.array([1, bit, 0]), 7, 1)
    assert own.owners.pulls.tolist() == pulls and own.owners.steps == hosted(policy, hosts=2).owners.steps
    assert all((state[name] == array).all() for name, array in own.state().items())


def test_a_weight_out_of_its_range_moves_no_other_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Owner 5 does not check what it shares, and so the draw answers others with numbers that are no bits."""
    own = simulation("pursuit", 6, 40, hosts=2)
    for _ in range(10):
        own.turn()
    honest = Host.words

    def spoilt(self: Host, t: int, iteration: int) -> np.ndarray:
        words = honest(self, t, iteration).copy()
        if iteration == 2 and self.owners.mine.numbers[-1] == 5:
            words[-1] = (1 << 61) + 12345
        return words

    monkeypatch.setattr(Host, "words", spoilt)
    with pytest.raises(Desync, match=r"owner \d was answered neither 0 nor 1"):
        for _ in range(24):
            own.turn()


@pytest.mark.parametrize("policy", ["epsilon-greedy", "epsilon-decreasing", "ucb"])
def test_a_step_that_explores_takes_the_same_work(policy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores are computed and discarded; no noise is drawn, as in the reference."""
    own = hosted(policy, eps=0.5)
    local = type(own.settings.local)
    honest, asked, explored = local.score, [], 0

    def counted(self: LocalPolicy, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        asked.append(t)
        return honest(self, mine, t, iteration)

    monkeypatch.setattr(local, "score", counted)
    noise = own.state()["noise"].copy()
    for t in range(7, 60):
        (words,) = turned(own, t, t % 6)
        explored += not any(words)
    assert asked == list(range(7, 60)) and (explored > 5) == (policy != "ucb")
    assert (own.state()["noise"] == noise).all()
