"""Every Python block of the pages runs, in order, in one namespace per page; so do their commands, in one folder.

Blocks marked `sh long` are left to `scripts/snippets`; commands that no block runs are at least ones that there are.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from protocols.bench.snippets import ROOT, blocks, commands, pages, programs, run
from protocols.cli import main
from tests.parties.processes import free_port

PAGES = pages()


def name_of(page: Path) -> str:
    """Of a test."""
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_blocks_run(page: Path) -> None:
    namespace: dict[str, object] = {"__name__": "document"}
    for block in blocks(page, "python"):
        if "import pandas" in block.code:
            pytest.importorskip("pandas")
        exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)


def test_there_is_something_to_run() -> None:
    assert len(blocks(ROOT / "docs" / "how-it-works.md", "python")) >= 8
    assert blocks(ROOT / "README.md", "python") and len(short(ROOT / "README.md")) >= 13


def short(page: Path) -> list[str]:
    """What this suite runs."""
    found = [block.code for block in blocks(page, "sh") if "long" not in block.marks]
    return [command for code in found for command in commands(code)]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", [page for page in PAGES if short(page)], ids=name_of)
def test_commands_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`masked` in this process, as its start takes longer than most of what it does here."""
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    environment = programs(tmp_path)
    for command in short(page):
        words = shlex.split(command.replace("\\\n", " "), comments=True)
        if Path(words[0]).name == "torchrun":
            words[1:1] = ["--master-port", free_port()]
        if Path(words[0]).name == "masked" and not {"|", ">", "<", "&"} & set(words):
            code, said = played(words[1:]), capfd.readouterr().err
        else:
            done = run(shlex.join(words) if "--master-port" in words else command, here, environment)
            code, said = done.returncode, done.stderr
        if code and (wanted := re.search(r"pip install 'masked-bandits\[(\w+)\]'", said)):
            pytest.skip(f"the extra '{wanted[1]}' is not installed")
        assert code == 0, (command, said)


def played(words: list[str]) -> int:
    """The exit code of `masked` with these."""
    try:
        main(words)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0
