"""A model of HELBA's encryption, to show what its keys and masks give away: CKKS's ring, far too small to be secure.

    ring        Z_q[X] / (X^n + 1),  q = 2^64
    slots       z_j = m(zeta_j) / 2^40,  zeta_j = exp(i pi (2 j + 1) / n),  j = 0 .. n / 2 - 1
    ciphertext  (b, a),  b = m + e - a s           for a ternary key s and a small error e
    read with s b + a s = m + e

Knows polynomials; no bandit.  Its randomness is a plaintext generator's: nothing here protects anything.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

N = 16  # n
SLOTS = N // 2
_SCALE = 2.0**40
_ERROR = 3.2
_POWERS = np.exp(1j * np.pi / N * np.outer(2 * np.arange(SLOTS) + 1, np.arange(N)))  # zeta_j^k
_TURNS = np.arange(N)[:, None] - np.arange(N)


class Ciphertext(NamedTuple):
    """(..., n) words each."""

    b: np.ndarray
    a: np.ndarray


def encode(values: np.ndarray) -> np.ndarray:
    """(..., n / 2) reals in slots, as coefficients."""
    real = (2.0 / N) * (np.asarray(values) @ _POWERS.conj()).real
    return np.rint(real * _SCALE).astype(np.int64).view(np.uint64)


def decode(coefficients: np.ndarray) -> np.ndarray:
    """The slots of (..., n) coefficients."""
    return np.asarray((signed(coefficients) @ _POWERS.T).real)


def signed(coefficients: np.ndarray) -> np.ndarray:
    """Coefficients as reals, in (-2^63, 2^63) / 2^40."""
    return np.asarray(coefficients.view(np.int64) / _SCALE)


def new_key(rng: np.random.Generator) -> np.ndarray:
    """s."""
    return rng.integers(-1, 2, N).view(np.uint64)


def encrypt(values: np.ndarray, key: np.ndarray, rng: np.random.Generator) -> Ciphertext:
    """(..., n / 2) reals."""
    clear = encode(values)
    a = rng.integers(0, 1 << 64, clear.shape, np.uint64)
    error = np.rint(rng.normal(scale=_ERROR, size=clear.shape)).astype(np.int64).view(np.uint64)
    return Ciphertext(clear + error - _times(a, key), a)


def decrypt(ciphertext: Ciphertext, key: np.ndarray) -> np.ndarray:
    """The coefficients, with their error."""
    return np.asarray(ciphertext.b + _times(ciphertext.a, key))


def constant_mask(ciphertext: Ciphertext, rng: np.random.Generator) -> Ciphertext:
    """As printed: one integer, uniform modulo q, is added as a polynomial, so to the first coefficient."""
    b = ciphertext.b.copy()
    b[..., 0] += rng.integers(0, 1 << 64, b.shape[:-1], np.uint64)
    return Ciphertext(b, ciphertext.a)


def whole_mask(ciphertext: Ciphertext, rng: np.random.Generator) -> Ciphertext:
    """As it should be: an integer for each coefficient."""
    return Ciphertext(ciphertext.b + rng.integers(0, 1 << 64, ciphertext.b.shape, np.uint64), ciphertext.a)


def _times(a: np.ndarray, s: np.ndarray) -> np.ndarray:
    """a s in the ring: X^n = -1."""
    sign = np.where(_TURNS < 0, -1, 1).astype(np.int64).view(np.uint64)
    return np.asarray(a @ (s[_TURNS % N] * sign).T)
