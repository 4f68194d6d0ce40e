"""A process for each role: the twin's arms, the same document, and what is said when a process is lost or stopped."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mpc import ConfigError
from mpc.children import Child
from mpc.errors import MaskedError
from mpc.ledger import Entry
from mpc.net.frames import DEALER_NODE
from offline import Plan, inspect
from protocols.ppcb.clients import payer
from protocols.ppcb.program import PAYER, PULLER
from protocols.ppcb.report import text
from protocols.ppcb.settings import Division, Policy, Settings, Variant
from protocols.run.checkpoint import Checkpoint, checkpoint_at, checkpoints
from protocols.run.desk import FileDesk
from protocols.run.notes import Notes

from ..harness import LIMIT, awaited, document, masked, refused, started, without_progress
from .commands import SMALL, Struck, roles
from .runs import launch, name_of, plan_of, played, settings

Output = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("changes", "parties"),
    [
        ({}, 3),
        ({"refresh": 2}, 2),
        ({"refresh": 30, "batch": 4, "division": Division.TABLE_NEWTON}, 2),
        ({"refresh": 11, "delay": 2, "batch": 2, "policy": Policy.THOMPSON}, 2),
        ({"variant": Variant.PUBLISHED}, 2),
    ],
    ids=lambda value: name_of(value) if isinstance(value, dict) else f"N{value}",
)
def test_a_launched_run_pulls_its_twins_arms(changes: dict[str, Any], parties: int, tmp_path: Path) -> None:
    """And costs what the simulated one costs."""
    given = settings(**changes)
    steps = 20 * given.batch
    run, simulated = launch(given, parties, steps, tmp_path), played(given, parties, steps)
    assert run.twin_arms is not None
    assert (run.arms == run.twin_arms).all() and run.differences == ()
    assert run.arms.shape == (steps, 3)
    assert run.ledger == simulated.ledger == (Entry(PULLER, "arm", 3 * steps, "it is pulled"),)
    for name in ("rounds", "opened_bytes", "client_hops"):
        assert getattr(run.cost, name) == getattr(simulated.cost, name), name
    assert run.seconds > 0 and run.offline_seconds > 0
    assert run.offline_bytes >= simulated.offline_bytes


def test_the_dealer_is_told_to_the_parties_alone_each_by_a_key_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, Mapping[str, str]] = {}

    class Noted(Child):
        def __init__(self, node: int, name: str, argv: Any, environment: Mapping[str, str], **rest: Any) -> None:
            given[name] = environment
            super().__init__(node, name, argv, environment, **rest)

    monkeypatch.setattr("mpc.launch.Child", Noted)
    launch(settings(), 2, 3, tmp_path)
    dealer = {name: json.loads(told["MASKED_DEALER"]) for name, told in given.items() if "MASKED_DEALER" in told}
    assert set(given) == {"party 0", "party 1", PULLER, PAYER} and set(dealer) == {"party 0", "party 1"}
    address, keys = dealer["party 0"][0], [told[1] for told in dealer.values()]
    assert [list(own) for own in keys] == [[str(DEALER_NODE)]] * 2 and keys[0] != keys[1]
    for name in (PULLER, PAYER):
        assert address[0] not in str(given[name])


def test_a_plan_is_what_a_turn_draws(parties: int) -> None:
    given = settings()
    plan, _, cost = plan_of(given, parties)
    run = played(given, parties, 10)
    assert plan.step_bytes == run.offline_bytes / 10
    assert (cost.rounds, cost.opened_bytes) == (12, run.cost.opened_bytes / 10)
    with_refresh = plan_of(settings(refresh=10), parties).plan
    assert with_refresh.step_bytes == played(settings(refresh=10), parties, 10).offline_bytes


KEYS = {
    "steps", "parties", "arms", "dim", "eps", "seed", "average_reward", "twin_average_reward", "first_difference",
    "rounds_per_step", "bytes_per_step_per_party", "offline_bytes_per_step", "seconds_per_step",
    "offline_seconds_per_step", "eta_per_step", "ledger",
}  # fmt: skip
EXTRAS = {
    "program", "replicas", "client_hops_per_step", "sent_bytes_per_step_per_party", "further_arms", "arms_per_context",
    "client_messages_per_step", "reference_average_reward", "mode",
}  # fmt: skip


def test_run_and_launch_print_the_same_document(capsys: Output) -> None:
    """Whatever depends on the coins differs: a launched run's are fresh."""
    same = (*SMALL, "--steps", "24", "--seed", "3")
    run, launched_ = (document(capsys, how, "ppcb", *same) for how in ("run", "launch"))
    assert run.keys() == launched_.keys() == KEYS | EXTRAS
    for name in KEYS - {"average_reward", "twin_average_reward", "seconds_per_step", "offline_seconds_per_step"}:
        assert run[name] == launched_[name], name
    assert launched_["first_difference"] is None
    assert launched_["average_reward"] == launched_["twin_average_reward"]
    assert (launched_["steps"], launched_["parties"], launched_["arms"], launched_["dim"]) == (24, 2, 4, 8)


