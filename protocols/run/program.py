"""What a program says of itself, and all that `protocols.run` asks of one.  Knows no file, no process, no transport.

    computing parties    `Program.player`   turn after turn, then `finish`; between two turns, `state` is all there is
    clients              `Program.client`   a puller, a payer, a data owner, a customer: generators, at a `Desk` each

A program is made twice.  Whoever starts a run makes it with all inputs, and `private` deals these out to the roles.  A
process that plays one role makes it from `public` alone, and is given that role's own arrays.  A role never knows
whether the others are in its process, in other processes, or started by torchrun.

A decision draws its material from a step of the plan:

    decisions 0 ... idle - 1                  draw nothing
    decisions idle ... idle + cycle - 1       draw step 0,  the next `cycle` of them step 1, and so on
    what follows the last one                 with an `ending`, draws the first items of the step after them

Steps are dealt without knowing which will be the last: with an `ending` each begins with what an end draws, and a turn
passes over it.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from mpc.client import ClientProgram
from mpc.correlations import Correlation
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.session import Session

R = TypeVar("R")
Arrays = Mapping[str, np.ndarray]
Facts = Mapping[str, Any]
"""Which run this is, as plain data: what a user gave comes first, what follows from it last."""


@dataclass(frozen=True)
class Role:
    """A client.

    home: the folder of its checkpoints, where it keeps any; such clients come first.
    notes: the file in which it writes down what it learned, decision by decision; at most one client has one.
    patient: it waits for as long as the run takes, and not for a decision only.
    """

    name: str
    home: str = ""
    notes: str = ""
    patient: bool = False


@dataclass(frozen=True)
class Brings:
    """What a role on a machine of its own has in a file: rows, one for each of what `row` says, in order.

    columns: numbers in each row; without any it needs no file.  more: further columns, of what each choice would bring;
    where the file lacks them, the role asks the world.
    """

    columns: int = 0
    rows: int = 0
    row: str = "decision"
    more: int = 0


Fresh = Callable[[str], bytes]
"""32 bytes that nobody else has, for a purpose."""


class Player(Protocol):
    """One process's computing parties, between the first and the last decision."""

    @property
    def done(self) -> int:
        """Decisions made."""

    def turn(self) -> None:
        """The next decision."""

    def finish(self) -> None:
        """What follows the last one; it may reveal.  What it draws every turn that draws has begun with: `ending`."""

    def state(self) -> Arrays:
        """All that its parties go on from, with an axis for the parties first where it is a share."""


Judge = Callable[[np.ndarray], None]
"""Raises where the world outside said what cannot be."""


def anything(heard: np.ndarray) -> None:
    """Judges nothing."""


class Desk(Protocol):
    """What a client has beside its messages.

    start: decisions that were made before: whatever a client gave or was told for them is over, so it begins with
    decision `start`.  kept: its state after these.
    """

    start: int
    kept: Arrays | None

    def here(self, done: int, state: Callable[[], Arrays]) -> bool:
        """After each decision, of a client that keeps its state: whether to stop here."""

    def note(self, words: np.ndarray) -> None:
        """Write down what was learned."""

    def noted(self, shape: tuple[int, ...]) -> np.ndarray:
        """What a client wrote down in the `start` decisions before, (start, *shape); for who saw it come true."""

    def hear_from(self, late: int, shape: tuple[int, ...]) -> None:
        """Between machines, what comes of a decision is heard `late` decisions behind it: next of start - late."""

    def tell(self, words: np.ndarray) -> None:
        """What happens outside the computation: the next client that hears, hears this."""

    def tell_last(self) -> None:
        """Between machines, of one that tells what it notes: what it noted last, and died before it could tell."""

    def hear(self, shape: tuple[int, ...], judge: Judge = anything) -> np.ndarray:
        """Integers that another client told; between machines, numbers that the world outside did.

        judge: what it raises of is not written down, so that whoever goes on hears it anew.
        """

    def ask(self, decision: int, words: np.ndarray, shape: tuple[int, ...], judge: Judge = anything) -> np.ndarray:
        """Tell and hear at once, of a client that is not at every decision; once heard, it is not told again."""


