"""Recorded logs: what is read back, what is refused, and estimators against truths that are known."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from bandits.environments import synthetic_linear
from bandits.estimators import ips, replay_average, snips
from bandits.linear import Choice, LinearBandit
from bandits.logs import LogError, RecordedLog, open_bandit, read_log, replay, weights_of, write_log

ENVIRONMENT = synthetic_linear(5, 6, rows=2000, seed=4)


def logged(rows: int, chances: list[float], seed: int) -> RecordedLog:
    rng, episode = np.random.default_rng(seed), ENVIRONMENT.episode(rows, seed)
    arms = rng.choice(5, rows, p=chances)
    return RecordedLog(episode.contexts, arms, episode.outcomes[np.arange(rows), arms], np.array(chances)[arms])


UNIFORM, SKEWED = [0.2] * 5, [0.4, 0.3, 0.15, 0.1, 0.05]


@pytest.mark.parametrize("name", ["log.csv", "log.npz"])
@pytest.mark.parametrize("propensities", [True, False])
def test_a_log_is_read_as_it_was_written(name: str, propensities: bool, tmp_path: Path) -> None:
    log = logged(30, SKEWED, 1)
    if not propensities:
        log = RecordedLog(log.contexts, log.arms, log.rewards)
    write_log(log, tmp_path / name)
    back = read_log(tmp_path / name)
    assert (
        (back.contexts == log.contexts).all() and (back.arms == log.arms).all() and (back.rewards == log.rewards).all()
    )
    if log.propensities is None:
        assert back.propensities is None
    else:
        assert (back.propensities == log.propensities).all()
    assert back.arms.dtype == np.int64 and back.uniform(5) is not propensities


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no rows"),
        ("x0,arm,reward\n", "no rows"),
        ("x0,arm\n1,2\n", "no column 'reward'"),
        ("x1,arm,reward\n1,2,1\n", "no column 'x0'"),
        ("x0,x2,arm,reward\n1,2,1,1\n", "column 'x2' is none of"),
        ("x0,arm,reward,arm\n1,2,1,1\n", "twice"),
        ("x0,arm,reward\n1,2,1\n1,2\n", "line 3 has 2 values for 3 columns"),
        ("x0,arm,reward\n1,2,1\n1,a,1\n", "arm of line 3 is no number: 'a'"),
        ("x0,arm,reward\n1,2.5,1\n", "arm of row 0 is no whole number"),
        ("x0,arm,reward\n1,-1,1\n", "whole numbers from 0"),
        ("x0,arm,reward\n1,1,1\nnan,1,1\n", "contexts of row 1 hold NaN"),
        ("x0,arm,reward\n1,1,1\n1,1,-1e200\n", "rewards of row 1 hold NaN, or values beyond 1e[+]100"),
        ("x0,arm,reward,propensity\n1,1,1,1\n1,1,1,0\n", "row 1 .counted from 0. has 0: propensities are the chances"),
        ("x0,arm,reward\n1,1,1\nnan,1,1\n2,1,1\nnan,1,1\n", "contexts of row 1 hold NaN"),
        ("x0,arm,reward,propensity\n1,1,1,0\n", "above 0 and at most 1"),
        ("x0,arm,reward,propensity\n1,1,1,5e-324\n", "has 4.94066e-324: .* none below 8.7e-19"),
    ],
)
def test_a_table_that_is_no_log_is_refused_by_name(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text(text)
    with pytest.raises(LogError, match=rf"log\.csv.*{words}"):
        read_log(path)


def _archive(path: Path, **arrays: np.ndarray) -> None:
    np.savez(path, **arrays)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda path: path.write_bytes(b"PK\x03\x04 nothing"), "damaged"),
        (lambda path: _archive(path, contexts=np.zeros((2, 3)), arms=np.zeros(2)), "no array 'rewards'"),
        (
            lambda path: _archive(path, contexts=np.zeros((2, 3)), arms=np.array(["a", "b"]), rewards=np.zeros(2)),
            "arms are no numbers",
        ),
        (
            lambda path: _archive(path, contexts=np.zeros((2, 3)), arms=np.zeros(3), rewards=np.zeros(2)),
            "one for each of 2",
        ),
        (
            lambda path: _archive(path, contexts=np.zeros(3), arms=np.zeros(3), rewards=np.zeros(3)),
            r"\(rows, features\)",
        ),
    ],
)
def test_an_archive_that_is_no_log_is_refused(write: Callable[[Path], object], words: str, tmp_path: Path) -> None:
    write(tmp_path / "log.npz")
    with pytest.raises(LogError, match=words):
        read_log(tmp_path / "log.npz")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("x")
    with pytest.raises(LogError, match="neither"):
        read_log(tmp_path / "log.txt")
    with pytest.raises(LogError, match="no file"):
        read_log(tmp_path / "none.csv")


def test_replay_of_a_fixed_policy_is_fair() -> None:
    """All estimators within 4 standard errors of the chances' own average, and not beyond all reason precise."""
    policy = LinearBandit(1, 5, 6)
    policy.weights[:] = np.random.default_rng(3).normal(size=(1, 5, 6))
    best = policy.predictions(ENVIRONMENT.contexts[None])[0].argmax(axis=1)
    truth = ENVIRONMENT.chances[np.arange(2000), best].mean()
    for chances in (UNIFORM, SKEWED):
        log = logged(4000, chances, 5)
        chosen = policy.predictions(log.contexts[None])[0].argmax(axis=1)
        weights = weights_of(log, chosen)
        estimates = [ips(log.rewards, weights), snips(log.rewards, weights)]
        estimates += [replay_average(log.rewards[chosen == log.arms])] if chances is UNIFORM else []
        for estimate in estimates:
            assert abs(estimate.value - truth) < 4 * estimate.error
            assert 0.005 < estimate.error < 0.06


