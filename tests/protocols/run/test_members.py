"""Roles on machines of their own, each with its file: the run gives what the same program gives when it is launched."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.environments import synthetic_linear
from mpc.errors import ConfigError, PeerLost
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE
from offline import deal
from protocols.ppcb.clients import pulled
from protocols.ppcb.command import PPCB
from protocols.ppcb.player import split
from protocols.ppcb.program import PAYER, PULLER
from protocols.ppcb.run import Bandit
from protocols.ppcb.settings import Settings
from protocols.run.config import load, party_names
from protocols.run.diagnosis import diagnosed
from protocols.run.launch import Processes, launch
from protocols.run.member_process import play, prepared
from protocols.run.rehearsal import rehearse

from ...parties.members import identity
from ...parties.processes import free_port
from ...parties.threads import Outcome, side_by_side

STEPS, ARMS, DIM = 12, 3, 6


@cache
def bandit(parties: int) -> Bandit:
    return Bandit.on(
        synthetic_linear(ARMS, DIM, seed=5), Settings(ARMS, DIM, eps=0.2), parties=parties, steps=STEPS, seed=5
    )


def written(folder: Path, parties: int, role: str, ports: list[str], **changed: Any) -> Path:
    """A role's file, in a folder of its own with its keys, its data and its material."""
    home, names = folder / role.replace(" ", "-"), [*party_names(parties), PULLER, PAYER]
    (home / "peers").mkdir(parents=True)
    shutil.copytree(identity(names.index(role))[0], home / "keys")
    computes, number = role in names[:parties], names.index(role)
    listen = [f'listen = "127.0.0.1:{ports[number]}"'] if computes else []
    lines = [f'role = "{role}"', 'session = "trial"', 'program = "ppcb"', f"parties = {parties}"]
    lines += ["[own]", f'key = "keys/{KEY_FILE}"', f'certificate = "keys/{CERTIFICATE_FILE}"', *listen]
    if computes:
        np.save(home / "features.npy", split(bandit(parties).world.contexts, parties)[number].reshape(STEPS, -1))
        lines += ["[data]", 'file = "features.npy"', "[material]", f'store = "../material/party-{number}"']
    lines += ["[output]", 'folder = "out"', "checkpoint_every = 5", "[timeouts]", "start = 30", "round = 30"]
    for at, other in enumerate(names):
        if other != role and (computes or at < parties):
            shutil.copy(identity(at)[0] / CERTIFICATE_FILE, home / "peers" / f"{at}.pem")
            lines += [f'[peers."{other}"]', f'certificate = "peers/{at}.pem"']
            lines += [f'fingerprint = "{identity(at)[1].spoken}"']
            lines += [f'address = "127.0.0.1:{ports[at]}"'] if at < parties and (at < number or not computes) else []
    options = {"steps": STEPS, "arms": ARMS, "dim": DIM, "eps": 0.2, **changed}
    lines += ["[options]", *(f"{name} = {json.dumps(value)}" for name, value in options.items())]
    path = home / "role.toml"
    path.write_text("\n".join(lines))
    return path


def world(parties: int, arms: int, rewards: int) -> None:
    """What is between the puller's stdout and the payer's stdin."""
    with os.fdopen(arms) as lines, os.fdopen(rewards, "w", buffering=1) as told:
        for line in lines:
            said = json.loads(line)
            paid = pulled(bandit(parties).world.outcomes[said["decision"]], np.array(said["values"]).reshape(1, 1))
            told.write(json.dumps({"decision": said["decision"], "values": paid.reshape(-1).tolist()}) + "\n")


def playing(path: Path, **pipes: Any) -> Callable[[], Any]:
    return lambda: play(prepared(load(path), PPCB()), **pipes)


def played(folder: Path, parties: int, files: dict[str, Path]) -> list[Outcome]:
    """All roles, each in a thread, and the world."""
    (arms_in, arms_out), (rewards_in, rewards_out) = os.pipe(), os.pipe()
    roles = [playing(files[role]) for role in party_names(parties)]

    def pulls() -> None:
        with os.fdopen(arms_out, "w") as told:
            playing(files[PULLER], heard=rewards_in, told=told)()

    pays = playing(files[PAYER], heard=rewards_in, told=None)
    threading.Thread(target=world, args=(parties, arms_in, rewards_out), daemon=True).start()
    return side_by_side(*roles, pulls, pays)


def dealt(folder: Path, parties: int, steps: int = STEPS) -> Path:
    """Material, and a copy of it that was made before either was used: both have the same coins."""
    plan = rehearse(bandit(parties)).plan
    deal(plan, steps, folder / "material")
    shutil.copytree(folder / "material", folder / "copied")
    return folder / "copied"


