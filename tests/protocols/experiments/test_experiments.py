"""One loop for every policy, and a grid that is resumed, tabulated and drawn."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bandits.environments import Environment, synthetic_linear
from bandits.helba import HELBA, Constants
from bandits.linear import LinearBandit
from bandits.linucb import LinUCB
from bandits.samba import by_name
from mpc.errors import ConfigError
from protocols.experiments import POLICIES, PROBLEMS, Experiment, evaluate, experiments, grid, make, plot_regret
from protocols.helba import EncryptedLinearBandit
from protocols.helba import Settings as HelbaSettings
from protocols.ppcb import PrivateContextualBandit

WORLD = synthetic_linear(3, 4, rows=300, seed=2)


@pytest.mark.parametrize("name", [name for name in POLICIES if not name.startswith("published")])
def test_every_policy_is_played_by_one_loop(name: str) -> None:
    steps = 12 if name == "private helba" else 20 if name.startswith("private") else 30
    world = PROBLEMS["linucb-ds"](3, 4) if name.endswith("-ds") else WORLD
    found = evaluate(make(name, world, steps=steps, seed=3), world, steps=steps, seed=3)
    assert found.arms.shape == found.rewards.shape == (steps,) and set(found.arms) <= {0, 1, 2}
    episode = world.episode(steps, 3)
    assert (found.rewards == episode.outcomes[np.arange(steps), found.arms]).all()
    lost = episode.means.max(axis=1) - episode.means[np.arange(steps), found.arms]
    assert np.allclose(found.regret, lost.cumsum()) and (np.diff(found.regret) >= 0).all()
    assert found.best == pytest.approx(episode.means.max(axis=1).mean())


def test_a_private_bandit_earns_what_its_twin_earns() -> None:
    """Without exploration there are no coins but those of ties, and the first ties are all there are."""
    private = PrivateContextualBandit(arms=["a", "b", "c"], dim=4, eps=0.0, parties=2, steps=60, seed=1)
    found = evaluate(private, WORLD, steps=60, seed=1, batch=4)
    assert private.learned == 60 and found.average_reward > 0.4
    twin = private.twin()
    episode, at = WORLD.episode(60, 1), np.arange(60)
    for rows in np.split(at, 15):
        scores = twin.predictions(episode.contexts[None, rows])[0]
        behind = scores.max(axis=1) - scores[np.arange(4), found.arms[rows]]
        assert behind.max() < 2.0**-7, "it pulls what its regressions say"
        twin.update(episode.contexts[None, rows], found.arms[None, rows], found.rewards[None, rows])


def test_regret_is_of_what_arms_pay_on_average() -> None:
    certain = Environment("certain", np.ones((2, 1)), np.array([[0.25, 1.0], [0.25, 1.0]]), drawn=False)

    class First:
        def choose(self, contexts: np.ndarray) -> np.ndarray:
            return np.zeros(len(contexts), int)

        def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
            assert (rewards == 0.25).all()

    found = evaluate(First(), certain, steps=4)
    assert found.regret.tolist() == [0.75, 1.5, 2.25, 3.0] and repr(found).endswith("regret=3.00)")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: evaluate(object(), WORLD, steps=3), "object cannot be played"),
        (lambda: evaluate(LinearBandit(1, 3, 4), WORLD, steps=0), "steps is a whole number from 1 on, not 0"),
        (lambda: evaluate("uniform", WORLD, steps=3.0), "steps is a whole number from 1 on, not 3.0"),  # type: ignore[arg-type]
        (lambda: evaluate("uniform", WORLD, steps=3, seed=-1), "seed is a whole number from 0 on, not -1"),
        (lambda: evaluate("uniform", WORLD, steps=3, batch=0), "batch is a whole number from 1 on, not 0"),
        (lambda: evaluate(make("helba", WORLD, steps=9, seed=0), WORLD, steps=9, batch=3), "play it with batch=1"),
        (lambda: make("ucb", WORLD, steps=9, seed=0), "there is no policy 'ucb': choose one of private epsilon-greedy"),
        (lambda: experiments([], "nowhere"), "no experiment to make"),
        (lambda: experiments(grid(["nobody"]), "nowhere"), "there is no policy 'nobody'"),
        (lambda: grid(["uniform"], steps=0), "steps is a whole number from 1 on, not 0"),
        (lambda: grid(["uniform"], seeds=[1, -1]), "seed is a whole number from 0 on, not -1"),
        (lambda: grid(["uniform"], seeds=[0.5]), "seed is a whole number"),  # type: ignore[list-item]
        (lambda: grid(["uniform"], seeds=3), r"seeds are given as a list, as \[3\], not as 3"),  # type: ignore[arg-type]
        (lambda: grid("uniform"), r"policies are given as a list, as \['uniform'\]"),
        (lambda: grid(["uniform"], eps=2.0), "eps is a chance from 0 to 1, not 2.0"),
        (lambda: grid(["uniform"], eps=-0.1), "eps is a chance from 0 to 1"),
        (lambda: grid(["uniform"], eps=float("nan")), "eps is a chance from 0 to 1"),
        pytest.param(
            lambda: plot_regret("nowhere/results.csv", "nowhere/a.png"),
            "there is no table",
            marks=pytest.mark.needs("matplotlib"),
        ),
    ],
)
def test_what_cannot_be_played_is_refused(call: object, words: str) -> None:
    assert callable(call)
    with pytest.raises(ConfigError, match=words):
        call()
    assert not Path("nowhere").exists()


class Pulls:
    """Always this arm."""

    def __init__(self, arm: int) -> None:
        self.arm = arm

    def choose(self, contexts: np.ndarray) -> np.ndarray:
        return np.full(len(contexts), self.arm)

    def paid(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        raise AssertionError("it is paid for an arm that there is not")


USERS = HelbaSettings(Constants(dim=12, norm=1.0), 2, 9)


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        (LinUCB(1, 2, 4), "has 2 arms, and synthetic pays 3: make one for these"),
        (LinUCB(1, 5, 4), "has 5 arms, and synthetic pays 3"),
        (LinUCB(1, 3, 5), "contexts of 5 features, and those of synthetic have 4: make one for these"),
        (LinUCB(2, 3, 4), "1 replica, not by 2"),
        (by_name("ucb", 4), "has 4 arms, and synthetic pays 3"),
        (HELBA(Constants(dim=5)), "contexts of 15 features, and those of synthetic have 4"),
        (HELBA(Constants(dim=9)), "contexts of 3 or 27 features, and those of synthetic have 4"),
        (EncryptedLinearBandit(USERS, parties=2), "has 2 arms, and synthetic pays 3"),
        (make("uniform", synthetic_linear(4, 4, rows=9), steps=9, seed=0), "has 4 arms, and synthetic pays 3"),
        (make("linucb-ds", PROBLEMS["linucb-ds"](4, 5), steps=9, seed=0), "has 4 arms, and synthetic pays 3"),
        (Pulls(3), "chose arm 3 of 3, counted from 0"),
        (Pulls(-1), "chose arm -1 of 3, counted from 0"),
    ],
)
def test_a_policy_of_other_arms_than_the_environment_is_refused(policy: object, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        evaluate(policy, WORLD, steps=9)


@pytest.mark.parametrize(
    ("arms", "dim", "removed", "words"),
    [
        (4, 4, None, "has 4 arms, and synthetic pays 3"),
        (3, 5, None, "contexts of 5 features, and those of synthetic have 4"),
        (3, 4, 1, "has 2 arms, and synthetic pays 3"),
        (4, 4, 1, "pays arms 0 to 2, and the policy has arm 2 in place of 1: make one of which none was rem"),
    ],
)
def test_a_private_bandit_of_other_arms_is_refused_before_it_decides(
    arms: int, dim: int, removed: int | None, words: str
) -> None:
    private = PrivateContextualBandit(n_arms=arms, dim=dim, parties=2, steps=9, seed=1)
    if removed is not None:
        private.remove_arm(removed)
    with pytest.raises(ConfigError, match=words):
        evaluate(private, WORLD, steps=9)
    assert private.unpaid == () and private.learned == 0


def test_names_are_places_among_the_arms_that_there_are() -> None:
    private = PrivateContextualBandit(arms=["a", "b", "c", "d"], dim=4, parties=2, steps=9, seed=1)
    private.remove_arm("b")
    assert len(evaluate(private, WORLD, steps=9, batch=9).arms) == private.learned == 9


def test_a_grid_is_made_kept_and_drawn(tmp_path: Path) -> None:
    cells = grid(["uniform", "linucb"], seeds=range(3), arms=3, dim=4, steps=40)
    made: list[tuple[int, int]] = []
    path = experiments(cells[:4], tmp_path, jobs=1, progress=lambda done, of: made.append((done, of)))
    assert made == [(1, 4), (2, 4), (3, 4), (4, 4)]
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("experiments/*.csv")}
    experiments(cells, tmp_path, jobs=1, progress=lambda done, of: made.append((done, of)))
    assert made[4:] == [(1, 2), (2, 2)], "what was there is not made again"
    assert {file: file.stat().st_mtime_ns for file in before} == before
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6 * 40 and {row["policy"] for row in rows} == {"uniform", "linucb"}
    assert {row["seed"] for row in rows} == {"0", "1", "2"}
    last = {
        name: [float(row["regret"]) for row in rows if row["policy"] == name and row["step"] == "40"]
        for name in ("uniform", "linucb")
    }
    assert np.mean(last["linucb"]) < np.mean(last["uniform"])


@pytest.mark.needs("sklearn")
def test_experiments_on_a_file_that_changed_are_made_anew(tmp_path: Path) -> None:
    own, made = tmp_path / "own.csv", []

    def played() -> str:
        cells = grid(["linucb"], environments=[str(own)], seeds=[0], arms=2, dim=1, steps=4)
        return experiments(cells, tmp_path, jobs=1, progress=lambda done, of: made.append(done)).read_text()

    own.write_text("x,reward0,reward1\n1,0,1\n2,0,1\n")
    before = played()
    assert played() == before and made == [1]
    own.write_text("x,reward0,reward1\n1,0,0\n2,0,0\n")
    assert played() != before and made == [1, 1]


def test_the_key_of_what_is_no_file_stays() -> None:
    """Else what was kept by earlier versions would be made once more."""
    assert [Experiment("linucb", place).key for place in ("synthetic", "nowhere.csv")] == [
        "12c848bbc1d75608c46a",
        "f0ccedff0352079ae35e",
    ]


def test_numbers_of_numpy_are_numbers() -> None:
    """With the keys of Python's own."""
    cells = grid(["uniform"], seeds=np.arange(2), arms=np.int64(3), eps=np.float32(0.5))  # type: ignore[arg-type]
    assert cells == grid(["uniform"], seeds=range(2), arms=3, eps=0.5)
    assert [cell.key for cell in cells] == [cell.key for cell in grid(["uniform"], seeds=range(2), arms=3, eps=0.5)]


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize(
    "text",
    ["", "a,b\n1,2\n", "policy,environment,step,regret\n", "policy,environment,step,regret\nuniform,digits,1\n",
     "policy,environment,step,regret\nuniform,digits,one,0\n", "\xff\0"],
)  # fmt: skip
def test_another_table_is_not_drawn(text: str, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"other\.csv is no table that `experiments` made: give its results\.csv"):
        plot_regret(tmp_path / "other.csv", tmp_path / "regret.png")
    assert not (tmp_path / "regret.png").exists()


