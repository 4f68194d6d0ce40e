"""`masked attack samba`: what Comp of the published protocol finds out, and a computing party of the one on shares."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bandits.attacks.samba_comp import ATTACKED, blind_total
from bandits.samba import BernoulliArms, SambaError, check_budget, load_arms
from mpc.errors import ConfigError
from mpc.tables import plain

from ..run.progress import Progress
from .answer import answer
from .attack import add_kind

_ALL = "all"
CLASSIC, MPC, BOTH = "classic", "mpc", "both"
_BLIND_GAMES = 100
_LEAST_CHOSEN = 2  # pulls behind the first of each arm: half are looked at before the others are guessed
_ABOUT = """What does a node of SAMBA find out about pulls and rewards?

Games are played, and attacked.  In mode classic by Comp, from the masked and permuted scores that it decrypts: it keeps
every (s_i, n_i) that fits the ratios so far.  In mode mpc by one of two computing parties, from its shares of the
owners' words: it takes them for such a list, and it also guesses who is pulled, by the largest word, and as trained
on the first half of the game.  Beside them stands a guess by who sees nothing: the median of cumulative rewards of
games with random means, and the owner that was pulled most so far.

The last list is of step N or before, so no list shows the last reward.  Thompson's scores are draws, and not attacked.
"""
_EXAMPLES = """examples:
  masked attack samba                              ucb, 10 arms with random means, 500 pulls, 20 games in each mode
  masked attack samba --policy all --mode classic  every policy whose lists give it away
  masked attack samba --arms-file means.txt --budget 1000 --runs 5 --json
