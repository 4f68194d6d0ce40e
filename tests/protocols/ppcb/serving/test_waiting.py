"""Parts of contexts wait for each other, so many and so long."""

from __future__ import annotations

import numpy as np
import pytest

from mpc.net.requests import Refused
from protocols.ppcb.serving.waiting import Waiting

BLOCKS = {0: slice(0, 2), 2: slice(2, 3)}


def test_parts_come_in_any_order_to_their_columns() -> None:
    waiting = Waiting(BLOCKS, 1.0)
    waiting.put(2, ["b", "a"], [[0.3], [0.6]])
    waiting.put(0, ["a", "b"], [[0.1, 0.2], [0.4, 0.5]])
    assert np.array_equal(waiting.take(["b", "a"]).rows, [[0.4, 0.5, 0.3], [0.1, 0.2, 0.6]]) and not len(waiting)


def test_what_is_put_back_waits_again_beside_what_came_meanwhile() -> None:
    now = [0.0]
    waiting = Waiting(BLOCKS, 1.0, longest=10.0, clock=lambda: now[0])
    for name in ("a", "b"):
        waiting.put(0, [name], [[0.1, 0.2]])
        waiting.put(2, [name], [[0.3]])
    taken = waiting.take(["a", "b"])
    assert len(taken) == 2 and not len(waiting) and "0.1" not in repr(taken)
    now[0] = 6.0
    waiting.put(0, ["b"], [[0.4, 0.5]])
    taken.put_back()
    now[0] = 15.0
    assert np.array_equal(waiting.take(["a", "b"]).rows, [[0.1, 0.2, 0.3], [0.4, 0.5, 0.3]]), "its time begins anew"


def test_so_many_wait_and_for_so_long() -> None:
    now = [0.0]
    waiting = Waiting(BLOCKS, 1.0, most=2, longest=10.0, clock=lambda: now[0])
    waiting.put(0, ["a"], [[0.1, 0.2]])
    now[0] = 6.0
    waiting.put(0, ["b"], [[0.1, 0.2]])
    with pytest.raises(Refused, match="2 contexts wait") as caught:
        waiting.put(0, ["c"], [[0.1, 0.2]])
    assert caught.value.status == 429 and caught.value.retry is not None
    waiting.put(2, ["a", "b"], [[0.3], [0.3]])
    now[0] = 11.0
    with pytest.raises(Refused, match="waited longer than 10 s"):
        waiting.take(["a"])
    assert waiting.take(["b"]).rows.shape == (1, 3)


def test_who_has_no_features_sends_none() -> None:
    with pytest.raises(Refused, match="owner 1 has no features"):
        Waiting(BLOCKS, 1.0).put(1, ["a"], [[]])
