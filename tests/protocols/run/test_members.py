"""Roles on machines of their own, each with its file: the run gives what the same program gives when it is launched."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import re
import shutil
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.environments import synthetic_linear
from mpc.errors import ConfigError, PeerLost
from mpc.net import certificates
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE
from mpc.net.hello import differences
from protocols.commands.config import fitting
from protocols.ppcb.command import PPCB
from protocols.ppcb.program import PAYER, PULLER
from protocols.ppcb.run import Bandit
from protocols.ppcb.settings import Settings
from protocols.run import diagnosis
from protocols.run.config import load, read
from protocols.run.diagnosis import diagnosed
from protocols.run.launch import Processes, launch
from protocols.run.member_process import prepared

from ...parties.members import identity
from ...parties.processes import free_port
from ...parties.threads import side_by_side
from ..machines import Machines, World, good
from .trial import ARMS, DIM, STEPS, bandit, paying, session


@pytest.mark.parametrize("parties", [2, 3])
def test_the_same_arms_and_ledger_as_launched(
    parties: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    machines = session(tmp_path, parties)
    copied = machines.dealt()
    good(machines.play(worlds=[(PULLER, PAYER, paying(parties))]))
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
        assert told["offline_bytes_per_step"] == launched.offline_bytes / STEPS > 0
        assert told["decisions"] == STEPS and told["role"] == f"party {party}"
        assert (
            tmp_path / f"party-{party}" / "out/checkpoints" / f"party-{party}" / f"checkpoint-{STEPS:09d}.npz"
        ).exists()


def late(world: World, by: int) -> World:
    """The same, of the decision so many before the one that is told: what comes of the last ones never comes."""
    said: dict[int, dict[str, Any]] = {}

    def answers(line: dict[str, Any]) -> dict[str, Any] | None:
        said[line["decision"]] = line
        return world(said[line["decision"] - by]) if line["decision"] >= by else None

    return answers


def test_a_reward_comes_as_late_as_the_delay_allows(tmp_path: Path) -> None:
    """Of decision n when n + 2 has been told: to wait for it earlier would be to wait for ever."""
    machines = session(tmp_path, delay=3)
    copied = machines.dealt()
    good(machines.play(worlds=[(PULLER, PAYER, late(paying(2), 2))]))
    settings = Settings(ARMS, DIM, eps=0.2, delay=3)
    world = synthetic_linear(ARMS, DIM, seed=5)
    launched = launch(Bandit.on(world, settings, parties=2, steps=STEPS, seed=5), Processes(60.0, copied))
    assert machines.result(PULLER)["learned"] == launched.arms.reshape(STEPS, 1).tolist()


def test_no_value_of_a_user_is_in_logs_or_metrics(tmp_path: Path) -> None:
    """Rows with ids, watched in the middle of a run: what is said and shown has counts alone."""
    machines, port, shown = session(tmp_path, named=True), free_port(), list[str]()
    machines.logged = io.StringIO()
    path = machines.files["party 0"]
    path.write_text(path.read_text().replace("[own]", f'[watch]\nlisten = "127.0.0.1:{port}"\n[own]'))
    machines.dealt()
    pays = paying(2)

    def looked_at(said: dict[str, Any]) -> dict[str, Any]:
        if said["decision"] == STEPS - 2:
            for page in ("metrics", "healthz"):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=300) as answer:
                    shown.append(answer.read().decode())
        return {**pays(said), "values": [0.73124586 * value for value in pays(said)["values"]]}

    good(machines.play(worlds=[(PULLER, PAYER, looked_at)]))
    logs = machines.logged.getvalue()
    assert all({"time", "level", "role", "session", "message"} == json.loads(line).keys() for line in logs.splitlines())
    rounds = re.search(r'^masked_rounds_total{role="party 0".*} (\d+)$', shown[0], re.M)
    assert rounds and int(rounds[1]) >= 12 * (STEPS - 2) and json.loads(shown[1])["state"] == "running"
    left = re.search(r"^masked_material_steps{.*} (\d+)$", shown[0], re.M)
    assert left and int(left[1]) == 1 and "masked_material_hours" in shown[0]
    for what, value in (("rounds", "[1-9]"), ("sent_bytes", "[1-9]"), ("seconds", "")):
        found = re.findall(rf'^masked_label_{what}_total{{role="party 0".*,label="(\w+)"}} {value}', shown[0], re.M)
        assert found == ["decide", "tell", "learn"], shown[0]
    timed = re.compile(r"^masked_\w*(?:seconds_total|hours)\b.*$", re.M)  # digits that are anybody's
    everything = timed.sub("", logs + "".join(shown))
    features = np.concatenate([rows.reshape(-1) for rows in machines.data.values()])
    planted = ["patient", "0.73124586", *(repr(value)[:8] for value in np.abs(features).tolist())]
    assert not [value for value in planted if value in everything]


def test_rows_of_other_ids_are_refused_before_the_first_decision(tmp_path: Path) -> None:
    machines = session(tmp_path, named=True)
    machines.dealt()
    file = machines.home("party 1") / "data.csv"
    file.write_text(file.read_text().replace("patient-4713", "patient-1"))
    first, second, puller, _ = machines.play()
    assert "party 1 lacks the ids of rows 2, and has 1 that are not here" in str(first.error)
    assert "party 0 lacks the ids of rows 2, and has 1 that are not here" in str(second.error)
    assert isinstance(puller.error, PeerLost) and "stopped with ConfigError" in str(puller.error)
    file.write_text(file.read_text().replace("patient-4712", "patient-1"))
    with pytest.raises(ConfigError, match=r"data: rows 1 and 2 are of the same id: leave one of them"):
        machines.playing("party 1")()


def test_a_diagnosis_measures_every_link_and_leaves_the_run_to_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Here all links are said to be far, and TCP to forget its windows."""
    monkeypatch.setattr(diagnosis, "_FAR", 0.0)
    monkeypatch.setattr(diagnosis, "keeps_window", lambda _: False)
    machines = session(tmp_path)
    machines.dealt()
    roles = list(machines.files)
    (machines.home("party 1") / "data.npy").unlink()
    given = [prepared(load(path), PPCB(), links=True) for path in machines.files.values()]
    outcomes = side_by_side(*((lambda each=each: diagnosed(each)) for each in given))
    for role, outcome in zip(roles, outcomes):
        assert outcome.error is None, outcome.error
        found, prediction = outcome.value
        others = [other for other in roles if other != role and (role in roles[:2] or other in roles[:2])]
        links = [each for each in found if each.of.startswith("link to ")]
        assert sorted(each.of for each in links) == sorted(f"link to {other}" for other in others)
        silent = {each.of for each in found if "tcp_slow_start_after_idle" in each.what and each.verdict == "WARN"}
        assert silent == {f"silent link to {other}" for other in others}
        assert all(each.seconds > 0 and each.bytes_per_second > 1e3 and "clock" in each.what for each in links)
        assert {each.of for each in found} >= {role} and prediction["rounds"] == 12
    assert not (tmp_path / "party-0/out").exists()


