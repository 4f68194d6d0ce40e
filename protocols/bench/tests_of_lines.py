"""Which tests run which lines: all tests are run once, and coverage follows every process that they start.

Also the pytest plugin that tells coverage which test is running; a process that a test starts finds the test's name in
its environment.  What a killed process has run is lost, so a record may miss a line and never invents one.
"""

from __future__ import annotations

import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

_OPTIMIZED = 0x01  # code of a function, not of a module or a class
_CONTEXT = re.compile(r"(.+) \((setup|call|teardown)\)")
_TOOK = re.compile(r"^(\d+\.\d+)s (?:setup|call|teardown) +(.+)$", re.M)
TOLD = ("--durations=0", "--durations-min=0")
"""What makes pytest say it."""
_SETTINGS = """[run]
source = {tree}
omit = {tree}/tests/*
data_file = {folder}/lines
parallel = true
core = ctrace
context = ${{PYTEST_CURRENT_TEST-}}
patch = _exit
disable_warnings = no-data-collected, couldnt-parse
"""


@dataclass(frozen=True)
class TestsOfLines:
    """seconds: of each test; lines: for each module, which tests run each of its lines inside functions."""

    seconds: Mapping[str, float]
    lines: Mapping[str, Mapping[int, frozenset[str]]]

    __test__ = False  # it is no test itself

    def seeing(self, file: str, line: int) -> list[str]:
        """The tests that run a line, the quickest first; where none is known to, all that run its module."""
        module = self.lines.get(file, {})
        tests = module.get(line) or frozenset[str]().union(*module.values())
        return sorted(tests, key=lambda test: (self.seconds[test], test))

    def write(self, file: Path) -> None:
        """As JSON; a line has the places of its tests."""
        places = {test: at for at, test in enumerate(self.seconds)}
        lines = {
            module: {line: sorted(places[test] for test in tests) for line, tests in of.items()}
            for module, of in self.lines.items()
        }
        file.write_text(json.dumps({"seconds": dict(self.seconds), "lines": lines}))

    @classmethod
    def read(cls, file: Path) -> TestsOfLines:
        """What `write` wrote."""
        kept = json.loads(file.read_text())
        tests = list(kept["seconds"])
        lines = {
            module: {int(line): frozenset(tests[at] for at in places) for line, places in of.items()}
            for module, of in kept["lines"].items()
        }
        return cls(kept["seconds"], lines)


def settings(tree: Path, folder: Path) -> str:
    """coverage's settings for the modules in `tree`; what it finds goes to `folder`."""
    return _SETTINGS.format(tree=tree, folder=folder)


def collected(tree: Path, folder: Path, said: str) -> TestsOfLines:
    """What coverage left in `folder`; pytest's own words tell how long each test took.

    What is run while a test is made ready counts for all tests of its file: they share what is made.
    """
    from coverage import CoverageData
    from coverage.exceptions import DataError

    seconds = defaultdict[str, float](float)
    for took, test in _TOOK.findall(said):
        seconds[test] += float(took)
    mates = defaultdict[str, set[str]](set)
    for test in seconds:
        mates[test.partition("::")[0]].add(test)
    lines: dict[str, dict[int, set[str]]] = {}
    for file in sorted(folder.glob("lines.*")):
        data = CoverageData(str(file))
        try:
            data.read()
        except DataError:  # its process was killed while it wrote
            continue
        for module in data.measured_files():
            if not (module.endswith(".py") and Path(module).exists()):  # a page's examples; what a test made
                continue
            name = Path(module).relative_to(tree).as_posix()
            inside = _inside_functions(tree / name)
            found = lines.setdefault(name, defaultdict(set))
            for line, contexts in data.contexts_by_lineno(module).items():
                for context in contexts if line in inside else ():
                    if (part := _CONTEXT.fullmatch(context)) and part[1] in seconds:
                        found[line] |= {part[1]} if part[2] == "call" else mates[part[1].partition("::")[0]]
    return TestsOfLines(
        seconds, {name: {line: frozenset(tests) for line, tests in of.items()} for name, of in lines.items()}
    )


@functools.cache
def _inside_functions(file: Path) -> frozenset[int]:
    def below(code: CodeType) -> Iterator[int]:
        if code.co_flags & _OPTIMIZED:
            lines = (line for _, _, line in code.co_lines() if line)
            yield from (line for line in lines if line != code.co_firstlineno or code.co_name == "<lambda>")
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from below(constant)

    return frozenset(below(compile(file.read_bytes(), str(file), "exec")))


def _enter(test: Any, phase: str) -> None:
    from coverage import Coverage

    if (recorder := Coverage.current()) is not None:
        recorder.switch_context(f"{test.nodeid} ({phase})")


def pytest_runtest_setup(item: Any) -> None:
    """Lines from here on are run to make a test ready."""
    _enter(item, "setup")


def pytest_runtest_call(item: Any) -> None:
    """Lines from here on are run by a test."""
    _enter(item, "call")


def pytest_runtest_teardown(item: Any) -> None:
    """Lines from here on are run after a test."""
    _enter(item, "teardown")
