"""Systems that play an episode whole, behind the same `evaluate`: what `masked run` of the same seed pulls and pays."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.environments import Environment, Episodic, synthetic_linear
from bandits.helba import Constants
from bandits.samba import NAMES
from mpc.errors import ConfigError
from protocols.experiments import (
    POLICIES,
    PROBLEMS,
    Evaluated,
    FixedArms,
    OwnersArms,
    UsersFeatures,
    evaluate,
    experiments,
    grid,
)
from tests.protocols.harness import Output, document, masked

STEPS, SEED = 24, 3
SAMBA, LINEAR = (PROBLEMS[name](4, 5) for name in ("samba", "linucb-ds"))
SPECTRAL = PROBLEMS["spectralucb-ds"](18, 5)
"""So many nodes that not all are neighbours: where they are, those that were not pulled yet are alike, and rounding
decides between them."""
HELBA = UsersFeatures(Constants(), 3)
WORLD = synthetic_linear(3, 4)  # as `--data synthetic` has it


def checked(found: Evaluated, world: Episodic, seed: int = SEED) -> Evaluated:
    """Rewards and regret are those of the arms, in the world's own episode."""
    episode, at = world.episode(len(found.arms), seed), np.arange(len(found.arms))
    assert (found.rewards == episode.outcomes[at, found.arms]).all()
    lost = episode.means.max(axis=1) - episode.means[at, found.arms]
    assert np.allclose(found.regret, lost.cumsum())
    low, high = world.ends
    assert (low <= episode.outcomes).all() and (episode.outcomes <= high).all()
    return found


def run(name: str, world: Episodic, how: str = "run", steps: int = STEPS) -> Evaluated:
    return checked(evaluate(name, world, steps=steps, seed=SEED, how=how), world)


def agree(name: str, found: Evaluated) -> None:
    """What each system says of itself."""
    if "samba" in name:
        game = found.run.game
        paid = np.bincount(found.arms, found.rewards, minlength=len(game.sums))
        assert found.run.equal and found.run.total == found.rewards.sum() and (game.sums == paid).all()
    elif "helba" in name:
        assert found.run.first_difference is None and found.run.regret == pytest.approx(found.regret[-1])
    elif "ucb-ds" in name:
        assert found.run.difference is None and found.rewards.tolist() == found.run.reference.rewards
        assert abs(found.rewards.sum() - found.run.cumulative_reward) <= found.run.settings.unit / 2
    else:
        assert found.run.rewards[:, 0].tolist() == found.rewards.tolist()
        assert all(each.gap < 2.0**-12 for each in found.run.differences), "its twin's arms, but for near ties"


@pytest.mark.parametrize("policy", ["ucb", "thompson", "epsilon-greedy"])
def test_samba_pulls_and_pays_as_masked_run_does(policy: str, capsys: Output) -> None:
    found = run(f"private samba {policy}", SAMBA, steps=40)
    agree("samba", found)
    own = OwnersArms.of(np.linspace(0.1, 0.55, 4))
    assert (evaluate(f"private samba {policy}", own, steps=40, seed=SEED).arms == found.arms).all()
    said = document(capsys, f"run samba --policy {policy} --arms 4 --budget 40 --seed {SEED}")
    assert said["cumulative_reward"] == found.rewards.sum() and said["pulls_equal_reference"]
    assert said["rounds_per_step"] == found.run.ended.played.rounds / 36


@pytest.mark.parametrize(("name", "world"), [("linucb-ds", LINEAR), ("spectralucb-ds", SPECTRAL)])
def test_linucb_pulls_and_pays_as_masked_run_does(name: str, world: FixedArms, capsys: Output) -> None:
    found = run(f"private {name}", world)
    agree(name, found)
    said = document(capsys, f"run {name} --arms {world.arms} --dim 5 --budget {STEPS} --seed {SEED}")
    given = world.problem
    if name == "linucb-ds":
        own = FixedArms.of(given.arms, given.theta)
        assert (evaluate(f"private {name}", own, steps=STEPS, seed=SEED).arms == found.arms).all()
    assert said["arms"] == found.arms.tolist() and said["cumulative_reward"] == found.run.cumulative_reward
    assert run(name, world, how="steps").arms.tolist() == said["arms"], "in the clear as well: there were no ties"


def test_helba_pulls_and_pays_as_masked_run_does(capsys: Output) -> None:
    found = run("private helba", HELBA)
    agree("helba", found)
    said = document(capsys, f"run helba --arms 3 --steps {STEPS} --seed {SEED}")
    assert said["regret"] == pytest.approx(found.regret[-1]) and said["arms_equal_twin"]
    for name in ("helba", "private helba"):
        assert (run(name, HELBA, how="steps").arms == found.arms).all(), "arm by arm as well"


def test_the_contextual_bandit_pulls_and_pays_as_masked_run_does(tmp_path: Path, capsys: Output) -> None:
    found = run("private epsilon-greedy", WORLD)
    agree("ppcb", found)
    words = f"run ppcb --data synthetic --arms 3 --dim 4 --parties 2 --steps {STEPS} --seed {SEED} --out {tmp_path}"
    assert masked(capsys, words)[0] == 0
    kept = np.load(tmp_path / "steps.npz")
    assert kept["arms"][:, 0].tolist() == found.arms.tolist()
    assert kept["rewards"][:, 0].tolist() == found.rewards.tolist()


