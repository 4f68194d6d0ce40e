"""What a batch opens and is dealt, counted by hand, and how much less that is for each context than alone."""

from __future__ import annotations

import numpy as np
import pytest

from bandits.environments import synthetic_linear
from mpc.correlations import ChoiceNoise, LookupMask, SignTables, layout
from protocols.ppcb.settings import Settings

from .runs import finished, plan_of, shortfalls

A, D = 10, 20
W = D * (D + 1) // 2  # words of a symmetric matrix
STEPS = {2: 5, 3: 5, 16: 6, 64: 7}  # of the inverse, with 2 parties


def cut(words: int) -> int:
    """Bytes dealt for a truncation."""
    return 8 * words + 8 * -(-words // 2)


@pytest.mark.parametrize("batch", STEPS)
def test_a_batch_costs_what_it_says(batch: int) -> None:
    """T words of B x B.  Comparisons open 13 bytes at these widths, and the look-ups of ranks one."""
    b, t, k = batch, batch * (batch + 1) // 2, STEPS[batch]
    plan, items, cost = plan_of(Settings(arms=A, dim=D, batch=batch), 2)
    deciding = A * (W + D) + b * D + A * b * (D + 1) + b * (A + A * (D + 1))
    joined = 2 * b * D + b * A + t + 2 * t + t * (4 * k - 1) + t + b * (D + 1)
    learning = b * (D + 1) + b * (2 * D + 1) + b * (W + D) + b * (A + W + D)
    assert cost.opened_bytes == 8 * (deciding + joined + learning) + b * (13 * A * (A - 1) // 2 + A)
    assert cost.rounds == 15 + 2 * k

    dealt = sum(
        layout(item).dealt_bytes for item in items if not isinstance(item, ChoiceNoise | SignTables | LookupMask)
    )
    deciding = 8 * A * b * (D + 1) + cut(A * b * (D + 1)) + 8 * b * (D + 1)
    inverse = cut(t) + 8 * t + (k - 2) * 16 * t + 8 * t + (k - 1) * cut(2 * t) + cut(t)
    joined = 8 * 2 * t + cut(t) + 8 * t + inverse + 8 * b * (D + 1) + cut(b * (D + 1))
    learning = 8 * b * (W + D) + cut(b * (W + D)) + 8 * A * (W + D)
    assert dealt == deciding + joined + learning
    assert plan.step_bytes == sum(layout(item).dealt_bytes for item in items)


def test_a_context_of_a_batch_costs_half_of_one_alone() -> None:
    alone, together = (plan_of(Settings(arms=A, dim=D, batch=batch), 3) for batch in (1, 64))
    assert together.cost.opened_bytes < 64 * 0.6 * alone.cost.opened_bytes
    assert together.plan.step_bytes < 64 * 0.55 * alone.plan.step_bytes
    assert together.cost.rounds < 64 / 20 * alone.cost.rounds


def test_a_large_batch_of_many_parties_is_its_twins() -> None:
    """64 contexts of norm up to sqrt(5): eigenvalues reach 321."""
    given = Settings(arms=3, dim=10, batch=64)
    simulation = finished(given, 5, 192, synthetic_linear(3, 10, rows=300))
    run = simulation.result()
    assert shortfalls(simulation).max() < 2.0**-12 and run.cost.rounds == 3 * 31
    assert np.abs(run.regressions).max() < 2.0