def test_cores_and_pictures(tmp_path: Path) -> None:
    """The same table by processes of joblib."""
    pytest.importorskip("joblib")
    pytest.importorskip("matplotlib")
    cells = grid(["uniform", "epsilon-greedy"], seeds=range(2), arms=2, dim=3, steps=20)
    alone, together = (experiments(cells, tmp_path / str(jobs), jobs=jobs).read_text() for jobs in (1, 2))
    assert alone == together and alone.count("\n") == 1 + 4 * 20
    plot_regret(tmp_path / "2" / "results.csv", tmp_path / "regret.png")
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.needs("matplotlib")
def test_a_line_is_of_one_kind_and_says_what_differs(tmp_path: Path) -> None:
    """Text of an SVG is drawn, and stands beside as a comment."""
    alike = grid(["uniform", "linucb"], seeds=range(2), arms=2, dim=3, steps=4)
    others = [replace(alike[2], eps=0.5), replace(alike[2], eps=0.5, arms=3)]
    told = []
    for cells in (alike, alike + others):
        plot_regret(experiments(cells, tmp_path, jobs=1), tmp_path / "regret.svg")
        told.append(re.findall("<!-- ([ul][^>]*) -->", (tmp_path / "regret.svg").read_text()))
    kinds = ["arms 2, eps 0.1", "arms 2, eps 0.5", "arms 3, eps 0.5"]
    assert told == [["uniform", "linucb"], ["uniform", *(f"linucb, {kind}" for kind in kinds)]]
