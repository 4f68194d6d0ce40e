"""Launchers and roles forked off an interpreter that has loaded everything: `python -m protocols.bench.faults_loaded`.

Most of what a small run takes is to load Python's modules.  A launch forks its roles off its nursery; here the launcher
is forked off one too, and has a fork of itself for its nursery.  What the kernel shows of a fork's environment is that
of the interpreter, so each also leaves a file that says who it is.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pkgutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest import mock

import numpy as np

from mpc import nursery_process
from mpc.extras import installed
from mpc.nursery import ONE_THREAD, Forked, Nursery

REGISTER = "FAULTS_REGISTER"
MARK, PLACE = "FAULTS_MARK", "MASKED_PLACE"
TELLER = "protocols.bench.faults_told"
_ROOMS = ("mpc", "offline", "bandits", "protocols")
_NOT_LOADED = ("protocols.figures", "protocols.bench", "mpc.net.gloo", "bandits.data")  # torch and scikit-learn
_PATIENCE = 600.0  # seconds to load everything, on a busy machine


class Loaded:
    """The campaign's end: an interpreter that has loaded everything."""

    def __init__(self, register: Path) -> None:
        os.environ[REGISTER] = str(register)
        self._nursery = Nursery.new({**os.environ, **ONE_THREAD}, "protocols.bench.faults_loaded")
        self._nursery.patience = _PATIENCE

    def launch(
        self, words: Sequence[str], environment: Mapping[str, str], stdout: int, stderr: int, *, by: str = TELLER
    ) -> Forked:
        """A launcher, or a role between machines, that was forked off it.  by, words: the module, and its words."""
        with open(os.devnull, "rb") as nothing:
            streams, own = {0: nothing.fileno(), 1: stdout, 2: stderr}, {**environment, **ONE_THREAD}
            return self._nursery.forked([by], words, own, streams, launches=by == TELLER)

    def close(self) -> None:
        """It forks no more."""
        del os.environ[REGISTER]
        self._nursery.close()
        self._nursery.end()


def registered(mark: str) -> list[tuple[int, dict[str, str], list[str]]]:
    """Processes alive that were forked under a mark that begins so: number, some of their environment, command."""
    found = []
    for file in Path(os.environ[REGISTER]).glob(f"{mark}*"):
        pid = int(file.suffix[1:])
        try:
            began, given, command = json.loads(file.read_text())
            if _stat(pid)[0] != "Z" and _stat(pid)[19] == began:
                found.append((pid, given, command))
        except (OSError, ValueError):  # it has ended, or has not said yet who it is
            continue
    return found


def forget(mark: str) -> None:
    """Those processes under such a mark that have ended; one that has begun meanwhile is still known."""
    alive = {pid for pid, _, _ in registered(mark)}
    for file in Path(os.environ[REGISTER]).glob(f"{mark}*"):
        if int(file.suffix[1:]) not in alive and not Path(f"/proc/{file.suffix[1:]}").exists():
            file.unlink(missing_ok=True)


def _stat(pid: int) -> list[str]:
    """Of a process: its state, ..., and as the 20th when it began."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _register(command: Sequence[str]) -> None:
    given = {name: os.environ[name] for name in (MARK, PLACE) if name in os.environ}
    name = f"{given[MARK]}.{os.getpid()}"
    (new := Path(os.environ[REGISTER]) / f"new-{name}").write_text(
        json.dumps([_stat(os.getpid())[19], given, list(command)])
    )
    new.replace(new.with_name(name))


def _load() -> None:
    """All that a launch may import, and what a picture loads when it is drawn."""
    for module in (TELLER, "protocols.bench.faults_role"):
        importlib.import_module(module)
    for room in _ROOMS:
        package = importlib.import_module(room)
        for found in pkgutil.walk_packages(package.__path__, f"{room}."):
            if not found.name.startswith(_NOT_LOADED) and not found.name.endswith("__main__"):
                with contextlib.suppress(ImportError):  # of an extra that is not installed: no role can load it either
                    importlib.import_module(found.name)
    if not installed("matplotlib"):
        return
    from ..run.plots import curves

    with tempfile.TemporaryDirectory() as folder:
        curves([(np.zeros(2), "a", "-")], x="x", y="y", title="a", path=Path(folder) / "a.png")


def main() -> None:
    """Be a nursery, whose forks say who they are."""
    _load()
    become, be_apart = nursery_process.become, nursery_process.be_apart

    def known(birth: nursery_process.Birth) -> nursery_process.Birth:
        born = become(birth)
        _register([born.module, *sys.argv[1:]])
        return born

    def known_apart() -> None:
        be_apart()
        _register(["its nursery"])

    with mock.patch.multiple(nursery_process, become=known, be_apart=known_apart):
        nursery_process.main()


if __name__ == "__main__":
    main()
