"""CKKS (Cheon et al., ASIACRYPT '17) by Microsoft SEAL.  The one door to its package; knows slots, no bandit.

A ciphertext holds N / 2 numbers, its slots, each times a scale, modulo a product of primes.  A product of two
ciphertexts loses one prime, and the level of a ciphertext is how many are left.  A scale is known to both sides: to
declare half of it doubles the numbers and costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from mpc.errors import ConfigError, Desync
from mpc.extras import missing

try:
    import seal  # type: ignore[import-untyped,import-not-found,unused-ignore]
except ImportError:  # the extra is not installed
    seal = None

LEAST = 2  # primes of a ciphertext that leaves: with one, its mask would wrap
Ciphertext = Any
Plain = Any


def require_package() -> None:
    """An error with the cure where the extra is missing."""
    if seal is None or not hasattr(seal, "SEALContext"):
        raise missing("seal", "CKKS")


@dataclass(frozen=True)
class Scheme:
    """degree: N.  products: how many, one after the other, between two refreshes.  security: bits, by SEAL's own guard.

    prime: bits of each prime that a product loses.  low: of the two that are left when a ciphertext leaves, which hold
    a number and its mask.  special: of the last, which serves for keys alone.
    """

    degree: int = 1 << 14
    products: int = 2
    security: int = 128
    prime: int = 58
    special: int = 60
    low: int = 58

    def __post_init__(self) -> None:
        if self.security not in (128, 192, 256):
            raise ConfigError(f"{self.security} bits of security: choose 128, 192 or 256, less protects nobody")
        if self.products < 2 or self.products % 2:
            raise ConfigError(f"{self.products} products between two refreshes: an even number from 2 is needed")

    @classmethod
    def of(cls, degree: int, products: int, security: int) -> Scheme:
        """With primes as large as serve, or as small as do: roundings stay far below those of a mask."""
        usual = cls(degree, products, security)
        return usual if degree > 1 << 13 else cls(degree, products, security, prime=46, special=48, low=39)

    @property
    def slots(self) -> int:
        """Numbers of a ciphertext."""
        return self.degree // 2

    @property
    def top(self) -> int:
        """The level of a fresh ciphertext."""
        return self.products + LEAST

    @cached_property
    def bits(self) -> int:
        """Of all primes."""
        return sum(self._chain)

    @property
    def _chain(self) -> list[int]:
        return [self.low] * LEAST + [self.prime] * self.products + [self.special]

    @cached_property
    def context(self) -> Any:
        """What SEAL made of it; ConfigError where its guard refuses."""
        require_package()
        guard = getattr(seal.sec_level_type, f"tc{self.security}")
        try:
            parameters = seal.EncryptionParameters(seal.scheme_type.ckks)
            parameters.set_poly_modulus_degree(self.degree)
            parameters.set_coeff_modulus(seal.CoeffModulus.Create(self.degree, self._chain))
            context = seal.SEALContext(parameters, True, guard)
            allowed, said = seal.CoeffModulus.MaxBitCount(self.degree, guard), context.parameter_error_message()
            refused = not context.parameters_set()
        except (ValueError, RuntimeError) as error:
            refused, allowed, said = True, 0, str(error)
        if refused:
            raise ConfigError(
                f"SEAL refuses {self.top + 1} primes of {self.bits} bits for degree {self.degree} at {self.security} "
                f"bits of security, where {allowed} are allowed ({said}): ask for fewer products, or a larger degree"
            )
        return context

    @cached_property
    def primes(self) -> list[int]:
        """By level: the one that a product at this level loses."""
        chain = self.context.key_context_data().parms().coeff_modulus()
        return [0, *(prime.value() for prime in chain[:-1])]

    @cached_property
    def encoder(self) -> Any:
        """Of numbers into polynomials."""
        return seal.CKKSEncoder(self.context)

    @cached_property
    def _identities(self) -> list[Any]:
        found, data = [], self.context.first_context_data()
        while data is not None:
            found.append(data.parms_id())
            data = data.next_context_data()
        return [None, *reversed(found)]

    def encode(self, numbers: np.ndarray | float, scale: float, level: int) -> Plain:
        """One number for all slots, or one for each."""
        plain = self.encoder.encode(numbers, scale)
        return self.at(plain, level)

    def at(self, plain: Plain, level: int) -> Plain:
        """The same polynomial at a lower level."""
        return plain if level == self.top else self.evaluator.mod_switch_to(plain, self._identities[level])

    def lowered(self, ciphertext: Ciphertext, level: int) -> Ciphertext:
        """The same numbers with fewer primes."""
        if level_of(ciphertext) <= level:
            return ciphertext
        return self.evaluator.mod_switch_to(ciphertext, self._identities[level])

    @cached_property
    def evaluator(self) -> Any:
        """Needs no key."""
        return seal.Evaluator(self.context)

    def load(self, raw: bytes, sender: str, *, level: int | None = None, scale: float | None = None) -> Ciphertext:
        """A ciphertext that `sender` sent, of this level and scale where they are due."""
        try:
            found = self.context.from_cipher_str(raw)
        except (ValueError, RuntimeError) as error:
            raise _unfit(sender, "what is no ciphertext", error) from None
        if found.size() != 2 or level not in (None, level_of(found)) or scale not in (None, found.scale()):
            raise Desync(
                f"{sender} sent a ciphertext of {level_of(found)} primes and scale {found.scale():.6g} where {level} "
                f"and {scale:.6g} are due: run the same release and options"
            )
        if level_of(found) < LEAST:
            raise Desync(f"{sender} sent a ciphertext with one prime left, whose mask wraps: {LEAST} are due")
        return found


def _unfit(sender: str, what: str, error: Exception) -> Desync:
    return Desync(f"{sender} sent {what} of this run, by SEAL: {error}; run the same release and options everywhere")


def level_of(ciphertext: Ciphertext) -> int:
    """How many primes are left."""
    return int(ciphertext.coeff_modulus_size())


class Vault:
    """The secret key, with whoever may read everything."""

    def __init__(self, scheme: Scheme, raw: bytes | None = None, *, sender: str = "") -> None:
        """raw: a key that `sender` sent; a fresh one otherwise."""
        self.scheme = scheme
        try:
            maker = None if raw is not None else seal.KeyGenerator(scheme.context)
            self._key = scheme.context.from_secret_str(raw) if maker is None else maker.secret_key()
        except (ValueError, RuntimeError) as error:
            raise _unfit(sender, "no secret key", error) from None
        self._maker = maker
        self._encryptor = seal.Encryptor(scheme.context, self._key)
        self._decryptor = seal.Decryptor(scheme.context, self._key)

    def secret(self) -> bytes:
        """For the users alone."""
        return bytes(self._key.to_string())

    def evaluation(self, steps: Sequence[int]) -> tuple[bytes, bytes]:
        """What the server needs to multiply, and to shift by so many slots; reads nothing."""
        assert self._maker is not None, "who was sent a key makes no others"
        galois = seal.GaloisKeys()
        self._maker.create_galois_keys(list(steps), galois)
        return self._maker.create_relin_keys().to_string(), galois.to_string()

    def encrypt(self, numbers: np.ndarray, scale: float, level: int) -> Ciphertext:
        """Fresh."""
        return self.seal(self.scheme.encode(numbers, scale, level))

    def seal(self, plain: Plain) -> Ciphertext:
        """A polynomial, encrypted."""
        return self._encryptor.encrypt_symmetric(plain)

    def decrypt(self, ciphertext: Ciphertext) -> np.ndarray:
        """All slots."""
        return np.asarray(self.scheme.encoder.decode(self._decryptor.decrypt(ciphertext)))

    def __repr__(self) -> str:
        return "Vault(key hidden)"

    def __reduce__(self) -> str:
        raise TypeError("a vault holds a key and is never pickled")


class Cloud:
    """Computes on ciphertexts that it cannot read; two of them meet at the lower one's level."""

    def __init__(self, scheme: Scheme, relin: bytes, galois: bytes, *, sender: str) -> None:
        self.scheme, self._do = scheme, scheme.evaluator
        try:
            self._relin = scheme.context.from_relin_str(relin)
            self._galois = scheme.context.from_galois_str(galois)
        except (ValueError, RuntimeError) as error:
            raise _unfit(sender, "no keys to compute with", error) from None

    def add(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a + b, of one scale up to roundings."""
        level, scale = min(level_of(a), level_of(b)), a.scale()
        assert math.isclose(scale, b.scale(), rel_tol=1e-8), (scale, b.scale())
        return self._do.add(self.scheme.lowered(a, level), self._declared(self.scheme.lowered(b, level), scale))

    def negated(self, a: Ciphertext) -> Ciphertext:
        """-a."""
        return self._do.negate(a)

    def plus(self, a: Ciphertext, numbers: np.ndarray | float) -> Ciphertext:
        """a and public numbers."""
        return self._do.add_plain(a, self.scheme.encode(numbers, a.scale(), level_of(a)))

    def plus_plain(self, a: Ciphertext, plain: Plain, sign: int = 1) -> Ciphertext:
        """a and a polynomial of its scale, or without it."""
        plain = self.scheme.at(plain, level_of(a))
        return self._do.add_plain(a, plain) if sign > 0 else self._do.sub_plain(a, plain)

    def product(self, a: Ciphertext, b: Ciphertext) -> Ciphertext:
        """a b, a level down."""
        level = min(level_of(a), level_of(b))
        raw = self._do.multiply(self.scheme.lowered(a, level), self.scheme.lowered(b, level))
        return self._settled(raw)

    def square(self, a: Ciphertext) -> Ciphertext:
        """a^2, a level down."""
        return self._settled(self._do.square(a))

    def times(self, a: Ciphertext, numbers: np.ndarray | float, level: int, scale: float) -> Ciphertext:
        """Times public numbers: at this level and of this scale, whatever a's."""
        a = self.scheme.lowered(a, level + 1)
        factor = self.scheme.encode(numbers, scale * self.scheme.primes[level + 1] / a.scale(), level + 1)
        done = self._do.rescale_to_next(self._do.multiply_plain(a, factor))
        return self._declared(done, scale)

    def scaled(self, a: Ciphertext, factor: float) -> Ciphertext:
        """Times a positive public number, by its scale alone."""
        return self._declared(a, a.scale() / factor)

    def shift(self, a: Ciphertext, steps: int) -> Ciphertext:
        """Slot i gets what slot i + steps has."""
        return self._do.rotate_vector(a, steps, self._galois)

    def _settled(self, raw: Ciphertext) -> Ciphertext:
        """Rescaled first, relinearising has a prime less to go through; the rounding is then 100 times larger."""
        return self._do.relinearize(self._do.rescale_to_next(raw), self._relin)

    def _declared(self, a: Ciphertext, scale: float) -> Ciphertext:
        declared = seal.Ciphertext(a)
        declared.scale(scale)
        return declared