@pytest.mark.parametrize(
    ("name", "world"),
    [
        ("private samba ucb", SAMBA), ("private linucb-ds", LINEAR), ("private helba", HELBA),
        ("private epsilon-greedy", WORLD),
    ],
)  # fmt: skip
def test_a_process_for_each_role_is_paid_by_the_same_episode(name: str, world: Episodic) -> None:
    """Ties and exploration have other coins there, which a dealer draws; each system's reference has them too."""
    found = run(name, world, how="launch", steps=16)
    agree(name, found)
    if "samba" not in name and "greedy" not in name:
        assert (found.arms == run(name, world, steps=16).arms).all()


@pytest.mark.needs("phe", "gmpy2")
@pytest.mark.parametrize(
    ("name", "world", "how"),
    [("samba thompson", SAMBA, "run"), ("samba ucb", SAMBA, "launch"), ("linucb-ds", LINEAR, "run")],
)
def test_published_protocols_are_paid_by_the_same_episode(name: str, world: Episodic, how: str) -> None:
    """With keys of the usual size; each pulls what its reference in the clear pulls with its coins."""
    found = run(f"published {name}", world, how=how, steps=8)
    if "samba" in name:
        assert found.run.pulls_equal_reference and found.run.cumulative_reward == found.rewards.sum()
    else:
        assert found.run.exact and found.run.cumulative_reward == pytest.approx(found.rewards.sum(), abs=1e-6)
        assert (found.arms == run(name, world, how="steps", steps=8).arms).all()


@pytest.mark.needs("seal")
def test_helba_as_published_pulls_as_on_shares() -> None:
    users = UsersFeatures(Constants(), 2)
    found = run("published helba", users, steps=2)
    assert (found.arms == run("private helba", users, steps=2).arms).all()
    assert found.run.regret == pytest.approx(found.regret[-1])


def test_samba_on_shares_plays_any_rewards_of_0_and_1() -> None:
    """A table of contexts, which it does not look at."""
    found = run("private samba pursuit", WORLD)
    agree("samba", found)
    clear = Environment("real", np.ones((2, 1)), np.array([[0.25, 1.0], [0.25, 1.0]]), drawn=False)
    with pytest.raises(ConfigError, match="arm 0 pays no 0 or 1 at step 1: SAMBA is for such rewards"):
        evaluate("private samba ucb", clear, steps=4, how="run")


def test_batches_are_of_the_contextual_bandit() -> None:
    found = checked(evaluate("private linucb", WORLD, steps=16, seed=SEED, batch=4, how="run"), WORLD)
    assert found.run.settings.batch == 4


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: evaluate("private linucb-ds", WORLD, steps=9), "play it on the environment 'linucb-ds' or"),
        (lambda: evaluate("linucb-ds", SAMBA, steps=9), "linucb-ds knows its arms by features that never change"),
        (lambda: evaluate("private samba ucb", SAMBA, steps=9, how="steps"), "there is 'run' and 'launch'"),
        (lambda: evaluate("uniform", SAMBA, steps=9, how="launch"), "uniform is not played by 'launch': there is 's"),
        (lambda: evaluate("uniform", SAMBA, steps=9, how="fly"), "how is one of steps, run, launch, not 'fly'"),
        (lambda: evaluate("nobody", SAMBA, steps=9), "there is no policy 'nobody'"),
        (lambda: OwnersArms.of([0.5, 1.5]), "arm 1 has mean 1.5: a mean lies in"),
        (lambda: FixedArms.of(np.eye(2), np.ones(3)), "both need the same dimension"),
        (lambda: evaluate(object(), SAMBA, steps=9, how="run"), "how='run' is of policies by name"),
        (lambda: evaluate("private helba", HELBA, steps=9, batch=3, how="run"), "HELBA .* play it with batch=1, not 3"),
        (lambda: evaluate("private samba ucb", SAMBA, steps=3), "a budget of 3 pulls for 4 arms"),
        (lambda: evaluate("published samba ucb", WORLD, steps=9), "play it on the environment 'samba'"),
        (lambda: experiments(grid(["uniform"], how="run"), "nowhere"), "uniform is not played by 'run'"),
    ],
)
def test_what_cannot_be_played_so_is_refused(call: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        call()
    assert not Path("nowhere").exists()


def test_one_table_of_all_systems(tmp_path: Path) -> None:
    """In process and launched; what is there is not made again."""
    small = {"seeds": range(1), "arms": 3, "dim": 2, "steps": 12}
    cells = [
        *grid(["private samba ucb", "samba ucb", "uniform", "private epsilon-greedy"], environments=["samba"], **small),
        *grid(["private linucb-ds", "linucb-ds", "linucb"], environments=["linucb-ds"], **small),
        *grid(["private helba", "helba"], environments=["helba"], **small),
        *grid(["private helba"], environments=["helba"], how="launch", **small),
    ]
    with experiments(cells, tmp_path, jobs=1).open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 12 * len(cells)
    ends = {(row["policy"], row["how"]): row["average_reward"] for row in rows if row["step"] == "12"}
    assert ends["private linucb-ds", "run"] == ends["linucb-ds", "steps"]
    assert ends["private helba", "steps"] == ends["private helba", "launch"] == ends["helba", "steps"]
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("experiments/*.csv")}
    assert len(kept) == len(cells)
    experiments(cells, tmp_path, jobs=1)
    assert {path: path.stat().st_mtime_ns for path in kept} == kept


def test_every_name_says_how_it_is_played() -> None:
    whole = {name for name, found in POLICIES.items() if found.whole}
    assert whole >= {*(f"private samba {name}" for name in NAMES), "private linucb-ds", "private helba"}
    assert all(found.ways for found in POLICIES.values())
