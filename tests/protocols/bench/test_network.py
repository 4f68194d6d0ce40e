"""The page of links has its ratios, missed goals are said, and where there are no namespaces all is on loopback."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mpc.errors import ConfigError
from protocols.bench import network
from protocols.bench.delay_line import delayed
from protocols.bench.network_page import Distance, Exchange, Results, Step, as_json, as_markdown, missed
from protocols.bench.network_party import GATHER, GLOO, TCP, TLS

HERE, FAR = Distance(None), Distance(40.0)
EXCHANGES = [
    *(Exchange(2, HERE, way, 8, time) for way, time in ((TLS, 60.0), (TCP, 40.0), (GLOO, 500.0), (GATHER, 240.0))),
    Exchange(2, FAR, TLS, 32_000, 41_000.0, 121_000.0),
    Exchange(2, FAR, TCP, 32_000, 40_000.0, 120_000.0),
]
STEPS = [Step(2, FAR, TLS, 588_000.0, 12.0, 2.0, 30_703.0), Step(2, FAR, TCP, 580_000.0, 12.0, 2.0, 30_703.0)]
RESULTS = Results(EXCHANGES, STEPS, [{"parties": 2, "delay": 40.0, "microseconds": 9e6}], ["torch is not installed."])


def test_the_page_has_the_ratios() -> None:
    page = as_markdown(RESULTS)
    assert "| 2 | loopback | 8 | 60 | 40 |  | 500 | 240 | 1.50 | 4.0 |" in page
    assert "| 2 | 40 | 32,000 | 121.0 | 120.0 |  | 3.0 | 1.0 |" in page
    assert "| 2 | 40 | 588.00 | 580.00 |  |  | 9,000 | 12 | 2 | 30,703 | 1.050 | 1.1 |" in page
    assert "torch is not installed." in page and json.loads(as_json(RESULTS))["steps"][0]["hops"] == 2.0


def test_missed_goals_are_said() -> None:
    assert missed(RESULTS) == []
    slow = [replace(row, microseconds=2.1 * row.microseconds) if row.way == TLS else row for row in EXCHANGES]
    steps = [replace(STEPS[0], microseconds=630_000.0)]
    assert missed(replace(RESULTS, exchanges=slow, steps=steps)) == [
        "N = 2: 8 bytes over TLS take 3.15 times TCP's, the goal is 2",
        "N = 2: TLS is 1.9 times faster than gloo, the goal is 2",
        "N = 2: a step over 40 ms takes 1.12 times what its messages do, the goal is 1.1",
    ]


def test_where_namespaces_are_refused_all_is_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise ConfigError("this machine refuses network namespaces (Operation not permitted): be root")

    monkeypatch.setattr(network, "delayed", refused)
    monkeypatch.setattr(network, "_set_up", lambda results, parties, distance, *_, **__: results.steps.append(distance))
    results = network.measure(quick=True, with_peer=False)
    assert results.steps == [HERE] and "be root; so all is on loopback." in results.notes[-1]


def test_what_a_line_lacks_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(ConfigError, match="made with 'ip' of iproute2: install it"), delayed(2, 1.0):
        pass
