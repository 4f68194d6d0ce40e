"""A run is finished when its result is printed and written: until then it is kept, and no other takes its place."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import stat
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc.scratch import LOCK
from protocols.run import folder as folders
from protocols.run.folder import reached
from protocols.run.report import Report, show

from ..harness import awaited, finished, masked, refused, without_progress
from ..ppcb.commands import SMALL

Output = pytest.CaptureFixture[str]
SYSTEMS = {
    "ppcb": f"ppcb {' '.join(SMALL)} --steps 12 --checkpoint-every 5",
    "samba": "samba --mode mpc --parties 2 --budget 30 --checkpoint-every 12",
    "samba, as published": "samba --mode classic --bits 1024 --budget 30 --checkpoint-every 12",
    "linucb-ds": "linucb-ds --mode mpc --dim 2 --arms 3 --budget 9 --checkpoint-every 4",
    "spectralucb-ds": "spectralucb-ds --mode mpc --dim 2 --arms 6 --budget 9 --checkpoint-every 4",
    "helba": "helba --parties 2 --steps 6 --checkpoint-every 2",
}
_KEEPS_NOTHING = "linucb-ds --mode classic --bits 1024 --dim 2 --arms 3 --budget 9"
EVERY_SYSTEM = pytest.mark.parametrize("line", [
    pytest.param(line, id=name, marks=[pytest.mark.needs("phe", "gmpy2")] if "classic" in line else [])
    for name, line in SYSTEMS.items()
])  # fmt: skip


def full(patch: pytest.MonkeyPatch, *names: str) -> None:
    """A disk that takes none of these files."""
    opened = Path.open

    def instead(path: Path, mode: str = "r", *more: object, **rest: object) -> object:
        if path.name in names and "w" in mode:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return opened(path, mode, *more, **rest)  # type: ignore[call-overload]

    def compressed(path: Path, **arrays: np.ndarray) -> None:
        with path.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]

    patch.setattr(Path, "open", instead)
    patch.setattr(np, "savez_compressed", compressed)  # else it opens the file by itself


def written(out: Path) -> dict[str, bytes]:
    """Results alone, and none of what is kept."""
    return {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}


@EVERY_SYSTEM
def test_a_result_that_is_not_written_is_printed_and_not_lost(
    line: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk at the very end; then nothing takes the place of what is kept, and --resume writes the result."""
    out = tmp_path / "out"
    how = ("run", *line.split(), "--json", "--out", str(out))
    with monkeypatch.context() as patch:
        full(patch, "result.json")
        code, printed, said = masked(capsys, *how)
    assert code == 2 and said.count("error: ") == said.count("cannot be written (No space left on device)") == 1
    assert "the result is printed, and what the run kept stays" in said and "Traceback" not in said
    refused(masked(capsys, *how), "holds a run that was not finished: go on with --resume, discard it with --overwrite")
    code, again, _ = masked(capsys, *how, "--resume")
    result, first, second = (json.loads(text) for text in ((out / "result.json").read_text(), printed, again))
    assert code == 0
    for name in ("cumulative_reward", "average_reward", "pulls", "arms"):
        assert first.get(name) == second.get(name) == result.get(name)
    for each in (first, second):
        assert sorted(map(str, each["ledger"])) == sorted(map(str, result["ledger"]))
    assert masked(capsys, *how)[0] == 0, "a finished run's folder takes another one"


