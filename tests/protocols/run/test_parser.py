"""What argparse says of a mistake, and the numbers that it reads."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator

import pytest

from protocols.cli import _parser
from protocols.run.parser import Parser, whole


def parser() -> Parser:
    found = Parser(prog="masked")
    found.add_argument("--version", action="version", version="1")
    run = found.add_subparsers(metavar="PROGRAM", required=True).add_parser("ppcb")
    run.add_argument("--steps", type=int, default=5)
    run.add_argument("--data", choices=["digits", "mnist"])
    return found


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("ppcb --stps 3", "masked ppcb: there is no --stps: did you mean --steps?"),
        ("ppcb --stps=3", "masked ppcb: there is no --stps: did you mean --steps?"),
        ("ppcb --zzz", "masked ppcb: there is no --zzz ("),
        ("ppcb more", "masked ppcb: there is no more ("),
        ("ppcb --data digts", "argument --data: invalid choice: 'digts': did you mean digits?"),
        ("ppcb --data x", "invalid choice: 'x' (choose from"),
        ("pcb", "masked: argument PROGRAM: invalid choice: 'pcb': did you mean ppcb?"),
        (
            "ppcb --steps 1.5",
            "--steps: invalid int value: '1.5': a whole number, such as 500 or 1e3, is wanted",
        ),
        ("--verson", "masked: there is no --verson: did you mean --version?"),
        ("--zzz=3", "masked: there is no --zzz ("),
        ("", "masked: the following arguments are required: PROGRAM"),
    ],
)
def test_a_mistake_is_one_line_with_its_cure(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parser().parse_args(words.split())
    out, err = capsys.readouterr()
    assert stop.value.code == 2 and out == "" and err.count("\n") == 1
    assert err.startswith("error: ") and said in err and "--help' says what there is" in err


@pytest.mark.parametrize(
    ("text", "number"), [("1e6", 10**6), ("60_000", 60_000), ("60,000", 60_000), ("-3", -3), ("2.5e3", 2500)]
)
def test_numbers_as_people_write_them(text: str, number: int) -> None:
    assert whole(text) == number
    assert parser().parse_args(["ppcb", f"--steps={text}"]).steps == number


@pytest.mark.parametrize("text", ["", "x", "1.5", "1,5", "1,00", "nan", "inf", "1e30", "1e-3"])
def test_what_is_no_whole_number_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="no whole number"):
        whole(text)


def options_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Of all commands below it, with their names."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in dict.fromkeys(action.choices.values()):
                yield from options_of(below)
        elif isinstance(action.default, (int, float)) and not isinstance(action.default, bool):
            yield parser.prog, action


def test_numbers_that_help_gives_as_defaults_are_these() -> None:
    said = 0
    for name, action in options_of(_parser([])):
        if found := re.search(r"\(([\d.,e+-]+)\)$", action.help or ""):
            said += 1
            assert float(found[1].replace(",", "")) == action.default, (name, action.option_strings)
    assert said > 400
