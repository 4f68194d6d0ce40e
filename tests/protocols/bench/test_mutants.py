"""Mutants: what is changed and what is left alone, and which of them tests kill."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc.errors import ConfigError
from protocols.bench.mutants import campaign, drawn, turns
from protocols.bench.mutants_outcomes import Outcome, again, keep, kept, table
from protocols.bench.mutations import mutants
from protocols.bench.tests_of_lines import TestsOfLines

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
        "x = max(a, b)", "def f():\n return None",
    ],
)  # fmt: skip
def test_what_changes_no_meaning_is_left_alone(code: str) -> None:
    assert changed(code.encode()) == []


def test_a_test_kills_one_and_one_lives(project: Path, tmp_path: Path) -> None:
    """Two equal numbers: either is the larger.  The test that always fails kills neither."""
    chosen = [mutant for mutant in mutants(LARGER, "room/small.py") if mutant.after in ("(a >= b)", "(a <= b)")]
    tests = ("tests/room/test_broken.py::test_nothing", "tests/room/test_small.py::test_it")
    TestsOfLines(dict.fromkeys(tests, 0.1), {"room/small.py": {2: frozenset(tests)}}).write(tmp_path / "lines.json")
    found = {each.mutant.after: each.killer for each in campaign(project, chosen, lines=tmp_path / "lines.json")}
    assert found == {"(a >= b)": "", "(a <= b)": "tests/room/test_small.py::test_it"}
    assert (project / "room/small.py").read_bytes() == LARGER


def test_a_project_whose_tests_cannot_be_run_is_refused(project: Path) -> None:
    (project / "tests/room/test_broken.py").write_text("import nothing_of_this_name\n")
    with pytest.raises(ConfigError, match="cannot be run without any mutant"):
        list(campaign(project, []))


def test_a_line_is_seen_by_those_that_run_it_the_quickest_first() -> None:
    """A line that none is known to run, such as one outside functions, by all that run its module."""
    record = TestsOfLines(
        {"a": 3.0, "b": 1.0, "c": 2.0}, {"room/small.py": {2: frozenset("ab"), 3: frozenset("a"), 4: frozenset("c")}}
    )
    assert record.seeing("room/small.py", 2) == ["b", "a"]
    assert record.seeing("room/small.py", 3) == ["a"]
    assert record.seeing("room/small.py", 1) == ["b", "c", "a"]
    assert record.seeing("room/other.py", 1) == []


def test_turns_take_so_many_seconds_and_one_test_at_least() -> None:
    seconds = {"a": 4.0, "b": 5.0, "c": 6.0, "d": 7.0}
    assert turns(list("abcd"), seconds, 100.0) == [["a", "b"], ["c", "d"]]
    assert turns(list("abcd"), seconds, 15.0) == [["a", "b"], ["c"]]
    assert turns(list("d"), seconds, 1.0) == [["d"]]
    assert turns([], seconds, 1.0) == []


def test_processes_and_what_makes_a_test_ready_are_recorded(project: Path, tmp_path: Path) -> None:
    pytest.importorskip("coverage", reason="the extra 'test' is not installed")
    (project / "tests/room/test_small.py").write_text(
        "import subprocess, sys, pytest\nfrom room.small import larger\n\n\n"
        "@pytest.fixture(scope='module')\ndef two():\n    return larger(1, 2)\n\n\n"
        "def test_first(two):\n    pass\n\n\ndef test_second(two):\n    assert two == 2\n\n\n"
        "def test_process():\n"
        "    subprocess.run([sys.executable, '-c', 'import room.small; room.small.larger(2, 1)'], check=True)\n"
        "    exec(compile('\\n\\ndef shown(): pass\\nshown()', 'page.md', 'exec'))\n"
    )
    (project / "page.md").write_text("It's a page with an example.\n")
    (tmp_path / "killed").write_bytes(b"SQLite format 3\x00" + bytes(200))
    lines = tmp_path / "lines.json"
    assert list(campaign(project, [], lines=lines)) == []
    record = TestsOfLines.read(lines)
    mates = [f"tests/room/test_small.py::test_{name}" for name in ("first", "second", "process")]
    assert set(record.seconds) == {
        *mates,
        "tests/room/test_broken.py::test_nothing",
        "tests/other/test_far.py::test_far",
    }
    assert set(record.seeing("room/small.py", 4)) == set(mates)
    assert record.seeing("room/small.py", 3) == mates[2:]


def test_a_file_of_outcomes_says_what_is_played_again(project: Path, tmp_path: Path) -> None:
    """Those alive without a reason, wherever the code has them now; a change that it no longer has is left out."""
    killed, same, alive, gone = list(mutants(LARGER, "room/small.py"))[:4]
    found = [
        Outcome(killed, "t", 1.0),
        Outcome(same, "", 1.0, "either"),
        *(Outcome(one, "", 1.0) for one in (alive, gone)),
    ]
    keep(tmp_path / "found.json", found)
    assert sorted(kept(tmp_path / "found.json"), key=str) == sorted(found, key=str)
    (project / "room/small.py").write_bytes(b"# moved\n" + LARGER.replace(b"return a", b"return (a)"))
    stay, played = again(project, found)
    assert stay == found[:2]
    assert [(mutant.line, str(mutant)) for mutant in played] == [(3, str(alive))]
    (tmp_path / "found.json").write_text('[{"mutant": 1}]')
    with pytest.raises(ConfigError, match=r"these are no outcomes of mutants .* name another file"):
        kept(tmp_path / "found.json")


def test_a_seed_draws_the_same_again(project: Path) -> None:
    assert drawn(project, ["room"], count=3, seed=1) == drawn(project, ["room/small.py"], count=3, seed=1)
    assert len({tuple(drawn(project, ["room"], count=2, seed=seed)) for seed in range(9)}) > 1
    assert len(drawn(project, ["room"], count=100, seed=1)) == 5
    with pytest.raises(ConfigError, match="--rooms cellar: there is no such folder or module"):
        drawn(project, ["cellar"], count=1, seed=1)


def test_the_table_begins_with_those_alive() -> None:
    one, _, other, *_ = mutants(b"def f(a, b):\n    return a | b if a > b else b", "room/small.py")
    found = [Outcome(one, "tests/a.py::test_a", 1.0), Outcome(other, "", 2.0), Outcome(other, "", 2.0, "the same")]
    rows = table(found).splitlines()[2:]
    assert rows[0].startswith("| room/small.py:2 | `") and rows[0].endswith("` | **alive** |")
    assert rows[1].endswith("` | **alive**: the same |")
    assert rows[2].endswith("` | tests/a.py::test_a |") and "a \\| b" in rows[2]
    assert rows[-1] == "1 of 3 mutants were killed. 1 of those alive have a reason."
