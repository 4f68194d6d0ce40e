"""The nursery: a process that is forked is as one that is started anew, and keeps its secrets for itself."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpc import nursery
from mpc.nursery import OFF, Forked, Started, own_command, start
from tests.parties.processes import ENVIRONMENT, PATIENCE, ended, script

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere every process is started anew")
_HERE = {name: value for name, value in {**os.environ, **ENVIRONMENT}.items() if name != "PYTHONUNBUFFERED"}
HOW = pytest.mark.parametrize("how", ["forked", "anew"])


@pytest.fixture(autouse=True, scope="module")
def ours() -> Iterator[None]:
    """These tests share nurseries of their own."""
    mine = nursery.Nurseries()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nursery, "NURSERIES", mine)
        yield
    mine._end()


class Run:
    """A process that runs a text, and what it said."""

    def __init__(self, text: str, *words: str, how: str = "forked", keep: tuple[int, ...] = (), **more: str) -> None:
        (self._out, out), (self._err, err) = os.pipe(), os.pipe()
        environment = {**_HERE, OFF: "no" if how == "anew" else "yes", **more}
        try:
            self.process: Started = start(
                own_command("tests.parties.newborn", text, *words), environment, keep=keep, stdout=out, stderr=err
            )
        finally:
            os.close(out)
            os.close(err)
        assert isinstance(self.process, Forked if how == "forked" else subprocess.Popen)

    def line(self) -> str:
        """The next line of its stdout."""
        said = b""
        while not said.endswith(b"\n") and (more := os.read(self._out, 1)):
            said += more
        return said.decode().rstrip("\n")

    def end(self, seconds: float = 60.0) -> tuple[int, str, str]:
        """Its exit code, stdout and stderr."""
        said = []
        for stream in (self._out, self._err):
            with os.fdopen(stream) as lines:
                said.append(lines.read())
        return self.process.wait(seconds), said[0], said[1]


_FACTS = """
import faulthandler, gc, json, os, resource, signal, sys, tempfile, threading, warnings
import numpy  # it has warnings of its own
fds = [fd for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd)]
print(json.dumps({
    'argv': sys.argv, 'name': __name__, 'file': __file__, 'package': __package__, 'path': sys.path,
    'main': sys.modules['__main__'].__dict__ is globals(), 'flags': list(sys.flags), 'cwd': os.getcwd(),
    'environment': {name: value for name, value in os.environ.items() if name != 'MASKED_NURSERY'},
    'leads': os.getpid() == os.getsid(0) == os.getpgrp(), 'mask': sorted(signal.pthread_sigmask(0, [])),
    'handlers': [repr(signal.getsignal(how)) for how in sorted(signal.valid_signals())],
    'threads': [thread.name for thread in threading.enumerate()], 'tasks': len(os.listdir('/proc/self/task')),
    'streams': [
        [stream.name, stream.mode, stream.encoding, stream.errors, stream.line_buffering, stream.isatty()]
        for stream in (sys.stdin, sys.stdout, sys.stderr)
    ],
    'stdin': sys.stdin.read(), 'filters': [str(kind) for kind in warnings.filters], 'dump': faulthandler.is_enabled(),
    'temporary': tempfile.gettempdir(), 'gc': [gc.isenabled(), gc.get_threshold()], 'umask': os.umask(0),
    'nice': os.nice(0), 'files': resource.getrlimit(resource.RLIMIT_NOFILE), 'hooks': [repr(sys.gettrace())],
    'fds': {fd: os.get_inheritable(int(fd)) for fd in fds},
}))
"""


def test_a_forked_process_is_as_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments, `__main__`, paths, environment, descriptors, streams, signals, session, threads, limits."""
    monkeypatch.chdir(tmp_path)
    kept = os.pipe()
    before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    facts: dict[str, dict[str, Any]] = {}
    try:
        for how in ("anew", "forked"):
            own = {"WORD": "äöü", "TMPDIR": str(tmp_path), "PYTHONFAULTHANDLER": "1"}
            run = Run(_FACTS, "a word", "", "-x", how=how, keep=(kept[1],), **own)
            code, out, err = run.end()
            assert (code, err) == (0, "")
            facts[how] = json.loads(out)
    finally:
        signal.signal(signal.SIGUSR2, before)
        for end in kept:
            os.close(end)
    anew, forked = facts["anew"].pop("fds"), facts["forked"].pop("fds")
    assert facts["forked"] == facts["anew"]
    assert {fd: forked[fd] for fd in anew} == anew and anew[str(kept[1])]
    (channel,) = forked.keys() - anew.keys()
    assert not forked[channel]  # nobody inherits what is between it and its launcher
    assert facts["forked"]["environment"]["WORD"] == "äöü" and facts["forked"]["cwd"] == str(tmp_path)


