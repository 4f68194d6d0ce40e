"""The header: what goes in comes out, and bytes that are no header are a Desync and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpc.errors import DEALER, ConfigError, Desync, PeerLost, Told, told_to_peers
from mpc.net.frames import (
    HEADER_BYTES,
    WORDS_LIMIT,
    Header,
    Kind,
    Nodes,
    aborted,
    expect,
    farewell,
    pack,
    unpack,
    went_on,
)
from mpc.net.transport import Stamp

LONG = st.integers(0, 2**64 - 1)
TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=150)


@given(st.sampled_from(Kind), st.integers(0, 2**16 - 1), LONG, LONG, st.binary(min_size=8, max_size=8), TEXT)
def test_round_trip(kind: Kind, sender: int, round_: int, length: int, digest: bytes, position: str) -> None:
    raw = pack(kind, sender, Stamp(round_, digest, position), length)
    assert len(raw) == HEADER_BYTES
    header = unpack(raw, sender)
    end = position.encode()[-96:].decode(errors="replace")
    assert header == Header(kind, sender, round_, length, digest, end)


@given(TEXT, TEXT)
def test_a_long_position_still_agrees_with_itself_alone(ours: str, theirs: str) -> None:
    stamp = Stamp(3, bytes(8), ours)
    expect(unpack(pack(Kind.DATA, 1, stamp, 8), 1), 1, stamp, 8, Nodes(2), 0)
    other = unpack(pack(Kind.DATA, 1, Stamp(3, bytes(8), theirs), 8), 1)
    if ours.encode()[-96:] == theirs.encode()[-96:]:
        expect(other, 1, stamp, 8, Nodes(2), 0)
    elif ours.encode()[-93:] != theirs.encode()[-93:]:
        with pytest.raises(Desync):
            expect(other, 1, stamp, 8, Nodes(2), 0)


def test_the_innermost_end_of_a_position_is_kept() -> None:
    position = ">".join(["äußere:1"] * 30 + ["innermost:17"])
    header = unpack(pack(Kind.DATA, 0, Stamp(1, bytes(8), position), 0), 0)
    assert header.position.endswith(">innermost:17")


def test_even_a_lone_surrogate_can_be_sent() -> None:
    stamp = Stamp(1, bytes(8), "f\udc80:1")
    expect(unpack(pack(Kind.DATA, 1, stamp, 0), 1), 1, stamp, 0, Nodes(2), 0)


@given(st.binary(max_size=300) | st.binary(min_size=HEADER_BYTES, max_size=HEADER_BYTES))
def test_garbage_is_desync(raw: bytes) -> None:
    with pytest.raises(Desync, match="party 4 sends is no message"):
        unpack(raw, 4)


@given(st.integers(0, HEADER_BYTES - 1), st.integers(1, 255))
def test_a_flipped_byte_is_refused_or_seen(at: int, flip: int) -> None:
    """Also where a byte makes bad UTF-8: no other exception leaves."""
    stamp = Stamp(5, b"digested", "program:9>mul:3")
    raw = bytearray(pack(Kind.DATA, 1, stamp, 64))
    raw[at] ^= flip
    try:
        header = unpack(bytes(raw), 1)
    except Desync:
        return
    if header.kind is not Kind.ABORT:
        with pytest.raises(Desync):
            expect(header, 1, stamp, 64, Nodes(2), 0)


@pytest.mark.parametrize(
    "change", [{"round_": 6}, {"digest": b"other   "}, {"position": "program:9>mul:4"}, {"length": 65}, {"sender": 0}]
)
def test_each_field_counts(change: dict) -> None:
    fields = {"round_": 5, "digest": b"digested", "position": "program:9>mul:3", "length": 64, "sender": 1, **change}
    stamp = Stamp(5, b"digested", "program:9>mul:3")
    raw = pack(
        Kind.DATA, fields["sender"], Stamp(fields["round_"], fields["digest"], fields["position"]), fields["length"]
    )
    with pytest.raises(Desync):
        expect(unpack(raw, 1), 1, stamp, 64, Nodes(2), 0)


def test_words_of_a_peer_command_no_terminal() -> None:
    wild = "a\rerror: all is lost\x1b[2J\u202e"
    words = [str(aborted(f"Desync\n\n\n{wild}".encode(), 1, Nodes(3))), str(aborted(wild.encode(), 1, Nodes(3)))]
    header = unpack(pack(Kind.DATA, 1, Stamp(1, bytes(8), wild), 0), 1)
    with pytest.raises(Desync) as raised:
        expect(header, 1, Stamp(2, bytes(8), "here:1"), 0, Nodes(2), 0)
    for said in (*words, str(raised.value), str(went_on(header, 1, Nodes(2), 0))):
        assert said.isprintable(), said


@given(st.binary(max_size=WORDS_LIMIT))
def test_any_last_words_are_an_error(payload: bytes) -> None:
    assert isinstance(aborted(payload, 1, Nodes(3)), Desync | PeerLost)


@pytest.mark.parametrize(
    ("reason", "blamed", "said"),
    [
        (Told("PeerLost", "party 2 was silent for 1 s", peer=2), 2, "party 2 was silent for 1 s (reported by party 1)"),
        (Told("PeerLost", "client 0 left", peer=3), 3, "client 0 left (reported by party 1)"),
        (Told("PeerLost", "the dealer left", peer=DEALER), DEALER, "the dealer left (reported by party 1)"),
        (Told("RangeError", "party 0 gave too much"), 1, "party 1 stopped with RangeError: party 0 gave too much"),
        (Told("KeyError"), 1, "party 1 stopped with KeyError"),
    ],
)  # fmt: skip
def test_last_words_blame_whom_their_error_blames(reason: Told, blamed: int, said: str) -> None:
    header, payload = farewell(reason, 1)
    assert unpack(header, 1).length == len(payload)
    error = aborted(payload, 1, Nodes(3))
    assert isinstance(error, PeerLost)
    assert error.peer == blamed
    assert said in str(error)


def test_last_words_are_cut_and_reported_once() -> None:
    header, payload = farewell(Told("Desync", "ü" * 5000), 1)
    assert unpack(header, 1).length == len(payload) <= WORDS_LIMIT
    once = aborted(farewell(Told("Desync", "parties differ"), 1)[1], 1, Nodes(3))
    twice = aborted(farewell(told_to_peers(once), 2)[1], 2, Nodes(3))
    assert isinstance(twice, Desync)
    assert str(twice) == "parties differ (reported by party 1)"


@given(st.lists(st.text(st.characters(exclude_characters="/", exclude_categories=["C", "Z"]), min_size=1), min_size=2))
def test_no_file_of_a_machine_is_named_to_others(parts: list[str]) -> None:
    """Its own log names it; the others hear what is the matter, and no folder of it."""
    full = ConfigError(f"/my home/{'/'.join(parts)}.npz cannot be written (No space left on device): make room there")
    near = ConfigError(f"the store k{'/'.join(parts)}/x is refused: deal a new one with 'masked offline deal'")
    assert "my home" in str(full) and "my home" in full.told
    assert told_to_peers(full).text == "... cannot be written (No space left on device): make room there"
    assert told_to_peers(full).kind == "ConfigError"
    full.__cause__ = OSError(28, "No space left on device")
    assert told_to_peers(full).kind == "OSError"
    assert told_to_peers(near).text == "the store ... is refused: deal a new one with 'masked offline deal'"
    for plain in ("party 0: 3 steps of 'ppcb' are left, 4 wanted", "parties differ\nin lines"):
        assert told_to_peers(ConfigError(plain)).text == plain


@pytest.mark.parametrize(
    ("kind", "failed"), [("OSError", False), ("MemoryError", False), ("SystemExit", False), ("ConfigError", True)]
)
def test_who_lacked_room_may_come_back(kind: str, failed: bool) -> None:
    """At a start all end with who cannot go on; for one whose disk was full they wait."""
    _, payload = farewell(Told(kind, "..."), 1)
    error = aborted(payload, 1, Nodes(2))
    assert isinstance(error, PeerLost) and error.failed == failed


def test_names() -> None:
    two = Nodes(2)
    assert [Nodes().name(1), two.name(1), two.name(2), two.name(4), two.name(0xFFFF)] == [
        "party 1", "party 1", "client 0", "client 2", "the dealer",
    ]  # fmt: skip
    assert [Nodes(2, ("owner 0", "owner 1", "DC")).name(node) for node in (1, 2, 3)] == ["owner 1", "DC", "client 1"]


@pytest.mark.parametrize(("kind", "peer"), [("Desync", None), ("PeerLost", 2), ("ConfigError", None)])
def test_who_is_told_of_an_error_is_a_witness_and_calls_nodes_by_name(kind: str, peer: int | None) -> None:
    nodes = Nodes(2, ("Ada", "Bob", "DC"))
    error = aborted(farewell(Told(kind, "line 1\nline 2", peer=peer), 1)[1], 1, nodes)
    assert error.witness and "Bob" in str(error) and "line 1\nline 2" in str(error)
    assert not isinstance(error, PeerLost) or error.peer == (1 if peer is None else peer)