@pytest.mark.parametrize("parties", [2, 3])
def test_the_same_arms_and_ledger_as_launched(
    parties: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    copied = dealt(tmp_path, parties)
    ports = [free_port() for _ in range(parties)]
    files = {role: written(tmp_path, parties, role, ports) for role in (*party_names(parties), PULLER, PAYER)}
    for outcome in played(tmp_path, parties, files):
        if outcome.error is not None:
            raise outcome.error
    said = "".join(capsys.readouterr())
    assert said.count("dealt beforehand: ") == parties and "dealer's time" not in said, "nobody here measured it"
    launched = launch(bandit(parties), Processes(60.0, copied))
    puller = json.loads((tmp_path / PULLER / "out/result.json").read_text())
    assert puller["learned"] == launched.arms.reshape(STEPS, 1).tolist()
    for party in range(parties):
        told = json.loads((tmp_path / f"party-{party}" / "out/result.json").read_text())
        ledger = [(entry.role, entry.what, entry.count, entry.why) for entry in launched.ledger]
        assert [tuple(row.values()) for row in told["ledger"]] == ledger
        assert told["rounds_per_step"] == launched.cost.rounds / STEPS
        assert told["decisions"] == STEPS and told["role"] == f"party {party}"
        assert (
            tmp_path / f"party-{party}" / "out/checkpoints" / f"party-{party}" / f"checkpoint-{STEPS:09d}.npz"
        ).exists()


def test_a_diagnosis_measures_every_link_and_leaves_the_run_to_come(tmp_path: Path) -> None:
    dealt(tmp_path, 2)
    ports, roles = [free_port() for _ in range(2)], [*party_names(2), PULLER, PAYER]
    given = [prepared(load(written(tmp_path, 2, role, ports)), PPCB()) for role in roles]
    outcomes = side_by_side(*((lambda each=each: diagnosed(each)) for each in given))
    for role, outcome in zip(roles, outcomes):
        assert outcome.error is None, outcome.error
        found, prediction = outcome.value
        others = [other for other in roles if other != role and (role in roles[:2] or other in roles[:2])]
        links = [each for each in found if each.of.startswith("link to ")]
        assert sorted(each.of for each in links) == sorted(f"link to {other}" for other in others)
        assert all(each.seconds > 0 and each.bytes_per_second > 0 and "clock" in each.what for each in links)
        assert {each.of for each in found} >= {role} and prediction["rounds"] == 12
    assert not (tmp_path / "party-0/out").exists()


def test_a_difference_of_options_is_named_to_both(tmp_path: Path) -> None:
    dealt(tmp_path, 2)
    ports = [free_port() for _ in range(2)]
    files = {role: written(tmp_path, 2, role, ports) for role in party_names(2)}
    files["party 1"].write_text(files["party 1"].read_text().replace("checkpoint_every = 5", "checkpoint_every = 6"))
    first, second = side_by_side(*(playing(path) for path in files.values()))
    said = "party 1 disagrees on what is public: output.checkpoint_every = 6 at party 1, 5 here"
    assert isinstance(first.error, ConfigError) and said in str(first.error)
    assert isinstance(second.error, ConfigError) and "= 5 at party 0, 6 here" in str(second.error)


def test_who_does_not_come_is_listed(tmp_path: Path) -> None:
    dealt(tmp_path, 2)
    path = written(tmp_path, 2, "party 0", [free_port(), "1"])
    path.write_text(path.read_text().replace("start = 30", "start = 0.5"))
    with pytest.raises(PeerLost) as raised:
        playing(path)()
    assert "party 1 (has not called), puller (has not called), payer (has not called)" in str(raised.value)
    assert not (tmp_path / "party-0/out/checkpoints").exists(), "nothing was kept"


def test_every_mistake_is_said_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, 2, "party 0", [free_port(), "1"], arms="many", colour="red")
    text = path.read_text().replace("party 1", "party 7").replace("round = 30", "round = -1\ntypo = 3")
    path.write_text(text.replace('session = "trial"\n', ""))
    with pytest.raises(ConfigError) as raised:
        load(path)
    for words in (
        "4 mistakes", "session is missing", "timeouts.round is a positive number of seconds, not -1",
        "timeouts.typo is unknown", '[peers."party 1"] is missing',
    ):  # fmt: skip
        assert words in str(raised.value), raised.value
    path.write_text(text.replace("party 7", "party 1").replace("round = -1\ntypo = 3", ""))
    shutil.copy(identity(9)[0] / CERTIFICATE_FILE, tmp_path / "party-0/peers/2.pem")
    os.chmod(tmp_path / "party-0/keys" / KEY_FILE, 0o644)
    with pytest.raises(ConfigError) as raised:
        prepared(load(path), PPCB())
    for words in ("options: argument --arms: invalid int value: 'many'", "options: 'colour' is unknown: there are "):
        assert words in str(raised.value), raised.value
    path.write_text(path.read_text().replace('arms = "many"\n', f"arms = {ARMS}\n").replace('colour = "red"', ""))
    with pytest.raises(ConfigError) as raised:
        prepared(load(path), PPCB())
    for words in (
        "own: others than its owner may use", 'peers."puller": its certificate has another fingerprint than ',
        "material.store: ",
    ):  # fmt: skip
        assert words in str(raised.value), raised.value
