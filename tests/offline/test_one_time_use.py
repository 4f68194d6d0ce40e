"""Each item once: across kills at any place, copies, backups, torn records, full disks and failing ones."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from offline_crashes import BLOCK_STEPS, ITEMS, PARTIES, kills
from offline_parties import in_threads, over_tcp, right, step, step_plan, steps

import mpc
from mpc.errors import ConfigError, Desync, OutOfMaterial, PeerLost, StoreRefused
from mpc.session import Session
from offline import Store, StoreSource, deal, inspect

RECORD, RUNS, SEED = 32, 61, 7
FIRST, SECOND = step_plan(2).items


@pytest.fixture
def homes(tmp_path: Path) -> list[Path]:
    """A fresh deal for two parties: 6 blocks of 2 steps."""
    return deal(step_plan(2), 12, tmp_path / "deal", block_steps=2)


class Group:
    """All parties' sources, drawn from in step without a network; notes what is used and what is reported."""

    def __init__(self, homes: list[Path]) -> None:
        self.used: list[list[tuple[int, int]]] = [[] for _ in homes]
        self.reports: list[list[str]] = [[] for _ in homes]
        self.sources: list[StoreSource] = []
        try:
            for home, used, reports in zip(homes, self.used, self.reports, strict=True):
                note = used.append
                self.sources.append(
                    StoreSource(Store(home), used=lambda *at, note=note: note(at), report=reports.append)
                )
            self.agree()
        except BaseException:
            self.drop()
            raise

    def agree(self) -> None:
        statements = [source.statement().ljust(64, b"\0") for source in self.sources]
        for source in self.sources:
            source.agree(statements)

    def draw(self, count: int, *, of: list[int] | None = None) -> None:
        """`count` steps; `of`: these parties only."""
        for source in self.sources if of is None else [self.sources[p] for p in of]:
            for _ in range(count):
                source.draw(FIRST)
                source.draw(SECOND)

    def drop(self) -> None:
        """Vanish as a killed process does: the lock goes, nothing more is written."""
        for source in self.sources:
            source.store.close()

    def close(self) -> None:
        for source in self.sources:
            source.close()


# Killed.


@pytest.fixture(scope="module")
def crashes(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], list[list[dict[str, Any]]]]:
    """The runs as the fork server saw them, and each party's log."""
    directory = tmp_path_factory.mktemp("crashes")
    root = str(Path(mpc.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("offline_crashes.py")), str(directory), str(SEED), str(RUNS)],
        capture_output=True, text=True, timeout=500, env={**os.environ, "PYTHONPATH": root}, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and not done.stderr, done.stderr[-3000:]
    runs = [json.loads(line) for line in done.stdout.splitlines()]
    logs = [[json.loads(line) for line in (directory / f"used-{p}").read_text().splitlines()] for p in range(PARTIES)]
    return runs, logs


def items(log: list[dict[str, Any]]) -> list[tuple[int, int, int, int]]:
    return [(line["run"], line["draw"], line["block"], line["index"]) for line in log if "draw" in line]


def test_the_kills_reach_every_place() -> None:
    chosen = [kill for kill in kills(SEED, RUNS) if kill is not None]
    assert {kill.place for kill in chosen} == {
        "before log", "after log", "before write", "half write", "zero write", "after write", "after sync", "server"
    }  # fmt: skip
    assert {kill.victims for kill in chosen} == {(0,), (1,), (0, 1)} and len(chosen) == 60


def test_fifty_killed_runs_end_in_order_and_the_last_is_whole(crashes: Any) -> None:
    """A victim dies by SIGKILL, a survivor comes down with PeerLost, nobody hangs, no result is wrong."""
    runs, logs = crashes
    assert len(runs) == RUNS and runs[-1]["codes"] == [0, 0]
    assert sum(-9 in run["codes"] for run in runs) >= 50
    assert all(code in (0, 3, -9) for run in runs for code in run["codes"])
    for run in runs:
        victims = run["kill"][0] if run["kill"] else []
        assert all(code != -9 or party in victims for party, code in enumerate(run["codes"]))
    errors = [line["error"] for log in logs for line in log if "error" in line]
    others = [error for error in errors if not error.startswith("PeerLost: ")]
    assert errors and not others, "\n".join(others)


