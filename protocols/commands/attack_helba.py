"""`masked attack helba`: what a user finds out, alone and with the server; and on shares, with all parties but one."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandits.attacks.helba_ring import SLOTS, constant_mask, decode, decrypt, encrypt, new_key, whole_mask
from bandits.attacks.helba_user import behind_mask, gap
from bandits.attacks.samba_node import guess_pulls
from bandits.helba import HELBA, Approximate, Constants, HelbaError, Problem, fresh, toy
from mpc.errors import ConfigError
from mpc.rounds import Input, Request, Reveal
from mpc.tables import plain

from ..helba.run import Encrypted
from ..helba.settings import Settings
from ..run.progress import Progress
from ..run.simulate import Simulation
from .answer import answer
from .attack import add_kind

DIGITS = 1e-7  # how well a decrypted number is known
_PROBLEMS = {"toy": toy, "fresh": fresh}
_ABOUT = """What does a user of HELBA find out?

As published each user decrypts a number for every arm, about 1/2 for the largest index and 0 for all far below; it
undoes the polynomial that made them and reads how far the indices of near ties are apart.  All users have one key, so
the server's ciphertexts are read by any of them.  What the server has a user decrypt for it, it masks by a constant
polynomial, which hides one coefficient of 16.  The scheme is a model of CKKS in a ring that is far too small: neither
attack breaks encryption.

On shares the same user has an arm.  With all computing parties but one it has their shares of what other users gave.
"""
_EXAMPLES = """examples:
  masked attack helba                                  the paper's problem, 130 steps, 5 runs
  masked attack helba --data fresh --arms 5 --json
"""
_HEADS = ("as published", "on shares", "from nothing")
_ROWS = (
    ("user: steps", "steps"), ("user: gaps that it reads", "gaps"), ("user: largest gap read", "largest_gap"),
    ("user: largest error of one, relative", "gap_error"), ("user: masked numbers that it reads", "masked"),
    ("user: the same, all coefficients masked", "masked_whole"), ("joint: signs of features right", "features"),
    ("joint: signs of rewards right", "rewards"), ("joint: arms right", "arms"),
    ("joint: largest error of a feature", "feature_error"),
)  # fmt: skip
_MEANING = """joint         the user with the server; on shares with all parties but one, for other users' steps
gap           how far the two largest indices are apart; read where its b is known to more than 1e-7
masked        the test of the trace, within 1e-6
from nothing  random numbers in place of shares, and the arm that was pulled most so far
-             there is nothing to start from"""


@dataclass
class Found:
    """One run.  gaps: (true, read) of the steps where one was read.  The rest are counts of `steps`, and shares."""

    steps: int
    gaps: list[tuple[float, float]]
    features: float
    rewards: float
    arms: float
    masked: int | None = None
    masked_whole: int | None = None
    feature_error: float | None = None


def register(group: Any) -> None:
    """Add `helba`."""
    parser = add_kind(
        group, "helba", _attack, help_="a user reads gaps, and with the server everything; on shares, its arm",
        about=_ABOUT, examples=_EXAMPLES, runs=(5, "problems to attack"), seeds="the first problem and all coins",
        mistakes=HelbaError,
    )  # fmt: skip
    parser.add_argument(
        "--data", choices=list(_PROBLEMS), default="toy", help="4 contexts, or new ones each step (toy)"
    )
    parser.add_argument("--steps", type=int, default=130, help="of each run (130)")
    parser.add_argument("--arms", type=int, default=2, help="of each step (2)")
    parser.add_argument("--dim", type=int, default=2, help="of the features (2)")
    parser.add_argument("--parties", type=int, default=2, help="that compute on shares (2)")


def _attack(options: argparse.Namespace) -> None:
    if options.runs < 1 or options.steps < 4 or options.arms < 2:
        raise ConfigError("an attack takes at least 1 run, 4 steps and 2 arms")
    settings = Settings(Constants(dim=options.dim), options.arms, options.steps)
    runs: list[tuple[Found, ...]] = []
    progress = Progress(options.runs, "run")
    for seed in range(options.seed, options.seed + options.runs):
        problem = _PROBLEMS[options.data](settings.constants, options.steps, seed, arms=options.arms)
        rng = np.random.default_rng([seed, 1])
        runs.append((published(problem, settings, rng), *on_shares(problem, settings, seed, rng, options.parties)))
        progress(len(runs))
    progress.end()
    asked = {name: getattr(options, name) for name in ("data", "steps", "arms", "dim", "parties", "runs", "seed")}
    facts = asked | {head: _summary(found) for head, found in zip(_HEADS, zip(*runs), strict=True)}
    answer(options, facts, _text(facts))


def published(problem: Problem, settings: Settings, rng: np.random.Generator) -> Found:
    """HELBA with its polynomials, each number known to DIGITS; what the server holds, read with a user's key."""
    policy, key, gaps, arms, tests, answers = Approximate(settings.constants), new_key(rng), [], [], [], []
    for x, rewards in zip(problem.features, problem.rewards):
        seen = policy.indices(x) + rng.uniform(-DIGITS, DIGITS, len(x))
        read = gap(seen, policy.counts(len(x))[1], 2.0 * DIGITS) * policy.index_range()
        if not np.isnan(read):
            first, second = np.sort(HELBA.indices(policy, x))[:-3:-1]
            gaps.append((float(first - second), read))
        answers.append(seen)
        arms.append(int(seen.argmax()))
        policy.learn(x[arms[-1]], float(rewards[arms[-1]]))
        tests.append(policy.tested)
    paid = problem.rewards[np.arange(len(problem)), arms]
    held = (encrypt(_slots(part), key, rng) for part in (problem.features, paid, np.array(answers)))
    features, rewards, told = (decode(decrypt(part, key)).reshape(-1) for part in held)
    right = told[: len(problem) * settings.arms].reshape(len(problem), -1).argmax(axis=1) == arms
    alone = encrypt(np.eye(1, SLOTS) * np.array(tests)[:, None], key, rng)
    masked, whole = (
        int((np.abs(behind_mask(decrypt(mask(alone, rng), key)) - tests) < 1e-6).sum())
        for mask in (constant_mask, whole_mask)
    )
    given = _slots(problem.features).reshape(-1)
    return Found(
        len(problem), gaps, _alike(features, given), _alike(rewards, _slots(paid).reshape(-1)), float(right.mean()),
        masked, whole, float(np.abs(features - given).max()),
    )  # fmt: skip