@dataclass(frozen=True)
class Coins:
    """What a reference needs to draw alike: whoever has these keys knows every chance of the run.

    key: of the dealer's coins.  per_block: decisions that one of its blocks serves.  clients: of the clients' own
    coins; None where they follow from the run's seed.
    """

    key: bytes = field(repr=False)
    per_block: int = 1
    clients: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Ended:
    """What a run gave, whoever played it.

    done: decisions.  cost: of all; played: of the decisions alone.  seconds: in which the decisions were made, waiting
    included and the dealer's work not; offline_seconds: of that work.
    items: what a decision draws.  coins: None where they are the secret of whoever dealt the material.
    parties: the state of the computing parties here, or of party 0.  clients: states by role.  notes: what a client
    wrote down, by decision.  left: what the clients' programs returned.
    again, most: values that were noted beside those of `done` decisions, and how often one decision was made, at most.
    """

    done: int
    cost: Cost
    played: Cost
    ledger: tuple[Entry, ...]
    seconds: float
    items: tuple[Correlation, ...]
    offline_bytes: int
    offline_seconds: float
    coins: Coins | None
    parties: Arrays = field(repr=False)
    clients: Mapping[str, Arrays] = field(repr=False)
    notes: np.ndarray = field(repr=False)
    left: Mapping[str, Any] = field(repr=False)
    again: int = 0
    most: int = 1


class Counted:
    """A result that can say what its run cost and disclosed."""

    ended: Ended

    @property
    def cost(self) -> Cost:
        """Of the whole run."""
        return self.ended.cost

    @property
    def ledger(self) -> tuple[Entry, ...]:
        """Who learned what."""
        return self.ended.ledger

    @property
    def seconds(self) -> float:
        """In which the decisions were made."""
        return self.ended.seconds

    @property
    def offline_bytes(self) -> int:
        """What was dealt to party 0."""
        return self.ended.offline_bytes

    @property
    def offline_seconds(self) -> float:
        """Of the dealer's work."""
        return self.ended.offline_seconds