def test_no_item_is_used_twice_by_a_party(crashes: Any) -> None:
    for log in crashes[1]:
        ids = [(block, index) for _, _, block, index in items(log)]
        assert len(ids) == len(set(ids)) and len(ids) > 300


def test_both_parties_use_the_same_item_at_the_same_place(crashes: Any) -> None:
    at = [{(run, draw): (block, index) for run, draw, block, index in items(log)} for log in crashes[1]]
    both = at[0].keys() & at[1].keys()
    assert len(both) > 300 and all(at[0][place] == at[1][place] for place in both)
    assert {place for place in both if place[0] == RUNS - 1} == {(RUNS - 1, draw) for draw in range(ITEMS)}


def test_what_was_left_of_a_block_is_skipped_by_all(crashes: Any) -> None:
    """No run touches a block that any earlier run touched, at either party; in a run, blocks follow each other."""
    blocks: dict[int, set[int]] = {}
    for log in crashes[1]:
        for run, draw, block, index in items(log):
            blocks.setdefault(run, set()).add(block)
            assert index == draw % (2 * BLOCK_STEPS)
    order = sorted(blocks)
    assert all(max(blocks[a]) < min(blocks[b]) for a, b in pairwise(order))
    assert all(sorted(seen) == [*range(min(seen), max(seen) + 1)] for seen in blocks.values())


def test_what_is_lost_is_reported(crashes: Any) -> None:
    """Whoever starts after an interruption says which block was lost; whoever lagged behind says how many steps."""
    interrupted = behind = 0
    for p, log in enumerate(crashes[1]):
        for start in (line for line in log if "cursor" in line):
            run = start["run"]
            reports = [line["report"] for line in log if line["run"] == run and "report" in line]
            theirs = [line["cursor"] for line in crashes[1][1 - p] if line["run"] == run and "cursor" in line]
            agreed = any(line["run"] == run and ("draw" in line or "report" in line) for line in log)
            if not agreed:  # the other party was gone before they compared, or this one died
                continue
            lost = (
                f"block {start['cursor'] - 1} was not used to its end: the rest of its {BLOCK_STEPS} steps is skipped"
            )
            assert (lost in reports) == (not start["finished"])
            lag = max(0, theirs[0] - start["cursor"]) * BLOCK_STEPS
            said = f"this store was behind the other parties': {lag} steps are skipped"
            assert (said in reports) == (lag > 0)
            interrupted, behind = interrupted + (lost in reports), behind + (lag > 0)
    assert interrupted >= 50 and behind >= 5


# Left and taken up again.


def test_a_clean_end_loses_nothing(homes: list[Path]) -> None:
    for start in range(3):
        group = Group(homes)
        group.draw(4)
        assert group.used[0] == group.used[1] == [(2 * start + b, i) for b in range(2) for i in range(4)]
        group.close()
        assert group.reports == [[], []] and all(inspect(home).finished for home in homes)
    with pytest.raises(OutOfMaterial):
        Group(homes).draw(1)


def test_the_rest_of_a_block_is_skipped_and_reported_once(homes: list[Path]) -> None:
    first = Group(homes)
    first.draw(1)
    first.close()
    second = Group(homes)
    assert second.reports == [["block 0 was not used to its end: the rest of its 2 steps is skipped"]] * 2
    second.draw(2)
    assert second.used[0][0] == (1, 0)
    second.close()
    third = Group(homes)
    assert third.reports == [[], []]
    third.close()


def test_a_run_that_never_met_its_peers_hides_no_loss(homes: list[Path]) -> None:
    group = Group(homes)
    group.draw(1)
    group.drop()
    StoreSource(Store(homes[0])).close()
    again = Group(homes)
    assert [len(reports) for reports in again.reports] == [1, 1]


