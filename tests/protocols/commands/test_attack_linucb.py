"""`masked attack linucb-ds`: everything as published, the same direction with arms shown, chance with arms hidden."""

from __future__ import annotations

import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from protocols.cli import main

from ..harness import Output, document, masked, refused


def test_what_the_attackers_find(capsys: Output) -> None:
    facts = document(capsys, "attack linucb-ds --runs 3 --budget 40 --arms 6")
    published, arms_shown, arms_hidden, nothing = (
        facts[head] for head in ("as published", "arms shown", "arms hidden", "from nothing")
    )
    assert published["comp_arms"]["mean"] == published["comp_places"]["mean"] == 1.0
    assert published["comp_whole_runs"] == 3 and published["comp_reward_error"] < 1e-6
    assert published["comp_theta_error_by_signs"] is None or published["comp_theta_error_by_signs"] < 1e-6
    assert published["p_cosine"]["mean"] > 0.9
    assert arms_shown["p_cosine"]["mean"] == pytest.approx(published["p_cosine"]["mean"], abs=1e-3)
    assert "comp_arms" not in arms_shown, "nobody decrypts a list"
    for blind in (arms_hidden, nothing):
        assert blind["comp_arms"]["mean"] < 0.7 and blind["comp_whole_runs"] == 0
        assert abs(blind["comp_places"]["mean"] - 1 / 6) < 0.1
        assert blind["comp_reward_error"] > 1.0 and blind["comp_theta_error_by_signs"] is None


def test_what_dc_finds(capsys: Output) -> None:
    """The whole sum leaves a few thousand thetas of 2^60, and two of them one; a rounded sum leaves nearly all."""
    facts = document(capsys, "attack linucb-ds --runs 2 --budget 5 --arms 4")
    published = facts["as published"]
    assert published["dc_all"] > 55 and published["dc_one"] < 15 and published["dc_two"] == 0.0
    for shares in (facts["arms shown"], facts["arms hidden"]):
        assert shares["dc_all"] > 55 and shares["dc_two"] <= shares["dc_one"] <= shares["dc_all"]
        assert shares["dc_two"] > shares["dc_all"] - 8.0
    assert "dc_all" not in facts["from nothing"]


def test_as_text_and_on_a_graph(capsys: Output) -> None:
    main(["attack", "spectralucb-ds", "--runs", "2", "--budget", "12", "--arms", "6", "--seed", "4"])
    said = capsys.readouterr().out
    assert "2 runs of 12 pulls, 6 normal arms, d = 3" in said
    assert "as published" in said and "from nothing" in said and "P: cosine with theta" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--arms 3", "at least 4 arms"),
        ("--runs 0", "and 1 run"),
        ("--budget 2", "3 pulls"),
        ("--data-dir nowhere", "there is no u.data of MovieLens 100K in nowhere"),
    ],
)
def test_a_mistake_is_one_line_with_the_cure(words: str, said: str, capsys: Output) -> None:
    refused(masked(capsys, "attack linucb-ds", words), said)
