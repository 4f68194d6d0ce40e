"""The campaign of kills inside `save`, in short: each leaves a bandit that loads, with all that it told counted."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ..harness import ROOT


def test_a_bandit_that_is_killed_inside_save_loads_with_all_that_it_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "protocols.bench.save_kills", "--kills", "10", "--parties", "2", "--seed", "3"]
    done = subprocess.run(
        [*command, "--json", str(tmp_path / "kills.json")],
        capture_output=True, text=True, timeout=300, cwd=ROOT, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    kills = json.loads((tmp_path / "kills.json").read_text())
    assert len(kills) == 10 and all(kill["loads"] and kill["told"] == kill["counted"] > 0 for kill in kills)
    assert {kill["state"] for kill in kills} <= {"the save before", "this save"} and not any(k["twice"] for k in kills)
    assert len({kill["place"] for kill in kills}) > 4 and max(kill["link"] for kill in kills) > 0
    assert done.stdout.splitlines()[-1].startswith("| all | 10 | 10 |")
