"""Runs on ciphertexts beside the clear, in one process and in three, at 128 bits by SEAL's guard."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("seal", reason="the extra 'ckks' is not installed")

from bandits.helba import Constants, fresh, toy
from bandits.helba.approximate import inverse, root, towards_sign
from mpc.errors import ConfigError
from protocols.bench.helba_ciphertexts import Looking
from protocols.helba.ckks.cast import ROLES, cast_of
from protocols.helba.ckks.messages import Role
from protocols.helba.ckks.refresh import DISTANCE
from protocols.helba.ckks.run import CkksRun, play_ckks, report
from protocols.helba.ckks.settings import Settings
from protocols.published.ckks import Scheme, Vault
from protocols.published.kept import forget, stopped
from protocols.published.participant import input_path
from protocols.run.folder import Keep
from protocols.run.stopping import Stopped

from ...harness import Output, document

SMALL = Scheme.of(1 << 13, 2, 128)  # half the paper's degree: as secure, and twice as fast
STEPS = 8


@pytest.fixture(scope="module")
def played() -> tuple[CkksRun, Looking]:
    """The trace alone ends batches, so a broken test shows."""
    settings = Settings(Constants(growth=None), 2, STEPS, scheme=SMALL)
    problem = fresh(settings.constants, STEPS, 4)
    looking: list[Looking] = []

    def look(vault: Vault) -> Looking:
        looking.append(Looking(settings, problem, vault))
        return looking[0]

    return play_ckks(settings, problem, look=look), looking[0]


def test_eight_steps_are_those_of_the_clear(played: tuple[CkksRun, Looking]) -> None:
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
    settings = Settings(Constants(dim=dim, growth=1.0), arms, steps, scheme=SMALL)
    run = play_ckks(settings, fresh(settings.constants, steps, 2, arms=arms))
    assert run.first_difference is None and run.ends_equal


def test_three_processes_give_what_one_gives() -> None:
    settings = Settings(Constants(), 2, 2, scheme=SMALL)
    problem = toy(settings.constants, 2, 1)
    run = play_ckks(settings, problem, processes=True)
    assert run.first_difference is None and run.ends_equal and run.ends is not None and run.ends.all()
    assert run.seconds_per_step > 0
    spent = {role: sum(part.processor for part in parts.values()) for role, parts in run.parts.items()}
    assert min(spent.values()) > 0 and run.cpu_seconds == pytest.approx(sum(spent.values()))
    assert replace(run, processes=False).cpu_seconds == spent[Role.SERVER], "one process counts for all"
    assert {entry.role for entry in run.ledger} == {role.value for role in ROLES}


def test_a_run_that_was_stopped_goes_on_with_new_keys(tmp_path: Path) -> None:
    """The trace ends some batches: the last end's regression and the sums of the batch that goes on come back."""
    settings = Settings(Constants(growth=None), 2, 5, scheme=SMALL)
    problem = fresh(settings.constants, 5, 4)

    def interrupted(done: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(Stopped) as caught, stopped(Keep(tmp_path), [tmp_path / "server", tmp_path / "user"]):
        play_ckks(settings, problem, watch=interrupted, keep=Keep(tmp_path))
    assert caught.value.done == 2  # the user's third step was still under way
    with pytest.raises(ConfigError, match="holds a run that was not finished"):
        play_ckks(settings, problem, keep=Keep(tmp_path))
    with pytest.raises(ConfigError, match="the checkpoint is of a run with other inputs"):
        play_ckks(settings, fresh(settings.constants, 5, 5), keep=Keep(tmp_path, resume=True))
    run = play_ckks(settings, problem, keep=Keep(tmp_path, resume=True))
    assert run.start == 2 and run.first_difference is None and run.ends_equal
    assert run.ends is not None and run.ends[:2].any() and not run.ends.all()
    assert run.server.masked == run.outcomes[Role.USER].masked > 0
    alone = play_ckks(settings, problem)
    assert run.server.key_bytes > 1.9 * alone.server.key_bytes, "keys of both sittings, which are packed"
    assert run.cpu_seconds_per_step == run.cpu_seconds / 3
    rows = {(entry.role, entry.what): entry.count for entry in run.ledger}
    assert rows["user", "arm, and how near to the best each arm is"] == 5
    forget(tmp_path, [tmp_path / "server", tmp_path / "user"])
    assert not list(tmp_path.rglob("*"))


def test_features_and_rewards_reach_the_users_process_alone(tmp_path: Path) -> None:
    settings = Settings(Constants(), 2, 2, scheme=SMALL)
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


def scaled_sign(x: np.ndarray, factors: list[float]) -> np.ndarray:
    """f(s x), one after the other."""
    for s in factors:
        x = towards_sign(s * x, 1)
    return x


@pytest.mark.parametrize("t", [1, 10, 130])
def test_signs_are_driven_far_enough_and_not_further(t: int) -> None:
    """The bounds that iterations are chosen by, tried out on all inputs."""
    settings = Settings(Constants())
    eps, apart = settings.precision(t), np.linspace(0, 1, 5000)
    far, near = np.geomspace(eps, 1, 2000), np.linspace(0, eps, 2000)
    found = settings.comparison_factors(t, tested=False)
    assert scaled_sign(far, found).min() >= 1 - 2 * eps > scaled_sign(far, found[:-1]).min()
    assert (np.diff(scaled_sign(near, found)) > 0).all() and scaled_sign(far, found).min() > 0
    test = 1 / (4 * t * settings.trace)
    found = settings.comparison_factors(t, tested=True)
    traces = np.geomspace(test, 1, 2000)
    assert scaled_sign(traces, found).min() >= 0.1 and scaled_sign(far, found).min() >= 1 - 2 * eps
    assert min(scaled_sign(traces, found[:-1]).min() - 0.1, scaled_sign(far, found[:-1]).min() - 1 + 2 * eps) < 0
    assert (apart * (1 - scaled_sign(apart, settings.maximum_factors(t))) / 2).max() <= eps


@pytest.mark.parametrize("t", [1, 10, 130])
def test_roots_and_inverses_are_near_enough_in_half_the_iterations(t: int) -> None:
    settings, start = Settings(Constants()), max(1, t - 3)
    low, high = settings.root_range(start)
    found = settings.root_factors(t, start)
    z = np.geomspace(low, high, 1000)
    q, v = z / high, z / high - 1
    for s in found:
        u = s * s * (1 + v) - 1
        q, v = q * s * (1 - u / 2), u * u * (u - 3) / 4
    assert np.abs(q * np.sqrt(high) - np.sqrt(z)).max() <= 1.01 / (100 * t)
    plain = next(count for count in range(50) if np.abs(root(z, low, high, count) - np.sqrt(z)).max() <= 1 / (100 * t))
    assert len(found) <= 0.7 * plain
    if start > 1:
        bound, dim = settings.inverse_bound(start), 2
        worst = np.eye(dim) * [1.0, bound]
        x = np.eye(dim) / bound
        factors, eps = settings.inverse_factors(start), settings.constants.eps(start)
        for s in factors:
            x = s * x @ (2 * np.eye(dim) - s * worst @ x)
        assert np.linalg.norm(x - np.linalg.inv(worst), 2) <= eps / 2
        assert np.linalg.norm(inverse(worst, bound, len(factors) + 2) - np.linalg.inv(worst), 2) > eps / 2
