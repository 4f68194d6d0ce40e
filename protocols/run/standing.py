"""Where all roles of a session between machines stand, which they agree on in its first round and its last.

Knows numbers; no file.

    client     what it keeps, and has noted                      ---->    every party
    parties    what each of them and the clients keep, to one another
    parties    the decision that all go on from, and a name      ---->    every client
    ...        the run
    client     that it has all                                   ---->    every party
    parties    that they have all, and have heard it of all clients, to one another

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
from mpc.net.party_mesh import PartyMesh
from mpc.net.transport import Stamp, Transport

Save = tuple[int, str]
"""After how many decisions, and in which attempt."""
Telling = tuple[int, int, int]
"""Decisions from the first number to before the second were told before; the third is how often, at most."""

ROOM = 2048  # bytes of what a role says
_ANSWER = 1024
_ALL = 1 << 62  # decisions, of any run
_TELLINGS = 16  # of which a role speaks: what comes late may be of decisions before the last ones
_WHAT = "where a role stands"
_START, _END = Stamp(0, bytes(8), _WHAT), Stamp(0, bytes(8), "the end of all")


@dataclass(frozen=True)
class Standing:
    """What a role says of itself.

    saves: of one that keeps checkpoints, else None.  noted: decisions that it wrote down, of one that notes.
    anew: it begins; else it goes on with a run.  word: a part of the attempt's name.  spends: of a party whose material
    was dealt before, so that decisions which are made again have other coins.  told, before: which decisions had been
    told before, and the name of all coins, when all went on last; "" of one that keeps nothing of that.  coins: the
    name of those that it draws for itself.
    """

    role: str
    saves: tuple[Save, ...] | None
    noted: int | None = None
    anew: bool = True
    word: str = ""
    spends: bool = False
    told: tuple[Telling, ...] = ()
    coins: str = ""
    before: str = ""


@dataclass(frozen=True)
class Agreed:
    """What all begin with.

    start: decisions made before.  attempt: its name.  again: decisions that are made again have other coins than they
    had.  told: which were told before with other coins than they have now: the number of each grows whenever it is told
    anew.  coins: the name of all roles' coins.
    """

    start: int
    attempt: str
    again: bool = False
    told: tuple[Telling, ...] = ()
    coins: str = ""


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
        return Agreed(**{**given, "told": _tellings(given["told"])})
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise Desync("the parties do not agree on where to go on from: run the same release everywhere") from error


def await_all(mesh: PartyMesh, clients: Iterable[int], decisions: int) -> None:
    """At a party that has kept and told all: each other role has too, and needs nobody any more.

    Who dies before that is waited for, and all go on from what they kept.  A client says it by what it has noted; what
    one party has heard of it, and of the others, is enough for all.

    Cost: 1 round of headers, and a header of every client.
    """
    mesh.end_together(_END, list(clients), decisions)


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
    found = newest(usable.values())
    if found is None and any(len(saves) > 1 for saves in keepers.values()):
        raise ConfigError(
            f"the roles have no checkpoint in common ({_listed(keepers)}): put back what is missing, or begin anew"
        )
    start = 0 if found is None else found[0]
    attempt, coins = _name(each.word for each in said), _name(f"{each.role} {each.coins}" for each in said)
    again = any(each.spends or each.before not in ("", coins) for each in said)
    return Agreed(start, attempt, again, told_anew(said, start) if again else told_so_far(said), coins)


def _name(parts: Iterable[str]) -> str:
    return hashlib.blake2b("\n".join(sorted(parts)).encode(), digest_size=8).hexdigest()


def told_so_far(said: Iterable[Standing]) -> tuple[Telling, ...]:
    """Which decisions had been told before, as the one knows it that has heard of the last telling."""
    return max((each.told for each in said), key=_most)


def told_anew(said: Sequence[Standing], start: int) -> tuple[Telling, ...]:
    """Which decisions were told before, once all go on from `start`.

    Who notes what it learns does so before it tells it, so whatever was told is among that, or was told anew before.
    Where nobody notes, or one that did has lost that, all that is made from there on is taken for told, once a run goes
    on.
    """
    if not any(each.before for each in said):
        return ()
    noting, told = [each for each in said if each.noted is not None], told_so_far(said)
    noted = max(each.noted or 0 for each in noting) if noting and all(each.before for each in noting) else _ALL
    earlier = [(first, min(end, start), times) for first, end, times in told if first < start]
    end = max([noted, *(end for _, end, _ in told)])
    anew = (start, end, 1 + _most(told))
    return (*earlier, *([anew] if end > start else []))[-_TELLINGS:]


def _most(told: Iterable[Telling]) -> int:
    return max((times for *_, times in told), default=0)


def times_told(told: Iterable[Telling], decision: int) -> int:
    """How often it was told before, 0 at first; so often that what comes of an earlier telling is told from it."""
    return next((times for first, end, times in told if first <= decision < end), 0)


def fresh_word() -> str:
    """A part of an attempt's name, which nobody chooses alone."""
    return secrets.token_hex(8)


def _listed(keepers: Mapping[str, Sequence[Save]]) -> str:
    return ", ".join(
        f"{role} has {' and '.join(str(done) for done, _ in saves) or 'none'}" for role, saves in keepers.items()
    )


def _tellings(given: Any) -> tuple[Telling, ...]:
    """TypeError or ValueError for what is none."""
    told = tuple((first, end, times) for first, end, times in given)
    if any(type(number) is not int or number < 0 for each in told for number in each):
        raise ValueError("no numbers")
    return told[-_TELLINGS:]


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
        kinds: dict[str, Any] = {"role": str, "word": str, "coins": str, "before": str}
        kinds |= {"anew": bool, "spends": bool, "noted": int | None}
        if fits and all(isinstance(given[name], kind) for name, kind in kinds.items()):
            kept = None if saves is None else tuple((done, by) for done, by in saves)
            return Standing(**{**given, "saves": kept, "told": _tellings(given["told"])})
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise ConfigError("a role does not say where it stands: run the same release everywhere")
