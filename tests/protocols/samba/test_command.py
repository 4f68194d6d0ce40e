"""`masked run|launch samba` as a user meets it: the document, the text, the files, and mistakes."""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path

import pytest

from bandits.samba import NAMES
from offline import Plan
from protocols.run.folder import reserved
from protocols.run.options import add_problem, planned
from protocols.samba.command import Samba
from protocols.samba.data_arms import arms_of

from ..harness import LIMIT, Output, awaited, document, masked, refused, started

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
CONTRACT = [
    "policy", "mode", "arms", "budget", "cumulative_reward", "reference_cumulative_reward", "pulls_equal_reference",
    "seconds_per_step", "rounds_per_step", "ledger",
]  # fmt: skip

MISTAKES = [
    ("--policy greedy", "there is no policy 'greedy': choose one of epsilon-greedy, epsilon-decreasing, ucb"),
    ("--policy reinforcement-comparison", "breaks score locality: it needs the common reference reward"),
    ("--policy softmax --tau 0", "tau = 0 gives no weights"),
    ("--policy softmax --tau -1", "tau = -1 gives no weights"),
    ("--policy softmax --tau nan", "tau = nan gives no weights"),
    ("--policy softmax --tau 1e-5", "tau lies between 0.001 and 1e+06"),
    ("--policy epsilon-greedy --eps 2", "eps is a probability, 2 is not"),
    ("--policy pursuit --beta nan", "beta is a probability, nan is not"),
    ("--budget 5", "5 pulls"),
    ("--budget 0", "0 pulls"),
    ("--budget many", "invalid int value: 'many'"),
    ("--exploring text", "--exploring is of --mode classic: on shares nobody is told"),
    ("--mode classic --exploring text", "--exploring is of epsilon-greedy and epsilon-decreasing: no step of ucb"),
    ("--means files", "--means is of --data movielens and jester"),
    ("--arms 0", "--arms 0: there must be an arm"),
    ("--arms-file means.txt --arms 3", "--arms-file has its own number of arms: leave out --arms"),
    ("--data jester", "--data jester needs the folder of its ratings: name it with --data-dir"),
    ("--data-dir .", "--data-dir is of --data movielens and jester"),
    ("--data jester --data-dir . --arms-file means.txt", "--arms-file and --data both name arms: leave one out"),
    ("--data jester --data-dir .", "there is no jester1.npz in ."),
    ("--data movielens --data-dir .", "there is no u.data of MovieLens 100K in ."),
    ("--arms-file nowhere.txt", "there is no file nowhere.txt"),
    ("--arms-file .", "there is no file ."),
    ("--arms-file text.txt", "text.txt is no arms file"),
    ("--arms-file empty.txt", "empty.txt is no arms file"),
    ("--arms-file short.txt", "short.txt announces 4 arms and holds 3 means"),
    ("--arms-file large.txt", "arm 1 has mean 1.5: a mean lies in [0, 1]"),
    ("--arms-file nan.txt", "arm 0 has mean nan: a mean lies in [0, 1]"),
    ("--arms-file none.txt", "at least one arm"),
    ("--seed -1", "a seed is a whole number from 0"),
    (f"--seed {1 << 128}", "a seed lies between 0 and 2^128 - 1"),
    ("--parties 1", "secret sharing needs at least 2 parties, not 1"),
    ("--bits 1024", "--bits is of --mode classic: on shares there is no key"),
    ("--mode classic --parties 3", "--parties is of --mode mpc: who takes part in --mode classic is as published"),
    ("--mode paper", "invalid choice: 'paper'"),
    ("--resume --json", "--resume needs the folder of the run's checkpoints"),
    ("--resume --out nowhere", "there is no checkpoint in nowhere"),
    pytest.param(
        "--mode classic --resume --out nowhere", "there is no checkpoint in nowhere", marks=pytest.mark.needs("phe")
    ),
    ("--checkpoint-every 0", "at least 1 pull between checkpoints, not 0"),
    ("--plot curve.txt", "a picture ends in .png, .svg, .pdf, .jpg, not as 'curve.txt' does"),
    ("--out file", "choose a place that can be used"),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with files of arms, good and bad."""
    for name, text in (
        ("means", "4\n0.2\n0.4\n0.6\n0.8\n"), ("one", "1\n0.5\n"), ("text", "no numbers"), ("empty", ""),
        ("short", "4\n0.1\n0.2\n0.3\n"), ("large", "2\n0.5\n1.5\n"), ("nan", "1\nnan\n"), ("none", "0\n"),
    ):  # fmt: skip
        (tmp_path / f"{name}.txt").write_text(text)
    (tmp_path / "file").write_text("a file where a folder is wanted")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("policy", NAMES)
def test_one_document(policy: str, here: Path, capsys: Output) -> None:
    facts = document(capsys, f"run samba --policy {policy} --mode mpc --arms-file means.txt --budget 60 --seed 1")
    assert [key for key in facts if key in CONTRACT] == CONTRACT
    assert (facts["policy"], facts["mode"], facts["arms"], facts["budget"]) == (policy, "mpc", 4, 60)
    assert facts["cumulative_reward"] == facts["reference_cumulative_reward"] > 0
    assert facts["pulls_equal_reference"] is True
    assert facts["seconds_per_step"] > 0 and facts["rounds_per_step"] == (8 if policy == "pursuit" else 4)
    learned = {(row["role"], row["what"], row["count"]) for row in facts["ledger"]}
    each = {(f"owner {owner}", "whether it is pulled", 56) for owner in range(4)}
    moved = {(f"owner {owner}", "whether its score is the largest", 56) for owner in range(4)}
    assert learned == each | {("DC", "cumulative reward", 1)} | (moved if policy == "pursuit" else set())
    assert not (here / "runs").exists(), "with --json alone nothing is written"


def test_the_seed_decides(here: Path, capsys: Output) -> None:
    one, again, other = (document(capsys, f"run samba --budget 80 --seed {seed}") for seed in (3, 3, 4))
    timed = {"seconds_per_step", "offline_seconds_per_step"}
    assert {key: one[key] for key in one.keys() - timed} == {key: again[key] for key in one.keys() - timed}
    assert one["cumulative_reward"] != other["cumulative_reward"]


@pytest.mark.needs("phe")
@pytest.mark.parametrize("policy", ["ucb", "softmax"])
def test_classic_prints_the_same_keys(policy: str, here: Path, capsys: Output) -> None:
    tau = "--tau 0.001" if policy == "softmax" else ""
    words = f"run samba --policy {policy} {tau} --mode classic --bits 1024 --arms-file means.txt --budget 40"
    facts = document(capsys, words)
    assert [key for key in facts if key in CONTRACT] == CONTRACT
    assert (facts["mode"], facts["pulls_equal_reference"], facts["rounds_per_step"]) == ("classic", True, 4)
    assert (
        any(row["role"] == "Comp" and "masked score" in row["what"] for row in facts["ledger"]) or policy == "softmax"
    )
    code, out, err = masked(capsys, words)
    assert code == 0, err
    assert "as published" in out and "those of the plaintext policy" in out and "Comp" in out


def test_run_and_launch_print_the_same_document(here: Path, capsys: Output) -> None:
    """Coins are fresh in a launch, so its game is another; it is still its reference's."""
    run, launched = (document(capsys, f"{how} samba --arms-file means.txt --budget 20") for how in ("run", "launch"))
    assert run.keys() == launched.keys() and (run["hosts"], launched["hosts"]) == (1, 4)
    same = {"policy", "mode", "arms", "budget", "parties", "rounds_per_step", "bytes_per_step_per_party", "ledger"}
    assert {key: run[key] for key in same | {"pulls_equal_reference"}} == {
        key: launched[key] for key in same | {"pulls_equal_reference"}
    }


@pytest.mark.needs("matplotlib")
def test_text_and_files(here: Path, capsys: Output) -> None:
    code, out, err = masked(capsys, "run samba --parties 3 --budget 50 --plot curve.png")
    assert code == 0, err
    assert "ucb: 50 pulls of 10 arms, 3 computing parties: cumulative reward" in out
    assert "every pull, every (s_i, n_i) and the sum are those of the plaintext policy" in out
    said = [" ".join(line.split()) for line in out.splitlines()]
    for line in (
        "each owner 40 x whether it is pulled it pulls its arm", "DC 1 x cumulative reward it pays for the pulls",
        "parties 0 to 2 nothing they hold shares, and open masks", "a step took 4 rounds",
    ):  # fmt: skip
        assert any(text.startswith(line) for text in said), line
    kept = json.loads((here / "runs/samba/result.json").read_text())
    assert kept["options"]["plot"] == "curve.png" and len(kept["ledger"]) == 11
    assert (here / "curve.png").read_bytes().startswith(b"\x89PNG")
    files = sorted(path.name for path in (here / "runs/samba").rglob("*") if path.is_file())
    assert files == ["result.json", "reward.png"]


@pytest.mark.parametrize("words", ["--arms-file one.txt --budget 4", "--arms-file means.txt --budget 4"])
def test_the_smallest_runs(words: str, here: Path, capsys: Output) -> None:
    for policy in NAMES:
        facts = document(capsys, f"run samba --policy {policy} {words}")
        assert facts["pulls_equal_reference"] is True and facts["rounds_per_step"] == 0


@pytest.mark.skipif(not (SHARED / "jester").is_dir(), reason="Jester is not beside the project")
@pytest.mark.parametrize(("means", "best"), [("text", 0.5208), ("files", 0.4961)])
@pytest.mark.usefixtures("here")
def test_items_of_ratings_are_arms_by_either_count(means: str, best: float) -> None:
    parser = argparse.ArgumentParser()
    add_problem(Samba(), parser)
    options = parser.parse_args(["--data", "jester", "--data-dir", str(SHARED), "--means", means, "--arms", "100"])
    arms = arms_of(options)
    assert len(arms) == 100 and arms.means.max() == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize(("words", "arms"), [("", 10), ("--arms 3", 3), ("--arms 1", 1)])
@pytest.mark.usefixtures("here")
def test_built_in_arms_are_as_many_as_one_says(words: str, arms: int, capsys: Output) -> None:
    facts = document(capsys, f"run samba --budget 12 {words}")
    assert facts["arms"] == arms and facts["pulls_equal_reference"] is True


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_a_mistake_is_one_line_with_the_cure(words: str, said: str, here: Path, capsys: Output) -> None:
    refused(masked(capsys, f"run samba {words}"), said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--hosts 11", "10 owners play in 1 to 10 processes, not in 11"),
        ("--tau 0.1", "--tau is of --policy softmax, not of ucb"),
        ("--hosts 0", "10 owners play in 1 to 10 processes, not in 0"),
        ("--mode classic --hosts 2", "--hosts is of --mode mpc: in the published protocol each owner is alone"),
        ("--material nowhere", "there is no store at nowhere/party-0: deal one with 'masked offline deal'"),
        ("--material nowhere --plot curve.png", "--plot draws the reference"),
        ("--timeout 0", "timeout"),
    ],
)
def test_a_broken_launch_says_what_is_wrong(words: str, said: str, here: Path, capsys: Output) -> None:
    refused(masked(capsys, f"launch samba --budget 12 {words}"), said)


