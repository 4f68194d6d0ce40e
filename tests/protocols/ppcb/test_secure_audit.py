"""The audit of the secure choice: it finds a leak, holds its confidence where there is none, and tells the ledger."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("dp_accounting", reason="the extra 'privacy' is not installed")

from bandits.audit import audit
from bandits.privacy import eta_per_step
from protocols.ppcb.audit import runs_at_once, secure_chooser


def test_the_secure_choice_respects_its_eta(parties: int, simulate: Callable[..., Any]) -> None:
    """5,000 runs on each context, on a fixed seed.  Exceeds eta at p < 1e-3."""
    eta = eta_per_step(4, 0.4)
    finding = audit(secure_chooser(simulate(parties, 6), 0.4), 4, runs=5000, batch=runs_at_once(4))
    assert eta - 0.4 < finding.lower <= eta


def test_half_the_exploration_is_found_in_the_secure_choice(simulate: Callable[..., Any]) -> None:
    finding = audit(secure_chooser(simulate(2, 7), 0.2), 4, runs=5000, batch=runs_at_once(4))
    assert finding.lower > eta_per_step(4, 0.4)


def test_an_audit_tells_the_ledger(simulate: Callable[..., Any]) -> None:
    session = simulate(2, 8)
    audit(secure_chooser(session, 0.5), 3, runs=20, batch=5)
    assert [(entry.role, entry.what, entry.count) for entry in session.ledger] == [("everyone", "arms", 120)]
