"""`masked run ppcb` as a user meets it: its mistakes, its files, Ctrl-C and going on."""

from __future__ import annotations

import errno
import json
import math
import os
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.environments import Environment, synthetic_linear
from bandits.privacy import eta_per_step
from protocols.ppcb import command as contextual
from protocols.ppcb import data_options, report
from protocols.ppcb.run import Run
from protocols.ppcb.settings import Settings
from protocols.run.checkpoint import checkpoints

from ..harness import LIMIT, awaited, document, masked, refused, started
from .commands import SMALL

Output = pytest.CaptureFixture[str]

MISTAKES: list[tuple[str, str]] = [
    ("--alpha 2", "--alpha is of --policy linucb and thompson"),
    ("--data digits --data-dir .", "--data digits needs no files: leave out --data-dir"),
    ("--steps 0", "at least 1 step, not 0"),
    ("--steps -3", "at least 1 step, not -3"),
    ("--steps many", "invalid int value: 'many'"),
    ("--seed -1", "a seed is a whole number from 0, not '-1'"),
    ("--replicas 0", "0 replicas"),
    ("--arms 0", "0 arms"),
    ("--dim 0", "0 features"),
    ("--dim 1", "2 owners of 1 features: each owns at least one"),
    ("--parties 1", "at least 2 parties, not 1"),
    ("--parties 9", "9 owners of 8 features"),
    ("--eps 1.5", "probability in [0, 1], not 1.5"),
    ("--eps nan", "probability in [0, 1], not nan"),
    ("--eps often", "invalid float value: 'often'"),
    ("--policy best", "--policy is one of epsilon-greedy, linucb, thompson, not 'best'"),
    ("--policy linucb --alpha -1", "alpha -1 must be positive"),
    ("--policy linucb --alpha nan", "alpha nan must be positive"),
    ("--policy linucb --alpha 1e12", "bits of 6"),
    ("--policy linucb --truncation published", "linucb takes roots by exact truncation"),
    ("--batch 4 --reciprocal newton", "a batch is learned from by the inverse of a matrix: leave them out"),
    ("--batch 4 --newton 3", "a batch is learned from by the inverse of a matrix: leave them out"),
    ("--variant published --tie-bits 8", "--tie-bits is of the recast"),
    ("--ridge 0", "ridge 0, bound 1 and alpha 1 must be positive"),
    ("--ridge 1e-12", "or a larger ridge"),
    ("--bound 0", "bound 0 and alpha 1 must be positive"),
    ("--bound 0.25", "declared is 0.25: scale it or declare more"),
    ("--owners 8", "--owners 8 has 1 block and there are 2 parties: say --parties 1, or give 2 blocks"),
    ("--owners 4,4.0", "--owners takes 2 whole numbers with commas between them, not '4,4.0'"),
    ("--owners 4,5", "blocks of 4, 5 features, for 2 owners of 8: name a number for each owner, 0 where it has none"),
    ("--owners 9,-1", "which add up to 8"),
    ("--reward-range 1", "--reward-range takes 2 numbers with commas between them, not '1'"),
    ("--reward-range 1,-1", "rewards lie between two numbers, the lower first, not between 1 and -1"),
    ("--reward-range -1,-0.5", "declared is -1 to -0.5: scale rewards, or declare more with --reward-range"),
    ("--batch 0", "batches of 0"),
    ("--batch 3", "10 steps are no whole number of batches of 3: play 12"),
    ("--delay -1", "counts from 0"),
    ("--variant new", "--variant is one of recast, published, not 'new'"),
    ("--variant published --batch 2", "the published variant is epsilon-greedy"),
    ("--variant published --state-bits 24", "one number of fraction bits"),
    ("--variant published --argmax pairs", "Algorithm 1 as published has its own argmax, in two passes"),
    ("--variant published --reciprocal newton", "and its own reciprocal, of --newton iterations; leave them out"),
    ("--delay 10", "rewards that are 10 decisions late never come in a run of 10: more --steps, or a smaller --delay"),
    ("--delay 5 --batch 2", "rewards that are 5 decisions late never come in a run of 5"),
    ("--material here", "--material is for parties in processes of their own: use 'masked launch ppcb'"),
    ("--timeout 60", "--timeout is for parties in processes of their own"),
    ("--session local", "--session is for parties in processes of their own"),
    ("--steps 60000 --replicas 1000000", "60,000 steps of 1,000,000 replicas take about 23,040.1 GB of memory"),
    ("--reciprocal exact", "--reciprocal is one of table, table+newton, newton, not 'exact'"),
    ("--reciprocal newton --fraction-bits 24", "use at most 22, or division 'table+newton'"),
    ("--newton -1", "counts from 0"),
    ("--argmax sort", "--argmax is one of pairs, strings, circuit, tournament, not 'sort'"),
    ("--truncation none", "--truncation is one of exact, published, not 'none'"),
    ("--fraction-bits 1", "from 10 to 30"),
    ("--fraction-bits 40", "from 10 to 30"),
    ("--state-bits 10", "for the state at least as many"),
    ("--state-bits 38", "use fewer state_bits"),
    ("--state-bits 0", "20 fraction bits and 0 of the state"),
    ("--refresh -1", "counts from 0"),
    ("--checkpoint-every 0", "at least 1 decision between checkpoints, not 0"),
    ("--resume", "--resume needs the folder of the run's checkpoints: name it with --out"),
    ("--resume --out nowhere", "there is no checkpoint in nowhere/checkpoints: the run reached its end, or never"),
    ("--out file", "choose a place that can be used"),
    ("--plot file/x.png", "choose a place that can be used"),
    ("--plot curve.xyz", "a picture ends in .png, .svg, .pdf, .jpg, not as 'curve.xyz' does: rename it in --plot"),
    ("--data nonsense", "there is no data set 'nonsense': choose one of digits, mnist, synthetic"),
    ("--data mnist", "give the folder that holds its files with --data"),
    ("--data mnist --data-dir nowhere", "there is no train-images-idx3-ubyte.gz in nowhere"),
    ("--task rewards", "--task is one of classes, clusters, not 'rewards'"),
    ("--task classes", "synthetic data has neither classes nor clusters: leave out --task"),
    ("--data file --task clusters", "digits, mnist, synthetic, or a file named .csv"),
    ("--data none.csv", "there is no file none.csv: give a CSV"),
    ("--data none.csv --data-dir .", "--data none.csv needs no files: leave out --data-dir"),
]  # fmt: skip


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory with a file in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("a file where a folder is wanted")
    return tmp_path


