"""Every Python block of the documents runs, in order, in one namespace per document."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
        exec(compile("\n" * line + code, str(document), "exec"), namespace)


def test_there_is_something_to_run() -> None:
    assert len(blocks(ROOT / "docs" / "how-it-works.md")) >= 8
    assert blocks(ROOT / "README.md")
