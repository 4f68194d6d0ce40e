"""AES-GCM of many messages: each opens under its own label alone, and no label serves twice."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from mpc.errors import ConfigError
from protocols.published.sealing import KEY_BYTES, TAG_BYTES, Direction, Forged, Seal, fresh_key
from tests.forks import halves, refused

KEY = bytes(range(KEY_BYTES))
SLOTS = np.array([2, 0, 1])
TEXTS = [b"12345678", b"\0" * 8, b"\xff" * 8]


def pair() -> tuple[Seal, Seal]:
    return Seal(KEY, Direction.TO_COMP, 3), Seal(KEY, Direction.TO_OWNER, 3)


def test_what_was_sealed_opens() -> None:
    owners, comp = pair()
    for t in (1, 2, 1 << 40):
        for iteration in (1, 2):
            sealed = owners.seal(t, iteration, SLOTS, TEXTS)
            assert [len(message) for message in sealed] == [8 + TAG_BYTES] * 3
            assert comp.open(t, iteration, SLOTS, sealed) == TEXTS
            assert owners.open(t, iteration, SLOTS, comp.seal(t, iteration, SLOTS, [b"\1"] * 3)) == [b"\1"] * 3


@pytest.mark.parametrize(
    ("t", "iteration", "slots"), [(6, 1, [2, 0, 1]), (5, 2, [2, 0, 1]), (5, 1, [0, 2, 1]), (5, 1, [2, 0, 3])]
)
def test_it_opens_at_its_own_step_iteration_and_slot_alone(t: int, iteration: int, slots: list[int]) -> None:
    owners, comp = pair()
    sealed = owners.seal(5, 1, SLOTS, TEXTS)
    with pytest.raises(Forged) as caught:
        comp.open(t, iteration, np.array(slots), sealed)
    assert caught.value.places == [i for i in range(3) if (t, iteration) != (5, 1) or slots[i] != SLOTS[i]]


def test_it_opens_in_its_own_direction_alone() -> None:
    owners, _ = pair()
    with pytest.raises(Forged):
        owners.open(5, 1, SLOTS, owners.seal(5, 1, SLOTS, TEXTS))


def test_a_changed_byte_or_another_key() -> None:
    owners, comp = pair()
    sealed = owners.seal(5, 1, SLOTS, TEXTS)
    for at in range(8 + TAG_BYTES):
        bad = sealed[1][:at] + bytes([sealed[1][at] ^ 0x80]) + sealed[1][at + 1 :]
        with pytest.raises(Forged) as caught:
            comp.open(5, 1, SLOTS, [sealed[0], bad, sealed[2]])
        assert caught.value.places == [1]
    with pytest.raises(Forged) as caught:
        Seal(fresh_key(), Direction.TO_OWNER, 3).open(5, 1, SLOTS, sealed)
    assert caught.value.places == [0, 1, 2]


def test_a_replay_is_known_as_one() -> None:
    owners, comp = pair()
    old = owners.seal(5, 2, SLOTS, TEXTS)[0]
    assert comp.made_for(old, range(9, 0, -1), 2, 3) == 5
    assert comp.made_for(old, range(9, 5, -1), 2, 3) is None
    assert comp.made_for(old, range(9, 0, -1), 1, 3) is None
    assert comp.made_for(b"x" * 24, range(9, 0, -1), 2, 3) is None


@pytest.mark.parametrize("again", [(5, 2), (5, 1), (4, 9)])
def test_no_nonce_serves_twice(again: tuple[int, int]) -> None:
    owners, _ = pair()
    owners.seal(5, 2, SLOTS, TEXTS)
    with pytest.raises(ConfigError, match="was sealed before: a nonce serves once"):
        owners.seal(*again, SLOTS, TEXTS)


def test_no_nonce_serves_both_halves_of_a_fork() -> None:
    refused(halves(
        """
import numpy as np
from protocols.published.sealing import Direction, Seal, fresh_key

seal = Seal(fresh_key(), Direction.TO_COMP, 1)
half("seal", lambda: seal.seal(1, 1, np.array([0]), [b"text"]))
"""
    ))  # fmt: skip


def test_labels_are_nonce_and_associated_data_and_distinct() -> None:
    used: list[tuple[bytes, bytes]] = []

    class Noting:
        def encrypt(self, nonce: bytes, text: bytes, associated: bytes) -> bytes:
            used.append((nonce, associated))
            return text

    seals: tuple[Any, Any] = pair()
    for seal in seals:
        seal._cipher = Noting()
        for t in (1, 2, 256, 1 << 33):
            for iteration in (1, 2):
                seal.seal(t, iteration, SLOTS, TEXTS)
    assert all(nonce == associated and len(nonce) == 12 for nonce, associated in used)
    assert len(set(used)) == len(used) == 2 * 4 * 2 * 3


def test_a_key_is_one_and_stays_here() -> None:
    for wrong in (b"", bytes(16), bytes(33)):
        with pytest.raises(ConfigError, match=f"32 bytes, this one {len(wrong)}"):
            Seal(wrong, Direction.TO_COMP, 1)
    seal, _ = pair()
    assert repr(seal) == "Seal(key hidden)"
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(seal)
    assert fresh_key() != fresh_key()