@pytest.mark.parametrize(("options", "words"), MISTAKES, ids=[options for options, _ in MISTAKES])
def test_a_mistake_is_one_line_with_its_cure(options: str, words: str, here: Path, capsys: Output) -> None:
    refused(masked(capsys, "run", "ppcb", *SMALL, "--steps", "10", "--json", *options.split()), words)
    assert [path.name for path in here.iterdir()] == ["file"]


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--data digits", "digits has 10 classes, an arm for each: say --arms 10, or --task clusters for 4"),
        ("--data digits --dim 65", "digits has 64 dimensions and 1797 rows: lower --dim or --arms"),
    ],
)
def test_a_mistake_about_digits_is_one_line_with_its_cure(
    options: str, words: str, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contextual, "_LONG", 300.0)  # where loading takes long, as on a busy machine, a line says so
    refused(masked(capsys, "run", "ppcb", *SMALL, "--steps", "10", "--json", *options.split()), words)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--timeout 0", "a timeout is a positive number of seconds, not 0"),
        ("--timeout nan", "a timeout is a positive number of seconds, not nan"),
        ("--bound 0.25", "declared is 0.25: scale it or declare more"),
        ("--batch 3", "10 steps are no whole number of batches of 3"),
        ("--resume --out nowhere", "run without --resume"),
        ("--out file", "choose a place that can be used"),
        ("--steps 60000 --replicas 1000000", "are free: about"),
    ],
    ids=str,
)
@pytest.mark.usefixtures("here")
def test_a_mistake_of_a_launch_is_one_line_too(options: str, words: str, capsys: Output) -> None:
    refused(masked(capsys, "launch", "ppcb", *SMALL, "--steps", "10", "--json", *options.split()), words)


def test_the_cure_of_a_missing_checkpoint_names_the_folder_that_was_given(here: Path, capsys: Output) -> None:
    _, _, err = masked(capsys, "run", "ppcb", *SMALL, "--steps", "10", "--resume", "--out", str(here / "mine"))
    assert err.endswith(f"--out {here / 'mine'}\n")


