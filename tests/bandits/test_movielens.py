"""MovieLens 100K as a linear bandit, where its file is; and what is refused anywhere."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from bandits.linear_problem import ProblemError
from bandits.movielens import MOVIES, USERS, Factors, factorise, load_ratings, movielens, spectral_movielens

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
needs_data = pytest.mark.skipif(
    not (SHARED / "movielens-100k").is_dir(), reason="MovieLens 100K is not beside the project"
)


@needs_data
def test_ratings_and_their_factors() -> None:
    ratings = load_ratings(SHARED)
    assert ratings.shape == (USERS, MOVIES) and (ratings > 0).sum() == 100_000
    assert np.bincount(ratings[ratings > 0].astype(int)).tolist() == [0, 6110, 11370, 27145, 34174, 21201]
    coarse, fine = factorise(ratings, 1), factorise(ratings, 3)
    assert fine.users.shape == (USERS, 3) and fine.movies.shape == (MOVIES, 3)
    spread = ratings[ratings > 0].std()
    assert fine.error(ratings) < coarse.error(ratings) < spread
    assert np.allclose(fine.users.T @ fine.users, fine.movies.T @ fine.movies)
    assert (factorise(ratings, 3).movies == fine.movies).all()


@needs_data
def test_the_first_movies_for_a_user() -> None:
    problem, other = (movielens(SHARED, dim=3, arms=15, user=user) for user in (0, 7))
    assert problem.arms.shape == (15, 3) and (problem.arms == other.arms).all()
    assert not np.allclose(problem.theta, other.theta)
    expected = problem.arms @ problem.theta
    assert 1.0 < expected.mean() < 5.0
    spectral = spectral_movielens(SHARED, arms=15, user=0, dim=3)
    assert spectral.arms.shape == (15, 15)
    assert np.allclose(spectral.arms @ spectral.theta, expected)
    usual = [spectral_movielens(SHARED, arms=15, **given).theta for given in ({}, {"dim": 10})]
    assert (usual[0] == usual[1]).all()  # as in the paper
    near = [spectral_movielens(SHARED, arms=15, user=0, dim=3, neighbours=count).arms for count in (10, 11)]
    assert (spectral.arms == near[0]).all() and not np.allclose(near[0], near[1])  # 10 as well


@needs_data
@pytest.mark.parametrize(
    "given", [{"arms": 0}, {"arms": MOVIES + 1}, {"user": -1}, {"user": USERS}, {"dim": 0}, {"dim": 2000}]
)
def test_choices_that_are_refused(given: dict[str, int]) -> None:
    with pytest.raises(ProblemError):
        movielens(SHARED, **{"dim": 1, "arms": 3, "user": 0, **given})


def test_an_error_is_over_the_ratings_that_were_given() -> None:
    """1 is one of them, and 0 is none."""
    found = Factors(np.array([[1.0], [2.0]]), np.array([[2.0], [1.0]]))
    assert found.error(np.array([[1.0, 0.0], [0.0, 5.0]])) == pytest.approx(np.sqrt((1.0 + 9.0) / 2.0))


def test_files_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match=r"no u\.data"):
        load_ratings(tmp_path)
    (tmp_path / "u.data").write_text("1\t1\t5\t0\n")
    with pytest.raises(ProblemError, match="sha256"):
        load_ratings(tmp_path)
    (tmp_path / "u.data").unlink()
    (tmp_path / "u.data.gz").write_bytes(gzip.compress(b"1 1 5 0")[:-4])
    with pytest.raises(ProblemError, match="damaged"):
        load_ratings(tmp_path)
    with pytest.raises(ProblemError, match="no rating"):
        factorise(np.array([[1.0, 0.0], [2.0, 0.0]]), 1)
