"""The commands of README, docs and examples, run as a reader would: page by page, each page in a folder of its own.

A block marked `sh` is run line by line in the order of its page; those marked `sh long` and `python long` are left to
this script, as the suite of tests has no time for them, and `sh hours`, which make tables and figures of the pages, to
its option --hours.  One marked `text` is read alone.  `masked`, `python` and `torchrun` are those of
this interpreter; DIR is the folder that --data-dir names, and lines that want it are left out without one.

Each line goes to stderr with its seconds; exit code 1 if one failed.

examples:
  scripts/snippets                         all pages: half an hour on two slow cores
  scripts/snippets docs/samba.md --long    the long blocks of one page, and what stands before them
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from mpc.errors import ConfigError

from ..run.exits import exit_codes, say

ROOT = Path(__file__).resolve().parents[2]
_NOT_HERE = ("scripts/test",)  # what runs everything
_PROGRAMS = {"masked": "protocols", "python": None, "torchrun": "torch.distributed.run"}
_SCRIPT = ("python", "long")
_LIMIT = 1800.0


class Block(NamedTuple):
    """What stands between two fences.  line: of the first fence; marks: the words behind the language."""

    line: int
    language: str
    marks: tuple[str, ...]
    code: str


def pages() -> list[Path]:
    """All pages that have snippets."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


def blocks(page: Path, language: str | None = None) -> list[Block]:
    """Of one language, or all, in order."""
    text = page.read_text()
    found = [
        Block(text[: match.start(3)].count("\n"), match.group(1), tuple(match.group(2).split()), match.group(3))
        for match in re.finditer(r"^```(\w+)([^\n]*)\n(.*?)^```$", text, re.M | re.S)
    ]
    return [block for block in found if language in (None, block.language)]


def commands(code: str) -> Iterator[str]:
    """The lines of a block of commands; one that goes on, behind a backslash or in quotes, is one."""
    whole = ""
    for line in code.splitlines():
        whole += f"{line}\n"
        try:
            words = shlex.split(whole.replace("\\\n", " "), comments=True)
        except ValueError:  # a quote is open
            continue
        if not line.endswith("\\"):
            if words:
                yield whole.strip()
            whole = ""
    if whole:
        raise ConfigError(f"a block of commands ends inside one: {whole.strip()}")


def programs(folder: Path) -> dict[str, str]:
    """An environment whose `masked`, `python` and `torchrun` are of this interpreter, whatever is installed."""
    (folder / "bin").mkdir()
    for program, module in _PROGRAMS.items():
        starts = shlex.quote(sys.executable) + (f" -m {module}" if module else "")
        (path := folder / "bin" / program).write_text(f'#!/bin/sh\nexec {starts} "$@"\n')
        path.chmod(0o755)
    bin = folder / "bin"
    here = {"PATH": f"{bin}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return {**os.environ, **here, "MASKED": str(bin / "masked"), "PYTHON": str(bin / "python")}


def run(
    command: str, folder: Path, environment: dict[str, str], limit: float | None = _LIMIT
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """By bash, as it stands but for the folders that programs, scripts and examples are in."""
    text = re.sub(r"(^|[\s(])\.venv/bin/", r"\1", command, flags=re.M)
    text = re.sub(r"(^|[\s(])(scripts|examples)/", lambda found: f"{found[1]}{ROOT}/{found[2]}/", text, flags=re.M)
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text], cwd=folder, env=environment, capture_output=True, text=True,
        timeout=limit, check=False,
    )  # fmt: skip


def _play(page: Path, data: Path | None, *, long: bool, hours: bool) -> Iterator[bool | None]:
    """Whether each command did what it should, None where it was left out.

    long: no block behind the last long one is run.  hours: those that take so long are run, else left out.
    """
    found = [block for block in blocks(page) if block.language == "sh" or (block.language, *block.marks) == _SCRIPT]
    found = [block for block in found if hours or "hours" not in block.marks]
    if long:
        found = found[: max((at for at, block in enumerate(found, 1) if "long" in block.marks), default=0)]
    with tempfile.TemporaryDirectory(prefix="snippets-") as name:
        folder, environment = Path(name) / "here", programs(Path(name))
        folder.mkdir()
        for block in found:
            if block.language == "python":
                (folder / "snippet.py").write_text(block.code)
            for command in commands(block.code) if block.language == "sh" else ["python snippet.py"]:
                if command.startswith(_NOT_HERE):
                    continue
                where, limit = f"{page.relative_to(ROOT)}:{block.line}", None if "hours" in block.marks else _LIMIT
                yield _one(command, where, data, folder, environment, limit)


def _one(
    command: str, where: str, data: Path | None, folder: Path, environment: dict[str, str], limit: float | None
) -> bool | None:  # fmt: skip
    if re.search(r"\bDIR\b", command):
        if data is None:
            say(f"{where}  left out, it wants --data-dir  {command}")
            return None
        command = re.sub(r"\bDIR\b", lambda _: shlex.quote(str(data)), command)
    begun = time.monotonic()
    done = run(command, folder, environment, limit)
    say(f"{where}  {'well' if done.returncode == 0 else 'FAILED'}, {time.monotonic() - begun:.1f} s  {command}")
    if done.returncode:
        say(f"{done.stdout[-1000:]}{done.stderr[-2000:]}")
    return done.returncode == 0


def main() -> None:
    """Run, and say what failed."""
    parser = argparse.ArgumentParser(
        prog="scripts/snippets", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE", help="(all)")
    parser.add_argument("--long", action="store_true", help="leave out pages, and ends of pages, without a long block")
    parser.add_argument("--hours", action="store_true", help="also what takes hours")
    parser.add_argument("--data-dir", type=Path, help="folder that DIR stands for in the pages")
    options = parser.parse_args()
    with exit_codes():
        chosen = [page.resolve() for page in options.pages] or pages()
        if missing := [page for page in chosen if page not in pages()]:
            raise ConfigError(f"{missing[0]} is none of the pages: README.md, docs, examples")
        data = None if options.data_dir is None else options.data_dir.resolve()
        well = [each for page in chosen for each in _play(page, data, long=options.long, hours=options.hours)]
        left = f", {count} left out" if (count := well.count(None)) else ""
        print(f"{len(well)} commands, {well.count(False)} failed{left}")
        if False in well:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
