"""Owners, puller and payer as ranks of torchrun: a run that keeps nothing, and mistakes that are said once."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from protocols.cli import main
from protocols.run.folder import reserved
from tests.parties.torchrun import torchrun

from .commands import SMALL

pytestmark = pytest.mark.needs("torch")


def ranks(cwd: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Two owners, the puller and the payer."""
    return torchrun(4, "-m", "protocols", "ppcb", *SMALL, *options, cwd=cwd, load=["protocols.ppcb.command"])


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For a run with late rewards, in which a fast rank 0 could overtake the puller's notes."""
    home = tmp_path_factory.mktemp("dealt")
    plan, bandit = home / "plan.json", ("--arms", "4", "--dim", "8", "--parties", "2", "--eps", "0.2", "--delay", "2")
    for command in (
        ("plan", "ppcb", *bandit, "-o", str(plan)),
        ("deal", str(plan), "--steps", "12", "--out", str(home / "material")),
    ):
        main(("offline", *command))
    return home / "material"


def test_json_alone_leaves_everything_as_it_was(tmp_path: Path, material: Path) -> None:
    """In the working folder, where a run kept something before, and among temporary files."""
    kept = tmp_path / "runs" / "ppcb" / "checkpoints" / "arms.bin"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(b"of an earlier run")
    done = ranks(tmp_path, "--steps", "12", "--delay", "2", "--json", "--material", str(material))
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["steps"], facts["parties"], facts["rounds_per_step"]) == (12, 2, 9)
    left = [path for path in tmp_path.rglob("*") if path.is_file() and "torchelastic" not in str(path)]
    assert left == [kept] and kept.read_bytes() == b"of an earlier run"
    assert not list(tmp_path.glob("masked-*"))


def test_a_mistake_is_said_by_one_rank_and_at_the_end_of_the_report(tmp_path: Path, material: Path) -> None:
    """A folder that is in use: rank 0 alone meets that."""
    with reserved(tmp_path / "run" / "checkpoints"):
        done = ranks(tmp_path, "--steps", "12", "--delay", "2", "--out", "run", "--material", str(material))
    said = f"error: process {os.getpid()} has a run in run/checkpoints: wait for its end, or choose another --out"
    lines = done.stderr.splitlines()
    assert done.returncode != 0 and done.stdout == ""
    assert lines.count(said) == 1 and lines[-2] == f"  traceback : {said}"
    assert "<NO_OTHER_FAILURES>" in done.stderr
