"""A client between machines meets the world by lines: what does not fit, or does not come, is said with the cure."""

from __future__ import annotations

import io
import json
import os
import select
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.errors import ConfigError, RangeError, StoppedTogether
from protocols.run import line_desk
from protocols.run.line_desk import _SOON, LineDesk, Lines
from protocols.run.tagged_file import prepare


def came(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])


def desk(
    said: bytes, told: Any = None, *, timeout: float = 20.0, ended: bool = True, waiting: Any = None,
    outside: Any = came, heard: int | None = None,
) -> LineDesk:  # fmt: skip
    if heard is None:
        heard, out = os.pipe()
        os.write(out, said)
        if ended:
            os.close(out)
    return LineDesk(
        Lines(heard, told or io.StringIO(), timeout=timeout), outside=outside, timeout=timeout, start=0, kept=None,
        keeps=None, notes=None, pipe=Path(), others=[], waiting=waiting or (lambda _: None),
    )  # fmt: skip


def test_lines_in_and_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_desk, "_STOPPING", 0.0)
    told = io.StringIO()
    sits = desk(b'{"decision": 0, "values": [1, 0.5]}\r\n{"decision": 1, "values": [0, -1]}\n', told)
    assert sits.hear((2, 1)).tolist() == [[1.0], [0.5]]
    sits.tell(np.array([[3], [4]]))
    assert sits.hear((1, 2)).tolist() == [[0.0, -1.0]]
    assert json.loads(told.getvalue()) == {"decision": 0, "values": [3, 4]}
    with pytest.raises(ConfigError, match="stdin ended before the line of decision 2"):
        sits.hear((1, 2))


def test_a_world_that_ends_since_all_stop_is_no_mistake() -> None:
    """The puller ends, so what stands behind it ends, and the payer's stdin: before the parties' word is read."""
    heard, out = os.pipe()
    os.close(out)
    asked: list[int] = []

    def outside(descriptor: int, seconds: float) -> bool:
        asked.append(descriptor)
        if descriptor == heard:
            return True
        assert 5 < seconds < 11, "less than a round: the parties miss it otherwise"
        raise StoppedTogether("all stop after decision 2", peer=0, done=2)

    sits = desk(b"", outside=outside, heard=heard)
    with pytest.raises(StoppedTogether):
        sits.hear((1, 1))
    assert asked[0] == heard and len(asked) == 2


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


def noted(*arms: int) -> list[np.ndarray]:
    return [np.array([[arm]]) for arm in arms]


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize(("start", "known"), [(2, (1, 0)), (4, ())])
def test_what_was_noted_and_not_told_when_its_role_died_is_told(
    start: int, known: tuple[int, ...], again: bool
) -> None:
    """Notes come before the world: the last of four may be missing there, and no other."""
    told = io.StringIO()
    lines = Lines(0, told, timeout=20.0, resumed=True)
    lines.begin(start, noted(*known), noted(0)[0], again=again)
    lines.tell_last()
    for at, arm in enumerate(known, start):
        lines.tell(at, [arm])
    lines.tell(4, [2])
    said = [json.loads(line) for line in told.getvalue().splitlines()]
    wanted = [2, 3, 4] if again and known else [3, 4]
    assert [each["decision"] for each in said] == wanted and said[-2]["values"] == [0]


def test_what_this_process_told_is_not_told_again() -> None:
    told = io.StringIO()
    lines = Lines(0, told, timeout=20.0)
    lines.begin(0)
    for at, arm in enumerate((1, 0)):
        lines.tell(at, [arm])
    for start, known in ((1, noted(0)), (2, [])):
        lines.begin(start, known, noted(0)[0])
        lines.tell_last()
    lines.tell(1, [0])
    assert told.getvalue().count("decision") == 2