def test_standard_errors_are_those_of_repetition() -> None:
    """Over 200 logs, the spread of each estimate is what it states, within 20 percent."""
    chosen = np.zeros(300, np.int64)
    found: dict[str, list[tuple[float, float]]] = {"replay": [], "ips": [], "snips": []}
    for seed in range(200):
        log = logged(300, SKEWED, seed)
        weights = weights_of(log, chosen)
        found["replay"].append(replay_average(log.rewards[log.arms == 0])[:2])
        found["ips"].append(ips(log.rewards, weights)[:2])
        found["snips"].append(snips(log.rewards, weights)[:2])
    for name, pairs in found.items():
        value, error = np.array(pairs).T
        assert value.std() == pytest.approx(error.mean(), rel=0.2), name


def test_replay_learns_from_the_rows_that_count() -> None:
    """In the order of the log, from a choice for each batch; a batch sees what was learned before it."""
    log, rng = logged(203, UNIFORM, 2), np.random.default_rng(1)
    choices = [Choice.draw(rng, 1, 5, 0.3, batch=4) for _ in range(51)]
    policy, plain = LinearBandit(1, 5, 6), LinearBandit(1, 5, 6)
    records = list(replay(policy, log, iter(choices), batch=4))
    seen = []
    for number, choice in enumerate(choices):
        rows = range(4 * number, min(4 * number + 4, 203))
        scores = plain.predictions(log.contexts[None, rows])[0]
        for at, row in enumerate(rows):
            best = np.where(scores[at] == scores[at].max(), choice.ties[0, at], -1).argmax()
            arm = choice.order[0, at].argmax() if choice.explore[0, at] else best
            if arm == log.arms[row]:
                seen.append((row, int(arm), log.rewards[row]))
                plain.update(log.contexts[None, [row]], np.array([[arm]]), log.rewards[None, [row]])
    assert [(record.step, int(record.arms[0]), float(record.rewards[0])) for record in records] == seen
    assert 20 < len(seen) < 70 and np.allclose(policy.weights, plain.weights)


def test_replay_wants_a_choice_for_each_batch() -> None:
    log, rng = logged(10, UNIFORM, 2), np.random.default_rng(1)
    with pytest.raises(LogError, match="end at row 4 of 10"):
        list(replay(LinearBandit(1, 5, 6), log, iter([Choice.draw(rng, 1, 5, 0.3, batch=4)]), batch=4))


def test_weights_need_propensities() -> None:
    with pytest.raises(LogError, match="no propensities"):
        weights_of(RecordedLog(np.zeros((2, 1)), np.zeros(2, np.int64), np.zeros(2)), np.zeros(2))


def test_too_few_rows_give_no_error_bar() -> None:
    assert np.isnan(replay_average(np.zeros(0))).all()
    assert np.isnan(replay_average(np.ones(1)).error) and replay_average(np.ones(1)).value == 1.0
    assert np.isnan(snips(np.ones(3), np.zeros(3))).all()


_HEAD = ",timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1,user-item_affinity_0"
_ROWS = ["0,t,14,3,0,0.0125,b,q,0.0", "1,t,7,1,1,0.5,a,q,0.0", "2,t,79,3,1,0.0125,b,p,1.0"]


def _campaign(folder: Path, head: str = _HEAD, rows: list[str] = _ROWS, *, packed: bool = True) -> Path:
    (folder / "random").mkdir()
    text = "\n".join([head, *rows]) + "\n"
    if packed:
        (folder / "random" / "men.csv.gz").write_bytes(gzip.compress(text.encode()))
    else:
        (folder / "random" / "men.csv").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("given", "uniform"),
    [([1 / 3, 0.33333334, 1 / 3], True), ([1 / 3, 0.3334, 1 / 3], False), ([0.5, 0.5, 0.5], False)],
)
def test_a_log_is_uniform_where_its_propensities_are_alike_but_for_rounding(given: list[float], uniform: bool) -> None:
    log = RecordedLog(np.zeros((3, 2)), np.arange(3), np.zeros(3), np.array(given))
    assert log.uniform(3) is uniform


@pytest.mark.parametrize("packed", [True, False])
def test_open_bandit_rows_become_a_log(packed: bool, tmp_path: Path) -> None:
    log = open_bandit(_campaign(tmp_path, packed=packed), campaign="men")
    assert log.arms.tolist() == [14, 7, 79] and log.rewards.tolist() == [0, 1, 1]
    assert log.propensities is not None and log.propensities.tolist() == [0.0125, 0.5, 0.0125] and not log.uniform(2)
    half = 0.5**0.5
    assert np.allclose(log.contexts, [[0, half, 0, half], [half, 0, 0, half], [0, half, half, 0]])
    assert open_bandit(tmp_path, campaign="men", position=3).arms.tolist() == [14, 79]


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        ({"policy": "ucb"}, "no policy 'ucb': choose one of random, bts"),
        ({"campaign": "kids"}, "no campaign 'kids'"),
        ({"campaign": "all"}, r"no all\.csv\.gz in"),
        ({"campaign": "men", "position": 9}, "positions are 1 to 3"),
    ],
)
def test_open_bandit_data_that_is_not_there(ask: dict[str, object], words: str, tmp_path: Path) -> None:
    with pytest.raises(LogError, match=words):
        open_bandit(_campaign(tmp_path), **ask)  # type: ignore[arg-type]


def test_open_bandit_files_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="no column 'click'"):
        open_bandit(_campaign(tmp_path, _HEAD.replace("click", "buy")), campaign="men")
    (tmp_path / "random" / "men.csv.gz").write_bytes(b"not packed")
    with pytest.raises(LogError, match="damaged"):
        open_bandit(tmp_path, campaign="men")
