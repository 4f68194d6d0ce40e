"""Masks, what a user sees of them, and what comes back."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("seal", reason="the extra 'ckks' is not installed")

from mpc.errors import Desync
from mpc.prg import Prg
from protocols.helba.ckks.layout import Layout, Plan
from protocols.helba.ckks.messages import Role
from protocols.helba.ckks.refresh import BITS, Mask, moved, refreshed
from protocols.published.ckks import LEAST, Cloud, Scheme, Vault, level_of

SCHEME = Scheme.of(1 << 13, 2, 128)
LAYOUT = Layout(2, 2, SCHEME.slots)
SCALE = 2.0**39


@pytest.fixture(scope="module")
def both() -> tuple[Vault, Cloud]:
    vault = Vault(SCHEME)
    return vault, Cloud(SCHEME, *vault.evaluation(LAYOUT.steps), sender=Role.OWNER)


def numbers(where: np.ndarray) -> np.ndarray:
    whole = np.zeros(SCHEME.slots)
    whole[where] = np.random.default_rng(1).uniform(-1, 1, len(where))
    return whole


def prg() -> Prg:
    return Prg(bytes(16))


def test_a_refresh_is_as_exact_as_a_fresh_ciphertext(both: tuple[Vault, Cloud]) -> None:
    vault, cloud = both
    m = numbers(LAYOUT.kept)
    for level in (LEAST + 1, SCHEME.top):
        mask = Mask(SCHEME, prg(), LAYOUT.kept)
        y = mask.onto(cloud, vault.encrypt(m, SCALE, LEAST))
        (fresh,) = refreshed(vault, SCHEME, y, level, LAYOUT.kept)
        back = mask.off(cloud, fresh)
        assert level_of(back) == level and back.scale() == SCALE
        off = np.abs(vault.decrypt(back) - m)
        assert off[LAYOUT.kept].max() < 1e-8 and off.max() < 2e-6


def test_a_rounded_refresh_is_masked_alike_and_coarser(both: tuple[Vault, Cloud]) -> None:
    """The user sends no rest: 5e-7 of what it was, in the slots that are kept; what it was sent is no different."""
    vault, cloud = both
    m = numbers(LAYOUT.kept)
    exact, coarse = (Mask(SCHEME, prg(), LAYOUT.kept) for _ in range(2))
    assert (exact.high == coarse.high).all() and (exact.low == coarse.low).all()
    y = coarse.onto(cloud, vault.encrypt(m, SCALE, LEAST))
    (fresh,) = refreshed(vault, SCHEME, y, SCHEME.top, LAYOUT.kept, rounded=True)
    back = coarse.off(cloud, fresh, rounded=True)
    assert level_of(back) == SCHEME.top and back.scale() == SCALE
    assert np.abs(vault.decrypt(back) - m)[LAYOUT.kept].max() < 2e-6


def test_every_slot_is_masked_and_those_of_users_by_32_bits(both: tuple[Vault, Cloud]) -> None:
    vault, cloud = both
    seen = [
        vault.decrypt(Mask(SCHEME, Prg(bytes([key] * 16)), LAYOUT.kept).onto(cloud, vault.encrypt(zero, SCALE, LEAST)))
        for zero, key in ((np.zeros(SCHEME.slots), key) for key in range(20))
    ]
    wide = np.abs(np.array(seen)[:, LAYOUT.kept])
    others = np.abs(np.delete(np.array(seen), LAYOUT.kept, axis=1))
    assert wide.max() <= 2.0**BITS + 1 and others.max() <= 2.0**20 + 1
    assert 0.4 < wide.mean() / 2.0**BITS < 0.6 and 0.45 < others.mean() / 2.0**20 < 0.55
    assert (others.max(axis=0) > 2.0**16).all()


def test_a_mask_is_finer_than_what_a_double_shows() -> None:
    """Else the last bits of a number would show below the mask's."""
    mask = Mask(SCHEME, prg(), LAYOUT.kept)
    low = mask.low[LAYOUT.kept]
    assert (np.abs(low) <= 2.0**-21).all() and len(set(low)) == len(low) and np.abs(low).max() > 2.0**-25
    assert (mask.high[LAYOUT.kept] * 2.0**20 % 1.0 == 0.0).all()