@pytest.mark.parametrize("resumed", [False, True])
def test_what_comes_of_a_decision_may_come_twice_once_all_have_gone_back(resumed: bool) -> None:
    heard, out = os.pipe()
    line = '{{"decision": {}, "values": [1]}}\n'.format
    os.write(out, (line(0) + line(0) + line(1)).encode())
    lines = Lines(heard, io.StringIO(), timeout=20.0, resumed=resumed)
    lines.begin(0)
    assert lines.hear(0, 1, came, lambda _: None).tolist() == [1.0]
    if resumed:
        assert lines.hear(1, 1, came, lambda _: None).tolist() == [1.0]
    else:
        with pytest.raises(ConfigError, match="is not that of decision 1"):
            lines.hear(1, 1, came, lambda _: None)
    os.close(heard)
    os.close(out)


def again(*lines: str, told: tuple[tuple[int, int, int], ...] = ((1, 3, 2),)) -> tuple[Lines, io.StringIO]:
    """A run that goes on from decision 1 with other coins, for the second time."""
    (heard, out), said = os.pipe(), io.StringIO()
    os.write(out, "".join(f"{line}\n" for line in lines).encode())
    os.close(out)
    lines_of = Lines(heard, said, timeout=20.0)
    lines_of.begin(0, again=True)
    lines_of.begin(1, again=True, told=told)
    return lines_of, said


def test_what_is_told_anew_says_so_and_what_comes_of_an_earlier_telling_is_passed_over() -> None:
    line = '{{"decision": {}, "values": [{}], "again": {}}}'.format
    stale = [line(2, 9, 0), line(1, 9, 0), line(1, 9, 1), '{"decision": 2, "values": [9]}', line(0, 9, 0)]
    lines, said = again(*stale, line(1, 5, 2), line(2, 9, 1), line(2, 6, 2), '{"decision": 3, "values": [7]}')
    for number, wanted in ((1, 5.0), (2, 6.0), (3, 7.0)):
        lines.tell(number, [number])
        assert lines.hear(number, 1, came, lambda _: None).tolist() == [wanted]
    told = [json.loads(each) for each in said.getvalue().splitlines()]
    assert [(each["decision"], each["again"]) for each in told] == [(1, 2), (2, 2), (3, 0)]


def test_a_world_that_does_not_give_the_telling_back_is_told_where_it_matters() -> None:
    lines, _ = again('{"decision": 1, "values": [5]}')
    with pytest.raises(ConfigError, match=r'decision 1 was told anew, .* "values": \[0.0\], "again": 2}$'):
        lines.hear(1, 1, came, lambda _: None)
    lines, _ = again('{"decision": 1, "values": [5], "again": 3}')
    with pytest.raises(ConfigError, match="is not that of decision 1"):
        lines.hear(1, 1, came, lambda _: None)
    lines, _ = again('{"decision": 1, "values": [5]}', told=())
    assert lines.hear(1, 1, came, lambda _: None).tolist() == [5.0]


def test_which_telling_it_is_of_counts_in_a_replay_with_the_same_coins_too() -> None:
    """Once coins differed, what came of the first may be on its way for as long as the run lasts."""
    line = '{{"decision": {}, "values": [{}], "again": {}}}'.format
    lines, said = again(line(1, 9, 1), line(1, 5, 2), line(2, 9, 0), line(2, 6, 2))
    lines.tell(1, [1.0])
    assert lines.hear(1, 1, came, lambda _: None).tolist() == [5.0]
    lines.begin(2, told=((1, 3, 2),))
    lines.tell(2, [2.0])
    assert lines.hear(2, 1, came, lambda _: None).tolist() == [6.0]
    told = [json.loads(each) for each in said.getvalue().splitlines()]
    assert [(each["decision"], each["again"]) for each in told] == [(1, 2), (2, 2)]


