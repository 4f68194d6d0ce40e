"""Rows of costs of the contextual bandit: the time of a step, its rounds and bytes, and Table 1's operations."""

from __future__ import annotations

import sys

from bandits.environments import synthetic_linear
from mpc.cases import paper_cases
from mpc.errors import ConfigError

from ..bench import crypten
from ..bench import ppcb as bench
from ..bench.ops import time_in_processes
from ..ppcb.run import Bandit
from ..ppcb.settings import Settings, Variant
from ..run.simulate import simulate
from .ppcb_data import CLASSES, DIM
from .size import Size
from .units import Rows

PAPER = {
    "addition": ("0", 11),
    "multiplication": ("2", 380),
    "reciprocal": ("30", 6000),
    "argmax": ("O(P + log2 A)", 34_000),
}
_PEER = {"addition": "addition", "multiplication": "product", "reciprocal": "reciprocal", "argmax": "argmax"}
_PARTIES, _ARMS = 2, 100


def step_time(size: Size, parties: int, arms: int) -> Rows:
    """Milliseconds of a step with a process for each role, the median of the slowest party; dealt beforehand."""
    steps = 20 if size.quick else 400
    row = bench.ours(parties, arms, steps)
    return [{
        "parties": parties, "arms": arms, "steps": steps, "milliseconds": round(1e-3 * row.microseconds, 4),
        "rounds": row.rounds, "bytes": row.opened_bytes, "offline_bytes": row.offline_bytes,
        "dealing_milliseconds": round(1e-3 * row.offline_microseconds, 4),
        "plain_milliseconds": round(1e-3 * row.plain_microseconds, 4),
    }]  # fmt: skip


def step_cost(size: Size, variant: str, parties: int) -> Rows:
    """Rounds and bytes of a step at 10 arms and 20 dimensions."""
    settings = Settings(CLASSES, DIM, variant=Variant(variant))
    program = Bandit.on(synthetic_linear(CLASSES, DIM), settings, parties=parties, steps=5, seed=1)
    run = simulate(program, seed=1)
    return [{
        "variant": variant, "parties": parties, "rounds": run.cost.rounds / 5, "bytes": run.cost.opened_bytes / 5,
        "client_hops": run.cost.client_hops / 5, "offline_bytes": run.offline_bytes / 5,
    }]  # fmt: skip


def operations(size: Size) -> Rows:
    """Rounds and microseconds of Table 1's operations, and how much slower than plain PyTorch they are, in one run.

    Two parties in two processes, material dealt beforehand.  CrypTen's columns are there where `scripts/setup_crypten`
    has made its environment.
    """
    repeats = 3 if size.quick else 51
    plain = {row["op"]: row["microseconds"] for row in crypten.rows_of(sys.executable, "plain_torch.py")}
    if not plain:
        raise ConfigError("scripts/plain_torch.py could not run: draw Table 1 in a clone, with the extra 'torch'")
    found = time_in_processes(paper_cases(_ARMS), _PARTIES, "tcp", repeats, "--paper", str(_ARMS))
    wanted = crypten.there() and not size.quick
    peers = crypten.measure(_PARTIES, min(repeats, 9), only=list(_PEER.values())) if wanted else {}
    rows: Rows = []
    for op, (rounds, slower) in PAPER.items():
        for ours in (row for row in found if row.op in (op, f"{op}-published")):
            peer = peers.get((_PEER[op], _ARMS), {})
            rows.append({
                "operation": op, "as": "published" if ours.op.endswith("published") else "ours", "rounds": ours.rounds,
                "microseconds": round(ours.microseconds, 2), "plain_microseconds": round(plain[op], 3),
                "times_slower": round(ours.microseconds / plain[op], 1), "paper_rounds": rounds,
                "paper_times_slower": slower, "crypten_rounds": peer.get("rounds"),
                "crypten_microseconds": peer.get("microseconds"),
                "crypten_times_slower": round(peer["microseconds"] / plain[op], 1) if peer else None,
            })  # fmt: skip
    return rows
