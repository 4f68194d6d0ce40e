"""What every program has stands in one module each: a system that defines its own, or starts processes, fails here."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SYSTEMS = ("ppcb", "samba", "linucb_ds", "helba")
FILES = [path for system in SYSTEMS for path in sorted((ROOT / "protocols" / system).rglob("*.py"))]
TABLE = re.findall(
    r"^\| ([\w ,]+) \| `(protocols/run/\w+\.py)` \| `(\w+)` \|$", (ROOT / "docs/decisions.md").read_text(), re.M
)

ROWS = {
    "plan of one step", "steps of material that a run draws", "simulate", "launch", "torchrun", "checkpoint", "resume",
    "coins that a resumed run has again", "stop", "report", "options",
}  # fmt: skip
RUNS = {
    "launch", "launched", "simulate", "simulation", "torchrun", "rehearse", "plan_of", "prepare", "prepared", "resume",
    "checkpoint", "stoppable", "forget_all", "Launch", "Processes", "Simulation", "Checkpoint", "Keep", "Task", "Stop",
    "Stopped", "Interrupt", "Progress",
}  # fmt: skip
OPTIONS = {
    "--out", "--resume", "--overwrite", "--checkpoint-every", "--plot", "--json", "--seed", "--timeout", "--material",
    "--session", "--mode",
}  # fmt: skip
MACHINERY = {"subprocess", "multiprocessing", "signal", "tempfile", "fcntl"}


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def top_level(tree: ast.Module) -> set[str]:
    return {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_system_does_not_run_itself(path: Path) -> None:
    tree = parsed(path)
    assert not top_level(tree) & RUNS, "protocols/run has it"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & MACHINERY, "processes and signals are protocols/run's"
        elif isinstance(node, ast.ImportFrom):
            assert node.module not in ("mpc.launch", *MACHINERY), "processes and signals are protocols/run's"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_system_adds_no_option_that_all_programs_have(path: Path) -> None:
    strings = {
        argument.value
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    }
    assert not strings & OPTIONS


def test_the_table_names_what_there_is() -> None:
    assert {row[0] for row in TABLE} == ROWS
    for _, file, name in TABLE:
        assert name in top_level(parsed(ROOT / file)), f"{file} has no {name}"
        assert hasattr(import_module(file.removesuffix(".py").replace("/", ".")), name)


def functions(room: str) -> list[tuple[str, int]]:
    """Each function of a room, and how many lines it has."""
    return [
        (f"{name_of(path)}:{node.name}", (node.end_lineno or 0) - node.lineno + 1)
        for path in sorted((ROOT / "protocols" / room).glob("*.py"))
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.FunctionDef)
    ]


@pytest.mark.parametrize("room", ["run", "published"])
def test_every_function_fits_on_a_screen(room: str) -> None:
    longest = [(name, lines) for name, lines in functions(room) if lines > 55]
    assert not longest, longest


def test_there_is_something_to_look_at() -> None:
    assert len(FILES) > 40 and len(functions("run")) > 80
