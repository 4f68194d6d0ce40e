"""Where all roles stand: only what every one of them has counts, and roles of two runs do not go on together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc.errors import ConfigError, Desync
from protocols.run.standing import Standing, agree, agree_as_client, judged, newest

from ...parties.members import session_of
from ...parties.threads import over_tls, values


def party(number: int, *saves: tuple[int, str], anew: bool = False) -> Standing:
    return Standing(f"party {number}", saves, None, anew, str(number))


def test_the_last_that_all_have_and_that_is_noted() -> None:
    first, second = party(0, (5, "a"), (10, "a")), party(1, (10, "a"), (15, "a"))
    assert judged([first, second]).start == 10
    assert judged([first, party(1, (5, "a"))]).start == 5
    assert judged([first, party(1, (5, "a"), (10, "b"))]).start == 5, "shares of two attempts do not belong together"
    assert judged([first, party(1, (5, "a"), (10, "a")), Standing("puller", None, 9, False)]).start == 5
    assert judged([party(0, (5, "a")), party(1)]).start == 0, "the other died before its first"


def test_what_is_no_one_run_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"party 1 would begin anew, party 0 would go on"):
        judged([party(0, (5, "a")), party(1, anew=True)])
    assert judged([party(0), party(1, anew=True)]).start == 0, "while nobody has kept anything, all begin"
    with pytest.raises(ConfigError, match=r"no checkpoint in common \(party 0 has 5 and 10, party 1 has none\)"):
        judged([party(0, (5, "a"), (10, "a")), party(1)])
    assert judged([party(0, (5, "a"), (10, "a"), anew=True), party(1, anew=True)]).start == 0


def test_attempts_have_names_of_their_own() -> None:
    said = [party(0), party(1)]
    assert judged(said).attempt == judged(said[::-1]).attempt
    assert judged(said).attempt != judged([party(0), Standing("party 1", (), None, False, "other")]).attempt


saves = st.lists(st.sets(st.tuples(st.integers(0, 5), st.sampled_from("ab"))), min_size=1, max_size=4)


@given(saves)
def test_the_newest_is_in_all_and_no_later_one_is(each: list[set[tuple[int, str]]]) -> None:
    found = newest(each)
    common = [save for save in each[0] if all(save in other for other in each)]
    assert found == (max(common) if common else None)


def test_parties_and_clients_hear_the_same() -> None:
    def at(number: int, *saves: tuple[int, str]) -> object:
        return lambda session: agree(session.transport, party(number, *saves), [3])

    programs = {0: at(0, (5, "a"), (10, "a")), 1: at(1, (5, "a"), (10, "a")), 2: at(2, (5, "a"))}
    client = lambda link: (agree_as_client(link, Standing("puller", None, 12, False)), link.close())[0]  # noqa: E731
    told = values(over_tls(*session_of(3, ["puller"]), programs, clients={"puller": client}))  # type: ignore[arg-type]
    assert len(set(told)) == 1 and told[0].start == 5


def test_bytes_that_are_none_are_refused() -> None:
    def at(session: object) -> None:
        agree(session.transport, party(0), [2])  # type: ignore[attr-defined]

    def client(link: object) -> None:
        link.send(np.full((2, 2048), 0x5B, np.uint8), "where a role stands")  # type: ignore[attr-defined]
        link.receive(128, "where a role stands")  # type: ignore[attr-defined]

    outcomes = over_tls(*session_of(2, ["puller"]), at, clients={"puller": client})
    assert all(isinstance(each.error, (ConfigError, Desync)) for each in outcomes[:2]), outcomes
