"""What is a request, and what is refused before anybody looks into it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc.net.requests import Refused, Request, read_body, read_key

JSON = "application/json"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_json_is_read_as_it_was_sent(value: object) -> None:
    body, digest = read_body(json.dumps(value).encode(), f"{JSON}; charset=utf-8")
    assert body == value and len(digest) == 32


@given(st.binary(max_size=60))
def test_other_bytes_are_refused_in_a_sentence(raw: bytes) -> None:
    try:
        json.loads(raw.decode())
    except ValueError:
        with pytest.raises(Refused, match=r"no JSON.*: mend it") as caught:
            read_body(raw, JSON)
        assert caught.value.status == 400


@pytest.mark.parametrize(
    ("raw", "kind", "status", "said"),
    [
        (b"{}", "text/plain", 415, "send it with the header"),
        (b"{}", "", 415, "send it with the header"),
        (b'{"a": NaN}', JSON, 400, "NaN and infinities are no JSON"),
        (b'{"a": 1, "a": 2}', JSON, 400, "the same key twice"),
        (b"[" * 100_000, JSON, 400, "no JSON"),
        (b"9" * 5000, JSON, 400, "no JSON"),
        ("é".encode("utf-16"), JSON, 400, "no JSON"),
    ],
)
def test_what_does_not_say_what_it_seems_to_is_refused(raw: bytes, kind: str, status: int, said: str) -> None:
    with pytest.raises(Refused, match=said) as caught:
        read_body(raw, kind)
    assert caught.value.status == status


def test_a_key_is_short_and_printable() -> None:
    assert read_key(None) is None and read_key("order 17") == "order 17"
    for key in ("", "k" * 129, "é", "a\tb"):
        with pytest.raises(Refused, match="choose another"):
            read_key(key)


def test_a_request_shows_nothing_of_its_body() -> None:
    assert "0.25" not in repr(Request("payer", {"reward": 0.25}, "abcd", "key 7")) + str(Request("payer", 0.25))
