"""A file is written whole or not at all, and is its owner's alone unless something else is said."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from mpc.files import mac, make_folder, make_place, write_new, write_whole


def test_a_file_takes_another_s_place_in_one_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the disk before it does, and its name behind it."""
    path, done = tmp_path / "file", list[str]()
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real_sync(descriptor)

    def replace(*names: str) -> None:
        done.append("moved")
        real_replace(*names)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", replace)
    for content in (b"one", b"another"):
        done.clear()
        write_whole(path, content)
        assert path.read_bytes() == content and done == [f"{path}.new", "moved", str(tmp_path)]
    assert [file.name for file in tmp_path.iterdir()] == ["file"] and path.stat().st_mode & 0o777 == 0o600


def test_what_was_there_outlives_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"one", 0o666)
    (tmp_path / "file.new").write_bytes(b"of one that was killed")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"another")
    assert path.read_bytes() == b"one" and [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("make", [make_place, make_folder])
def test_a_new_folder_is_on_the_disk_with_all_above_it(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its files are flushed into it; without its own name they would be gone with the power."""
    flushed = list[str]()
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.append(os.readlink(f"/proc/self/fd/{descriptor}")))
    for expected in ([f"{tmp_path}/a/b", f"{tmp_path}/a", str(tmp_path)], []):
        flushed.clear()
        make(tmp_path / "a" / "b" / "home")
        assert flushed == expected
        assert make is make_place or (tmp_path / "a" / "b" / "home").stat().st_mode & 0o777 == 0o700


def test_a_new_file_is_never_an_old_one(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(FileExistsError):
            write_new(tmp_path / name, b"secret")
    assert not (tmp_path / "elsewhere").exists()


def test_a_tag_is_of_all_parts_and_of_where_they_end() -> None:
    tags = {
        mac(bytes(16), *parts, person=person)
        for parts in (("a", "bc"), ("ab", "c"), ("abc",), ("abc", ""), (b"abc", b"x"))
        for person in (b"one", b"two")
    }
    assert len(tags) == 10 and {len(tag) for tag in tags} == {32}
    assert mac(bytes(16), "a", person=b"one") == mac(bytes(16), b"a", person=b"one")
    assert mac(bytes(16), "a", person=b"one") != mac(bytes([1] * 16), "a", person=b"one")
