"""`--engine crypten`: Algorithm 1 by CrypTen's parties, beside ours, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ..harness import document, masked, refused
from .commands import SMALL

STEPS = 4


@pytest.mark.needs("torch", "sklearn")
def test_crypten_pulls_the_arms_of_our_twin(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Owners of 5, 0 and 3 features, some steps that explore; the ledger has what CrypTen opens to all."""
    bandit = (*SMALL[:-4], "--parties", "3", "--owners", "5,0,3", "--eps", "0.3", "--reward-range", "-1,1")
    facts = document(capsys, "run ppcb --engine crypten", *bandit, "--steps", str(STEPS), "--out", str(tmp_path))
    theirs = facts["crypten"]
    assert facts["engine"] == "crypten" and theirs["first_difference"] is facts["first_difference"] is None
    assert theirs["average_reward"] == facts["average_reward"] == facts["twin_average_reward"]
    assert theirs["rounds_per_step"] > 10 * facts["rounds_per_step"] > 0 < theirs["seconds_per_step"]
    learned = {(entry["role"], entry["what"]): entry["count"] for entry in theirs["ledger"]}
    assert learned["party 0", "arm"] == learned["party 0", "reward"] == learned["party 0", "coin"] == STEPS
    masked_words = learned["everyone", "masked word"] + learned["party 0", "masked word"]
    assert learned["party 0", "mask"] == masked_words > 1000 * STEPS
    with np.load(tmp_path / "steps.npz") as kept:
        assert (kept["rewards"] == kept["crypten_rewards"]).all()
    assert (tmp_path / "reward.png").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--variant published", "leave out --variant and --tie-bits 0"),
        ("--tie-bits 0", "leave out --variant and --tie-bits 0"),
        ("--batch 4", "plays Algorithm 1 as published: epsilon-greedy, context by context; leave out --policy"),
        ("--policy linucb", "plays Algorithm 1 as published"),
        ("--replicas 2", "plays Algorithm 1 as published"),
        ("--fraction-bits 24", "at most 22"),
        ("--resume --out {}", "--engine crypten keeps nothing to go on from: leave out --resume"),
    ],
)
def test_what_crypten_does_not_play_is_refused(
    options: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    refused(masked(capsys, "run ppcb --engine crypten", *SMALL, options.format(tmp_path)), words)


def test_without_crypten_the_cure_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mpc.interop.crypten.__file__", str(tmp_path / "mpc" / "interop" / "crypten.py"))
    refused(masked(capsys, "run ppcb --engine crypten", *SMALL), "CrypTen is not here: run scripts/setup_crypten")
