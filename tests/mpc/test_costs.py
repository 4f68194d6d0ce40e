"""Every operation costs what its docstring says: `declared_costs` against the meter and the layout of each draw."""

from __future__ import annotations

import inspect
from typing import Any

import declared_costs
import numpy as np
import pytest
from declared_costs import TABLE, Cost

from mpc import Session, ops
from mpc.correlations import layout
from offline import Recorder


def metered(parties: int, cost: Cost) -> tuple[int, int, int]:
    recorder = Recorder(parties)
    session = Session.simulate(parties, recorder)
    if cost.width:
        inputs: list[Any] = [session.share_bits(np.ones(s, np.int64), width=cost.width) for s in cost.shapes]
    else:
        inputs = [session.share(np.ones(s)) for s in cost.shapes]
    session.run(cost.run(session, *inputs))
    assert len(session.ledger) == 0
    dealt = sum(layout(item).dealt_bytes for item in recorder.items)
    return session.meter.total.rounds, session.meter.total.opened_bytes, dealt


@pytest.mark.parametrize("cost", TABLE, ids=lambda cost: cost.name)
def test_an_operation_costs_what_it_says(cost: Cost, parties: int) -> None:
    assert metered(parties, cost) == (cost.rounds, cost.peer, cost.dealt)


def test_every_interactive_operation_is_in_the_table() -> None:
    """An operation that is added without a cost fails here."""
    source = inspect.getsource(declared_costs)
    generators = {name for name in ops.__all__ if inspect.isgeneratorfunction(getattr(ops, name))}
    assert len(generators) > 25
    assert [name for name in sorted(generators) if f"ops.{name}" not in source] == []