def arms_in(out: Path) -> dict[str, np.ndarray]:
    with np.load(out / "steps.npz") as kept:
        return dict(kept)


@contextmanager
def changed(path: Path, at: int) -> Iterator[None]:
    """A byte of a file is another one for a while."""
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    yield
    path.write_bytes(whole)


def test_an_interrupted_launch_goes_on_where_all_parties_stood(tmp_path: Path, capsys: Output) -> None:
    """Late rewards, refreshes and checkpoints every ten decisions; two processes are told apart by their files."""
    out = tmp_path / "run"
    how = (*SMALL, "--steps", "160", "--delay", "2", "--refresh", "5", "--checkpoint-every", "10", "--out", str(out))
    launcher = started("launch", "ppcb", *how)
    kept = [out / "checkpoints" / f"party-{party}" for party in range(2)]
    awaited(lambda: all(checkpoints(home) for home in kept))
    launcher.send_signal(signal.SIGINT)
    _, complained = launcher.communicate(timeout=LIMIT)
    assert launcher.returncode == 130, complained
    assert "go on with --resume and --out" in complained and "Traceback" not in complained
    assert "stopping after this decision; Ctrl-C again stops at once" in complained
    reached = json.loads((out / "result.json").read_text())["steps"]
    assert 0 < reached < 160 and reached % 5 == 0, "a checkpoint where it stopped, between two refreshes"
    assert (out / "checkpoints" / "arms.bin").stat().st_size == 24 * reached, "nothing is to be decided again"
    before = arms_in(out)
    assert (before["arms"] == before["twin_arms"]).all() and len(before["arms"]) == reached
    assert {path.stat().st_mode & 0o777 for home in kept for path in home.iterdir()} == {0o600}
    assert (out / "checkpoints" / "coin.key").stat().st_mode & 0o777 == 0o600

    refused(masked(capsys, "launch", "ppcb", *how, "--eps", "0.3", "--resume"), "eps = 0.2, this one has 0.3")
    refused(masked(capsys, "launch", "ppcb", *how), "go on with --resume, discard it with --overwrite, or choose")
    for name, at in (("arms.bin", 24), ("coin.key", 3)):
        with changed(out / "checkpoints" / name, at):
            words = f"{name} is damaged, or not of this place and run"
            refused(masked(capsys, "launch", "ppcb", *how, "--resume"), words)
    code, _, complained = masked(capsys, "launch", "ppcb", *how, "--resume")
    assert code == 0, complained
    after = arms_in(out)
    assert after["arms"].shape == (160, 1)
    assert (after["arms"] == after["twin_arms"]).all()
    assert (after["arms"][:reached] == before["arms"]).all()
    assert "made again" not in complained
    result = json.loads((out / "result.json").read_text())
    assert result["ledger"] == [
        {"role": PULLER, "what": "arm", "count": 160, "why": "it is pulled"},
        {"role": PAYER, "what": "reward", "count": 160, "why": "its own input"},
    ]
    assert (result["further_arms"], result["arms_per_context"]) == (0, 1)
    assert result["client_hops_per_step"] == 2