def test_a_second_session_goes_on_where_all_parties_stand(homes: list[Path]) -> None:
    group = Group(homes)
    group.draw(1)
    group.agree()
    group.draw(1)
    assert group.used == [[(0, i) for i in range(4)]] * 2 and group.reports == [[], []]


@pytest.mark.parametrize("uneven", ["one party drew more", "in the middle of a step"])
def test_a_second_session_skips_the_open_block_where_they_do_not(uneven: str, homes: list[Path]) -> None:
    group = Group(homes)
    group.draw(1)
    if uneven == "one party drew more":
        group.draw(1, of=[1])
    else:
        for source in group.sources:
            source.draw(FIRST)
    group.agree()
    group.draw(1)
    assert [used[-2:] for used in group.used] == [[(1, 0), (1, 1)]] * 2
    assert group.reports[0] == ["block 0 was not used to its end: the rest of its 2 steps is skipped"]


def test_a_closed_source_hands_out_nothing(homes: list[Path]) -> None:
    group = Group(homes)
    group.draw(1)
    group.close()
    group.close()
    for source in group.sources:
        with pytest.raises(ConfigError, match="is closed: open it again"):
            source.draw(FIRST)
        with pytest.raises(ConfigError, match="closed"):
            group.agree()


# Threads.


def test_threads_that_draw_from_one_store_never_draw_the_same(homes: list[Path]) -> None:
    """Each by a source of its own, all at once, block after block; with 10 microseconds a turn."""
    usual, threads = sys.getswitchinterval(), 6
    used: list[tuple[int, int]] = []
    gate = threading.Barrier(threads)
    with Store(homes[0]) as mine, Store(homes[1]) as theirs:
        statements = [StoreSource(store).statement() for store in (mine, theirs)]

        def draws() -> None:
            source = StoreSource(mine, used=lambda *at: used.append(at))
            gate.wait(100)
            source.agree(statements)
            gate.wait(100)
            source.draw(FIRST)

        try:
            sys.setswitchinterval(10e-6)
            ends = in_threads([draws] * threads)
        finally:
            sys.setswitchinterval(usual)
    assert ends == [None] * threads
    assert sorted(used) == [(block, 0) for block in range(threads)] and inspect(homes[0]).cursor == threads


def test_sessions_that_share_stores_and_draw_in_another_order_end_with_an_error(homes: list[Path]) -> None:
    """Party 0 gives block 0 to the first session, and party 1 to the second: what they would compute is nonsense."""
    drawn = {(session, party): threading.Event() for session in (0, 1) for party in (0, 1)}
    before = {(0, 1): (1, 1), (1, 0): (0, 0)}  # who draws when that one has
    begun = threading.Barrier(4)

    class Shared(StoreSource):
        def close(self) -> None:
            """The store is the other session's too."""

    with Store(homes[0]) as first, Store(homes[1]) as second:

        def source(session: int, party: int) -> StoreSource:
            return Shared((first, second)[party], used=lambda *_: drawn[session, party].set())

        def program(session: int) -> Any:
            def play(own: Session) -> Any:
                begun.wait(100)
                if waits := before.get((session, own.hosted[0])):
                    assert drawn[waits].wait(100)
                return own.run(step(own))

            return play

        ends = in_threads([
            lambda session=session: over_tcp(
                [lambda party=party: source(session, party) for party in (0, 1)], program(session)
            )
            for session in (0, 1)
        ])  # fmt: skip
    for session in ends:
        assert all(isinstance(end, (Desync, PeerLost)) for end in session), ends
        assert any(isinstance(end, Desync) for end in session), ends


