"""A run as one document, as text, and as files.  Knows results; no protocol."""

from __future__ import annotations

import json
import math
import platform
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from bandits.privacy import eta_bound, eta_per_step
from mpc.ledger import Entry

from .program import PAYER
from .run import Difference, Run
from .settings import Policy

_PACKAGES = ("masked-bandits", "numpy", "torch", "cryptography", "scikit-learn")


def document(run: Run, seed: int) -> dict[str, Any]:
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
        "seed": seed,
        "replicas": given.replicas,
        "average_reward": float(run.rewards.mean()),
        "twin_average_reward": None if run.twin_rewards is None else float(run.twin_rewards.mean()),
        "first_difference": None if first is None else {"step": first.step, "gap": first.gap},
        "rounds_per_step": run.cost.rounds / run.steps,
        "client_hops_per_step": run.cost.client_hops / run.steps,
        "bytes_per_step_per_party": run.cost.opened_bytes / run.steps,
        "sent_bytes_per_step_per_party": run.cost.sent_bytes / run.steps,
        "offline_bytes_per_step": run.offline_bytes / run.steps,
        "seconds_per_step": run.seconds / run.steps,
        "offline_seconds_per_step": run.offline_seconds / run.steps,
        "eta_per_step": eta if math.isfinite(eta) else None,
        "further_arms": run.further_arms,
        "arms_per_context": run.arms_per_context,
        "ledger": [asdict(entry) for entry in _learned(run)],
    }


def text(run: Run) -> str:
    """What a person wants to know at the end."""
    given, facts = run.settings, document(run, 0)
    replicas = f", {given.replicas} replicas" if given.replicas > 1 else ""
    twin = "" if run.twin_rewards is None else f", of the plaintext twin {facts['twin_average_reward']:.4f}"
    rows = [
        f"{run.steps:,} steps, {given.arms} arms, {run.parties} parties{replicas}: average reward "
        f"{facts['average_reward']:.4f}{twin}",
        _beside_twin(run),
        "",
        f"a step took {facts['rounds_per_step']:g} rounds, {facts['bytes_per_step_per_party']:,.0f} bytes from each "
        f"party to each other, {1e3 * facts['seconds_per_step']:.2f} ms;",
        f"dealt beforehand: {facts['offline_bytes_per_step']:,.0f} bytes, "
        f"{1e3 * facts['offline_seconds_per_step']:.2f} ms of the dealer's time",
        "",
        "who learned what",
        *(f"  {line}" for line in _ledger(run)),
        "",
        *_privacy(run),
    ]
    return "\n".join(rows)


def save(run: Run, seed: int, data: str, folder: Path) -> list[Path]:
    """result.json, steps.npz and reward.png."""
    from .plots import reward_curve

    folder.mkdir(parents=True, exist_ok=True)
    result, steps, curve = folder / "result.json", folder / "steps.npz", folder / "reward.png"
    whole = {
        **document(run, seed), "data": data, "settings": run.settings.as_json(), "meter": asdict(run.cost),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
        "differences": [asdict(difference) for difference in run.differences],
    }  # fmt: skip
    result.write_text(json.dumps(whole, indent=1) + "\n")
    columns = {"arms": run.arms, "rewards": run.rewards, "twin_arms": run.twin_arms, "twin_rewards": run.twin_rewards}
    known: dict[str, Any] = {name: column for name, column in columns.items() if column is not None}
    np.savez_compressed(steps, **known)
    reward_curve(run, curve)
    return [curve, result, steps]


def _beside_twin(run: Run) -> str:
    if run.twin_rewards is None:
        return "the coins of this material are the dealer's alone, so no twin was played"
    if not run.differences:
        return "it pulled the same arms as its plaintext twin at every step"
    bits = 15 if run.settings.state_bits >= 28 else 12  # what fixed point may order otherwise than the twin
    where = "; ".join(f"replica {d.replica} at step {d.step}, {_gap(d, bits)}" for d in run.differences[:5])
    return f"it first pulled another arm than its twin in {where}"


def _gap(difference: Difference, bits: int) -> str:
    if difference.gap == 0.0:
        return "where the two best scores tied exactly"
    if difference.gap < 2.0**-bits:
        return f"a near tie: the two best scores were {difference.gap:.2g} apart, less than 2^-{bits}"
    return f"where the two best scores were {difference.gap:.2g} apart, no near tie, which is below 2^-{bits}"


def _learned(run: Run) -> list[Entry]:
    """What the session disclosed, and what the payer knows because it brings it."""
    return [*run.ledger, Entry(PAYER, "reward", run.arms.size, "its own input")] if run.ledger else []


def _ledger(run: Run) -> list[str]:
    if not run.ledger:
        return ["nobody learned anything"]
    rows = [(entry.role, f"{entry.count:,} x {entry.what}", entry.why) for entry in _learned(run)]
    rows.append(("parties 0 to " + str(run.parties - 1), "nothing", "each had its own features as input"))
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    return [f"{role.ljust(widths[0])}  {what.ljust(widths[1])}  {why}" for role, what, why in rows]


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


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
