"""Environments from data: digits always, MNIST where its files are, and a user's own tables."""

from __future__ import annotations

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from bandits.data import DataError, load
from bandits.environments import Environment, Task, unit_rows

pytestmark = pytest.mark.needs("sklearn")

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture
def mnist() -> Path:
    if not (SHARED / "mnist").is_dir():
        pytest.skip("MNIST's files are not beside the project")
    return SHARED


def check(environment: Environment, arms: int, dim: int) -> None:
    assert (environment.arms, environment.dim) == (arms, dim)
    assert np.allclose(np.linalg.norm(environment.contexts, axis=1), 1.0)
    assert np.allclose(environment.chances.sum(axis=1), 1.0)
    best = environment.chances.max(axis=1).mean()
    assert best > 2.0 / arms, "the arms tell contexts apart"


def paid(environment: Environment) -> np.ndarray:
    """How many contexts each arm pays for."""
    assert set(np.unique(environment.chances)) == {0.0, 1.0}
    return environment.chances.sum(axis=0)


def test_digits_are_classes() -> None:
    environment = load("digits", arms=10)
    check(environment, 10, 20)
    assert paid(environment).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_digits_by_clusters_have_as_many_arms_as_are_wanted() -> None:
    environment = load("digits", arms=6, task=Task.CLUSTERS)
    check(environment, 6, 20)
    assert 0.0 < environment.chances.min() < environment.chances.max() < 1.0


def test_mnist_is_its_ten_digits_and_its_test_file_is_projected_alike(mnist: Path) -> None:
    environment = load("mnist", arms=10, data=mnist, held_out=True)
    check(environment, 10, 20)
    assert paid(environment).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    others = environment.held_out
    assert others is not None
    check(others, 10, 20)
    assert paid(others).tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    means = [unit_rows(side.chances.T @ side.contexts) for side in (environment, others)]
    assert (means[0] * means[1]).sum(axis=1).min() > 0.95, "a class lies in the same direction in both files"


def test_mnist_by_clusters(mnist: Path) -> None:
    environment = load("mnist", arms=5, data=mnist, task=Task.CLUSTERS)
    check(environment, 5, 20)
    assert len(environment.contexts) == 60_000


def test_an_episode_of_classes_is_the_labels() -> None:
    environment = load("digits", arms=10)
    episode = environment.episode(1797, 3)
    assert (episode.outcomes.sum(axis=1) == 1.0).all()
    assert episode.outcomes.sum(axis=0).tolist() == paid(environment).tolist()


def written(path: Path, columns: Mapping[str, Sequence[object]]) -> str:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    text = "\n".join(lines) + "\n"
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return str(path)


FEATURES = {"age": [20, 40, 60, 30, 50], "pulse": [5e3, 7e3, 6e3, 7e3, 5e3], "same": [1, 1, 1, 1, 1]}


@pytest.mark.parametrize("name", ["own.csv", "own.csv.gz"])
def test_a_table_with_labels_is_classes(name: str, tmp_path: Path) -> None:
    path = written(tmp_path / name, {**FEATURES, "label": ["b", "a", "c", "a", "b"]})
    environment = load(path, arms=3, dim=2)
    assert environment.chances.argmax(axis=1).tolist() == [1, 0, 2, 0, 1]
    assert np.allclose(np.linalg.norm(environment.contexts, axis=1), 1.0)
    other = {**FEATURES, "pulse": [value * 60 for value in FEATURES["pulse"]], "label": ["b", "a", "c", "a", "b"]}
    again = load(written(tmp_path / "other.csv", other), arms=3, dim=2)
    assert np.allclose(environment.contexts, again.contexts), "a column's unit does not matter"
    clusters = load(path, arms=2, dim=2, task=Task.CLUSTERS)
    assert clusters.arms == 2 and clusters.chances.max(axis=1).min() > 0.9


def test_a_table_with_rewards_pays_them(tmp_path: Path) -> None:
    rewards = {"reward0": [0.5, -1, 2, 0, 1], "reward1": [0, 0.25, 0, 0, -3]}
    environment = load(written(tmp_path / "own.csv", {**FEATURES, **rewards}), arms=2, dim=2)
    episode = environment.episode(5, 1)
    assert sorted(map(tuple, episode.outcomes)) == sorted(zip(*rewards.values()))


