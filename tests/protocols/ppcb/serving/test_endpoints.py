"""Contexts by parts, arms for them, and rewards: what is asked, and what is refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc.net.requests import ANYONE, Refused, Request
from protocols.ppcb.serving.described import page
from protocols.ppcb.serving.endpoints import roles_of
from protocols.ppcb.serving.service import Wanted

from .services import PARTS, Asked, asked


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    with asked(tmp_path_factory.mktemp("service") / "trial") as made:
        yield made


def test_an_arm_for_a_context_of_all_owners_and_a_reward_for_it(service: Asked) -> None:
    service.send("v")
    told = service.ask("puller", "/predict", {"id": "v"})
    assert told["arm"] in ("a", "b") and service.pay(told["decision_id"]) == {"learned": 1}
    assert service.status("puller", "/predict", {"id": "v"}) == 404, "it was decided on"
    many = service.decide("w", "x", "y")
    numbers = [each["decision_id"] for each in many]
    assert numbers == list(range(numbers[0], numbers[0] + 3)) and numbers[0] > told["decision_id"]
    rewards = [{"decision_id": number, "reward": 0.5} for number in reversed(numbers)]
    assert service.ask("payer", "/reward", {"rewards": rewards}) == {"learned": 3}


def test_a_context_waits_for_all_its_parts(service: Asked) -> None:
    service.ask("owner 0", "/context", {"id": "half", "features": PARTS["owner 0"]})
    with pytest.raises(Refused, match=r"context 'half' lacks the part of owner 1.*send it to /context") as caught:
        service.ask("puller", "/predict", {"id": "half"})
    assert caught.value.status == 404
    assert service.status("owner 0", "/context", {"id": "half", "features": PARTS["owner 0"]}) == 200, "the same again"
    assert service.status("owner 0", "/context", {"id": "half", "features": [0.0, 0.0]}) == 409
    service.ask("owner 1", "/context", {"id": "half", "features": PARTS["owner 1"]})
    assert service.status("puller", "/predict", {"ids": ["half", "none"]}) == 404
    assert service.status("puller", "/predict", {"ids": ["half"]}) == 200, "what was refused has taken nothing"


@pytest.mark.parametrize(
    ("role", "path", "body", "status"),
    [
        ("owner 0", "/context", {"id": "r", "features": [0.1]}, 422),
        ("owner 0", "/context", {"id": "r", "features": [0.9, 0.9]}, 422),
        ("owner 0", "/context", {"id": "r", "features": [1e999, 0.0]}, 422),
        ("owner 0", "/context", {"id": "r", "features": [1e200, 1e200]}, 422),
        ("owner 0", "/context", {"id": "r", "features": [True, 0.0]}, 422),
        ("owner 0", "/context", {"id": "r", "features": [10**400, 0.0]}, 422),
        ("owner 0", "/context", {"id": "r", "features": "0.1"}, 422),
        ("owner 0", "/context", {"id": "", "features": [0.1, 0.1]}, 422),
        ("owner 0", "/context", {"id": "a" * 129, "features": [0.1, 0.1]}, 422),
        ("owner 0", "/context", {"id": "r", "features": [0.1, 0.1], "owner": 1}, 403),
        ("owner 0", "/context", {"id": "r", "features": [0.1, 0.1], "more": 1}, 422),
        ("owner 0", "/context", {"contexts": [{"id": "r", "features": [0.1, 0.1]}] * 2}, 422),
        ("owner 0", "/context", {"contexts": []}, 422),
        ("owner 0", "/context", {}, 422),
        ("puller", "/predict", [], 422),
        ("puller", "/predict", {"id": 3}, 422),
        ("puller", "/predict", {"ids": ["q"] * 2}, 422),
        ("puller", "/predict", {"ids": [str(at) for at in range(1025)]}, 413),
        ("payer", "/reward", {"decision_id": 0, "reward": 1.5}, 422),
        ("payer", "/reward", {"decision_id": 0.0, "reward": 1}, 422),
        ("payer", "/reward", {"decision_id": True, "reward": 1}, 422),
        ("payer", "/reward", {"decision_id": -1, "reward": 1}, 422),
        ("payer", "/reward", {"decision_id": 1 << 62, "reward": 1}, 422),
        ("payer", "/reward", {"decision_id": (1 << 62) - 1, "reward": 1}, 404),
        ("payer", "/reward", {"decision_id": 0}, 422),
        ("payer", "/reward", {"rewards": [{"decision_id": 0, "reward": 1}, 3]}, 422),
        ("payer", "/reward", None, 422),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    service: Asked, role: str, path: str, body: Any, status: int
) -> None:
    before = service.told(), service.service.found.bandit.learned
    assert service.status(role, path, body) == status
    assert (service.told(), service.service.found.bandit.learned) == before and not service.log


def test_a_refusal_says_no_feature(service: Asked) -> None:
    with pytest.raises(Refused, match=r"bound is 1: scale them") as caught:
        service.ask("owner 0", "/context", {"id": "secret", "features": [0.987, 0.876]})
    assert "1.3" not in str(caught.value) and "987" not in str(caught.value)


NAMES = ["id", "ids", "features", "contexts", "rewards", "decision_id", "reward"]
BODIES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner),
    max_leaves=8,
)


@given(BODIES)
def test_no_body_is_an_error_of_ours(service: Asked, body: Any) -> None:
    for role, path in (("owner 0", "/context"), ("puller", "/predict"), ("payer", "/reward")):
        service.status(role, path, body)
    assert not service.log and not service.service.measures.failed


def test_without_tokens_the_body_says_whose_part_it_is(service: Asked) -> None:
    context = service.endpoints["/context"].call
    assert context(Request(ANYONE, {"id": "open", "features": [0.1, 0.1], "owner": 0})) == {"received": 1}
    for owner in ({}, {"owner": 2}, {"owner": True}, {"owner": "0"}):
        with pytest.raises(Refused, match="one of 0, 1"):
            context(Request(ANYONE, {"id": "open", "features": [0.1, 0.1], **owner}))


def test_pages_say_how_it_stands_and_what_is_asked(service: Asked) -> None:
    pages = service.service.endpoints.pages()
    status, _, text = pages["/healthz"]()
    assert status == 200 and json.loads(text)["state"] == "serving"
    assert sum(entry["count"] for entry in json.loads(pages["/ledger"]()[2])) == service.told()
    metrics = dict(line.rsplit(" ", 1) for line in pages["/metrics"]()[2].splitlines() if not line.startswith("#"))
    assert float(metrics["masked_serve_learned"]) == service.service.found.bandit.learned
    assert float(metrics["masked_serve_decisions_total"]) == service.told()
    document = json.loads(pages["/openapi.json"]()[2])
    assert set(document["paths"]) == set(service.endpoints) | set(pages) - {"/docs", "/openapi.json"}
    shown = page(document)
    assert "/predict" in shown and not any(word in shown for word in ("http:", "https:", "src=", "<script"))


def test_roles_are_those_who_have_something_to_ask(tmp_path: Path) -> None:
    with asked(tmp_path, Wanted(arms=3, owners=[2, 0, 1])) as made:
        settings = made.service.found.bandit.settings
        assert roles_of(settings) == ("owner 0", "owner 2", "puller", "payer", "watcher")
        for role, row in (("owner 0", [0.1, 0.2]), ("owner 2", [0.3])):
            made.ask(role, "/context", {"id": "v", "features": row})
        assert made.ask("puller", "/predict", {"id": "v"})["arm"] in (0, 1, 2)