def test_help_teaches(capsys: Output) -> None:
    for how in ("run", "launch"):
        code, out, _ = masked(capsys, f"{how} samba --help")
        assert code == 0
        for words in ("0.1, 0.15, ... 0.55", "--resume", "thompson", "Comp decrypts", "--budget N"):
            assert words in out, words


def test_a_plan_is_what_a_step_draws(here: Path, capsys: Output) -> None:
    """From the options of a run; a launch takes its material."""
    parser = argparse.ArgumentParser()
    add_problem(Samba(), parser)
    parser.set_defaults(out="plan.json", seed=0, mode="mpc")
    pairs, twice = (
        planned(Samba(), parser.parse_args(["--arms-file", "means.txt", "--budget", "12", "--policy", name]))
        for name in ("ucb", "pursuit")
    )
    assert 0 < pairs.step_bytes < twice.step_bytes
    game = "--arms-file means.txt --budget 12"
    assert masked(capsys, f"offline plan samba {game} -o plan.json")[0] == 0
    assert Plan.load(here / "plan.json").items == pairs.items
    assert masked(capsys, "offline deal plan.json --steps 8 --out material")[0] == 0
    facts = document(capsys, f"launch samba {game} --material material --hosts 1")
    assert facts["pulls_equal_reference"] is None and facts["reference_cumulative_reward"] is None


