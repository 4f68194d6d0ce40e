"""Nothing is revealed without a verdict: docs/security.md has a row for each Reveal of the programs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_reveal_has_a_row() -> None:
    found: Counter[str] = Counter()
    for path in [*(ROOT / "protocols").rglob("*.py"), *(ROOT / "examples").glob("*.py")]:
        calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        found[path.relative_to(ROOT).as_posix()] = sum(isinstance(f, ast.Name) and f.id == "Reveal" for f in calls)
    table = (ROOT / "docs/security.md").read_text().split("## What is revealed, and to how many digits")[1]
    rows = Counter(re.findall(r"^\| `([\w/]+\.py)` \|", table, re.M))
    assert rows == +found and rows.total() == 26
