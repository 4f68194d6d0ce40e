"""The places of a run: one run in a folder at a time, and a place that cannot be used is refused before it begins."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpc import ConfigError
from mpc.scratch import scratch_folder
from protocols.run.folder import check_picture, reserved

from ..harness import ROOT, masked
from ..ppcb.commands import SMALL

Output = pytest.CaptureFixture[str]


def test_a_folder_takes_one_run_at_a_time(tmp_path: Path) -> None:
    keep = tmp_path / "run" / "checkpoints"
    with reserved(keep):
        words = rf"process {os.getpid()} has a run in .*: wait for its end, or choose"
        with pytest.raises(ConfigError, match=words), reserved(keep):
            pass
        with reserved(tmp_path / "other"):
            (keep / "kept").write_text("")
    with reserved(keep):
        pass
    assert [path.name for path in keep.iterdir()] == ["kept"], "no lock is left behind"


def test_a_run_s_new_folder_is_on_the_disk_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the power takes it with all that was flushed into it."""
    flushed = list[str]()
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append(os.readlink(f"/proc/self/fd/{file}")))
    with reserved(tmp_path / "run" / "checkpoints"):
        assert flushed == [f"{tmp_path}/run", str(tmp_path)]


def test_a_fork_that_unwinds_lets_nobody_into_its_parents_folder(tmp_path: Path) -> None:
    script = """
import os, sys
from pathlib import Path
from protocols.run.folder import reserved
keep = Path(sys.argv[1])
with reserved(keep):
    if not (child := os.fork()):
        sys.exit(0)
    print(os.waitpid(child, 0)[1])
    try:
        with reserved(keep):
            print("let in")
    except Exception as error:
        print(error)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "run")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=True)
    code, refusal = ended.stdout.splitlines()
    assert code == "0" and "has a run in" in refusal and list(tmp_path.iterdir()) == []


def test_folders_that_stay_empty_are_taken_away(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="refused"), reserved(tmp_path / "new" / "run" / "checkpoints"):
        raise ValueError("refused before anything was kept")
    assert list(tmp_path.iterdir()) == []


@contextmanager
def killed(keep: Path) -> Iterator[int]:
    """The number of a process that has a run there; it is killed at the end."""
    script = (
        "import sys, time; from pathlib import Path; from protocols.run.folder import reserved\n"
        "with reserved(Path(sys.argv[1])): print('locked', flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", script, str(keep)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout is not None and process.stdout.readline() == "locked\n"
        yield process.pid
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


def test_a_run_that_was_killed_locks_nothing(tmp_path: Path) -> None:
    with (
        killed(tmp_path) as pid,
        pytest.raises(ConfigError, match=f"process {pid} has a run"),
        reserved(tmp_path),
    ):
        pass
    with reserved(tmp_path):
        pass


def test_what_a_killed_run_kept_is_no_scratch_folder_whatever_its_place_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next start takes the scratch folders of the dead away, and looks at their names and locks alone."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    keep = tmp_path / "masked-trial"
    with killed(keep):
        (keep / "kept").write_text("shares")
    with scratch_folder():
        assert (keep / "kept").read_text() == "shares"


@pytest.mark.parametrize("how", ["run", "launch"])
def test_a_second_run_leaves_the_first_alone(how: str, tmp_path: Path, capsys: Output) -> None:
    kept = tmp_path / "checkpoints" / "party-0" / "checkpoint-000000008.npz"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"of the run at work")
    with reserved(tmp_path / "checkpoints"):
        code, out, err = masked(capsys, how, "ppcb", *SMALL, "--steps", "8", "--out", str(tmp_path))
    assert (code, out) == (2, "") and err.startswith(f"error: process {os.getpid()} has a run in {tmp_path}")
    assert kept.read_bytes() == b"of the run at work"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("curve.xyz", "a picture ends in .png, .svg, .pdf, .jpg, not as 'curve.xyz' does: rename it in --plot"),
        ("curve", "not as 'curve' does"),
        ("file/curve.png", "cannot be written .*: choose a place that can be used for --plot"),
        ("folder.png", "Is a directory"),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ConfigError, match=words):
        check_picture(tmp_path / name)


@pytest.mark.needs("matplotlib")
def test_trying_a_picture_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "old.png").write_bytes(b"a picture")
    check_picture(tmp_path / "old.png")
    check_picture(tmp_path / "new" / "deep" / "curve.svg")
    assert [path.name for path in tmp_path.iterdir()] == ["old.png"]
    assert (tmp_path / "old.png").read_bytes() == b"a picture"
