"""Random sequences of the library's calls pull the arms of a plain ridge regression, and a wrong reference is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mpc.errors import ConfigError
from protocols.bench.library_sequences import Ridge, Sequence, campaign


def test_eight_sequences_pull_the_arms_of_the_reference() -> None:
    found = campaign(8, 40, seed=1)
    assert found.arms > 100 and found.wrong == 0
    assert len(found.calls) == 10, "every kind of call was made"


def test_a_campaign_goes_on_behind_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    campaign(2, 8, seed=1, log=log)
    cut = log.read_text()
    log.write_text(cut + cut[: len(cut) // 4])  # a third was being written
    played: list[int] = []
    play = Sequence.play
    monkeypatch.setattr(Sequence, "play", lambda self, calls: (played.append(calls), play(self, calls))[1])
    assert campaign(3, 8, seed=1, log=log) == campaign(3, 8, seed=1)
    assert len(played) == 1 + 3 and len(log.read_text().splitlines()) == 3
    log.write_text('{"trial": 1}\n')
    with pytest.raises(ConfigError, match="is no log of this campaign"):
        campaign(1, 8, seed=1, log=log)


def test_a_reference_that_learns_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Ridge.learn
    monkeypatch.setattr(Ridge, "learn", lambda self, arm, x, reward: learn(self, arm, np.roll(x, 1), reward))
    assert sum(Sequence(seed, tmp_path / str(seed)).play(40).wrong for seed in range(4)) > 5