def on_shares(
    problem: Problem, settings: Settings, seed: int, rng: np.random.Generator, parties: int
) -> tuple[Found, Found]:
    """From all parties' shares but one of other users' numbers and arms; and from random numbers in their place."""
    seen: dict[str, list[np.ndarray]] = {"features": [], "rewards": [], "arms": []}

    def listener(request: Request, payload: np.ndarray, reply: Any) -> None:
        if isinstance(request, Input):
            rows = reply.words[1:].reshape(parties - 1, -1)
            seen["features" if request.shape else "rewards"].append(rows.sum(axis=0, dtype=np.uint64))
        elif isinstance(request, Reveal) and request.what == "arm":
            seen["arms"].append(payload[1:].view(np.uint64).sum(axis=0, dtype=np.uint64))

    simulation = Simulation(Encrypted(settings, parties, problem=problem), seed=seed, listener=listener)
    while not simulation.finished:
        simulation.turn()
    arms = simulation.notes
    views = {name: np.array(rows) for name, rows in seen.items()}
    blind = {name: rng.integers(0, 1 << 64, rows.shape, np.uint64) for name, rows in views.items()}
    paid = problem.rewards[np.arange(len(problem)), arms]
    given = problem.features.reshape(len(problem), -1)
    # all that a user is told is an arm: in place of b, the one-hot
    gaps = [gap(np.eye(settings.arms)[arm], 1, 2.0 * DIGITS) for arm in arms]
    assert np.isnan(gaps).all(), "a one-hot has no digits to undo"
    found = []
    for view in (views, blind):
        guesses = guess_pulls(np.hstack([view["arms"], view["features"]]), arms)
        right = guesses.trained if view is views else guesses.blind
        features, rewards = view["features"].view(np.int64), view["rewards"].view(np.int64)[:, 0]
        found.append(Found(len(problem), [], _alike(features, given), _alike(rewards, paid), right / guesses.steps))
    return found[0], found[1]


def _slots(values: np.ndarray) -> np.ndarray:
    """Numbers by the slots of as many ciphertexts as they take; what is left over is 1."""
    flat = values.reshape(-1)
    return np.pad(flat, (0, -flat.size % SLOTS), constant_values=1.0).reshape(-1, SLOTS)


def _alike(guessed: np.ndarray, true: np.ndarray) -> float:
    """The share of numbers whose sign is right."""
    return float(((guessed > 0) == (true > 0)).mean())


def _summary(runs: tuple[Found, ...]) -> dict[str, Any]:
    """Counts and shares are means over runs, errors the largest."""
    gaps = [pair for run in runs for pair in run.gaps]
    summary: dict[str, Any] = {
        name: float(np.mean([getattr(run, name) for run in runs])) for name in ("steps", "features", "rewards", "arms")
    }
    summary["gaps"] = len(gaps) / len(runs)
    summary["largest_gap"] = max((read for _, read in gaps), default=None)
    summary["gap_error"] = max((abs(read / true - 1.0) for true, read in gaps), default=None)
    for name, over in (("masked", np.mean), ("masked_whole", np.mean), ("feature_error", np.max)):
        found = [getattr(run, name) for run in runs]
        summary[name] = None if found[0] is None else float(over(found))
    return summary


def _text(facts: dict[str, Any]) -> str:
    rows = [(name, *(_cell(key, facts[head][key]) for head in _HEADS)) for name, key in _ROWS]
    return "\n".join([
        f"{facts['runs']} runs of {facts['steps']} steps, {facts['arms']} arms, d = {facts['dim']}",
        "",
        *plain([("", "s"), *((head, ">") for head in _HEADS)], rows),
        "",
        _MEANING,
    ])  # fmt: skip


def _cell(key: str, value: float | None) -> str:
    if value is None:
        return "-"
    if key in ("features", "rewards", "arms"):
        return f"{100 * value:.1f} %"
    return f"{value:g}" if key in ("steps", "gaps", "masked", "masked_whole") else f"{value:.2g}"
