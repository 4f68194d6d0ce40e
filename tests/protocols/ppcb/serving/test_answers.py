"""A request with a key is served once: asked again, it gets the answer of the first time."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from mpc.net.requests import Answer, Refused, Request
from protocols.ppcb.serving.answers import Answers, Keyed


def request(key: str | None, digest: str = "d", role: str = "puller") -> Request:
    return Request(role, None, digest, key)


def test_the_same_request_waits_for_the_same_answer() -> None:
    answers, future, asked = Answers(), Future[Answer](), list[Request]()

    def ask(given: Request) -> Future[Answer]:
        asked.append(given)
        return future

    first, second = (answers.once("predict", request("k"), ask) for _ in range(2))
    assert first is second is future and len(asked) == 1
    assert answers.once("predict", request(None), ask) and len(asked) == 2, "without a key each is its own"
    with pytest.raises(Refused, match="of another request") as caught:
        answers.once("predict", request("k", "other body"), ask)
    assert caught.value.status == 409
    with pytest.raises(Refused):
        answers.once("reward", request("k"), ask)
    answers.once("predict", request("k", role="payer"), ask)
    assert len(asked) == 3, "a key is its role's own"
    future.set_result({"arm": 1})
    assert {(each.role, each.answer["arm"]) for each in answers.given()} == {("puller", 1), ("payer", 1)}


def test_what_was_refused_is_asked_anew_and_what_was_kept_is_known() -> None:
    answers = Answers()
    refused, later = Future[Answer](), Future[Answer]()
    answers.once("reward", request("k"), lambda _: refused)
    refused.set_exception(Refused(503, "later"))
    assert answers.once("reward", request("k"), lambda _: later) is later
    answers.put([Keyed("puller", "old", "predict d", {"arm": 2})])
    assert answers.once("predict", request("old"), lambda _: later).result() == {"arm": 2}


def test_the_latest_are_kept() -> None:
    answers = Answers(most=3)
    for at in range(5):
        future = Future[Answer]()
        answers.once("predict", request(f"k{at}"), lambda _, future=future: future)
        future.set_result({"at": at})
    assert [each.key for each in answers.given()] == ["k2", "k3", "k4"] and len(answers) == 3