@EVERY_SYSTEM
def test_a_run_that_was_not_finished_goes_when_that_is_said(
    line: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = ("run", *line.split(), "--json", "--out", str(tmp_path))
    with monkeypatch.context() as patch:
        full(patch, "result.json")
        assert masked(capsys, *how)[0] == 2
    kept = {path: path.read_bytes() for path in (tmp_path / "checkpoints").rglob("checkpoint-*")}
    assert kept and masked(capsys, *how)[0] == 2
    assert {path: path.read_bytes() for path in kept} == kept, "a run that is refused changes nothing"
    assert masked(capsys, *how, "--resume", "--overwrite")[0] == 2
    assert masked(capsys, *how, "--overwrite")[0] == 0
    assert masked(capsys, *how)[0] == 0


@pytest.mark.needs("phe", "gmpy2")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("samba", "samba, as published"),
        ("samba, as published", "samba"),
        ("samba", "linucb-ds"),
        ("samba, as published", "linucb-ds, as published"),
        ("linucb-ds", "linucb-ds, as published"),
        ("ppcb", "helba"),
        ("helba", "ppcb"),
    ],
    ids=lambda name: name.replace(", ", " "),
)
def test_what_another_program_or_mode_did_not_finish_is_in_the_way(
    first: str, second: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both would write result.json; who begins all the same leaves what the other kept, and it goes on."""
    lines = [(SYSTEMS | {"linucb-ds, as published": _KEEPS_NOTHING})[name] for name in (first, second)]
    one, other = (("run", *line.split(), "--json", "--out", str(tmp_path / "out")) for line in lines)
    with monkeypatch.context() as patch:
        full(patch, "result.json")
        assert masked(capsys, *one)[0] == 2
    kept = {path: path.read_bytes() for path in tmp_path.rglob("checkpoint-*")}
    refused(masked(capsys, *other), "run that was not finished: ")
    assert kept and {path: path.read_bytes() for path in tmp_path.rglob("checkpoint-*")} == kept
    assert not (tmp_path / "out" / "result.json").exists()
    if lines[0].split()[0] == lines[1].split()[0]:  # in a folder of its own
        assert masked(capsys, *other, "--overwrite")[0] == 0
        assert {path: path.read_bytes() for path in tmp_path.rglob("checkpoint-*")} == kept
    assert masked(capsys, *one, "--resume")[0] == 0
    assert masked(capsys, *other)[0] == 0, "a finished run is in nobody's way"


@EVERY_SYSTEM
def test_ctrl_c_while_a_finished_run_is_forgotten_leaves_nothing_half_deleted(
    line: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its result is printed and written; without its key, the rest of what it kept would be nobody's."""
    how, forgotten, real = ("run", *line.split(), "--json", "--out", str(tmp_path)), list[Path](), folders.forget_all

    def interrupted(home: Path) -> None:
        real(home)
        if (tmp_path / "result.json").exists() and not forgotten:
            forgotten.append(home)
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(folders, "forget_all", interrupted)
        code, printed, said = masked(capsys, *how)
    finished_whole = not forgotten  # where a system notes that it is finished, and forgets nothing
    assert code == (0 if finished_whole else 130) and json.loads(printed) and "Traceback" not in said
    kept = [path for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()]
    assert finished_whole or kept == [], kept
    assert masked(capsys, *how)[0] == 0


@pytest.mark.parametrize("whose", ["nobody's", "another run's"])
def test_the_word_that_a_run_is_finished_is_its_own(
    whose: str, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may write a file there, and cannot read the folder's key, does not let another run in."""
    how = ("run", *SYSTEMS["ppcb"].split(), "--json", "--out")
    assert masked(capsys, *how, str(tmp_path / "other"))[0] == 0
    with monkeypatch.context() as patch:
        full(patch, "result.json")
        assert masked(capsys, *how, str(tmp_path / "out"))[0] == 2
    theirs = (tmp_path / "other" / "checkpoints" / "finished").read_bytes()
    (tmp_path / "out" / "checkpoints" / "finished").write_bytes(b"" if whose == "nobody's" else theirs)
    said = masked(capsys, *how, str(tmp_path / "out"))
    refused(said, "finished is damaged, or not of this place and run: go on with --resume, or ")
    assert masked(capsys, *how, str(tmp_path / "out"), "--resume")[0] == 0
    assert masked(capsys, *how, str(tmp_path / "out"))[0] == 0, "it has its own word by now"


@pytest.mark.needs("matplotlib")
def test_files_of_a_result_are_of_one_run(tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where one of them finds no room, those of the run before are all still there."""
    how = ("run", "ppcb", *SMALL, "--json", "--out", str(tmp_path), "--steps")
    assert masked(capsys, *how, "10")[0] == 0
    before = written(tmp_path)
    assert set(before) == {"result.json", "steps.npz", "reward.png"}
    for name in ("result.json", "steps.npz"):
        with monkeypatch.context() as patch:
            full(patch, name)
            assert masked(capsys, *how, "12", "--overwrite")[0] == 2
            assert written(tmp_path) == before, name
    assert masked(capsys, *how, "12", "--resume")[0] == 0
    after = written(tmp_path)
    assert set(after) == set(before) and all(after[name] != before[name] for name in before)
    assert {path.name for path in tmp_path.iterdir()} == {*after, "checkpoints"}


def test_a_result_is_on_the_disk_when_it_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Contents, then names, result.json's last; only then is there nothing more to lose with what was kept."""
    done, replace = list[str](), Path.replace
    out = tmp_path / "out"

    def more(folder: Path) -> list[Path]:
        (folder / "steps.npz").touch()
        return [folder / "steps.npz"]

    def moved(path: Path, target: Path) -> Path:
        done.append(f"{path.name} in place")
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", moved)
    monkeypatch.setattr(os, "fsync", lambda file: done.append(os.path.basename(os.readlink(f"/proc/self/fd/{file}"))))
    show(Report({}, "", 1, files=more), {}, out, None, as_json=True)
    assert done == ["result.json", "steps.npz", "steps.npz in place", "result.json in place", "out"]
    assert sorted(path.name for path in out.iterdir()) == ["result.json", "steps.npz"]


def test_who_else_may_read_a_result_is_the_user_s_to_say(tmp_path: Path) -> None:
    """Unlike what a run keeps: by the umask, of result.json and of files beside it."""

    def more(folder: Path) -> list[Path]:
        np.savez_compressed(folder / "steps.npz")
        return [folder / "steps.npz"]

    before = os.umask(0o027)
    try:
        show(Report({}, "", 1, files=more), {}, tmp_path, None, as_json=True)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    assert modes == {"result.json": 0o640, "steps.npz": 0o640}


@pytest.mark.parametrize("name", ["result.json", "reward.png"])
def test_a_result_that_could_not_be_written_is_said_before_the_run(name: str, tmp_path: Path, capsys: Output) -> None:
    (tmp_path / name).mkdir()
    for line in SYSTEMS.values():
        given = masked(capsys, "run", *line.split(), "--out", str(tmp_path))
        refused(given, f"{name} cannot be written (Is a directory): choose a place that can be used for --out")
    assert not list(tmp_path.rglob("checkpoint*"))


def test_a_reader_who_left_costs_no_file(tmp_path: Path) -> None:
    """`masked run ... | true`: the result is written, and the run is a finished one."""
    script = (
        "import os, sys; end, sys.stdout = os.pipe(), None; os.close(end[0]); os.dup2(end[1], 1)\n"
        "sys.stdout = open(1, 'w', closefd=False); from protocols.cli import main; main(sys.argv[1:])"
    )
    how = ("run", *SYSTEMS["samba"].split(), "--out", str(tmp_path))
    done = finished(*how, program=("-c", script))
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "result.json").is_file() and not list(tmp_path.rglob("checkpoint-*"))


def test_a_checkpoint_on_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """In the process of a role: no file may be longer than 20 kB, and a party's state is.

    What Python compiles would be cut as well, and stay so for all other tests.
    """
    script = (
        "import os, resource, sys; sys.dont_write_bytecode, os.environ['PYTHONDONTWRITEBYTECODE'] = True, '1'\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))\n"
        "from protocols.cli import main; main(sys.argv[1:])"
    )
    how = ("ppcb", *SMALL, "--arms", "20", "--dim", "12", "--steps", "8", "--checkpoint-every", "4")
    done = finished("launch", *how, "--out", str(tmp_path), program=("-c", script))
    assert done.returncode == 2 and done.stdout == ""
    (line,) = without_progress(done.stderr)
    assert line.startswith("error: ")
    assert "checkpoint-000000004.npz cannot be written (File too large): make room there" in line


def test_a_folder_that_is_removed_during_a_launch_takes_no_result(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the puller learned and the dealer's coins are written again: the twin is played, all arms are counted."""
    out, steps, more = tmp_path / "out", 150, ("--refresh", "0", "--checkpoint-every", "100000")
    notes = out / "checkpoints" / "arms.bin"

    def remove() -> None:
        awaited(lambda: notes.exists() and notes.stat().st_size > 5 * 24)  # arms noted: by then all roles are at work
        shutil.rmtree(out)

    remover = threading.Thread(target=remove)
    remover.start()
    code, printed, said = masked(capsys, "launch", "ppcb", *SMALL, *more, f"--steps {steps}", "--json", f"--out {out}")
    remover.join()
    assert code == 0, said
    assert f"{out / 'checkpoints'} was removed while the run was at work: what roles had kept there" in said
    found = json.loads(printed)
    assert found["steps"] == found["ledger"][0]["count"] == steps and found["further_arms"] == 0
    assert found["twin_average_reward"] == found["average_reward"] and found["first_difference"] is None
    assert json.loads((out / "result.json").read_text())["average_reward"] == found["average_reward"]


@pytest.mark.parametrize("late", [False, True])
def test_notes_that_are_removed_as_the_result_is_made_are_missed_in_a_line(
    late: bool, tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """late: when it was found out how far all roles came."""

    def removes(program: Any, folder: Path) -> int:
        done = reached(program, folder) if late else 0
        (folder / "arms.bin").unlink()
        return done or reached(program, folder)

    monkeypatch.setattr("protocols.run.launch.reached", removes)
    how = ("launch", "ppcb", *SMALL, "--steps", "8", "--json", "--out", str(tmp_path))
    refused(masked(capsys, *how), "arms.bin holds 0 of 8 decisions: it was removed or cut at the end of the run")


def test_a_run_that_was_killed_is_not_overwritten(tmp_path: Path, capsys: Output) -> None:
    """Before its first checkpoint too: what the puller learned is counted, or discarded by who knows."""
    notes = tmp_path / "checkpoints" / "arms.bin"
    notes.parent.mkdir()
    notes.write_bytes(bytes(8))
    how = ("launch", "ppcb", *SMALL, "--steps", "8", "--json", "--out", str(tmp_path))
    refused(masked(capsys, *how), "there is no checkpoint to go on from, so discard it with --overwrite")
    assert notes.read_bytes() == bytes(8)


def test_a_start_that_is_refused_removes_what_a_killed_launcher_left(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of a launcher that is gone holds inputs of roles, as theta."""
    left = tmp_path / "masked-left"
    left.mkdir(mode=0o700)
    for name in (LOCK, "DO.in.json"):
        (left / name).touch()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    how = ("launch", "linucb-ds", "--mode", "classic", "--resume", "--out", str(tmp_path / "out"))
    refused(masked(capsys, *how), "--resume is of --mode mpc")
    assert not left.exists()
