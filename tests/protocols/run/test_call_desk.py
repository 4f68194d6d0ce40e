"""A client's world as functions: what they give and raise is said by kind and place, and never in words."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.errors import ConfigError, PeerLost, RangeError
from protocols.run.call_desk import Calls, found
from protocols.run.line_desk import LineDesk


def desk(**calls: Callable[..., Any]) -> LineDesk:
    return LineDesk(
        Calls(0, io.StringIO(), timeout=20.0, **calls), outside=lambda *_: True, timeout=20.0, start=0, kept=None,
        keeps=None, notes=None, pipe=Path(), others=[],
    )  # fmt: skip


def test_functions_are_called_in_the_order_of_decisions() -> None:
    told: list[Any] = []
    sits = desk(tells=lambda *given: told.append(given), hears=lambda number: [0.5, number])
    sits.tell(np.array([[3], [4]]))
    sits.tell(np.array(7))
    assert told == [(0, [3, 4]), (1, [7])]
    assert sits.hear((2, 1)).tolist() == [[0.5], [0.0]] and sits.hear((1, 2)).tolist() == [[0.5, 1.0]]
    assert desk(hears=lambda _: 1).hear(()).item() == 1.0


@pytest.mark.parametrize("given", [None, "much", [1.0], [1.0, float("nan")], [[1.0, 2.0]], {}])
def test_what_does_not_fit_is_named_by_its_kind(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"<lambda>\(0\) gives \w+ where 2 finite numbers are due"):
        desk(hears=lambda _: given).hear((2,))


def test_what_a_function_raises_is_not_repeated() -> None:
    def fails(number: int) -> float:
        raise ValueError("the patient has 4711")

    with pytest.raises(ConfigError, match=r"^fails of decision 0 failed, by ValueError in test_call_desk.py:\d+$"):
        desk(hears=fails).hear(())


def test_what_is_judged_wrong_is_asked_of_the_function_again() -> None:
    given = [10.0, 1.0]
    sits = desk(hears=lambda _: given.pop(0))

    def judge(values: np.ndarray) -> None:
        if values > 1.0:
            raise RangeError("rewards lie below 1")

    with pytest.raises(RangeError, match="rewards lie below 1"):
        sits.hear((), judge)
    assert sits.hear((), judge).item() == 1.0


def test_a_function_is_found_beside_the_file_and_not_before_what_is_installed(tmp_path: Path) -> None:
    (tmp_path / "ward_of_test.py").write_text("def tell(decision, values): pass\nbed = 3\n")
    (tmp_path / "numpy.py").write_text("raise SystemExit\n")
    assert found("ward_of_test:tell", tmp_path).__name__ == "tell"
    assert found("numpy:zeros", tmp_path) is np.zeros
    for where, words in (
        ("ward_of_test:bed", "has no function bed"), ("no_such_ward:tell", "imported, by ModuleNotFoundError"),
    ):  # fmt: skip
        with pytest.raises(ConfigError, match=words):
            found(where, tmp_path)


def test_a_call_that_takes_long_leaves_its_role_able_to_hear_of_the_others() -> None:
    """One that is under way when all go on is not made twice; where coins differ, its value is of no use."""
    calls, over = list[int](), threading.Event()

    def hears(number: int) -> float:
        calls.append(number)
        made = len(calls)
        over.wait(300)
        return float(made)

    def lost(*_: object) -> bool:
        raise PeerLost("party 1 is lost", peer=1)

    sits = desk(hears=hears)
    sits._outside = lost
    for again in (False, True):
        with pytest.raises(PeerLost):
            sits.hear(())
        sits._lines.begin(0, again=again)
    assert calls == [0]

    def comes(*_: object) -> bool:
        over.set()
        return True

    sits._outside = comes
    assert sits.hear(()).item() == 2.0 and calls == [0, 0]


def test_a_call_that_gives_nothing_in_time_is_named() -> None:
    ends, whom = threading.Event(), list[str]()

    def ask_the_ward(_: int) -> float:
        ends.wait(300)
        return 1.0

    sits = LineDesk(
        Calls(0, io.StringIO(), timeout=0.5, hears=ask_the_ward), timeout=0.5, start=0, kept=None, keeps=None,
        notes=None, pipe=Path(), others=[], waiting=whom.append,
    )  # fmt: skip
    with pytest.raises(ConfigError, match=r"^ask_the_ward gave nothing for 0.4 s, for decision 0: give timeouts.round"):
        sits.hear(())
    ends.set()
    assert whom == ["the world outside"]


def test_a_function_that_takes_it_hears_which_telling_is_meant() -> None:
    """A world that has something by that number may have it of another arm."""
    told, asked = list[Any](), list[Any]()

    def tell(decision: int, values: list[float], again: int) -> None:
        told.append((decision, values, again))

    def hear(decision: int, again: int) -> float:
        asked.append((decision, again))
        return 1.0

    calls = Calls(0, io.StringIO(), timeout=20.0, tells=tell, hears=hear)
    for start, before in ((0, ()), (1, ((1, 2, 1),))):
        calls.begin(start, again=True, told=before)
        for at in range(start, 3):
            calls.tell(at, [at + start])
            calls.hear(at, 1, lambda *_: True, lambda _: None)
    assert told == [(0, [0], 0), (1, [1], 0), (2, [2], 0), (1, [2], 1), (2, [3], 0)]
    assert asked == [(0, 0), (1, 0), (2, 0), (1, 1), (2, 0)]


def test_a_function_that_does_not_take_it_is_refused_where_it_matters() -> None:
    calls = Calls(0, io.StringIO(), timeout=20.0, hears=lambda decision: 1.0)
    calls.begin(0, again=True, told=((1, 2, 1),))
    assert calls.hear(0, 1, lambda *_: True, lambda _: None).tolist() == [1.0]
    with pytest.raises(ConfigError, match=r"decision 1 was told anew, and <lambda> is not asked of which telling"):
        calls.hear(1, 1, lambda *_: True, lambda _: None)