def test_parties_that_kept_different_steps_go_on_from_one_they_share(tmp_path: Path) -> None:
    """Party 1 lost its last checkpoint; both begin at the one before it, and what is decided again counts twice."""
    given, said = settings(delay=1), []
    launch(given, 2, 24, tmp_path)
    checkpoint_at(tmp_path / "keep" / "party-1", 24).unlink()
    again = launch(given, 2, 24, tmp_path, resume=True, say=said.append)
    assert len(said) == 1 and "8 decisions from 16 on are made again with the same coins and fresh masks" in said[0]
    assert (again.further_arms, again.arms_per_context) == (8 * 3, 2)
    assert [(entry.role, entry.what, entry.count) for entry in again.ledger] == [
        (PULLER, "arm", 72),
        (PULLER, "arm", 24),
    ]
    assert "learned 24 arms, of steps that were played again" in text(again) and "up to 2 of one context" in text(again)
    assert again.twin_arms is not None and (again.arms == again.twin_arms).all()
    noted = Notes(tmp_path / "keep" / "arms.bin", (3,)).words()
    assert (noted == again.arms).all(), "what was noted after that step is forgotten"
    assert Checkpoint.load(checkpoint_at(tmp_path / "keep" / "party-1", 24)).done == 24
    for party in range(2):
        for kept in checkpoints(tmp_path / "keep" / f"party-{party}"):
            kept.unlink()
    with pytest.raises(
        ConfigError,
        match="the run reached its end, or never started; run without --resume",
    ):
        launch(given, 2, 24, tmp_path, resume=True)


@pytest.mark.parametrize("role", ["party", "payer"])
def test_a_process_that_is_killed_is_said_once(role: str, tmp_path: Path, capsys: Output) -> None:
    how = (*SMALL, "--steps", "60000", "--timeout", "30", "--out", str(tmp_path))
    with Struck(role, signal.SIGKILL, tmp_path):
        code, _, complained = masked(capsys, "launch", "ppcb", *how)
    assert code == 2
    lines = without_progress(complained)
    assert lines == [f"error: {'party 1' if role == 'party' else role} was ended by SIGKILL"]
    assert not any(roles(os.getpid(), name) for name in ("party", "puller", "payer"))


def test_a_payer_whose_puller_left_says_so(tmp_path: Path) -> None:
    """The pipe between them ends: the payer is a witness, with a line and no traceback."""
    pipe, given = tmp_path / "world", settings(replicas=1)
    pipe.write_bytes(b"")
    desk = FileDesk(start=0, kept=None, keeps=None, notes=None, pipe=pipe, others=[(2, PULLER)], timeout=20.0)
    with pytest.raises(MaskedError, match="puller"):
        next(payer(np.zeros((3, 1, 1, 4)), given, 3, desk))


@pytest.mark.usefixtures("one_hangs")
def test_a_payer_that_never_answers_is_named_within_the_timeout(tmp_path: Path, capsys: Output) -> None:
    """The silence is one that no busy machine makes by itself."""
    how = (*SMALL, "--steps", "60000", "--refresh", "0", "--timeout", "6", "--out", str(tmp_path))
    with Struck("payer", signal.SIGSTOP, tmp_path) as struck:
        code, _, complained = masked(capsys, "launch", "ppcb", *how)
    assert code == 2
    lines = without_progress(complained)
    assert len(lines) == 1 and "was silent for 6 s" in lines[0]
    assert not Path(f"/proc/{struck.pid}").exists()
    assert "payer" in lines[0] or "client 1" in lines[0], lines[0]


def test_a_run_that_cannot_be_leaves_an_earlier_one_alone(tmp_path: Path, capsys: Output) -> None:
    """Each of these was found wrong after the checkpoints had gone."""
    how = ("launch", "ppcb", *SMALL, "--steps", "8", "--json", "--out", str(tmp_path))
    assert masked(capsys, *how)[0] == 0
    before = {path: path.read_bytes() for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()}
    assert len(before) == 9
    for options, words in (
        ("--material nowhere", "there is no store at nowhere/party-0"),
        ("--bound 0.25", "declared is 0.25: scale it or declare more"),
        ("--timeout 0", "a timeout is a positive number"),
        ("--batch 3", "8 steps are no whole number of batches of 3"),
        ("--plot x.xyz", "a picture ends in"),
    ):
        code, _, complained = masked(capsys, *how, *options.split())
        assert code == 2 and words in complained
    assert {path: path.read_bytes() for path in (tmp_path / "checkpoints").rglob("*") if path.is_file()} == before


