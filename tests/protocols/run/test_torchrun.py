"""Ranks of torchrun that meet a mistake: it is said once, and lies where torchrun's report looks."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from mpc import ConfigError
from mpc.launch import Place
from protocols.run import torchrun
from protocols.run.folder import Keep
from protocols.run.launch import Processes
from protocols.run.torchrun import one_voice, reported

from ..harness import Output, masked, refused


def test_what_all_ranks_find_rank_0_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait until torchrun ends them, and end in peace; one that is not ended speaks after all."""
    waited: list[float] = []
    monkeypatch.setattr("protocols.run.torchrun.time.sleep", waited.append)
    for node in (0, 1):
        with pytest.raises(ConfigError, match="wrong"), one_voice(Place(node, 4, "gloo")):
            raise ConfigError("wrong")
    assert waited == [10.0]

    def ended(_: float) -> None:
        raise SystemExit(143)

    monkeypatch.setattr("protocols.run.torchrun.time.sleep", ended)
    with pytest.raises(SystemExit) as stopped, one_voice(Place(1, 4, "gloo")):
        raise ConfigError("wrong")
    assert stopped.value.code == 0


def test_what_ends_a_rank_is_left_where_torchrun_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "error.json"))
    with pytest.raises(ConfigError), reported():
        raise ConfigError("a folder is missing ({}): make it", own="a value")
    told = json.loads((tmp_path / "error.json").read_text())["message"]
    assert told["message"] == told["extraInfo"]["py_callstack"] == "error: a folder is missing (...): make it"
    assert int(told["extraInfo"]["timestamp"]) > 0


def test_rank_0_leaves_when_the_others_touch_nothing_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It removes the folder that they share: one that still flushed it found it gone."""
    monkeypatch.setattr(torchrun, "scratch_path", lambda _: tmp_path)
    (tmp_path / "ready").touch()
    there = {rank: tmp_path / f"over-{rank}" for rank in (1, 2, 3)}
    monkeypatch.setattr(torchrun, "reached", lambda *_: 5)
    program = SimpleNamespace(parties=2, roles=("puller", "payer"), decisions=5, unit="decision")

    def await_others(seconds: float) -> None:
        torchrun._await_others(program, Keep(tmp_path), tmp_path, seconds)  # type: ignore[arg-type]

    for rank, file in there.items():
        monkeypatch.setattr(torchrun, "play", lambda *_, file=file, **__: played.append(file.exists()))
        played: list[bool] = []
        with pytest.raises(ConfigError, match="not all roles kept their last decision"):
            await_others(0.0)
        torchrun.follow(Processes(1.0), Place(rank, 4, "gloo"), ("puller", "payer"))
        assert played == [False] and file.exists()
    await_others(60.0)


@pytest.mark.parametrize("program", ["samba --mode classic", "linucb-ds --mode classic", "helba --mode ckks"])
def test_a_published_protocol_is_not_for_torchrun(
    program: str, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    """It would be played on shares otherwise, under the other's name."""
    monkeypatch.setattr("protocols.run.options.place", lambda: Place(0, 3, "gloo"))
    refused(masked(capsys, f"run {program}"), "torchrun starts computing parties, and --mode c")


@pytest.mark.parametrize(
    ("more", "cure"),
    [
        ("", "under torchrun material is dealt beforehand: 'masked offline plan'"),
        ("--material m --out runs --resume", "under torchrun a run starts anew: use 'masked launch' with --resume"),
    ],
)
def test_a_run_of_ranks_needs_material_and_starts_anew(
    more: str, cure: str, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.setattr("protocols.run.options.place", lambda: Place(0, 4, "gloo"))
    refused(masked(capsys, f"run ppcb --data synthetic --parties 2 --steps 3 {more}"), cure)
