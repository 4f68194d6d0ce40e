"""The hello inside a channel: whatever bytes come, it is a hello or one declared error; disagreements have names."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpc.errors import ConfigError
from mpc.net.hello import LIMIT, Hello, differences, digest_of, disagreement, judge


def hello(node: int, to: int, **public: Any) -> Hello:
    return Hello(
        1, node, to, "trial", f"{node:064x}", "", f"cert {node}", f"cert {to}", digest_of(public), "", "", 0, public
    )


values = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=30)
@given(st.dictionaries(st.text(max_size=9), values | st.text(max_size=9), max_size=5))
def test_it_travels_whole(public: dict[str, Any]) -> None:
    one = hello(1, 0, **public)
    heard = Hello.unpack(one.pack())
    assert heard == one and judge(hello(0, 1), heard, "party 1") == ""
    assert disagreement(hello(0, 1, **public), heard, "party 1") == ""


def parsed(raw: bytes) -> Hello | None:
    try:
        return Hello.unpack(raw)
    except ConfigError as error:
        assert str(error) == "it sends no hello of this release"
        return None


anything = st.recursive(
    values | st.text(max_size=70), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner)
)


@settings(max_examples=60)
@given(st.sampled_from(list(hello(1, 0).__dict__)), anything)
def test_any_field_that_does_not_fit_is_one_error(name: str, value: Any) -> None:
    fields = {**json.loads(hello(1, 0, arms=3).pack()), name: value}
    heard = parsed(json.dumps(fields).encode())
    if heard is not None:
        told = judge(hello(0, 1), heard, "party 1") + disagreement(hello(0, 1), heard, "party 1")
        assert told.isprintable() and len(told) < 2000


@settings(max_examples=60)
@given(st.binary(max_size=200), st.integers(0, 300), st.integers(0, 255))
def test_any_bytes_are_a_hello_or_one_error(raw: bytes, at: int, value: int) -> None:
    parsed(raw)
    changed = bytearray(hello(1, 0, arms=3).pack())
    changed[at % len(changed)] = value
    parsed(bytes(changed))


def test_numbers_that_are_none_and_depths_are_refused() -> None:
    whole = hello(1, 0, arms=3).pack().decode()
    for number in ("1e999", "NaN", "-Infinity", "9" * 5000):
        heard = parsed(whole.replace('"arms": 3', f'"arms": {number}').encode())
        assert heard is None
    assert parsed(b"[" * LIMIT) is None
    assert parsed(whole.replace("trial", "\\ud800").encode()) is not None
    with pytest.raises(ConfigError, match="shorten them"):
        hello(1, 0, text="x" * LIMIT).pack()


def test_a_difference_has_both_values_and_is_short() -> None:
    ours, theirs = {"arms": 3, "eps": 0.1, "name": "a"}, {"arms": 4, "eps": 0.1, "name": "\x1b[2J" + "b" * 500}
    told = differences(ours, theirs, "party 1")
    assert told.startswith("party 1 disagrees on what is public: arms = 4 at party 1, 3 here; name = '?[2Jbbb")
    assert told.isprintable() and len(told) < 300
    many = {f"p{i}": i for i in range(9)}
    assert differences(many, {}, "x").endswith("p2 = nothing at x, 2 here; and 6 more")
    lying = replace(hello(1, 0, arms=3), digest="0" * 64)
    assert "their hash, and no value" in disagreement(hello(0, 1, arms=3), lying, "party 1")
