"""Where numbers lie in the slots."""

from __future__ import annotations

import pytest

from protocols.helba.ckks.layout import _power


@pytest.mark.parametrize(("count", "power"), [(1, 1), (2, 2), (3, 4), (4, 4), (5, 8), (8, 8), (9, 16)])
def test_a_block_takes_the_least_power_of_two_that_holds_it(count: int, power: int) -> None:
    assert _power(count) == power
