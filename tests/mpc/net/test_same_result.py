"""The same program under memory, tcp and gloo: the same shares, word for word, and the same cost."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from mpc.net.memory import Memory
from tests.parties.processes import PARTY, Launched
from tests.parties.programs import every_operation, large, seeded, to_one
from tests.parties.threads import over_tcp, values


@cache
def in_memory(parties: int) -> dict[str, Any]:
    return every_operation(seeded(Memory(parties)))


def _joint(told: list[dict[str, Any]]) -> dict[str, Any]:
    """One party's words beside another's; what all know must be the same at each."""
    assert all(part["learned"] == told[0]["learned"] and part["cost"] == told[0]["cost"] for part in told)
    return {**told[0], "shares": {party: words for part in told for party, words in part["shares"].items()}}


def test_the_digest_sees_a_difference() -> None:
    digests = in_memory(3)["shares"]
    assert len(set(digests.values())) == 3
    assert in_memory(2)["shares"]["0"] != digests["0"]


def test_tcp_gives_the_shares_of_memory(parties: int) -> None:
    assert _joint(values(over_tcp(parties, every_operation))) == in_memory(parties)


@pytest.mark.needs("torch")
@pytest.mark.parametrize("parties", [2, 3])
def test_gloo_gives_the_shares_of_memory(parties: int) -> None:
    launched = Launched([*PARTY, "every_operation", "large", "to_one"], parties, transport="gloo")
    assert launched.error is None
    told = [[line["value"] for line in launched.told(f"party {p}")] for p in range(parties)]
    assert _joint([each[0] for each in told]) == in_memory(parties)
    assert [each[1] for each in told] == [large(seeded(Memory(parties)))] * parties
    assert [each[2] for each in told] == [_revealed(p) for p in range(parties)]


def test_large_empty_and_many_messages(parties: int) -> None:
    assert values(over_tcp(parties, large)) == [large(seeded(Memory(parties)))] * parties


def _revealed(party: int) -> list[Any]:
    return [[1.5, -2.0] if party == 1 else None, [3.0, -4.0], [1.5, -2.0] if party == 0 else None]


def test_a_reveal_to_one_party_reaches_that_party_alone(parties: int) -> None:
    assert values(over_tcp(parties, to_one)) == [_revealed(p) for p in range(parties)]
