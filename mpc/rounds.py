"""Interactive protocols as generators.  Knows what a round may ask for; nothing of networks.

A protocol yields one request, or several as a tuple, and is sent back one result each.  One yield is one round.

    def product(session, x, y):
        ...
        d, e = yield Open(x - a), Open(y - b)

`yield from` runs another protocol in sequence; `together` runs protocols that do not depend on each other in the
same rounds; `labelled` books the cost of one under a name; `supplied` draws what one needs beforehand.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable
from dataclasses import dataclass, field
from types import CodeType, GeneratorType
from typing import TYPE_CHECKING, Any, TypeVar, Union

import numpy as np

from .ledger import EVERYONE
from .meter import Cost

if TYPE_CHECKING:
    from .correlations import Correlation
    from .session import Session
    from .share import BinaryShare, Share

T = TypeVar("T")


@dataclass(slots=True, eq=False)
class Open:
    """Disclose masked words to all parties.  The sum (or XOR) must be uniform: a fresh mask was added.

    words: (hosted, *shape).  bits: the ring they are opened in, reduced to it before they are sent.
    apart: give each party's words instead of their sum, as (parties, *shape); each must be masked by itself.
    """

    words: np.ndarray
    bits: int = 64
    xor: bool = False
    apart: bool = False
    labels: tuple[Cost, ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"Open(shape={self.words.shape[1:]}, bits={self.bits})"


@dataclass(slots=True, eq=False)
class Reveal:
    """Disclose a shared value to a role, and write it in the ledger.  The only way out.

    to: EVERYONE (all computing parties), "party 2", or the name of a client.
    The program gets the value where its process hosts that role's party, and None elsewhere.
    """

    share: Share | BinaryShare
    to: str = EVERYONE
    what: str = "value"
    why: str = "asked by the program"
    torch: bool = False
    labels: tuple[Cost, ...] = field(default=(), repr=False)


@dataclass(slots=True, eq=False)
class Input:
    """Receive a value that a client shares to the parties.  of: as the client says it."""

    role: str
    shape: tuple[int, ...] = ()
    scale: int = 0
    of: str = ""
    labels: tuple[Cost, ...] = field(default=(), repr=False)


Request = Union[Open, Reveal, Input]
Yielded = Union[Request, "tuple[Request, ...]"]
Rounds = Generator[Yielded, Any, T]


class _Member:
    """One program among several that share their rounds."""

    __slots__ = ("program", "result", "running", "width")

    def __init__(self, program: Rounds[Any]) -> None:
        self.program = program
        self.width: int | None = None  # how many requests it last yielded; None for one that is not a tuple
        self.result: Any = None
        self.running = True

    def advance(self, reply: Any, merged: list[Request]) -> None:
        try:
            yielded = self.program.send(reply)
        except StopIteration as stop:
            self.result, self.running = stop.value, False
            return
        if isinstance(yielded, tuple):
            self.width = len(yielded)
            merged.extend(yielded)
        else:
            self.width = None
            merged.append(yielded)


class Together(Generator[Yielded, Any, "tuple[Any, ...]"]):
    """Programs in lock step; a generator itself, so that it composes with `yield from`."""

    __slots__ = ("members",)

    def __init__(self, programs: tuple[Rounds[Any], ...]) -> None:
        self.members = [_Member(program) for program in programs]

    def send(self, value: Any) -> Yielded:
        merged: list[Request] = []
        replies = iter(value) if value is not None else None
        for member in self.members:
            if not member.running:
                continue
            if replies is None:
                reply = None
            elif member.width is None:
                reply = next(replies)
            else:
                reply = tuple(next(replies) for _ in range(member.width))
            member.advance(reply, merged)
        if not any(member.running for member in self.members):
            raise StopIteration(tuple(member.result for member in self.members))
        return tuple(merged)

    def throw(self, *error: Any) -> Yielded:
        self.close()
        raise error[1] if len(error) > 1 and error[1] is not None else error[0]

    def close(self) -> None:
        for member in self.members:
            member.program.close()


def together(*programs: Rounds[Any]) -> Rounds[tuple[Any, ...]]:
    """Run independent programs in the same rounds; the longest decides how many.  Gives their results in order."""
    return Together(programs)


class _Around(Generator[Yielded, Any, Any]):
    """A program with something done around each of its rounds."""

    __slots__ = ("program",)

    def __init__(self, program: Rounds[Any]) -> None:
        self.program = program

    def throw(self, *error: Any) -> Yielded:
        return self.program.throw(*error)

    def close(self) -> None:
        self.program.close()


class Labelled(_Around):
    """A program whose rounds, bytes and seconds are booked under a label of the meter."""

    __slots__ = ("_since", "cost")

    def __init__(self, program: Rounds[Any], cost: Cost) -> None:
        super().__init__(program)
        self.cost = cost
        self._since = 0.0

    def send(self, value: Any) -> Yielded:
        self._since = self._since or time.perf_counter()
        try:
            yielded = self.program.send(value)
        finally:
            now = time.perf_counter()
            self.cost.seconds += now - self._since
            self._since = now
        for request in yielded if isinstance(yielded, tuple) else (yielded,):
            if not any(cost is self.cost for cost in request.labels):  # a label nested in itself books once
                request.labels += (self.cost,)
        return yielded


class Supplied(_Around):
    """A program that has its correlations from a stock of its own."""

    __slots__ = ("_session", "_stock")

    def __init__(self, program: Rounds[Any], session: Session, items: Iterable[Correlation]) -> None:
        super().__init__(program)
        self._session = session
        self._stock = deque([(item, session.draw(item)) for item in items])

    def send(self, value: Any) -> Yielded:
        before, self._session.stock = self._session.stock, self._stock
        try:
            return self.program.send(value)
        finally:
            self._session.stock = before


def pause(rounds: int) -> Rounds[None]:
    """Ask for nothing in so many rounds, where the others of a `together` go on."""
    for _ in range(rounds):
        yield ()


def labelled(session: Session, label: str, program: Rounds[T]) -> Rounds[T]:
    """Book what `program` costs under `session.meter[label]`; labels nest."""
    return Labelled(program, session.meter[label])


def supplied(session: Session, items: Iterable[Correlation], program: Rounds[T]) -> Rounds[T]:
    """Draw now what `program` will draw, in this order: then it may run before others or beside them.

    A plan has one order, and two programs draw in another one side by side than one after the other.
    """
    return Supplied(program, session, items)


_places: dict[tuple[int, int], tuple[CodeType, str]] = {}  # the code is kept, or another could get its number


def _place(program: Any) -> str:
    """function:line of one generator; known by its instruction, which is quicker to ask for than the line."""
    code, frame = program.gi_code, program.gi_frame
    key = id(code), -1 if frame is None else frame.f_lasti
    if (found := _places.get(key)) is None:
        line = code.co_firstlineno if frame is None else frame.f_lineno
        found = _places[key] = code, f"{code.co_name}:{line}"
    return found[1]


def position(program: Any) -> str:
    """Where a suspended program stands: function:line of each level, innermost last, branches in brackets."""
    levels: list[str] = []
    while program is not None:
        kind = type(program)  # no isinstance: that of an abstract base class is slow, and this runs in every round
        if kind is GeneratorType:
            levels.append(_place(program))
            program = program.gi_yieldfrom
        elif kind is Together:
            levels.append("[" + "|".join([position(m.program) for m in program.members if m.running]) + "]")
            break
        elif kind is Labelled or kind is Supplied:
            program = program.program
        else:
            break
    return ">".join(levels)
