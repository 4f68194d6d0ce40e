"""What the participants of classic SAMBA send each other, as bytes of fixed sizes.  Knows layouts; no protocol.

    head: magic, version, kind, iteration, rows, step, length of the rest

A process that hosts several owners sends all their messages as one: `rows` of them, side by side.
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from enum import IntEnum

import numpy as np

from mpc.errors import Desync

from ...published.frame import Frame, Message
from ...published.paillier import PublicKey
from ..owners import LocalPolicy
from ..policies import local_policy

_ORDER = struct.Struct("<QIQI")
_REFUSAL = struct.Struct("<BIQ")

CONTROLLER, COMP, CUSTOMER = "Controller", "Comp", "DC"


class Kind(IntEnum):
    """What a message is."""

    ORDER = 1
    SCORES = 2
    EXPLORE = 3
    ANSWERS = 4
    REFUSED = 5
    STOP = 6
    SUMS = 7


class Why(IntEnum):
    """Why Comp refuses a list."""

    FORGED = 1
    REPLAYED = 2
    UNFIT = 3
    ALL_ZERO = 4
    SLOTS = 5


_FRAME = Frame(b"MBsa", 1, Kind, "BxIQ")
HEAD = _FRAME.head
_OF_A_STEP = {Kind.SCORES, Kind.EXPLORE, Kind.ANSWERS, Kind.REFUSED}
_BY_ROW = {Kind.SCORES, Kind.EXPLORE, Kind.ANSWERS, Kind.SUMS}


@dataclass(frozen=True)
class Spec:
    """A policy by its name and constants, as DC orders it.

    zeros: where a step explores, owners send a score of 0, as in the text of the paper; else none, as in its code.
    """

    name: str
    eps: float = 0.1
    tau: float = 0.06
    beta: float = 0.1
    zeros: bool = False

    def policy(self) -> LocalPolicy:
        """As owners play it."""
        return local_policy(self.name, eps=self.eps, tau=self.tau, beta=self.beta, zeros=self.zeros)


@dataclass(frozen=True)
class Order:
    """What DC orders, and the Controller passes on.  start: steps that were done in an earlier sitting."""

    spec: Spec
    budget: int
    key: PublicKey
    arms: int = 0
    start: int = 0


def pack(kind: Kind, rest: bytes = b"", *, t: int = 0, iteration: int = 0, rows: int = 0) -> bytes:
    """A message."""
    return _FRAME.pack(kind, rest, iteration, rows, t)


def unpack(raw: bytes, sender: str, *kinds: Kind, t: int = 0, iteration: int = 0, rows: int = 0) -> Message:
    """A message of one of these kinds; where it belongs to a step, of this one and of this iteration."""
    message = _FRAME.unpack(raw, sender, kinds)
    kind, (has_iteration, has_rows, has_t) = message.kind, message.fields
    if kind in _OF_A_STEP and (has_t != t or has_iteration != iteration):
        older = "a replay" if (has_t, has_iteration) < (t, iteration) else "run the same release everywhere"
        raise Desync(
            f"{sender} sent {kind.name} of step {has_t}, iteration {has_iteration}, where step {t}, iteration "
            f"{iteration}, is due: {older}"
        )
    if kind in _BY_ROW and has_rows != rows:
        raise Desync(f"{sender} sent {kind.name} of {has_rows} owners where those of {rows} are due")
    return message


def pack_order(order: Order) -> bytes:
    """Numbers, the policy as JSON, DC's public key."""
    spec = json.dumps(asdict(order.spec)).encode()
    numbers = _ORDER.pack(order.budget, order.arms, order.start, len(spec))
    return pack(Kind.ORDER, numbers + spec + order.key.to_bytes())


def order_of(message: Message, bits: int) -> Order:
    """What `pack_order` packed; the key is to have `bits`."""
    try:
        budget, arms, start, length = _ORDER.unpack_from(message.rest)
        spec = Spec(**json.loads(message.rest[_ORDER.size : _ORDER.size + length]))
    except (struct.error, ValueError, TypeError) as error:
        raise Desync(f"{message.sender} sent an ORDER that cannot be read: run the same release everywhere") from error
    raw = message.rest[_ORDER.size + length :]
    return Order(spec, budget, PublicKey.from_bytes(raw, bits=bits, sender=CUSTOMER), arms, start)


def pack_refusal(why: Why, place: int, more: int, *, t: int, iteration: int) -> bytes:
    """Comp cannot use the message at `place`.  more: the step it was made for, or how many there are."""
    return pack(Kind.REFUSED, _REFUSAL.pack(why, place, more), t=t, iteration=iteration)


def refusal_of(message: Message) -> tuple[Why, int, int]:
    """What `pack_refusal` packed."""
    why, place, more = message.numbers(_REFUSAL)
    return Why(why), place, more


def rows_of(message: Message, rows: int, width: int, slots: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """(rows,) slots, where there are any, and (rows, width) bytes."""
    start = 2 * rows if slots else 0
    raw = message.exactly(start + rows * width)
    named = np.frombuffer(raw, "<u2", rows if slots else 0)
    return named, np.frombuffer(raw, np.uint8, offset=start).reshape(rows, width)
