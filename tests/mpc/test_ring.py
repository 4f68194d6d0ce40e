"""Words and fixed point, against Python's integers and numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc import RangeError, ring
from mpc.ring import decode, encode, encode_bits, spread_bits, word

LARGEST = (1 << 62) - 1


@given(st.floats(-(2.0**32), 2.0**32))
def test_encode_rounds_to_nearest(value: float) -> None:
    back = decode(encode([value], 20), 20)[0]
    assert abs(back - value) <= 2.0**-21 < 4.8e-7  # half a unit in the last place, of either sign


@given(st.floats(-1e6, 1e6), st.integers(0, 30))
def test_encode_is_odd(value: float, scale: int) -> None:
    assert (encode([-value], scale) == np.negative(encode([value], scale))).all()


def test_encode_breaks_ties_to_even() -> None:
    assert decode(encode(np.array([0.5, 1.5, 2.5, -0.5, -1.5]), 0), 0).tolist() == [0, 2, 2, 0, -2]


@given(st.integers(-LARGEST, LARGEST))
def test_integers_are_exact(value: int) -> None:
    assert encode(np.array([value]), 0)[0] == word(value)
    assert decode(encode(np.array([value]), 0), 0)[0] == value


@pytest.mark.parametrize("scale", [0, 1, 20, 61])
def test_the_whole_range_of_integers_fits_and_no_more(scale: int) -> None:
    largest = (1 << (62 - scale)) - 1
    for value in (largest, -largest):
        assert encode(np.array([value]), scale)[0] == word(value << scale)
        with pytest.raises(RangeError, match="the bound at"):
            encode(np.array([value + (1 if value > 0 else -1)]), scale)


@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.uint8, np.int32, np.uint64, np.float16, np.float32])
def test_every_kind_of_number_is_taken(dtype: type) -> None:
    values = np.array([0, 1, 1, 0]).astype(dtype)
    assert decode(encode(values, 20), 20).tolist() == [0.0, 1.0, 1.0, 0.0]


def test_torch_and_numpy_encode_alike() -> None:
    torch = pytest.importorskip("torch")
    values = np.random.default_rng(1).normal(size=(3, 4))
    assert (encode(torch.from_numpy(values)) == encode(values)).all()


@given(st.integers(1, 64), st.integers(0, (1 << 64) - 1))
def test_mask_and_type_hold_the_bits(bits: int, value: int) -> None:
    assert int(ring.mask(bits)) == (1 << bits) - 1 == int(ring.narrow_mask(bits))
    assert 8 * ring.dtype_for(bits).itemsize in {8, 16, 32, 64} and 8 * ring.dtype_for(bits).itemsize >= bits
    assert int(word(value)) == value == int(word(value - (1 << 64)))


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_spread_bits_reverses_the_index_of_each_bit(bits: int) -> None:
    digits = bits.bit_length() - 1
    for place in range(bits):
        mirrored = int(format(place, f"0{digits}b")[::-1], 2)
        assert int(spread_bits(np.array([1 << place], np.uint64), bits)[0]) == 1 << mirrored


@given(st.sampled_from([8, 16, 32, 64]), st.integers(0, (1 << 64) - 1))
def test_spread_bits_is_a_permutation(bits: int, value: int) -> None:
    low = value & ((1 << bits) - 1)
    spread = spread_bits(np.array([low], np.uint64), bits)
    assert int(spread[0]).bit_count() == low.bit_count()
    assert int(spread_bits(spread, bits)[0]) == low  # it is its own inverse


@given(st.integers(1, 63), st.integers(0, (1 << 64) - 1))
def test_encode_bits(width: int, value: int) -> None:
    kept = value & ((1 << width) - 1)
    assert encode_bits(np.array([kept], np.uint64), width)[0] == kept
    with pytest.raises(RangeError, match=rf"\[0, 2\^{width}\)"):
        encode_bits(np.array([kept | 1 << width], np.uint64), width)
    assert encode_bits([-1], 64)[0] == word(-1)