def test_a_role_that_is_missing_is_a_row_and_the_others_are_measured(tmp_path: Path) -> None:
    machines = session(tmp_path)
    machines.dealt()
    given = {role: prepared(load(machines.files[role]), PPCB()) for role in ("party 0", "party 1", PULLER)}
    slept: list[float] = []
    calls = [(lambda each=each: diagnosed(each, wait=6.0, idle=90.0, sleep=slept.append)) for each in given.values()]
    outcomes = side_by_side(*calls)
    for role, outcome in zip(given, outcomes):
        assert outcome.error is None, outcome.error
        found, prediction = outcome.value
        rows = {each.of: each for each in found}
        others = [other for other in given if other != role]
        assert all(rows[f"link to {other}"].verdict == "PASS" for other in others)
        assert all("lasted 90 s without keep-alive" in rows[f"idle link to {other}"].what for other in others)
        failed = [(each.of, each.what) for each in found if each.verdict == "FAIL"]
        assert failed == ([] if role == PULLER else [(f"link to {PAYER}", "none after 6 s: has not called")])
        spoken = {of: row.tls for of, row in rows.items() if not of.startswith(("link", "idle"))}
        assert spoken == {each: "TLSv1.3" if each in others else None for each in spoken} and set(others) <= set(spoken)
        assert prediction["seconds"] > prediction["seconds_on_links"] > 0 and prediction["client_hops"] == 2
    assert slept == [90.0] * 3


