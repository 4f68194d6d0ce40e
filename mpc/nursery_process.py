"""The nursery: loads modules of this project once, and forks a process for each request; see `nursery`.

It has one thread, and draws, reads and keeps no secret: what a process is told goes to its fork.  A fork becomes as one
that was started anew: it has its own environment, arguments, streams, descriptors, session and coins, and runs its
module as `python -m` does, until the interpreter ends as it always does.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import importlib.util
import io
import os
import select
import signal
import sys
import tempfile
import types
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.abc import SourceLoader
from pathlib import Path

from .net.handing import Line
from .nursery import NURSERIES, ROOMS, Nursery, own_command


@dataclass(frozen=True)
class Birth:
    """What a fork is born with: the module it runs, its launcher, what loading printed, whether it launches others."""

    module: str
    channel: Line
    printed: str
    launches: bool = False


@dataclass
class _Fork:
    """A process as the nursery has it.  watched: whether its launcher still wants to know how it ends."""

    pid: int
    handle: int
    channel: Line
    watched: bool = True
    ended: bool = False


class _Nursery:
    def __init__(self, control: Line) -> None:
        self._control = control
        self._forks: dict[int, _Fork] = {}  # by both descriptors
        self._poll = select.poll()
        self._printed = io.StringIO()
        self._tried = set[str]()

    def serve(self) -> Birth:
        """Comes back in each fork; ends with its launcher, or when that wants no more forks and none is watched."""
        self._poll.register(self._control, select.POLLIN)
        asked = True
        while asked or any(fork.watched for fork in self._forks.values()):
            for descriptor, _ in self._poll.poll():
                if (fork := self._forks.get(descriptor)) is not None:
                    self._look_after(fork, descriptor)
                elif descriptor == self._control.fileno():
                    if (request := self._asked()) is None:
                        self._poll.unregister(self._control)
                        asked = False
                    elif (birth := self._born(*request)) is not None:
                        return birth
        os._exit(0)

    def _asked(self) -> tuple[list[str], Line] | None:
        with contextlib.suppress(OSError, ValueError):
            load, (descriptor,) = self._control.receive()
            return load, Line(descriptor)
        return None

    def _born(self, load: Sequence[str], channel: Line) -> Birth | None:
        """In the fork, what it is born with.  What cannot be loaded fails there, in its own words."""
        self._load([module for module in load if module.partition(".")[0] in ROOMS and module not in self._tried])
        try:
            pid = os.fork()
        except OSError:  # the launcher's plain way says why
            channel.close()
            return None
        if pid:
            fork = _Fork(pid, os.pidfd_open(pid), channel)
            self._forks |= {fork.handle: fork, channel.fileno(): fork}
            self._poll.register(fork.handle, select.POLLIN)
            self._poll.register(channel, 0)  # it says so when the launcher is gone; what comes is the fork's to read
            return None
        self._control.close()
        for fork in self._forks.values():
            fork.channel.close()
            if not fork.ended:  # else it is closed, and its number may be the channel's
                with contextlib.suppress(OSError):
                    os.close(fork.handle)
        return Birth(load[0], channel, self._printed.getvalue())

    def _load(self, modules: Sequence[str]) -> None:
        for module in modules:
            self._tried.add(module)
            name, _, load = module.partition(":")
            with contextlib.redirect_stderr(self._printed), contextlib.suppress(Exception):
                loaded = importlib.import_module(name)
                if load:
                    getattr(loaded, load)()
        if modules:  # a collection would write to what is shared
            gc.collect()
            gc.freeze()

    def _look_after(self, fork: _Fork, descriptor: int) -> None:
        """It has ended, or its launcher has heard so, or is gone."""
        if descriptor == fork.handle:
            fork.ended = True
            del self._forks[descriptor]
            self._poll.unregister(descriptor)
            os.close(descriptor)
            with contextlib.suppress(OSError):
                fork.channel.send({"ended": _how(fork.pid)})
                self._poll.modify(fork.channel, select.POLLIN)
        else:
            fork.watched = False
            del self._forks[descriptor]
            self._poll.unregister(descriptor)
        if fork.ended and not fork.watched:  # until then nobody else has its number
            os.waitpid(fork.pid, 0)
        if not fork.watched:
            fork.channel.close()


def _how(pid: int) -> int:
    """The exit code of a process that has ended, as `subprocess` has it; its entry stays."""
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    return ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status


def become(birth: Birth) -> Birth:
    """Be as a process that was started anew for what the launcher says now."""
    os.setsid()
    try:
        birth.channel.send({"pid": os.getpid()})
        told, descriptors = birth.channel.receive()
    except OSError:  # the launcher has gone another way
        os._exit(0)
    channel = _place(birth.channel, descriptors, told["fds"])
    os.environ.clear()
    os.environ.update(told["environment"])
    sys.argv[1:] = told["words"]
    sys.stdout.reconfigure(line_buffering=sys.stdout.isatty())  # type: ignore[union-attr]
    sys.stderr.write(birth.printed)
    tempfile.tempdir = None
    if "numpy.random" in sys.modules:  # Python's own generator sees to itself
        sys.modules["numpy.random"].seed()
    _show(own_command(birth.module, *told["words"]))
    return replace(birth, channel=channel, launches=told["launches"])


def _place(channel: Line, descriptors: Sequence[int], wanted: Sequence[int]) -> Line:
    """Have these under those numbers; the channel makes room."""
    above, own = max(wanted) + 1, channel.detach()
    own_moved, *moved = (fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, above) for descriptor in (own, *descriptors))
    for descriptor in (own, *descriptors):
        os.close(descriptor)
    for descriptor, number in zip(moved, wanted, strict=True):
        os.dup2(descriptor, number)
        os.close(descriptor)
    return Line(own_moved)


def _show(command: Sequence[str]) -> None:
    """Be seen as this command by `ps`: the kernel reads it where this process's own arguments lie."""
    with contextlib.suppress(OSError, ValueError):
        fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        begin, end = int(fields[45]), int(fields[46])
        shown = " ".join(command).encode(errors="replace")[: end - begin - 2]
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(begin)
            memory.write(shown.ljust(end - begin - 1, b"\0") + b".")  # behind what ends in no zero, none is looked for


