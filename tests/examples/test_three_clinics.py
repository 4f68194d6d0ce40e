"""The page of the three clinics: its file of a role is one, and its world speaks as a client between machines does."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mpc.errors import ConfigError
from protocols.commands.config import system_of
from protocols.run.config import load
from protocols.run.member_process import apart_of

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


def test_the_world_pays_what_it_was_made_with(tmp_path: Path) -> None:
    for clinic in range(3):
        (tmp_path / f"party-{clinic}").mkdir()
    runpy.run_path(str(PLACE / "world.py"))["make"](tmp_path, 5)
    outcomes = np.load(tmp_path / "world.npy")
    said = "".join(json.dumps({"decision": at, "values": [at % 4]}) + "\n" for at in range(5))
    done = subprocess.run(
        [sys.executable, str(PLACE / "world.py"), "be", str(tmp_path)], input=said, capture_output=True, text=True,
        timeout=120, check=True, env={"PYTHONPATH": str(PLACE.parents[1]), "PATH": ""},
    )  # fmt: skip
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told == [{"decision": at, "values": [float(outcomes[at, at % 4])]} for at in range(5)]
    assert (tmp_path / "party-2/features.csv").read_text().startswith("patient,age,pressure,marker\n")