def test_resuming_refuses_what_is_not_its_own(tmp_path: Path, capsys: Output) -> None:
    """Another number of parties, another party's shares, another run's, and those of a simulation."""
    one, other, keep = tmp_path / "one", tmp_path / "other", tmp_path / "one" / "checkpoints"
    how = ("launch", "ppcb", *SMALL, "--steps", "8", "--json", "--out")
    for out in (one, other):
        assert masked(capsys, *how, str(out))[0] == 0

    def going_on(*options: str) -> str:
        code, _, complained = masked(capsys, *how, str(one), "--resume", *options)
        assert code == 2 and complained.count("\n") == 1
        return complained

    for parties in ("3", "4"):
        complained = going_on("--parties", parties)
        assert f"parties = 2, this one has {parties}: give the arguments of that run" in complained
        assert "without --resume" not in complained
    simulated = masked(capsys, "run", *how[1:], str(one), "--resume")
    assert simulated[0] == 2 and "go on with 'masked launch ppcb --resume'" in simulated[2]
    place = checkpoint_at(keep / "party-1", 8)
    own = place.read_bytes()
    for another in (keep / "party-0", other / "checkpoints" / "party-1"):
        place.write_bytes(checkpoint_at(another, 8).read_bytes())
        assert "checkpoint-000000008.npz is damaged, or not of this place and run: delete it" in going_on()
    place.unlink()
    assert "no decision in common (party-0 at checkpoint-000000008, party-1 at none): put back" in going_on()
    place.write_bytes(own)
    for another, words in ((keep / "party-0", "is of party-0"), (other / "checkpoints/party-1", "is of party-1")):
        (keep / "party-1").rename(keep / "away")  # with the key that lies there
        shutil.copytree(another, keep / "party-1")
        assert words in (said := going_on()) and "not of party-1 of run" in said
        shutil.rmtree(keep / "party-1")
        (keep / "away").rename(keep / "party-1")
    assert masked(capsys, *how, str(one), "--resume")[0] == 0
    for party in range(2):
        checkpoint_at(keep / f"party-{party}", 8).unlink()
    assert masked(capsys, "run", *how[1:], str(one))[0] == 0
    assert "is a simulation: go on with 'masked run ppcb --resume'" in going_on()


def test_a_second_ctrl_c_says_what_is_kept(tmp_path: Path) -> None:
    """One owner stands still, so the first one cannot be answered; there is no checkpoint yet."""
    launcher = started("launch", "ppcb", *SMALL, "--steps", "60000", "--checkpoint-every", "60000", "--refresh", "0",
                       "--out", str(tmp_path))  # fmt: skip
    log = tmp_path / "checkpoints" / "arms.bin"
    awaited(lambda: log.exists() and log.stat().st_size)
    os.kill(roles(launcher.pid, "party")[-1], signal.SIGSTOP)
    launcher.send_signal(signal.SIGINT)
    assert launcher.stderr is not None
    awaited(lambda: "Ctrl-C again stops at once" in launcher.stderr.readline())
    launcher.send_signal(signal.SIGINT)
    _, complained = launcher.communicate(timeout=LIMIT)
    assert launcher.returncode == 130
    *_, kept, last = complained.splitlines()
    assert "decisions were made, and the first checkpoint comes after 60,000" in kept and last == "stopped"
    assert "holds nothing to go on from, only what the puller learned" in kept
    assert log.stat().st_size > 0 and not list(tmp_path.rglob("checkpoint-*"))


def dealt(capsys: Output, home: Path, *options: str, steps: int = 16) -> Path:
    """Material for a run of SMALL's size."""
    plan = home / "plan.json"
    bandit = ("--arms", "4", "--dim", "8", "--parties", "2", "--eps", "0.2", *options)
    assert masked(capsys, "offline", "plan", "ppcb", *bandit, "-o", str(plan))[0] == 0
    deal = ("offline", "deal", str(plan), "--steps", str(steps), "--block-steps", "4", "--out", str(home / "material"))
    assert masked(capsys, *deal)[0] == 0
    return home / "material"


