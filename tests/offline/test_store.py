"""File stores: right results, exact sizes, an end with numbers, and for every mishap a refusal that names it."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from offline_parties import over_tcp, plan_of, right, step, step_plan, steps

from mpc import ops
from mpc.bilinear import MULTIPLY
from mpc.correlations import ProductMask, SquareMask, TruncationMask, layout
from mpc.errors import ConfigError, OutOfMaterial, StoreRefused
from mpc.session import Session
from offline import InProcessDealer, InsecureSeededDealer, Plan, Store, StoreSource, deal, directory, inspect
from offline.directory import MAC_BYTES, Directory

FIRST, SECOND = ProductMask(MULTIPLY, (3,), (3,)), TruncationMask((3,), 20)
RECORD = 32


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    """A fresh deal for two parties: 4 blocks of 2 steps."""
    return deal(step_plan(2), 8, tmp_path / "deal", block_steps=2)


def sources(homes: list[Path], **rest: Any) -> list[Callable[[], StoreSource]]:
    return [lambda home=home: StoreSource(Store(home), **rest) for home in homes]


def agreed(*opened: StoreSource) -> None:
    """What a session does before its first round."""
    statements = [source.statement().ljust(64, b"\0") for source in opened]
    for source in opened:
        source.agree(statements)


def spend(homes: list[Path], count: int) -> None:
    """Use the first `count` steps."""
    opened = [StoreSource(Store(home)) for home in homes]
    agreed(*opened)
    for source in opened:
        for _ in range(count):
            source.draw(FIRST)
            source.draw(SECOND)
        source.close()


# Right results, and the end.


def test_parties_with_stores_get_right_results_to_the_last_step(parties: int, tmp_path: Path) -> None:
    homes = deal(step_plan(parties), 6, tmp_path, block_steps=2)
    assert over_tcp(sources(homes), steps(4)) == [4] * parties
    assert over_tcp(sources(homes), steps(2)) == [2] * parties
    for party, error in enumerate(over_tcp(sources(homes), steps(1))):
        assert isinstance(error, OutOfMaterial)
        for words in (
            f"party {party}: all steps of 'step' are used up", "a step draws 2 items, among them 1 x ",
            "TruncationMask(shape=(3,), bits=20)", "have the dealer of store ",
            "masked offline deal plan.json --steps 6 ",
        ):  # fmt: skip
            assert words in str(error)
        assert str(homes[party]) not in str(error), "a dealer has no such folder"


def test_a_run_may_take_exactly_the_steps_that_are_left(homes: list[Path]) -> None:
    spend(homes, 4)
    with Store(homes[0]) as store:
        source = StoreSource(store)
        source.want(4)
        with pytest.raises(OutOfMaterial, match="party 0: 4 steps of 'step' are left, 5 wanted"):
            source.want(5)
    assert over_tcp(sources(homes), steps(4)) == [4, 4]


def test_running_out_in_the_middle_stays_so(homes: list[Path]) -> None:
    def program(session: Session) -> int:
        done = 0
        for _ in range(8):
            done += right(session.run(step(session)))
        for _ in range(3):
            with pytest.raises(OutOfMaterial):
                session.draw(FIRST)
        return done

    assert over_tcp(sources(homes), program) == [8, 8]


def test_another_program_than_planned_names_both_items(homes: list[Path]) -> None:
    def program(session: Session) -> Any:
        x = session.share([1.0, 2.0] if 0 in session.hosted else None, owner=0, shape=(2,))
        return session.run(ops.square(session, x))

    for error in over_tcp(sources(homes), program):
        assert isinstance(error, OutOfMaterial)
        assert "SquareMask(shape=(2,), op=elementwise)" in str(error) and "ProductMask(op=elementwise" in str(error)
        assert "'step'" in str(error) and "deal again" in str(error)


def test_an_item_that_is_refused_is_not_used_up(homes: list[Path]) -> None:
    used: list[tuple[int, int]] = []
    opened = [StoreSource(Store(home), used=lambda *at: used.append(at)) for home in homes]
    dealt = [InProcessDealerOf(homes)]
    agreed(*opened)
    for wrong in (SquareMask((3,)), SECOND, TruncationMask((3,), 21)):
        for source in opened:
            with pytest.raises(OutOfMaterial, match="where the plan"):
                source.draw(wrong)
    assert not used and [inspect(home).cursor for home in homes] == [0, 0], (
        "a wrong draw costs nothing, not even a block"
    )
    first = [source.draw(FIRST) for source in opened]
    assert all((sum(a) == b).all() for a, b in zip(zip(*first, strict=True), dealt[0].clear(FIRST), strict=True))
    for source in opened:
        with pytest.raises(OutOfMaterial):
            source.draw(FIRST)
    second = [source.draw(SECOND) for source in opened]
    r = second[0][0] + second[1][0]
    assert (second[0][1] + second[1][1] == r >> 20).all()
    assert used == [(0, 0), (0, 0), (0, 1), (0, 1)]


class InProcessDealerOf:
    """What two stores' keys say that an item must be: the products of what they expand to."""

    def __init__(self, homes: list[Path]) -> None:
        self._dealer = InProcessDealer(2, keys=[(home / "key").read_bytes() for home in homes])

    def clear(self, item: ProductMask) -> tuple[Any, ...]:
        a, b, _ = (part.sum(axis=0, dtype="u8") for part in self._dealer.draw(item))
        return a[None], b[None], (a * b)[None]


