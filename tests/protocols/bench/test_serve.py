"""The service's load, faults and fuzz, in short."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from protocols.bench import serve_faults, serve_faults_between, serve_load
from protocols.bench.serve_process import serving

pytestmark = pytest.mark.needs("starlette", "uvicorn")


def test_a_service_that_is_killed_loses_nothing_that_it_answered() -> None:
    said: list[str] = []
    found = serve_faults.campaign(2, 3, said.append)
    assert not said and found["wrong"] == 0 and found["kills"] == 2
    assert found["arms_in_the_ledger"] >= found["decisions_told"] > 0


def test_roles_between_machines_that_are_killed_lose_nothing_that_they_answered() -> None:
    said: list[str] = []
    found = serve_faults_between.campaign(1, 5, 2, said.append)
    assert not said and found["wrong"] == 0 and found["of"].keys() == {"all"}
    assert found["arms_in_the_ledger"] >= found["decisions_told"] > found["rewards_answered"] > 0
    assert found["largest_deviation"] < 1e-4 and set(found["exits"].values()) == {130}


def test_a_reward_that_is_lost_shows_in_the_regressions() -> None:
    known = serve_faults_between.Known(told={0: "red", 1: "red", 2: "blue"}, rewards={0: 1.0, 1: 0.5})
    known.contexts |= {0: np.array([0.5, 0.0]), 1: np.array([0.0, 0.5]), 2: np.array([0.5, 0.5])}
    found = known.regressions()
    assert np.allclose(found[0], [[0.8, 0.0], [0.0, 0.8], [0.4, 0.2]])
    assert np.array_equal(found[1], found[2]) and not found[2][-1].any(), "nothing was paid for these"
    del known.rewards[1]
    assert np.abs(known.regressions() - found).max() > 0.1
    known.decided({"decision_id": 2, "arm": "red"})
    assert known.wrong == ["number 2 was given twice"]


def test_load_is_served_and_measured() -> None:
    with serving("--steps", "1000") as service:
        service.start()
        found = serve_load.measured(serve_load.Load(rate=20, seconds=1, batch=4, workers=2), service)
    assert found["asked"] == found["decisions"] == found["rewards"] == 20 and not found["refused"]
    assert 0 < found["predict_ms"]["p50"] <= found["predict_ms"]["p99"] <= found["predict_ms"]["max"]
    assert {"learning", "deciding", "keeping", "http"} <= set(found["processor_seconds"]) and json.dumps(found)


def test_requests_that_are_none_find_no_500(tmp_path: Path) -> None:
    from protocols.bench.serve_fuzz import fuzz

    found = fuzz(1500, 5, tmp_path / "service")
    assert not found["wrong"] and not found["log"], found
    assert not any(int(status) >= 500 for status in found["ends"] if status.isdecimal())
    assert found["ends"]["422"] > 200 and found["ends"]["200"] > 20 and found["ends"]["401"] > 20
