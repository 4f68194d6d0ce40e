"""The service's load, faults and fuzz, in short."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from protocols.bench import serve_faults, serve_load
from protocols.bench.serve_process import serving

pytestmark = pytest.mark.needs("starlette", "uvicorn")


def test_a_service_that_is_killed_loses_nothing_that_it_answered() -> None:
    said: list[str] = []
    found = serve_faults.campaign(2, 3, said.append)
    assert not said and found["wrong"] == 0 and found["kills"] == 2
    assert found["arms_in_the_ledger"] >= found["decisions_told"] > 0


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
