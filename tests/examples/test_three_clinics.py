"""The page of the three clinics: its file of a role is one, and its world speaks as a client between machines does."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from bandits.csv_table import read_rows
from mpc.errors import ConfigError
from protocols.commands.config import system_of
from protocols.run.config import load
from protocols.run.member_process import apart_of

from .written import meet, written

PLACE = Path(__file__).resolve().parents[2] / "examples/three_clinics"


def test_the_file_of_the_page_lacks_the_other_peers_alone(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", (PLACE / "README.md").read_text(), re.M | re.S)
    path = tmp_path / "role.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r'has 1 mistake:\n  \[peers."party 2"\] is missing$'):
        load(path)
    more = '\n[peers."party 2"]\ncertificate = "peers/party-2.pem"\nfingerprint = "..."\n'
    path.write_text(text + more)
    config = load(path)
    apart = apart_of(system_of(config.program), config)
    assert (config.role, config.round, apart.decisions) == ("party 0", 3600.0, 200)
    assert apart.brings(config.role).columns == len(config.columns)


def test_the_files_of_the_clinics_are_those_that_are_made(tmp_path: Path) -> None:
    world = runpy.run_path(str(PLACE / "world.py"))
    world["make"](tmp_path)
    for clinic in world["CLINICS"]:
        assert (tmp_path / clinic / "features.csv").read_text() == (PLACE / clinic / "features.csv").read_text()


def test_the_world_pays_what_it_was_made_with() -> None:
    outcomes = runpy.run_path(str(PLACE / "world.py"))["WORLD"].outcomes
    said = "".join(json.dumps({"decision": at, "values": [at % 4]}) + "\n" for at in range(5))
    done = subprocess.run(
        [sys.executable, str(PLACE / "world.py"), "be"], input=said, capture_output=True, text=True,
        timeout=120, check=True, env={"PYTHONPATH": str(PLACE.parents[1]), "PATH": ""},
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told == [{"decision": at, "values": [float(outcomes[at, at % 4])]} for at in range(5)]


SCRIPTS = {
    "party-0": "clinic-a/start", "party-1": "clinic-b/start", "party-2": "clinic-c/start", "puller": "ward/start",
    "payer": "office/start",
}  # fmt: skip


def test_every_role_has_a_script_that_writes_a_file_that_fits(tmp_path: Path) -> None:
    files = written(PLACE, SCRIPTS, tmp_path, steps=7)
    meet(files)
    patients = apart_of(system_of("ppcb"), files["party-0"]).decisions
    calls = {role: sum(peer.address is not None for peer in config.peers.values()) for role, config in files.items()}
    assert calls == {"party-0": 0, "party-1": 1, "party-2": 2, "puller": 3, "payer": 3}
    for role in ("party-0", "party-1", "party-2"):
        assert files[role].data == PLACE / SCRIPTS[role].split("/")[0] / "features.csv"
        rows, ids = read_rows(files[role].data, by="patient")
        assert len(rows) == len(ids) == patients, "a file of more rows than the run takes is refused"
