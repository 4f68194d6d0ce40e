"""Launchers and roles forked off an interpreter that has loaded everything: `python -m protocols.bench.faults_loaded`.

Most of what a small run takes is to load Python's modules, once for each process.  Here that is done once:

    campaign                       loaded interpreter                launcher
    a Request, as a line  ------>  forks it
    its number            <------
                                   its exit code, to a file  <-----  ends
                                                                     forks roles and dealer, where it would start them

A process that was forked has its own environment, arguments, standard streams, session and signal handlers, and of the
files that were open those that were to be passed on: what `subprocess` and a new interpreter see to.  What the kernel
shows of its environment is the loaded interpreter's, so each of them also leaves a file that says who it is.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from mpc.lifeline import to_the_end

REGISTER = "FAULTS_REGISTER"
MARK, PLACE = "FAULTS_MARK", "MASKED_PLACE"
_ROOMS = ("mpc", "offline", "bandits", "protocols")
_NOT_LOADED = ("protocols.figures", "protocols.bench", "mpc.net.gloo", "bandits.data")  # torch and scikit-learn
_POLL = 0.02


@dataclass(frozen=True)
class Request:
    """A launcher that is wanted.  words: of `faults_told`.  ended: the file of its exit code."""

    words: list[str]
    environment: dict[str, str]
    stdout: str
    stderr: str
    ended: str


class Loaded:
    """The campaign's end: an interpreter that has loaded everything."""

    def __init__(self, register: Path) -> None:
        os.environ[REGISTER] = str(register)
        self._asking = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "protocols.bench.faults_loaded"], env={**os.environ, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self._process.stdout.readline()  # it has loaded

    def launch(self, request: Request) -> Forked:
        """A launcher that was forked off it."""
        pipe, answers = self._process.stdin, self._process.stdout
        assert pipe is not None and answers is not None
        with self._asking:
            pipe.write(json.dumps(asdict(request)) + "\n")
            pipe.flush()
            return Forked(int(answers.readline()), Path(request.ended))

    def close(self) -> None:
        """It forks no more."""
        del os.environ[REGISTER]
        self._process.communicate()


class Forked:
    """What a campaign needs of `Popen`, for a launcher that is another's child."""

    def __init__(self, pid: int, ended: Path) -> None:
        self.pid, self._ended = pid, ended

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        return int(self._ended.read_text()) if self._ended.exists() else None

    def wait(self, timeout: float | None = None) -> int:
        """The same; TimeoutExpired where it takes longer."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if until is not None and time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            time.sleep(_POLL)
        return code

    def send_signal(self, how: signal.Signals) -> None:
        """If it is still there."""
        if self.poll() is None:
            os.kill(self.pid, how)


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
    """Processes under such a mark have ended."""
    for file in Path(os.environ[REGISTER]).glob(f"{mark}*"):
        file.unlink(missing_ok=True)


def _stat(pid: int) -> list[str]:
    """Of a process: its state, ..., and as the 20th when it began."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


class _Forking(subprocess.Popen[Any]):
    """A process of this project is forked off this one."""

    def _execute_child(self, args: Any, *rest: Any) -> None:
        if args[0] != sys.executable or "-m" not in args:
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        (_, _, _, pass_fds, _, env, _, _, _, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite) = rest[:15]
        streams = {0: p2cread, 1: c2pwrite, 2: errwrite}
        module, *words = args[list(args).index("-m") + 1 :]
        sys.stdout.flush()
        sys.stderr.flush()
        with to_the_end():  # what a handler raises in a hook of Python's own around a fork would be lost
            if not (pid := os.fork()):
                _end_as(lambda: _become(env, streams, pass_fds, [module, *words], lambda: _run_module(module)))
        self.pid, self._child_created = pid, True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def _run_module(module: str) -> None:
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _become(
    env: Mapping[str, str], streams: Mapping[int, int], kept: Sequence[int], command: Sequence[str],
    run: Callable[[], object],
) -> None:  # fmt: skip
    """Be as a process that was started anew."""
    os.setsid()
    for stream, given in streams.items():
        if given >= 0:
            os.dup2(given, stream)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in kept:
            try:
                os.close(fd)
            except OSError:  # the one that listed them
                continue
    os.environ.clear()
    os.environ.update(env)
    _register(command)
    for how in signal.valid_signals():
        if callable(signal.getsignal(how)):
            signal.signal(how, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    atexit._clear()
    sys.argv = list(command)
    tempfile.tempdir = None
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    run()


def _register(command: Sequence[str]) -> None:
    given = {name: os.environ[name] for name in (MARK, PLACE) if name in os.environ}
    file = Path(os.environ[REGISTER]) / f"{given[MARK]}.{os.getpid()}"
    file.write_text(json.dumps([_stat(os.getpid())[19], given, list(command)]))


def _end_as(run: Callable[[], None]) -> NoReturn:
    """End as an interpreter does: what stands above in the stack is the parent's."""
    code: Any = 0
    try:
        run()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        traceback.print_exc()
        sys.stderr.flush()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    except BaseException:
        traceback.print_exc()
        code = 1
    finally:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                code = 120
        os._exit(code)


def _load() -> None:
    """All that a launch may import, and what a picture loads when it is drawn."""
    importlib.import_module("protocols.bench.faults_told")
    for room in _ROOMS:
        package = importlib.import_module(room)
        for found in pkgutil.walk_packages(package.__path__, f"{room}."):
            if not found.name.startswith(_NOT_LOADED) and not found.name.endswith("__main__"):
                importlib.import_module(found.name)
    from ..run.plots import curves

    with tempfile.TemporaryDirectory() as folder:
        curves([(np.zeros(2), "a", "-")], x="x", y="y", title="a", path=Path(folder) / "a.png")
    gc.freeze()


def _launcher(request: Request) -> None:
    from . import faults_told

    said = [os.open(name, os.O_WRONLY) for name in (request.stdout, request.stderr)]
    streams = dict(enumerate([os.open(os.devnull, os.O_RDONLY), *said]))
    _become(request.environment, streams, (), ["faults_told", *request.words], faults_told.main)


def main() -> None:
    """Fork what is asked for, until nobody asks any more."""
    _load()
    subprocess.Popen = _Forking  # type: ignore[misc]
    waiting: dict[int, str] = {}
    gone: dict[int, int] = {}

    def reap(*_: object) -> None:
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                gone[found[0]] = os.waitstatus_to_exitcode(found[1])
        except ChildProcessError:
            pass
        for pid in [*gone]:
            if pid in waiting:
                file = Path(waiting.pop(pid))
                new = file.with_suffix(".new")
                new.write_text(str(gone.pop(pid)))
                new.replace(file)

    signal.signal(signal.SIGCHLD, reap)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until a launcher has its own streams and handlers
    print("loaded", flush=True)
    for line in sys.stdin:
        request = Request(**json.loads(line))
        if not (pid := os.fork()):
            _end_as(partial(_launcher, request))
        waiting[pid] = request.ended
        print(pid, flush=True)
        reap()


if __name__ == "__main__":
    main()
