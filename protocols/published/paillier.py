"""Paillier's encryption (EUROCRYPT '99) of signed integers.  The one door to phe and gmpy2; knows no protocol.
`classic/roles` of SAMBA and of LinUCB-DS use it.

    E(m) = (1 + n)^m r^n mod n^2,     E(a) E(b) = E(a + b),     E(a)^c = E(c a)

phe makes keys and says what a ciphertext is; lists are worked on with gmpy2 directly.  phe is GPLv3: it comes with the
extra `paillier` alone.

A ciphertext here is an integer without an exponent, always of the same length on a wire.  What is computed from
ciphertexts is a deterministic function of them, which an observer can test guesses with, so whatever leaves its maker
is multiplied by a fresh r^n first (`rerandomise`).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mpc.errors import ConfigError, RangeError
from mpc.extras import missing
from mpc.prg import Unshared

from .cores import Cores

try:
    import gmpy2  # type: ignore[import-untyped,import-not-found,unused-ignore]
    from phe import paillier as phe  # type: ignore[import-untyped,import-not-found,unused-ignore]
except ImportError:  # the extra is not installed
    gmpy2 = phe = None

KEY_BITS = 2048
LEAST_BITS = 1024
_TINY_BITS = 128  # for tests: room for a plaintext, no secrecy at all
_FINGERPRINT = 8
_MIXED_ROWS = 8  # of the pool: 8 x 8 random r^n
_TABLE_BYTES = 64 << 20

Integer = Any
"""A gmpy2.mpz; int where gmpy2 meets the rest of the world."""


@dataclass
class Counts:
    """Operations on ciphertexts: with a plaintext that is public to its maker, an addition is one as well.

    multiplications: of a ciphertext by a public integer.  rerandomisations: products with a fresh r^n.
    """

    encryptions: int = 0
    decryptions: int = 0
    additions: int = 0
    multiplications: int = 0
    rerandomisations: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, part.name) - getattr(other, part.name) for part in fields(self)))


def require_packages() -> None:
    """An error with the cure where the extra is missing."""
    if gmpy2 is None:
        raise missing("phe", "Paillier")


def check_bits(bits: int, *, insecure: bool = False) -> None:
    """Keys of at least 1024 bits; below it only where the caller says that nothing is protected."""
    least = _TINY_BITS if insecure else LEAST_BITS
    if bits < least:
        cure = "" if insecure else ", or from Python say insecure=True"
        raise ConfigError(f"a key of {bits} bits hides nothing: choose at least {least}{cure}")
    if bits % 16 or bits > 1 << 14:
        raise ConfigError(f"a key of {bits} bits: choose a multiple of 16 up to {1 << 14}, such as {KEY_BITS}")


@dataclass(frozen=True)
class PublicKey:
    """n, and how long what belongs to it is on a wire."""

    n: int

    @property
    def bits(self) -> int:
        """Of n."""
        return self.n.bit_length()

    @property
    def fingerprint(self) -> bytes:
        """8 bytes that tell keys apart."""
        return hashlib.sha256(self.to_bytes()).digest()[:_FINGERPRINT]

    @property
    def ciphertext_bytes(self) -> int:
        """Of a ciphertext, always."""
        return self.bits // 4

    def to_bytes(self) -> bytes:
        """n, big end first."""
        return self.n.to_bytes(self.bits // 8, "big")

    @classmethod
    def from_bytes(cls, raw: bytes, *, bits: int, sender: str) -> PublicKey:
        """The key that `sender` sent, which is to have `bits`."""
        n = int.from_bytes(raw, "big")
        if 8 * len(raw) != bits or n.bit_length() != bits:
            raise ConfigError(
                f"{sender} sent a modulus of {n.bit_length()} bits in {len(raw)} bytes where {bits} bits were agreed "
                "on: give all participants the same key size"
            )
        if n % 2 == 0 or gmpy2.is_prime(n) or gmpy2.is_power(n):
            raise ConfigError(f"{sender} sent a modulus that is no product of two odd primes: make a new key")
        return cls(n)

    def pack(self, ciphertexts: Iterable[Integer]) -> bytes:
        """Ciphertexts side by side."""
        size = self.ciphertext_bytes
        return b"".join(int(ciphertext).to_bytes(size, "big") for ciphertext in ciphertexts)

    def unpack(self, raw: bytes, *, sender: str) -> list[Integer]:
        """Ciphertexts that `sender` sent: each in (0, n^2) and prime to n."""
        size, square = self.ciphertext_bytes, gmpy2.mpz(self.n) ** 2
        values = [gmpy2.mpz.from_bytes(raw[at : at + size], "big") for at in range(0, len(raw), size)]
        product = gmpy2.mpz(1)
        for place, value in enumerate(values):
            if not 0 < value < square:
                raise RangeError(f"ciphertext {place} of {sender} is not below n^2: it belongs to another key")
            product = product * value % self.n
        if gmpy2.gcd(product, self.n) != 1:
            raise RangeError(f"a ciphertext of {sender} is not prime to n: no encryption gives it")
        return values

    def __repr__(self) -> str:
        return f"PublicKey({self.bits} bits, {self.fingerprint.hex()})"


class SecretKey:
    """Decrypts, modulo p and q apart; never leaves its process."""

    def __init__(self, key: Any, counts: Counts | None = None) -> None:
        self.public = PublicKey(int(key.public_key.n))
        self.counts = Counts() if counts is None else counts
        p, q = (gmpy2.mpz(prime) for prime in (key.p, key.q))
        self._key, self._halves = key, ((p, p * p, gmpy2.mpz(key.hp)), (q, q * q, gmpy2.mpz(key.hq)))

    @classmethod
    def generate(cls, bits: int = KEY_BITS, *, insecure: bool = False, counts: Counts | None = None) -> SecretKey:
        """Fresh, from the system's randomness."""
        require_packages()
        check_bits(bits, insecure=insecure)
        return cls(phe.generate_paillier_keypair(n_length=bits)[1], counts)

    def decrypt(self, ciphertexts: Sequence[Integer], *, bits: int | None = None) -> list[int]:
        """Plaintexts in (-n/2, n/2).

        bits: of plaintexts that are known to be short, sign included.  m mod p says as much as m then, in half the
        time.  What was not short comes out as any value below p/2: whoever can make it one that passes for short, by
        another multiple of p than 0, has factored n.
        """
        with Cores(1, self.short, self.long) as alone:
            return self.decrypt_on(alone, ciphertexts, bits=bits)

    def decrypt_on(self, cores: Cores, ciphertexts: Sequence[Integer], *, bits: int | None = None) -> list[int]:
        """The same, spread over cores that take `short` and `long`."""
        self.counts.decryptions += len(ciphertexts)
        short = bits is not None and bits < self._halves[0][0].bit_length()
        return cores.map(self.short if short else self.long, [(ciphertext,) for ciphertext in ciphertexts])

    def short(self, ciphertext: Integer) -> int:
        """A plaintext modulo p, signed."""
        return _signed(_modulo_prime(ciphertext, *self._halves[0]), self._halves[0][0])

    def long(self, ciphertext: Integer) -> int:
        """A plaintext modulo n, signed."""
        return _signed(self._key.crt(*(_modulo_prime(ciphertext, *half) for half in self._halves)), self.public.n)

    def __repr__(self) -> str:
        return f"SecretKey(of {self.public})"

    def __reduce__(self) -> str:
        raise TypeError("a secret key is never pickled")


