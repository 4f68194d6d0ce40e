"""Arms that pay 0 or 1, their files, and their means from ratings, where these are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.samba import BernoulliArms, SambaError, Seeds, load_arms, save_arms
from bandits.samba.environments import (
    JESTER_SMALL,
    jester_best,
    jester_means,
    load_jester,
    movielens_best,
    movielens_means,
)
from tests.oracles import stats

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
PUBLISHED = SHARED / "samba-arms"
needs_movielens = pytest.mark.skipif(
    not (SHARED / "movielens-100k").is_dir(), reason="MovieLens 100K is not beside the project"
)
needs_jester = pytest.mark.skipif(not (SHARED / "jester").is_dir(), reason="Jester is not beside the project")
needs_published = pytest.mark.skipif(not PUBLISHED.is_dir(), reason="SAMBA's arm files are not beside the project")
SEED = Seeds.of(1).rewards


# ---- rewards


def test_rewards_are_as_frequent_as_the_mean() -> None:
    arms = BernoulliArms(np.array([0.0, 0.03, 0.5, 1.0]))
    sums = [sum(arms.reward(SEED, arm, t) for t in range(4000)) for arm in range(4)]
    assert sums[0] == 0 and sums[3] == 4000
    assert all(stats.binomtest(sums[arm], 4000, arms.means[arm]).pvalue > 1e-6 for arm in (1, 2))


def test_a_reward_depends_on_seed_arm_and_step_alone() -> None:
    arms = BernoulliArms(np.full(3, 0.5))
    rows = {(seed, arm): [arms.reward(seed, arm, t) for t in range(60)] for seed in (SEED, bytes(32)) for arm in (0, 1)}
    assert len({tuple(row) for row in rows.values()}) == 4
    assert [arms.reward(SEED, 1, t) for t in reversed(range(60))] == rows[SEED, 1][::-1]


def test_a_better_arm_pays_whenever_a_worse_one_would() -> None:
    low, high = BernoulliArms(np.array([0.3])), BernoulliArms(np.array([0.6]))
    assert all(low.reward(SEED, 0, t) <= high.reward(SEED, 0, t) for t in range(300))


@pytest.mark.parametrize(
    ("means", "says"),
    [
        ([0.1, float("nan")], "arm 1 has mean nan"),
        ([-0.1, 2.0], "arm 0 has mean -0.1"),
        ([0.5, 1.0000001], "arm 1"),
        ([], "at least one arm"),
        ([[0.1, 0.2]], "shape"),
    ],
)
def test_means_that_are_refused(means: list[float], says: str) -> None:
    with pytest.raises(SambaError, match=says):
        BernoulliArms(np.array(means))


# ---- files


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=30))
def test_a_file_keeps_every_bit(tmp_path_factory: pytest.TempPathFactory, means: list[float]) -> None:
    path = tmp_path_factory.mktemp("arms") / "means.txt"
    save_arms(path, BernoulliArms(np.array(means)))
    assert load_arms(path).means.tolist() == means


@pytest.mark.parametrize("text", ["2\n0.25\n1\n", "2 0.25 1e0", "\n 2\r\n0.25\t1."])
def test_a_file_is_free_in_its_spaces(tmp_path: Path, text: str) -> None:
    (tmp_path / "means.txt").write_text(text)
    assert load_arms(tmp_path / "means.txt").means.tolist() == [0.25, 1.0]


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is no arms file"),
        (b"two\n0.1\n0.2\n", "write the number of arms"),
        (b"2\n0.1\nmuch\n", "write the number of arms"),
        (b"2.0\n0.1\n0.2\n", "write the number of arms"),
        (b"3\n0.1\n0.2\n", "announces 3 arms and holds 2"),
        (b"1\n0.1\n0.2\n", "correct its first line"),
        (b"-1\n0.1\n", "announces -1"),
        (b"0\n", "at least one arm"),
        (b"2\n0.1\n1.5\n", "arm 1 has mean 1.5"),
        (b"2\n0.1\nnan\n", "arm 1 has mean nan"),
        (b"2\n0.1\ninf\n", "arm 1 has mean inf"),
        (b"\xff\xfe2\x00", "is no arms file"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "means.txt").write_bytes(content)
    with pytest.raises(SambaError, match=says) as error:
        load_arms(tmp_path / "means.txt")
    assert "means.txt" in str(error.value) and "\n" not in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.txt"):
        with pytest.raises(SambaError, match="there is no file"):
            load_arms(path)


# ---- ratings


@needs_published
@needs_movielens
def test_movielens_is_as_published() -> None:
    assert (movielens_means(SHARED).means == load_arms(PUBLISHED / "MovieLens.txt").means).all()
    assert movielens_means(SHARED, 7).means.tolist() == movielens_means(SHARED).means[:7].tolist()
    assert movielens_means(SHARED, threshold=1).means[0] == pytest.approx(452 / 943)  # who rated Toy Story at all


@needs_published
@needs_jester
@pytest.mark.parametrize(
    ("name", "items", "threshold"),
    [
        ("JesterLarge", range(1, 101), 4.5),
        ("JesterSmall", JESTER_SMALL, 3.5),
        ("JesterLarge_secure-ucb", range(1, 101), 7),
    ],
)
def test_jester_is_as_published(name: str, items: range | tuple[int, ...], threshold: float) -> None:
    assert (jester_means(SHARED, items, threshold).means == load_arms(PUBLISHED / f"{name}.txt").means).all()


@needs_movielens
def test_the_best_movies() -> None:
    ten, hundred = movielens_best(SHARED, 10).means, movielens_best(SHARED).means
    assert (np.diff(hundred) <= 0).all() and (hundred[:10] == ten).all()
    assert hundred[-1] > movielens_means(SHARED).means.max()  # of those who rated, not of all users


@needs_jester
def test_the_best_jokes() -> None:
    ratings = load_jester(SHARED)
    assert ratings.shape == (24983, 100) and np.nanmean(ratings) == pytest.approx(0.8797593643586833)
    received = np.array([(joke[~np.isnan(joke)] >= 4.5).mean() for joke in ratings.T])
    assert jester_best(SHARED, 10).means.tolist() == sorted(received, reverse=True)[:10]


@needs_movielens
@needs_jester
def test_choices_that_are_refused() -> None:
    for arms in (0, 1683):
        with pytest.raises(SambaError, match="there are 1 to 1682"):
            movielens_means(SHARED, arms)
    with pytest.raises(SambaError, match="there are 1 to 100"):
        jester_best(SHARED, 101)
    for items in ((), (0,), (5, 101)):
        with pytest.raises(SambaError, match="numbered from 1 to 100"):
            jester_means(SHARED, items)


def test_folders_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SambaError, match=r"no u\.data"):
        movielens_means(tmp_path)
    with pytest.raises(SambaError, match="ratings_x100"):
        jester_means(tmp_path)
    (tmp_path / "jester1.npz").write_bytes(b"PK nothing")
    with pytest.raises(SambaError, match="damaged"):
        jester_means(tmp_path)
    np.savez(tmp_path / "jester1.npz", other=np.zeros(3))
    with pytest.raises(SambaError, match="ratings_x100"):
        jester_means(tmp_path)
    np.savez(tmp_path / "jester1.npz", ratings_x100=np.zeros((3, 100), np.int16))
    with pytest.raises(SambaError, match="1,810,455 ratings"):
        jester_means(tmp_path)
