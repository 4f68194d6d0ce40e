"""Where all roles stand: only what every one of them has counts, and roles of two runs do not go on together."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc.errors import ConfigError, Desync
from protocols.run.standing import Agreed, Standing, agree, agree_as_client, judged, newest, times_told

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
        link.receive(1024, "where a role stands")  # type: ignore[attr-defined]

    outcomes = over_tls(*session_of(2, ["puller"]), at, clients={"puller": client})
    assert all(isinstance(each.error, (ConfigError, Desync)) for each in outcomes[:2]), outcomes


def test_how_often_a_decision_was_told_grows_with_each_telling_and_no_other_time() -> None:
    """Against a log of all tellings, over going back to anywhere, and of attempts that tell nothing."""
    rng = np.random.default_rng(3)
    last, told, noted = dict[int, int](), (), 0
    for _ in range(60):
        start = int(rng.integers(max(0, noted - 4), noted + 1))
        save = (start, "a")
        puller = Standing("puller", None, noted, False, told=told, before="the same")
        spends = Standing("party 0", (save,), None, False, spends=True)
        agreed = judged([spends, Standing("party 1", (save,), None, False), puller])
        assert agreed.start == start
        told, end = agreed.told, start + int(rng.integers(0, 5))
        for decision in range(start, end):
            times = times_told(told, decision)
            assert times > last[decision] if decision in last else times == 0
            last[decision] = times
        noted = end
        assert all(times_told(told, late) == last[late] for late in range(max(0, start - 4), start))
    assert judged([Standing("party 0", (), None), Standing("puller", None, 5)]).told == (), "the same coins"


def test_what_says_nothing_of_tellings_is_no_standing() -> None:
    def at(session: object) -> None:
        agree(session.transport, party(0), [2])  # type: ignore[attr-defined]

    def client(link: object) -> None:
        agree_as_client(link, Standing("puller", None, 9, told=((5, 9, -1),)))  # type: ignore[arg-type]

    outcomes = over_tls(*session_of(2, ["puller"]), at, clients={"puller": client})
    assert all(isinstance(each.error, ConfigError) for each in outcomes), outcomes


def test_where_nobody_notes_all_that_follows_a_beginning_is_taken_for_told() -> None:
    """SAMBA's owners tell the world and note nothing: each time that all go on with other coins is another telling."""

    def all_of(*saves: tuple[int, str], anew: bool = False, told: tuple[tuple[int, int, int], ...] = ()) -> Agreed:
        parties = [Standing(f"party {at}", saves, None, anew, str(at), spends=True) for at in range(2)]
        return judged([*parties, Standing("owner 0", saves, None, anew, "c", told=told, before="" if anew else "x")])

    assert all_of(anew=True).told == ()
    first = all_of((5, "a"))
    assert [times_told(first.told, at) for at in (0, 4, 5, 10**6)] == [0, 0, 1, 1]
    second = all_of((3, "a"), (8, "b"), told=first.told)
    assert [times_told(second.told, at) for at in (4, 5, 7, 8, 10**6)] == [0, 1, 1, 2, 2]
    alike = [Standing(f"party {at}", ((5, "a"),), None, False, str(at)) for at in range(2)]
    assert judged(alike).told == (), "with the same coins nothing is told anew"


def dealt(coins: str, told: tuple[tuple[int, int, int], ...], noted: int, before: str) -> Agreed:
    """Of a run with a dealer of these coins, which all but the dealer remember."""
    parties = [Standing(f"party {at}", (), None, False, str(at), told=told, before=before) for at in range(2)]
    puller = Standing("puller", None, noted, False, "c", told=told, before=before)
    return judged([*parties, puller, Standing("dealer", None, None, not before, "d", coins=coins)])


@pytest.mark.parametrize("anew", [True, False])
def test_other_coins_of_a_role_are_no_replay_whether_it_says_that_it_begins_or_goes_on(anew: bool) -> None:
    first = dealt("first", (), 0, "")
    assert (first.again, first.told) == (False, ()), "nothing was made before"
    same = dealt("first", (), 4, first.coins)
    assert (same.again, same.told, same.coins) == (False, (), first.coins)
    parties = [Standing(f"party {at}", (), None, False, str(at), before=first.coins) for at in range(2)]
    puller = Standing("puller", None, 4, False, "c", before=first.coins)
    other = judged([*parties, puller, Standing("dealer", None, None, anew, "d", coins="second")])
    assert other.again and other.coins != first.coins
    assert [times_told(other.told, at) for at in range(6)] == [1, 1, 1, 1, 0, 0]


def test_what_was_told_with_other_coins_is_remembered_by_attempts_that_replay() -> None:
    told = ((0, 4, 1),)
    now = dealt("second", told, 0, dealt("first", (), 4, "").coins).coins
    replayed = dealt("second", told, 2, now)
    assert (replayed.again, replayed.told) == (False, told)


def test_where_the_one_that_notes_has_lost_that_all_is_taken_for_told() -> None:
    parties = [Standing(f"party {at}", (), None, False, str(at), spends=True, before="x") for at in range(2)]
    assert times_told(judged([*parties, Standing("puller", None, 0, True, "c")]).told, 3) == 1
    assert times_told(judged([*parties, Standing("puller", None, 0, False, "c", before="x")]).told, 3) == 0