@pytest.mark.parametrize("block_steps", [1, 3, 8, 50])
def test_sizes_are_exact_and_party_0_alone_has_corrections(parties: int, block_steps: int, tmp_path: Path) -> None:
    plan = step_plan(parties)
    homes = deal(plan, 8, tmp_path, block_steps=block_steps)
    blocks = -(-8 // block_steps)
    assert (homes[0] / "corrections").stat().st_size == blocks * (block_steps * plan.step_bytes + MAC_BYTES)
    assert plan.step_bytes == sum(layout(item).dealt_bytes for item in plan.items) == 24 + 24 + 16
    for home in homes[1:]:
        assert {file.name for file in home.iterdir()} == {"key", "plan.json", "manifest.json", "cursor"}
    for home in homes:
        assert (home / "key").stat().st_size == 16
        assert home.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in home.iterdir()} == {0o600}
        assert inspect(home).steps_left == inspect(home).manifest.steps == blocks * block_steps >= 8


def test_the_block_size_is_about_a_sixteenth(tmp_path: Path) -> None:
    sizes = {}
    for count in (1, 15, 64, 5000):
        homes = deal(step_plan(2), count, tmp_path / str(count))
        sizes[count] = inspect(homes[0]).manifest.block_steps
    assert sizes == {1: 1, 15: 1, 64: 4, 5000: 64}


# Dealing.


@pytest.mark.parametrize("words, arguments", [("at least 1 step, not 0", (0, 0)), ("block has at least 1", (4, -1))])
def test_deals_that_cannot_be(words: str, arguments: tuple[int, int], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=words):
        deal(step_plan(2), arguments[0], tmp_path, block_steps=arguments[1])
    assert not [*tmp_path.iterdir()]


def test_a_step_that_draws_nothing_needs_no_material(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="draws nothing"):
        deal(Plan("idle", 2, ()), 4, tmp_path / "x")


def test_nothing_is_dealt_over_another_deal(homes: list[Path]) -> None:
    before = {file: file.read_bytes() for home in homes for file in home.iterdir()}
    with pytest.raises(ConfigError, match=r"party-0 exists.*choose an empty directory"):
        deal(step_plan(2), 8, homes[0].parent)
    shutil.rmtree(homes[0])
    with pytest.raises(ConfigError, match="party-1 exists"):
        deal(step_plan(2), 8, homes[0].parent)
    assert not homes[0].exists()
    assert all(file.read_bytes() == content for file, content in before.items() if file.parent == homes[1])


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConfigError, match=r"cannot deal into .*make room there or choose another"):
        deal(step_plan(2), 8, tmp_path / "file")