def _run(birth: Birth) -> None:
    """Run the module as `python -m` does; how this process leaves is told first, in case the nursery dies."""
    found = importlib.util.find_spec(birth.module)
    if found is not None and found.submodule_search_locations is not None:
        found = importlib.util.find_spec(f"{birth.module}.__main__")
    loader = None if found is None else found.loader
    if found is None or not isinstance(loader, SourceLoader) or (compiled := loader.get_code(found.name)) is None:
        raise SystemExit(f"{sys.executable}: No module named {birth.module}")
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __spec__=found, __file__=found.origin, __cached__=found.cached, __loader__=loader,
        __package__=found.parent,
    )  # fmt: skip
    sys.modules["__main__"], sys.argv[0] = main, found.origin or ""
    code, own = 1, os.getpid()
    try:
        exec(compiled, main.__dict__)
        code = 0
    except SystemExit as end:
        code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
        raise
    except KeyboardInterrupt:
        code = -signal.SIGINT
        raise
    finally:
        with contextlib.suppress(OSError):
            if os.getpid() == own:  # a fork that comes by is not the launcher's
                birth.channel.send({"left": code})
            birth.channel.close()


def main() -> None:
    """Be a nursery, and then what its launcher says; and the nursery of one that launches others itself."""
    _show(own_command("mpc.nursery_process", sys.argv[1]))
    control = Line(int(sys.argv[1]))
    while True:
        birth = become(_Nursery(control).serve())
        if not birth.launches:
            break
        own, control = Line.pair()
        if pid := os.fork():
            control.close()
            NURSERIES.have(Nursery(own, pid, partial(os.waitpid, pid, os.WNOHANG)))
            break
        own.close()
        birth.channel.close()
        be_apart()
    _run(birth)


def be_apart() -> None:
    """As a new nursery: in a session of its own, and with nothing of the process that it was forked off."""
    os.setsid()
    with open(os.devnull, "r+b") as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)


if __name__ == "__main__":
    main()
