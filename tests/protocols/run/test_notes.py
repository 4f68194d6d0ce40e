"""What a client learned of a decision that was made again counts as often as it was made."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc import ConfigError
from protocols.run.notes import beyond, note_again


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
    (tmp_path / "again.json").write_text("[[1]]")
    with pytest.raises(ConfigError, match=r"again\.json is damaged: put it back, or run without --resume"):
        beyond(tmp_path, 0, 0)
