"""Owners that are asked to stop end after the same decision, wherever each of them stood."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from mpc import ConfigError, PeerLost
from protocols.run.stopping import Stop, ask_to_stop, stopped_at
from tests.parties.threads import side_by_side

LIMIT = 300.0


class Owners:
    """Threads that meet within each decision, as the rounds of a protocol make them, and rest at random between two."""

    def __init__(self, folder: Path, parties: int, decisions: int, seed: int) -> None:
        self.stood: dict[int, int] = {}
        self._folder, self._decisions = folder, decisions
        self._meet = threading.Barrier(parties)
        self._rng = [np.random.default_rng([seed, party]) for party in range(parties)]
        self.threads = [threading.Thread(target=self._play, args=(party,), daemon=True) for party in range(parties)]
        for thread in self.threads:
            thread.start()

    def _play(self, party: int) -> None:
        stop = Stop(self._folder, party, LIMIT)
        for done in range(1, self._decisions + 1):
            self._meet.wait(LIMIT)
            self.stood[party] = done
            time.sleep(self._rng[party].choice([0.0, 0.0, 0.002]))
            if done < self._decisions and stop.here(done):
                return

    def end(self) -> set[int]:
        for thread in self.threads:
            thread.join(LIMIT)
            assert not thread.is_alive(), "an owner waits for one that has stopped"
        return set(self.stood.values())


@pytest.mark.parametrize("cycle", [1, 7])
@pytest.mark.parametrize("seed", range(5))
def test_all_owners_stop_after_the_same_decision(cycle: int, seed: int, parties: int, tmp_path: Path) -> None:
    owners = Owners(tmp_path, parties, 100_000, seed)
    time.sleep(0.002 * seed)
    ask_to_stop(tmp_path, parties, cycle, threading.Event())
    (at,) = owners.end()
    assert at == stopped_at(tmp_path) and at % cycle == 0


def test_a_run_that_ends_first_is_not_waited_for(parties: int, tmp_path: Path) -> None:
    over = threading.Event()
    asking = threading.Thread(target=ask_to_stop, args=(tmp_path, parties, 1, over))
    asking.start()
    over.set()
    asking.join(LIMIT)
    assert not asking.is_alive() and stopped_at(tmp_path) is None


def test_nobody_stops_unasked(tmp_path: Path) -> None:
    stop = Stop(tmp_path, 0, LIMIT)
    assert not any(stop.here(done) for done in range(100))
    assert list(tmp_path.iterdir()) == []


def test_one_that_is_not_told_where_to_stop_does_not_wait_for_ever(tmp_path: Path) -> None:
    """Another role is frozen, and never says where it stands."""
    stop = Stop(tmp_path, 0, 0.2)
    (tmp_path / "stop").touch()
    assert not stop.here(5)
    (waits,) = side_by_side(lambda: stop.here(6))  # it looks at its end after 40 s
    assert isinstance(waits.error, ConfigError) and "not all roles said within 0.2 s where they stand" in str(
        waits.error
    )


@pytest.mark.parametrize(
    ("said", "words", "peer"),
    [
        ([0], "party 1 and puller did not say within 0.2 s where they stand", 1),
        ([0, 1], "puller did not say within 0.2 s where it stands", 2),
        ([0, 1, 2], "the launcher did not say within 0.2 s where to stop", None),
    ],
)
def test_who_said_nothing_is_named(said: list[int], words: str, peer: int | None, tmp_path: Path) -> None:
    stops = [Stop(tmp_path, node, 0.2, {0: "party 0", 1: "party 1", 2: "puller"}) for node in said]
    (tmp_path / "stop").touch()
    assert not any(stop.here(5) for stop in stops)
    (waits,) = side_by_side(lambda: stops[0].here(6))
    assert isinstance(waits.error, PeerLost if peer else ConfigError) and words in str(waits.error)
    assert getattr(waits.error, "peer", None) == peer
