"""`masked attack membership` as a user meets it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from bandits.attacks import Attack, attack_at_checkpoints
from bandits.attacks.advantage import Advantage
from bandits.attacks.game import Row
from bandits.data import load
from bandits.privacy import eta_per_step
from protocols.cli import main
from protocols.commands import attack_membership as attack

from .. import harness
from ..harness import Output, masked, refused

SMALL = ["attack", "membership", "--data", "synthetic", "--arms", "4", "--dim", "5", "--steps", "40",
         "--checkpoints", "2", "--runs", "5"]  # fmt: skip


def document(capsys: Output, *arguments: str) -> dict[str, Any]:
    return harness.document(capsys, *SMALL, *arguments)


def test_the_document_has_the_rows_of_the_attacks(capsys: Output) -> None:
    facts = document(capsys, "--seed", "3")
    rows = facts.pop("rows")
    assert facts == {
        "data": "synthetic", "eps": 0.1, "steps": 40, "checkpoints": 2, "runs": 5, "seed": 3, "arms": 4, "dim": 5,
        "confidence": 0.95, "eta_per_step": eta_per_step(4, 0.1), "respected": True,
    }  # fmt: skip
    environment = load("synthetic", arms=4, dim=5)
    expected = [
        row
        for kind in Attack
        for row in attack_at_checkpoints(environment, kind, eps=0.1, steps=40, checkpoints=2, runs=5, seed=3)
    ]
    assert [(row["attack"], row["knows"], row["step"], row["advantage"]) for row in rows] == [
        (row.attack, row.knows, row.step, row.advantage.value) for row in expected
    ]
    assert all(row["lower"] <= row["advantage"] <= row["upper"] for row in rows)


@pytest.mark.parametrize("name", [kind.value for kind in Attack])
def test_one_attack_is_chosen_by_name(name: str, capsys: Output) -> None:
    main([*SMALL, "--attack", name])
    said = capsys.readouterr().out
    assert [kind.value for kind in Attack if f"\n{kind.value}" in said] == [name]


def test_the_last_of_an_adversary_is_its_own() -> None:
    rows = [
        Row("of one", knows, step, Advantage(0.5, 0.0, 1.0, 0.1, 9, 9))
        for knows in ("arms", "weights")
        for step in (20, 40)
    ]
    report = attack.Report(argparse.Namespace(eps=0.1), 4, 5, rows)
    assert [(report.last(knows).knows, report.last(knows).step) for knows in ("arms", "weights")] == [
        ("arms", 40), ("weights", 40)
    ]  # fmt: skip


def test_the_text_has_a_table_and_what_it_means(capsys: Output) -> None:
    main(SMALL)
    said = capsys.readouterr().out
    for words in ("synthetic, 4 arms, 5 dimensions, exploration 0.1: 5 runs of 40 steps", "TPR at 1 % FPR",
                  "the released weights and matrices", "0 is a guess", "allows 90 %", "respected"):  # fmt: skip
        assert words in said
    main([*SMALL, "--attack", "sequence", "--eps", "0"])
    assert "there is no eta" in capsys.readouterr().out


def test_without_exploration_infinite_ratios_are_null(capsys: Output) -> None:
    facts = document(capsys, "--eps", "0", "--attack", "sequence", "--runs", "20")
    assert facts["eta_per_step"] is None and facts["respected"] is True
    assert any(row["advantage"] > 0.5 and row["largest_log_ratio"] is None for row in facts["rows"])


def test_an_arm_that_tells_more_than_is_stated_fails(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attack, "eta_per_step", lambda arms, eps: eta_per_step(arms, eps) / 2)
    with pytest.raises(SystemExit) as end:
        main([*SMALL, "--attack", "sequence"])
    assert end.value.code == 1
    assert "VIOLATED" in capsys.readouterr().out


@pytest.mark.needs("matplotlib")
def test_a_plot_is_written(tmp_path: Path, capsys: Output) -> None:
    place = tmp_path / "new" / "attacks.png"
    main([*SMALL, "--plot", str(place)])
    assert place.read_bytes().startswith(b"\x89PNG")
    assert f"written: {place}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ("--attack guess", "yeom, shadow, sequence, all"),
        ("--data cats", "choose one of"),
        ("--hold-out test", "--hold-out test is for --attack yeom"),
        ("--hold-out test --attack yeom", "synthetic has no test file to hold out"),
        ("--task shapes", "--task is one of classes, clusters"),
        ("--data mnist", "give the folder"),
        ("--eps 2", "in [0, 1]"),
        ("--steps 0", "a step for each"),
        ("--checkpoints 41", "a step for each"),
        ("--runs 0", "at least 1 run"),
        ("--arms 0", "at least 1 arm"),
        ("--plot a.txt", "ends in .png"),
        ("--seed -1", "whole number"),
    ],
)
def test_a_mistake_is_one_line_with_the_cure(arguments: str, cure: str, capsys: Output) -> None:
    refused(masked(capsys, *SMALL, *arguments.split()), cure)
