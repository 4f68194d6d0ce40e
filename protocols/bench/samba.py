"""`scripts/bench samba`: a step of SAMBA as published, in the clear, and on shares.

The published protocol is timed twice: in one process, as processor time, beside the plaintext policy and what the
authors' code took on the same machine; and with a process for each of its K + 3 participants, beside the protocol on
shares, which is launched as well.  A step is one that chooses: the first K pulls, keys and the sum are not in it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

import numpy as np

from bandits.samba import NAMES, BernoulliArms, SeededCoins, Seeds, by_name, run
from mpc.scratch import scratch_folder
from mpc.tables import markdown

from ..published.sealing import Direction, Seal, fresh_key
from ..run.exits import say
from ..run.folder import Keep
from ..samba.classic.run import play_classic
from . import samba_mpc
from .report import Page, head, ratio
from .samba_mpc import even_arms

PUBLISHED = {"ucb": 0.92, "pursuit": 1.84, "thompson": 1.35}
"""Processor milliseconds a step of the authors' code with K = 100, measured on this kind of machine."""
PUBLISHED_PLAIN = 0.065  # of its plaintext UCB
PUBLISHED_ARMS = 100
FASTER = 3.0
TIMES_CLASSIC = 5.0
ARMS = (10, 25, 50, 100)
LENGTHS = (2000, 4000, 8000, 16_000)
LONG = 100_000
_REPEATS = 3
_ABOUT = """A step is one that chooses an arm: the first K pulls, keys and the
sum are not in it."""
_CLASSIC = (
    ("policy", "s"), ("K", "d"), ("classic, ms", ".3f"), ("of it AES-GCM", ".3f"), ("authors' code, ms", ".2f"),
    ("times faster", ".1f"), ("in the clear, ms", ".4f"), ("times slower", ".0f"), ("owners", ".0%"),
    ("Controller", ".0%"), ("Comp", ".0%"),
)  # fmt: skip
_LAUNCHED = (
    ("policy", "s"), ("K", "d"), ("classic, ms", ".2f"), ("on shares, ms", ".2f"), ("goal, below", "g"),
    ("times classic", ".1f"), ("with dealing, ms", ".2f"), ("rounds", "g"), ("bytes to the peer", ",.0f"),
    ("offline bytes", ","),
)  # fmt: skip
_LENGTHS = (("K", "d"), ("N", ","), ("seconds", ".2f"), ("microseconds a step", ".0f"))


@dataclass(frozen=True)
class Row:
    """A policy at a number of arms.  Processor milliseconds a step, the best of some runs; shares of computing time.

    gcm: the calls of AES-GCM in a step, by themselves.
    """

    policy: str
    arms: int
    steps: int
    classic: float
    plain: float
    gcm: float
    owners: float
    controller: float
    comp: float


@dataclass(frozen=True)
class Launched:
    """Milliseconds on the clock: a process for each participant.  shares: the row of the protocol on shares."""

    policy: str
    arms: int
    steps: int
    classic: float
    shares: samba_mpc.Row


@dataclass(frozen=True)
class Length:
    """Seconds on the clock of a UCB run in one process, without keys and the sum."""

    arms: int
    pulls: int
    seconds: float


@dataclass(frozen=True)
class LongRun:
    """A UCB run that is stopped half way and goes on from its checkpoint: seconds in all, keys and sum with them."""

    arms: int
    pulls: int
    seconds: float
    equal: bool


@dataclass(frozen=True)
class Results:
    """All that is measured."""

    rows: list[Row]
    launched: list[Launched]
    lengths: list[Length]
    long: LongRun


def bench(options: argparse.Namespace) -> Page:
    """Measure all policies and sizes."""
    results = measure(quick=options.quick)
    return Page(as_json(results), as_markdown(results), missed(results))


def measure(*, quick: bool) -> Results:
    """All policies and sizes."""
    rows = []
    for arms in (10,) if quick else ARMS:
        say(f"K = {arms}, in one process")
        rows += [row_of(policy, arms, 50 if quick else 1000, 1 if quick else _REPEATS) for policy in NAMES]
    lengths = []
    for arms in (10,) if quick else (ARMS[0], ARMS[-1]):
        for pulls in LENGTHS[:1] if quick else LENGTHS:
            say(f"K = {arms}, N = {pulls:,}")
            done = play_classic("ucb", even_arms(arms), pulls, seed=1, reference=False)
            lengths.append(Length(arms, pulls, done.seconds_per_step * done.sitting))
    pulls = 2000 if quick else LONG
    say(f"K = {ARMS[-1]}, N = {pulls:,}, stopped half way")
    long = long_run(ARMS[-1], pulls)
    launched = []
    for arms in (3,) if quick else (ARMS[0], ARMS[-1]):
        for policy in NAMES[2:3] if quick else NAMES:
            say(f"K = {arms}, {policy}, launched")
            launched.append(launched_of(policy, arms, 20 if quick else 200))
    return Results(rows, launched, lengths, long)


def row_of(policy: str, arms: int, steps: int, repeats: int) -> Row:
    """In one process."""
    means = even_arms(arms)
    plain = plain_seconds(policy, means, arms + steps, repeats, time.process_time) / (arms + steps)
    runs = [play_classic(policy, means, arms + steps, seed=1, reference=False) for _ in range(repeats)]
    best = min(runs, key=lambda done: done.cpu_seconds_per_step)
    used = best.step_seconds
    share = {name: seconds / sum(used.values()) for name, seconds in used.items()}
    lists = best.counts.seals / steps / arms  # two for each iteration: scores, and answers
    return Row(
        policy, arms, steps, 1e3 * best.cpu_seconds_per_step, 1e3 * plain, lists * gcm_milliseconds(arms, 3 * repeats),
        share["owners"], share["Controller"], share["Comp"],
    )  # fmt: skip