@pytest.mark.parametrize(
    ("labels", "arms"),
    [
        ([10, 9, 2, "2.0", -1], [3, 2, 1, 1, 0]),
        (["10", "9", "2", "two", "-1"], [1, 3, 2, 4, 0]),
        (["10", "9", "2", "nan", "-1"], [1, 3, 2, 4, 0]),
        (["true", "false", "true", "false", "true"], [1, 0, 1, 0, 1]),
        ([2**60, 2**60 + 1, 9, 9, 9], [0, 1, 2, 2, 2]),
    ],
)
def test_classes_that_are_numbers_are_in_their_order(labels: Sequence[object], arms: list[int], tmp_path: Path) -> None:
    path = written(tmp_path / "own.csv", {**FEATURES, "label": labels})
    environment = load(path, arms=len(set(arms)), dim=2)
    assert environment.chances.argmax(axis=1).tolist() == arms


def test_a_column_that_only_begins_as_a_reward_does_is_a_feature(tmp_path: Path) -> None:
    columns = {"age": [20, 40, 60], "reward_sum": [1, 2, 1], "reward0": [1, 0, 1], "reward1": [0, 1, 0]}
    environment = load(written(tmp_path / "own.csv", columns), arms=2, dim=2)
    assert environment.chances.tolist() == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        ({**FEATURES, "label": list("aabbc")}, {"arms": 2}, "has 3 classes, .* say --arms 3, or --task clusters for 2"),
        (FEATURES, {"arms": 2, "task": Task.CLASSES}, "has no column 'label' with classes: add it, or say --task clus"),
        ({**FEATURES, "reward0": [1] * 5}, {"arms": 2}, "has rewards of 1 arms: say --arms 1"),
        ({**FEATURES, "reward1": [1] * 5, "reward2": [0] * 5}, {"arms": 2}, "'reward1' but no 'reward0': count arms"),
        ({**FEATURES, "reward0": [1] * 5, "reward2": [0] * 5}, {"arms": 1}, "'reward2' but no 'reward1': .* or rename"),
        ({**FEATURES, "reward00": [1] * 5}, {"arms": 2}, "'reward00' but no 'reward0'"),
        ({"label": list("aabbc")}, {"arms": 3}, "no column of features"),
        ({"x": [1, 2], "y": ["1", "nan"]}, {"arms": 1, "dim": 1}, "y of line 3 is NaN or infinite: clean it"),
        ({"x": [1, 2], "y": ["1", "one"]}, {"arms": 1, "dim": 1}, "y of line 3 is no number: 'one'"),
        (FEATURES, {"arms": 2, "dim": 4}, "has 3 dimensions and 5 rows: lower --dim"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_used(
    columns: Mapping[str, Sequence[object]], options: dict[str, object], words: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=words):
        load(written(tmp_path / "own.csv", columns), **{"arms": 10, "dim": 2, **options})


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("nonsense", {}, "digits"),
        ("mnist", {}, "--data"),
        ("mnist", {"data": Path("no-such-folder")}, "train-images"),
        ("digits", {"dim": 65}, "64 dimensions"),
        ("digits", {"arms": 0}, "at least 1 arm"),
        ("digits", {"arms": 4}, "digits has 10 classes, an arm for each: say --arms 10, or --task clusters for 4"),
        ("digits", {"held_out": True}, "digits has no test file to hold out"),
        ("synthetic", {"task": Task.CLUSTERS}, "neither classes nor clusters: leave out --task"),
        ("nowhere.csv", {}, "there is no file nowhere.csv"),
    ],
)
def test_what_cannot_be_loaded(name: str, options: dict[str, object], words: str) -> None:
    with pytest.raises(DataError, match=words):
        load(name, **{"arms": 10, "dim": 20, **options})


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"no image")
    with pytest.raises(DataError, match="sha256"):
        load("mnist", arms=10, data=tmp_path)