class Encryptor(Unshared):
    """What can be done with a public key alone.

    pooled: where many ciphertexts leave, r^n come from a pool.  One is then a product of one entry from each row of a
    table, chosen by a fresh random byte each:

        h^a for a of |n| / 2 bits, h = r^n:   256 powers in each row
        a random subset of 64 other r^n:      8 of them in each of 8 rows, as their 256 products

    The first part is that of Damgard, Jurik and Nielsen (2010), who take powers with exponents of that length for
    uniform ones.  The second covers the few classes that powers of h leave out, Jacobi's symbol among them, which
    anybody can compute.  Together they cost a twentieth of a power.

    Those that are ready serve once, so a forked half is refused; `obfuscator` alone, always fresh, is for helpers too.
    """

    def __init__(self, public: PublicKey, counts: Counts | None = None, *, pooled: bool = False) -> None:
        super().__init__()
        require_packages()
        self.public, self.counts = public, Counts() if counts is None else counts
        self._pooled = pooled
        self.square = gmpy2.mpz(public.n) ** 2
        self._rows: list[list[Integer]] = []
        self._ready: list[Integer] = []

    def encrypt(self, values: Iterable[int]) -> list[Integer]:
        """Fresh encryptions of signed integers."""
        nude = [self._nude(value) for value in values]
        self.counts.encryptions += len(nude)
        return self._obfuscated(nude)

    def rerandomise(self, ciphertexts: Sequence[Integer]) -> list[Integer]:
        """Other ciphertexts of the same plaintexts, which nobody without the secret key can link to these."""
        self.counts.rerandomisations += len(ciphertexts)
        return self._obfuscated(ciphertexts)

    def add(self, left: Integer, right: Integer) -> Integer:
        """E(a + b)."""
        self.counts.additions += 1
        return left * right % self.square

    def add_public(self, ciphertext: Integer, value: int) -> Integer:
        """E(a + b) for a public b, without randomness of its own."""
        self.counts.additions += 1
        return ciphertext * self._nude(value) % self.square

    def multiply(self, ciphertext: Integer, factor: int) -> Integer:
        """E(c a)."""
        self.counts.multiplications += 1
        return gmpy2.powmod(ciphertext, factor, self.square)

    def fill(self, count: int, cores: Cores | None = None) -> None:
        """Have so many obfuscators ready, made while others are waited for.  cores: that take `obfuscator`."""
        missing = [()] * (count - len(self._ready))
        made = [self.obfuscator() for _ in missing] if cores is None else cores.map(self.obfuscator, missing)
        self._ready += map(gmpy2.mpz, made)

    def _nude(self, value: int) -> Integer:
        return (1 + value * self.public.n) % self.square

    def _obfuscated(self, ciphertexts: Sequence[Integer]) -> list[Integer]:
        self.require_own()
        self.fill(len(ciphertexts))
        fresh = [self._ready.pop() for _ in ciphertexts]
        return [ciphertext * obfuscator % self.square for ciphertext, obfuscator in zip(ciphertexts, fresh)]

    def obfuscator(self) -> Integer:
        """A fresh r^n."""
        if not self._pooled:
            return self._power()
        rows = self._pool()
        product, square = gmpy2.mpz(1), self.square
        for row, byte in zip(rows, os.urandom(len(rows))):
            product = product * row[byte] % square
        return product

    def _pool(self) -> list[list[Integer]]:
        if not self._rows:
            self._rows = power_rows(self._power(), rows=self.public.bits // 16, bits=8, modulus=self.square)
            self._rows += [self._subsets() for _ in range(_MIXED_ROWS)]
        return self._rows

    def _subsets(self) -> list[Integer]:
        products = [gmpy2.mpz(1)]
        for _ in range(8):
            power = self._power()
            products += [product * power % self.square for product in products]
        return products

    def _power(self) -> Integer:
        """A uniform r^n."""
        n = gmpy2.mpz(self.public.n)
        while True:
            r = gmpy2.mpz.from_bytes(os.urandom(self.public.bits // 8 + _FINGERPRINT), "big") % n
            if gmpy2.gcd(r, n) == 1:
                return gmpy2.powmod(r, n, self.square)

    def __repr__(self) -> str:
        return f"Encryptor({self.public})"


class LinearForms:
    """E(sum_j c_j m_j) for many public integer rows c and the same ciphertexts E(m_j): a table of powers for each.

        E(m_j)^c_j = product over the digits of c_j + 2^bits;     the 2^bits are taken away by one constant factor

    bits: |c_j| < 2^bits.  uses: how many rows will come, which decides how wide a digit is.
    """

    def __init__(self, encryptor: Encryptor, ciphertexts: Sequence[Integer], *, bits: int, uses: int) -> None:
        self._encryptor, self._bits = encryptor, bits
        square, count = encryptor.square, len(ciphertexts)
        self._digit = _best_digit(bits + 1, count, uses, entry=2 * encryptor.public.ciphertext_bytes)
        rows = -(-(bits + 1) // self._digit)
        self._tables = [power_rows(c, rows=rows, bits=self._digit, modulus=square) for c in ciphertexts]
        whole = gmpy2.mpz(1)
        for ciphertext in ciphertexts:
            whole = whole * ciphertext % square
        self._start = gmpy2.powmod(whole, -(1 << bits), square)

    def of(self, coefficients: Sequence[int]) -> Integer:
        """E(sum_j c_j m_j), not yet fit to leave: `rerandomise` it."""
        with Cores(1, self.form) as alone:
            (form,) = self.all_of([coefficients], alone)
        return form

    def all_of(self, rows: Sequence[Sequence[int]], cores: Cores) -> list[Integer]:
        """The same of each row, spread over cores that take `form`."""
        shift, limit = 1 << self._bits, 1 << (self._bits + 1)
        above = [[coefficient + shift for coefficient in row] for row in rows]
        if not all(0 <= rest < limit for row in above for rest in row):
            raise RangeError(f"a coefficient needs more than {self._bits} bits: declare more")
        counts = self._encryptor.counts
        counts.multiplications += len(rows) * len(self._tables)
        counts.additions += len(rows) * (len(self._tables) - 1)
        return [gmpy2.mpz(form) for form in cores.map(self.form, above)]

    def form(self, *above: int) -> Integer:
        """E(sum_j c_j m_j) from each c_j + 2^bits, not counted."""
        digit, square, product = self._digit, self._encryptor.square, self._start
        mask = (1 << digit) - 1
        for table, number in zip(self._tables, above, strict=True):
            rest = number
            for row in table:
                if entry := rest & mask:
                    product = product * row[entry] % square
                rest >>= digit
        return product


def power_rows(base: Integer, *, rows: int, bits: int, modulus: Integer) -> list[list[Integer]]:
    """rows[i][e] = base^(e 2^(bits i))."""
    table = []
    for _ in range(rows):
        row = [gmpy2.mpz(1)]
        for _ in range((1 << bits) - 1):
            row.append(row[-1] * base % modulus)
        table.append(row)
        base = row[-1] * base % modulus
    return table


def _best_digit(bits: int, bases: int, uses: int, *, entry: int) -> int:
    """The width that takes the fewest products, of those whose tables fit."""

    def work(digit: int) -> int:
        return -(-bits // digit) * ((1 << digit) + uses)

    def fits(digit: int) -> bool:
        return bases * -(-bits // digit) * (entry << digit) <= _TABLE_BYTES

    return min((digit for digit in range(1, 13) if digit == 1 or fits(digit)), key=work)


def _modulo_prime(ciphertext: Integer, p: Integer, square: Integer, h: Integer) -> Integer:
    """m mod p = L(c^(p-1) mod p^2) h mod p, L(x) = (x - 1) / p."""
    return (gmpy2.powmod(ciphertext % square, p - 1, square) - 1) // p * h % p


def _signed(value: Integer, modulus: Integer) -> int:
    return int(value if value <= modulus // 2 else value - modulus)
