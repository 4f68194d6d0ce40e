"""`masked run|launch helba` as a user meets it, what it keeps, and who learns what."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bandits.helba import Batches, Constants, fresh
from mpc.ledger import EVERYONE, Entry
from offline import deal
from protocols.helba.command import Helba
from protocols.helba.run import Encrypted, Run
from protocols.helba.settings import Settings
from protocols.run.folder import Keep
from protocols.run.launch import Processes, launch
from protocols.run.rehearsal import rehearse
from protocols.run.simulate import Simulation, simulate
from protocols.run.stopping import Stopped

from ..harness import Output, document, masked, refused

CONTRACT = [
    "steps", "mode", "batches", "regret", "twin_regret", "arms_equal_twin", "updates", "updates_equal_twin",
    "smallest_gap", "rounds_to_arm", "seconds_per_step", "rounds_per_step", "offline_bytes_per_step", "ledger",
]  # fmt: skip
MISTAKES = [
    ("--batches secret", "--batches is one of public, hidden, none, not 'secret'"),
    ("--steps 0", "at least 1 of each"),
    ("--eta 0", "growth lies between"),
    ("--eta often", "a number, or none, not 'often'"),
    ("--norm nan", "norm must be positive"),
    ("--ridge 0", "ridge must be positive"),
    ("--delta 1", "delta is a probability"),
    ("--dim 20 --arms 10 --steps 10000", "needs an inverse to"),
    ("--mode classic", "invalid choice: 'classic'"),
    ("--parties 1", "secret sharing needs at least 2 parties"),
    ("--data movielens", "--data movielens needs the folder of its u.data"),
    ("--data movielens --data-dir nowhere", "there is no u.data of MovieLens 100K in nowhere"),
    ("--data movies", "invalid choice: 'movies'"),
    ("--data-dir nowhere", "--data-dir and --user are of --data movielens"),
    ("--data fresh --user 7", "--data-dir and --user are of --data movielens"),
    ("--degree 8192", "--degree is of --mode ckks"),
    ("--security 192", "--security is of --mode ckks"),
    ("--products 3", "--products is of --mode ckks"),
    ("--norm 1e-5", "features up to 1e-05 are rounded to 9.5e-07: scale them to 6.1e-05 and more"),
]


def program(batches: Batches = Batches.PUBLIC, *, steps: int = 12, parties: int = 2) -> Encrypted:
    given = Constants(growth=None)
    return Encrypted(Settings(given, 2, steps, batches), parties, seed=4, problem=fresh(given, steps, 4))


def test_one_document(capsys: Output) -> None:
    facts = document(capsys, "run helba --mode mpc --steps 15 --data fresh --eta 0.2 --no-union-bound")
    assert [key for key in facts if key in CONTRACT] == CONTRACT
    assert (facts["steps"], facts["mode"], facts["batches"], facts["rounds_to_arm"]) == (15, "mpc", "public", 16)
    assert facts["rounds_per_step"] == 20.0  # 9 x 16, 6 x 17 within a batch, and 9 updates
    assert facts["regret"] == facts["twin_regret"] and facts["arms_equal_twin"] and facts["updates_equal_twin"]
    assert facts["updates"] == 9 and facts["smallest_gap"] > 0


@pytest.mark.needs("matplotlib")
def test_text_files_and_picture(tmp_path: Path, capsys: Output) -> None:
    code, out, _ = masked(capsys, f"run helba --steps 6 --batches hidden --out {tmp_path}")
    assert code == 0 and "6 steps, 2 arms, 2 dimensions, 6 batches (hidden): regret" in out
    assert "the same arms and batch ends as the policy in the clear" in out and "everyone" not in out
    assert json.loads((tmp_path / "result.json").read_text())["options"]["batches"] == "hidden"
    assert (tmp_path / "reward.png").stat().st_size > 1000


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_mistakes(words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.chdir(tmp_path)
    refused(masked(capsys, f"run helba {words}"), said)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("batches", Batches)
def test_the_ledger(batches: Batches) -> None:
    """Arms to users; where ends are public, a bit a step; nothing else."""
    run = simulate(program(batches), seed=2)
    rows = [Entry("user", "arm", 12, "it is pulled")]
    if batches is Batches.PUBLIC:
        rows.append(Entry(EVERYONE, "whether a batch ends", 12, "its regression is used from now on"))
    assert list(run.ledger) == rows


def test_an_end_by_time_is_not_told() -> None:
    """All know it already; that tau ended the batch as well is nobody's to know."""
    given = Constants()
    run = simulate(Encrypted(Settings(given, 2, 12), 2, problem=fresh(given, 12, 4)), seed=2)
    assert run.twin.ends[:10].all() and not run.twin.ends[10]
    assert [entry.count for entry in run.ledger if entry.role == EVERYONE] == [1]


@pytest.mark.parametrize("batches", Batches)
def test_a_run_that_goes_on_is_the_run_that_was_never_stopped(batches: Batches, tmp_path: Path) -> None:
    whole = simulate(program(batches), seed=2)
    keep = Keep(tmp_path / "keep", 3)
    with pytest.raises(Stopped):
        simulate(program(batches), seed=2, keep=keep, watch=lambda done: done < 7)
    again = simulate(program(batches), seed=2, keep=Keep(tmp_path / "keep", 3, resume=True))
    alike(whole, again)
    assert whole.cost.rounds == again.cost.rounds


def test_a_launch_is_the_run() -> None:
    """With a dealer beside it, and hidden ends, which no process knows."""
    simulated = simulate(program(Batches.HIDDEN, parties=3), seed=1)
    launched = launch(program(Batches.HIDDEN, parties=3), Processes())
    assert launched.first_difference is None and (launched.arms == simulated.arms).all()
    assert launched.ends is None and launched.ends_equal is None and simulated.ends_equal
    assert launched.ledger == simulated.ledger and launched.cost.rounds == simulated.cost.rounds


def test_a_launch_from_dealt_material(tmp_path: Path) -> None:
    """The twin plays as well: it needs no coin."""
    made = program()
    deal(rehearse(made).plan, made.draws(), tmp_path)
    run = launch(made, Processes(material=tmp_path))
    assert run.ended.coins is None and run.first_difference is None and run.ends_equal
    assert run.offline_bytes == 12 * rehearse(made).plan.step_bytes


def test_the_plan_needs_no_problem() -> None:
    system = Helba()
    assert system.name == "helba" and rehearse(program()).plan == rehearse(Encrypted(program().settings, 2)).plan


def test_a_simulation_keeps_the_ends_and_a_party_of_hidden_ones_does_not() -> None:
    simulation = Simulation(program(Batches.HIDDEN), seed=2)
    simulation.turn()
    assert set(simulation.player.state()) == {"table", "trace", "start", "pulled", "ends"}
    simulation.player._knows = False
    assert set(simulation.player.state()) == {"table", "trace", "start", "pulled"}


def alike(one: Run, other: Run) -> None:
    """Arms, ends, ledger and the state at the end."""
    assert (one.arms == other.arms).all() and one.ledger == other.ledger
    assert one.ended.parties.keys() == other.ended.parties.keys()
    for name, words in one.ended.parties.items():
        whole = [
            np.asarray(each[name]).sum(axis=0, dtype=np.uint64) for each in (one.ended.parties, other.ended.parties)
        ]
        assert (whole[0] == whole[1]).all(), name
        assert words.dtype == other.ended.parties[name].dtype