def failed_at(machines: Machines, wait: float = 4.0) -> dict[str, dict[str, str]]:
    """What fails, by role, where all roles diagnose at once."""
    given = {role: fitting(read(path), links=True) for role, path in machines.files.items()}
    outcomes = side_by_side(*((lambda each=each: diagnosed(each, wait=wait)) for each in given.values()))
    for role, outcome in zip(given, outcomes):
        assert outcome.error is None, (role, outcome.error)
    return {
        role: {each.of: each.what for each in outcome.value[0] if each.verdict == "FAIL"}
        for role, outcome in zip(given, outcomes)
    }


def test_a_role_that_disagrees_is_a_row_and_the_others_are_measured(tmp_path: Path) -> None:
    machines = session(tmp_path)
    path = machines.files[PAYER]
    path.write_text(path.read_text().replace("eps = 0.2", "eps = 0.3"))
    failed, start = failed_at(machines), "none after 4 s: "
    said = f"{start}payer disagrees on what is public: settings.eps = 0.3 at payer, 0.2 here"
    assert failed["party 0"] == failed["party 1"] == {f"link to {PAYER}": said} and not failed[PULLER]
    theirs = "disagrees on what is public: settings.eps = 0.2 at party"
    for party in range(2):
        assert failed[PAYER][f"link to party {party}"] == f"{start}party {party} {theirs} {party}, 0.3 here"


def test_a_role_of_another_session_is_a_row_with_that(tmp_path: Path) -> None:
    machines = session(tmp_path)
    path = machines.files["party 1"]
    path.write_text(path.read_text().replace('session = "trial"', 'session = "tryal"'))
    failed = failed_at(machines)
    assert "party 1 is in session 'tryal doctor', this one in 'trial doctor'" in failed["party 0"]["link to party 1"]
    assert "party 1 turned this process away" in failed[PAYER]["link to party 1"]
    assert "party 0 turned this process away" in failed["party 1"]["link to party 0"]


@pytest.mark.parametrize("days", [-4000, 4000])
def test_a_certificate_out_of_its_time_is_a_row_at_all(days: int, tmp_path: Path) -> None:
    machines = session(tmp_path)
    shutil.rmtree(machines.home(PAYER) / "keys")
    made = certificates.make(
        machines.home(PAYER) / "keys", "payer", dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=days)
    )
    for role, path in machines.files.items():
        path.write_text(path.read_text().replace(identity(3)[1].spoken, made.spoken))
        if role != PAYER and (at := machines.home(role) / "peers/3.pem").exists():
            at.write_text(made.pem)
    with pytest.raises(ConfigError, match="own: the certificate of 'payer' is valid from "):
        fitting(read(machines.files[PAYER]))
    failed = failed_at(machines)
    assert not failed[PULLER]
    for role in ("party 0", "party 1", PAYER):
        assert "the certificate of 'payer' is valid from " in failed[role].pop(PAYER)
    assert failed[PAYER].keys() == {"link to party 0", "link to party 1"}
    why = "shows a certificate that is not valid at this machine's time"
    assert all(failed[f"party {party}"][f"link to {PAYER}"].endswith(why) for party in range(2))


def test_a_key_that_others_do_not_know_is_told_with_the_row(tmp_path: Path) -> None:
    machines = session(tmp_path)
    shutil.rmtree(machines.home("party 1") / "keys")
    certificates.make(machines.home("party 1") / "keys", "b", dt.datetime.now(dt.timezone.utc))
    failed = failed_at(machines)
    said = failed["party 0"]["link to party 1"]
    assert said.startswith("none after 4 s: has not called; somebody at 127.0.0.1:")
    assert said.endswith(" was refused: shows a certificate that is not of a peer in this place")
    assert "link to party 0" in failed["party 1"]
    why = "shows a certificate that is not of a peer in this place"
    assert all(failed[role]["link to party 1"].endswith(why) for role in (PULLER, PAYER))


