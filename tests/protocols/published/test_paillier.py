"""Paillier: agrees with phe, hides what it computed from what, and names whoever sends something unfit."""

from __future__ import annotations

import pickle
import secrets

import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

import gmpy2
from phe import paillier as phe

from mpc.errors import ConfigError, RangeError
from protocols.published import paillier
from protocols.published.paillier import (
    Counts,
    Encryptor,
    LinearForms,
    PublicKey,
    SecretKey,
    check_bits,
    power_rows,
    require_packages,
)
from tests.forks import halves, refused

BITS = 256
VALUES = [0, 1, -1, 5, -7, 1 << 90, -(1 << 90), 123456789]


@pytest.fixture(scope="module")
def key() -> SecretKey:
    return SecretKey.generate(BITS, insecure=True)


@pytest.mark.parametrize("pooled", [False, True])
def test_it_decrypts_what_it_encrypts(key: SecretKey, pooled: bool) -> None:
    encryptor = Encryptor(key.public, pooled=pooled)
    assert key.decrypt(encryptor.encrypt(VALUES)) == VALUES
    largest = key.public.n // 2
    assert key.decrypt(encryptor.encrypt([largest, -largest])) == [largest, -largest]
    assert key.decrypt([]) == []


def test_what_was_made_ready_serves_one_half_of_a_fork() -> None:
    refused(halves("""
from protocols.published.paillier import Encryptor, SecretKey

encryptor = Encryptor(SecretKey.generate(256, insecure=True).public)
encryptor.fill(4)
half("encrypt", lambda: encryptor.encrypt([1]))
half("rerandomise", lambda: encryptor.rerandomise(encryptor.encrypt([1])))
"""))  # fmt: skip


@pytest.mark.parametrize("bits", [8, 100, 127, 128, 200, BITS])
def test_short_plaintexts_take_one_prime(key: SecretKey, bits: int) -> None:
    """Whatever has so many bits, sign included, comes out; from 128 on the primes of this key are too short alone."""
    edge = (1 << (bits - 1)) - 1 if bits < BITS else key.public.n // 2
    values = [0, 1, -1, edge, -edge, *(secrets.randbelow(2 * edge) - edge for _ in range(20))]
    before = key.counts.decryptions
    assert key.decrypt(Encryptor(key.public).encrypt(values), bits=bits) == values
    assert key.counts.decryptions == before + len(values)


def test_a_long_plaintext_does_not_pass_for_a_short_one(key: SecretKey) -> None:
    """200 uniform ones: none is below 2^79 by chance, but with probability 2^-40."""
    long = [secrets.randbelow(key.public.n) for _ in range(200)]
    assert all(abs(value) >= 1 << 79 for value in key.decrypt(Encryptor(key.public).encrypt(long), bits=80))


def test_it_agrees_with_phe() -> None:
    public, private = phe.generate_paillier_keypair(n_length=BITS)
    own = SecretKey(private)
    assert own.decrypt([gmpy2.mpz(public.raw_encrypt(value % public.n)) for value in VALUES]) == VALUES
    ours = Encryptor(own.public).encrypt(VALUES)
    assert [private.raw_decrypt(int(ciphertext)) for ciphertext in ours] == [value % public.n for value in VALUES]


def test_sums_and_products(key: SecretKey) -> None:
    encryptor = Encryptor(key.public)
    a, b = encryptor.encrypt([20, -3])
    results = [encryptor.add(a, b), encryptor.add_public(a, -25), encryptor.multiply(b, 7), encryptor.multiply(b, -7)]
    assert key.decrypt(results) == [17, -5, -21, 21]


@pytest.mark.parametrize(("count", "bits", "uses"), [(1, 1, 1), (3, 31, 10), (5, 33, 10_000), (2, 100, 3)])
def test_linear_forms(key: SecretKey, count: int, bits: int, uses: int) -> None:
    encryptor = Encryptor(key.public)
    secret = [secrets.randbelow(1 << 40) - (1 << 39) for _ in range(count)]
    forms = LinearForms(encryptor, encryptor.encrypt(secret), bits=bits, uses=uses)
    edge = (1 << bits) - 1
    rows = [[0] * count, [edge] * count, [-edge] * count, [1] * count, [-(1 << bits)] * count]
    rows += [[secrets.randbelow(2 * edge) - edge for _ in range(count)] for _ in range(5)]
    assert key.decrypt([forms.of(row) for row in rows]) == [sum(c * m for c, m in zip(row, secret)) for row in rows]
    with pytest.raises(RangeError, match="declare more"):
        forms.of([1 << bits] * count)


def test_power_rows() -> None:
    rows = power_rows(gmpy2.mpz(3), rows=3, bits=2, modulus=gmpy2.mpz(1009))
    assert rows == [[pow(3, e * 4**i, 1009) for e in range(4)] for i in range(3)]


