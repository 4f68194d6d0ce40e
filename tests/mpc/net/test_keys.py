"""Keys of two nodes, and proofs of them: each for one meeting, one side and these two nodes."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json

import pytest

from mpc.errors import ConfigError
from mpc.net.keys import KEY_BYTES, Keys, Meeting, keys_for

KEY, X, Y = b"k" * 32, b"x" * 32, b"y" * 32


def test_each_pair_has_a_key_of_its_own_and_nobody_else_has_it() -> None:
    """Two parties and two clients, who do not meet each other."""
    keys = keys_for([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)])
    for one, other in itertools.permutations(range(4), 2):
        assert keys[one].get(other) == keys[other].get(one)
    assert keys[2].get(3) is None and keys[0].get(0) is None
    drawn = [keys[one].get(other) for one, other in [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]]
    assert len(set(drawn)) == 5 and all(key is not None and len(key) == KEY_BYTES for key in drawn)


def test_keys_travel_as_json_to_their_one_node() -> None:
    keys = keys_for([(0, 1), (0, 65535)])
    back = Keys.from_json(json.loads(json.dumps(keys[0].as_json())))
    assert [back.get(other) for other in (1, 65535, 2)] == [keys[0].get(1), keys[0].get(65535), None]
    assert "hidden" in repr(back) and "hidden" in repr(Meeting(KEY, 0, 1, X, Y))
    with pytest.raises(ConfigError, match="32 bytes, that with node 1 has 16"):
        Keys({1: bytes(16)})


def test_a_proof_is_an_hmac_of_side_nodes_and_nonces() -> None:
    meeting = Meeting(KEY, 2, 0x1FF, X, Y)
    said = b"masked bandits, calls" + bytes([2, 0, 0xFF, 1]) + X + Y
    assert meeting.calls() == hmac.new(KEY, said, hashlib.sha256).digest()


def test_no_proof_serves_another_side_meeting_or_pair() -> None:
    meetings = [
        Meeting(key, caller, answerer, x, y)
        for key in (KEY, b"K" * 32)
        for caller, answerer in itertools.permutations((0, 1, 256), 2)
        for x, y in itertools.product((X, Y), repeat=2)
    ]
    proofs = [proof for meeting in meetings for proof in (meeting.calls(), meeting.answers())]
    assert len(set(proofs)) == len(proofs) == 2 * 2 * 6 * 4