"""
_COLUMNS = (
    ("policy", "s"), ("mode", "s"), ("every (s, n)", ">"), ("sum shown", ">"), ("sum", ">"), ("off by", ".1f"),
    ("blind", ".1f"),
)  # fmt: skip
_MEANING = """every (s, n)  each arm's rewards and pulls as the last list shows them, whatever the arms are called
sum shown     the cumulative reward as the last list shows it
sum, off by   the cumulative reward after all pulls: exact in so many games, and wrong by so much on average
blind         how far off who sees nothing is; an attacker for whom no game fits guesses the same"""


@dataclass(frozen=True)
class Row:
    """Over `runs` games.  fits, pairs, before, total: in how many the attacker has a game that fits, every (s, n) at
    the last list, their sum, and the cumulative reward after all pulls.

    error: how far off the last is on average; where nothing fits, the blind guess stands in.  blind_*: of that guess.
    guesses: of who is pulled, how many; and how many were right by the largest word, as trained, and blind.
    """

    policy: str
    mode: str
    runs: int
    fits: int
    pairs: int
    before: int
    total: int
    error: float
    blind_total: int
    blind_error: float
    guesses: int
    guesses_largest: int
    guesses_trained: int
    guesses_blind: int


def register(group: Any) -> None:
    """Add `samba`."""
    parser = add_kind(
        group, "samba", _attack, help_="what does a node of SAMBA find out about pulls and rewards?", about=_ABOUT,
        examples=_EXAMPLES, runs=(20, "games to attack"), seeds="everything but masks", mistakes=SambaError,
    )  # fmt: skip
    parser.add_argument("--policy", default="ucb", metavar="NAME", help=f"{', '.join([*ATTACKED, _ALL])} (ucb)")
    parser.add_argument("--mode", choices=[CLASSIC, MPC, BOTH], default=BOTH, help="whose node attacks (both)")
    parser.add_argument("--arms", type=int, default=10, help="how many arms, with new means in each game (10)")
    parser.add_argument("--arms-file", type=Path, metavar="FILE", help="play these arms instead, in every game")
    parser.add_argument("--budget", type=int, default=500, metavar="N", help="pulls of a game (500)")
    parser.add_argument("--eps", type=float, default=0.1, help="how often epsilon-greedy explores (0.1)")
    parser.add_argument("--tau", type=float, default=0.06, help="softmax's temperature, from 0.001 (0.06)")
    parser.add_argument("--beta", type=float, default=0.1, help="pursuit's pace (0.1)")


def _attack(options: argparse.Namespace) -> None:
    from ..samba.command import check_constants

    policies = list(ATTACKED) if options.policy == _ALL else [options.policy]
    if not set(policies) <= set(ATTACKED):
        raise ConfigError(f"--policy is one of {', '.join([*ATTACKED, _ALL])}, not {options.policy!r}")
    check_constants(options, policies)
    if options.runs < 1 or options.arms < 1:
        raise ConfigError(f"{options.runs} games of {options.arms} arms: at least 1 of each")
    if options.seed >> 32:
        raise ConfigError("a seed of attacks lies below 2^32: choose a smaller one")
    modes = [mode for mode in (CLASSIC, MPC) if options.mode in (mode, BOTH)]
    progress = Progress(len(policies) * len(modes) * options.runs, "game")
    rows: list[Row] = []
    for policy in policies:
        for mode in modes:
            rows.append(_row(options, policy, mode, progress, len(rows) * options.runs))
    progress.end()
    facts = document(options, rows)
    answer(options, facts, text(facts, options, rows))


def _row(options: argparse.Namespace, policy: str, mode: str, progress: Progress, before: int) -> Row:
    from ..samba.attacks import Game, attack_classic, attack_mpc
    from ..samba.classic.messages import Spec

    fixed = None if options.arms_file is None else load_arms(options.arms_file)
    count = options.arms if fixed is None else len(fixed)
    check_budget(options.budget, count)
    if options.budget < count + _LEAST_CHOSEN:
        raise ConfigError(
            f"{options.budget} pulls of {count} arms leave nothing to attack, as each is pulled once first: give "
            f"--budget {count + _LEAST_CHOSEN} or more"
        )
    spec = Spec(policy, options.eps, options.tau, options.beta)
    spec.policy()  # refuses constants
    blind = blind_total(
        policy, arms=count, budget=options.budget, eps=options.eps, tau=options.tau, beta=options.beta,
        games=_BLIND_GAMES, seed=options.seed,
    )  # fmt: skip
    outcomes = []
    for number in range(options.runs):
        arms = fixed or BernoulliArms(np.random.default_rng([options.seed, 1, number]).random(count))
        game = Game(spec, arms, options.budget, 1 << 100 | options.seed << 32 | number)  # not those of the blind guess
        outcomes.append(attack_classic(game) if mode == CLASSIC else attack_mpc(game))
        progress(before + number + 1)
    totals = [blind if outcome.total is None else outcome.total for outcome in outcomes]
    guesses = [outcome.guesses for outcome in outcomes if outcome.guesses is not None]
    return Row(
        policy, mode, len(outcomes), sum(one.fits for one in outcomes), sum(one.pairs for one in outcomes),
        sum(one.before for one in outcomes), sum(one.total == one.true_total for one in outcomes),
        float(np.mean([abs(total - one.true_total) for total, one in zip(totals, outcomes)])), blind,
        float(np.mean([abs(blind - one.true_total) for one in outcomes])), sum(one.steps for one in guesses),
        sum(one.largest for one in guesses), sum(one.trained for one in guesses), sum(one.blind for one in guesses),
    )  # fmt: skip


def document(options: argparse.Namespace, rows: Sequence[Row]) -> dict[str, Any]:
    """The facts as other tools read them."""
    facts = {name: getattr(options, name) for name in ("budget", "eps", "tau", "beta", "seed")}
    arms = options.arms if options.arms_file is None else len(load_arms(options.arms_file))
    return {"arms": arms, **facts, "rows": [asdict(row) for row in rows]}


def text(facts: dict[str, Any], options: argparse.Namespace, rows: Sequence[Row]) -> str:
    """A table and what it means."""
    arms = facts["arms"]
    found = [
        (row.policy, row.mode, *(f"{count} of {row.runs}" for count in (row.pairs, row.before, row.total)), row.error,
         row.blind_error)
        for row in rows
    ]  # fmt: skip
    guessed = []
    for row in (row for row in rows if row.guesses):
        counts = row.guesses_largest, row.guesses_trained, row.guesses_blind
        largest, trained, blind = (100 * count / row.guesses for count in counts)
        guessed.append(
            f"{row.policy}, mpc: who is pulled, of {row.guesses:,} guesses from shares right: by the largest word "
            f"{largest:.1f} %, as trained {trained:.1f} %; without shares {blind:.1f} %; any of {arms} "
            f"{100 / arms:.1f} %"
        )
    head = f"{arms} arms, {options.budget:,} pulls, {options.runs:,} games"
    return "\n".join([head, "", *plain(_COLUMNS, found), "", _MEANING, *guessed])
