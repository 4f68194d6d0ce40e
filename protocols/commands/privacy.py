"""`masked privacy`: what the pulled arms tell, in one step and in many, and an audit that measures it.

Exit code 1 says that the audit found more than is stated.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from typing import Any

from bandits.privacy import advanced, basic, eps_for, eta_bound, eta_per_step
from mpc.errors import ConfigError
from mpc.extras import extra
from mpc.session import Session
from mpc.tables import plain
from offline import InProcessDealer

from ..ppcb.audit import runs_at_once, secure_chooser
from ..run.options import check_parties
from ..run.progress import Progress
from .answer import add_json, answer

_CONFIDENCE = 0.999
_RAREST = 2.0**-40  # a coin has 64 bits: down to here its chance is eps to a part in 10^7
_MOST_ARMS = 1000
_COLUMNS = (("", "s"), ("epsilon", ">"), ("delta", "g"), ("", "s"))
_VOID = 20.0  # an epsilon beyond this rules nothing out in practice


def register(commands: Any, _: Sequence[str]) -> None:
    """Add `privacy`."""
    parser = commands.add_parser("privacy", help="the differential privacy of the pulled arms, stated and audited")
    parser.add_argument("--arms", type=int, default=10, help="how many arms (10)")
    wanted = parser.add_mutually_exclusive_group()
    wanted.add_argument("--eps", type=float, default=0.1, help="how often to explore (0.1)")
    wanted.add_argument("--eta", type=float, help="find the eps that gives a step this eta")
    parser.add_argument("--steps", type=int, default=60_000, help="how many pulled arms somebody sees (60000)")
    parser.add_argument("--delta", type=float, default=1e-6, help="of the composition (1e-6)")
    parser.add_argument("--audit", action="store_true", help="pull arms by the secure argmax and bound eta from below")
    parser.add_argument("--runs", type=int, help="with --audit: on each of two contexts (100000)")
    parser.add_argument("--parties", type=int, help="with --audit: computing parties (3)")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    if not options.audit and (options.runs is not None or options.parties is not None):
        raise ConfigError("--runs and --parties are of an audit: add --audit, or leave them out")
    try:
        facts = document(options.arms, _eps(options), options.steps, options.delta)
    except ValueError as error:
        raise ConfigError(str(error)) from error
    if options.audit:
        runs = 100_000 if options.runs is None else options.runs
        facts["audit"] = audited(facts, runs, 3 if options.parties is None else options.parties)
    answer(options, facts, _text(facts), respected=not options.audit or facts["audit"]["respected"])


def _eps(options: argparse.Namespace) -> float:
    """How often is explored, as given or for the eta that is wanted."""
    eps = options.eps if options.eta is None else eps_for(options.arms, options.eta)
    if 0 < eps < _RAREST or (eps == 0 and options.eta is not None):
        largest = eta_per_step(options.arms, _RAREST)
        raise ConfigError(
            f"exploration with probability {eps:.2g} is rarer than the dealer's coins can draw: choose --eps from "
            f"{_RAREST:.1e} or --eta up to {largest:.1f}, or --eps 0 for none"
        )
    return eps


def document(arms: int, eps: float, steps: int, delta: float) -> dict[str, Any]:
    """The statement as other tools read it; null is infinite, no guarantee."""
    with extra("masked privacy"):
        from bandits.accounting import pld  # dp_accounting takes half a second to import, and no other command needs it

    eta = eta_per_step(arms, eps)
    facts = {
        "arms": arms, "eps": eps, "steps": steps, "delta": delta, "eta_per_step": eta,
        "eta_bound": eta_bound(arms, eps), "pld": pld(arms, eps, steps, delta), "basic": basic(eta, steps),
        "advanced": advanced(eta, steps, delta),
    }  # fmt: skip
    return {name: value if math.isfinite(value) else None for name, value in facts.items()}


def audited(facts: dict[str, Any], runs: int, parties: int) -> dict[str, Any]:
    """What the secure argmax shows of eta in `runs` runs on each of two contexts."""
    check_parties(parties)
    if runs < 2:
        raise ConfigError(f"an audit takes at least 2 runs, and 1000 to find anything, not {runs}")
    if facts["arms"] > _MOST_ARMS:
        raise ConfigError(f"the audited argmax compares all pairs of up to {_MOST_ARMS} arms, not {facts['arms']}")
    if facts["eta_per_step"] is None:
        raise ConfigError("without exploration there is no eta to audit: choose --eps above 0")
    from bandits.audit import audit

    progress = Progress(2 * runs, "run")
    arms, eta = facts["arms"], facts["eta_per_step"]
    with Session.simulate(parties, InProcessDealer(parties)) as session:
        finding = audit(
            secure_chooser(session, facts["eps"]), arms, runs=runs, confidence=_CONFIDENCE, batch=runs_at_once(arms),
            progress=progress,
        )  # fmt: skip
    progress.end()
    return {
        "runs": finding.runs, "parties": parties, "confidence": finding.confidence, "eta_stated": eta,
        "eta_at_least": finding.lower, "respected": finding.lower <= eta,
    }  # fmt: skip


def _text(facts: dict[str, Any]) -> str:
    many = f"{facts['steps']:,} steps"
    table = [
        ("1 step", "eta_per_step", 0.0, "log(A / eps - A + 1), and no less"),
        ("1 step", "eta_bound", 0.0, "log(A / eps), the simpler bound"),
        (many, "pld", facts["delta"], "by privacy loss distributions: the one to quote"),
        (many, "basic", 0.0, "basic composition, T eta"),
        (many, "advanced", facts["delta"], "advanced composition, Dwork, Rothblum and Vadhan 2010"),
    ]
    lines = [(where, _number(facts[name]), at, how) for where, name, at, how in table]
    rows = [f"arms {facts['arms']}, exploration {facts['eps']:.4g}", "", *plain(_COLUMNS, lines)]
    rows += ["", *_meaning(facts)]
    if "audit" in facts:
        rows += ["", *_verdict(facts["audit"])]
    return "\n".join(rows)


def _meaning(facts: dict[str, Any]) -> list[str]:
    if facts["eta_per_step"] is None:
        return [
            "No guarantee: without exploration the arm follows from the context, and to see it rules contexts out.",
            "Choose --eps above 0.",
        ]
    likelier, steps = math.exp(facts["eta_per_step"]), facts["steps"]
    rows = [
        f"One arm seen: it is at most {likelier:,.4g} times as likely under one secret as under any other.",
        f"{steps:,} arms seen: the secret is all contexts and rewards; the bound holds if all of it changes, or one",
        "context alone. For what is learned from a context decides later arms, and each of them may tell of it again.",
        "Of T steps, T - t + 1 can tell of the context of step t; its own alone if nothing is learned from it.",
    ]
    if facts["pld"] > _VOID:
        rows += [f"An epsilon above {_VOID:g} promises nothing in practice: so many arms may tell everything."]
    return [
        *rows,
        "This holds against everyone but the dealer, who draws the coins: against whoever sees the arms and, in",
        "league, all computing parties but one. The rewards that the payer sees are not covered.",
    ]


def _verdict(audit: dict[str, Any]) -> list[str]:
    result = "respected" if audit["respected"] else "VIOLATED: the arms tell more than is stated"
    return [
        f"audit: the secure argmax of {audit['parties']} parties, {audit['runs']:,} runs on each of two contexts",
        f"  eta stated    {audit['eta_stated']:.4f}",
        f"  eta at least  {audit['eta_at_least']:.4f}  with confidence {100 * audit['confidence']:g} %",
        f"  {result}",
    ]


def _number(value: float | None) -> str:
    if value is None:
        return "no guarantee"
    return f"{value:,.0f}" if value >= 1e4 else f"{value:.4g}"
