"""The program of docs/your-own-program.md: what it was given for nothing works for it as for the others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.auction import SELLER, Auction, Auctions
from protocols.cli import main as masked
from protocols.run.launch import Processes, launch
from protocols.run.options import main
from protocols.run.simulate import simulate

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "examples" / "auction.py"
LIMIT = 300.0
Output = pytest.CaptureFixture[str]


def called(capsys: Output, *arguments: str) -> str:
    """What the script says, in this process; it is a process of its own where it is stopped."""
    capsys.readouterr()
    main(Auction(), arguments)
    return capsys.readouterr().out


def test_the_program_is_as_short_as_its_page_says() -> None:
    assert len(SCRIPT.read_text().splitlines()) < 150


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.integers(0, 2**31 - 2), min_size=4, max_size=4), min_size=1, max_size=4))
def test_auctions_are_those_in_the_clear(bids: list[list[int]]) -> None:
    """Ties and extremes included."""
    run = simulate(Auctions(2, len(bids), 4, np.array(bids)), seed=1)
    assert run.equal
    assert run.sales[:, 1].tolist() == [sorted(row)[-2] for row in bids]


@pytest.mark.parametrize("parties", [2, 3])
def test_a_launch_sells_at_the_same_prices(parties: int) -> None:
    bids = np.random.default_rng(3).integers(0, 1000, (6, 3))
    alone = simulate(Auctions(parties, 6, 3, bids), seed=1)
    run = launch(Auctions(parties, 6, 3, bids), Processes(timeout=100.0))
    assert run.equal and (run.sales == alone.sales).all() and run.surplus == alone.surplus
    assert run.ended.ledger == alone.ended.ledger
    assert [(entry.role, entry.count) for entry in run.ended.ledger] == [(SELLER, 12), ("regulator", 1)]
    assert run.ended.played.rounds == alone.ended.played.rounds == 10 * 6


def test_the_command_line_runs_launches_and_plans(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output
) -> None:
    monkeypatch.chdir(tmp_path)
    size = ("--items", "5", "--bidders", "3", "--seed", "4")
    facts: list[dict[str, Any]] = [
        json.loads(called(capsys, how, "auction", *size, "--json")) for how in ("run", "launch")
    ]
    assert facts[0]["revenue"] == facts[1]["revenue"] and all(each["equal_twin"] for each in facts)
    assert not list(tmp_path.iterdir()), "--json alone writes nothing"
    called(capsys, "plan", "auction", *size[:4], "-o", "plan.json")
    masked(("offline", "deal", "plan.json", "--steps", "5", "--out", "material"))
    dealt = json.loads(called(capsys, "launch", "auction", *size, "--material", "material", "--json"))
    assert dealt["revenue"] == facts[0]["revenue"] and dealt["equal_twin"]


def test_a_launch_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    """The seller's notes and the parties' shares of the surplus are there after Ctrl-C."""
    size = ("--items", "200", "--bidders", "3", "--checkpoint-every", "20", "--out", "sale")
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), "launch", "auction", *size], cwd=tmp_path, text=True, stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    deadline = time.monotonic() + LIMIT
    while not list(tmp_path.rglob("party-1/checkpoint-*")):
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT)
    assert process.returncode == 130 and "go on with --resume and --out sale" in said, said
    monkeypatch.chdir(tmp_path)
    facts = json.loads(called(capsys, "launch", "auction", *size, "--resume", "--json"))
    assert facts["items"] == 200 and facts["equal_twin"]
