"""What dealers make: right functions of uniform fields, rows that follow from keys alone, and nothing in N - 1 rows.

The oracle is written here, element by element in Python integers, from what the kinds promise.
"""

from __future__ import annotations

import copy
import itertools
import pickle
from collections import Counter
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st
from offline_samples import CUBES, ITEMS, SHAPED, name

from mpc.correlations import (
    KINDS,
    AndMask,
    BitMask,
    ChoiceNoise,
    Correlation,
    EqualTables,
    Exploration,
    Gaussian,
    LineMask,
    LookupMask,
    Permutation,
    ProductMask,
    SharedBits,
    SignBits,
    SignStrings,
    SignTables,
    SquareMask,
    TruncationMask,
    UniformNumber,
    WrapMask,
    layout,
)
from mpc.errors import ConfigError, RangeError
from mpc.net.memory import Memory
from mpc.prg import Prg
from mpc.session import Session
from offline import Expander, InProcessDealer, InsecureSeededDealer, TrustedDealer, batch
from offline.dealing import dealt_words
from tests.oracles import stats

N = (2, 3, 5)
TOP = 1 << 64


def dealer(parties: int, seed: int = 1) -> InsecureSeededDealer:
    return InsecureSeededDealer(parties, seed)


def joined(item: Correlation, fields: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """The clear fields as arrays of Python integers, from all parties' rows."""
    clear = []
    for part, rows in zip(item.free() + item.dealt(), fields, strict=True):
        assert rows.shape[1:] == part.shape
        out = np.empty(part.shape, object)
        for at in np.ndindex(part.shape):
            total = 0
            for row in rows:
                total = total ^ int(row[at]) if part.xor else total + int(row[at])
            out[at] = total % (1 << part.bits)
        clear.append(out)
    return clear


def signed(value: int) -> int:
    return value - TOP if value >> 63 else value


def product(spec: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Any of the bilinear maps as a plain sum over all indices."""
    if spec == "":
        return np.asarray(a * b)
    if spec == "^":
        pairs = [(i, j) for i in range(a.shape[-1]) for j in range(i, a.shape[-1])]
        return np.stack([a[..., i] * b[..., j] for i, j in pairs], axis=-1)
    if spec.startswith("sym:"):  # of 2 columns
        spec, a = spec[4:], np.array([a[[0, 1]], a[[1, 2]], *a[3:].reshape(-1, 2)])
    if spec == "@":
        left, right = "xyz"[3 - a.ndim :], "zw"[: b.ndim]
        spec = f"{left},{right}->{left[:-1]}{right[1:]}"
    ins, out = spec.split("->")
    left, right = ins.split(",")
    sizes = dict(zip(left + right, a.shape + b.shape, strict=True))
    total = np.zeros([sizes[axis] for axis in out], object)
    for place in itertools.product(*(range(size) for size in sizes.values())):
        at = dict(zip(sizes, place, strict=True))
        total[tuple(at[x] for x in out)] += a[tuple(at[x] for x in left)] * b[tuple(at[x] for x in right)]
    return total


def bytes_of(value: int, count: int) -> list[int]:
    return [(value >> (8 * k)) & 255 for k in range(count)]


def truth(item: SignTables, z: int, r: int) -> tuple[list[int], list[int]]:
    """(equal, less) of each group's chunks, from integers; the pairs of bits of all chunks, lowest first."""
    pairs, verdicts, at = [], [], 0
    for chunk in range(item.cut.chunks):
        z_k, r_k = ((v % (1 << (item.width - 1))) >> 4 * chunk & 15 for v in (z, r))
        pairs += [int(z_k <= r_k), int(z_k < r_k)]
    for size in item.cut.groups:
        z_g, r_g = ((v % (1 << (item.width - 1))) >> at & ((1 << 4 * size) - 1) for v in (z, r))
        verdicts += [int(z_g == r_g), int(z_g < r_g)]
        at += 4 * size
    return pairs, verdicts


def check_sign_tables(item: SignTables, r: int, masks: int, chunks: np.ndarray, *words: int, last: np.ndarray) -> None:
    """Play the three levels around r and far from it; what is opened is what integers say, under its own mask."""
    cut, low = item.cut, (1 << (item.width - 1)) - 1
    assert [*chunks] == [(2 << (((r & low) >> 4 * k) & 15)) - 1 for k in range(cut.chunks)]
    own = [(masks >> bit) & 1 for bit in range(cut.pair_bits + cut.verdict_bits)]
    near = [r, r + 1, r - 1, r ^ 1 << (item.width - 2), 0, low, low + 1, r ^ (r >> 3), 0x0123456789ABCDEF]
    for z in (value % (1 << item.width) for value in near):
        pairs, verdicts = truth(item, z, r)
        opened = sum((bit ^ mask) << i for i, (bit, mask) in enumerate(zip(pairs[1:], own)))
        at = cut.entries(np.array([opened], np.uint64))
        found = []
        for place in range(len(cut.groups)):
            for kind in (0, 1):
                chosen = [int(table[kind, at[place, 0]]) for table in cut.selections]
                found.append(sum((a & b).bit_count() for a, b in zip(chosen, (masks, *words), strict=True)) % 2)
        count = len(cut.groups)
        order = [*range(2, 2 * count, 2), *range(1, 2 * count, 2)]  # equal of all but the lowest, less of all
        assert [found[i] for i in order] == [verdicts[i] ^ m for i, m in zip(order, own[cut.pair_bits :], strict=True)]
        top = z >> (item.width - 1)
        entry = sum(found[i] << bit for bit, i in enumerate(order)) | top << cut.verdict_bits
        total = sum(int(entry_) * int(n) for entry_, n in zip(last, cut.readout[:, entry], strict=True)) + top
        assert total % (1 << item.ring) == (((z - r) % (1 << item.width)) >> (item.width - 1))


def check_sign_strings(item: SignStrings, r: int, masks: int, strings: np.ndarray, last: np.ndarray) -> None:
    """Every string is a thermometer; the last tables at every place around r give the sign under the masks."""
    cut, at = item.cut, 0
    low = (1 << (item.width - 1)) - 1
    bits = [int(octet) >> k & 1 for octet in strings for k in range(8)]
    for chunk, size in enumerate(cut.chunks):
        r_k = (r & low) >> sum(cut.chunks[:chunk]) & ((1 << size) - 1)
        assert bits[at : at + (1 << size)] == [1] * (r_k + 1) + [0] * ((1 << size) - r_k - 1)
        at += max(8, 1 << size)
    near = (r, r + 1, r - 1, 0, low, low + 1, r ^ (r >> 3), 0x0123456789ABCDEF)
    for z in (value % (1 << item.width) for value in near):
        equal, less, shift = [], [], 0
        for size in cut.chunks:
            z_k, r_k = ((v & low) >> shift & ((1 << size) - 1) for v in (z, r))
            equal, less, shift = [*equal, int(z_k == r_k)], [*less, int(z_k < r_k)], shift + size
        opened = sum(bit << i for i, bit in enumerate([*equal[1:], *less])) ^ masks
        places, counts = (part[:, 0].tolist() for part in cut.readout(np.array([opened], np.uint16)))
        t = sum(int(last[place]) * count for place, count in zip(places, counts, strict=True)) % (1 << item.ring)
        assert t == (r >> (item.width - 1)) ^ int((z & low) < (r & low))


def check_equal_tables(item: EqualTables, r: int, chunks: np.ndarray, last: np.ndarray) -> None:
    count = item.chunk_count
    top = 1 << item.width
    others = [r ^ 1 << bit for bit in range(item.width)]
    for z in (value % top for value in (r, r + 1, r - 1, 0, *others)):
        opened = sum(chunks[byte] & (1 << k) for k, byte in enumerate(bytes_of(z, count)))
        assert last[opened] == int(z == r)


def check_line(item: LineMask, r: int, lines: np.ndarray) -> None:
    """Every x but those of the last piece's width: the line is near the curve, nearly twice as near as the chord.

    The piece that straddles the end of Z_2^k serves the lower end.
    """
    inside, unit = item.bits - item.segments, 2.0**-item.in_scale
    width = 2.0**inside * unit
    for x in range((1 << item.bits) - (1 << inside)):
        z = (x + r) % (1 << item.bits)
        height, slope = (signed(int(word)) * 2.0**-item.out_scale for word in lines[z >> inside])
        at = item.curve.lower + x * unit
        near = np.array([max(at - width, item.curve.lower), at, at + width])
        bend = abs(second_derivative(item, near)).max()
        found = height + slope * (z & ((1 << inside) - 1)) / 2**item.step
        assert abs(found - float(item.curve(np.array(at)))) <= 0.75 * width**2 / 8 * bend + 2.0 ** (
            inside - item.out_scale
        )


def second_derivative(item: LineMask, x: np.ndarray) -> np.ndarray:
    h = 1e-4
    return (item.curve(x + h) - 2 * item.curve(x) + item.curve(x - h)) / h**2


def spread(word: int, bits: int) -> int:
    """Bit i at the place whose binary digits are those of i backwards."""
    digits = bits.bit_length() - 1
    return sum(((word >> i) & 1) << int(format(i, f"0{digits}b")[::-1], 2) for i in range(bits))


def check(item: Correlation, rows: tuple[np.ndarray, ...], clear: list[np.ndarray]) -> None:
    """The promise of each kind."""
    shape = getattr(item, "shape", ())
    each = list(np.ndindex(shape))
    if isinstance(item, ProductMask):
        a, b, c = clear
        assert (c == product(item.op.spec, a, b) % TOP).all()
    elif isinstance(item, SquareMask):
        a, c = clear
        assert (c == product(item.op.spec, a, a) % TOP).all()
    elif isinstance(item, AndMask):
        a, b, c = clear
        assert (c == (a & b)).all()
    elif isinstance(item, TruncationMask):
        r, high, top = clear
        assert (high == r // 2**item.bits).all() and (top == r // 2**63).all()
    elif isinstance(item, WrapMask):
        r, theta, negative = clear
        for at in each:
            total = sum(signed(int(row[at])) for row in rows[0])
            assert total - signed(int(theta[at])) * TOP == signed(r[at])
            assert negative[at] == int(signed(r[at]) < 0)
    elif isinstance(item, LookupMask):
        r, turned = clear
        for at in each:
            for j in range(1 << item.table.bits):
                assert turned[at][j] == int(item.table.values[(j - r[at]) % (1 << item.table.bits)])
    elif isinstance(item, LineMask):
        for at in each:
            check_line(item, clear[0][at], clear[1][at])
    elif isinstance(item, SignTables):
        for at in each:
            r, masks, chunks, *words, last = clear
            column = (slice(None), *at)
            one = [r[at], masks[at], chunks[column], *(word[at] for word in words)]
            check_sign_tables(item, *one, last=last[column])
    elif isinstance(item, SignStrings):
        for at in each:
            check_sign_strings(item, *(part[at] for part in clear))
    elif isinstance(item, SignBits):
        r, low, top = clear
        for at in each:
            assert low[at] == spread(r[at] % 2 ** (item.width - 1), item.low_bits)
            assert top[at] == r[at] >> (item.width - 1)
    elif isinstance(item, BitMask):
        assert (clear[0] == clear[1]).all()
    elif isinstance(item, SharedBits):
        for at in each:
            assert [*clear[1][at]] == [(clear[0][at] >> i) & 1 for i in range(item.width)]
    elif isinstance(item, EqualTables):
        for at in each:
            check_equal_tables(item, clear[0][at], *(part[at] for part in clear[1:]))
    elif isinstance(item, ChoiceNoise):
        for row in clear[0].reshape(-1, shape[-1]):
            order, chosen = [x % 2**item.high for x in row], [x >> item.high for x in row]
            assert sorted(order) == [*range(shape[-1])]
            assert sorted(chosen) == [0] * (shape[-1] - 1) + [1] or (item.eps < 1 and set(chosen) == {0})
            assert item.eps > 0 or set(chosen) == {0}
    elif isinstance(item, Permutation):
        for row in clear[0].reshape(-1, shape[-1]):
            assert sorted(row) == [*range(1, shape[-1] + 1)]
    elif isinstance(item, UniformNumber):
        assert all(0 <= u < 2**item.bits for u in clear[0].flat)
    elif isinstance(item, Exploration):
        explores, scores = clear
        assert set(explores.flat) <= ({0} if item.eps == 0 else {1} if item.eps == 1 else {0, 1})
        assert all(0 <= u < 2**item.bits for u in scores.flat)
    elif isinstance(item, Gaussian):
        widest = 8 * item.deviation * 2.0**item.scale
        assert all(abs(signed(z)) <= widest + 0.5 for z in clear[0].flat)
    else:
        pytest.fail(f"no oracle for {type(item).__name__}")


def test_every_kind_is_among_the_samples() -> None:
    assert {type(item).__name__ for item in ITEMS} == set(KINDS)


@pytest.mark.parametrize("item", ITEMS, ids=name)
def test_the_dealt_fields_are_the_function_promised(item: Correlation, parties: int) -> None:
    made = dealer(parties, seed=parties)
    for _ in range(2):  # the second is not the first again
        rows = made.draw(item)
        check(item, rows, joined(item, rows))


@pytest.mark.parametrize("item", [TruncationMask((3,), 20), LookupMask((3,), CUBES), SignTables((), 64, 8)], ids=name)
def test_the_oracle_sees_a_wrong_bit(item: Correlation) -> None:
    rows = dealer(2).draw(item)
    rows[1].reshape(2, -1)[0] ^= 1
    with pytest.raises(AssertionError):
        check(item, rows, joined(item, rows))


def key_stream(key: bytes, block: int, count: int) -> bytes:
    """AES-128 in counter mode from the counter (block, 0), straight from the library."""
    counter = block.to_bytes(8, "big") + bytes(8)
    return Cipher(algorithms.AES(key), modes.CTR(counter)).encryptor().update(bytes(count))


@pytest.mark.parametrize("block", [0, 3])
def test_rows_but_party_0s_are_the_expansion_of_a_key(parties: int, block: int) -> None:
    made = TrustedDealer(parties)
    made.enter(block)
    rows = np.concatenate([made.make(item) for item in ITEMS], axis=1)
    for party in range(1, parties):
        assert rows[party].tobytes() == key_stream(made.keys[party], block, rows.shape[1])
    free = [place for item in ITEMS for place in [True] * layout(item).free_bytes + [False] * layout(item).dealt_bytes]
    stream = np.frombuffer(key_stream(made.keys[0], block, rows.shape[1]), np.uint8)
    assert (rows[0][free] == stream[free]).all()
    assert (rows[0] != stream).any()


@pytest.mark.parametrize("block", [0, 7])
def test_expanders_and_corrections_give_the_dealers_rows(parties: int, block: int) -> None:
    keys, own, coins = [bytes([p] * 16) for p in range(parties)], b"o" * 16, b"c" * 16
    whole, short = (TrustedDealer(parties, keys=keys, own_key=own, coin_key=coins) for _ in range(2))
    expanders = [Expander(key, party=p) for p, key in enumerate(keys)]
    for end in (whole, short, *expanders):
        end.enter(block)
    (handed,) = short.deal(ITEMS, range(block, block + 1))
    ends = np.cumsum([layout(item).dealt_bytes for item in ITEMS])
    assert handed.size == ends[-1]
    for item, corrections in zip(ITEMS, np.split(handed, ends[:-1]), strict=True):
        rows, place = whole.make(item), layout(item)
        assert corrections.size == place.dealt_bytes == place.total_bytes - place.free_bytes
        assert place.dealt_bytes == sum(-(-part.nbytes // 8) * 8 for part in item.dealt())
        for party, expander in enumerate(expanders):
            own_fields = expander.fields(place, corrections if party == 0 else None)
            for ours, theirs in zip(own_fields, place.views(rows), strict=True):
                assert ours.dtype == theirs.dtype and ours.shape == (1, *theirs.shape[1:])
                assert (ours[0] == theirs[party]).all()


@pytest.mark.parametrize("together", [0, 1 << 16, 1 << 30])
@pytest.mark.parametrize("steps", [1, 3])
def test_blocks_dealt_together_are_those_dealt_item_after_item(
    parties: int, steps: int, together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the byte, coins included, whether a step, a part of a block or many blocks are worked on at once."""
    monkeypatch.setattr(batch, "_TOGETHER", together)
    items = [*COINS, *SHAPED, *COINS, *MASKS]
    keys = {"keys": [bytes([p] * 16) for p in range(parties)], "own_key": b"o" * 16, "coin_key": b"c" * 16}
    single, many = (TrustedDealer(parties, **keys, first_coins=4) for _ in range(2))
    blocks = list(many.lots(items, 6, steps))
    assert len(blocks) == 6
    for block, handed in enumerate(blocks):
        single.enter(block)
        made = [single.make(item)[0, layout(item).free_bytes :] for _ in range(steps) for item in items]
        assert handed.tobytes() == b"".join(part.tobytes() for part in made)


def test_a_party_never_waits_for_many_blocks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However small a step is, and though thousands of them would fit: it may use up what it has meanwhile."""
    made, lots = TrustedDealer(2), list[int]()
    deal = made.deal
    monkeypatch.setattr(
        made, "deal", lambda items, blocks, steps: lots.append(len(blocks)) or deal(items, blocks, steps)
    )
    assert len(list(made.lots([SquareMask((3,))], 100, 1))) == 100
    assert lots[0] == 1 and max(lots) == 16 and sum(lots) == 100


def test_fields_do_not_share_memory_with_the_block_or_each_other() -> None:
    item, place = TruncationMask((3,), 20), layout(TruncationMask((3,), 20))
    corrections = np.zeros(place.dealt_bytes, np.uint8)
    r, high, top = Expander(bytes(16), party=0).fields(place, corrections)
    high += np.uint64(1)
    top += np.uint32(1)
    assert not corrections.any() and not any(np.shares_memory(x, y) for x, y in ((r, high), (high, top), (r, top)))
    assert item.free()[0].nbytes == 24


LOPSIDED = [  # clear values far from uniform, so that a leak would show
    Permutation((100, 8)),
    ChoiceNoise((100, 8), 0.5, 16),
    LookupMask((50,), CUBES),
    SignTables((100,), 60, 8),
    SignStrings((10,), 60, 8),
    EqualTables((6,), 30),
    TruncationMask((800,), 20),
    SharedBits((40,), 20),
    Exploration((100, 8), 0.5, 20),
    Gaussian((800,), 1.0, 20),
]


def chi_square(data: np.ndarray) -> float:
    return float(stats.chisquare(np.bincount(data, minlength=256)).pvalue)


@pytest.mark.parametrize("item", LOPSIDED, ids=name)
def test_any_parties_but_all_see_uniform_bytes(item: Correlation, parties: int) -> None:
    """Sums and XORs of any N - 1 rows, at a confidence of 1 - 1e-4 over all subsets."""
    rows = dealer(parties, seed=11).make(item)[:, layout(item).free_bytes :]
    subsets = [list(chosen) for size in range(1, parties) for chosen in itertools.combinations(range(parties), size)]
    for chosen in subsets:
        for mixed in (np.bitwise_xor.reduce(rows[chosen], axis=0), np.add.reduce(rows[chosen], axis=0, dtype=np.uint8)):
            assert chi_square(mixed) > 1e-4 / (2 * len(subsets))


@pytest.mark.parametrize("item", [Permutation((100, 8)), LookupMask((50,), CUBES)], ids=name)
def test_all_parties_together_see_what_is_not_uniform(item: Correlation, parties: int) -> None:
    clear = np.add.reduce(dealer(parties, seed=11).draw(item)[-1], axis=0, dtype=np.uint64)
    assert chi_square(np.ascontiguousarray(clear).reshape(-1).view(np.uint8)) < 1e-12


def test_free_fields_are_uniform_too(parties: int) -> None:
    rows = dealer(parties, seed=5).make(SquareMask((3000,)))
    assert min(chi_square(row[:24000]) for row in rows) > 1e-4 / parties


def test_noise_explores_as_often_as_eps_says() -> None:
    """Exact binomial test at 1 - 1e-4, seed fixed; and the order decides uniformly who is first."""
    rows = 4000
    (noise,) = dealer(2, seed=3).draw(ChoiceNoise((rows, 3), 0.3, 16))
    clear = noise[0] + noise[1]
    lifted = (clear >> np.uint64(16)).sum(axis=0)
    assert stats.binomtest(int(lifted.sum()), rows, 0.3).pvalue > 1e-4
    assert stats.chisquare(lifted).pvalue > 1e-4
    orders = Counter(tuple(row) for row in (clear & np.uint64(0xFFFF)).tolist())
    assert len(orders) == 6 and stats.chisquare(list(orders.values())).pvalue > 1e-4


@pytest.mark.parametrize("eps", [0.01, 0.3, 0.97])
def test_exploration_is_as_often_as_eps_says_and_uniform_whoever_explores(eps: float) -> None:
    """Exact binomial test of the coin; chi-square of the arm, apart for both coins; each at 1 - 1e-4, seed fixed.

    The scores are uniform by Kolmogorov and Smirnov, at 1 - 1e-4.
    """
    item = Exploration((20, 1000, 4), eps, 20)
    explores, scores = (rows[0] + rows[1] for rows in dealer(2, seed=6).draw(item))
    assert stats.binomtest(int(explores.sum()), 20_000, eps).pvalue > 1e-4
    assert stats.kstest(scores.reshape(-1) * 2.0**-20, "uniform").pvalue > 1e-4
    chosen = scores.argmax(axis=-1)
    for coin in (0, 1):
        assert stats.chisquare(np.bincount(chosen[explores == coin], minlength=4)).pvalue > 1e-4
    neighbours = np.corrcoef(explores[:, 1:].reshape(-1), explores[:, :-1].reshape(-1))[0, 1]
    assert abs(neighbours) < 5 / np.sqrt(20_000), "one coin says nothing of the next"


@pytest.mark.parametrize(("deviation", "scale"), [(1.0, 20), (0.3, 20), (7.0, 30), (1.0, 4)])
def test_normal_draws_are_normal(deviation: float, scale: int) -> None:
    """100,000 draws, each test at 1 - 1e-4: mean, variance, the whole law by Kolmogorov and Smirnov, and the tails."""
    count = 100_000
    (rows,) = dealer(2, seed=8).draw(Gaussian((count,), deviation, scale))
    z = (rows[0] + rows[1]).view(np.int64) * 2.0**-scale / deviation
    rounding = 2.0**-scale / deviation
    assert abs(z.mean()) < 3.9 / np.sqrt(count)
    variance = 1 + rounding**2 / 12
    assert stats.chi2.sf(count * z.var() / variance, count - 1) > 1e-4
    assert stats.chi2.cdf(count * z.var() / variance, count - 1) > 1e-4
    if rounding < 1e-3:
        assert stats.kstest(z, "norm").pvalue > 1e-4
    for limit in (2.0, 3.0, 4.0):
        edge = (np.floor(limit / rounding) + 0.5) * rounding  # between two values on the grid
        assert stats.binomtest(int((np.abs(z) > edge).sum()), count, 2 * stats.norm.sf(edge)).pvalue > 1e-4
    assert abs(np.corrcoef(z[1:], z[:-1])[0, 1]) < 4 / np.sqrt(count)
    assert abs(np.corrcoef(z[1:] ** 2, z[:-1] ** 2)[0, 1]) < 4 / np.sqrt(count)


class Words(Prg):
    """A stream that gives the same word over and over."""

    __slots__ = ("word",)

    def __init__(self, word: int) -> None:
        super().__init__(bytes(16))
        self.word = word

    def words(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.full(shape, self.word, np.uint64)


def test_a_normal_draw_ends_at_eight_deviations() -> None:
    """The smallest uniform number gives a radius of 8.65, at angle 0; the largest of them gives nearly 0."""
    for deviation, scale in ((1.0, 20), (0.25, 30)):
        (cut,) = dealt_words(Gaussian((3,), deviation, scale), (), Words(0))
        assert (cut.view(np.int64) == int(8 * deviation * 2**scale)).all()
        (least,) = dealt_words(Gaussian((3,), deviation, scale), (), Words(TOP - 1))
        assert (np.abs(least.view(np.int64)) <= 1).all()
    (half,) = dealt_words(Gaussian((1,), 1.0, 20), (), Words(1 << 63))
    assert half.view(np.int64)[0] == round(-np.sqrt(2 * np.log(2)) * 2**20)


@pytest.mark.parametrize("item", [Gaussian((4,), 1e12, 30), Gaussian((4,), np.inf, 20)], ids=name)
def test_normal_draws_that_do_not_fit_are_refused(item: Gaussian) -> None:
    with np.errstate(invalid="ignore"), pytest.raises(RangeError, match=r"do not fit (20|30) fraction bits"):
        dealer(2).make(item)


COINS: list[Correlation] = [
    ChoiceNoise((3, 5), 0.5, 16), Permutation((2, 9)), UniformNumber((5,), 64), Exploration((9, 4), 0.5, 16),
    Gaussian((6,), 1.0, 20),
]  # fmt: skip
MASKS: list[Correlation] = [SquareMask((3,)), SignTables((2,), 40), EqualTables((3,), 20), LookupMask((9,), CUBES)]


def clear_words(made: TrustedDealer, item: Correlation) -> list[bytes]:
    """The clear dealt fields, as sums or XORs of the rows."""
    fields = layout(item).views(made.make(item))[len(item.free()) :]
    return [
        (np.bitwise_xor if part.xor else np.add).reduce(rows, axis=0, dtype=rows.dtype).tobytes()
        for part, rows in zip(item.dealt(), fields, strict=True)
    ]


def test_kinds_say_which_of_them_are_coins() -> None:
    """Coins have no free field: nothing else than the coin stream decides them."""
    assert {type(item) for item in COINS} == {kind for kind in KINDS.values() if kind.coins}
    assert all(item.free() == () for item in COINS)


def test_coins_come_from_a_stream_of_their_own(parties: int) -> None:
    """The same coin key under fresh keys: the same coins, and other masks, in every block."""
    first, second, other = (TrustedDealer(parties, coin_key=key) for key in (b"c" * 16, b"c" * 16, b"d" * 16))
    for block in (0, 3):
        for made in (first, second, other):
            made.enter(block)
        for coin, mask in itertools.zip_longest(COINS, MASKS):
            ours, again, others = (made.make(coin) for made in (first, second, other))
            assert (ours != again).any(), "the shares are fresh"
            ours, again, others = (np.add.reduce(rows.view(np.uint64), axis=0) for rows in (ours, again, others))
            assert (ours == again).all() and (ours != others).any()
            if mask is not None:
                assert clear_words(first, mask) != clear_words(second, mask)


def test_coins_do_not_depend_on_the_masks_between_them() -> None:
    coins_only, among = (TrustedDealer(2, coin_key=b"c" * 16) for _ in range(2))
    for coin, mask in zip(COINS, itertools.cycle(MASKS)):
        among.make(mask)
        assert clear_words(coins_only, coin) == clear_words(among, coin)


def test_masks_do_not_depend_on_the_coins() -> None:
    """Same keys but for the coins': every mask is the same, to the byte."""
    keys = {"keys": [b"a" * 16, b"b" * 16], "own_key": b"o" * 16}
    first, second = (TrustedDealer(2, **keys, coin_key=key) for key in (b"c" * 16, b"d" * 16))
    for coin, mask in zip(COINS, itertools.cycle(MASKS)):
        assert (first.make(coin) != second.make(coin)).any()
        assert (first.make(mask) == second.make(mask)).all()


@pytest.mark.parametrize("first", [1, 5, 2**40])
def test_a_dealer_that_goes_on_deals_the_coins_of_later_blocks(first: int) -> None:
    """Block b of its masks goes with block first + b of the coins."""
    whole, rest = TrustedDealer(2, coin_key=b"c" * 16), TrustedDealer(2, coin_key=b"c" * 16, first_coins=first)
    for block in (0, 2):
        whole.enter(first + block)
        rest.enter(block)
        assert [clear_words(whole, coin) for coin in COINS] == [clear_words(rest, coin) for coin in COINS]
    keys = {"keys": [b"a" * 16, b"b" * 16], "own_key": b"o" * 16, "coin_key": b"c" * 16}
    plain, shifted = TrustedDealer(2, **keys), TrustedDealer(2, **keys, first_coins=first)
    assert all((plain.make(mask) == shifted.make(mask)).all() for mask in MASKS)


def test_what_is_opened_between_tables_of_equality_is_masked() -> None:
    """One fixed entry of each table, over many items: uniform bits, at 1 - 1e-4."""
    item = EqualTables((3000,), 30)
    entries = joined(item, dealer(2, seed=9).draw(item))[1][:, 77].astype(int)
    assert stats.chisquare(np.bincount(entries & 0x0F, minlength=16)).pvalue > 1e-4


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.sampled_from(N), st.integers(0, len(SHAPED) - 1))
def test_blocks_are_independent_of_what_came_before(block: int, other: int, parties: int, which: int) -> None:
    made = dealer(parties)
    made.enter(block)
    first = made.make(SHAPED[which])
    made.enter(other)
    second = made.make(SHAPED[which])
    made.enter(block)
    assert (made.make(SHAPED[which]) == first).all()
    assert block == other or (first != second).any()


@pytest.mark.parametrize(
    "item",
    [
        Permutation((100, 8)), ChoiceNoise((100, 8), 0.5, 16), UniformNumber((9,), 64), Exploration((400, 2), 0.5, 64),
        Gaussian((9,), 1.0, 20),
    ],
    ids=name,
)  # fmt: skip
def test_the_dealers_own_coins_are_fresh_in_every_item_and_block(item: Correlation) -> None:
    made = dealer(2)
    seen = set()
    for block in range(3):
        made.enter(block)
        for _ in range(2):
            seen.add(np.add.reduce(made.draw(item)[0], axis=0, dtype=np.uint64).tobytes())
    assert len(seen) == 6


def test_the_seeded_dealer_gives_each_process_its_row(parties: int) -> None:
    whole = dealer(parties, seed=4)
    alone = [InsecureSeededDealer(parties, 4, party=p) for p in range(parties)]
    for item in ITEMS[::5]:
        rows = whole.draw(item)
        for party, one in enumerate(alone):
            for ours, theirs in zip(one.draw(item), rows, strict=True):
                assert ours.shape[0] == 1 and (ours[0] == theirs[party]).all()


def agree(sources: list[Any]) -> None:
    statements = [source.statement().ljust(64, b"\0") for source in sources]
    assert all(len(statement) == 64 for statement in statements)
    for source in sources:
        source.agree(statements)


def test_seeded_dealers_agree_on_a_seed_and_on_who_is_who(parties: int) -> None:
    agree([InsecureSeededDealer(parties, 4, party=p) for p in range(parties)])
    with pytest.raises(ConfigError, match="party 1 deals from another seed"):
        agree([InsecureSeededDealer(parties, 4 + (p == 1), party=p) for p in range(parties)])
    with pytest.raises(ConfigError, match="party 1 takes another party's row"):
        agree([InsecureSeededDealer(parties, 4, party=0) for _ in range(parties)])
    with pytest.raises(ConfigError, match="party 1 takes another party's row"):
        agree([InsecureSeededDealer(parties, 4) for _ in range(parties)])
    with pytest.raises(ConfigError, match="another source"):
        agree([InsecureSeededDealer(parties, 4, party=0), *(InProcessDealer(parties) for _ in range(parties - 1))])


def test_an_in_process_dealer_serves_one_process_only(parties: int) -> None:
    one = InProcessDealer(parties)
    agree([one] * parties)
    with pytest.raises(ConfigError, match="one process that hosts all"):
        agree([InProcessDealer(parties) for _ in range(parties)])


def test_a_session_of_all_parties_refuses_a_dealer_of_one_row() -> None:
    with pytest.raises(ConfigError, match="takes another party's row"):
        Session(Memory(2), InsecureSeededDealer(2, 1, party=0))


@pytest.mark.parametrize("make", [
    lambda: TrustedDealer(1),
    lambda: TrustedDealer(3, keys=[bytes(16)] * 2),
    lambda: TrustedDealer(2, keys=[bytes(15)] * 2),
    lambda: TrustedDealer(2, coin_key=bytes(15)),
    lambda: TrustedDealer(2, coin_key=b""),
    lambda: TrustedDealer(2, own_key=b""),
    lambda: InProcessDealer(2, coin_key=b""),
    lambda: InsecureSeededDealer(2, -1),
    lambda: InsecureSeededDealer(2, 1 << 128),
    lambda: InsecureSeededDealer(2, 1, party=2),
])  # fmt: skip
def test_dealers_that_cannot_be(make: Any) -> None:
    with pytest.raises(ConfigError):
        make()


def test_an_unknown_kind_is_refused_by_name() -> None:
    class Surprise(SquareMask):
        pass

    class Stranger(Correlation):
        def free(self) -> tuple[Any, ...]:
            return ()

        def dealt(self) -> tuple[Any, ...]:
            return ()

    assert dealer(2).draw(Surprise((2,)))[0].shape == (2, 2)  # a subclass is made as its base
    with pytest.raises(ConfigError, match="Stranger"):
        dealer(2).make(Stranger())
    with pytest.raises(ConfigError, match="Stranger"):
        dealt_words(Stranger(), (), None)  # type: ignore[arg-type]


KEY = b"\xabSECRET-KEY-16b!"


@pytest.mark.parametrize("holder", [
    TrustedDealer(2, keys=[KEY, KEY], own_key=KEY, coin_key=KEY),
    InProcessDealer(2, keys=[KEY, KEY], own_key=KEY, coin_key=KEY),
    InsecureSeededDealer(2, int.from_bytes(KEY, "big") >> 1),
    Expander(KEY, party=0),
], ids=lambda holder: type(holder).__name__)  # fmt: skip
def test_keys_are_not_shown_and_not_pickled(holder: Any) -> None:
    assert "SECRET" not in repr(holder) and KEY.hex() not in repr(holder) and "key" not in repr(holder).lower()
    for dump in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="never pickled"):
            dump(holder)
