"""A picture is a file like any other."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_picture_is_as_readable_as_the_umask_says_and_has_no_date(kind: str, tmp_path: Path) -> None:
    from protocols.run.picture import picture

    before = os.umask(0)
    try:
        with picture(path := tmp_path / "new" / f"one.{kind}", 2.0, 1.0) as canvas:
            canvas.subplots().plot([1, 2, 3])
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    assert path.stat().st_size > 500 and b"<dc:date>" not in path.read_bytes()
