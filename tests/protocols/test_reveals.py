"""Nothing is told without a verdict: docs/security.md has a row for each Reveal of the programs, and each other way."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/security.md").read_text()
OPENED, OPENS = {"opened", "opened_to"}, {"reveal", "get_plain_text"}
"""What CrypTen's shares are opened by: functions of its door, and methods of its own."""
LINES = {"record": 4, "record_all": 1, "learned": 3, "disclose": 4}
"""What writes a line of a ledger, from so many arguments on: names that others have for something else take fewer."""
PASSED_ON = {
    "protocols/ppcb/library/journal.py": 1,
    "protocols/ppcb/library/saved.py": 1,
    "protocols/ppcb/library/service.py": 1,
    "protocols/published/outcome.py": 3,
}
"""Lines that another page counted, or is asked for."""


UNMASKED = {"protocols/ppcb/library/rounds.py": 2, "protocols/bench/measure.py": 2}
"""What is opened without a mask: which saves parties have and what their ledgers count; and times that are measured."""


def aliases(tree: ast.AST, name: str) -> set[str]:
    """What a page calls it: by its name, as it was imported, or as it was assigned."""
    found = {name}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            found |= {each.asname for each in node.names if each.name == name and each.asname}
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute)):
            taken = node.value.id if isinstance(node.value, ast.Name) else node.value.attr
            found |= {each.id for each in node.targets if isinstance(each, ast.Name) and taken in found}
    return found


def called(tree: ast.AST) -> Iterator[tuple[str, ast.Call]]:
    """Each call, by the last word of what is called."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node


def reveals(tree: ast.AST, what: str = "Reveal") -> int:
    """How often a page reveals; what: or makes another request."""
    names = aliases(tree, what)
    return sum(name in names for name, _ in called(tree))


def otherwise(tree: ast.AST) -> int:
    """How often it writes a line of a ledger itself, or opens what CrypTen holds."""
    opens = OPENS | {
        each.asname or each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("crypten")
        for each in node.names
        if each.name in OPENED
    }
    return sum(name in opens or _is_line(name, call) for name, call in called(tree))


def _is_line(name: str, call: ast.Call) -> bool:
    spread = any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords)
    return name in LINES and (spread or len(call.args) + len(call.keywords) >= LINES[name])


@functools.cache
def pages() -> list[tuple[str, ast.AST]]:
    """All that is built on the operations."""
    paths = [path for room in ("protocols", "masked_bandits", "examples") for path in (ROOT / room).rglob("*.py")]
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text())) for path in paths]


def rows(title: str) -> Counter[str]:
    """How many rows a table of the page has for each file."""
    return Counter(re.findall(r"^\| `([\w/]+\.py)` \|", PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0], re.M))


def test_every_reveal_has_a_row() -> None:
    found = Counter({name: reveals(tree) for name, tree in pages()})
    table = rows("What is revealed, and to how many digits")
    assert table == +found and table.total() == 26


def test_programs_open_nothing_but_what_parties_say_when_they_save_or_load() -> None:
    """Whoever opens sees to it that the value is masked, which the runtime cannot check: that is for `mpc.ops`.

    SECURITY.md names what else is opened; a program that opens has to be named there, and tested as operations are.
    """
    found = Counter({name: reveals(tree, "Open") for name, tree in pages()})
    assert +found == Counter(UNMASKED)


def test_whatever_is_told_in_another_way_has_a_row() -> None:
    found = Counter({name: otherwise(tree) for name, tree in pages()})
    assert +found - Counter(PASSED_ON) == rows("What is told in another way")
    assert all(found[name] >= count for name, count in PASSED_ON.items())


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("yield Reveal(x)", 1),
        ("yield rounds.Reveal(x)", 1),
        ("from mpc import Reveal as R\nyield R(x)", 1),
        ("Tell = mpc.Reveal\nyield Tell(x), Tell(y)", 2),
        ("isinstance(x, Reveal)", 0),
    ],
)
def test_a_reveal_is_found_by_any_name(text: str, told: int) -> None:
    assert reveals(ast.parse(text)) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("ledger.record(role, 'arm', 1, 'it is pulled')", 1),
        ("session.ledger.record(**entry)", 1),
        ("from mpc.interop.crypten import opened_to as tell\ntell(x, 0)", 1),
        ("x.get_plain_text()", 1),
        ("from .service import opened\nopened(folder)", 0),
        ("watch.record(seconds)", 0),
        ("yield from self.learned()", 0),
    ],
)
def test_another_way_is_found(text: str, told: int) -> None:
    assert otherwise(ast.parse(text)) == told
