"""What the meter and its labels book."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc import Open, Reveal, Rounds, Session, labelled, together
from mpc.client import Receive, Send
from mpc.rounds import Input

Fixture = Callable[..., Any]


def opens(session: Session, rounds: int, words: int) -> Rounds[int]:
    """Open `words` words a round."""
    for _ in range(rounds):
        yield Open(np.zeros((session.parties, words), np.uint64))
    return words


class Clock:
    """Stands still unless it is moved."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def lasts(clock: Clock, rounds: int, seconds: float) -> Rounds[None]:
    """Each round takes so long."""
    for _ in range(rounds):
        clock.now += seconds
        yield Open(np.zeros((2, 1), np.uint64))


def test_an_open_is_sent_to_every_peer(parties: int, simulate: Fixture) -> None:
    session = simulate(parties)
    session.run(opens(session, 2, 3))
    total = session.meter.total
    assert (total.rounds, total.opened_bytes, total.sent_bytes) == (2, 2 * 24, 2 * 24 * (parties - 1))
    assert total.client_hops == 0 and total.frame_bytes == 0
    assert total.seconds > 0


@pytest.mark.parametrize(("bits", "size"), [(1, 1), (8, 1), (9, 2), (16, 2), (17, 4), (32, 4), (33, 8), (64, 8)])
def test_a_word_is_sent_in_its_narrowest_type(bits: int, size: int, simulate: Fixture) -> None:
    session = simulate(3)

    def program() -> Rounds[None]:
        yield Open(np.ones((3, 5), np.uint64), bits=bits)

    session.run(program())
    assert session.meter.total.opened_bytes == 5 * size


def test_a_reveal_to_all_goes_to_every_peer_and_to_one_goes_once(parties: int, simulate: Fixture) -> None:
    session = simulate(parties)

    def program(to: str) -> Rounds[None]:
        yield Reveal(session.constant([1.0, 2.0]), to)

    session.run(program("everyone"))
    assert session.meter.total.sent_bytes == 16 * (parties - 1)
    session.run(program("party 1"))
    assert session.meter.total.sent_bytes == 16 * (parties - 1) + 16
    assert (session.meter.total.rounds, session.meter.total.opened_bytes) == (2, 0)


def test_messages_of_clients_are_hops_and_no_rounds(simulate: Fixture) -> None:
    def client() -> Any:
        yield Send(3.0, scale=20)
        return (yield Receive(scale=20))

    session = simulate(3, clients={"c": client()})

    def program() -> Rounds[None]:
        x = yield Input("c", scale=20)
        yield Reveal(x, "c"), Open(np.zeros((3, 1), np.uint64))

    session.run(program())
    assert (session.meter.total.client_hops, session.meter.total.rounds) == (2, 1)
    assert session.meter.total.opened_bytes == 8


def test_labels_book_their_own(simulate: Fixture) -> None:
    session = simulate(2)

    def program() -> Rounds[None]:
        yield from labelled(session, "first", opens(session, 2, 3))
        yield from opens(session, 1, 100)
        yield from labelled(session, "second", opens(session, 1, 1))
        yield from labelled(session, "first", opens(session, 1, 1))

    session.run(program())
    assert (session.meter["first"].rounds, session.meter["first"].opened_bytes) == (3, 56)
    assert (session.meter["second"].rounds, session.meter["second"].opened_bytes) == (1, 8)
    assert session.meter.total.opened_bytes == 48 + 800 + 8 + 8
    assert set(session.meter.labels()) == {"first", "second"}
    assert 0 < session.meter["first"].seconds < session.meter.total.seconds


def test_labels_inside_together_book_the_rounds_they_share(simulate: Fixture) -> None:
    session = simulate(2)
    results = session.run(
        labelled(
            session, "both",
            together(
                labelled(session, "long", opens(session, 4, 1)),
                labelled(session, "short", opens(session, 2, 10)),
                opens(session, 1, 100),
            ),
        )
    )  # fmt: skip
    assert results == (1, 10, 100)
    cost = {label: (c.rounds, c.opened_bytes, c.sent_bytes) for label, c in session.meter.labels().items()}
    assert cost == {"both": (4, 992, 992), "long": (4, 32, 32), "short": (2, 160, 160)}
    assert session.meter.total.rounds == 4
    assert all(c.seconds > 0 for c in session.meter.labels().values())
    assert session.meter["long"].seconds <= session.meter["both"].seconds <= session.meter.total.seconds


def test_two_programs_under_one_label_share_its_rounds(simulate: Fixture) -> None:
    session = simulate(2)
    session.run(together(*(labelled(session, "same", opens(session, 2, 3)) for _ in range(3))))
    assert (session.meter["same"].rounds, session.meter["same"].opened_bytes) == (2, 3 * 48)


def test_a_label_nested_in_itself_books_once(simulate: Fixture) -> None:
    session = simulate(2)
    session.run(labelled(session, "same", labelled(session, "same", opens(session, 2, 3))))
    assert (session.meter["same"].rounds, session.meter["same"].opened_bytes) == (2, 48)


def test_nested_labels_both_book(simulate: Fixture) -> None:
    session = simulate(2)

    def middle() -> Rounds[None]:
        yield from opens(session, 1, 1)
        yield from labelled(session, "inner", opens(session, 2, 1))

    session.run(labelled(session, "outer", middle()))
    assert (session.meter["outer"].rounds, session.meter["inner"].rounds) == (3, 2)
    assert (session.meter["outer"].opened_bytes, session.meter["inner"].opened_bytes) == (24, 16)


def test_seconds_are_those_inside_the_program_and_its_waits(simulate: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    session = simulate(2)
    meter = session.meter
    session.run(
        together(labelled(session, "long", lasts(clock, 3, 2.0)), labelled(session, "short", lasts(clock, 2, 0.5)))
    )
    assert (meter["long"].seconds, meter["short"].seconds, meter.total.seconds) == (7.0, 5.0, 7.0)
    clock.now += 100.0  # between two programs: nobody's
    session.run(labelled(session, "long", lasts(clock, 1, 4.0)))
    assert (meter["long"].seconds, meter["short"].seconds, meter.total.seconds) == (11.0, 5.0, 11.0)


def test_seconds_count_to_the_error_that_ends_a_program(simulate: Fixture, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(time, "perf_counter", clock)
    session = simulate(2)

    def fails() -> Rounds[None]:
        yield from lasts(clock, 2, 1.5)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        session.run(labelled(session, "fails", fails()))
    assert (session.meter["fails"].seconds, session.meter.total.seconds) == (3.0, 3.0)


def test_reset_starts_from_zero(simulate: Fixture) -> None:
    session = simulate(2)
    session.run(labelled(session, "a", opens(session, 1, 1)))
    session.meter.reset()
    assert session.meter.total.rounds == 0 and session.meter.labels() == {}
    assert "opened_bytes=0" in repr(session.meter)
