"""How often the 95 % intervals of `masked evaluate` hold the truth, against a simulation whose truth is exact.

    scripts/log_coverage --repetitions 1000

A log has 5,000 rows of 5 arms and 6 features, drawn from a table of 2,000 contexts, and rewards of 0 or 1; no
propensity is below 0.02.  Three loggers: uniform; softmax of another regression; epsilon-greedy, learning after each
row.  The policy learns from the first half and is judged on the rest, as the command does; its truth, another in each
repetition, is its average over the table.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bandits.environments import Environment, synthetic_linear
from bandits.estimators import Estimate, doubly_robust, ips, replay_average, snips, steady
from bandits.linear import LinearBandit
from bandits.off_policy import chances
from bandits.scaling import scale
from mpc.tables import markdown

from ..run.progress import Progress

ARMS, FEATURES, ROWS, EPS, LEAST = 5, 6, 5000, 0.1, 0.02
LOGGERS = ("uniform", "softmax", "learning")
FEWEST, MOST = 0.93, 0.97
_WINDOW = 500
_AT_ONCE = 250
_COLUMNS = (
    ("logger", "s"), ("policy", "s"), ("by", "s"), ("covers, %", ".1f"), ("below, %", ".1f"), ("above, %", ".1f"),
    ("width", ".4f"), ("", "s"),
)  # fmt: skip


class Logs(NamedTuple):
    """(repetitions, rows) places in the table, arms, propensities and rewards."""

    places: np.ndarray
    arms: np.ndarray
    propensities: np.ndarray
    rewards: np.ndarray


class Row(NamedTuple):
    """How often the truth lay within the intervals, below and above; and how wide they are on average."""

    logger: str
    policy: str
    estimator: str
    covers: float
    below: float
    above: float
    width: float


def world(seed: int) -> Environment:
    """The table, with features as an owner scales them."""
    table = synthetic_linear(ARMS, FEATURES, rows=2000, seed=seed)
    scaled, _ = scale(table.contexts, (FEATURES,), fitted=slice(None))
    return Environment("synthetic", scaled, table.chances)


def logs(table: Environment, logger: str, count: int, rng: np.random.Generator, *, rows: int = ROWS) -> Logs:
    """So many logs."""
    places = rng.integers(0, len(table.contexts), (count, rows))
    luck, coins = rng.random((2, count, rows))
    if logger == "learning":
        return _learned_on_the_way(table, places, luck, coins)
    weights = np.zeros((ARMS, table.dim)) if logger == "uniform" else 3.0 * np.random.default_rng(7).normal(
        size=(ARMS, table.dim)
    )  # fmt: skip
    scores = np.exp(table.contexts @ weights.T)
    given = (LEAST + (1.0 - ARMS * LEAST) * scores / scores.sum(axis=1, keepdims=True))[places]
    arms = (given.cumsum(axis=-1) <= coins[..., None]).sum(axis=-1).clip(max=ARMS - 1)
    return Logs(places, arms, _of(given, arms), (luck < table.chances[places, arms]).astype(float))


def _learned_on_the_way(table: Environment, places: np.ndarray, luck: np.ndarray, coins: np.ndarray) -> Logs:
    policy = LinearBandit(len(places), ARMS, table.dim)
    arms, given, rewards = np.empty(places.shape, np.int64), np.empty(places.shape), np.empty(places.shape)
    for row in range(places.shape[1]):
        x = table.contexts[places[:, row], None]
        pi = chances(policy.predictions(x)[:, 0], ARMS * LEAST)
        arms[:, row] = (pi.cumsum(axis=-1) <= coins[:, row, None]).sum(axis=-1).clip(max=ARMS - 1)
        given[:, row] = _of(pi, arms[:, row])
        rewards[:, row] = luck[:, row] < table.chances[places[:, row], arms[:, row]]
        policy.update(x, arms[:, [row]], rewards[:, [row]])
    return Logs(places, arms, given, rewards)


def judged(
    table: Environment, found: Logs, logger: str, rng: np.random.Generator
) -> Iterator[tuple[str, str, Estimate, np.ndarray]]:  # fmt: skip
    """Policy, estimator, estimates and truths, (repetitions,) each."""
    first = found.places.shape[1] // 2
    early, late = slice(0, first), slice(first, None)
    policy = LinearBandit(len(found.places), ARMS, table.dim)
    policy.update(table.contexts[found.places[:, early]], found.arms[:, early], found.rewards[:, early])
    model = np.einsum("rad,nd->rna", policy.weights, table.contexts)
    hits = np.arange(ARMS) == found.arms[:, early, None]
    paid = (hits * found.rewards[:, early, None]).sum(axis=1) / np.maximum(1, hits.sum(axis=1))
    always = np.broadcast_to((np.arange(ARMS) == paid.argmax(axis=1)[:, None])[:, None].astype(float), model.shape)
    targets = {
        "best fixed arm": always, "uniform arms": np.full(model.shape, 1.0 / ARMS), "the policy": chances(model, EPS),
    }  # fmt: skip
    places, arms, rewards = found.places[:, late], found.arms[:, late], found.rewards[:, late]
    m = _of(_at(model, places), arms)
    for name, pi in targets.items():
        truth = (pi * table.chances).sum(axis=-1).mean(axis=-1)
        own = _at(pi, places)
        drawn = (own.cumsum(axis=-1) <= rng.random((*places.shape, 1))).sum(axis=-1).clip(max=ARMS - 1)
        yield name, "replay", replay_average(rewards, drawn == arms), truth
        weights = _of(own, arms) / found.propensities[:, late]
        q = (own * _at(model, places)).sum(axis=-1)
        ways: list[tuple[str, np.ndarray | None]] = [("", None)]
        if logger == "learning":
            before = _of(_at(pi, found.places[:, early]), found.arms[:, early]) / found.propensities[:, early]
            ways = [("", steady(weights, before, window=_WINDOW)), (", all rows alike", None)]
        for more, h in ways:
            yield name, f"IPS{more}", ips(rewards, weights, h), truth
            yield name, f"SNIPS{more}", snips(rewards, weights, h), truth
            yield name, f"DR{more}", doubly_robust(rewards, weights, q, m, h), truth


def campaign(repetitions: int, seed: int, *, rows: int = ROWS) -> list[Row]:
    """All loggers, policies and estimators."""
    table, found = world(seed), []
    progress = Progress(len(LOGGERS) * repetitions, "repetition")
    for number, logger in enumerate(LOGGERS):
        rng = np.random.default_rng([seed, number])
        ends: dict[tuple[str, str], list[np.ndarray]] = {}
        for start in range(0, repetitions, _AT_ONCE):
            drawn = logs(table, logger, min(_AT_ONCE, repetitions - start), rng, rows=rows)
            for policy, name, estimate, truth in judged(table, drawn, logger, rng):
                ends.setdefault((policy, name), []).append(np.stack([estimate.low, estimate.high, truth]))
            progress(number * repetitions + start)
        for (policy, name), parts in ends.items():
            low, high, truth = np.concatenate(parts, axis=1)
            below, above = float((truth < low).mean()), float((truth > high).mean())
            found.append(Row(logger, policy, name, 1.0 - below - above, below, above, float((high - low).mean())))
    progress.end()
    return found


def _of(values: np.ndarray, arms: np.ndarray) -> np.ndarray:
    """Of (..., arms), those of the given ones."""
    return np.take_along_axis(values, arms[..., None], axis=-1)[..., 0]


def _at(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Of (repetitions, table, arms), the rows of each repetition's own places."""
    return np.take_along_axis(values, places[..., None], axis=1)


def main() -> None:
    """Print the table of a page."""
    parser = argparse.ArgumentParser(
        prog="scripts/log_coverage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=1000, help="logs of each logger (1000)")
    parser.add_argument("--rows", type=int, default=ROWS, help="of a log (5000)")
    parser.add_argument("--seed", type=int, default=1, help="of table, logs and coins (1)")
    options = parser.parse_args()
    if options.repetitions < 1 or options.rows < 4:
        parser.error("at least 1 repetition of 4 rows")
    rows = campaign(options.repetitions, options.seed, rows=options.rows)
    lines = [
        (each.logger, each.policy, each.estimator, 100 * each.covers, 100 * each.below, 100 * each.above, each.width,
         "" if FEWEST <= each.covers <= MOST else "not 93 to 97")
        for each in rows
    ]  # fmt: skip
    print("\n".join(markdown(_COLUMNS, lines)))
    print(f"\n{sum(FEWEST <= each.covers <= MOST for each in rows)} of {len(rows)} lines between 93 and 97 %")


if __name__ == "__main__":
    main()
