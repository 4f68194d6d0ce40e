"""A run that goes on is the run that was never stopped; a checkpoint of another run, or a damaged one, is refused."""

from __future__ import annotations

import stat
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc import ConfigError
from protocols.ppcb.run import Run
from protocols.ppcb.settings import Division, Policy, Settings, Truncation, Variant
from protocols.run.checkpoint import Checkpoint, checkpoint_at, checkpoints

from .runs import ENVIRONMENT, SEED, Simulation, latest, name_of, settings, simulate

CHANGES: list[dict[str, Any]] = [
    {},
    {"delay": 1},
    {"delay": 4, "batch": 2},
    {"batch": 3},
    {"refresh": 4},
    {"refresh": 5, "delay": 2, "batch": 2, "policy": Policy.THOMPSON},
    {"policy": Policy.LINUCB, "division": Division.TABLE_NEWTON},
    {"policy": Policy.THOMPSON, "eps": 0.0},
    {"state_bits": 28},
    {"truncation": Truncation.PUBLISHED},
    {"variant": Variant.PUBLISHED},
]
DECISIONS = 10


def begun(given: Settings, *, parties: int = 3, kept: Checkpoint | None = None) -> Simulation:
    return Simulation(ENVIRONMENT, given, parties=parties, steps=DECISIONS * given.batch, seed=SEED, kept=kept)


def forward(simulation: Simulation, decisions: int) -> Simulation:
    while simulation.done < decisions:
        simulation.turn()
    return simulation


def counted(run: Run) -> dict[str, Any]:
    return {name: value for name, value in asdict(run.cost).items() if name != "seconds"}


@pytest.mark.parametrize("changes", CHANGES, ids=name_of)
def test_a_run_that_goes_on_is_the_run_that_was_never_stopped(changes: dict[str, Any], tmp_path: Path) -> None:
    """Stopped at a random place, and again: arms, shares, ledger and costs are the same."""
    given = settings(**changes)
    whole = forward(begun(given), DECISIONS)
    first, second = sorted(
        np.random.default_rng(len(name_of(changes))).choice(np.arange(1, DECISIONS), 2, replace=False)
    )
    forward(begun(given), first).checkpoint().save(tmp_path)
    forward(begun(given, kept=latest(tmp_path)), second).checkpoint().save(tmp_path)
    resumed = forward(begun(given, kept=latest(tmp_path)), DECISIONS)

    wanted, found = whole.result(), resumed.result()
    for column in ("arms", "rewards", "twin_arms", "twin_rewards"):
        assert (getattr(wanted, column) == getattr(found, column)).all()
    assert wanted.differences == found.differences and wanted.ledger == found.ledger
    assert counted(wanted) == counted(found) and wanted.offline_bytes == found.offline_bytes
    words, again = whole.player.state(), resumed.player.state()
    assert words.keys() == again.keys()
    for name, shares in words.items():
        if name.startswith("unpaid"):  # the owners' pairs are fresh in each process
            assert (shares.sum(axis=1, dtype=np.uint64) == again[name].sum(axis=1, dtype=np.uint64)).all(), name
        else:
            assert (shares == again[name]).all(), name


@pytest.mark.parametrize("stop", [1, 4, 9])
def test_simulate_keeps_and_goes_on(stop: int, tmp_path: Path) -> None:
    given, rest = settings(delay=1, refresh=3), {"parties": 2, "steps": 10, "seed": SEED}
    whole = simulate(ENVIRONMENT, given, **rest)
    stopped = simulate(ENVIRONMENT, given, **rest, folder=tmp_path, every=3, progress=lambda run: run.done < stop)
    assert stopped.steps == stop and (stopped.arms == whole.arms[:stop]).all()
    assert latest(tmp_path).done == stop
    resumed = simulate(ENVIRONMENT, given, **rest, folder=tmp_path, every=3, resume=True)
    assert (resumed.arms == whole.arms).all() and resumed.ledger == whole.ledger
    assert (resumed.state["table"] == whole.state["table"]).all()
    assert resumed.offline_seconds > stopped.offline_seconds and resumed.cost.seconds > stopped.cost.seconds
    again = simulate(ENVIRONMENT, given, **rest, folder=tmp_path, resume=True)
    assert (again.arms == whole.arms).all() and counted(again) == counted(whole)


def test_nothing_is_reported_before_the_first_step() -> None:
    with pytest.raises(ConfigError, match="stopped before the first step"):
        begun(settings()).result()


def test_two_are_kept_and_only_their_owner_reads_them(tmp_path: Path) -> None:
    home = tmp_path / "new" / "checkpoints"
    simulate(ENVIRONMENT, settings(), parties=2, steps=9, seed=1, folder=home, every=2)
    assert [path.name for path in checkpoints(home)] == ["checkpoint-000000008.npz", "checkpoint-000000009.npz"]
    assert [path.name for path in sorted(home.iterdir())] == [*(path.name for path in checkpoints(home)), "home.key"]
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()} == {0o600}