def plain_seconds(policy: str, means: BernoulliArms, pulls: int, tries: int, clock: Callable[[], float]) -> float:
    """Of a run in the clear, the quickest of some."""
    seeds, spent = Seeds.of(1), []
    for _ in range(tries):
        own, coins = by_name(policy, len(means)), SeededCoins(seeds, len(means))
        began = clock()
        run(own, means, pulls, coins, seeds.rewards)
        spent.append(clock() - began)
    return min(spent)


def gcm_milliseconds(arms: int, repeats: int) -> float:
    """Sealing a list and opening it, the best of some."""
    key, slots, texts = fresh_key(), np.arange(arms), [bytes(8)] * arms
    ends, took = (Seal(key, Direction.TO_COMP, arms), Seal(key, Direction.TO_OWNER, arms)), []
    for t in range(1, 20 * repeats + 1):
        began = time.process_time()
        ends[1].open(t, 1, slots, ends[0].seal(t, 1, slots, texts))
        took.append(time.process_time() - began)
    return 1e3 * min(took)


def launched_of(policy: str, arms: int, steps: int) -> Launched:
    """The published protocol and that on shares, each in processes."""
    done = play_classic(policy, even_arms(arms), arms + steps, seed=1, processes=True, reference=False)
    return Launched(policy, arms, steps, 1e3 * done.seconds_per_step, samba_mpc.measure(policy, arms, steps))


def long_run(arms: int, pulls: int) -> LongRun:
    """In two sittings."""
    means, told = even_arms(arms), [0]
    began = time.perf_counter()
    with scratch_folder() as folder:
        keep = Keep(folder, 5000)
        play_classic(
            "ucb", means, pulls, seed=1, keep=keep, watch=told.append, stop=lambda: told[-1] == pulls // 2,
            reference=False,
        )  # fmt: skip
        done = play_classic("ucb", means, pulls, seed=1, keep=replace(keep, resume=True), reference=False)
    seconds = time.perf_counter() - began
    seeds = Seeds.of(1)
    plain = run(by_name("ucb", arms), means, pulls, SeededCoins(seeds, arms), seeds.rewards)
    return LongRun(arms, pulls, seconds, done.game.equals(plain) and done.total == plain.total)


def as_json(results: Results) -> str:
    """One document."""
    return json.dumps({**asdict(results), "published": PUBLISHED, "published_plain": PUBLISHED_PLAIN}, indent=1)


def as_markdown(results: Results) -> str:
    """A page for a reader."""
    long = results.long
    same = "the plaintext policy's pulls and sum" if long.equal else "NOT the plaintext policy's pulls and sum"
    return "\n".join([
        *head("A step of SAMBA", "samba", _ABOUT),
        "## As published, in one process, beside the plaintext policy",
        "",
        f"Processor milliseconds a step, the best of {_REPEATS} runs. The authors' code, on such a machine, took "
        + ", ".join(f"{seconds:g} s ({name})" for name, seconds in PUBLISHED.items()),
        f"for 1000 steps with K = {PUBLISHED_ARMS}, and {PUBLISHED_PLAIN:g} s in the clear. AES-GCM is what its calls",
        "in a step take by themselves. Shares are of the participants' computing time.",
        "",
        *markdown(_CLASSIC, [
            (row.policy, row.arms, row.classic, row.gcm, _published(row), ratio(_published(row), row.classic),
             row.plain, row.classic / row.plain, row.owners, row.controller, row.comp)
            for row in results.rows
        ]),
        "",
        "## Launched: K + 3 processes as published, and on shares",
        "",
        "Milliseconds a step on the clock, all processes on this machine. On shares there are two computing parties,",
        "DC and one process that plays all owners; material is dealt beforehand, and 'with dealing' adds the dealer's",
        "time.",
        "",
        *markdown(_LAUNCHED, [
            (one.policy, one.arms, one.classic, own.milliseconds, samba_mpc.GOALS.get(one.arms),
             own.milliseconds / one.classic, own.milliseconds + own.offline_milliseconds, own.rounds, own.opened_bytes,
             own.offline_bytes)
            for one in results.launched for own in (one.shares,)
        ]),
        "",
        "## Time against N",
        "",
        "UCB in one process, seconds on the clock.",
        "",
        *markdown(_LENGTHS, [
            (one.arms, one.pulls, one.seconds, 1e6 * one.seconds / (one.pulls - one.arms)) for one in results.lengths
        ]),
        "",
        f"{long.pulls:,} pulls of {long.arms} arms, stopped half way and taken up from the checkpoint: "
        f"{long.seconds:.1f} s in all, {same}.",
    ]) + "\n"  # fmt: skip


def _published(row: Row) -> float | None:
    """What the authors' code took, of the sizes that were measured with it."""
    return PUBLISHED.get(row.policy) if row.arms == PUBLISHED_ARMS else None


def missed(results: Results) -> list[str]:
    """The goals that this run did not reach."""
    out = [
        f"classic {row.policy} with {row.arms} arms: {faster:.1f} times faster than the authors' code, the goal is "
        f"{FASTER:g}"
        for row in results.rows
        if (faster := ratio(_published(row), row.classic)) is not None and faster < FASTER
    ]
    out += samba_mpc.missed([one.shares for one in results.launched])
    out += [
        f"on shares, {one.policy} with {one.arms} arms: {one.shares.milliseconds / one.classic:.1f} times the classic "
        f"step, the goal is at most {TIMES_CLASSIC:g}"
        for one in results.launched
        if one.shares.milliseconds > TIMES_CLASSIC * one.classic
    ]
    if not results.long.equal:
        out.append(f"{results.long.pulls:,} pulls in two sittings are not the plaintext policy's")
    return out
