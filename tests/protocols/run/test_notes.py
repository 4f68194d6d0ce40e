"""What a client wrote down is what it reads, and what it learned again counts as often as it did."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc import ConfigError
from protocols.run.notes import Notes, beyond, note_again
from protocols.run.tagged_file import HOME_KEY, key_of, write_kept


@pytest.mark.parametrize(
    ("spans", "done", "noted", "further", "most"),
    [
        ([], 100, 100, 0, 1),
        ([], 100, 108, 8, 1),
        ([(50, 75)], 100, 100, 25, 2),
        ([(50, 100), (60, 70)], 200, 200, 60, 3),
        ([(50, 100)], 60, 70, 60, 2),
        ([(96, 100)], 0, 0, 4, 1),
    ],
)
def test_what_was_decided_again_counts_as_often_as_it_was(
    spans: list[tuple[int, int]], done: int, noted: int, further: int, most: int, tmp_path: Path
) -> None:
    for span in spans:
        note_again(tmp_path, *span)
    assert beyond(tmp_path, done, noted) == (further, most)


def test_damaged_notes_are_refused(tmp_path: Path) -> None:
    note_again(tmp_path, 5, 9)
    whole = (tmp_path / "again.json").read_bytes()
    (tmp_path / "again.json").write_bytes(whole.replace(b"9", b"7", 1))
    with pytest.raises(ConfigError, match=r"again\.json is damaged, .*: put it back, or discard the run with --over"):
        beyond(tmp_path, 0, 0)


@pytest.fixture
def written(tmp_path: Path) -> Notes:
    """Twenty records of two integers, and nothing but them."""
    write_kept(tmp_path / "run.json", b"a run")
    notes = Notes(tmp_path / "sales.bin", (2,))
    for at in range(20):
        notes.append(np.array([at, -at]))
    return notes


def test_notes_are_read_as_they_were_written(written: Notes, tmp_path: Path) -> None:
    """By one who goes on behind them as well, from wherever they were cut."""
    wanted = [[at, -at] for at in range(20)]
    assert written.words().tolist() == written.glance().tolist() == wanted
    assert written.path.stat().st_mode & 0o777 == 0o600
    again = Notes(written.path, (2,))
    again.cut(5)
    again.append(np.array([5, 55]))
    assert again.words().tolist() == [*wanted[:5], [5, 55]]
    assert Notes(tmp_path / "none", (2,)).words().shape == (0, 2)


@pytest.mark.parametrize("torn", [1, 16, 31], ids=["a byte", "without its tag", "all but a byte"])
def test_a_record_that_a_crash_cut_short_is_left_out(torn: int, written: Notes) -> None:
    raw = written.path.read_bytes()
    for tail in (raw[-32:][:torn], bytes(64), bytes(32) + raw[:torn]):
        written.path.write_bytes(raw[:-32] + tail)
        assert Notes(written.path, (2,)).words().tolist() == [[at, -at] for at in range(19)]
    written.path.write_bytes(raw[:-32] + raw[-32:][:torn])
    again = Notes(written.path, (2,))
    again.append(np.array([19, 7]))
    assert again.words().tolist() == [*([at, -at] for at in range(19)), [19, 7]]


def turned(at: int) -> Callable[[bytes], bytes]:
    return lambda raw: raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


CHANGED: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "the first": (turned(0), 1),
    "a tag": (turned(32 * 4 + 20), 5),
    "the last": (turned(32 * 19 + 8), 20),
    "the last tag": (turned(32 * 20 - 1), 20),
    "two in another order": (lambda raw: raw[:64] + raw[96:128] + raw[64:96] + raw[128:], 3),
    "one left out": (lambda raw: raw[:320] + raw[352:], 11),
    "one twice": (lambda raw: raw[:320] + raw[288:], 11),
}


@pytest.mark.parametrize(("change", "record"), CHANGED.values(), ids=CHANGED)
def test_notes_that_were_changed_are_refused(change: Callable[[bytes], bytes], record: int, written: Notes) -> None:
    written.path.write_bytes(change(written.path.read_bytes()))
    words = rf"sales\.bin is damaged, or not of this place and run, from record {record} on: put it back"
    for use in (Notes.words, lambda notes: notes.append(np.array([1, 1]))):
        with pytest.raises(ConfigError, match=words):
            use(Notes(written.path, (2,)))


def test_notes_whose_folder_was_removed_or_moved_are_written_again(written: Notes, tmp_path: Path) -> None:
    key = key_of(tmp_path)
    for number, away in enumerate((lambda: shutil.rmtree(tmp_path), lambda: tmp_path.rename(f"{tmp_path}-moved"))):
        away()
        written.append(np.array([20 + number, 0]))
        (tmp_path / HOME_KEY).write_bytes(key)
        assert written.words()[:, 0].tolist() == list(range(21 + number))


@pytest.mark.parametrize("end", [Notes.flush, Notes.close])
def test_notes_that_were_removed_behind_the_last_one_are_written_again(
    end: Callable[[Notes], None], written: Notes, tmp_path: Path
) -> None:
    key = key_of(tmp_path)
    shutil.rmtree(tmp_path)
    end(written)
    (tmp_path / HOME_KEY).write_bytes(key)
    assert Notes(written.path, (2,)).words()[:, 0].tolist() == list(range(20))


def test_notes_of_a_run_that_took_the_folder_meanwhile_are_left_alone(written: Notes, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path)
    write_kept(tmp_path / "run.json", b"another run")
    other = Notes(written.path, (2,))
    other.append(np.array([7, 7]))
    for use in (lambda: written.append(np.array([20, 0])), written.flush):
        with pytest.raises(ConfigError, match="belongs to another run by now: let that end, and choose another --out"):
            use()
    written.close()
    assert Notes(written.path, (2,)).words().tolist() == [[7, 7]]


def test_notes_that_a_full_disk_cuts_short_are_said(written: Notes, monkeypatch: pytest.MonkeyPatch) -> None:
    written.close()

    class Full(io.FileIO):
        def write(self, content: Any) -> int:
            return super().write(content[:9])

    monkeypatch.setattr(os, "fdopen", lambda descriptor, *_, **__: Full(descriptor, "r+"))
    with pytest.raises(ConfigError, match=r"sales\.bin cannot be written \(No space left on device\): make room there"):
        Notes(written.path, (2,)).append(np.array([20, 0]))
    assert len(Notes(written.path, (2,)).words()) == 20