@pytest.mark.parametrize(
    ("how", "budget", "kept"),
    [
        ("run samba", 700, "mpc"),
        ("launch samba --hosts 1", 300, "mpc/party-1"),
        pytest.param(
            "run samba --mode classic --bits 1024",
            1500,
            "classic/owners-0-to-3",
            marks=pytest.mark.needs("phe", "gmpy2"),
        ),
    ],
    ids=["run", "launch", "classic"],
)
def test_ctrl_c_and_resume(how: str, budget: int, kept: str, here: Path, capsys: Output) -> None:
    """Stopped by SIGINT in the middle: it says how to go on, and goes on to the reference's pulls."""
    words = f"{how} --arms-file means.txt --budget {budget} --checkpoint-every 20 --out out"
    home = here / "out/checkpoints" / kept
    process = started(*words.split(), cwd=here)
    later = "checkpoint-000000020"  # all kept 20
    awaited(lambda: process.poll() is not None or any(path.stem > later for path in home.glob("checkpoint-*.npz")))
    assert process.poll() is None, process.communicate()
    process.send_signal(signal.SIGINT)
    _, complained = process.communicate(timeout=LIMIT)
    assert process.returncode == 130, complained
    assert "before DC was told anything: go on with --resume and --out out" in complained
    facts = document(capsys, f"{words} --resume")
    assert facts["pulls_equal_reference"] is True
    if facts["mode"] == "mpc":
        assert sum(row["count"] for row in facts["ledger"]) == 4 * (budget - 4) + 1
        assert not home.exists()


@pytest.mark.parametrize("mode", ["mpc", "classic --bits 1024"])
@pytest.mark.parametrize("how", ["run", "launch"])
def test_a_second_command_in_a_folder_is_refused(how: str, mode: str, here: Path, capsys: Output) -> None:
    words = f"{how} samba --budget 20 --arms-file means.txt --out out --mode {mode}"
    with reserved(here / "out/checkpoints"):
        code, out, complained = masked(capsys, words)
    assert code == 2 and not out and complained.count("\n") == 1
    assert complained.startswith(f"error: process {os.getpid()} has a run in out/checkpoints: wait for its end")
