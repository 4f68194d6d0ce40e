"""Random sequences of the library's calls pull the arms of a plain ridge regression, and a wrong reference is found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from protocols.bench.library_sequences import Ridge, Sequence, campaign


def test_eight_sequences_pull_the_arms_of_the_reference() -> None:
    found = campaign(8, 40, seed=1)
    assert found.arms > 100 and found.wrong == 0
    assert len(found.calls) == 10, "every kind of call was made"


def test_a_reference_that_learns_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn = Ridge.learn
    monkeypatch.setattr(Ridge, "learn", lambda self, arm, x, reward: learn(self, arm, np.roll(x, 1), reward))
    assert sum(Sequence(seed, tmp_path / str(seed)).play(40).wrong for seed in range(4)) > 5