_AT_THE_DISK = """
import os, sys, threading
from pathlib import Path
import mpc.files
from offline import Store, inspect

store, flush, reached, on = Store(Path(sys.argv[1])), os.fdatasync, threading.Event(), threading.Event()
def slow(descriptor):
    reached.set()
    on.wait(100)
    flush(descriptor)
mpc.files.os.fdatasync = slow
claiming = threading.Thread(target=lambda: store.claim(1, finished=False))
claiming.start()
reached.wait(100)
if not (child := os.fork()):
    try:
        store.claim(2, finished=False)
    except Exception as error:
        print(error, flush=True)
    store.close()
    os._exit(0)
print(os.waitpid(child, 0)[1], flush=True)
on.set()
claiming.join(100)
print(store.cursor, inspect(Path(sys.argv[1])).cursor)
"""


def test_a_fork_in_the_middle_of_a_claim_waits_for_nobody(homes: list[Path]) -> None:
    """The thread that claims is not there in the child, which is refused, and closes its half."""
    command = [sys.executable, "-c", _AT_THE_DISK, str(homes[0])]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    refused, *rest = ended.stdout.splitlines()
    assert "this process was forked" in refused and rest == ["0", "1 1"]


# Copies and backups.


def copy(home: Path, to: Path) -> Path:
    shutil.copytree(home, to)
    return to


def test_copies_of_all_parties_are_refused(parties: int, tmp_path: Path) -> None:
    homes = deal(step_plan(parties), 12, tmp_path / "deal", block_steps=2)
    group = Group(homes)
    group.draw(3)
    group.close()
    copies = [copy(home, tmp_path / f"copy-{p}") for p, home in enumerate(homes)]
    assert all(inspect(home).moved for home in copies) and not any(inspect(home).moved for home in homes)
    outcomes = over_tcp([lambda home=home: StoreSource(Store(home)) for home in copies], steps(1))
    for error in outcomes:
        assert isinstance(error, StoreRefused)
        assert "every party's store is a copy" in str(error) and "masked offline deal" in str(error)
    with pytest.raises(StoreRefused):
        Group(copies)
    again = Group(homes)
    again.draw(1)
    assert again.used[0][0] == (2, 0)


def test_copies_in_the_old_place_are_refused(homes: list[Path]) -> None:
    """Also where a copy gets the inode that the original had, as on ext4: the file system counts generations."""
    Group(homes).draw(1)
    for home in homes:
        saved = (home / "cursor").read_bytes()
        (home / "cursor").unlink()
        (home / "cursor").write_bytes(saved)
        (home / "cursor").chmod(0o600)
    with pytest.raises(StoreRefused, match="every party's store is a copy"):
        Group(homes)


def test_a_moved_directory_is_still_the_original(homes: list[Path], tmp_path: Path) -> None:
    Group(homes).draw(1)
    moved = [home.rename(tmp_path / f"moved-{p}") for p, home in enumerate(homes)]
    group = Group(moved)
    group.draw(1)
    assert group.used[0][0] == (1, 0)


def test_copies_made_before_the_first_use_are_how_stores_travel(homes: list[Path], tmp_path: Path) -> None:
    travelled = [copy(home, tmp_path / f"at-{p}") for p, home in enumerate(homes)]
    group = Group(travelled)
    group.draw(1)
    assert group.reports == [[], []]


@pytest.mark.parametrize("whole", [True, False], ids=["directory", "cursor file"])
@pytest.mark.parametrize("restored", [0, 1])
def test_a_backup_of_one_party_moves_forward_never_back(
    restored: int, whole: bool, homes: list[Path], tmp_path: Path
) -> None:
    group = Group(homes)
    group.draw(2)
    backup = copy(homes[restored], tmp_path / "backup")
    group.draw(4)
    group.close()
    if whole:
        shutil.rmtree(homes[restored])
        copy(backup, homes[restored])
    else:
        (homes[restored] / "cursor").write_bytes((backup / "cursor").read_bytes())
    before = [inspect(home).cursor for home in homes]
    assert before[restored] == 1 and before[1 - restored] == 3
    again = Group(homes)
    assert "this store was behind the other parties': 4 steps are skipped" in again.reports[restored]
    assert any("is a copy" in line for line in again.reports[restored]) == whole
    assert again.reports[1 - restored] == []
    assert [inspect(home).cursor for home in homes] == [3, 3]
    again.draw(1)
    assert again.used == [[(3, 0), (3, 1)]] * 2
    again.close()
    assert not any(inspect(home).moved for home in homes), "it has settled: it is the original now"


