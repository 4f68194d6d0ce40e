"""What the tests lean on: N in {2, 3, 5}, fixed seeds, sessions in one process, and one test for uniform words.

Everything random has a fixed seed, so a run is the same run again.  A statistical test says at which confidence it
rejects: with its seed fixed it passes or fails for good, and the confidence says how surprised to be by a failure.
"""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from mpc import EVERYONE, Reveal, Session, launch, nursery
from mpc.extras import EXTRAS, installed
from mpc.lifeline import hear_ctrl_c
from mpc.prg import KEY_BYTES, Prg
from offline import InsecureSeededDealer
from tests.oracles import stats

settings.register_profile(
    "masked", deadline=None, derandomize=True, database=None, max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)  # fmt: skip
settings.load_profile("masked")
nursery.ROOMS = (*nursery.ROOMS, "tests")  # what tests launch is forked off a nursery, as roles are
launch._SECONDS_TO_START, launch._GRACE = 60.0, 10.0
"""On a busy machine roles load for long, and end late of another's failure; a test says so where one never does."""
hear_ctrl_c()  # some tests press it; processes that they start hear it too
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and a terminal that is closed, under nohup as well


def pytest_runtest_setup(item: pytest.Item) -> None:
    """What needs an extra is skipped where that is not installed."""
    for package in (name for mark in item.iter_markers("needs") for name in mark.args):
        if not installed(package):
            pytest.skip(f"the extra '{EXTRAS[package]}' is not installed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that take minutes come first: at the end, one worker would wait for the other."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture
def one_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure not all end by themselves: do not give them long."""
    monkeypatch.setattr(launch, "_GRACE", 3.0)


@pytest.fixture(scope="session", params=(2, 3, 5), ids=lambda parties: f"N{parties}")
def parties(request: pytest.FixtureRequest) -> int:
    """N."""
    return request.param


def pair_keys(parties: int, seed: int) -> dict[tuple[int, int], bytes]:
    stream = Prg((1 << 64 | seed).to_bytes(KEY_BYTES, "big"))
    return {pair: stream.bytes(KEY_BYTES).tobytes() for pair in itertools.combinations(range(parties), 2)}


@pytest.fixture(scope="session")
def simulate() -> Callable[..., Session]:
    """All N parties in this process, with a seeded dealer and seeded pairs."""

    def session(parties: int, seed: int = 1, *, pair_seed: int | None = None, **rest: Any) -> Session:
        keys = pair_keys(parties, seed if pair_seed is None else pair_seed)
        return Session.simulate(parties, InsecureSeededDealer(parties, seed), pair_keys=keys, **rest)

    return session


@pytest.fixture(scope="session")
def reveal() -> Callable[..., Any]:
    """The value behind a share."""

    def revealed(share: Any, to: str = EVERYONE, **rest: Any) -> Any:
        def program() -> Any:
            return (yield Reveal(share, to, **rest))

        return share.session.run(program())

    return revealed


@pytest.fixture(scope="session")
def evaluate(reveal: Callable[..., Any]) -> Callable[..., Any]:
    """Run a program and reveal the share it ends with."""
    return lambda session, program: reveal(session.run(program))


@pytest.fixture(scope="session")
def uniformity() -> Callable[[np.ndarray, int], float]:
    """The smallest p-value over the byte lanes of `bits`-bit words, each by chi-square, times the number of lanes.

    The partial lane at the top is tested over its own values.
    """

    def smallest(words: np.ndarray, bits: int) -> float:
        columns = np.ascontiguousarray(words).reshape(-1, 1).view(np.uint8)  # the lowest byte first
        p_values = []
        for lane in range(-(-bits // 8)):
            values = 1 << min(8, bits - 8 * lane)
            counts = np.bincount(columns[:, lane], minlength=values)
            assert counts.size == values, f"a {bits}-bit word has a bit above its ring"
            expected = counts.sum() / values
            p_values.append(float(stats.chi2.sf(((counts - expected) ** 2).sum() / expected, values - 1)))
        return min(p_values) * len(p_values)

    return smallest
