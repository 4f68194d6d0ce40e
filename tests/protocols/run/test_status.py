"""What a watched role shows: counts and states, in words that Prometheus reads, and no value of a user."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from dataclasses import replace

import pytest

from mpc.errors import ConfigError, PeerLost, RangeError
from mpc.meter import Cost
from mpc.net.pages import serving, url_of
from protocols.run.status import Status

LINE = re.compile(r'^[a-z_]+\{([a-z_]+="([^"\\]|\\.)*",?)+\} -?[0-9.e+-]+$')


def status() -> Status:
    ticks = iter(range(1000))
    return Status(
        "party 0", "trial", "ppcb", 50, cost=lambda: Cost(24, 7, 900, 128, 3, 1.5),
        labels=lambda: {"learn": Cost(rounds=3, sent_bytes=50, seconds=0.5)}, stock=lambda: 720,
        clock=lambda: float(next(ticks)),
    )  # fmt: skip


def rows(text: str) -> dict[str, float]:
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(LINE.match(line) for line in lines), text
    own = 'role="party 0",session="trial",program="ppcb"'
    assert all(own in line for line in lines)
    pairs = (line.replace(f"{own},", "").replace(own, "").rsplit(" ", 1) for line in lines)
    return {key: float(value) for key, value in pairs}


def test_counts_the_pace_and_how_long_the_material_lasts() -> None:
    watched = status()
    assert "masked_material_hours" not in watched.metrics()[2], "nobody knows the pace yet"
    watched.made(1)
    watched.made(3)
    found = rows(watched.metrics()[2])
    assert found['masked_up{state="running"}'] == 1 and found["masked_decisions_total{}"] == 3
    assert found["masked_rounds_total{}"] == 24 and found["masked_sent_bytes_total{}"] == 900
    assert found["masked_seconds_total{}"] == 1.5 and found['masked_label_seconds_total{label="learn"}'] == 0.5
    assert found['masked_label_rounds_total{label="learn"}'] == 3
    assert found['masked_label_sent_bytes_total{label="learn"}'] == 50
    assert found["masked_material_steps{}"] == 720 and found["masked_material_hours{}"] == pytest.approx(
        720 * 0.5 / 3600
    )


def test_an_error_is_told_without_its_value() -> None:
    watched = status()
    watched.failed(RangeError("a block of party 0 has norm {}, declared is 1", own="4711.5"))
    code, _, text = watched.health()
    assert code == 503 and json.loads(text)["last_error"] == "a block of party 0 has norm ..., declared is 1"
    assert "4711" not in watched.metrics()[2] and 'kind="RangeError"' in watched.metrics()[2]
    watched.failed(ValueError("4711"))
    assert "4711" not in watched.metrics()[2] + watched.health()[2]
    watched.failed(PeerLost('party 1 "left"\n\\', peer=1))
    assert r'words="party 1 \"left\" \\"' in watched.metrics()[2]


def test_who_waits_for_another_says_so_until_a_decision_is_made() -> None:
    watched = status()
    watched.made(1)
    watched.waits(PeerLost("party 1 is lost in round 7", peer=1))
    code, _, text = watched.health()
    assert code == 200 and json.loads(text)["state"] == "waiting"
    assert json.loads(text)["last_error"] == "party 1 is lost in round 7"
    assert rows(watched.metrics()[2])['masked_up{state="waiting"}'] == 1
    watched.made(2)
    found = rows(watched.metrics()[2])
    assert found['masked_up{state="running"}'] == 1 and found["masked_lost_total{}"] == 1
    assert 'words="party 1 is lost in round 7"' in watched.metrics()[2], "the last error stays to be read"


def test_prometheus_own_parser_reads_what_was_meant() -> None:
    """Names, kinds, words and values, whatever is in a label."""
    parser = pytest.importorskip("prometheus_client.parser", reason="the extra 'test' is not installed")
    named = 'a "session" \\ of\nthree, {é}'
    watched = replace(status(), session=named, kind="PeerLost", error='party 1 "left"\n\\')
    families = {family.name: family for family in parser.text_string_to_metric_families(watched.metrics()[2])}
    assert {family.type for family in families.values()} == {"counter", "gauge"}
    assert all(family.documentation for family in families.values())
    assert all(
        (sample.name == f"{family.name}_total") == (family.type == "counter")
        for family in families.values()
        for sample in family.samples
    )
    own = {"role": "party 0", "session": named, "program": "ppcb"}
    assert all(own.items() <= sample.labels.items() for family in families.values() for sample in family.samples)
    (bytes_sent,) = families["masked_sent_bytes"].samples
    assert bytes_sent.value == 900 and bytes_sent.labels == own
    (error,) = families["masked_last_error_info"].samples
    assert (error.labels["kind"], error.labels["words"]) == ("PeerLost", 'party 1 "left"\n\\')


def test_pages_are_of_this_machine_alone() -> None:
    watched = status()
    with serving(("127.0.0.1", 0), watched.pages()) as (host, port):
        for path, kind in (
            ("/healthz", "application/json"),
            ("/metrics?x", "text/plain; version=0.0.4; charset=utf-8"),
        ):
            with urllib.request.urlopen(f"http://{host}:{port}{path}", timeout=300) as answer:
                assert answer.status == 200 and answer.headers["Content-Type"] == kind and answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(f"http://{host}:{port}/etc", timeout=300)
        with pytest.raises(ConfigError, match="cannot listen on"), serving((host, port), {}):
            pass
    with serving(("::1", 0), watched.pages()) as where:
        assert urllib.request.urlopen(f"{url_of(*where)}/healthz", timeout=300).status == 200
    for other in ("0.0.0.0", "10.0.0.1", "example.org"):
        with pytest.raises(ConfigError, match="of this machine alone"), serving((other, 0), {}):
            pass
