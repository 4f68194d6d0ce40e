"""How a launcher starts processes of this project: forked off one that has loaded their modules, the nursery.

To load modules is most of what a short run takes; here that is done once for all roles of a launch, and for all
launches of a process.  Knows commands, environments and descriptors; the other side is `nursery_process`.

    launcher                                nursery                                   role
    modules, an end of a pair  --------->   imports them; forks, and
                                            never reads on that end  ------------->   its number, on its end
    command, environment,  -------------------------------------------------------->  becomes that process
    descriptors
                                                              <---------------------  its exit code, when it leaves
                           <-------------   how it ended
    no more questions      ------------->   reaps it

So keys reach their role alone: they go past the nursery, and who is forked later finds nothing of them in its memory.
A nursery serves those that would inherit just what it inherited itself; others get one of their own.  Where there can
be none, where it dies or answers nothing, and for commands of others, a new process is started in the plain way.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from .lifeline import to_the_end
from .net.handing import Line

ROOMS = ("mpc", "offline", "bandits", "protocols")
_NURSERY = "mpc.nursery_process"
OFF = "MASKED_NURSERY"
"""The variable that does without, where it says 'no'."""
_TOLD = ("MASKED_", "PYTEST_")
"""Beginnings of variables that say something to a role alone, or to a test; nothing that is loaded looks at them."""
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""What roles of a run have where nothing else was said: they share a machine's cores, and, all alike, a nursery."""
_PATIENCE = 60.0  # seconds that a nursery has to load modules, and a role to be born
_LAST_WORDS = 5.0  # seconds in which it says how a role ended that has ended
_TO_LEAVE = 1.0  # seconds that its launcher waits for it at the end
_AT_ONCE = 3  # nurseries of one launcher
_ROOM = 2000 * "."  # where a fork shows its own command


class Started(Protocol):
    """What a launcher needs of a process; `subprocess.Popen` has it."""

    pid: int
    returncode: Any

    def poll(self) -> int | None:
        """Its exit code, if it has ended; of a signal that ended it, minus the number."""

    def wait(self, timeout: float | None = None) -> int:
        """The same; TimeoutExpired where it takes longer."""

    def terminate(self) -> None:
        """Ask it to end."""

    def kill(self) -> None:
        """End it."""


def own_command(module: str, *arguments: str, python: str | None = None) -> list[str]:
    """What runs a module of this project in a process of its own; from Python 3.11 on, whatever the folder it is in.

    python: another one than this, of the same version.
    """
    apart = ["-P"] if sys.version_info >= (3, 11) else []
    return [python or sys.executable, *apart, "-m", module, *arguments]


def start(
    argv: Sequence[str], environment: Mapping[str, str], *, keep: Sequence[int], stdout: int | None, stderr: int,
    load: Sequence[str] = (),
) -> Started:  # fmt: skip
    """A process in a session of its own, which hears nothing on stdin.

    keep: descriptors that it has beside its streams, by the same numbers.  stdout: None for the launcher's.  load:
    modules that a process of this project will import, beside the one it runs, and module:function for what a function
    imports.
    """
    module = _module(argv)
    if module is not None and (nursery := NURSERIES.of(environment, argv[0])) is not None:
        words = list(argv[len(own_command(module)) :])
        with contextlib.suppress(OSError), open(os.devnull, "rb") as nothing:
            given = {fd: fd for fd in keep} | {0: nothing.fileno(), 1: 1 if stdout is None else stdout, 2: stderr}
            return nursery.forked([module, *load], words, environment, given)
        NURSERIES.leave(nursery)
    return subprocess.Popen(
        argv, env=dict(environment), pass_fds=keep, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
        start_new_session=True,
    )  # fmt: skip


def _module(argv: Sequence[str]) -> str | None:
    """The module of this project that a command runs, in whichever Python, if it does nothing else."""
    *before, _ = own_command("", python="".join(argv[:1]))
    module = argv[len(before)] if len(argv) > len(before) and list(argv[: len(before)]) == before else ""
    return module if module.partition(".")[0] in ROOMS else None


class Forked:
    """A process that was forked off a nursery, seen from the launcher."""

    def __init__(self, pid: int, channel: Line) -> None:
        self.pid, self._channel = pid, channel
        self.returncode: int | None = None
        self._handle = os.pidfd_open(pid)
        self._looking = threading.Lock()

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        with self._looking:
            if self.returncode is None:
                self._look()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The same; TimeoutExpired where it takes longer."""
        until = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise subprocess.TimeoutExpired(str(self.pid), timeout or 0.0)
            _readable(self._handle, left)
        return code

    def terminate(self) -> None:
        """Ask it to end."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        self._signal(signal.SIGKILL)

    def _signal(self, how: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._handle, how)

    def _look(self) -> None:
        """The nursery knows how it ended; where that is gone or frozen, what the process said last has to do."""
        if not _readable(self._handle, 0.0):
            return
        said: dict[str, int] = {}
        with to_the_end(), contextlib.suppress(OSError):  # half a message could not be read on
            while "ended" not in said:
                said |= self._channel.receive(seconds=_LAST_WORDS)[0]
            self._channel.end(seconds=_LAST_WORDS)  # then it has been reaped
        self.returncode = said.get("ended", said.get("left", -signal.SIGKILL))
        self._close()

    def _close(self) -> None:
        self._channel.close()
        os.close(self._handle)

    def __del__(self) -> None:
        if self.returncode is None:
            self._close()