def test_an_older_run_in_the_folder_does_not_push_out_a_new_one(tmp_path: Path) -> None:
    """A run that starts anew is the one that goes on from there."""
    simulate(ENVIRONMENT, settings(), parties=2, steps=9, seed=1, folder=tmp_path, every=3)
    rest = {"parties": 2, "steps": 8, "seed": 2, "folder": tmp_path, "every": 2}
    stopped = simulate(ENVIRONMENT, settings(), **rest, overwrite=True, progress=lambda run: run.done < 4)
    assert latest(tmp_path).done == 4
    resumed = simulate(ENVIRONMENT, settings(), **rest, resume=True)
    assert resumed.steps == 8 and (resumed.arms[:4] == stopped.arms).all()


@pytest.mark.parametrize(
    ("changes", "rest", "words"),
    [
        ({"eps": 0.3}, {}, "of a run with eps = 0.2, this one has 0.3"),
        ({"policy": Policy.LINUCB}, {}, "policy = epsilon-greedy, this one has linucb"),
        ({"delay": 2}, {}, "delay = 1, this one has 2"),
        ({"state_bits": 24}, {}, "state_bits = 20, this one has 24"),
        ({}, {"seed": 8}, "seed = 7, this one has 8"),
        ({}, {"parties": 2}, r"(owners|parties) = 3, this one has 2"),
        ({}, {"steps": 11}, "steps = 10, this one has 11"),
        ({}, {"environment": replace(ENVIRONMENT, name="other")}, "data = synthetic, this one has other"),
        ({}, {"environment": replace(ENVIRONMENT, contexts=-ENVIRONMENT.contexts)}, "of a run with other inputs"),
        ({}, {"environment": replace(ENVIRONMENT, chances=1.0 - ENVIRONMENT.chances)}, "of a run with other inputs"),
    ],
    ids=lambda given: f"{given}"[:40],
)
def test_a_checkpoint_of_another_run_is_refused(
    changes: dict[str, Any], rest: dict[str, Any], words: str, tmp_path: Path
) -> None:
    forward(begun(settings(delay=1)), 2).checkpoint().save(tmp_path)
    options = {"environment": ENVIRONMENT, "parties": 3, "steps": 10, "seed": SEED, **rest}
    with pytest.raises(ConfigError, match=words) as refused:
        simulate(settings=settings(**{"delay": 1, **changes}), folder=tmp_path, resume=True, **options)
    assert "give the arguments of that run, or another --out" in str(refused.value)


def test_no_checkpoint_to_go_on_from(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigError,
        match=r"there is no checkpoint in .*: the run reached its end, or never started; run without --resume",
    ):
        latest(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match=r"there is no checkpoint .*: run without --resume"):
        Checkpoint.load(checkpoint_at(tmp_path, 3))


def test_a_checkpoint_comes_back_as_it_was(tmp_path: Path) -> None:
    simulation = forward(begun(settings(delay=1, refresh=2, replicas=1)), 3)
    wanted = simulation.checkpoint()
    found = Checkpoint.load(wanted.save(tmp_path))
    assert found.done == 3 and found.facts.keys() == wanted.facts.keys()
    assert found.arrays.keys() == wanted.arrays.keys()
    for name in ("parties/table", "parties/sums", "notes/notes"):
        assert (found.arrays[name] == wanted.arrays[name]).all()
        assert found.arrays[name].dtype == wanted.arrays[name].dtype


def test_a_party_s_shares_are_no_simulation(tmp_path: Path) -> None:
    kept = forward(begun(settings()), 2).checkpoint()
    replace(kept, facts={**kept.facts, "role": "party-0"}).save(tmp_path)
    with pytest.raises(ConfigError, match="the checkpoint is of party-0 alone: put the simulation's own back"):
        begun(settings(), kept=latest(tmp_path))


def test_what_a_user_gave_is_compared_before_what_follows_from_it(tmp_path: Path) -> None:
    """Other parties mean other owners, and more steps more state bits: the words name the option."""
    forward(begun(settings()), 2).checkpoint().save(tmp_path)
    rest = {"environment": ENVIRONMENT, "settings": settings(), "seed": SEED, "folder": tmp_path, "resume": True}
    with pytest.raises(ConfigError, match="with parties = 3, this one has 2"):
        simulate(parties=2, steps=10, **rest)
    with pytest.raises(ConfigError, match="with steps = 10, this one has 20000"):
        simulate(parties=3, steps=20_000, **rest)


def test_a_damaged_last_one_leaves_the_one_before(tmp_path: Path) -> None:
    """As the error says: delete it, an earlier one is beside it."""
    given, rest = settings(), {"parties": 2, "steps": 6, "seed": SEED}
    whole = simulate(ENVIRONMENT, given, **rest, folder=tmp_path, every=2)
    checkpoints(tmp_path)[-1].write_bytes(b"torn")
    with pytest.raises(ConfigError, match="damaged"):
        simulate(ENVIRONMENT, given, **rest, folder=tmp_path, resume=True)
    checkpoints(tmp_path)[-1].unlink()
    assert latest(tmp_path).done == 4
    assert (simulate(ENVIRONMENT, given, **rest, folder=tmp_path, resume=True).arms == whole.arms).all()
