"""Who learns what, in how many rounds: the ledger, the openings, and what a party sees of a step that explores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from mpc import EVERYONE, Open, Reveal
from mpc.correlations import SignTables
from mpc.ledger import Entry
from mpc.rounds import Input, Request
from protocols.run.simulate import Simulation
from protocols.samba.mpc.run import Run
from protocols.samba.mpc.settings import MOST_PAIRS
from protocols.samba.report import by_owner

from .runs import POLICIES, simulation

SUM = Entry("DC", "cumulative reward", 1, "it pays for the pulls")


def finished(policy: str, arms: int = 6, steps: int = 10, **more: Any) -> Simulation[Run]:
    own = simulation(policy, arms, arms + steps, **more)
    for _ in range(steps):
        own.turn()
    own.player.finish()
    return own


def bits(owner: int, steps: int = 10) -> Entry:
    return Entry(f"owner {owner}", "whether it is pulled", steps, "it pulls its arm")


def means(owner: int, steps: int = 10) -> Entry:
    return Entry(f"owner {owner}", "whether its score is the largest", steps, "its own probability moves")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("hosts", [1, 4])
@pytest.mark.parametrize("parties", [2, 3], ids=["N2", "N3"])
def test_the_ledger_is_the_papers_table(policy: str, hosts: int, parties: int) -> None:
    """Each owner its own bits, N - K of them in an iteration; DC the sum; parties and observers nothing."""
    own = finished(policy, hosts=hosts, parties=parties)
    expected = [bits(owner) for owner in range(6)]
    if policy == "pursuit":
        expected += [means(owner) for owner in range(6)]
    assert sorted(by_owner(own.session.ledger, own.player.settings), key=str) == sorted([*expected, SUM], key=str)


def test_one_more_reveal_would_show() -> None:
    """Also one to a host, of as many values as it has owners."""
    own = finished("ucb", hosts=2)

    def curious(to: str) -> Iterator[Any]:
        yield Reveal(own.session.constant(np.zeros(3), 0), to=to, what="scores", why="somebody is curious")

    for to in (EVERYONE, "party 1"):
        own.session.run(curious(to))
    rows = list(by_owner(own.session.ledger, own.player.settings))
    assert {row.role for row in rows} == {*(f"owner {owner}" for owner in range(6)), "DC", EVERYONE, "party 1"}
    own.session.ledger.record("owners 0 to 2", "scores", 3, "somebody is curious")
    own.session.ledger.record("owners 0 to 2", "something", 2, "somebody is curious")
    rows = list(by_owner(own.session.ledger, own.player.settings))
    assert Entry("owner 1", "scores", 1, "somebody is curious") in rows
    assert Entry("owners 0 to 2", "something", 2, "somebody is curious") in rows


@pytest.mark.parametrize("policy", POLICIES)
def test_rounds(policy: str, parties: int) -> None:
    """4 for an argmax in pairs, 10 in a tournament, 4 for a draw; a message to and from each host an iteration."""
    last = {"pursuit": 4}.get(policy, 0)
    for arms, rounds in ((2, 4), (MOST_PAIRS, 4), (MOST_PAIRS + 1, 10)):
        own = finished(policy, arms, 3, parties=parties, hosts=2)
        cost = own.session.meter.total
        assert cost.rounds == 3 * (rounds + last)
        assert cost.client_hops == 3 * 4 * own.player.settings.local.iterations + 2 + 1


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("arms", [1, 6, 70])
def test_every_step_draws_the_plan(policy: str, arms: int) -> None:
    own = finished(policy, arms, 4)
    assert own.dealer.dealt_bytes == 4 * own.rehearsed.plan.step_bytes > 0


@pytest.mark.parametrize(
    ("policy", "arms", "further"), [("epsilon-greedy", 10, {4}), ("ucb", 70, {64}), ("pursuit", 8, {64})]
)
def test_every_opening_is_uniform(
    policy: str, arms: int, further: set[int], uniformity: Callable[[np.ndarray, int], float]
) -> None:
    """All openings of a run by the ring they are opened in.  Rejects at p < 1e-6, on a fixed seed."""
    opened: dict[int, list[np.ndarray]] = {}

    def listener(request: Request, sent: np.ndarray, reply: Any) -> None:
        if isinstance(request, Open):
            opened.setdefault(request.bits, []).append(np.asarray(reply).astype(np.uint64).reshape(-1))

    own = finished(policy, arms, 300 if arms < 40 else 40, listener=listener)
    signs = [item for item in own.rehearsed.plan.items if isinstance(item, SignTables)]
    rings = {bits for item in signs for bits in (item.width, item.cut.pair_bits, item.cut.verdict_bits)}
    assert signs and opened.keys() >= rings | further
    for ring, words in opened.items():
        assert uniformity(np.concatenate(words), ring) > 1e-6, ring


def test_a_step_that_explores_looks_like_any_other(uniformity: Callable[[np.ndarray, int], float]) -> None:
    """To each party: the same requests of the same sizes, and its shares of the owners' words are uniform.

    Every word of an exploring step is 0, so the parties' shares of it cancel; either party's alone are noise.
    Rejects at p < 1e-6.
    """
    steps: list[list[tuple[Any, ...]]] = []
    shares: list[np.ndarray] = []

    def listener(request: Request, sent: np.ndarray, reply: Any) -> None:
        if isinstance(request, Input):
            steps.append([])
            shares.append(reply.words.copy())
        shape = request.words.shape if isinstance(request, Open) else getattr(request, "shape", ())
        steps[-1].append((type(request).__name__, shape, sent.shape))

    own = simulation("epsilon-greedy", 8, 408, eps=0.5, listener=listener)
    while own.done < 408:
        own.turn()
    zero = np.array([not words.sum(axis=0, dtype=np.uint64).any() for words in shares])
    assert 150 < zero.sum() < 250
    assert len({tuple(step) for step in steps}) == 1
    for party in (0, 1):
        for explores in (True, False):
            seen = np.concatenate([words[party] for words, explored in zip(shares, zero) if explored == explores])
            assert uniformity(seen, 64) > 1e-6
