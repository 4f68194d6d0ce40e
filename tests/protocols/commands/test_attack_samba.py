"""`masked attack samba` as a user meets it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from bandits.attacks.samba_comp import ATTACKED, pursuit_mask
from bandits.samba import BernoulliArms
from protocols.cli import main
from protocols.samba.attacks import Game, attack_classic, attack_mpc
from protocols.samba.classic.messages import Spec
from protocols.samba.classic.run import play_classic
from protocols.samba.classic.selecting import Seen

from .. import harness
from ..harness import Output, masked, refused

SMALL = ["attack", "samba", "--arms", "5", "--budget", "80", "--runs", "2"]


def document(capsys: Output, *arguments: str) -> dict[str, Any]:
    return harness.document(capsys, *SMALL, *arguments)


def test_comp_recovers_what_a_party_does_not(capsys: Output) -> None:
    facts = document(capsys)
    classic, mpc = facts.pop("rows")
    assert facts == {"arms": 5, "budget": 80, "eps": 0.1, "tau": 0.06, "beta": 0.1, "seed": 1}
    assert (classic["mode"], classic["fits"], classic["pairs"], classic["before"]) == ("classic", 2, 2, 2)
    assert classic["error"] <= 1 and classic["guesses"] == 0
    assert (mpc["mode"], mpc["fits"], mpc["pairs"], mpc["before"], mpc["total"]) == ("mpc", 0, 0, 0, 0)
    assert mpc["error"] == mpc["blind_error"] > 1  # it guesses as who sees nothing
    assert mpc["guesses"] == 2 * 38


@pytest.mark.parametrize("policy", ATTACKED)
def test_every_policy_whose_lists_give_it_away(policy: str) -> None:
    game = Game(Spec(policy), BernoulliArms(_means(6)), 150, 4)
    found = attack_classic(game)
    assert found.fits and found.before and found.total is not None and abs(found.total - found.true_total) <= 1
    shares = attack_mpc(game)
    assert not shares.fits and shares.guesses is not None and shares.guesses.steps == 72


def test_the_sum_of_a_list_that_pursuit_really_sends_is_its_mask() -> None:
    """Divided by it, the list's weights are p: positive, together 1."""
    seen: list[Seen] = []
    play_classic("pursuit", _means(6), 60, seed=1, seen=seen, bits=1024, reference=False)
    second = [[int(value) for value in one.values] for one in seen if one.iteration == 2]
    masks = [pursuit_mask(values) for values in second]
    assert len(second) == 54 and None not in masks and len(set(masks)) == 54
    for values, mask in zip(second, masks):
        assert mask is not None
        words = [value // mask for value in values]
        assert min(words) > 0 and abs(sum(words) - (1 << 40)) <= 6


def test_the_table_says_what_it_means(capsys: Output, tmp_path: Path) -> None:
    (tmp_path / "means.txt").write_text("3\n0.1\n0.5\n0.9\n")
    main([*SMALL, "--arms-file", str(tmp_path / "means.txt"), "--policy", "pursuit"])
    said = capsys.readouterr().out
    for words in ("3 arms, 80 pulls, 2 games", "every (s, n)", "2 of 2", "0 of 2", "any of 3"):
        assert words in said


def test_all_policies_in_one_mode(capsys: Output) -> None:
    rows = document(capsys, "--policy", "all", "--mode", "mpc", "--budget", "20", "--runs", "1")["rows"]
    assert [(row["policy"], row["mode"], row["fits"]) for row in rows] == [(policy, "mpc", 0) for policy in ATTACKED]


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ("--policy thompson", "pursuit, all, not 'thompson'"),
        ("--mode shares", "choose from"),
        ("--arms 0", "at least 1 of each"),
        ("--runs 0", "at least 1 of each"),
        ("--budget 4", "give at least 5"),
        ("--budget 5", "leave nothing to attack, as each is pulled once first: give --budget 7 or more"),
        ("--budget 6", "give --budget 7 or more"),
        ("--eps 2 --policy epsilon-greedy", "choose one in [0, 1]"),
        ("--tau 0 --policy softmax", "tau"),
        ("--tau 0.5", "--tau is of --policy softmax, not of ucb: leave it out"),
        ("--arms-file nowhere.txt", "there is no file"),
        ("--seed 4294967296", "choose a smaller one"),
        ("--seed -1", "whole number"),
    ],
)
def test_a_mistake_is_one_line_with_the_cure(arguments: str, cure: str, capsys: Output) -> None:
    refused(masked(capsys, *SMALL, arguments), cure)


def _means(count: int) -> np.ndarray:
    return np.linspace(0.15, 0.85, count)