def test_a_run_that_goes_on_with_material_has_other_coins(tmp_path: Path, capsys: Output) -> None:
    """The decisions after the checkpoint were released with the dealer's: the puller has learned both."""
    material, out = dealt(capsys, tmp_path), tmp_path / "run"
    how = ("launch", "ppcb", *SMALL, "--steps", "24", "--checkpoint-every", "12", "--out", str(out))
    assert masked(capsys, *how)[0] == 0
    checkpoint_at(out / "checkpoints" / "party-1", 24).unlink()
    code, said, complained = masked(capsys, *how, "--resume", "--material", str(material))
    assert code == 0, complained
    assert "12 decisions from 12 on are made again with other coins, of --material," in complained
    assert "12 x arm     of a step that was played again" in said and "up to 2 of one context, 5.666 in all" in said
    result = json.loads((out / "result.json").read_text())
    assert (result["further_arms"], result["arms_per_context"], result["twin_average_reward"]) == (12, 2, None)
    assert [row["count"] for row in result["ledger"]] == [24, 12, 24]
    code, _, complained = masked(capsys, *how, "--resume")
    assert code == 2 and "so no dealer can go on with its coins" in complained, "a twin would replay the wrong ones"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--steps 20000", ("item 2 of its step is TruncationMask(shape=(36,), bits=20), of this one TruncationMask",
                           "(20,000 steps, 25 state bits and no refresh)",
                           "--eps 0.2 --parties 2 --steps 20000 -o plan.json'",
                           "deal plan.json --steps 20000 --session local --out")),
        ("--steps 8 --delay 1", ("of this one ProductMask", "--eps 0.2 --delay 1 --parties 2 --steps 8 -o plan.json'")),
        ("--steps 8 --parties 3", ("it has 2 parties, this one 3",)),
        ("--steps 8 --replicas 2", ("--replicas 2 --parties 2 --steps 8",)),
        ("--steps 2000", ("16 steps of 'ppcb' are left, 2000 wanted",)),
        ("--steps 8 --session other", ("was dealt for session 'local', this is 'other'",)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_material_of_another_run_is_refused_before_it_is_used(
    options: str, words: tuple[str, ...], tmp_path: Path, capsys: Output
) -> None:
    material = dealt(capsys, tmp_path)
    how = ("launch", "ppcb", *SMALL, "--json", "--material", str(material), *options.split())
    code, _, complained = masked(capsys, *how)
    assert code == 2 and complained.count("\n") == 1
    for part in words:
        assert part in complained
    assert [inspect(material / f"party-{party}").steps_left for party in range(2)] == [16, 16]


def test_a_plan_for_a_long_run_has_its_state_bits(tmp_path: Path, capsys: Output) -> None:
    """And says them, and how much to deal; a plan of a short run has others."""
    bandit = ("offline", "plan", "ppcb", "--arms", "4", "--dim", "8", "--parties", "2", "--eps", "0.2")
    digests = []
    for steps, words in (
        ("500", "a run of 500 steps, 20 state bits and no refresh draws 500 steps"),
        ("20000", "a run of 20,000 steps, 25 state bits and no refresh draws 20,000 steps"),
        ("200000", "a run of 200,000 steps, 30 state bits and no refresh"),
    ):
        code, said, _ = masked(capsys, *bandit, "--steps", steps, "-o", str(tmp_path / "plan.json"))
        assert code == 0 and words in said and "masked offline deal" in said
        given = Settings(4, 8, 0.2, steps=max(1 << 16, int(steps))).for_run(2, int(steps))
        digests.append(Plan.load(tmp_path / "plan.json").digest)
        assert digests[-1] == plan_of(given, 2).plan.digest
    assert len(set(digests)) == 3
    _, said, _ = masked(capsys, *bandit, "--refresh", "7", "--steps", "20", "-o", str(tmp_path / "plan.json"))
    assert "20 state bits and a refresh every 7 decisions draws 3 steps of this plan" in said
    code, _, complained = masked(capsys, *bandit, "--steps", "0")
    assert code == 2 and "at least 1 step, not 0" in complained


def test_inspecting_the_folder_of_all_stores_names_them(tmp_path: Path, capsys: Output) -> None:
    material = dealt(capsys, tmp_path)
    code, _, complained = masked(capsys, "offline", "inspect", str(material))
    assert code == 2 and "delete" not in complained
    assert f"holds the stores of party-0, party-1: inspect one, such as {material / 'party-0'}" in complained


def test_material_that_was_dealt_before_is_enough(tmp_path: Path, capsys: Output) -> None:
    """No dealer, so no twin: its coins are nobody's here."""
    plan, home = tmp_path / "plan.json", tmp_path / "material"
    bandit = ("--arms", "4", "--dim", "8", "--parties", "2", "--eps", "0.2", "--delay", "1")
    assert masked(capsys, "offline", "plan", "ppcb", *bandit, "-o", str(plan))[0] == 0
    assert Plan.load(plan).parties == 2
    assert masked(capsys, "offline", "deal", str(plan), "--steps", "16", "--out", str(home))[0] == 0
    how = ("launch", "ppcb", "--data", "synthetic", *bandit, "--material", str(home))
    facts = document(capsys, *how, "--steps", "12")
    assert (facts["steps"], facts["twin_average_reward"], facts["first_difference"]) == (12, None, None)
    assert facts["rounds_per_step"] == 9
    code, _, complained = masked(capsys, *how, "--steps", "12", "--json")
    assert code == 2 and "masked offline deal" in complained and complained.count("\n") == 1
