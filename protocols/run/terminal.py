"""What a person sees on a terminal: lines that fit, colour, a bar, times as people say them.  The door to rich.

Where no person looks, in a pipe or a file, nothing is changed; COLUMNS says how wide lines may be there.  Without rich
(extra `terminal`) there is no colour.  Knows text; no result.
"""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from typing import IO, Any, TextIO

from mpc.extras import installed

_LEAST = 20  # columns; below it a line is left as it is
_HANGING = "    "
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def spoken(seconds: float) -> str:
    """A time as people say it: 3.64 ms, 4.2 s, 3 min 20 s, 2 h 5 min."""
    if seconds < 1:
        return f"{1e3 * seconds:.2f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for at, (size, unit) in enumerate(_UNITS):
        if whole >= size:
            smaller, name = (_UNITS[at + 1]) if at + 1 < len(_UNITS) else (1, "s")
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {name}" if rest else "")
    return f"{whole} s"


def write_line(text: str, stream: IO[str] | None = None) -> None:
    """On stdout or `stream`, at once and in one piece with its end: no other line there stands in its middle."""
    print(f"{text}\n", end="", file=stream, flush=True)


def width_of(stream: TextIO) -> int | None:
    """How many columns a line may have; None where it may be as long as it is."""
    with contextlib.suppress(ValueError, KeyError):
        if (said := int(os.environ["COLUMNS"])) >= _LEAST:
            return said
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if stream.isatty() and (found := os.get_terminal_size(stream.fileno()).columns) >= _LEAST:
            return found
    return None


def fit(text: str, width: int | None) -> str:
    """Lines that are too long go on below, behind a hanging indent; no word is broken."""
    if width is None:
        return text
    return "\n".join(_fit(line, width) for line in text.split("\n"))


def _fit(line: str, width: int) -> str:
    if len(line) <= width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    below = (indent and indent + _HANGING)[: width // 2]
    return textwrap.fill(
        line.strip(), width, initial_indent=indent[: width // 2], subsequent_indent=below, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip


class _Fitted:
    """A stream whose whole lines fit; all else is that of the stream itself."""

    def __init__(self, stream: TextIO, write: Callable[[str], object]) -> None:
        self._stream, self._write, self._begun = stream, write, ""

    def write(self, text: str) -> int:
        """Lines that end are written; a line that is rewritten passes as it is."""
        if "\r" in text:
            self._stream.write(text)
            return len(text)
        *whole, self._begun = (self._begun + text).split("\n")
        for line in whole:
            self._write(_fit(line, width_of(self._stream) or sys.maxsize))
        return len(text)

    def flush(self) -> None:
        """Also of a line that is not at its end."""
        if self._begun:
            self._stream.write(self._begun)
            self._begun = ""
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def on_terminals(*, plain: bool = False) -> Iterator[None]:
    """Within it, what is printed on a terminal fits it and is coloured.  plain: leave it, as other tools read it."""
    with contextlib.ExitStack() as stack:
        for stream, redirect in ((sys.stdout, contextlib.redirect_stdout), (sys.stderr, contextlib.redirect_stderr)):
            if not plain and stream is not None and stream.isatty():
                fitted: Any = _Fitted(stream, _coloured(stream))
                stack.enter_context(redirect(fitted))
                stack.callback(fitted.flush)
        yield


def _coloured(stream: TextIO) -> Callable[[str], object]:
    """Writes a line, in colour where rich is here; rich knows NO_COLOR and terminals that have none."""
    if not installed("rich"):
        return lambda line: stream.write(line + "\n")
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, soft_wrap=True)

    def write(line: str) -> None:
        text = Text(line)
        if line.startswith("error: "):
            text.stylize("bold red", 0, 6)
        elif line and not line.startswith(" ") and (line.endswith(":") or line == "who learned what"):
            text.stylize("bold")
        console.print(text, markup=False, highlight=not line.startswith("error: "))

    return write


def bar(done: int, total: int, stream: TextIO, *, columns: int = 24) -> str:
    """A bar for the front of a line that is rewritten; nothing without rich."""
    if not installed("rich"):
        return ""
    from rich.console import Console
    from rich.progress_bar import ProgressBar

    console = Console(file=stream, width=columns + 1)
    with console.capture() as drawn:
        console.print(ProgressBar(total=max(1, total), completed=done, width=columns), end="")
    return drawn.get().replace("\n", "") + " "
