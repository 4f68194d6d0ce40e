"""A run of ours and CrypTen's of the same steps, as one document and as text.  Knows results; no protocol."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mpc.interop.crypten import VERSION
from mpc.ledger import Entry
from mpc.tables import aligned

from ...run.report import Report, learned, ledger_json
from ..report import document, learned_of, on_twin, reward_curves
from ..run import Difference
from .engine import Beside

_NAME = f"CrypTen {VERSION}"
_SENT = "sent_bytes_per_step_per_party"


def report(both: Beside, *, processes: bool) -> Report:
    """processes: ours had a process for each role, else all of them in one; CrypTen's parties always have theirs."""
    return Report(
        _document(both), _text(both, processes=processes), both.steps, partial(_picture, both),
        files=partial(_steps_file, both),
    )  # fmt: skip


def _document(both: Beside) -> dict[str, Any]:
    """Ours as always, and the same facts of CrypTen's run below `crypten`."""
    theirs = {
        "version": VERSION, "average_reward": float(both.rewards.mean()),
        "first_difference": _first(both.differences), "rounds_per_step": both.rounds,
        _SENT: both.sent, "seconds_per_step": both.seconds,
        "ledger": ledger_json(both.ledger),
    }  # fmt: skip
    return {**document(both.ours), "engine": "crypten", "crypten": theirs}


def _first(differences: tuple[Difference, ...]) -> dict[str, float] | None:
    return next(({"step": each.step, "gap": each.gap} for each in differences), None)


def _text(both: Beside, *, processes: bool) -> str:
    ours = both.ours
    facts = document(ours)
    rows = [
        ("", _NAME, "ours"),
        ("average reward", f"{both.rewards.mean():.4f}", f"{facts['average_reward']:.4f}"),
        ("rounds a step", f"{both.rounds:g}", f"{facts['rounds_per_step']:g}"),
        ("kB that a party sends a step", *(f"{sent / 1e3:,.1f}" for sent in (both.sent, facts[_SENT]))),
        ("ms a step", f"{1e3 * both.seconds:,.2f}", f"{1e3 * facts['seconds_per_step']:,.2f}"),
        ("ms of dealing a step", "included", f"{1e3 * facts['offline_seconds_per_step']:,.2f}"),
    ]  # fmt: skip
    how = "a process for each role" if processes else "all roles in this process"
    entries: list[Entry] = learned_of(ours)
    return "\n".join([
        f"{both.steps:,} steps, {ours.settings.arms} arms, {ours.parties} parties, the same contexts and coins; the "
        f"plaintext twin has {facts['twin_average_reward']:.4f}",
        "",
        *aligned(rows),
        "",
        f"{_NAME}, Algorithm 1 step by step, a process for each party: {on_twin(both.differences, 12)}",
        f"ours, the recast, {how}: {on_twin(ours.differences, 12)}",
        "",
        f"{_NAME}: {learned(both.ledger)[0]}",
        *learned(both.ledger)[1:],
        f"ours: {learned(entries)[0]}",
        *learned(entries)[1:],
    ])  # fmt: skip


def _picture(both: Beside, path: Path) -> None:
    ours = both.ours
    reward_curves(
        [(ours.twin_rewards, "plaintext twin", "C0--"), (both.rewards, _NAME, "C2-"), (ours.rewards, "ours", "C1-")],
        f"Algorithm 1, eps = {ours.settings.eps:g}, {ours.parties} parties", path,
    )  # fmt: skip


def _steps_file(both: Beside, folder: Path) -> list[Path]:
    ours = both.ours
    np.savez_compressed(folder / "steps.npz", arms=ours.arms, rewards=ours.rewards, crypten_rewards=both.rewards)
    return [folder / "steps.npz"]
