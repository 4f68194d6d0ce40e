"""The generator of masks: streams, uniformity, and that it hides its key."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from mpc import ConfigError
from mpc.prg import KEY_BYTES, Prg, fresh_key
from tests.oracles import stats

KEY = bytes(range(KEY_BYTES))


def test_it_is_aes_in_counter_mode() -> None:
    counter = (5).to_bytes(8, "big") + bytes(8)
    expected = Cipher(algorithms.AES(KEY), modes.CTR(counter)).encryptor().update(bytes(100))
    assert Prg(KEY, 5).bytes(100).tobytes() == expected


@pytest.mark.parametrize("counts", [(16, 16), (1, 31, 7), (1 << 20, 40)])
def test_pieces_of_a_stream_make_the_stream(counts: tuple[int, ...]) -> None:
    pieces = Prg(KEY)
    joined = b"".join(pieces.bytes(count).tobytes() for count in counts)
    assert joined == Prg(KEY).bytes(sum(counts)).tobytes()


def test_streams_and_keys_differ() -> None:
    heads = {Prg(key, stream).bytes(32).tobytes() for key in (KEY, KEY[::-1]) for stream in (0, 1, 2**64 - 1)}
    assert len(heads) == 6
    assert fresh_key() != fresh_key() and len(fresh_key()) == KEY_BYTES


def test_words_are_uniform(uniformity: Callable[[np.ndarray, int], float]) -> None:
    assert uniformity(Prg(KEY).words((50_000,)), 64) > 1e-6  # rejects at p < 1e-6, on a fixed key
    assert Prg(KEY).words((3, 0)).shape == (3, 0)


@pytest.mark.parametrize("bound", [1, 2, 7, 1000])
def test_below_is_uniform_under_its_bound(bound: int) -> None:
    drawn = Prg(KEY).below(bound, (40_000,))
    counts = np.bincount(drawn.astype(np.int64), minlength=bound)
    assert counts.size == bound
    assert bound == 1 or stats.chisquare(counts).pvalue > 1e-6  # rejects at p < 1e-6, on a fixed key


def test_below_has_no_modulo_bias() -> None:
    """Words mod 3 * 2^61 would fall in the lowest third of the range 50 % of the time, not 33 %."""
    low = (Prg(KEY).below(3 << 61, (30_000,)) < np.uint64(1 << 61)).sum()
    assert stats.binomtest(int(low), 30_000, 1 / 3).pvalue > 1e-6  # rejects at p < 1e-6, on a fixed key


def test_permutations_are_uniform() -> None:
    orders = Prg(KEY).permutations((12_000, 4)).astype(np.int64)
    assert (np.sort(orders, axis=-1) == np.arange(4)).all()
    _, counts = np.unique(orders @ 4 ** np.arange(4), return_counts=True)
    assert counts.size == 24
    assert stats.chisquare(counts).pvalue > 1e-6  # rejects at p < 1e-6, on a fixed key


@pytest.mark.parametrize("key", [b"", bytes(15), bytes(32)])
def test_a_key_has_its_length(key: bytes) -> None:
    with pytest.raises(ConfigError, match=f"{KEY_BYTES} bytes, this one {len(key)}"):
        Prg(key)


@pytest.mark.parametrize("bound", [0, -1, (1 << 63) + 1])
def test_a_bound_is_named(bound: int) -> None:
    with pytest.raises(ConfigError, match=r"\[1, 2\^63\]"):
        Prg(KEY).below(bound, (1,))


def test_a_generator_hides_its_key() -> None:
    assert KEY.hex() not in repr(Prg(KEY)) and repr(KEY) not in repr(Prg(KEY))
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(Prg(KEY))