def test_operations_are_counted(key: SecretKey) -> None:
    counts = Counts()
    encryptor = Encryptor(key.public, counts)
    three = encryptor.encrypt([1, 2, 3])
    LinearForms(encryptor, three, bits=8, uses=1).of([4, 5, 6])
    encryptor.add(three[0], encryptor.add_public(three[1], 5))
    encryptor.multiply(three[0], 3)
    encryptor.rerandomise(three[:2])
    assert counts == Counts(encryptions=3, additions=2 + 2, multiplications=3 + 1, rerandomisations=2)
    assert counts + Counts(decryptions=1) == Counts(3, 1, 4, 4, 2)


@pytest.mark.parametrize("pooled", [False, True])
def test_the_same_plaintext_never_looks_the_same(key: SecretKey, pooled: bool) -> None:
    encryptor = Encryptor(key.public, pooled=pooled)
    fixed = encryptor.encrypt([42])
    many = encryptor.encrypt([42] * 40) + encryptor.rerandomise(fixed * 40)
    assert len(set(many)) == 80
    assert set(key.decrypt(many)) == {42}


def test_jacobi_symbols_of_pooled_ciphertexts_are_a_coin(key: SecretKey) -> None:
    """Anybody can compute the symbol, and a power of one base would give its exponent's parity away."""
    encryptor = Encryptor(key.public, pooled=True)
    fixed = encryptor.encrypt([1])
    ups = sum(gmpy2.jacobi(c, key.public.n) == 1 for c in encryptor.rerandomise(fixed * 400))
    assert abs(ups - 200) < 50  # 5 standard deviations


def test_ready_obfuscators_are_used_once(key: SecretKey) -> None:
    encryptor = Encryptor(key.public, pooled=True)
    encryptor.fill(3)
    ready = list(encryptor._ready)
    one = encryptor.encrypt([0])
    assert len(encryptor._ready) == 2 and one[0] == ready[2]
    encryptor.fill(2)
    assert encryptor._ready == ready[:2]


def test_ciphertexts_have_one_length_on_a_wire(key: SecretKey) -> None:
    ciphertexts = [gmpy2.mpz(1), *Encryptor(key.public).encrypt([7])]
    raw = key.public.pack(ciphertexts)
    assert len(raw) == 2 * key.public.ciphertext_bytes == 2 * BITS // 4
    assert key.public.unpack(raw, sender="P") == ciphertexts
    n = key.public.n
    for unfit, words in ((0, "not below"), (n * n, "not below"), (n, "not prime to n"), (3 * n, "not prime to n")):
        bad = key.public.pack([1]) + int(unfit).to_bytes(key.public.ciphertext_bytes, "big")
        with pytest.raises(RangeError, match=words) as caught:
            key.public.unpack(bad, sender="Comp")
        assert "Comp" in str(caught.value)


def test_public_keys_on_a_wire(key: SecretKey) -> None:
    raw = key.public.to_bytes()
    assert PublicKey.from_bytes(raw, bits=BITS, sender="DC") == key.public
    assert len(key.public.fingerprint) == 8
    even = (key.public.n - 1).to_bytes(BITS // 8, "big")
    prime = int(gmpy2.prev_prime(key.public.n)).to_bytes(BITS // 8, "big")
    square = (int(gmpy2.next_prime((1 << 128) - (1 << 64))) ** 2).to_bytes(BITS // 8, "big")
    cases = [(bad, "odd primes") for bad in (even, prime, square)]
    cases += [(bad, "where 256 bits") for bad in (raw[:-1], raw + b"\0", bytes(BITS // 8))]
    for bad, words in cases:
        with pytest.raises(ConfigError, match=words) as caught:
            PublicKey.from_bytes(bad, bits=BITS, sender="DC")
        assert str(caught.value).startswith("DC sent")
    with pytest.raises(ConfigError, match="same key size"):
        PublicKey.from_bytes(raw, bits=2048, sender="DC")


@pytest.mark.parametrize(
    ("bits", "insecure"), [(512, False), (1023, False), (64, True), (1025, False), (1 << 15, False)]
)
def test_key_sizes_that_are_refused(bits: int, insecure: bool) -> None:
    with pytest.raises(ConfigError, match="choose"):
        check_bits(bits, insecure=insecure)
    check_bits(1024)
    check_bits(256, insecure=True)


def test_secrets_do_not_leave_by_accident(key: SecretKey) -> None:
    assert str(int(key._key.p)) not in repr(key) and str(key.public.n) not in repr(key)
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(key)


def test_without_the_extra_the_cure_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paillier, "gmpy2", None)
    with pytest.raises(ConfigError, match="pip install"):
        require_packages()