def test_a_backup_of_one_party_still_gives_right_results(parties: int, tmp_path: Path) -> None:
    homes = deal(step_plan(parties), 12, tmp_path / "deal", block_steps=2)
    sources = [lambda home=home: StoreSource(Store(home)) for home in homes]
    assert over_tcp(sources, steps(2)) == [2] * parties
    backup = copy(homes[-1], tmp_path / "backup")
    assert over_tcp(sources, steps(3)) == [3] * parties
    shutil.rmtree(homes[-1])
    copy(backup, homes[-1])
    assert over_tcp(sources, steps(2)) == [2] * parties


def test_a_cursor_never_moves_back(homes: list[Path]) -> None:
    with Store(homes[0]) as store:
        store.claim(3, finished=True)
        for block in (2, 0, 7):
            with pytest.raises(StoreRefused, match="its cursor would move from block 3"):
                store.claim(block, finished=True)
    with Store(homes[0]) as store:
        assert store.cursor == 3


@pytest.mark.parametrize("cursor", [7, 1 << 63])
def test_a_peer_that_claims_too_much_burns_nothing(cursor: int, homes: list[Path]) -> None:
    with Store(homes[0]) as mine, Store(homes[1]) as theirs:
        theirs.cursor = cursor
        source, liar = StoreSource(mine), StoreSource(theirs)
        with pytest.raises(StoreRefused, match=rf"stands at block {cursor} of 6"):
            source.agree([source.statement(), liar.statement()])
    assert inspect(homes[0]).cursor == 0


# Torn and failing writes.


@pytest.mark.parametrize("tail", [b"\x01", b"\x02" * (RECORD - 1), bytes(5), bytes(RECORD), bytes(2 * RECORD + 7)])
def test_a_torn_last_record_does_not_count(tail: bytes, homes: list[Path]) -> None:
    group = Group(homes)
    group.draw(3)
    group.drop()
    with (homes[0] / "cursor").open("ab") as file:
        file.write(tail)
    size = 2 * RECORD
    assert inspect(homes[0]).cursor == 2
    again = Group(homes)
    assert (homes[0] / "cursor").stat().st_size == size, "the torn end is cut, so that the next record is whole"
    again.draw(1)
    assert again.used == [[(2, 0), (2, 1)]] * 2
    again.drop()
    assert [inspect(home).cursor for home in homes] == [3, 3]