def test_json_alone_writes_nothing(here: Path, capsys: Output) -> None:
    facts = document(capsys, "run", "ppcb", *SMALL, "--steps", "10")
    assert [path.name for path in here.iterdir()] == ["file"]
    assert facts["steps"] == 10 and facts["eta_per_step"] == pytest.approx(eta_per_step(4, 0.2))


@pytest.mark.needs("matplotlib")
def test_files_are_written_where_they_were_wanted(here: Path, capsys: Output) -> None:
    out, picture = here / "new" / "run", here / "pictures" / "curve.png"
    options = ("--steps", "20", "--replicas", "2", "--seed", "5", "--out", str(out), "--plot", str(picture))
    facts = document(capsys, "run", "ppcb", *SMALL, *options)
    assert {path.name for path in out.iterdir()} == {"result.json", "steps.npz", "reward.png", "checkpoints"}
    result = json.loads((out / "result.json").read_text())
    assert facts.items() <= result.items()
    assert result.keys() - facts.keys() == {"data", "settings", "meter", "versions", "differences", "options"}
    assert result["data"] == "synthetic" and result["meter"]["rounds"] == 240 and result["differences"] == []
    given = Settings.from_json(result["settings"])
    assert (given.arms, given.dim, given.eps, given.replicas) == (4, 8, 0.2, 2)
    assert {"python", "masked-bandits", "numpy", "torch"} <= result["versions"].keys()
    with np.load(out / "steps.npz") as steps:
        assert set(steps.files) == {"arms", "rewards", "twin_arms", "twin_rewards"}
        assert steps["arms"].shape == steps["rewards"].shape == (20, 2)
        assert steps["rewards"].mean() == result["average_reward"]
    for path in (out / "reward.png", picture):
        assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert picture.read_bytes() == (out / "reward.png").read_bytes()


@pytest.mark.needs("matplotlib")
def test_without_json_it_writes_below_runs_and_says_so(here: Path, capsys: Output) -> None:
    code, out, err = masked(capsys, "run", "ppcb", *SMALL, "--steps", "12")
    assert code == 0, err
    for words in (
        "12 steps, 4 arms, 2 parties: average reward", "same arms as its plaintext twin at every step",
        "a step took 12 rounds", "who learned what", "12 x arm", "2.833-differentially private",
        "written: runs/ppcb/result.json", "reward curve: runs/ppcb/reward.png",
    ):  # fmt: skip
        assert words in out, words
    assert (here / "runs" / "ppcb" / "steps.npz").is_file()


