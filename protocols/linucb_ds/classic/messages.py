"""What the four participants send each other, as bytes of fixed sizes.  Knows layouts and keys; no protocol.

head: magic, version, kind, fingerprint of the key that ciphertexts belong to (or zeros), length of the rest
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from bandits.fixed_point import Scales, int64, reals
from bandits.linear_problem import Exploration, ProblemError
from bandits.oful import Confidence
from bandits.spectral import SpectralConfidence
from mpc.errors import ConfigError, Desync

from ...published.frame import Frame, Message
from ...published.paillier import Integer, PublicKey

_NO_KEY = bytes(8)
_SHAPE = struct.Struct("<IIBBBB")
_CONSTANTS = struct.Struct("<5d")
_COUNT = struct.Struct("<Q")
_RANGES = struct.Struct("<IH")
_LINUCB, _SPECTRAL = 0, 1


class Role(str, Enum):
    """The two halves of the cloud, data owner and data customer."""

    P = "P"
    COMP = "Comp"
    DO = "DO"
    DC = "DC"

    def __str__(self) -> str:
        return self.value


class Kind(IntEnum):
    """What a message is."""

    KEY = 1
    BUDGET = 2
    PROBLEM = 3
    THETA = 4
    RANGES = 5
    INDICES = 6
    POSITION = 7
    MASKED_SUM = 8
    SWITCHED_SUM = 9
    SUM = 10


_FRAME = Frame(b"MBlu", 1, Kind, "8s")


def pack(kind: Kind, rest: bytes, key: PublicKey | None = None) -> bytes:
    """A message; `key` is the one its ciphertexts belong to."""
    return _FRAME.pack(kind, rest, _NO_KEY if key is None else key.fingerprint)


def unpack(raw: bytes, sender: Role, *kinds: Kind, key: PublicKey | None = None) -> Message:
    """A message of one of these kinds, its ciphertexts under `key`."""
    message = _FRAME.unpack(raw, sender, kinds)
    (fingerprint,) = message.fields
    if (wanted := _NO_KEY if key is None else key.fingerprint) != fingerprint:
        raise ConfigError(
            f"{sender} sent {message.kind.name} under the key {fingerprint.hex()} and the key here is {wanted.hex()}: "
            "give it the key of this run"
        )
    return message


def pack_ciphertexts(kind: Kind, ciphertexts: Sequence[Integer], key: PublicKey) -> bytes:
    """A list of ciphertexts."""
    return pack(kind, key.pack(ciphertexts), key)


def pack_number(kind: Kind, value: int) -> bytes:
    """A budget or a position."""
    return pack(kind, _COUNT.pack(value))


def number_of(message: Message) -> int:
    """What `pack_number` packed."""
    (number,) = message.numbers(_COUNT)
    return int(number)


def pack_ranges(count: int, bits: int) -> bytes:
    """What Comp, or DC, needs to tell a value from garbage: how many values come, or fraction bits; and their bits."""
    return pack(Kind.RANGES, _RANGES.pack(count, bits))


def ranges_of(message: Message) -> tuple[int, int]:
    """What `pack_ranges` packed."""
    count, bits = message.numbers(_RANGES)
    return int(count), int(bits)


@dataclass(frozen=True)
class PublicProblem:
    """What DO outsources in the clear: (K, d) words of arms, constants, scales."""

    arms: np.ndarray
    exploration: Exploration
    scales: Scales


def pack_problem(problem: PublicProblem) -> bytes:
    """Shape, scales, constants, arms."""
    scales, exploration = problem.scales, problem.exploration
    if isinstance(exploration, Confidence):
        kind, last = _LINUCB, (exploration.theta_norm, exploration.arm_norm)
        eigenvalues: tuple[float, ...] = ()
    elif isinstance(exploration, SpectralConfidence):
        kind, last = _SPECTRAL, (exploration.theta_norm, exploration.smoothness)
        eigenvalues = exploration.eigenvalues
    else:
        raise ConfigError(f"constants of LinUCB or SpectralUCB are wanted, not {type(exploration).__name__}")
    shape = _SHAPE.pack(*problem.arms.shape, kind, scales.arm, scales.theta, scales.map)
    constants = _CONSTANTS.pack(exploration.gamma, exploration.delta, exploration.noise, *last)
    more = np.array(eigenvalues, "<f8").tobytes()
    return pack(Kind.PROBLEM, shape + constants + more + int64(problem.arms).astype("<i8").tobytes())


def problem_of(message: Message) -> PublicProblem:
    """What `pack_problem` packed; constants and arms are checked as their owner checked them."""
    raw = message.rest
    start = _SHAPE.size + _CONSTANTS.size
    if len(raw) < start:
        raise Desync(f"{message.sender} sent {len(raw)} bytes of PROBLEM: the message is truncated")
    count, dim, kind, *bits = _SHAPE.unpack_from(raw)
    gamma, delta, noise, theta_norm, other = _CONSTANTS.unpack_from(raw, _SHAPE.size)
    nodes = dim if kind == _SPECTRAL else 0
    message.exactly(start + 8 * (nodes + count * dim), f"{count} arms of {dim} dimensions")
    eigenvalues = tuple(np.frombuffer(raw, "<f8", nodes, start).tolist())
    arms = np.frombuffer(raw, "<i8", count * dim, start + 8 * nodes).astype(object).reshape(count, dim)
    try:
        exploration: Exploration = (
            SpectralConfidence(eigenvalues, gamma, delta, noise, other, theta_norm)
            if kind == _SPECTRAL
            else Confidence(gamma, delta, noise, theta_norm, other)
        )
        return PublicProblem(arms, exploration, Scales(*bits))
    except ProblemError as error:
        raise ConfigError(f"{message.sender} sent a problem that cannot be played: {error}") from error


def clear_arms(problem: PublicProblem) -> np.ndarray:
    """The arms behind their words."""
    return reals(problem.arms, problem.scales.arm)
