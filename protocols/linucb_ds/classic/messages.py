"""What the four participants send each other, as bytes of sizes that are public.  Knows layouts and keys; no protocol.

head: magic, version, kind, fingerprint of the key that ciphertexts belong to (or zeros), length of the rest
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum

import numpy as np

from bandits.fixed_point import Scales, int64, reals
from bandits.linear_problem import Exploration
from mpc.errors import ConfigError, Desync

from ...published.frame import Frame, Message
from ...published.paillier import Integer, PublicKey
from ..constants import as_json, from_json

_NO_KEY = bytes(8)
_SHAPE = struct.Struct("<IIBBBI")
_COUNT = struct.Struct("<Q")
_RANGES = struct.Struct("<IH")


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
    """Shape, scales, constants as JSON, arms."""
    scales, constants = problem.scales, json.dumps(as_json(problem.exploration)).encode()
    shape = _SHAPE.pack(*problem.arms.shape, scales.arm, scales.theta, scales.map, len(constants))
    return pack(Kind.PROBLEM, shape + constants + int64(problem.arms).astype("<i8").tobytes())


def problem_of(message: Message) -> PublicProblem:
    """What `pack_problem` packed; constants and arms are checked as their owner checked them."""
    raw = message.rest
    if len(raw) < _SHAPE.size:
        raise Desync(f"{message.sender} sent {len(raw)} bytes of PROBLEM: the message is truncated")
    count, dim, *bits, length = _SHAPE.unpack_from(raw)
    start = _SHAPE.size + length
    message.exactly(start + 8 * count * dim, f"{count} arms of {dim} dimensions")
    arms = np.frombuffer(raw, "<i8", count * dim, start).astype(object).reshape(count, dim)
    try:
        return PublicProblem(arms, from_json(json.loads(raw[_SHAPE.size : start])), Scales(*bits))
    except (ValueError, TypeError, KeyError) as error:
        raise ConfigError(f"{message.sender} sent a problem that cannot be played: {error}") from error


def clear_arms(problem: PublicProblem) -> np.ndarray:
    """The arms behind their words."""
    return reals(problem.arms, problem.scales.arm)
