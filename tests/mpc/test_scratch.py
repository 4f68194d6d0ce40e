"""Folders for the time of a run: gone with it, swept when its process was killed, never while that lives."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mpc import scratch
from mpc.scratch import LOCK, remove_left, scratch_folder, scratch_path
from tests.parties.processes import ENVIRONMENT, script

_HOLDS = """
import sys, threading
from mpc.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "own").mkdir()
    (folder / "own" / "theta.npz").write_bytes(b"secret")
    print(folder, flush=True)
    threading.Event().wait(600)
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary files of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def holder(place: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A process with a scratch folder, and the folder."""
    environment = {**os.environ, **ENVIRONMENT, "TMPDIR": str(place)}
    process = subprocess.Popen(script(_HOLDS), env=environment, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process, Path(process.stdout.readline().strip())
    finally:
        process.kill()
        process.communicate(timeout=300)


def test_a_folder_is_its_users_alone_and_goes_with_its_block(place: Path) -> None:
    with scratch_folder() as folder:
        assert folder.parent == place and folder.stat().st_mode & 0o777 == 0o700
        (folder / "deep" / "er").mkdir(parents=True)
        (folder / "deep" / "er" / "theta").touch()
        (folder / "link").symlink_to(place)
    with pytest.raises(KeyError), scratch_folder("of-all-ranks") as named:
        assert named == scratch_path("of-all-ranks")
        raise KeyError
    assert list(place.iterdir()) == []


def test_the_next_start_removes_a_dead_ones_folder_and_no_living_ones(place: Path) -> None:
    with holder(place) as (alive, kept), holder(place) as (dead, left):
        dead.kill()
        dead.wait(300)
        assert (left / "own" / "theta.npz").exists()
        with scratch_folder() as own:
            assert not left.exists() and (kept / "own" / "theta.npz").exists() and own.exists()
        alive.send_signal(signal.SIGINT)
        alive.wait(300)
    assert list(place.iterdir()) == []


def test_a_removal_that_broke_off_is_finished(place: Path) -> None:
    """Under the name that it then had."""
    with holder(place) as (dead, left):
        dead.kill()
        dead.wait(300)
        left.rename(f"{left}-gone")
        remove_left()
    assert list(place.iterdir()) == []


def test_what_is_none_of_ours_stays(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No lock file, a file in place of a folder, a link to another folder, and another user's."""
    (place / "masked-unlocked").mkdir()
    (place / "masked-file").touch()
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / LOCK).touch()
    (place / "masked-link").symlink_to(place / "elsewhere")
    remove_left()
    (place / "masked-other").mkdir()
    (place / "masked-other" / LOCK).touch()
    with monkeypatch.context() as patch:
        patch.setattr(scratch.os, "getuid", lambda: os.geteuid() + 1)
        remove_left()
    assert len(list(place.iterdir())) == 5 and (place / "elsewhere" / LOCK).exists()
    remove_left()
    assert not (place / "masked-other").exists()


def test_ctrl_c_does_not_break_a_removal_off(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remove = shutil.rmtree

    def pressed(path: Path) -> None:
        signal.raise_signal(signal.SIGINT)
        remove(path)

    monkeypatch.setattr(scratch.shutil, "rmtree", pressed)
    with pytest.raises(KeyboardInterrupt), scratch_folder() as folder:
        for name in ("theta", "features"):
            (folder / name).mkdir()
    assert list(place.iterdir()) == []


def test_many_that_start_and_end_together_do_not_disturb_each_other(place: Path) -> None:
    wrong: list[str] = []

    def starts() -> None:
        for _ in range(40):
            with scratch_folder() as folder:
                (folder / "theta").write_text("secret")
                remove_left()
                if (folder / "theta").read_text() != "secret":
                    wrong.append(str(folder))

    threads = [threading.Thread(target=starts) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    assert not wrong and list(place.iterdir()) == []


@pytest.mark.parametrize("call", ["open", "mkdir"])
def test_a_signal_while_the_place_is_found_or_the_folder_made_leaves_nothing(
    call: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python tries the place with a file of its own; SIGHUP comes when that has just been made."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(place))
    does, before = getattr(os, call), signal.getsignal(signal.SIGHUP)

    def interrupted(*given: Any, **named: Any) -> Any:
        made = does(*given, **named)
        signal.raise_signal(signal.SIGHUP)
        return made

    def unwinds(how: int, _: object) -> None:
        raise SystemExit(128 + how)

    signal.signal(signal.SIGHUP, unwinds)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, call, interrupted)
            with pytest.raises(SystemExit), scratch_folder():
                pass
    finally:
        signal.signal(signal.SIGHUP, before)
    for name in os.listdir(place):
        assert (place / name / LOCK).exists(), f"{name} is nobody's, and stays for ever"


def test_a_fork_that_unwinds_leaves_its_parents_folder(place: Path) -> None:
    """Out of the block, and out of Python with what is done at its exit."""
    unwinds = """
import os, sys
from mpc.scratch import scratch_folder
with scratch_folder() as folder:
    (folder / "theta").touch()
    if not (child := os.fork()):
        sys.exit(0)
    print(os.waitpid(child, 0)[1], (folder / "theta").exists())
"""
    environment = {**os.environ, **ENVIRONMENT, "TMPDIR": str(place)}
    ended = subprocess.run(script(unwinds), env=environment, capture_output=True, text=True, timeout=300, check=True)
    assert ended.stdout == "0 True\n" and list(place.iterdir()) == []
