"""Runs on ciphertexts beside the clear, in one process and in three, at 128 bits by SEAL's guard."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("seal", reason="the extra 'ckks' is not installed")

from bandits.helba import Constants, fresh, toy
from protocols.bench.helba_ciphertexts import Looking
from protocols.helba.ckks.cast import ROLES, cast_of
from protocols.helba.ckks.messages import Role
from protocols.helba.ckks.refresh import DISTANCE
from protocols.helba.ckks.run import CkksRun, play_ckks, report
from protocols.helba.ckks.scheme import Scheme, Vault
from protocols.helba.ckks.settings import Settings
from protocols.published.participant import input_path

from ...harness import Output, document

SMALL = Scheme.of(1 << 13, 2, 128)  # half the paper's degree: as secure, and twice as fast
STEPS = 12


@pytest.fixture(scope="module")
def played() -> tuple[CkksRun, Looking]:
    """The trace alone ends batches, so a broken test shows."""
    settings = Settings(Constants(growth=None), 2, STEPS, SMALL)
    problem = fresh(settings.constants, STEPS, 4)
    looking: list[Looking] = []

    def look(vault: Vault) -> Looking:
        looking.append(Looking(settings, problem, vault))
        return looking[0]

    return play_ckks(settings, problem, look=look), looking[0]


def test_twelve_steps_are_those_of_the_clear(played: tuple[CkksRun, Looking]) -> None:
    run, looking = played
    assert run.first_difference is None and run.ends_equal
    assert run.ends is not None and 1 < run.ends.sum() < STEPS
    errors = asdict(looking.found)
    assert all(0.0 < error < 1.0 for name, error in errors.items() if name != "bits"), errors
    assert errors["bits"] <= 1.0


def test_the_document_and_the_ledger(played: tuple[CkksRun, Looking], tmp_path: Path) -> None:
    run, _ = played
    made = report(run, 4)
    facts = json.loads(json.dumps(made.document))
    assert (facts["mode"], facts["steps"], facts["batches"], facts["security"]) == ("ckks", STEPS, "public", 128)
    assert facts["regret"] == facts["twin_regret"] and facts["arms_equal_twin"] and facts["updates_equal_twin"]
    assert facts["updates"] == run.ends.sum() and facts["smallest_gap"] > 0  # type: ignore[union-attr]
    assert facts["statistical_distance"] == pytest.approx(facts["masked_numbers"] * DISTANCE)
    assert facts["rounds_per_step"] * STEPS == facts["refreshes"] + 3 * STEPS
    server, user = run.outcomes[Role.SERVER], run.outcomes[Role.USER]
    assert (server.refreshes, server.masked) == (user.refreshes, user.masked)
    rows = {(row["role"], row["what"]): row for row in facts["ledger"]}
    assert rows["user", "masked number"]["count"] == user.masked
    assert f"{run.distance:.1e}" in rows["user", "masked number"]["why"]
    assert rows["user", "arm, and how near to the best each arm is"]["count"] == STEPS
    assert rows["server", "whether a batch ends, and the test's result"]["count"] == STEPS
    assert rows["key owner", "key to what all users send"]["count"] == 1
    assert "128 bits of security" in made.text and "the same arms and batch ends" in made.text
    assert made.picture is not None
    made.picture(tmp_path / "reward.png")
    assert (tmp_path / "reward.png").stat().st_size > 1000


@pytest.mark.parametrize(("dim", "arms", "steps"), [(3, 3, 3), (1, 1, 2)])
def test_other_sizes(dim: int, arms: int, steps: int) -> None:
    """Three arms of three dimensions: a tournament with a gap, and blocks that are not full; and no choice at all."""
    settings = Settings(Constants(dim=dim, growth=1.0), arms, steps, SMALL)
    run = play_ckks(settings, fresh(settings.constants, steps, 2, arms=arms))
    assert run.first_difference is None and run.ends_equal


def test_three_processes_give_what_one_gives() -> None:
    settings = Settings(Constants(), 2, 2, SMALL)
    problem = toy(settings.constants, 2, 1)
    run = play_ckks(settings, problem, processes=True)
    assert run.first_difference is None and run.ends_equal and run.ends is not None and run.ends.all()
    assert run.seconds_per_step > 0 and run.cpu_seconds > 0
    assert {entry.role for entry in run.ledger} == {role.value for role in ROLES}


def test_features_and_rewards_reach_the_users_process_alone(tmp_path: Path) -> None:
    settings = Settings(Constants(), 2, 2, SMALL)
    problem = toy(settings.constants, 2, 1)
    cast_of(settings, problem).write(tmp_path)
    texts = {role: input_path(tmp_path, role.value).read_text() for role in ROLES}
    number = repr(float(problem.features[0, 0, 0]))
    assert number in texts[Role.USER]
    assert not any(number in texts[role] for role in (Role.SERVER, Role.OWNER))


def test_the_command(capsys: Output) -> None:
    facts = document(capsys, "run helba --mode ckks --degree 8192 --steps 1")
    assert facts["arms_equal_twin"] and facts["updates"] == 1 and facts["degree"] == 8192


def test_a_key_is_in_no_text_and_no_pickle() -> None:
    vault = Vault(SMALL)
    assert repr(vault) == "Vault(key hidden)"
    with pytest.raises(TypeError, match="never pickled"):
        vault.__reduce__()


@pytest.mark.parametrize("t", [1, 10, 130])
def test_counts_are_enough_and_not_one_more(t: int) -> None:
    """The bounds that they are chosen by, tried out on their worst inputs."""
    settings, start = Settings(Constants()), max(1, t - 3)
    low, high = settings.root_range(start)
    z = np.geomspace(low, high, 50)
    from bandits.helba.approximate import inverse, root, towards_sign

    count = settings.root_count(t, start)
    assert np.abs(root(z, low, high, count) - np.sqrt(z)).max() <= 1.01 / (100 * t)
    assert np.abs(root(z, low, high, count - 1) - np.sqrt(z)).max() > 1 / (100 * t)
    eps = settings.precision(t)
    count = settings.comparison_count(t, tested=False)
    assert towards_sign(np.array(eps), count) >= 1 - 2 * eps > towards_sign(np.array(eps), count - 1)
    apart = np.linspace(0, 1, 2000)
    maximum = settings.maximum_count(t)
    assert (apart * (1 - towards_sign(apart, maximum)) / 2).max() <= eps
    if start > 1:
        bound, dim = settings.inverse_bound(start), 2
        worst = np.eye(dim) * [1.0, bound]
        off = np.linalg.norm(inverse(worst, bound, settings.inverse_count(start)) - np.linalg.inv(worst), 2)
        assert off <= settings.constants.eps(start) / 2
