"""Every Python block of the documents runs, in order, in one namespace per document; so do the README's commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.parties.processes import free_port

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(document: Path) -> list[tuple[int, str]]:
    """(line, code) of each block marked python."""
    text = document.read_text()
    return [
        (text[: found.start(1)].count("\n"), found.group(1))
        for found in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S)
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_blocks_run(document: Path) -> None:
    namespace: dict[str, object] = {"__name__": "document"}
    for line, code in blocks(document):
        if "import pandas" in code:
            pytest.importorskip("pandas")
        exec(compile("\n" * line + code, str(document), "exec"), namespace)


def test_there_is_something_to_run() -> None:
    assert len(blocks(ROOT / "docs" / "how-it-works.md")) >= 8
    assert blocks(ROOT / "README.md")


def commands() -> list[list[str]]:
    """The README's commands, as this environment's interpreter runs them; torchrun on a port of its own."""
    text = "\n".join(re.findall(r"^```sh\n(.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S))
    programs = {
        ".venv/bin/masked": ["protocols"],
        ".venv/bin/torchrun": ["torch.distributed.run", "--master-port", free_port()],
    }
    lines = [shlex.split(line, comments=True) for line in text.splitlines()]
    return [[sys.executable, "-m", *programs[line[0]], *line[1:]] for line in lines if line and line[0] in programs]


@pytest.mark.needs("torch", "sklearn", "matplotlib", "dp_accounting", "phe")
@pytest.mark.long
@pytest.mark.timeout(900)
def test_readme_commands_run(tmp_path: Path) -> None:
    assert len(commands()) >= 7
    for command in commands():
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
        assert done.returncode == 0, (command, done.stderr)
