"""Every case of the table plays exactly its declared rounds, stays in its tolerance and discloses nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc import ops
from mpc.cases import Case, argmax_case, cases, paper_cases
from mpc.rounds import together

Fixture = Callable[..., Any]


@pytest.mark.parametrize(
    "case", [*cases(quick=True), *paper_cases(9), *paper_cases(16)[-1:]], ids=lambda case: case.name
)
def test_case(case: Case, parties: int, simulate: Fixture, reveal: Fixture) -> None:
    session = simulate(parties)
    values = case.inputs(np.random.default_rng(20))
    shared = case.share(session, values)
    assert session.round == 0 and session.meter.total.sent_bytes == 0  # inputs are free
    result = session.run(case.program(session, *shared))
    assert session.meter.total.rounds == case.rounds == session.round
    assert len(session.ledger) == 0
    clear = reveal(result)
    assert clear.shape == case.plain(*values).shape
    if case.tolerance is not None:
        assert np.abs(clear - case.plain(*values)).max() <= case.tolerance


def test_the_full_table_has_the_same_operations() -> None:
    assert [case.op for case in cases()] == [case.op for case in cases(quick=True)]
    assert len({case.name for case in cases()}) == len(cases())


@pytest.mark.parametrize("arms", [2, 10, 100])
def test_argmax_takes_four_rounds_for_any_number_of_arms(
    arms: int, parties: int, simulate: Fixture, reveal: Fixture
) -> None:
    session, case = simulate(parties), argmax_case(arms)
    (scores,) = case.inputs(np.random.default_rng(21))
    onehot = session.run(case.program(session, *case.share(session, (scores,))))
    assert session.round == 4
    assert (reveal(onehot) == case.plain(scores)).all()


def test_independent_operations_share_their_rounds(parties: int, simulate: Fixture, reveal: Fixture) -> None:
    """A truncation rides in the first round of an argmax: 4 rounds, not 1 + 4."""
    session = simulate(parties)
    x, scores = session.share([[1.5]], scale=40), session.share([3.0, 1.0, 2.0])
    y, onehot = session.run(together(ops.truncate(session, x, 20), ops.argmax(session, scores)))
    assert session.round == 4
    assert reveal(y).tolist() == [[1.5]] and reveal(onehot).tolist() == [1, 0, 0]
