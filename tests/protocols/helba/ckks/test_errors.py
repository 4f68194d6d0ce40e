"""What goes wrong, and the one line that says so."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("seal", reason="the extra 'ckks' is not installed")

from bandits.helba import Constants, Problem, toy
from mpc.errors import ConfigError, Desync, MaskedError, PeerLost, RangeError
from mpc.net.channel import Channel
from protocols.helba.ckks.messages import Frames, Kind, Role
from protocols.helba.ckks.run import play_ckks
from protocols.helba.ckks.server import server
from protocols.helba.ckks.settings import Settings
from protocols.helba.ckks.user import fresh_scale, key_owner, user
from protocols.published import ckks as door
from protocols.published.ckks import LEAST, Scheme, Vault
from protocols.published.drive import Play, Receive, Send, in_one_process, over_links

from ...harness import Output, masked, refused

SMALL = Scheme.of(1 << 13, 2, 128)
SETTINGS = Settings(Constants(), 2, 1, scheme=SMALL)
PROBLEM = toy(SETTINGS.constants, 1, 1)
FRAMES = Frames(SETTINGS.digest)
MISTAKES = [
    ("--security 80", "80 bits of security: choose 128, 192 or 256"),
    ("--products 8", "SEAL refuses 11 primes of 640 bits for degree 16384 at 128 bits of security, where 438"),
    ("--security 256", "SEAL refuses 5 primes of 292 bits for degree 16384 at 256 bits of security, where 237"),
    ("--products 3", "3 products between two refreshes: an even number from 2"),
    ("--degree 4096 --steps 12", "SEAL refuses 5 primes of 218 bits for degree 4096"),
    ("--degree 1000 --steps 12", "SEAL refuses"),
    ("--dim 5", "at most 4 dimensions, not 5: use --mode mpc"),
    ("--arms 2000", "2000 arms do not fit 8192 slots"),
    ("--steps 1000", "ciphertexts hold it to 1.0e-06: play fewer steps"),
    ("--steps 0", "at least 1 of each"),
    ("--norm nan", "norm must be positive"),
    ("--batches hidden", "--batches hidden is of --mode mpc"),
    ("--resume", "there is no checkpoint in"),
]


@pytest.mark.parametrize(("words", "said"), MISTAKES)
def test_mistakes(words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.chdir(tmp_path)
    refused(masked(capsys, f"run helba --mode ckks {words}"), said)
    assert not (tmp_path / "runs").exists()


def test_no_time_at_all_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.chdir(tmp_path)
    refused(masked(capsys, "launch helba --mode ckks --timeout 0"), "a timeout is a positive number of seconds, not 0")


def test_without_seal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(door, "seal", None)
    refused(masked(capsys, "run helba --mode ckks"), "CKKS needs seal-python")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("features", "reward", "said"),
    [(9.0, 0.0, "features longer than L = 5.5"), (1.0, 4.0, "a reward beyond R = 3"), (np.nan, 0.0, "features longer")],
)
def test_numbers_out_of_bounds_leave_no_user(features: float, reward: float, said: str) -> None:
    problem = Problem(np.full((1, 2, 2), features), np.zeros((1, 2)), np.full((1, 2), reward))
    with pytest.raises(RangeError, match=f"step 0, arm 0: {said}"):
        play_ckks(SETTINGS, problem)


def played_with(other: Callable[[Play[Any]], Play[Any]]) -> None:
    """A step whose user is honest but for what `other` makes of it."""
    honest = user(SETTINGS, PROBLEM.features, PROBLEM.rewards)
    in_one_process({Role.SERVER: server(SETTINGS), Role.USER: other(honest), Role.OWNER: key_owner(SETTINGS)})


def answering(change: Callable[[bytes], bytes], kind: Kind = Kind.REFRESHED) -> Callable[[Play[Any]], Play[Any]]:
    """Changes what the user sends of a kind."""
    head = len(FRAMES.pack(kind))

    def play(honest: Play[Any]) -> Play[Any]:
        reply = None
        while True:
            want = honest.send(reply)
            reply = None
            if isinstance(want, Send) and want.to == Role.SERVER and want.raw[5] == kind:
                yield Send(Role.SERVER, FRAMES.pack(kind, change(want.raw[head:]), step=1))
            else:
                reply = yield want

    return play


def ciphertext(level: int, scale: float) -> bytes:
    return bytes(Vault(SMALL).encrypt(np.zeros(SMALL.slots), scale, level).to_string())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda raw: b"garbage", "user sent what is no ciphertext of this run"),
        (lambda raw: raw[:-8], "user sent what is no ciphertext of this run"),
        (lambda raw: ciphertext(SMALL.top, 2.0**30), "user sent a ciphertext of 4 primes and scale 1.07374e"),
        (lambda raw: ciphertext(LEAST, 2.0**30), "user sent a ciphertext of 2 primes"),
    ],
)
def test_a_refresh_answered_with_garbage(change: Callable[[bytes], bytes], said: str) -> None:
    with pytest.raises(Desync, match=said):
        played_with(answering(change))


def test_numbers_that_are_garbage_end_the_run() -> None:
    """A well-formed answer that holds anything: a mask taken off it leaves no index and no bit."""

    def anything(raw: bytes) -> bytes:
        given = SMALL.context.from_cipher_str(raw)
        return bytes(SMALL.evaluator.add(given, given).to_string())

    with pytest.raises(RangeError, match=r"no arm's b lies between|is no bit"):
        played_with(answering(anything))


def test_a_user_that_answers_no_more() -> None:
    def silent(honest: Play[Any]) -> Play[Any]:
        reply = None
        while True:
            want = honest.send(reply)
            if isinstance(want, Send) and want.raw[5] == Kind.REFRESHED:
                return None
            reply = yield want

    with pytest.raises(Desync, match="nobody can go on, server for user"):
        played_with(silent)


class Told:
    """A link that gives messages that were prepared."""

    def __init__(self, messages: Iterable[bytes]) -> None:
        self.messages = list(messages)

    def send(self, message: bytes, *, timeout: float | None = None) -> None:
        """Nobody listens."""

    def receive(self, *, timeout: float | None = None, limit: int = 0) -> bytes | None:
        """The next."""
        return self.messages.pop(0)


@pytest.mark.parametrize(("gone", "said"), [(False, "user was silent for 0.2 s"), (True, "user has ended before")])
def test_a_user_that_is_late_or_gone(gone: bool, said: str) -> None:
    keys = [want.raw for want in key_owner(SETTINGS) if isinstance(want, Send) and want.to == Role.SERVER]
    features = np.zeros(SMALL.slots)
    ours, theirs = socket.socketpair()
    other = Channel(theirs, "server")
    raw = Vault(SMALL).encrypt(features, fresh_scale(SETTINGS), SMALL.top).to_string()
    theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
    links = {Role.OWNER.value: Told(keys), Role.USER.value: First(FRAMES.pack(Kind.FEATURES, raw, step=1), ours)}
    if gone:
        other.close()
    with pytest.raises(PeerLost, match=said):
        over_links(server(SETTINGS), links, timeout=0.2)
    ours.close()
    theirs.close()


class First(Told):
    """Gives one message, then what a socket brings."""

    def __init__(self, message: bytes, sock: socket.socket) -> None:
        super().__init__([message])
        self._rest = Channel(sock, "user")

    def receive(self, *, timeout: float | None = None, limit: int = 0) -> bytes | None:
        """The message, then the socket's."""
        return self.messages.pop(0) if self.messages else self._rest.receive(timeout=timeout)


