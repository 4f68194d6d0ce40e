"""What a user of HELBA reads: the ring's arithmetic, an undone polynomial, and what a mask of one coefficient hides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandits.attacks.helba_ring import (
    SLOTS,
    N,
    _times,
    constant_mask,
    decode,
    decrypt,
    encode,
    encrypt,
    new_key,
    whole_mask,
)
from bandits.attacks.helba_user import behind_mask, differences, gap
from bandits.helba.approximate import comparison


def test_the_ring_wraps_with_a_sign() -> None:
    rng = np.random.default_rng(1)
    a, key = rng.integers(0, 1 << 64, N, np.uint64), new_key(rng)
    whole = [0] * (2 * N)
    for i, left in enumerate(a.tolist()):
        for j, right in enumerate(key.view(np.int64).tolist()):
            whole[i + j] += left * right
    assert [(whole[k] - whole[k + N]) % 2**64 for k in range(N)] == _times(a, key).tolist()


def test_slots_add_and_are_read_with_the_key_alone() -> None:
    rng = np.random.default_rng(2)
    x, y, key = rng.normal(size=(3, SLOTS)), rng.normal(size=(3, SLOTS)), new_key(rng)
    assert np.abs(decode(encode(x) + encode(y)) - x - y).max() < 1e-10
    sealed = encrypt(x, key, rng)
    assert np.abs(decode(decrypt(sealed, key)) - x).max() < 1e-9
    assert np.abs(decode(decrypt(sealed, new_key(rng))) - x).max() > 1e3


def test_a_constant_mask_hides_one_coefficient() -> None:
    rng = np.random.default_rng(3)
    values, key = rng.uniform(-1, 1, 50), new_key(rng)
    sealed = encrypt(np.eye(1, SLOTS) * values[:, None], key, rng)
    masked, whole = decrypt(constant_mask(sealed, rng), key), decrypt(whole_mask(sealed, rng), key)
    assert np.abs(behind_mask(masked) - values).max() < 1e-9
    assert (np.abs(decode(masked)[:, 0] - values) > 1.0).mean() > 0.9, "it does hide the slot as it is decoded"
    assert (np.abs(behind_mask(whole) - values) > 1.0).mean() > 0.9


def test_slots_behind_a_constant_mask_move_alike() -> None:
    rng = np.random.default_rng(4)
    values, key = rng.uniform(-1, 1, SLOTS), new_key(rng)
    shifted = decode(decrypt(constant_mask(encrypt(values, key, rng), rng), key)) - values
    assert np.ptp(shifted) < 1e-6 * max(1.0, np.abs(shifted).max())


@given(
    iterations=st.integers(1, 24), top=st.floats(0.2, 1.0), first=st.floats(-1e-3, 0.0), apart=st.floats(0.0, 0.1),
)  # fmt: skip
def test_a_gap_is_read_or_said_to_be_unknown(iterations: int, top: float, first: float, apart: float) -> None:
    s = np.array([top + first, top + first - apart])
    b = comparison(s, np.array(top), iterations)
    read = gap(b, iterations, 1e-9)
    if min(b.min(), 1.0 - b.max()) > 1e-6:
        assert read == pytest.approx(apart, rel=1e-4, abs=1e-9)
    elif min(b.min(), 1.0 - b.max()) < 1e-9:
        assert np.isnan(read)


def test_what_is_0_or_1_is_not_known() -> None:
    assert np.isnan(differences(np.array([0.0, 1.0]), 5, 1e-7)).all()
    assert differences(np.array([0.5]), 5, 1e-7) == pytest.approx(0.0, abs=1e-12)
