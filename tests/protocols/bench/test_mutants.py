"""Mutants: what is changed and what is left alone, and which of them tests kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc.errors import ConfigError
from protocols.bench.mutants import Outcome, campaign, drawn, seen_by, table
from protocols.bench.mutations import mutants

LARGER = b"""def larger(a, b):
    if a > b:
        return a
    return b
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A module, a test that knows it, and one that fails whatever is changed."""
    for file, text in {
        "room/small.py": LARGER.decode(),
        "tests/room/test_small.py": "from room.small import larger\n\n\ndef test_it():\n    assert larger(1, 2) == 2\n"
        "    assert larger(2, 1) == 2\n",
        "tests/room/test_broken.py": "def test_nothing():\n    assert False\n",
        "tests/other/test_far.py": "def test_far():\n    pass\n",
    }.items():
        (tmp_path / "project" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "project" / file).write_text(text)
    return tmp_path / "project"


def changed(source: bytes) -> list[str]:
    return [str(mutant) for mutant in mutants(source, "room/small.py")]


def test_a_change_stands_in_its_place() -> None:
    found = list(mutants(LARGER, "room/small.py"))
    assert [(mutant.line, str(mutant)) for mutant in found] == [
        (2, "a > b -> (not a > b)"), (2, "a > b -> (a >= b)"), (2, "a > b -> (a <= b)"),
        (3, "return a -> return None"), (4, "return b -> return None"),
    ]  # fmt: skip
    assert found[1].applied(LARGER) == LARGER.replace(b"a > b", b"(a >= b)")
    assert {mutant.within for mutant in found} == {("larger",)}


@pytest.mark.parametrize(
    ("code", "after"),
    [
        ("x = a + 2", ["(a - 2)", "(3)", "(1)"]),
        ("x = a and not b", ["(a or not b)", "(b)"]),
        ("x = f(a, b, key=True)", ["(f(b, a, key=True))", "(False)"]),
        ("f(a)", ["pass"]),
        ("x += y", ["x -= y"]),
        ("é = 'é', -y", ["(y)"]),
        ("def f(a, timeout=1, *, b=2): ...", ["(3)", "(1)"]),
    ],
)
def test_every_kind_of_change(code: str, after: list[str]) -> None:
    source = code.encode()
    found = list(mutants(source, "room/small.py"))
    assert [mutant.after for mutant in found] == after
    for mutant in found:
        compile(mutant.applied(source), "changed", "exec")


@pytest.mark.parametrize(
    "code",
    [
        '"""A text of 2 > 1."""', 'raise ValueError(f"{a + 1}" + str(2))', "assert a > 1", "x = f'{a + 1:>3}'",
        "def f(a: Literal[1]) -> Literal[2]: ...", "x: Literal[3]", "class A:\n def __repr__(self): return str(1 + 1)",
        "x = f(timeout=3, help='a' 'b')", "_POLL = 0.02", "@cache(maxsize=256)\ndef f(): ...", "x = T | None",
        "if __name__ == '__main__':\n main(1)",
    ],
)  # fmt: skip
def test_what_changes_no_meaning_is_left_alone(code: str) -> None:
    assert changed(code.encode()) == []


def test_a_test_kills_one_and_one_lives(project: Path) -> None:
    """Two equal numbers: either is the larger.  The test that always fails kills neither."""
    chosen = [mutant for mutant in mutants(LARGER, "room/small.py") if mutant.after in ("(a >= b)", "(a <= b)")]
    found = {each.mutant.after: each.killer for each in campaign(project, chosen)}
    assert found == {"(a >= b)": "", "(a <= b)": "tests/room/test_small.py::test_it"}
    assert (project / "room/small.py").read_bytes() == LARGER


def test_a_project_whose_tests_cannot_be_collected_is_refused(project: Path) -> None:
    (project / "tests/room/test_broken.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(ConfigError, match="cannot be collected without any mutant"):
        list(campaign(project, []))


def test_the_tests_that_look_at_a_mutant_come_first(project: Path) -> None:
    (project / "tests/other/test_user.py").write_text("from room.small import larger\n")
    (project / "tests/room/test_a_user.py").write_text("# larger\n")
    assert seen_by(next(mutants(LARGER, "room/small.py")), project) == [
        "tests/room/test_small.py",
        "tests/room/test_a_user.py",
        "tests/room/test_broken.py",
        "tests/other/test_user.py",
    ]


def test_a_seed_draws_the_same_again(project: Path) -> None:
    assert drawn(project, ["room"], count=3, seed=1) == drawn(project, ["room/small.py"], count=3, seed=1)
    assert len({tuple(drawn(project, ["room"], count=2, seed=seed)) for seed in range(9)}) > 1
    assert len(drawn(project, ["room"], count=100, seed=1)) == 5
    with pytest.raises(ConfigError, match="--rooms cellar: there is no such folder or module"):
        drawn(project, ["cellar"], count=1, seed=1)


def test_the_table_begins_with_those_alive() -> None:
    one, _, other, *_ = mutants(b"def f(a, b):\n    return a | b if a > b else b", "room/small.py")
    rows = table([Outcome(one, "tests/a.py::test_a", 1.0), Outcome(other, "", 2.0)]).splitlines()[2:]
    assert rows[0].startswith("| room/small.py:2 | `") and rows[0].endswith("` | **alive** |")
    assert rows[1].endswith("` | tests/a.py::test_a |") and "a \\| b" in rows[1]
    assert rows[-1] == "1 of 2 mutants were killed."
