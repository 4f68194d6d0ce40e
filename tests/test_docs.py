"""Every Python block of the pages runs, in order, in one namespace per page; so do their commands, in one folder.

Blocks marked `long` and `hours` are left to `scripts/snippets`; commands that no block runs are at least ones that
there are.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from protocols.bench.snippets import ROOT, Block, blocks, commands, pages, programs, run
from protocols.cli import _parser, main
from tests.parties.processes import free_port

PAGES = pages()


def name_of(page: Path) -> str:
    """Of a test."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_run(page: Path) -> None:
    namespace: dict[str, object] = {"__name__": "document"}
    for block in blocks(page, "python"):
        if "long" in block.marks:
            continue
        if "import pandas" in block.code:
            pytest.importorskip("pandas")
        exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)


def test_there_is_something_to_run() -> None:
    assert len(blocks(ROOT / "docs" / "how-it-works.md", "python")) >= 8
    assert blocks(ROOT / "README.md", "python") and len(short(ROOT / "README.md")) == 1


def short(page: Path) -> list[Block]:
    """What this suite runs, and what that is to say."""
    return [
        block for block in blocks(page)
        if (block.language == "sh" and not block.marks) or block.marks == ("said",)
    ]  # fmt: skip


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [page for page in PAGES if short(page)], ids=name_of)
def test_commands_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`masked` in this process, as its start takes longer than most of what it does here."""
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    environment, said = programs(tmp_path), ""
    for block in short(page):
        if block.language == "sh":
            for command in commands(block.code):
                code, out, err = ran(command, here, environment, capfd)
                if code and (wanted := re.search(r"pip install 'masked-bandits\[(\w+)\]'", err)):
                    pytest.skip(f"the extra '{wanted[1]}' is not installed")
                assert code == 0, (command, err)
                said += out
        else:
            missing = [line for line in block.code.splitlines() if line not in said]
            assert not missing, said


def test_every_command_of_the_pages_is_one_that_there_is() -> None:
    """Those that are only read as well: their options are known, and their scripts are there."""
    found = [command for page in PAGES for command in mentioned(page)]
    for program, words in found:
        if program == "masked":
            _parser(words).parse_args(words)
        else:
            assert (ROOT / program).is_file() and os.access(ROOT / program, os.X_OK), program
    assert sum(program == "masked" for program, _ in found) > 100


def mentioned(page: Path) -> list[tuple[str, list[str]]]:
    """`masked`, or a script, and its words; in a block of text two blanks end a command."""
    found = []
    for block in blocks(page):
        for line in re.sub(r"\s*\\\n\s*", " ", block.code).splitlines() if block.language in ("sh", "text") else []:
            if command := re.match(r"(?:\.venv/bin/)?(masked|(?:scripts|examples)/[\w/]+)(?= |$)(.*)", line):
                words = shlex.split(re.split(r"\s{2,}| #| \| ", command[2].lstrip())[0])
                found.append((command[1], [word for word in words if word != "..."]))
    return found


def ran(
    command: str, here: Path, environment: dict[str, str], capfd: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:  # fmt: skip
    """The exit code of a command, and what it said."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    if Path(words[0]).name == "masked" and not {"|", ">", "<", "&", "&&"} & set(words):
        capfd.readouterr()
        return (played(words[1:]), *capfd.readouterr())
    if Path(words[0]).name == "torchrun":
        command = shlex.join([words[0], "--master-port", free_port(), *words[1:]])
    done = run(command, here, environment)
    return done.returncode, done.stdout, done.stderr


def played(words: list[str]) -> int:
    """The exit code of `masked` with these."""
    try:
        main(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
