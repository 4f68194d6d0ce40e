"""Correlations with equal parameters are one object, whatever form the parameters came in."""

from __future__ import annotations

import numpy as np
import pytest

from mpc.bilinear import MULTIPLY, Bilinear
from mpc.correlations import ChoiceNoise, ProductMask, SquareMask, TruncationMask


def test_equal_parameters_are_one_object() -> None:
    assert ProductMask(MULTIPLY, (31,), (31,)) is ProductMask(Bilinear(""), (31,), (31,))
    assert TruncationMask((31,), 20) is not TruncationMask((31,), 21)


@pytest.mark.parametrize("first", [(np.int64(71),), (np.uint8(71),), (71,)])
def test_the_digest_does_not_tell_which_form_came_first(first: tuple[int, ...]) -> None:
    """Peers compare digests: a process that met numpy's 71 first must not differ from one that did not."""
    SquareMask.__class__.__call__.cache_clear()  # type: ignore[attr-defined]
    met, plain = SquareMask(first), SquareMask((71,))
    assert repr(met) == "SquareMask(shape=(71,), op=Bilinear(spec=''))" and met.digest == plain.digest


def test_a_probability_is_a_float_and_a_length_an_integer() -> None:
    assert ChoiceNoise((3,), 0, 50).digest == ChoiceNoise((3,), 0.0, 50).digest
    with pytest.raises(TypeError):
        SquareMask((5.5,))  # type: ignore[arg-type]
