"""Where all roles of a session between machines stand, which they agree on in its first round.  Knows numbers; no file.

    client     what it keeps, and has noted                      ---->    every party
    parties    what each of them and the clients keep, to one another
    parties    the decision that all go on from, and a name      ---->    every client

A checkpoint is known by its number and by the name of the attempt that wrote it: shares of two attempts do not belong
together.  Only what every role that keeps any has counts.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from mpc.client import ClientLink
from mpc.errors import ConfigError, Desync
from mpc.net.transport import Stamp, Transport

Save = tuple[int, str]
"""After how many decisions, and in which attempt."""

ROOM = 2048  # bytes of what a role says
_ANSWER = 128
_WHAT = "where a role stands"
_START = Stamp(0, bytes(8), _WHAT)


@dataclass(frozen=True)
class Standing:
    """What a role says of itself.

    saves: of one that keeps checkpoints, else None.  noted: decisions that it wrote down, of one that notes.
    anew: it begins; else it goes on with a run.  word: a part of the attempt's name.  spends: of a party whose material
    was dealt before, so that decisions which are made again have other coins.
    """

    role: str
    saves: tuple[Save, ...] | None
    noted: int | None = None
    anew: bool = True
    word: str = ""
    spends: bool = False


@dataclass(frozen=True)
class Agreed:
    """What all begin with.

    start: decisions made before.  attempt: its name.  again: decisions that are made again have other coins.
    """

    start: int
    attempt: str
    again: bool = False


def newest(saves: Iterable[Iterable[Save]]) -> Save | None:
    """The last save that all have; None where there is none."""
    return max(set.intersection(*map(set, saves)), default=None)


def agree(transport: Transport, own: Standing, clients: Sequence[int]) -> Agreed:
    """At a party, before its session.  clients: their nodes.

    Cost: 1 round of 2 kB for each role, and a message from and to every client.
    """
    heard = [transport.receive_from_client(node, _WHAT, ROOM)[0].tobytes() for node in clients]
    mine = b"".join([_packed(own), *heard])
    rows, _ = transport.exchange(_START, np.frombuffer(mine, np.uint8)[None], {})
    said = [row[at : at + ROOM].tobytes() for row in rows for at in range(0, ROOM * (1 + len(clients)), ROOM)]
    agreed, wrong = None, ""
    try:
        agreed = judged([_unpacked(each) for each in dict.fromkeys(said)])
    except ConfigError as error:
        wrong = str(error)
    answer = json.dumps({"wrong": wrong[: _ANSWER // 2]} if agreed is None else asdict(agreed)).encode()
    for node in clients:
        transport.send_to_client(node, _WHAT, np.frombuffer(answer.ljust(_ANSWER), np.uint8)[None])
    if agreed is None:
        raise ConfigError(wrong)
    return agreed


def agree_as_client(link: ClientLink, own: Standing) -> Agreed:
    """The same at a client."""
    link.send(np.frombuffer(_packed(own) * link.parties, np.uint8).reshape(link.parties, ROOM), _WHAT)
    answers = {row.tobytes() for row in link.receive(_ANSWER, _WHAT)}
    try:
        (given,) = map(json.loads, answers)
        if wrong := given.get("wrong"):
            raise ConfigError(f"the roles do not go on together: {wrong}...; the parties say it whole")
        return Agreed(**given)
    except (ValueError, TypeError, AttributeError) as error:
        raise Desync("the parties do not agree on where to go on from: run the same release everywhere") from error


def judged(said: Sequence[Standing]) -> Agreed:
    """What follows from all that was said; ConfigError where it is not one run."""
    keepers = {each.role: each.saves for each in said if each.saves is not None}
    if fresh := [each.role for each in said if each.anew]:
        rest = [each for each in said if not each.anew]
        if any(each.saves for each in rest):  # while nobody kept anything, to go on is to begin
            raise ConfigError(
                f"{', '.join(fresh)} would begin anew, {', '.join(each.role for each in rest)} would go on: start with "
                "--resume, or all anew"
            )
        keepers = dict.fromkeys(keepers, ())
    noted = min((each.noted for each in said if each.noted is not None), default=None)
    usable = {
        role: [(done, by) for done, by in saves if noted is None or done <= noted] for role, saves in keepers.items()
    }
    attempt = hashlib.blake2b("".join(sorted(each.word for each in said)).encode(), digest_size=8).hexdigest()
    again = any(each.spends for each in said)
    if found := newest(usable.values()):
        return Agreed(found[0], attempt, again)
    if any(len(saves) > 1 for saves in keepers.values()):
        raise ConfigError(
            f"the roles have no checkpoint in common ({_listed(keepers)}): put back what is missing, or begin anew"
        )
    return Agreed(0, attempt, again)


def fresh_word() -> str:
    """A part of an attempt's name, which nobody chooses alone."""
    return secrets.token_hex(8)


def _listed(keepers: Mapping[str, Sequence[Save]]) -> str:
    return ", ".join(
        f"{role} has {' and '.join(str(done) for done, _ in saves) or 'none'}" for role, saves in keepers.items()
    )


def _packed(own: Standing) -> bytes:
    raw = json.dumps(asdict(own)).encode()
    if len(raw) > ROOM:
        raise ConfigError(f"what {own.role} keeps takes {len(raw):,} bytes to say, and there are {ROOM:,}")
    return raw.ljust(ROOM)


def _unpacked(raw: bytes) -> Standing:
    """ConfigError for any bytes that are none."""
    try:
        given = json.loads(raw)
        saves = given["saves"]
        fits = saves is None or all(type(done) is int and isinstance(by, str) for done, by in saves)
        kinds: dict[str, Any] = {"role": str, "word": str, "anew": bool, "spends": bool, "noted": int | None}
        if fits and all(isinstance(given[name], kind) for name, kind in kinds.items()):
            kept = None if saves is None else tuple((done, by) for done, by in saves)
            return Standing(**{**given, "saves": kept})
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise ConfigError("a role does not say where it stands: run the same release everywhere")
