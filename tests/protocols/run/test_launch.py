"""A launch that breaks off, and one that goes on: what is kept, what is refused, and what is not there any more.

No process is started here; SAMBA is the example.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpc import ConfigError
from mpc.errors import OutOfMaterial
from offline import deal
from protocols.run import launch as run_launch
from protocols.run.checkpoint import Checkpoint, checkpoint_at
from protocols.run.folder import COIN_KEY, SEEDS_KEY, Keep, begin, forget, homes
from protocols.run.launch import Prepared
from protocols.run.stopping import Stopped
from protocols.samba.mpc.run import Federation
from protocols.samba.mpc.settings import Settings

from ..samba.mpc.runs import launched, plan_of, prepared, rising, simulate

SETTINGS = Settings("ucb", 4, 30, hosts=1)
PROGRAM = Federation(SETTINGS, 2, 5, rising(4))
ENDS = {"Ctrl-C": KeyboardInterrupt(), "a role that fails": ConfigError("owner 0 failed")}


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def keeps(keep: Path, home: Path, done: int) -> None:
    """A role keeps this decision, as one of the run that is kept there."""
    run = (keep / "run.json").read_text().split('"run": "')[1].split('"')[0]
    Checkpoint(done, {"role": home.name, "run": run}, {}).save(home)


def broken_off(
    settings: Settings, folder: Path, monkeypatch: pytest.MonkeyPatch, keep: Keep, *,
    reached: dict[str, list[int]], error: BaseException,
) -> None:  # fmt: skip
    """A launch in which roles keep what they are said to, and which then ends so."""

    def instead(*_: Any, **__: Any) -> None:
        for name, numbers in reached.items():
            for done in numbers:
                keeps(keep.folder, keep.folder / name, done)
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(run_launch, "launch_processes", instead)
        scratch = folder / f"scratch-{len(list(folder.iterdir()))}"
        scratch.mkdir()
        launched(rising(settings.arms), settings, keep=keep, scratch=scratch)


@pytest.mark.parametrize("error", ENDS.values(), ids=ENDS)
def test_what_an_earlier_sitting_left_further_on_takes_no_place(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Roles one checkpoint apart had pull 55 here and 10 there; on the way from 10 none loses what all have."""
    settings = Settings("ucb", 4, 100, hosts=1)
    keep, ended = tmp_path / "keep", (Stopped, ConfigError, KeyboardInterrupt)
    first = {"party-0": [5, 10, 55], "party-1": [5, 10], "host-0": [10, 55]}
    for home in ("party-0", "host-0"):
        (keep / home).mkdir(parents=True)
        (keep / home / "checkpoint-000000060.new").touch()
    with pytest.raises(ended):
        broken_off(settings, tmp_path, monkeypatch, Keep(keep, 5), reached=first, error=error)
    for number in (60, 70):
        (keep / f"party-1/checkpoint-{number:09d}.new").touch()
    second = {"party-0": [15, 20], "party-1": [15], "host-0": [15, 20]}
    with pytest.raises(ended) as caught:
        broken_off(settings, tmp_path, monkeypatch, Keep(keep, 5, True), reached=second, error=error)
    assert "15" in str(caught.value)
    assert files(keep) == [
        "coin.key", "home.key", "host-0/checkpoint-000000015.npz", "host-0/checkpoint-000000020.npz",
        "host-0/home.key", "party-0/checkpoint-000000015.npz", "party-0/checkpoint-000000020.npz", "party-0/home.key",
        "party-1/checkpoint-000000010.npz", "party-1/checkpoint-000000015.npz", "party-1/home.key", "run.json",
        "seeds.key",
    ]  # fmt: skip


