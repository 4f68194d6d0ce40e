"""Whether the rows of all parties are of the same ids in the same order.  Knows ids and links between two; no data.

    each party        each other party
    32 bytes   ---->                        key = hash of all parties' bytes: no client, dealer or outsider knows it
    how many rows, a digest of all ids in their order, one of them sorted   ---->
    where these differ alone: a hash of each id                             ---->

What a party learns: how many rows the others have; that all ids and their order are its own, or else which rows of its
own the others lack, or have elsewhere.  Whoever holds the key can try ids that it guesses against the hashes, so then
parties can tell who else is among the others' rows as far as they can guess ids; where all is well there are no such
hashes, and a digest of a whole list answers no guess at one id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bandits.csv_table import is_missing
from mpc.errors import ConfigError
from mpc.files import mac
from mpc.net.transport import Stamp

KEY_BYTES, _HASH, _DIGEST = 32, 16, 32
_NAMED = 5  # rows of each party that are named
_NONE, _UNNAMED, _NAMES = 0, 1, 2


class Links(Protocol):
    """Messages to one party, outside any round."""

    node: int
    parties: int

    def say(self, peer: int, payload: bytes, stamp: Stamp) -> None:
        """One message to one peer."""

    def hear(self, peer: int, count: int, stamp: Stamp) -> bytes:
        """One from one peer."""


@dataclass(frozen=True)
class Rows:
    """A party's rows.  there: whether it brings any.  ids: of each, in order; None where they have none."""

    there: bool
    ids: Sequence[str] | None = field(default=None, repr=False)


NO_ROWS = Rows(False)


def check_distinct(ids: Sequence[str]) -> None:
    """ConfigError where a row has no id, or two rows are of one; says which rows."""
    first: dict[str, int] = {}
    for row, each in enumerate(ids):
        if is_missing(each):
            raise ConfigError(f"row {row} has no id: fill it in, or drop the row")
        if (before := first.setdefault(each, row)) != row:
            raise ConfigError(f"rows {before} and {row} are of the same id: leave one of them")


def align(links: Links, rows: Rows, fresh: bytes) -> None:
    """ConfigError unless all parties that bring rows bring them of the same ids in the same order.

    fresh: 32 bytes that nobody else knows.
    """
    me, others = links.node, [party for party in range(links.parties) if party != links.node]
    kind = _NONE if not rows.there else _UNNAMED if rows.ids is None else _NAMES
    said = {me: bytes([kind]) + fresh, **_told(links, others, bytes([kind]) + fresh, "key")}
    named = [party for party in sorted(said) if said[party][0] == _NAMES]
    if unnamed := [party for party in sorted(said) if said[party][0] == _UNNAMED and named]:
        raise ConfigError(
            f"party {named[0]} names a column of ids and party {unnamed[0]} does not: name one in each data.id, or none"
        )
    if len(named) < 2 or me not in named or rows.ids is None:
        return
    key = hashlib.blake2b(b"".join(said[party][1:] for party in sorted(said)), digest_size=KEY_BYTES).digest()
    hashes = [mac(key, each, person=b"mb-row-id")[:_HASH] for each in rows.ids]
    others = [party for party in named if party != me]
    mine = len(hashes).to_bytes(8, "little") + _digest(key, hashes) + _digest(key, sorted(hashes))
    theirs = {me: mine, **_told(links, others, mine, "digests")}
    if len(set(theirs.values())) == 1:
        return
    counts = {party: int.from_bytes(raw[:8], "little") for party, raw in theirs.items()}
    if wrong := [f"party {party} of {counts[party]:,}" for party in others if counts[party] != len(hashes)]:
        raise ConfigError(
            f"all parties bring ids of as many rows as the run takes, party {me} of {len(hashes):,} and "
            f"{' and '.join(wrong)}: run the same release everywhere"
        )
    lists = _told(links, others, b"".join(hashes), "hashes")
    found = {party: [raw[at : at + _HASH] for at in range(0, len(raw), _HASH)] for party, raw in lists.items()}
    wrong = [line for party in others if (line := _difference(hashes, found[party], party))]
    raise ConfigError(
        "rows of the parties are not of the same ids in the same order: bring the same rows, sorted alike{}",
        own=f" ({'; '.join(wrong)})" if wrong else " (this party's are as those of party 0: others differ)",
        counted=True,
    )


def _difference(own: Sequence[bytes], theirs: Sequence[bytes], party: int) -> str:
    """Where a party's rows differ from this one's, by this one's rows."""
    known, mine = set(theirs), set(own)
    strangers = [row for row, each in enumerate(own) if each not in known]
    further = sum(each not in mine for each in theirs)
    if strangers or further:
        more = f" and {len(strangers) - _NAMED:,} more" if len(strangers) > _NAMED else ""
        lacks = f"party {party} lacks the ids of rows {', '.join(map(str, strangers[:_NAMED]))}{more}"
        return (lacks if strangers else f"party {party} has all ids") + f", and has {further:,} that are not here"
    moved = next((row for row, pair in enumerate(zip(own, theirs)) if pair[0] != pair[1]), None)
    return "" if moved is None else f"party {party} has the same ids in another order, from row {moved} on"


def _digest(key: bytes, hashes: Sequence[bytes]) -> bytes:
    return mac(key, *hashes, person=b"mb-row-ids")


def _told(links: Links, others: Sequence[int], payload: bytes, what: str) -> dict[int, bytes]:
    """Each hears as many bytes as it says.

    Each pair in turn, the lower number first: lists may be long, and two that send at once could wait for ever.
    """
    found, stamp = {}, Stamp(0, bytes(8), f"ids of rows, {what}")
    for other in others:
        count = len(payload)
        if links.node < other:
            links.say(other, payload, stamp)
            found[other] = links.hear(other, count, stamp)
        else:
            found[other] = links.hear(other, count, stamp)
            links.say(other, payload, stamp)
    return found
