"""A client between machines meets the world by lines: what does not fit, or does not come, is said with the cure."""

from __future__ import annotations

import io
import json
import os
import select
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.errors import ConfigError
from protocols.run.line_desk import _SOON, LineDesk, Lines


def came(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])


def desk(said: bytes, told: Any = None, *, timeout: float = 20.0, ended: bool = True, waiting: Any = None) -> LineDesk:
    heard, out = os.pipe()
    os.write(out, said)
    if ended:
        os.close(out)
    return LineDesk(
        Lines(heard, told or io.StringIO(), timeout=timeout), outside=came, timeout=timeout, start=0, kept=None,
        keeps=None, notes=None, pipe=Path(), others=[], waiting=waiting or (lambda _: None),
    )  # fmt: skip


def test_lines_in_and_out() -> None:
    told = io.StringIO()
    sits = desk(b'{"decision": 0, "values": [1, 0.5]}\r\n{"decision": 1, "values": [0, -1]}\n', told)
    assert sits.hear((2, 1)).tolist() == [[1.0], [0.5]]
    sits.tell(np.array([[3], [4]]))
    assert sits.hear((1, 2)).tolist() == [[0.0, -1.0]]
    assert json.loads(told.getvalue()) == {"decision": 0, "values": [3, 4]}
    with pytest.raises(ConfigError, match="stdin ended before the line of decision 2"):
        sits.hear((1, 2))


@pytest.mark.parametrize(
    "line",
    [
        "no JSON", "[]", "7", '{"decision": 0}', '{"decision": 1, "values": [1]}', '{"decision": 0, "values": [1, 2]}',
        '{"decision": 0, "values": ["a"]}', '{"decision": 0, "values": [1e999]}', '{"decision": 0, "values": 1}',
        '{"decision": 0, "values": [[1]]}', "[" * 5000, '{"decision": 0, "values": [' + "9" * 400 + "]}",
    ],
)  # fmt: skip
def test_a_line_that_does_not_fit_is_shown_one_that_does(line: str) -> None:
    with pytest.raises(ConfigError) as raised:
        desk(line.encode() + b"\n").hear((1, 1))
    like = 'line 1 on stdin is not that of decision 0, such as {"decision": 0, "values": [0.0]}'
    assert str(raised.value) == like


def test_a_world_that_is_late_is_waited_for_and_then_named() -> None:
    whom: list[str] = []
    with pytest.raises(ConfigError, match=r"no line came on stdin for 0.4 s, for decision 0: give timeouts.round"):
        desk(b"", timeout=0.5, ended=False, waiting=whom.append).hear((1, 1))
    assert whom == ["the world outside"]


def test_a_line_without_an_end_is_refused() -> None:
    sits = desk(b"", ended=False)
    sits._lines._raw = b"1" * (1 << 21)
    with pytest.raises(ConfigError, match="more than 1,048,576 bytes"):
        sits.hear((1, 1))


def test_nobody_who_reads_is_an_error_and_no_success() -> None:
    class Gone(io.StringIO):
        def write(self, _: str) -> int:
            raise BrokenPipeError(32, "Broken pipe")

    with pytest.raises(ConfigError, match=r"nobody takes the lines of this role \(Broken pipe\), from decision 0 on"):
        desk(b"", Gone()).tell(np.array([[1]]))


def test_where_the_others_hear_of_it_they_give_up_on_each_other_first() -> None:
    """A client that waits for the world begins to wait before the parties do, and blames nobody for their silence."""
    lines = Lines(0, io.StringIO(), timeout=60.0, watched=True)
    assert 60.0 < lines._within < 60.0 + _SOON * lines._within, "by then the parties have waited anew"
    assert Lines(0, io.StringIO(), timeout=60.0)._within < 60.0
