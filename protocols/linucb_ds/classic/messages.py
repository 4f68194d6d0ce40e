"""What the four participants send each other, as bytes of fixed sizes.  Knows layouts and keys; no protocol.

    head: magic, version, kind, fingerprint of the key that ciphertexts belong to (or zeros), length of the rest

Integers of a ciphertext are as long as n^2, reals are 8 bytes, nothing is pickled.  What does not fit is refused with
the sender's name.
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

from ...published.paillier import Integer, PublicKey

_HEAD = struct.Struct("<4sBB8sI")
_MAGIC = b"MBlu"
_VERSION = 1
_NO_KEY = bytes(8)
_SHAPE = struct.Struct("<IIBBBB")
_CONSTANTS = struct.Struct("<5d")
_COUNT = struct.Struct("<Q")
_RANGES = struct.Struct("<IH")
_LINUCB, _SPECTRAL = 0, 1


class Role(Enum):
    """Data owner, data customer, and the two halves of the cloud."""

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


@dataclass(frozen=True)
class Message:
    """A message that has the right length, kind and key."""

    kind: Kind
    sender: Role
    rest: bytes


def pack(kind: Kind, rest: bytes, key: PublicKey | None = None) -> bytes:
    """A message; `key` is the one its ciphertexts belong to."""
    return _HEAD.pack(_MAGIC, _VERSION, kind, _NO_KEY if key is None else key.fingerprint, len(rest)) + rest


def unpack(raw: bytes, sender: Role, *kinds: Kind, key: PublicKey | None = None) -> Message:
    """A message of one of these kinds, its ciphertexts under `key`."""
    due = " or ".join(kind.name for kind in kinds)
    if len(raw) < _HEAD.size:
        raise Desync(f"{sender} sent {len(raw)} bytes where {due} is due: the message is truncated")
    magic, version, number, fingerprint, length = _HEAD.unpack_from(raw)
    if magic != _MAGIC or version != _VERSION:
        raise Desync(f"{sender} sent no message of this version where {due} is due: run the same release everywhere")
    if number not in tuple(kinds):
        name = Kind(number).name if number in set(Kind) else f"kind {number}"
        raise Desync(f"{sender} sent {name} where {due} is due: run the same release everywhere")
    if len(raw) - _HEAD.size != length:
        raise Desync(
            f"{sender} sent {len(raw) - _HEAD.size} of {length} bytes of {Kind(number).name}: the message is truncated"
        )
    if (wanted := _NO_KEY if key is None else key.fingerprint) != fingerprint:
        raise ConfigError(
            f"{sender} sent {Kind(number).name} under the key {fingerprint.hex()} and the key here is {wanted.hex()}: "
            "give it the key of this run"
        )
    return Message(Kind(number), sender, raw[_HEAD.size :])


def pack_ciphertexts(kind: Kind, ciphertexts: Sequence[Integer], key: PublicKey) -> bytes:
    """A list of ciphertexts."""
    return pack(kind, key.pack(ciphertexts), key)


def ciphertexts_of(message: Message, key: PublicKey, count: int) -> list[Integer]:
    """As many ciphertexts as are due, each of which can be one."""
    if len(message.rest) != count * key.ciphertext_bytes:
        raise Desync(
            f"{message.sender} sent {len(message.rest)} bytes of {message.kind.name} where {count} ciphertexts of "
            f"{key.ciphertext_bytes} bytes are due: the message is truncated, or its arms are others"
        )
    return key.unpack(message.rest, sender=str(message.sender))


def pack_number(kind: Kind, value: int) -> bytes:
    """A budget or a position."""
    return pack(kind, _COUNT.pack(value))


def number_of(message: Message) -> int:
    """What `pack_number` packed."""
    return int(_fixed(_COUNT, message)[0])


def pack_ranges(count: int, bits: int) -> bytes:
    """What Comp, or DC, needs to tell a value from garbage: how many values come, or fraction bits; and their bits."""
    return pack(Kind.RANGES, _RANGES.pack(count, bits))


def ranges_of(message: Message) -> tuple[int, int]:
    """What `pack_ranges` packed."""
    count, bits = _fixed(_RANGES, message)
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
    if len(raw) != start + 8 * (nodes + count * dim):
        raise Desync(
            f"{message.sender} announced {count} arms of {dim} dimensions and sent {len(raw) - start} bytes of them: "
            "the message is truncated"
        )
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


def _fixed(layout: struct.Struct, message: Message) -> tuple[int, ...]:
    if len(message.rest) != layout.size:
        raise Desync(
            f"{message.sender} sent {len(message.rest)} bytes of {message.kind.name} where {layout.size} are due: the "
            "message is truncated"
        )
    return tuple(layout.unpack(message.rest))
