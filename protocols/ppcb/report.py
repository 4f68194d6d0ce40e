"""A run as one document, as text, and as files.  Knows results; no protocol."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bandits.privacy import eta_bound, eta_per_step
from mpc.ledger import Entry

from ..run.report import Report, cost_text, costs, learned, ledger_json
from .program import PAYER
from .run import Difference, Run
from .settings import Policy, Settings, Variant


def report(run: Run) -> Report:
    """All that is shown of a run."""
    more = {
        "data": run.data, "settings": run.settings.as_json(), "meter": asdict(run.cost),
        "differences": [asdict(difference) for difference in run.differences],
    }  # fmt: skip
    return Report(document(run), text(run), run.steps, partial(reward_curve, run), more, partial(_steps_file, run))


def document(run: Run) -> dict[str, Any]:
    """The run as other tools read it; averages and differences of all replicas, first_difference of the earliest.

    A step is one context; with batches several steps share their rounds.
    """
    given = run.settings
    first = min(run.differences, key=lambda difference: difference.step, default=None)
    eta = eta_per_step(given.arms, given.eps)
    return {
        "steps": run.steps,
        "parties": run.parties,
        "arms": given.arms,
        "dim": given.dim,
        "eps": given.eps,
        "replicas": given.replicas,
        "average_reward": float(run.rewards.mean()),
        "twin_average_reward": None if run.twin_rewards is None else float(run.twin_rewards.mean()),
        "first_difference": None if first is None else {"step": first.step, "gap": first.gap},
        **costs(run.ended, run.steps),
        "eta_per_step": eta if math.isfinite(eta) else None,
        "further_arms": run.further_arms,
        "arms_per_context": run.arms_per_context,
        "ledger": ledger_json(learned_of(run)),
    }


def text(run: Run) -> str:
    """What a person wants to know at the end."""
    given, facts = run.settings, document(run)
    replicas = f", {given.replicas} replicas" if given.replicas > 1 else ""
    twin = "" if run.twin_rewards is None else f", of the plaintext twin {facts['twin_average_reward']:.4f}"
    own = "each had its own features, if any, as input" if 0 in given.widths else "each had its own features as input"
    parties = (f"parties 0 to {run.parties - 1}", "nothing", own)
    rows = [
        f"{run.steps:,} steps, {given.arms} arms, {run.parties} parties{replicas}: average reward "
        f"{facts['average_reward']:.4f}{twin}",
        _beside_twin(run),
        "",
        *cost_text(facts, "step"),
        *_together(given),
        "",
        *learned([*learned_of(run), parties] if run.ledger else []),
        "",
        *_privacy(run),
    ]
    return "\n".join(rows)


def reward_curve(run: Run, path: Path) -> None:
    """Average reward so far against steps: the private run, its plaintext twin below it, and what needs no context."""
    rows = [(run.twin_rewards, "plaintext twin", "C0--"), (run.rewards, "private", "C1-")]
    rows += [(run.baselines[name], name, style) for name, style in zip(sorted(run.baselines), ("k-.", "k:"))]
    title = f"{run.settings.policy.value}, eps = {run.settings.eps:g}, {run.parties} parties"
    reward_curves(rows, title, path)


def reward_curves(rows: Sequence[tuple[np.ndarray | None, str, str]], title: str, path: Path) -> None:
    """Averages so far of (steps, replicas) rewards, each with its label and style; what nobody knows is left out."""
    from ..run.plots import curves

    means = [
        ((rewards.cumsum(axis=0) / np.arange(1, len(rewards) + 1)[:, None]).mean(axis=1), label, style)
        for rewards, label, style in rows
        if rewards is not None
    ]
    curves(means, x="step", y="average reward so far", title=title, path=path)


def _steps_file(run: Run, folder: Path) -> list[Path]:
    columns = {"arms": run.arms, "rewards": run.rewards, "twin_arms": run.twin_arms, "twin_rewards": run.twin_rewards}
    known: dict[str, Any] = {name: column for name, column in columns.items() if column is not None}
    np.savez_compressed(folder / "steps.npz", **known)
    return [folder / "steps.npz"]


def _beside_twin(run: Run) -> str:
    if run.twin_rewards is None:
        return "the coins of this material are the dealer's alone, so no twin was played"
    return on_twin(run.differences, 15 if run.settings.state_bits >= 28 else 12)


def on_twin(differences: Sequence[Difference], bits: int) -> str:
    """Where arms and the twin's first differ.  bits: scores closer than 2^-bits fixed point may order otherwise."""
    if not differences:
        return "it pulled the same arms as its plaintext twin at every step"
    where = "; ".join(f"replica {d.replica} at step {d.step}, {_gap(d, bits)}" for d in differences[:5])
    return f"it first pulled another arm than its twin in {where}"


def _gap(difference: Difference, bits: int) -> str:
    if difference.gap == 0.0:
        return "where the two best scores tied exactly"
    if difference.gap < 2.0**-bits:
        return f"a near tie: the two best scores were {difference.gap:.2g} apart, less than 2^-{bits}"
    return f"where the two best scores were {difference.gap:.2g} apart, no near tie, which is below 2^-{bits}"


def learned_of(run: Run) -> list[Entry]:
    """What the session disclosed, and what the payer knows because it brings it."""
    return [*run.ledger, Entry(PAYER, "reward", run.arms.size, "its own input")] if run.ledger else []


def _together(given: Settings) -> list[str]:
    """Said to whoever decides on contexts one by one."""
    if given.batch > 1 or given.delay or given.variant is Variant.PUBLISHED:
        return []
    return [
        "contexts that can wait for each other cost less: with --batch 64, at 10 arms and 20 dimensions, each takes",
        "half the bytes and an eighth of the processor time, and all 64 together 29 rounds (docs/ppcb.md)",
    ]


def _privacy(run: Run) -> list[str]:
    given = run.settings
    eta, bound = eta_per_step(given.arms, given.eps), eta_bound(given.arms, given.eps)
    if not math.isfinite(eta):
        drawn = " beyond its normal draws" if given.policy is Policy.THOMPSON else ""
        return [f"privacy of a context: none is promised for a pulled arm, since nothing is explored{drawn} (eps = 0)"]
    rows = [
        f"privacy of a context: each pulled arm is {eta:.3f}-differentially private, below log(A / eps) = {bound:.3f},",
        "against everyone but the dealer, who draws the coins; 'masked privacy' adds up steps",
    ]
    if run.further_arms:
        rows.append(
            f"beside these steps the puller learned {run.further_arms:,} arms, of steps that were played again or are "
            f"not in this result: up to {run.arms_per_context} of one context, {run.arms_per_context * eta:.3f} in all"
        )
    return rows
