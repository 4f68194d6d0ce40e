"""A client's world as functions: what they give and raise is said by kind and place, and never in words."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.errors import ConfigError
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