@pytest.mark.parametrize("error", ENDS.values(), ids=ENDS)
def test_a_launch_that_breaks_off_deletes_nothing_that_was_kept(
    error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not where a role has lost its part, nor where roles have no pull in common; only where nobody played."""
    settings, keep = Settings("ucb", 4, 100, hosts=1), Keep(tmp_path / "keep", 5)
    with pytest.raises(type(error)):
        broken_off(settings, tmp_path, monkeypatch, keep, reached={"party-0": [5]}, error=error)
    assert "party-0/checkpoint-000000005.npz" in files(keep.folder) and "coin.key" in files(keep.folder)
    with pytest.raises(ConfigError, match=r"have no pull in common .*host-0 at none"):
        broken_off(settings, tmp_path, monkeypatch, Keep(keep.folder, 5, True), reached={}, error=error)
    assert "party-0/checkpoint-000000005.npz" in files(keep.folder), "a run that is refused changes nothing"
    with pytest.raises(type(error)):
        broken_off(settings, tmp_path, monkeypatch, replace(keep, overwrite=True), reached={}, error=error)
    assert not keep.folder.exists()


def test_coins_of_a_dealer_and_of_material_do_not_mix(tmp_path: Path) -> None:
    material, keep, said = tmp_path / "material", tmp_path / "keep", list[str]()
    deal(plan_of(SETTINGS, 2), 40, material, block_steps=10)

    def ready(source: Path | None, *, resume: bool) -> Prepared:
        scratch = tmp_path / f"scratch-{len(list(tmp_path.iterdir()))}"
        kept = Keep(keep, 5, resume, not resume)
        return prepared(rising(4), SETTINGS, kept, scratch, material=source, say=said.append)

    for source, other, refused in (
        (None, material, "the coins of its own dealer: go on without --material"),
        (material, None, "the coins of material that was dealt before: go on with --material"),
    ):
        ready(source, resume=False)
        for home in homes(PROGRAM, keep):
            keeps(keep, home, 10)
        assert (keep / COIN_KEY).exists() == (keep / SEEDS_KEY).exists() == (source is None)
        with pytest.raises(ConfigError, match=refused):
            ready(other, resume=True)
        said.clear()
        assert ready(source, resume=True).task.start == 10
        again = "pulls after 10 are made with other coins, of --material, those that were made before as well"
        assert [line[: len(again)] for line in said] == ([] if source is None else [again])


def test_without_its_coins_a_launch_does_not_go_on(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    prepared(rising(4), SETTINGS, Keep(keep), tmp_path / "one")
    for home in homes(PROGRAM, keep):
        keeps(keep, home, 10)
    (keep / COIN_KEY).unlink()
    kept = files(keep)
    with pytest.raises(ConfigError, match=r"holds no coin\.key, so no dealer can go on with its coins"):
        prepared(rising(4), SETTINGS, Keep(keep, resume=True), tmp_path / "two")
    assert files(keep) == kept


def test_keys_are_their_owners_alone_and_new_in_each_run(tmp_path: Path) -> None:
    seen: set[bytes] = set()
    for scratch in ("one", "two"):
        prepared(rising(4), SETTINGS, Keep(tmp_path / "keep"), tmp_path / scratch)
        for path in (
            tmp_path / f"keep/{COIN_KEY}",
            tmp_path / f"keep/{SEEDS_KEY}",
            tmp_path / scratch / "owners-0-to-3.npz",
        ):
            assert path.stat().st_mode & 0o777 == 0o600
        assert (tmp_path / "keep").stat().st_mode & 0o777 == 0o700
        seen |= {(tmp_path / "keep" / name).read_bytes() for name in (COIN_KEY, SEEDS_KEY)}
    assert len(seen) == 4


def test_material_that_does_not_fit_is_refused_before_anything_is_removed(tmp_path: Path) -> None:
    arms, keep = rising(4), tmp_path / "keep"
    prepared(arms, SETTINGS, Keep(keep), tmp_path / "one")
    before = files(keep)
    few, other = tmp_path / "few", tmp_path / "other"
    deal(plan_of(SETTINGS, 2), 10, few, block_steps=10)
    deal(plan_of(Settings("pursuit", 4, 30), 2), 40, other, block_steps=10)
    for material, said in ((few, "deal"), (other, "was dealt for another run: .*masked offline plan samba")):
        with pytest.raises(OutOfMaterial, match=said):
            prepared(arms, SETTINGS, Keep(keep), tmp_path / "two", material=material)
    with pytest.raises(ConfigError, match="there is no store"):
        prepared(arms, SETTINGS, Keep(keep), tmp_path / "two", material=tmp_path / "nowhere")
    assert files(keep) == before


def test_a_run_of_processes_and_one_in_this_process_are_told_apart(tmp_path: Path) -> None:
    arms = rising(4)
    prepared(arms, SETTINGS, Keep(tmp_path / "a"), tmp_path / "one")
    with pytest.raises(ConfigError, match="is one of processes: go on with 'masked launch samba --resume'"):
        simulate(arms, SETTINGS, parties=2, seed=5, keep=Keep(tmp_path / "a", 5, True))
    with pytest.raises(Stopped):
        simulate(arms, SETTINGS, parties=2, seed=5, keep=Keep(tmp_path / "b"), progress=lambda done: done < 9)
    with pytest.raises(ConfigError, match="is a simulation: go on with 'masked run samba --resume'"):
        prepared(arms, SETTINGS, Keep(tmp_path / "b", 5, True), tmp_path / "two")


def test_a_part_of_another_run_is_not_gone_on_from(tmp_path: Path) -> None:
    """A checkpoint that was put in by mistake is of other shares, though its settings are the same."""
    keep = tmp_path / "keep"
    prepared(rising(4), SETTINGS, Keep(keep), tmp_path / "one")
    for home in homes(PROGRAM, keep):
        keeps(keep, home, 10)
    for facts in ({"role": "party-1", "run": "another"}, {"role": "party-0", "run": "another"}):
        Checkpoint(10, facts, {}).save(keep / "party-1")
        with pytest.raises(ConfigError, match=r"-000000010\.npz is of party-. of run another, not of party-1"):
            prepared(rising(4), SETTINGS, Keep(keep, resume=True), tmp_path / "two")
    assert checkpoint_at(keep / "party-1", 10).exists()


def test_damaged_facts_of_a_run_are_refused(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    prepared(rising(4), SETTINGS, Keep(keep), tmp_path / "one")
    whole = (keep / "run.json").read_bytes()
    for spoilt in (b"", b"{}", whole[:-1], whole.replace(b'"run"', b'"ran"')):
        (keep / "run.json").write_bytes(spoilt)
        with pytest.raises(ConfigError, match=r"run\.json is damaged, .*: put it back, or discard the run with --over"):
            prepared(rising(4), SETTINGS, Keep(keep, resume=True), tmp_path / "two")


def test_the_keys_of_a_run_are_on_disk_before_it_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[Path] = []
    monkeypatch.setattr(os, "fsync", lambda file: flushed.append(Path(os.readlink(f"/proc/self/fd/{file}"))))
    begin(PROGRAM, tmp_path, material=False)
    assert {"coin.key", "seeds.key"} <= {path.name.removesuffix(".new") for path in flushed}
    assert flushed[-1] == tmp_path, "their names too"


def test_nothing_half_written_outlives_a_run(tmp_path: Path) -> None:
    """A process that is killed while it saves leaves a file with as much in it as a checkpoint has."""
    for home in (tmp_path, tmp_path / "party-0", tmp_path / "host-0"):
        home.mkdir(exist_ok=True)
        (home / "checkpoint-000000040.new").touch()
    begin(PROGRAM, tmp_path, material=True)
    assert files(tmp_path) == ["home.key", "run.json"]
    (tmp_path / "host-0").mkdir()
    (tmp_path / "host-0/checkpoint-000000040.new").touch()
    forget(PROGRAM, tmp_path)
    assert not tmp_path.exists()
