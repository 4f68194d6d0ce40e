"""Material that travels by any means: only its party opens it, and only as the dealer made it."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from offline_parties import in_threads

from mpc.bilinear import MULTIPLY
from mpc.correlations import ProductMask
from mpc.errors import ConfigError, StoreRefused
from mpc.net.certificates import KEY_FILE
from offline import Plan, Store, deal, inspect, sealed
from offline.sealed import seal, unseal
from tests.parties.members import identity

PLAN = Plan("sealed", 2, (ProductMask(MULTIPLY, (40,), (40,)),))
DEALER, PARTY, OTHER = 5, 0, 1


def dealt(folder: Path, steps: int = 3) -> Path:
    return deal(PLAN, steps, folder / "dealt")[0]


def sealed_for(folder: Path, home: Path, party: int = PARTY) -> Path:
    keys, own = identity(DEALER)
    seal(home, identity(party)[1], own, keys / KEY_FILE, folder / "party.sealed")
    return folder / "party.sealed"


def opened(file: Path, home: Path, party: int = PARTY, dealer: int = DEALER) -> None:
    keys, own = identity(party)
    unseal(file, own, keys / KEY_FILE, identity(dealer)[1], home)


def content(home: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir()}


@pytest.mark.parametrize("chunk", [1 << 20, 100, 7])
def test_the_party_gets_what_was_dealt(chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "_CHUNK", chunk)
    home = dealt(tmp_path)
    opened(sealed_for(tmp_path, home), tmp_path / "mine")
    assert content(tmp_path / "mine") == content(home)
    assert inspect(tmp_path / "mine", whole=True).steps_left == 3
    assert (tmp_path / "mine").stat().st_mode & 0o077 == 0


def test_nobody_else_opens_it_and_nobody_else_made_it(tmp_path: Path) -> None:
    file = sealed_for(tmp_path, dealt(tmp_path))
    with pytest.raises(StoreRefused, match="is for another party than 'node 1'"):
        opened(file, tmp_path / "mine", party=OTHER)
    with pytest.raises(StoreRefused, match="is not signed by 'node 1'"):
        opened(file, tmp_path / "mine", dealer=OTHER)
    assert not (tmp_path / "mine").exists() and not (tmp_path / "mine.new").exists()


def test_a_folder_of_somebody_elses_is_not_taken(tmp_path: Path) -> None:
    file, other = sealed_for(tmp_path, dealt(tmp_path)), tmp_path / "mine.new" / "kept"
    other.parent.mkdir()
    other.write_text("mine")
    with pytest.raises(ConfigError, match=r"mine.new exists, .*: delete it if"):
        opened(file, tmp_path / "mine")
    assert other.read_text() == "mine" and not (tmp_path / "mine").exists()


def test_two_files_of_one_store_have_nothing_in_common(tmp_path: Path) -> None:
    home = dealt(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, two = (sealed_for(tmp_path / name, home).read_bytes() for name in "ab")
    assert one[-64:] != two[-64:] and (home / "key").read_bytes() not in one


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_file_that_was_changed_cut_or_lengthened_is_refused(tmp_path: Path, data: st.DataObject) -> None:
    file = tmp_path / "party.sealed"
    if not file.exists():
        sealed_for(tmp_path, dealt(tmp_path))
    whole = file.read_bytes()
    at = data.draw(st.integers(0, len(whole) - 1))
    way = data.draw(st.sampled_from(["flip", "cut", "more"]))
    wrong = {"flip": whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :], "cut": whole[:at], "more": whole + b"1"}
    changed = tmp_path / hashlib.sha256(wrong[way]).hexdigest()
    changed.write_bytes(wrong[way])
    with pytest.raises(StoreRefused):
        opened(changed, tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_material_that_was_in_use_is_not_sealed_nor_written_over(tmp_path: Path) -> None:
    home = dealt(tmp_path)
    file = sealed_for(tmp_path, home)
    with pytest.raises(ConfigError, match=r"party.sealed exists"):
        sealed_for(tmp_path, home)
    with pytest.raises(ConfigError, match="exists: material is never written over"):
        opened(file, home)
    with Store(home) as store:
        store.claim(1, finished=False)
    file.unlink()
    with pytest.raises(StoreRefused, match="was in use"):
        sealed_for(tmp_path, home)


def test_what_was_opened_before_is_not_opened_again(tmp_path: Path) -> None:
    """A courier brings the first deal's file again; the party has used and deleted what it opened then."""
    home = dealt(tmp_path)
    first, again = sealed_for(tmp_path, home), tmp_path / "second.sealed"
    opened(first, tmp_path / "mine")
    shutil.rmtree(tmp_path / "mine")
    first.rename(again)
    words = rf"second.sealed holds store {inspect(home).manifest.store[:8]}, which .*/opened says was opened before"
    with pytest.raises(StoreRefused, match=f"{words}.*: draw from the .*, or have the dealer deal anew"):
        opened(again, tmp_path / "mine")
    with pytest.raises(StoreRefused, match="opened before"):
        opened(sealed_for(tmp_path, home), tmp_path / "mine")  # the same store under other keys
    assert not (tmp_path / "mine").exists() and not (tmp_path / "mine.new").exists()
    log = identity(PARTY)[0] / "opened"
    assert log.stat().st_mode & 0o777 == 0o600
    opened(sealed_for(tmp_path / "other", dealt(tmp_path / "other")), tmp_path / "mine")


def test_of_many_that_open_one_file_at_once_one_does(tmp_path: Path) -> None:
    file = sealed_for(tmp_path, dealt(tmp_path))
    gate = threading.Barrier(6)

    def opens(at: int) -> None:
        gate.wait(100)
        opened(file, tmp_path / f"mine-{at}")

    ends = in_threads([partial(opens, at) for at in range(6)])
    assert [type(end) for end in ends if end is not None] == [StoreRefused] * 5
    assert len(list(tmp_path.glob("mine-*"))) == 1


def test_what_another_opening_puts_together_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It began between this one's look and its own folder."""
    file, others = sealed_for(tmp_path, dealt(tmp_path)), tmp_path / "mine.new"
    real = sealed._header

    def meanwhile(*given: Any) -> Any:
        others.mkdir()
        (others / "manifest").write_text("of another")
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(sealed, "_header", meanwhile)
        with pytest.raises(ConfigError, match="File exists"):
            opened(file, tmp_path / "mine")
    assert (others / "manifest").read_text() == "of another"
    shutil.rmtree(others)
    opened(file, tmp_path / "mine")


def test_an_opening_is_noted_before_its_store_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that a crash or a full disk cut short does not count, and nothing was opened."""
    file, log = sealed_for(tmp_path, dealt(tmp_path)), identity(PARTY)[0] / "opened"

    def half(descriptor: int, line: bytes) -> None:
        os.write(descriptor, line[:20])
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("offline.opened.append", half)
        with pytest.raises(ConfigError, match=r"opened cannot note what is opened \(No space left .*: make room there"):
            opened(file, tmp_path / "mine")
    assert not (tmp_path / "mine").exists() and log.read_bytes().splitlines()[-1]
    opened(file, tmp_path / "mine")
    assert {len(line) for line in log.read_bytes().splitlines(keepends=True)} == {32 + len(" 0\n")}