def test_a_deal_that_was_interrupted_is_refused(tmp_path: Path) -> None:
    class PowerCut(Exception):
        pass

    def cut(done: int, total: int) -> None:
        assert total == 4
        if done == 2:
            raise PowerCut

    with pytest.raises(PowerCut):
        deal(step_plan(2), 8, tmp_path / "deal", block_steps=2, progress=cut)
    for party in (0, 1):
        for look in (Store, inspect):
            with pytest.raises(StoreRefused, match=r"no manifest.*not dealt to its end.*delete it.*offline deal"):
                look(tmp_path / "deal" / f"party-{party}")
    with pytest.raises(ConfigError, match="choose an empty directory"):
        deal(step_plan(2), 8, tmp_path / "deal")


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    for look in (Store, inspect):
        with pytest.raises(ConfigError, match=f"there is no store at {tmp_path}/none: deal one with 'masked offline"):
            look(tmp_path / "none")


def test_a_folder_of_something_else_is_no_store(homes: list[Path], tmp_path: Path) -> None:
    """Nobody is told to delete it, or to deal a new one in its place."""
    other = tmp_path / "site"
    other.mkdir()
    for name in ("index.html", "cursor", "corrections", "key", "plan.json", "manifest.json"):
        for look in (Store, inspect):
            with pytest.raises(ConfigError, match=rf"{other} is not a store: name a folder party-p that") as refusal:
                look(other)
            assert not isinstance(refusal.value, StoreRefused) and "delete" not in str(refusal.value)
        (other / name).write_text('{"name": "a web app"}')
    with pytest.raises(ConfigError, match="is not a store"):
        Store(homes[0].parent)


# Edited, truncated, extended, foreign, re-ordered.


def change(path: Path, at: int) -> None:
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)


def swap(path: Path, size: int, *, tail: int = 0) -> None:
    raw = path.read_bytes()
    assert len(raw) >= 2 * size
    path.write_bytes(raw[size : 2 * size] + raw[:size] + raw[2 * size :])


def take(name: str) -> Callable[[Path, Path], None]:
    """Put another deal's file in the place of this one's."""
    return lambda home, other: (home / name).write_bytes((other / name).read_bytes()) and None


def rewrite_manifest(home: Path, _: Path) -> None:
    body, tag = (home / "manifest.json").read_text().rstrip("\n").rsplit("\n", 1)
    text = json.dumps({**json.loads(body), "blocks": 40}, indent=1, sort_keys=True)
    (home / "manifest.json").write_text(f"{text}\n{tag}\n")