def test_what_is_judged_wrong_is_not_written_down_and_heard_anew(tmp_path: Path) -> None:
    record = tmp_path / "heard"
    prepare(tmp_path)

    def heard(number: int, *values: float) -> list[float]:
        """As a role that was started again with these lines."""
        said, out = os.pipe()
        os.write(out, "".join(f'{{"decision": {number}, "values": [{value}]}}\n' for value in values).encode())
        os.close(out)
        lines = Lines(said, io.StringIO(), timeout=20.0, record=record, resumed=True)
        lines.begin(number)
        sits = LineDesk(
            lines, outside=came, timeout=20.0, start=number, kept=None, keeps=None, notes=None, pipe=tmp_path, others=[]
        )  # fmt: skip
        try:
            return [float(sits.hear((), judge).item())]
        finally:
            lines.close()
            os.close(said)

    def judge(values: np.ndarray) -> None:
        if values > 1.0:
            raise RangeError("rewards lie below 1")

    assert heard(0, 0.5) == [0.5]
    for _ in range(2):
        with pytest.raises(RangeError, match="rewards lie below 1"):
            heard(1, 10.0)
    assert heard(1, 1.0) == [1.0] and heard(1) == [1.0], "as it is known"


def test_a_client_that_is_not_at_every_decision_asks_once_at_each_by_its_number(tmp_path: Path) -> None:
    """What it heard is found by decision when it goes on; with other coins what was behind is asked for anew."""
    record, line = tmp_path / "heard", '{{"decision": {}, "values": [{}], "again": {}}}'.format
    prepare(tmp_path)

    def asked(start: int, wanted: Sequence[int], *answers: str, **begun: Any) -> tuple[list[float], list[int]]:
        (heard, out), said = os.pipe(), io.StringIO()
        os.write(out, "".join(f"{answer}\n" for answer in answers).encode())
        os.close(out)
        lines = Lines(heard, said, timeout=20.0, record=record, resumed=start > 0)
        lines.begin(start, **begun)
        sits = LineDesk(
            lines, outside=came, timeout=20.0, start=start, kept=None, keeps=None, notes=None, pipe=tmp_path, others=[]
        )  # fmt: skip
        values = [sits.ask(decision, np.array(0), ()).item() for decision in wanted]
        sits.close()
        lines.close()
        os.close(heard)
        return values, [json.loads(each)["decision"] for each in said.getvalue().splitlines()]

    assert asked(0, (1, 4, 5), line(1, 10, 0), line(4, 40, 0), line(5, 50, 0)) == ([10.0, 40.0, 50.0], [1, 4, 5])
    assert asked(3, (4, 5, 7), line(7, 70, 0)) == ([40.0, 50.0, 70.0], [7])
    anew = {"again": True, "told": ((3, 1 << 62, 1),)}
    assert asked(3, (5, 6), line(4, 41, 0), line(5, 51, 1), line(6, 61, 1), **anew) == ([51.0, 61.0], [5, 6])


def test_a_record_that_lacks_what_decisions_were_paid_is_to_be_put_back(tmp_path: Path) -> None:
    """Its end was lost, which no tag shows: what the parties kept has learned from more."""
    record = tmp_path / "heard"
    prepare(tmp_path)
    (heard, out) = os.pipe()
    os.write(out, b'{"decision": 0, "values": [1]}\n')
    os.close(out)

    def begun(start: int) -> LineDesk:
        lines = Lines(heard, io.StringIO(), timeout=20.0, record=record, resumed=start > 0)
        lines.begin(start)
        return LineDesk(
            lines, outside=came, timeout=20.0, start=start, kept=None, keeps=None, notes=None, pipe=tmp_path, others=[]
        )  # fmt: skip

    first = begun(0)
    assert first.hear(()) == 1.0
    first._lines.close()
    begun(1).hear_from(0, ())
    begun(2).hear_from(1, ())
    with pytest.raises(ConfigError, match="heard says what came of 1 decisions, and 2 were made: put it back"):
        begun(2).hear_from(0, ())
    os.close(heard)
