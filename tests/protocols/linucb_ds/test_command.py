"""`masked run|launch linucb-ds` and `spectralucb-ds` as a user meets them: the document, the text, and mistakes."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.linear_problem import LinearProblem
from bandits.oful import Confidence
from bandits.spectral import SpectralConfidence
from mpc.errors import RangeError
from protocols.linucb_ds.command import LinUCBDS, SpectralUCBDS, problem_of
from protocols.linucb_ds.mpc.settings import Settings
from protocols.run.options import add_problem, planned

from .. import harness
from ..harness import Output, refused

FILES = "--arms-file arms.npy --theta theta.npy"
CONTRACT = {
    "mode", "budget", "cumulative_reward", "reference_cumulative_reward", "arms", "seconds_per_step", "operations",
    "ledger",
}  # fmt: skip

MISTAKES = [
    ("--arms 0", "at least 1, 1 and 0"),
    ("--arms-file arms.npy", "--arms-file and --theta go together"),
    ("--arms-file arms.npy --theta theta.npy --data movielens", "--data makes arms and theta itself"),
    ("--data movielens", "name it with --data-dir"),
    ("--data movielens --data-dir nowhere", "there is no u.data of MovieLens 100K in nowhere"),
    ("--data jester", "invalid choice: 'jester'"),
    ("--data-dir nowhere", "--data-dir is of --data movielens: name it, or leave out --data-dir"),
    ("FILES --data-dir nowhere", "--data-dir is of --data movielens"),
    ("FILES --arms 7", "a file has its own; leave them out"),
    ("FILES --dim 9", "a file has its own; leave them out"),
    ("FILES --user 3", "a file has its own; leave them out"),
    ("FILES --bits 1024", "--bits is of --mode classic: on shares there is no key"),
    ("FILES --budget 0", "a budget is at least 1 pull, not 0"),
    ("FILES --budget -3", "a budget is at least 1 pull, not -3"),
    ("FILES --budget many", "invalid int value: 'many'"),
    ("FILES --seed -1", "a seed is a whole number from 0"),
    (f"FILES --seed {1 << 128}", "a seed lies between 0 and 2^128 - 1"),
    ("FILES --parties 1", "at least 2 parties, not 1"),
    ("FILES --gamma 0", "gamma 0 must be positive"),
    ("FILES --gamma nan", "gamma nan must be positive"),
    ("FILES --delta 1", "delta is a probability between 0 and 1"),
    ("FILES --noise -1", "the noise -1 at least 0"),
    ("FILES --noise 1e14", "use a smaller budget, noise"),
    ("FILES --mode paper", "invalid choice: 'paper'"),
    ("FILES --mode classic --hide-arms", "--hide-arms is of --mode mpc"),
    ("FILES --hide-arms --reveal arms", "not allowed with argument"),
    ("--arms-file nowhere.npy --theta theta.npy", "there is no file nowhere.npy"),
    ("--arms-file arms.npy --theta long.npy", "both need the same dimension"),
    ("--arms-file twice.npy --theta theta.npy", "arms 0 and 2 are the same"),
    ("--arms-file nan.npy --theta theta.npy", "holds NaN or infinite values"),
    ("--arms-file huge.npy --theta theta.npy", "divide the arms by a constant"),
    ("--arms-file tiny.npy --theta theta.npy", "scale the arms"),
    ("--arms-file text.npy --theta theta.npy", "text.npy"),
    ("FILES --out file", "choose a place that can be used"),
    pytest.param("FILES --mode classic --cores 0", "--cores is 1 to 64, not 0", marks=pytest.mark.needs("phe")),
    ("FILES --cores 2", "--cores is of --mode classic"),
    ("FILES --mode classic --resume", "--resume is of --mode mpc: keys are never written"),
    ("FILES --resume --json", "name it with --out"),
    ("FILES --resume", "there is no checkpoint in runs/linucb-ds/checkpoints"),
    ("FILES --checkpoint-every 0", "at least 1 pull between checkpoints, not 0"),
    ("FILES --plot curve.txt", "a picture ends in .png"),
    pytest.param(
        "FILES --plot file/curve.png",
        "choose a place that can be used for --plot",
        marks=pytest.mark.needs("matplotlib"),
    ),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with arms and theta, and files that are wrong."""
    rng = np.random.default_rng(0)
    arms, theta = rng.normal(size=(6, 3)), rng.normal(size=3)
    spoilt = arms.copy()
    spoilt[3, 1] = np.nan
    for name, values in (
        ("arms", arms), ("theta", theta), ("long", np.ones(4)), ("twice", arms[[0, 1, 0]]), ("nan", spoilt),
        ("huge", 1e30 * arms), ("tiny", 1e-30 * arms), ("one", arms[:1]),
    ):  # fmt: skip
        np.save(tmp_path / f"{name}.npy", values)
    (tmp_path / "text.npy").write_text("no numbers")
    (tmp_path / "file").write_text("a file where a folder is wanted")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def masked(capsys: Output, words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr; FILES stands for the good ones of `here`."""
    return harness.masked(capsys, words.replace("FILES", FILES))


def document(capsys: Output, words: str) -> dict[str, Any]:
    return harness.document(capsys, words.replace("FILES", FILES))


@pytest.mark.parametrize("program", ["linucb-ds", "spectralucb-ds"])
def test_one_document(program: str, here: Path, capsys: Output) -> None:
    facts = document(capsys, f"run {program} FILES --budget 20 --seed 3")
    assert facts.keys() >= CONTRACT
    assert (facts["program"], facts["mode"], facts["budget"]) == (program, "mpc", 20)
    assert facts["cumulative_reward"] == facts["reference_cumulative_reward"]
    assert len(facts["arms"]) == 20 and set(facts["arms"]) <= set(range(6))
    assert facts["seconds_per_step"] > 0
    operations = facts["operations"]
    assert (operations["rounds"], operations["comparisons"], operations["client_messages"]) == (
        5 * 19 + 4,
        15 * 19 + 1,
        2,
    )
    assert [(row["role"], row["what"], row["count"]) for row in facts["ledger"]] == [
        ("computing parties", "pulled arm", 1), ("computing parties", "noise of a reward", 20),
        ("computing parties", "pulled arm", 19),
        ("DC", "cumulative reward", 1),
    ]  # fmt: skip
    assert document(capsys, f"run {program} FILES --budget 20 --seed 3")["arms"] == facts["arms"]
    assert document(capsys, f"run {program} FILES --budget 20 --seed 4")["arms"] != facts["arms"]


@pytest.mark.parametrize("program", ["linucb-ds", "spectralucb-ds"])
def test_hidden_arms_are_in_no_document(program: str, here: Path, capsys: Output) -> None:
    facts = document(capsys, f"run {program} FILES --budget 12 --hide-arms")
    assert facts.keys() >= CONTRACT
    assert facts["arms"] is None and facts["first_difference"] is None
    assert [row["role"] for row in facts["ledger"]] == ["DC"]
    assert facts["operations"]["truncations"] > 0
    assert facts["reference_cumulative_reward"] == pytest.approx(facts["cumulative_reward"], abs=12.0)


@pytest.mark.needs("phe")
def test_both_modes_pull_the_same_arms(here: Path, capsys: Output) -> None:
    """One seed, one first arm, one noise; keys of 1024 bits."""
    published = document(capsys, "run linucb-ds FILES --budget 12 --mode classic --bits 1024 --cores 2")
    shared = document(capsys, "run linucb-ds FILES --budget 12 --mode mpc --reveal arms")
    assert published.keys() >= CONTRACT
    assert published["arms"] == shared["arms"]
    assert published["cumulative_reward"] == published["reference_cumulative_reward"]
    unit = shared["sum_unit"]
    assert shared["cumulative_reward"] == math.floor(published["cumulative_reward"] / unit + 0.5) * unit
    assert published["operations"]["decryptions"] == 11 * 6 + 2
    assert {row["role"] for row in published["ledger"]} == {"P", "Comp", "DC"}


def test_run_and_launch_print_the_same_document(here: Path, capsys: Output) -> None:
    run, launched = (document(capsys, f"{how} linucb-ds FILES --budget 15") for how in ("run", "launch"))
    assert run.keys() == launched.keys()
    timed = {"seconds_per_step", "offline_seconds_per_step"}
    assert {key: run[key] for key in run.keys() - timed} == {key: launched[key] for key in run.keys() - timed}


@pytest.mark.needs("matplotlib")
def test_text_and_file(here: Path, capsys: Output) -> None:
    code, out, err = masked(capsys, "run linucb-ds FILES --budget 15 --parties 3")
    assert code == 0, err
    assert "15 pulls of 6 arms in 3 dimensions, 3 computing parties: cumulative reward" in out
    assert "the same arms and the same sum as the fixed-point reference" in out
    assert "computing parties  14 x pulled arm" in out and "DC" in out
    kept = json.loads((here / "runs/linucb-ds/result.json").read_text())
    assert len(kept["arms"]) == 15 and kept["options"]["arms_file"] == "arms.npy"
    code, out, _ = masked(capsys, "run linucb-ds FILES --budget 15 --hide-arms --out here")
    assert code == 0 and "computing parties  nothing" in out
    assert sorted(path.name for path in (here / "here").iterdir()) == ["result.json", "reward.png"]


def test_the_smallest_runs(here: Path, capsys: Output) -> None:
    assert document(capsys, "run linucb-ds FILES --budget 1")["operations"]["rounds"] == 4, "that round the sum"
    for hide in ("", "--hide-arms"):
        facts = document(capsys, f"run linucb-ds --arms-file one.npy --theta theta.npy --budget 4 {hide}")
        assert facts["cumulative_reward"] == facts["reference_cumulative_reward"]


def test_the_sum_is_told_to_the_bits_that_are_asked_for(here: Path, capsys: Output) -> None:
    usual, fine = (document(capsys, f"run linucb-ds FILES --budget 12 {bits}") for bits in ("", "--sum-bits 13"))
    assert usual["sum_unit"] == 8 * fine["sum_unit"]
    for facts in (usual, fine):
        assert facts["cumulative_reward"] % facts["sum_unit"] == 0
        assert facts["cumulative_reward"] == facts["reference_cumulative_reward"]
    assert f"to the nearest {usual['sum_unit']:g}" in masked(capsys, "run linucb-ds FILES --budget 12")[1]
    refused(masked(capsys, "run linucb-ds FILES --budget 12 --sum-bits 0"), "told with 1 to")
    refused(masked(capsys, "run linucb-ds FILES --mode classic --sum-bits 9"), "DC decrypts the whole sum")


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_is_one_line_with_the_cure(words: str, said: str, here: Path, capsys: Output) -> None:
    refused(masked(capsys, f"run linucb-ds {words}"), said)


def test_a_broken_launch_says_what_is_wrong(here: Path, capsys: Output) -> None:
    refused(masked(capsys, "launch linucb-ds FILES --budget 5 --material nowhere"), "error: ")


@pytest.mark.parametrize("program", ["linucb-ds", "spectralucb-ds"])
def test_material_is_planned_dealt_and_drawn(program: str, here: Path, capsys: Output) -> None:
    code, out, err = masked(capsys, f"offline plan {program} FILES --budget 12 --hide-arms -o plan.json")
    assert code == 0 and "linucb-ds for 2 parties" in out, err
    assert masked(capsys, "offline deal plan.json --steps 24 --out material")[0] == 0
    facts = document(capsys, f"launch {program} FILES --budget 12 --hide-arms --material material")
    assert facts["reference_cumulative_reward"] is None and facts["arms"] is None
    code, _, complained = masked(capsys, f"launch {program} FILES --budget 12 --material material")
    assert code == 2 and "was dealt for another run" in complained and "--session local --out DIR'" in complained
    for more, said in (
        ("--plot a.png", "--plot draws the reference"),
        ("--mode classic", "draws nothing that is dealt"),
    ):
        code, _, complained = masked(capsys, f"launch {program} FILES --material material {more}")
        assert code == 2 and said in complained


@pytest.mark.needs("matplotlib", "phe")
def test_the_reward_curve_is_drawn_where_it_is_asked_for(here: Path, capsys: Output) -> None:
    for mode in ("--mode mpc", "--mode mpc --hide-arms", "--mode classic --bits 1024"):
        facts = document(capsys, f"run linucb-ds FILES --budget 6 {mode} --plot a/curve.png")
        assert facts["budget"] == 6
        assert (here / "a/curve.png").read_bytes().startswith(b"\x89PNG")
        (here / "a/curve.png").unlink()


def problem(program: LinUCBDS, words: str) -> LinearProblem:
    parser = argparse.ArgumentParser()
    add_problem(program, parser)
    return problem_of(parser.parse_args(words.split()), program.name)


def test_the_papers_constants_are_a_preset() -> None:
    """What is said beside it counts; S and C grow like log t."""
    plain = problem(LinUCBDS(), "--arms 4 --dim 2").exploration
    assert isinstance(plain, Confidence) and (plain.gamma, plain.delta, plain.noise, plain.growing) == (
        1,
        0.01,
        1,
        False,
    )
    paper = problem(LinUCBDS(), "--arms 4 --dim 2 --constants paper --delta 0.5").exploration
    assert isinstance(paper, Confidence)
    assert (paper.gamma, paper.delta, paper.noise, paper.growing) == (0.01, 0.5, 0.01, True)
    for words, printed in (("", False), ("--omega printed", True)):
        spectral = problem(SpectralUCBDS(), f"--arms 4 --dim 2 --constants paper {words}").exploration
        assert isinstance(spectral, SpectralConfidence)
        assert (spectral.gamma, spectral.growing, spectral.printed) == (0.01, True, printed)


@pytest.mark.parametrize(
    "mode", ["mpc", "mpc --hide-arms", pytest.param("classic --bits 1024", marks=pytest.mark.needs("phe"))]
)
def test_a_run_with_the_papers_constants_is_its_references(mode: str, capsys: Output) -> None:
    size = "--arms 5 --dim 2 --budget 8 --constants paper"
    for program in ("linucb-ds", "spectralucb-ds --omega printed"):
        gamma = "--gamma 0.5" if "hide" in mode else ""
        facts = document(capsys, f"run {program} {size} {gamma} --mode {mode}")
        assert facts["cumulative_reward"] == pytest.approx(facts["reference_cumulative_reward"], abs=0.1)


def test_hidden_arms_without_room_name_a_gamma_that_has_some(capsys: Output) -> None:
    """The paper's K = 6 and d = 18; its gamma is 0.01."""
    options = "--arms 6 --dim 18 --constants paper --budget 200"
    refused(harness.masked(capsys, "run", "linucb-ds", *options.split(), "--hide-arms"), "; gamma 0.04 has room")
    Settings.of(problem(LinUCBDS(), f"{options} --gamma 0.04"), 200, hide=True)
    with pytest.raises(RangeError, match=r"gamma 0\.04 has room"):
        Settings.of(problem(LinUCBDS(), f"{options} --gamma 0.02"), 200, hide=True)


def test_a_plan_is_what_a_pull_draws(here: Path) -> None:
    """From the options of a run; hidden arms draw more."""
    parser = argparse.ArgumentParser()
    add_problem(LinUCBDS(), parser)
    parser.set_defaults(out="plan.json", seed=0, mode="mpc")
    given = ["--arms-file", "arms.npy", "--theta", "theta.npy", "--parties", "3"]
    shown, hidden = (planned(LinUCBDS(), parser.parse_args([*given, *more])) for more in ([], ["--hide-arms"]))
    assert (shown.parties, hidden.parties) == (3, 3)
    assert 0 < shown.step_bytes < hidden.step_bytes