class Spy:
    """Notes the calls that matter, in their order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, log: int) -> None:
        self.seen: list[str] = []
        for name in ("write", "fdatasync"):
            real = getattr(os, name)

            def call(fd: int, *rest: Any, name: str = name, real: Any = real) -> Any:
                if fd == log:
                    self.seen.append(name)
                return real(fd, *rest)

            monkeypatch.setattr(os, name, call)


def test_a_claim_is_durable_before_a_block_is_handed_out(homes: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(homes)
    for source, used in zip(group.sources, group.used, strict=True):
        with monkeypatch.context() as patch:
            spy = Spy(patch, source.store._log)
            source._used = lambda block, index, seen=spy.seen: seen.append(f"item {block}.{index}")
            for _ in range(3):
                source.draw(FIRST)
                source.draw(SECOND)
            assert spy.seen == [
                "write", "fdatasync", "item 0.0", "item 0.1", "item 0.2", "item 0.3",
                "write", "fdatasync", "item 1.0", "item 1.1",
            ]  # fmt: skip
        assert not used


def test_moving_forward_is_durable_before_the_first_item(homes: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    group = Group(homes)
    group.draw(3, of=[1])
    group.drop()
    source = StoreSource(Store(homes[0]))
    with Store(homes[1]) as ahead:
        spy = Spy(monkeypatch, source.store._log)
        source.agree([source.statement(), StoreSource(ahead).statement()])
    assert spy.seen == ["write", "fdatasync"] and inspect(homes[0]).cursor == 2


@contextmanager
def disk_with_room_for(count: int) -> Iterator[None]:
    """No file of this process grows beyond `count` bytes: a write is cut short there, as on a full disk."""
    limits, compiles = resource.getrlimit(resource.RLIMIT_FSIZE), sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # nor does it leave a module that is cut short
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        sys.dont_write_bytecode = compiles


@pytest.mark.parametrize("room", [0, 1, RECORD - 1])
@pytest.mark.parametrize("party", [0, 1])
def test_a_full_disk_hands_out_nothing(party: int, room: int, homes: list[Path]) -> None:
    """A real short write, and a real refusal to write."""
    group = Group(homes)
    group.draw(2)
    source = group.sources[party]
    with (
        disk_with_room_for(RECORD + room),
        pytest.raises(StoreRefused, match=r"block 1 is spent.*make room on the disk"),
    ):
        source.draw(FIRST)
    with pytest.raises(ConfigError, match="closed: open it again"):
        source.draw(FIRST)
    group.drop()
    assert group.used[party][-1] == (0, 3) and inspect(homes[party]).cursor == 1
    again = Group(homes)
    again.draw(1)
    assert again.used == [[(1, 0), (1, 1)]] * 2


@pytest.mark.parametrize("name", ["write", "fdatasync"])
@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failing_disk_hands_out_nothing(
    name: str, code: int, homes: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failed flush nobody knows what the disk holds: a block that may be noted counts as spent."""
    group = Group(homes)
    group.draw(2)
    source = group.sources[0]

    def fail(fd: int, *_: Any) -> int:
        assert fd == source.store._log
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(os, name, fail)
        with pytest.raises(StoreRefused, match=os.strerror(code)):
            source.draw(FIRST)
    for _ in range(2):
        with pytest.raises(ConfigError, match="closed"):
            source.draw(FIRST)
    group.drop()
    assert group.used[0][-1] == (0, 3)
    again = Group(homes)
    again.draw(1)
    assert again.used == [[(1 + (name == "fdatasync"), i) for i in range(2)]] * 2


def test_a_full_disk_brings_all_parties_down(homes: list[Path]) -> None:
    """Over tcp: the one says which store and why, the other hears it."""

    def program(session: Session) -> int:
        if session.hosted == (1,):
            store = session.source.store  # type: ignore[attr-defined]
            store.claim = lambda block, *, finished: refuse(store)
        return sum(right(session.run(step(session))) for _ in range(2))

    def refuse(store: Store) -> None:
        os.close(os.dup(store._log))
        real, os_write = Store.claim, os.write
        try:
            os.write = lambda fd, data: 0 if fd == store._log else os_write(fd, data)
            real(store, 1, finished=False)
        finally:
            os.write = os_write

    other, full = over_tcp([lambda home=home: StoreSource(Store(home)) for home in homes], program)
    assert isinstance(full, StoreRefused) and "make room" in str(full)
    assert "StoreRefused" in str(other) and "make room" in str(other)


def test_a_cursor_deleted_under_a_run_stops_it(homes: list[Path]) -> None:
    group = Group(homes)
    group.draw(2)
    (homes[1] / "cursor").unlink()
    with pytest.raises(StoreRefused, match="deleted or replaced while it was in use"):
        group.draw(1, of=[1])


def test_the_home_note_is_never_half_written(homes: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash while a party settles leaves the old note or the new one."""
    Group(homes).draw(1)
    saved = [copy(home, home.parent / f"copy-{p}") for p, home in enumerate(homes)]
    shutil.rmtree(homes[0])
    saved[0].rename(homes[0])

    def power_cut(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", power_cut)
        with pytest.raises(KeyboardInterrupt):
            Group(homes)
    assert inspect(homes[0]).moved and not inspect(homes[1]).moved
    group = Group(homes)
    group.draw(1)
    assert group.used[0][0] == (1, 0) and not inspect(homes[0]).moved