BLOCK = 2 * 64 + MAC_BYTES
REFUSED_AT_OPENING: dict[str, tuple[Callable[[Path, Path], Any], str]] = {
    "manifest edited": (rewrite_manifest, "manifest was edited, or its key belongs to another store"),
    "manifest a byte": (lambda home, _: change(home / "manifest.json", 30), "manifest was edited"),
    "manifest no ascii": (lambda home, _: (home / "manifest.json").write_bytes(b"{}\n\xff\xc3"), "manifest was edited"),
    "manifest cut": (lambda home, _: os.truncate(home / "manifest.json", 100), "manifest was edited"),
    "manifest empty": (lambda home, _: os.truncate(home / "manifest.json", 0), "manifest was edited"),
    "manifest gone": (lambda home, _: (home / "manifest.json").unlink(), "it has no manifest"),
    "manifest of another deal": (take("manifest.json"), "its key belongs to another store"),
    "manifest of another party": (
        lambda home, _: shutil.copy(home.parent / "party-1" / "manifest.json", home), "its key belongs to another store"
    ),
    "plan edited": (lambda home, _: change(home / "plan.json", 40), "plan was edited"),
    "plan re-spaced": (lambda home, _: (home / "plan.json").write_text(
        json.dumps(json.loads((home / "plan.json").read_text()))), "plan was edited"),
    "plan of another program": (
        lambda home, _: Plan("step", 2, (FIRST,)).save(home / "plan.json"), "not the one it was dealt for"
    ),
    "plan no text": (lambda home, _: (home / "plan.json").write_bytes(b"\xff" * 9), "plan was edited"),
    "plan gone": (lambda home, _: (home / "plan.json").unlink(), "plan.json cannot be read"),
    "key edited": (lambda home, _: change(home / "key", 3), "manifest was edited, or its key belongs to another store"),
    "key cut": (lambda home, _: os.truncate(home / "key", 15), "key is damaged"),
    "key of another deal": (take("key"), "its key belongs to another store"),
    "key gone": (lambda home, _: (home / "key").unlink(), "key cannot be read"),
    "cursor a block number": (lambda home, _: change(home / "cursor", RECORD), "cursor was edited"),
    "cursor a flag": (lambda home, _: change(home / "cursor", 8), "cursor was edited"),
    "cursor a tag": (lambda home, _: change(home / "cursor", RECORD - 1), "cursor was edited"),
    "cursor the last tag": (lambda home, _: change(home / "cursor", -1), "cursor was edited"),
    "cursor re-ordered": (lambda home, _: swap(home / "cursor", RECORD), "re-ordered"),
    "cursor of another deal": (take("cursor"), "belongs to another store"),
    "cursor a directory": (
        lambda home, _: ((home / "cursor").unlink(), (home / "cursor").mkdir()), "cursor cannot be opened"
    ),
    "cursor gone": (lambda home, _: (home / "cursor").unlink(), "cursor cannot be opened"),
    "corrections cut": (
        lambda home, _: os.truncate(home / "corrections", 4 * BLOCK - 1), "575 bytes instead of 576: it was truncated"
    ),
    "corrections a block short": (
        lambda home, _: os.truncate(home / "corrections", 3 * BLOCK), "432 bytes instead of 576: it was truncated"
    ),
    "corrections longer": (
        lambda home, _: (home / "corrections").open("ab").write(b"x") and None, "577 bytes instead of 576.*or extended"
    ),
    "corrections gone": (lambda home, _: (home / "corrections").unlink(), "corrections cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("damage, reason", REFUSED_AT_OPENING.values(), ids=REFUSED_AT_OPENING.keys())
def test_a_damaged_store_is_refused_when_it_is_opened(
    damage: Callable[[Path, Path], Any], reason: str, homes: list[Path], tmp_path: Path
) -> None:
    others = deal(step_plan(2), 8, tmp_path / "other", block_steps=2)
    for used in (homes, others):
        spend(used, 3)
    Store(homes[0]).close()
    key = (homes[0] / "key").read_bytes()
    damage(homes[0], others[0])
    with pytest.raises(StoreRefused, match=reason) as refusal:
        Store(homes[0])
    assert str(homes[0]) in str(refusal.value) and "masked offline deal" in str(refusal.value)
    assert key.hex() not in str(refusal.value) and repr(key) not in str(refusal.value)


REFUSED_AT_USE: dict[str, tuple[Callable[[Path, Path], Any], int]] = {
    "first byte": (lambda home, _: change(home / "corrections", 0), 0),
    "a tag": (lambda home, _: change(home / "corrections", BLOCK - 1), 0),
    "a later block": (lambda home, _: change(home / "corrections", 2 * BLOCK + 5), 2),
    "swapped blocks": (lambda home, _: swap(home / "corrections", BLOCK), 0),
    "a block twice": (lambda home, _: (home / "corrections").write_bytes(
        (home / "corrections").read_bytes()[:BLOCK] * 4), 1),
    "another deal's": (take("corrections"), 0),
}  # fmt: skip


@pytest.mark.parametrize("damage, block", REFUSED_AT_USE.values(), ids=REFUSED_AT_USE.keys())
def test_damaged_corrections_are_refused_before_they_are_used(
    damage: Callable[[Path, Path], Any], block: int, homes: list[Path], tmp_path: Path
) -> None:
    assert inspect(homes[0], whole=True) == inspect(homes[0])
    damage(homes[0], deal(step_plan(2), 8, tmp_path / "other", block_steps=2)[0])
    with pytest.raises(StoreRefused, match=f"block {block} of its corrections was edited or moved"):
        inspect(homes[0], whole=True)
    assert inspect(homes[1], whole=True).steps_left == 8, "its corrections are another party's"
    used: list[tuple[int, int]] = []
    opened = [StoreSource(Store(home), used=lambda *at: used.append(at)) for home in homes]
    agreed(*opened)
    for _ in range(2 * block):
        opened[0].draw(FIRST)
        opened[0].draw(SECOND)
    for _ in range(2):
        with pytest.raises(StoreRefused, match=f"block {block} of its corrections was edited or moved"):
            opened[0].draw(FIRST)
    assert len(used) == 4 * block and opened[0].store.cursor == block


def test_corrections_that_vanish_during_a_run_are_refused(homes: list[Path]) -> None:
    opened = [StoreSource(Store(home)) for home in homes]
    agreed(*opened)
    (homes[0] / "corrections").unlink()
    with pytest.raises(StoreRefused, match="corrections cannot be read"):
        opened[0].draw(FIRST)


@pytest.mark.parametrize("which, mode", [
    (".", 0o750), (".", 0o701), ("key", 0o640), ("key", 0o604), ("corrections", 0o660)
])  # fmt: skip
def test_what_others_may_read_is_refused_with_chmod(which: str, mode: int, homes: list[Path]) -> None:
    (homes[0] / which).chmod(mode)
    for look in (Store, inspect):
        with pytest.raises(StoreRefused, match=rf"others may read .*chmod -R go= {homes[0]}"):
            look(homes[0])
    subprocess.run(["chmod", "-R", "go=", str(homes[0])], check=True, timeout=10)
    Store(homes[0]).close()


# Who draws from which directory.


def test_each_party_opens_its_own(homes: list[Path]) -> None:
    with (
        Store(homes[1]) as store,
        pytest.raises(StoreRefused, match="the store of party 1, this is party 0: use its own"),
    ):
        StoreSource(store, party=0)
    StoreSource(Store(homes[1]), party=1).close()


def test_a_store_belongs_to_its_session(tmp_path: Path) -> None:
    homes = deal(step_plan(2), 2, tmp_path, session="tuesday")
    with Store(homes[0]) as store, pytest.raises(StoreRefused, match="session 'tuesday', this is 'monday'"):
        StoreSource(store, session="monday")
    StoreSource(Store(homes[0]), session="tuesday").close()


def test_parties_that_swapped_their_directories_are_refused(homes: list[Path]) -> None:
    for error in over_tcp(sources(homes[::-1]), steps(1)):
        assert isinstance(error, StoreRefused) and "party 0 draws the material of party 1" in str(error)


def test_two_deals_do_not_mix(homes: list[Path], tmp_path: Path) -> None:
    others = deal(step_plan(2), 8, tmp_path / "other", block_steps=2)
    for error in over_tcp(sources([homes[0], others[1]]), steps(1)):
        assert isinstance(error, StoreRefused) and "of another deal" in str(error)
    assert [inspect(home).cursor for home in (*homes, *others)] == [0, 0, 0, 0]


def test_two_plans_do_not_mix(homes: list[Path], tmp_path: Path) -> None:
    others = deal(plan_of(steps(2), 2), 8, tmp_path / "other")
    for error in over_tcp(sources([homes[0], others[1]]), steps(1)):
        assert isinstance(error, StoreRefused) and "another plan" in str(error)


def test_another_number_of_parties_is_refused(tmp_path: Path) -> None:
    homes = deal(step_plan(3), 4, tmp_path)
    for error in over_tcp(sources(homes[:2]), steps(1)):
        assert isinstance(error, StoreRefused) and "for 3 parties, this session has 2" in str(error)


def test_one_process_for_all_cannot_draw_from_one_store(homes: list[Path]) -> None:
    with Store(homes[0]) as store, pytest.raises(StoreRefused, match="party 1 draws the material of party 0"):
        Session.simulate(2, StoreSource(store))


@pytest.mark.parametrize("other", [InProcessDealer(2), InsecureSeededDealer(2, 1, party=1)])
def test_a_store_and_another_kind_of_source_refuse_each_other(other: Any, homes: list[Path]) -> None:
    mine, theirs = over_tcp([sources(homes)[0], lambda: other], steps(1))
    assert isinstance(mine, StoreRefused) and "party 1 does not draw from a file store" in str(mine)
    assert isinstance(theirs, ConfigError) and "party 0 draws from another source" in str(theirs)


def test_a_source_outside_a_session_hands_out_nothing(homes: list[Path]) -> None:
    with Store(homes[0]) as store, pytest.raises(ConfigError, match="inside a session"):
        StoreSource(store).draw(FIRST)
    assert inspect(homes[0]).cursor == 0


def test_a_store_stands_in_one_process_only(homes: list[Path]) -> None:
    """Held by another process, and by another handle in this one; free again when that ends."""
    hold = "import sys, pathlib, offline; s = offline.Store(pathlib.Path(sys.argv[1])); print(1, flush=True); input()"
    command = [sys.executable, "-c", hold, str(homes[0])]
    other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert other.stdout is not None and other.stdout.readline() == "1\n"
        with pytest.raises(StoreRefused, match="in use by another process: end that one first"):
            Store(homes[0])
        assert inspect(homes[0]).steps_left == 8
    finally:
        other.communicate("\n", timeout=300)
    with Store(homes[0]), pytest.raises(StoreRefused, match="in use"):
        Store(homes[0])
    forgotten = Store(homes[0])
    del forgotten
    Store(homes[0]).close()


# Looking without touching.


def test_inspect_looks_and_changes_nothing(homes: list[Path]) -> None:
    spend(homes, 3)
    (homes[0] / "cursor").open("ab").write(b"torn")
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in homes[0].iterdir()}
    seen = inspect(homes[0])
    assert (seen.cursor, seen.finished, seen.moved, seen.steps_left) == (2, False, False, 4)
    assert seen.plan == step_plan(2) and seen.manifest.party == 0 and seen.manifest.session == "local"
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in homes[0].iterdir()} == before
    with pytest.raises(FrozenInstanceError):
        seen.cursor = 0  # type: ignore[misc]


