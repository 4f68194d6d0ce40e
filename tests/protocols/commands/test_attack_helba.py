"""`masked attack helba`: everything as published, the arm alone on shares."""

from __future__ import annotations

import pytest

from mpc import exchange, pairs
from mpc.prg import KEY_BYTES, Prg

from ..harness import Output, document, masked, refused

SMALL = "attack helba --steps 40 --runs 1"


def test_what_a_user_finds(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares are fresh in each run, whatever its seed: here their keys have one too, and guesses are the same ones."""
    keys = Prg(bytes(KEY_BYTES))
    for module in (exchange, pairs):
        monkeypatch.setattr(module, "fresh_key", lambda: keys.bytes(KEY_BYTES).tobytes())
    facts = document(capsys, SMALL)
    before, shares, nothing = (facts[head] for head in ("as published", "on shares", "from nothing"))
    assert before["features"] == before["rewards"] == before["arms"] == 1.0 and before["feature_error"] < 1e-9
    assert before["masked"] == 40 and before["masked_whole"] < 4
    assert before["gaps"] > 5 and before["gap_error"] < 0.05
    for blind in (shares, nothing):
        assert blind["gaps"] == 0 and blind["masked"] is None and blind["feature_error"] is None
        assert 0.35 < blind["features"] < 0.65  # of 160 signs, 3.8 deviations
        assert 0.2 < blind["rewards"] < 0.8  # of 40, the same
        assert blind["arms"] < 1.0


def test_as_text(capsys: Output) -> None:
    code, out, _ = masked(capsys, "attack helba --steps 4 --runs 1 --data fresh --arms 3 --parties 3")
    assert code == 0 and "1 runs of 4 steps, 3 arms, d = 2" in out
    assert "as published" in out and "joint: signs of features right" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--arms 1", "at least 1 run, 4 steps and 2 arms"),
        ("--steps 3", "4 steps"),
        ("--runs 0", "1 run"),
        ("--dim 0", "at least 1 dimension"),
        ("--dim 20 --steps 10000 --arms 10", "needs an inverse to"),
        ("--parties 1", "secret sharing needs at least 2 parties"),
    ],
)
def test_a_mistake_is_one_line_with_the_cure(words: str, said: str, capsys: Output) -> None:
    refused(masked(capsys, "attack helba", words), said)