def test_why_a_certificate_was_not_taken_outlives_who_showed_it(tmp_path: Path) -> None:
    """Its doctor ends sooner, and from then on its address answers nothing."""
    machines = session(tmp_path)
    shutil.rmtree(machines.home("party 1") / "keys")
    certificates.make(machines.home("party 1") / "keys", "b", dt.datetime.now(dt.timezone.utc))
    given = {role: fitting(read(path), links=True) for role, path in machines.files.items()}
    waits = {"party 1": 3.0}
    outcomes = side_by_side(
        *((lambda role=role, each=each: diagnosed(each, wait=waits.get(role, 8.0))) for role, each in given.items())
    )
    (found, _), why = outcomes[2].value, "shows a certificate that is not of a peer in this place"
    (failed,) = (each.what for each in found if each.verdict == "FAIL")
    assert failed.startswith("none after 8 s: 127.0.0.1:") and failed.endswith(why)


def test_a_difference_of_options_is_named_to_both(tmp_path: Path) -> None:
    machines = session(tmp_path)
    machines.dealt()
    path = machines.files["party 1"]
    path.write_text(path.read_text().replace("checkpoint_every = 5", "checkpoint_every = 6"))
    first, second = side_by_side(machines.playing("party 0"), machines.playing("party 1"))
    said = "party 1 disagrees on what is public: output.checkpoint_every = 6 at party 1, 5 here"
    assert isinstance(first.error, ConfigError) and said in str(first.error)
    assert isinstance(second.error, ConfigError) and "= 5 at party 0, 6 here" in str(second.error)


def test_who_does_not_come_is_listed(tmp_path: Path) -> None:
    machines = session(tmp_path)
    machines.dealt()
    path = machines.files["party 0"]
    path.write_text(path.read_text().replace("start = 120.0", "start = 0.5"))
    with pytest.raises(PeerLost) as raised:
        machines.playing("party 0", heard=0)()
    assert "party 1 (has not called), puller (has not called), payer (has not called)" in str(raised.value)
    assert not (tmp_path / "party-0/out/checkpoints").exists(), "nothing was kept"


def test_every_mistake_is_said_at_once(tmp_path: Path) -> None:
    path = session(tmp_path).files["party 0"]
    whole = path.read_text()
    text = whole.replace("party 1", "party 7").replace("round = 120.0", "round = -1\ntypo = 3")
    path.write_text(text.replace('session = "trial"\n', ""))
    with pytest.raises(ConfigError) as raised:
        load(path)
    for words in (
        "4 mistakes", "session is missing", "timeouts.round is a positive number of seconds, not -1",
        "timeouts.typo is unknown", '[peers."party 1"] is missing',
    ):  # fmt: skip
        assert words in str(raised.value), raised.value
    path.write_text(whole.replace(f"arms = {ARMS}", 'arms = "many"\ncolour = "red"'))
    with pytest.raises(ConfigError) as raised:
        prepared(load(path), PPCB())
    for words in (
        "options: argument --arms: how many, or their names with commas between them, not 'many'",
        "options: 'colour' is unknown: there are ",
    ):
        assert words in str(raised.value), raised.value
    shutil.copy(identity(9)[0] / CERTIFICATE_FILE, tmp_path / "party-0/peers/2.pem")
    os.chmod(tmp_path / "party-0/keys" / KEY_FILE, 0o644)
    path.write_text(whole)
    with pytest.raises(ConfigError) as raised:
        prepared(load(path), PPCB())
    for words in (
        "own: others than its owner may use", 'peers."puller": its certificate has another fingerprint than ',
        "material.store: ",
    ):  # fmt: skip
        assert words in str(raised.value), raised.value


def test_mistakes_of_a_file_and_of_what_it_names_are_said_at_once(tmp_path: Path) -> None:
    """Of all that can be judged at all: what follows from a mistake that was said already is not said."""
    path = session(tmp_path).files["party 0"]
    whole = path.read_text()
    shutil.copy(identity(9)[0] / CERTIFICATE_FILE, tmp_path / "party-0/peers/2.pem")
    os.chmod(tmp_path / "party-0/keys" / KEY_FILE, 0o644)
    (tmp_path / "party-0/data.npy").unlink()
    always = (
        "timeouts.round is a positive number of seconds, not -1",
        "timeouts.typo is unknown",
        "own: others than its owner may use",
        'peers."puller": its certificate has another fingerprint than ',
        "data: there is no file ",
        "material.store: there is no store at ",
    )
    whole = whole.replace("round = 120.0", "round = -1\ntypo = 3")
    more = {
        (f"arms = {ARMS}", 'arms = "many"\ncolour = "red"'): (
            "options: argument --arms: ",
            "options: 'colour' is ",
        ),
        ('program = "ppcb"', 'program = "chess"'): ("program is one of ppcb, ",),
        ('program = "ppcb"\n', ""): ("program is missing",),
        ('role = "party 0"', 'role = "party 9"'): ("there is no role 'party 9' in ppcb",),
        ('session = "trial"\n', ""): ("session is missing",),
    }
    for (old, new), words in more.items():
        assert old in whole
        path.write_text(whole.replace(old, new))
        config = read(path)
        with pytest.raises(ConfigError) as raised:
            fitting(config)
        said = str(raised.value).splitlines()
        for wanted in (*words, *always):
            assert sum(line.strip().startswith(wanted) for line in said) == 1, (wanted, said)
        assert len(said) == 1 + len(words) + len(always), said
        assert said[0] == f"{path} has {len(said) - 1} mistakes:"