@HOW
@pytest.mark.parametrize(
    ("text", "code", "out", "err"),
    [
        ("print('said', end='')", 0, "said", ""),
        ("import sys; print('said'); sys.exit()", 0, "said\n", ""),
        ("import sys; sys.exit(3)", 3, "", ""),
        ("import sys; sys.exit('a reason')", 1, "", "a reason\n"),
        ("raise KeyError('a bug')", 1, "", "KeyError: 'a bug'\n"),
        ("raise KeyboardInterrupt", -signal.SIGINT, "", "KeyboardInterrupt\n"),
        ("import os; print('lost'); os._exit(7)", 7, "", ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL, "", ""),
        ("import os, signal; os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, "", ""),
        ("import atexit; atexit.register(print, 'goodbye'); raise SystemExit(4)", 4, "goodbye\n", ""),
        ("import threading; threading.Timer(0.1, print, ['later']).start()", 0, "later\n", ""),
        ("import os, sys; os.close(1); print('no')", 120, "", "Bad file descriptor\n"),
        ("import warnings; warnings.warn('a warning')", 0, "", "<string>:1: UserWarning: a warning\n"),
    ],
)  # fmt: skip
def test_it_ends_as_a_new_one_does(text: str, code: int, out: str, err: str, how: str) -> None:
    """What is printed is printed once; what is registered for the end is run."""
    run = Run(text, how=how)
    ended_with, said, complained = run.end()
    assert (ended_with, said) == (code, out)
    assert complained.endswith(err) and bool(complained) == bool(err), complained
    assert run.process.poll() == run.process.wait(0) == run.process.returncode == code
    assert not Path(f"/proc/{run.process.pid}").exists()


@HOW
def test_it_can_be_waited_for_and_ended(how: str) -> None:
    run = Run("import sys; print('up', flush=True); sys.stdin.read(); import time; time.sleep(600)", how=how)
    assert run.line() == "up"
    assert run.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        run.process.wait(0.05)
    run.process.terminate()
    assert run.end()[0] == -signal.SIGTERM
    run.process.kill()


def test_each_draws_coins_of_its_own() -> None:
    draws = (
        "import random, secrets, uuid; import numpy as np; from mpc.prg import fresh_key\n"
        "print(random.random(), np.random.random(), np.random.default_rng().random(), secrets.token_hex(),"
        " uuid.uuid4(), fresh_key().hex(), next(__import__('tempfile')._get_candidate_names()))"
    )
    said = [Run(draws).end()[1].split() for _ in range(3)]
    assert all(len(set(column)) == 3 for column in zip(*said, strict=True)), said


def found(pid: int, word: str) -> int:
    """How often a word stands in the memory of a process below this one."""
    count = 0
    with open(f"/proc/{pid}/maps") as rows, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for where, allowed, *_ in map(str.split, rows):
            begin, end = (int(at, 16) for at in where.split("-"))
            if allowed.startswith("rw"):
                memory.seek(begin)
                count += memory.read(end - begin).count(word.encode())
    return count


def test_what_one_is_told_is_in_no_other_s_memory() -> None:
    """Nor in the nursery's, from which those that come later are forked."""
    secret, waits = secrets.token_hex(24), "import os, time; print(os.getppid(), flush=True); time.sleep(600)"
    first = Run(waits, MASKED_KEY=secret)
    parent = int(first.line())
    second = Run(waits)
    assert int(second.line()) == parent
    assert found(first.process.pid, secret) > 0
    assert found(second.process.pid, secret) == found(parent, secret) == 0
    for run in (first, second):
        run.process.kill()
        run.end()


def test_a_descriptor_reaches_its_own_process_alone() -> None:
    """Under its number, also where that of another process was the same."""
    tells = "import os, sys; os.write(int(sys.argv[1]), sys.argv[2].encode()); print(len(os.listdir('/proc/self/fd')))"
    count = []
    for word in ("one", "two"):
        read, write = os.pipe()
        run = Run(tells, str(write), word, keep=(write,))
        os.close(write)
        count.append(run.end()[1])
        assert os.read(read, 9) == word.encode()
        os.close(read)
    assert count[0] == count[1]


def test_those_that_inherit_the_same_share_a_nursery() -> None:
    parent = "import os; print(os.getppid())"
    same = {Run(parent, MASKED_KEY=key, PYTEST_CURRENT_TEST=key).end()[1] for key in ("1", "2")}
    other = Run(parent, PYTHONHASHSEED="1").end()[1]
    assert len(same) == 1 and other not in same
    before = os.umask(0o77)
    try:
        assert Run(parent).end()[1] not in {*same, other}
    finally:
        os.umask(before)
    assert Run(parent).end()[1] in same


_WAITS = """
import os, sys, time
print(os.getppid(), flush=True)
while not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
sys.exit(5)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_without_its_nursery_a_process_goes_on_and_others_are_started_anew(
    how: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the nursery is dead or frozen: one ends by itself, one is killed, one begins."""
    over = tmp_path / "over"
    ends, killed = Run(_WAITS, str(over)), Run(_WAITS, str(over))
    parent = int(ends.line())
    assert int(killed.line()) == parent
    os.kill(parent, how)
    monkeypatch.setattr(nursery.Nursery, "patience", 0.5)
    monkeypatch.setattr(nursery, "_LAST_WORDS", 0.5)
    begins = Run("print('begun')", how="anew", **{OFF: "yes"})
    assert begins.end()[:2] == (0, "begun\n")
    killed.process.kill()
    assert killed.end()[0] == -signal.SIGKILL
    assert ends.process.poll() is None
    over.touch()
    assert ends.end()[0] == 5
    if how is signal.SIGSTOP:
        os.kill(parent, signal.SIGKILL)
    monkeypatch.setattr(nursery.Nursery, "patience", 60.0)
    assert Run("print('begun')").end()[:2] == (0, "begun\n")


@pytest.mark.parametrize("way", ["no such room", "no more processes", "no handle", "no such call", "no umask"])
def test_where_there_can_be_no_nursery_processes_are_started_anew(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nursery, "NURSERIES", nursery.Nurseries())
    if way == "no such room":
        monkeypatch.setattr(nursery, "_NURSERY", "mpc.no_such_module")
    elif way == "no more processes":
        monkeypatch.setattr(nursery.Nursery, "new", classmethod(lambda *_: os.kill(-(1 << 30), 0)))
    elif way == "no handle":
        monkeypatch.setattr(os, "pidfd_open", lambda pid: os.kill(-(1 << 30), 0))
    elif way == "no such call":
        monkeypatch.delattr(signal, "pidfd_send_signal")
    else:
        monkeypatch.setattr(Path, "read_text", lambda _: "Name: python")
    assert Run("print('begun')", how="anew", **{OFF: "yes"}).end()[:2] == (0, "begun\n")


def test_a_command_of_somebody_else_is_started_as_it_is() -> None:
    read, write = os.pipe()
    process = start(["echo", "hello"], _HERE, keep=[], stdout=write, stderr=2)
    other = start([*own_command("json.tool"), "--help"], _HERE, keep=[], stdout=write, stderr=2)
    os.close(write)
    assert (process.wait(300), other.wait(300)) == (0, 0)
    assert isinstance(process, subprocess.Popen) and isinstance(other, subprocess.Popen)
    with os.fdopen(read) as said:
        assert "hello\n" in said.read()


_ROLE = """
import os, threading
from mpc.launch import party_main
def main():
    print(os.getppid(), flush=True)
    threading.Event().wait(600)
party_main(main)
"""
_LAUNCHES = f"""
from mpc import nursery
nursery.ROOMS = (*nursery.ROOMS, "tests")
from mpc.launch import launch, own_command
launch(own_command("tests.parties.newborn", {_ROLE!r}), 2, started=lambda pids: print(*pids, flush=True),
       output=lambda _, line: print(line, flush=True))
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_launcher_s_end_is_the_end_of_its_nursery_and_of_all_roles(how: signal.Signals) -> None:
    launcher = subprocess.Popen(
        script(_LAUNCHES), env=_HERE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert launcher.stdout is not None
    try:
        with launcher.stdout as said:  # a role may speak before its launcher says that it has started both
            lines = sorted((said.readline().split() for _ in range(3)), key=len)
            (parent,), (same,), roles = lines
            assert len(roles) == 2 and parent == same and int(parent) != launcher.pid
            launcher.send_signal(how)
    except BaseException:
        launcher.kill()
        raise
    finally:
        launcher.wait(PATIENCE)
    assert all(ended(int(pid)) for pid in (*roles, parent))


def test_a_fork_of_the_launching_process_has_a_nursery_of_its_own() -> None:
    """And leaves that of its parent alone, which serves on."""
    parent = "import os; print(os.getppid())"
    before = Run(parent).end()[1]
    read, write = os.pipe()
    if not (pid := os.fork()):
        with warnings.catch_warnings():
            os.write(write, Run(parent).end()[1].encode())
            nursery.NURSERIES._end()
            os._exit(0)
    os.close(write)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    with os.fdopen(read) as said:
        assert said.read() not in ("", before)
    assert Run(parent).end()[1] == before


def test_another_python_has_a_nursery_of_its_own(tmp_path: Path) -> None:
    """Such as CrypTen's, and what it loads is there; a program that is no Python is started as it is."""
    other, none = tmp_path / "python", tmp_path / "none"
    other.symlink_to(Path(sys.executable).resolve())
    none.write_text("#!/bin/sh\necho none\n")
    none.chmod(0o755)
    (tmp_path / "sitecustomize.py").write_text(f"import mpc; mpc.__path__.append({str(tmp_path)!r})\n")
    (tmp_path / "slow.py").write_text("def load():\n    import colorsys\n")
    paths = (_HERE["PYTHONPATH"], str(tmp_path), sysconfig.get_path("purelib"))
    where = {**_HERE, "PYTHONPATH": os.pathsep.join(paths)}
    asks = own_command("tests.parties.newborn", "import sys; print(sys.executable, 'colorsys' in sys.modules)")
    for python, kind, said in (
        (other, Forked, f"{other} True\n"), (sys.executable, Forked, f"{sys.executable} True\n"),
        (none, subprocess.Popen, "none\n"),
    ):  # fmt: skip
        read, write = os.pipe()
        process = start([str(python), *asks[1:]], where, keep=[], stdout=write, stderr=2, load=["mpc.slow:load"])
        os.close(write)
        with os.fdopen(read) as heard:
            assert (heard.read(), process.wait(300)) == (said, 0)
        assert isinstance(process, kind)


def test_what_loading_prints_is_said_by_each(tmp_path: Path) -> None:
    """A warning of a module comes once a process, as ever."""
    room = tmp_path / "mpc"
    room.mkdir()
    (tmp_path / "sitecustomize.py").write_text(f"import mpc; mpc.__path__.append({str(room)!r})\n")
    (room / "old_module.py").write_text("import warnings\nwarnings.warn('this module is old')\n")
    for how in ("anew", "forked", "forked"):
        read, write = os.pipe()
        process = start(
            own_command("tests.parties.newborn", "import mpc.old_module"),
            {**_HERE, "PYTHONPATH": f"{_HERE['PYTHONPATH']}:{tmp_path}", OFF: "no" if how == "anew" else ""},
            keep=[], stdout=None, stderr=write, load=["mpc.old_module"],
        )  # fmt: skip
        os.close(write)
        with os.fdopen(read) as said:
            assert said.read().count("UserWarning: this module is old") == 1
        assert process.wait(300) == 0


def test_one_that_has_ended_unseen_is_in_nobody_s_way() -> None:
    """Its launcher has not asked how; the nursery's descriptors of it may have other uses by now."""
    unseen = Run("print('over')")
    assert unseen.line() == "over" and ended(unseen.process.pid)
    for number in range(3):
        assert Run(f"print({number})").end() == (0, f"{number}\n", "")
    assert unseen.end()[0] == 0