class Program(ABC, Generic[R]):
    """A program of some parties over some decisions; R: what a whole run of it results in."""

    name: ClassVar[str]  # the command's, and the plan's
    unit: ClassVar[str] = "decision"  # what one is called
    idle: int = 0
    cycle: int = 1
    roles: tuple[Role, ...] = ()  # of the clients, in node order
    ending: ClassVar[bool] = False  # whether `Player.finish` draws
    partial: ClassVar[bool] = False  # whether a run that was stopped has a result
    lasting: ClassVar[bool] = False  # whether the last checkpoint stays: what a run learned is what it was for
    recoins: ClassVar[bool] = False  # whether a run may go on with material that has other coins than its dealer's
    seeded: ClassVar[bool] = False  # whether clients draw coins of their own, from a fresh key
    served: ClassVar[bool] = (
        False  # whether its roles are asked by programs of their owners, while `masked serve` plays
    )
    noted: tuple[int, ...] = ()  # the shape of the integers that a client writes down of one decision

    def __init__(self, parties: int, decisions: int) -> None:
        self.parties, self.decisions = parties, decisions

    @abstractmethod
    def public(self) -> dict[str, Any]:
        """What `of` makes it from, as JSON: what every role knows."""

    def kept_for(self) -> Mapping[str, Any]:
        """Of `public`, what a checkpoint between machines is worth nothing without."""
        return self.public()

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Program[R]:
        """The program as a role knows it."""
        return cls(**given)

    def facts(self) -> Facts:
        """Which run this is."""
        return {**self.public(), "inputs": self.inputs}

    @cached_property
    def inputs(self) -> str:
        """A name for what all roles alone have, of whoever starts the run."""
        own = self.private(None)
        return fingerprint(*(array for role in own for array in own[role].values()))

    def blank(self) -> Program[R]:
        """The same of inputs that are nobody's: a rehearsal of a decision finds what it draws and costs."""
        return self.of(self.public())

    @abstractmethod
    def private(self, key: bytes | None) -> Mapping[str, Arrays]:
        """By role, "party-0" and so on or a client's name, what it alone has.

        key: fresh, for the coins of clients that draw their own; None in a simulation, where all follow from its seed.
        """

    @abstractmethod
    def player(self, session: Session, own: Mapping[int, Arrays], kept: Arrays | None, done: int) -> Player:
        """The computing parties that this session hosts.  own: by party.  kept: their state after `done` decisions."""

    @abstractmethod
    def client(self, role: str, own: Arrays, desk: Desk) -> ClientProgram:
        """A client's part; what it returns is in `Ended.left`, and is plain data."""

    @abstractmethod
    def result(self, ended: Ended) -> R:
        """What the run reached, beside its reference where the coins are known."""

    def brings(self, role: str) -> Brings:
        """What a role brings where it is on a machine of its own.  role: `party_name`, or a client's name."""
        return Brings()

    def brought(self, role: str, rows: np.ndarray | None, fresh: Fresh) -> Arrays:
        """What that role alone has, from the rows of its file; None where it brings none."""
        return {}

    def told(self, role: str, left: Any) -> Facts:
        """What a client's program returned, for its owner to read."""
        return {}

    @property
    def common(self) -> Mapping[str, tuple[str, ...]]:
        """Arrays of 32 bytes that some clients have in common and nobody else knows: the first draws, and hands it on.

        `private` gives the same where one process starts all roles.
        """
        return {}

    def once_a_cycle(self, player: Any) -> None:
        """What a cycle draws beside its decisions."""

    @property
    def notes(self) -> Role | None:
        """The client that writes notes."""
        return next((role for role in self.roles if role.notes), None)

    @property
    def purpose(self) -> tuple[str, str]:
        """What this run is, in words, and the command that plans its material: said where material does not fit."""
        return (
            f"{self.decisions:,} {self.unit}s",
            f"masked offline plan {self.name} ..., with this run's options, -o plan.json",
        )

    def block(self, done: int) -> int:
        """The plan's step that the decision after `done` draws, or the first one if it draws none."""
        return max(0, done - self.idle) // self.cycle

    def draws(self, done: int = 0, end: int | None = None) -> int:
        """How many steps of the plan the decisions from `done` to `end` and their ending draw, and at least 1."""
        end = self.decisions if end is None else end
        ending = self.ending and end >= self.decisions
        return max(1, -(-max(0, end - self.idle) // self.cycle) - self.block(done) + ending)

    def stock(self, done: int = 0) -> int:
        """Of these, how many must be there where material was dealt before: a service goes on until it is used up."""
        return 1 if self.served else self.draws(done)


def home_of(party: int) -> str:
    """The role of a computing party: the name of its folder, and of its inputs."""
    return f"party-{party}"


def party_name(party: int) -> str:
    """The same in words."""
    return f"party {party}"


def private_path(folder: Path, role: str) -> Path:
    """The file of what a role alone has."""
    return folder / f"{role.replace(' ', '-')}.npz"


def fingerprint(*arrays: np.ndarray) -> str:
    """Of inputs that facts must tell apart and not tell."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"{_FINGERPRINT}{digest.hexdigest()}"


def digest(given: Facts) -> str:
    """Of all that parties must agree on."""
    return hashlib.blake2b(json.dumps(given, sort_keys=True).encode(), digest_size=16).hexdigest()


_FINGERPRINT = "blake2b "
_SHOWN = (bool, int, float, str, type(None))


def apart(kept: Facts, wanted: Facts) -> str | None:
    """Where two runs differ first, in words; None where they are one run."""
    for name, value in wanted.items():
        have = kept.get(name)
        if have == value:
            continue
        told = isinstance(value, _SHOWN) and not str(value).startswith(_FINGERPRINT)
        return f"{name} = {have}, this one has {value}" if told else f"other {name}"
    return None
