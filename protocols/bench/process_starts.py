"""A pytest plugin: writes a line of JSON for each test, with its outcome and whether it made a process or a socket.

A process that is forked off a nursery is asked for by a socket.

What a fixture starts counts for the test that first asks for it, and for the others of that test's file.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

SAID = "TESTS_SAID"
_WORDS = 2000  # the last of what is said
_STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.exec", "pty.spawn", "socket.__new__")


class _Plugin:
    def __init__(self, file: Path) -> None:
        self._file, self._started = file, False
        self._of: dict[str, dict[str, Any]] = {}
        sys.addaudithook(self._heard)

    def _heard(self, event: str, _: object) -> None:
        if event in _STARTS:
            self._started = True

    def pytest_runtest_logreport(self, report: Any) -> None:
        """After each of the three parts of a test."""
        told = self._of.setdefault(
            report.nodeid, {"test": report.nodeid, "outcome": "passed", "seconds": 0.0, "starts": False, "words": ""}
        )
        told["starts"] |= self._started
        told["seconds"] += report.duration
        self._started = False
        if report.outcome != "passed":
            told["outcome"], told["words"] = report.outcome, f"{report.longrepr}"[-_WORDS:]
            if report.capstderr:
                told["words"] += f"\nstderr:\n{report.capstderr[-_WORDS:]}"
        if report.when == "teardown":
            with self._file.open("a") as lines:
                lines.write(json.dumps(self._of.pop(report.nodeid)) + "\n")


def pytest_configure(config: Any) -> None:
    """Listen, where somebody wants to know."""
    if SAID in os.environ:
        config.pluginmanager.register(_Plugin(Path(os.environ[SAID])))