@pytest.mark.parametrize("raw", [b"", b"garbage", bytes(1000)])
def test_a_server_without_keys(raw: bytes) -> None:
    def owner() -> Play[None]:
        for kind in (Kind.PRODUCTS, Kind.SHIFTS, Kind.NOTHING):
            yield Send(Role.SERVER, FRAMES.pack(kind, raw))

    with pytest.raises(Desync, match="key owner sent no keys to compute with"):
        over_links(server(SETTINGS), {Role.OWNER.value: Told(want.raw for want in owner())}, timeout=1.0)  # type: ignore[union-attr]


def test_a_user_without_a_key() -> None:
    links = {Role.OWNER.value: Told([FRAMES.pack(Kind.SECRET, b"garbage")])}
    with pytest.raises(Desync, match="key owner sent no secret key"):
        over_links(user(SETTINGS, PROBLEM.features, PROBLEM.rewards), links, timeout=1.0)


def test_an_owner_of_no_key_leaves_all_waiting() -> None:
    def nobody() -> Play[None]:
        yield Send(Role.USER, b"")

    with pytest.raises(MaskedError, match="key owner sent 0 bytes where SECRET is due"):
        in_one_process({
            Role.SERVER: server(SETTINGS), Role.USER: user(SETTINGS, PROBLEM.features, PROBLEM.rewards),
            Role.OWNER: nobody(),
        })  # fmt: skip


def test_other_settings_are_refused() -> None:
    other = Frames(Settings(Constants(), 2, 2, scheme=SMALL).digest)
    with pytest.raises(ConfigError, match="user plays with other settings"):
        FRAMES.unpack(other.pack(Kind.LEARN), Role.USER, Kind.LEARN)
    with pytest.raises(ConfigError, match="user sent LEARN of step 2 at step 1"):
        FRAMES.unpack(FRAMES.pack(Kind.LEARN, step=2), Role.USER, Kind.LEARN, step=1)


def test_a_server_that_asks_for_what_there_is_not() -> None:
    """A user refuses a ciphertext that has a prime left, and a plan that it does not know."""
    vault = Vault(SMALL)
    asked = user(SETTINGS, PROBLEM.features, PROBLEM.rewards)
    assert isinstance(next(asked), Receive)
    want: Any = asked.send(FRAMES.pack(Kind.SECRET, vault.secret()))
    while not isinstance(want, Receive):
        want = asked.send(None)
    raw = vault.encrypt(np.zeros(SMALL.slots), 2.0**39, LEAST).to_string()
    with pytest.raises(ConfigError, match="server asks for plan 9 at level 4"):
        asked.send(FRAMES.pack(Kind.REFRESH, raw, step=1, level=4, plan=9))