def test_a_bare_slot_is_the_only_one_that_shows(both: tuple[Vault, Cloud]) -> None:
    vault, cloud = both
    own = LAYOUT.arm_at[: LAYOUT.arms]
    m = numbers(LAYOUT.kept)
    mask = Mask(SCHEME, prg(), np.setdiff1d(LAYOUT.kept, own)).bare(own)
    seen = vault.decrypt(mask.onto(cloud, vault.encrypt(m, SCALE, LEAST)))
    assert np.abs(seen[own] - m[own]).max() < 1e-4
    assert (np.abs(np.delete(seen, own)) > 1.0).mean() > 0.99


@pytest.mark.parametrize("plan", [Plan.GRAM, Plan.NEXT, Plan.ADOPT, Plan.ESTIMATE])
def test_numbers_are_placed_anew(plan: Plan, both: tuple[Vault, Cloud]) -> None:
    vault, cloud = both
    wide = np.flatnonzero(LAYOUT.edges() if plan is Plan.ESTIMATE else LAYOUT.corners())
    m, mask = numbers(wide), Mask(SCHEME, prg(), wide)
    placings = LAYOUT.placings(plan)
    fresh = refreshed(vault, SCHEME, mask.onto(cloud, vault.encrypt(m, SCALE, LEAST)), SCHEME.top, wide, placings)
    for one, placing in zip(fresh, placings, strict=True):
        assert np.abs(vault.decrypt(mask.off(cloud, one, placing)) - moved(m, placing)).max() < 5e-6


def test_with_one_prime_nothing_leaves(both: tuple[Vault, Cloud]) -> None:
    vault, _ = both
    low = SCHEME.evaluator.mod_switch_to_next(vault.encrypt(numbers(LAYOUT.kept), 2.0**30, LEAST))
    with pytest.raises(Desync, match="server sent a ciphertext with one prime left, whose mask wraps"):
        SCHEME.load(low.to_string(), Role.SERVER)


@pytest.mark.parametrize("dim", [1, 2, 3, 4])
@pytest.mark.parametrize("arms", [1, 2, 5])
def test_products_of_layouts_are_forms_and_matrices(dim: int, arms: int) -> None:
    """What a server adds up is x'A x, <x, w>, and rows times columns."""
    layout, rng = Layout(dim, arms, SCHEME.slots), np.random.default_rng(dim)
    a, b = (one + one.T for one in rng.normal(size=(2, dim, dim)))
    w, x = rng.normal(size=dim), rng.normal(size=(arms, dim))
    block = layout.state(a, w) * layout.features(x)
    for at, slot in enumerate(layout.arm_at):
        own = x[at % layout.around % arms]
        assert block[slot : slot + layout.half].sum() == pytest.approx(own @ a @ own)
        assert block[slot + layout.half : slot + layout.stride].sum() == pytest.approx(own @ w)
    for arm, slot in enumerate(layout.test_at):
        assert block[slot : slot + layout.half].sum() == pytest.approx(x[arm] @ a @ x[arm])
    cube = layout.left(a) * layout.right(b)
    sums = np.zeros(SCHEME.slots)
    for i in range(dim):
        for j in range(dim):
            corner = layout.cube_slot(i, j, 0)
            sums[corner] = cube[corner : corner + layout.side].sum()
            assert sums[corner] == pytest.approx((a @ b)[i, j])
    right, left = layout.placings(Plan.NEXT)
    assert moved(sums, right) == pytest.approx(layout.right((a @ b).T))
    assert moved(sums, left) == pytest.approx(layout.left(a @ b))
    learned = layout.learned(x[0], 0.5)
    assert learned == pytest.approx(learned * (learned != 0) + 0.0)
    cube = learned * layout.right(b)
    assert cube[layout.cube : layout.cube + layout.side].sum() == pytest.approx(x[0][0] * x[0] @ b[:, 0])
