"""`together` and `labelled`: what shares a round, what comes back to whom, and what is booked."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mpc import Open, Reveal, Rounds, Session, labelled, ops, supplied, together
from mpc.bilinear import MULTIPLY
from mpc.correlations import ProductMask, TruncationMask
from mpc.rounds import position
from mpc.share import Share

Fixture = Callable[..., Any]


def steps(session: Session, name: str, rounds: int, width: int = 0) -> Rounds[list[Any]]:
    """Reveal a running number each round, alone (width 0) or as a tuple of `width`; gives the name and the numbers."""
    seen: list[Any] = [name]
    for step in range(rounds):
        asked = [Reveal(session.constant(step * 10 + i, 0)) for i in range(max(width, 1))]
        got = yield tuple(asked) if width else asked[0]
        seen.append([int(v) for v in got] if width else int(got))
    return seen


def nothing(session: Session, yields: int) -> Rounds[str]:
    """Yield without asking for anything."""
    for _ in range(yields):
        got = yield ()
        assert got == ()
    return "nothing"


def fails(session: Session, after: int) -> Rounds[None]:
    yield from steps(session, "fails", after)
    raise KeyError("from within")


def test_the_longest_decides_and_results_keep_their_order(parties: int, simulate: Fixture) -> None:
    session = simulate(parties)
    programs = [steps(session, "a", 2), steps(session, "b", 5, width=2), steps(session, "c", 0), steps(session, "d", 1)]
    a, b, c, d = session.run(together(*programs))
    assert session.round == 5 == session.meter.total.rounds
    assert a == ["a", 0, 10] and c == ["c"] and d == ["d", 0]
    assert b == ["b", [0, 1], [10, 11], [20, 21], [30, 31], [40, 41]]


def test_together_nests(simulate: Fixture) -> None:
    session = simulate(2)

    def inner() -> Rounds[Any]:
        first = yield from together(steps(session, "x", 2), steps(session, "y", 1))
        second = yield from steps(session, "z", 2, width=1)
        return first, second

    outcome = session.run(together(inner(), together(steps(session, "u", 3), together(steps(session, "v", 1)))))
    assert outcome == (
        ((["x", 0, 10], ["y", 0]), ["z", [0], [10]]),
        (["u", 0, 10, 20], (["v", 0],)),
    )
    assert session.round == 4


def test_sequence_is_sum(simulate: Fixture) -> None:
    session = simulate(2)

    def program() -> Rounds[None]:
        yield from steps(session, "a", 3)
        yield from steps(session, "b", 2)

    session.run(program())
    assert session.round == 5


def test_empty_yields_are_no_rounds(simulate: Fixture) -> None:
    session = simulate(2)
    assert session.run(nothing(session, 3)) == "nothing"
    assert session.run(together()) == ()
    assert session.run(together(nothing(session, 2), nothing(session, 1))) == ("nothing", "nothing")
    assert session.round == 0
    assert session.run(together(nothing(session, 4), steps(session, "a", 2))) == ("nothing", ["a", 0, 10])
    assert session.round == 2


@pytest.mark.parametrize("after", [0, 1, 2])
def test_an_error_in_a_member_comes_out(after: int, simulate: Fixture) -> None:
    session = simulate(2)
    with pytest.raises(KeyError, match="from within"):
        session.run(together(steps(session, "a", 3), together(labelled(session, "l", fails(session, after)))))
    assert session.round == after


def test_errors_thrown_into_a_program_and_closing_reach_its_members(simulate: Fixture) -> None:
    session = simulate(2)
    closed = []

    def member(name: str) -> Rounds[None]:
        try:
            yield Open(np.zeros((2, 1), np.uint64))
        finally:
            closed.append(name)

    program = together(member("a"), labelled(session, "l", member("b")))
    next(program)
    with pytest.raises(LookupError):
        program.throw(LookupError("late"))
    assert closed == ["a", "b"]


def test_position_names_each_level(simulate: Fixture) -> None:
    session = simulate(2)

    def outer() -> Rounds[Any]:
        return (yield from together(steps(session, "a", 1), labelled(session, "l", steps(session, "b", 1))))

    program = outer()
    next(program)
    where = position(program)
    assert where.startswith("outer:") and where.count("steps:") == 2 and "|" in where


def test_a_supplied_program_draws_beforehand(simulate: Fixture) -> None:
    """So that two programs draw in one order, whether they run side by side or one after the other."""
    orders, results = [], []
    for beside in (True, False):
        session = simulate(2)
        x = session.share([3.0, 5.0], owner=0, shape=(2,))
        drawn: list[Any] = []
        source = session.source
        session.source = SimpleNamespace(draw=lambda item, s=source, d=drawn: d.append(item) or s.draw(item))
        items = [TruncationMask((2,), 10), ProductMask(MULTIPLY, (2,), (2,))]
        first = supplied(session, items, _tenth(session, x))
        second = ops.product(session, x, x)
        programs = (together(first, second),) if beside else (first, second)
        told = [session.run(program) for program in programs]
        results.append(told[0] if beside else tuple(told))
        orders.append(drawn)
        assert session.stock is None
    assert orders[0] == orders[1] and len(orders[0]) == 3
    for quotient, square in results:
        assert (
            abs(quotient.words.sum(axis=0).view(np.int64) - [(3 << 20) ** 2 >> 10, (5 << 20) ** 2 >> 10]).max() < 2**22
        )
        assert (square.words.sum(axis=0) == [9 << 40, 25 << 40]).all()


def _tenth(session: Session, x: Share) -> Rounds[Share]:
    small = yield from ops.truncate(session, x, 10)
    return (yield from ops.product(session, small, x))


def test_a_supplied_program_that_draws_something_else_ends(simulate: Fixture) -> None:
    session = simulate(2)
    x = session.share([3.0, 5.0], owner=0, shape=(2,))
    for items in ([TruncationMask((2,), 11)], [TruncationMask((2,), 10)]):  # another item; too few
        with pytest.raises(AssertionError, match="in its order"):
            session.run(supplied(session, items, _tenth(session, x)))
        assert session.stock is None


def test_the_position_of_a_supplied_program_is_its_own(simulate: Fixture) -> None:
    session = simulate(2)
    inner = steps(session, "a", 2)
    outer = supplied(session, [], inner)
    outer.send(None)
    assert position(outer) == position(inner)