class Nursery:
    """A process from which others are forked, seen from the launcher.  patience: seconds for it to answer."""

    patience = _PATIENCE

    def __init__(self, control: Line, pid: int, reap: Callable[[], object]) -> None:
        self._control, self._pid, self._reap = control, pid, reap
        self._asking = threading.Lock()

    @classmethod
    def new(cls, environment: Mapping[str, str], module: str | None = None, python: str | None = None) -> Nursery:
        """One that is a new process.  module: what it runs, where that is another one; and so with python."""
        control, other = Line.pair()
        try:
            process = subprocess.Popen(
                own_command(module or _NURSERY, str(other.fileno()), _ROOM, python=python), env=_shared(environment),
                pass_fds=[other.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except BaseException:
            control.close()
            raise
        finally:
            other.close()
        return cls(control, process.pid, process.poll)

    def forked(
        self, load: Sequence[str], words: Sequence[str], environment: Mapping[str, str], fds: Mapping[int, int], *,
        launches: bool = False,
    ) -> Forked:  # fmt: skip
        """A process that runs the first of the modules.

        fds: what it has, by the numbers under which it has that.  launches: it has a nursery of its own, which is a
        fork of it.  OSError where the nursery is gone or answers nothing: no such process is there, or will be.
        """
        channel, other = Line.pair()
        try:
            with self._asking:
                self._control.send(list(load), [other.fileno()], seconds=self.patience)
            other.close()
            born = channel.receive(seconds=self.patience)[0]
            if "pid" not in born:
                raise ChildProcessError("it ended before it was told anything")
            child = Forked(born["pid"], channel)
            request = {
                "words": list(words), "environment": dict(environment), "fds": list(fds), "launches": launches,
            }  # fmt: skip
            channel.send(request, list(fds.values()), seconds=self.patience)
        except BaseException:
            channel.close()
            other.close()
            raise
        return child

    def close(self) -> None:
        """It forks no more, and ends with the last of those that the launcher still watches."""
        self._control.close()

    def end(self) -> None:
        """Wait for that, at most for a while."""
        with contextlib.suppress(OSError):
            handle = os.pidfd_open(self._pid)
            _readable(handle, _TO_LEAVE)
            os.close(handle)
            self._reap()


class Nurseries:
    """Those of this process, the last one used behind the others; a fork of it has none."""

    def __init__(self) -> None:
        self._of: dict[tuple[Any, ...], Nursery] = {}
        self._left: list[Nursery] = []
        self._choosing = threading.Lock()
        os.register_at_fork(after_in_child=self._forget)
        atexit.register(self._end)

    def of(self, environment: Mapping[str, str], python: str) -> Nursery | None:
        """One for processes of this Python that are to have this environment; None where there can be none."""
        if sys.platform != "linux" or environment.get(OFF) == "no":
            return None
        try:
            inherited = _inherited(environment, python)
            signals, handle = signal.pidfd_send_signal, os.pidfd_open(os.getpid())
            try:
                signals(handle, 0)
            finally:
                os.close(handle)
        except (AttributeError, OSError, ValueError):  # an old kernel, or a Python that was built for one
            return None
        with self._choosing:
            if (nursery := self._of.pop(inherited, None)) is None:
                try:
                    nursery = Nursery.new(environment, None, python)
                except OSError:
                    return None
            self._of[inherited] = nursery
            for oldest in list(self._of)[:-_AT_ONCE]:
                self._leave(self._of[oldest])
        return nursery

    def have(self, nursery: Nursery) -> None:
        """One that was forked off this process just now."""
        with self._choosing:
            self._of[_inherited(os.environ, sys.executable)] = nursery

    def leave(self, nursery: Nursery) -> None:
        """One that does not answer."""
        with self._choosing:
            self._leave(nursery)

    def _leave(self, nursery: Nursery) -> None:
        self._of = {inherited: other for inherited, other in self._of.items() if other is not nursery}
        self._left.append(nursery)
        nursery.close()

    def _forget(self) -> None:
        for nursery in self._of.values():
            nursery.close()
        self._of, self._left, self._choosing = {}, [], threading.Lock()

    def _end(self) -> None:
        for nursery in self._of.values():
            nursery.close()
        for nursery in [*self._of.values(), *self._left]:
            nursery.end()


NURSERIES = Nurseries()  # of the process, which has many launches: each would load all modules again


def _shared(environment: Mapping[str, str]) -> dict[str, str]:
    """Of an environment, what is no one role's alone."""
    return {name: value for name, value in environment.items() if not name.startswith(_TOLD)}


def _inherited(environment: Mapping[str, str], python: str) -> tuple[Any, ...]:
    """All that a process with this environment would have of this one: two that differ in it need two nurseries."""
    here = os.stat(".")
    limits = [resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")]
    ignored = [how for how in signal.valid_signals() if signal.getsignal(how) is signal.SIG_IGN]
    (mask,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("Umask:"))
    return (
        tuple(sorted(_shared(environment).items())), python, here.st_dev, here.st_ino, tuple(limits),
        frozenset(ignored), frozenset(signal.pthread_sigmask(signal.SIG_BLOCK, [])), mask,
        os.getpriority(os.PRIO_PROCESS, 0), frozenset(os.sched_getaffinity(0)), os.getresuid(), os.getresgid(),
    )  # fmt: skip


def _readable(descriptor: int, seconds: float | None) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(None if seconds is None else max(0.0, 1000.0 * seconds)))