@pytest.mark.needs("matplotlib")
def test_the_result_is_printed_before_it_is_drawn(here: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up takes the picture, not what an hour of computing found."""

    def full(run: Run, path: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(report, "reward_curve", full)
    code, out, err = masked(capsys, "run", "ppcb", *SMALL, "--steps", "10", "--out", str(here / "run"))
    assert code == 2 and "10 steps, 4 arms, 2 parties: average reward" in out and "who learned what" in out
    assert "reward.png cannot be written (No space left on device): the result is printed" in err
    assert "Traceback" not in err
    assert (here / "run" / "result.json").is_file() and (here / "run" / "steps.npz").is_file()


@pytest.mark.needs("sklearn")
def test_a_data_set_that_takes_long_to_load_is_named(
    here: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(name: str, **size: Any) -> Environment:
        time.sleep(1.0)
        return synthetic_linear(size["arms"], size["dim"])

    how = ("run", "ppcb", *SMALL, "--steps", "10", "--json")
    assert "loading" not in masked(capsys, *how)[2]
    monkeypatch.setattr(contextual, "_LONG", 0.05)
    monkeypatch.setattr(data_options, "load", slow)
    assert masked(capsys, *how, "--data", "digits")[2].startswith("loading digits: ")


@pytest.mark.needs("sklearn")
@pytest.mark.parametrize(("task", "arms", "least"), [("classes", 10, 0.2), ("clusters", 5, 0.3)])
@pytest.mark.usefixtures("here")
def test_digits_are_told_apart_by_class_or_by_cluster(task: str, arms: int, least: float, capsys: Output) -> None:
    how = ("--parties", "2", "--dim", "12", "--eps", "0.05", "--replicas", "2", "--steps", "200")
    facts = document(capsys, "run", "ppcb", "--task", task, "--arms", str(arms), *how)
    assert facts["arms"] == arms and facts["average_reward"] > least
    assert facts["average_reward"] == facts["twin_average_reward"]


@pytest.mark.needs("sklearn")
def test_a_table_of_ones_own_is_learned_from(here: Path, capsys: Output) -> None:
    """Which of three corners a point lies near to is its label."""
    corners = 4.0 * np.eye(3)[np.arange(90) % 3] + np.random.default_rng(1).normal(size=(90, 3))
    rows = [f"{x},{y},{z},{'abc'[k % 3]}" for k, (x, y, z) in enumerate(corners)]
    (here / "own.csv").write_text("\n".join(["x,y,z,label", *rows]) + "\n")
    how = ("--data", "own.csv", "--arms", "3", "--dim", "2", "--parties", "2", "--steps", "150")
    facts = document(capsys, "run", "ppcb", *how)
    assert facts["average_reward"] == facts["twin_average_reward"] > 0.6


@pytest.mark.parametrize(
    ("options", "facts"),
    [
        ("--owners 8,0", {"rounds_per_step": 12.0, "first_difference": None}),
        ("--owners 0,5,3 --parties 3 --reward-range -1,1", {"parties": 3, "first_difference": None}),
        ("--batch 5", {"rounds_per_step": 25 / 5, "client_hops_per_step": 2 / 5}),
        ("--delay 2 --argmax tournament", {"rounds_per_step": 11.0}),
        ("--policy thompson --eps 0", {"rounds_per_step": 21.0, "eta_per_step": None, "eps": 0.0}),
        ("--newton 2", {"rounds_per_step": 21.0}),
        ("--reciprocal newton", {"rounds_per_step": 69.0}),
        ("--state-bits 28", {"first_difference": None}),
        ("--variant published", {"rounds_per_step": 78.0}),
        ("--replicas 3", {"replicas": 3, "rounds_per_step": 12.0}),
    ],
    ids=str,
)
@pytest.mark.usefixtures("here")
def test_options_reach_the_protocol(options: str, facts: dict[str, Any], capsys: Output) -> None:
    found = document(capsys, "run", "ppcb", *SMALL, "--steps", "10", *options.split())
    assert facts.items() <= found.items()


@pytest.mark.usefixtures("here")
def test_the_same_seed_is_the_same_run(capsys: Output) -> None:
    first, second, other = (
        document(capsys, "run", "ppcb", *SMALL, "--steps", "40", "--seed", seed) for seed in ("3", "3", "4")
    )
    timed = {"seconds_per_step", "offline_seconds_per_step"}
    assert {k: v for k, v in first.items() if k not in timed} == {k: v for k, v in second.items() if k not in timed}
    assert other["average_reward"] != first["average_reward"]
    assert not math.isclose(first["seconds_per_step"], 0.0)


@pytest.mark.needs("matplotlib")
def test_ctrl_c_keeps_what_was_reached_and_resume_goes_on(here: Path, capsys: Output) -> None:
    """The resumed run is that which was never stopped: same arms, and what they cost."""
    how = ("run", "ppcb", *SMALL, "--steps", "400", "--seed", "6", "--checkpoint-every", "20")
    process = started(*how, "--out", "stopped", cwd=here)
    awaited(lambda: checkpoints(here / "stopped" / "checkpoints"))
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=LIMIT)
    assert process.returncode == 130 and "Traceback" not in complained
    reached = json.loads((here / "stopped" / "result.json").read_text())["steps"]
    assert 20 <= reached < 400
    assert f"stopped at step {reached} of 400: go on with --resume and --out stopped" in complained
    assert f"{reached} steps, 4 arms" in said
    assert (here / "stopped" / "reward.png").stat().st_size > 1000

    for name, more in (("stopped", ("--resume",)), ("whole", ())):
        code, _, err = masked(capsys, *how, "--out", name, *more)
        assert code == 0, err
    with np.load(here / "stopped" / "steps.npz") as stopped, np.load(here / "whole" / "steps.npz") as whole:
        for column in ("arms", "rewards", "twin_arms"):
            assert (stopped[column] == whole[column]).all()
        assert len(whole["arms"]) == 400
    results = [json.loads((here / name / "result.json").read_text()) for name in ("stopped", "whole")]
    for name in ("ledger", "average_reward", "rounds_per_step", "bytes_per_step_per_party", "offline_bytes_per_step"):
        assert results[0][name] == results[1][name], name
