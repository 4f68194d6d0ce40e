"""On a terminal lines fit and have colour; in a pipe nothing changes."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from protocols.run.terminal import fit, spoken, write_line

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0.00 ms"), (0.00364, "3.64 ms"), (1.0, "1.0 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min"),
        (200, "3 min 20 s"), (3600, "1 h"), (7500, "2 h 5 min"), (90_000, "1 d 1 h"),
    ],
)  # fmt: skip
def test_times_are_as_people_say_them(seconds: float, said: str) -> None:
    assert spoken(seconds) == said


def test_a_line_and_its_end_are_one_write() -> None:
    """Several roles say their lines to one pipe, unbuffered: none stands in the middle of another's."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.taken = list[bytes]()

        def writable(self) -> bool:
            return True

        def write(self, data: object) -> int:
            self.taken.append(bytes(data))  # type: ignore[call-overload]
            return len(self.taken[-1])

    write_line("error: no", io.TextIOWrapper(pipe := Pipe(), write_through=True))  # type: ignore[type-var]
    assert [taken for taken in pipe.taken if taken] == [b"error: no\n"]


def test_lines_go_on_below_and_no_word_is_broken() -> None:
    text = "  masked launch ppcb --parties 3 --out runs/a   the bandit, with a process for each owner\nshort"
    assert fit(text, None) == text == fit(text, 200)
    narrow = fit(text, 40)
    assert max(map(len, narrow.split("\n"))) <= 40 and narrow.split() == text.split()
    assert narrow.split("\n")[1].startswith("      ")
    assert fit("x" * 90, 40) == "x" * 90, "a word that is longer than a line stays whole"


def said_on_terminal(*words: str, columns: int = 60, **environment: str) -> str:
    """What `masked` prints where its streams are a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    given = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    with subprocess.Popen(
        [sys.executable, "-m", "protocols", *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=ROOT,
        env={**given, "TERM": "xterm", **environment},
    ):  # fmt: skip
        os.close(theirs)
        heard = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            heard += part
    os.close(ours)
    return heard.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("words", [("--help",), ("run", "ppcb", "--help"), ("privacy", "--help")], ids=" ".join)
def test_help_fits_sixty_columns(words: tuple[str, ...]) -> None:
    text = said_on_terminal(*words, NO_COLOR="1", TERM="dumb")
    wide = [line for line in text.split("\n") if len(line) > 60 and len(line.split()) > 1]
    assert "masked" in text and not wide, wide


@pytest.mark.needs("rich")
def test_a_mistake_is_red_on_a_terminal_and_plain_elsewhere() -> None:
    assert "\x1b[1;31merror:\x1b[0m" in said_on_terminal("run", "nothing")
    assert "\x1b" not in said_on_terminal("run", "nothing", NO_COLOR="1", TERM="dumb")
    done = subprocess.run(
        [sys.executable, "-m", "protocols", "run", "nothing"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "\x1b" not in done.stderr


def test_a_document_is_left_as_it_is() -> None:
    words = ("run", "argmax", "--size", "3", "--parties", "2", "--json")
    assert json.loads(said_on_terminal(*words, columns=30))["parties"] == 2