def test_inspect_sees_a_run_move(homes: list[Path]) -> None:
    opened = [StoreSource(Store(home)) for home in homes]
    agreed(*opened)
    for left in (6, 4, 2, 0):
        for _ in range(2):
            opened[1].draw(FIRST)
            opened[1].draw(SECOND)
        assert inspect(homes[1]).steps_left == opened[1].store.steps_left == left


# Secrets.


def test_keys_are_not_shown_and_not_pickled(homes: list[Path]) -> None:
    store = Store(homes[0])
    source = StoreSource(store)
    key = (homes[0] / "key").read_bytes()
    for holder in (store, source, store.expander()):
        with pytest.raises(TypeError, match="never pickled"):
            pickle.dumps(holder)
    for shown in (store, source, store.expander(), store.manifest, inspect(homes[0])):
        text = repr(shown)
        assert key.hex() not in text and repr(key)[2:-1] not in text and str(list(key)) not in text
    seen = inspect(homes[0])
    assert key not in pickle.dumps(seen)
    assert key not in source.statement()


def test_a_block_in_several_pieces_is_authenticated_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GCM takes less than 2 GiB at once; an edit, or two pieces that changed places, is found in any piece."""
    monkeypatch.setattr(directory, "_PIECE", 48)
    homes = deal(step_plan(2), 8, tmp_path / "deal", block_steps=2)
    whole = (homes[0] / "corrections").read_bytes()
    assert len(Directory(homes[0]).corrections(0)) == 128
    for at in (0, 47, 48, 100, 127):
        change(homes[0] / "corrections", at)
        with pytest.raises(StoreRefused, match="block 0 of its corrections was edited"):
            Directory(homes[0]).corrections(0)
        (homes[0] / "corrections").write_bytes(whole)
    (homes[0] / "corrections").write_bytes(whole[48:96] + whole[:48] + whole[96:])
    with pytest.raises(StoreRefused, match="block 0 of its corrections was edited"):
        Directory(homes[0]).corrections(0)


def test_a_block_of_large_steps_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory, "_BLOCK_BYTES", 3 * step_plan(2).step_bytes)
    homes = deal(step_plan(2), 160, tmp_path / "deal")
    assert Directory(homes[0]).manifest.block_steps == 3