def test_links_that_a_file_lacks_are_named(tmp_path: Path) -> None:
    machines = session(tmp_path)
    machines.dealt()
    path = machines.files["payer"]
    path.write_text(path.read_text().replace("[own]", '[own]\nlisten = "127.0.0.1:1"').replace("address", "#"))
    with pytest.raises(ConfigError, match=r'peers."party 0".address is missing: payer calls it') as raised:
        load(path)
    path.write_text(machines.files["party 0"].read_text().replace('[peers."payer"]', '[peers."buyer"]'))
    with pytest.raises(ConfigError) as raised:
        prepared(load(path), PPCB())
    for words in ('peers."buyer": there is no such role in ppcb', '[peers."payer"] is missing'):
        assert words in str(raised.value), raised.value


def test_a_cell_is_named_by_row_and_column_and_is_in_no_log(tmp_path: Path) -> None:
    machines = session(tmp_path, named=True)
    machines.dealt()
    file = tmp_path / "party-0/data.csv"
    lines = file.read_text().splitlines()
    for cell, words in (("SECRETHIV", "no number; write it as a number"), ("1.234,5", "no number; write it without")):
        first, _, *rest = lines[4].split(",")
        file.write_text("\n".join([*lines[:4], ",".join([first, f'"{cell}"', *rest]), *lines[5:]]))
        with pytest.raises(ConfigError, match=cell) as raised:
            prepared(load(machines.files["party 0"]), PPCB())
        for kept in (raised.value.told, raised.value.logged):
            assert cell not in kept and f"data: x0 of line 5 is {words}" in kept, kept


def test_rows_beyond_the_declared_norm_are_refused_before_anybody_is_called(tmp_path: Path) -> None:
    machines = session(tmp_path)
    machines.dealt()
    file = tmp_path / "party-1/data.npy"
    rows = np.load(file)
    rows[4:6] = 77.7
    np.save(file, rows)
    with pytest.raises(ConfigError, match=r"row 4 has norm 134\.\d+, declared is 1, and 2 of 12 rows exceed") as raised:
        prepared(load(machines.files["party 1"]), PPCB())
    assert "row 4 has norm ..., declared is 1" in raised.value.logged and "134" not in raised.value.logged


@pytest.mark.parametrize("count", [STEPS - 1, STEPS + 1])
def test_another_count_of_rows_than_the_run_takes_is_refused(count: int, tmp_path: Path) -> None:
    machines = session(tmp_path)
    machines.dealt()
    file = tmp_path / "party-1/data.npy"
    np.save(file, np.resize(np.load(file), (count, DIM // 2)))
    with pytest.raises(ConfigError, match=f"data: {count} rows, and this run takes {STEPS}: one for each context"):
        prepared(load(machines.files["party 1"]), PPCB())


def test_the_time_of_a_round_is_the_same_at_all_roles(tmp_path: Path) -> None:
    """Who waits less than others gives up on one whom they wait for still."""
    machines = session(tmp_path)
    machines.dealt()
    first, second = (machines.files[role] for role in ("party 0", "party 1"))
    second.write_text(second.read_text().replace("round = 120.0", "round = 60"))
    own, theirs = (prepared(load(file), PPCB()).member.public for file in (first, second))
    said = differences(own, theirs, "party 1")
    assert said == "party 1 disagrees on what is public: timeouts.round = 60.0 at party 1, 120.0 here"
