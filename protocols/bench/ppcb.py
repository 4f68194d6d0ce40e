"""`scripts/bench ppcb`: a step of the private bandit beside CrypTen's, beside numpy's, and in simulation.

Each party is a process on loopback, and so are our puller and payer.  Material is dealt before the clock starts; what
it cost stands in columns of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bandits.environments import Environment, synthetic_linear
from bandits.linear import Choice, LinearBandit
from bandits.play import play
from mpc.launch import launch
from mpc.tables import markdown

from ..ppcb.program import PAYER, PULLER
from ..ppcb.run import Bandit
from ..ppcb.settings import Settings
from ..run.exits import say
from ..run.folder import Keep
from ..run.launch import Processes, prepare
from ..run.rehearsal import rehearse
from ..run.simulate import Simulation
from . import crypten as peer
from .measure import dealt, time_dealing
from .report import Page, head, ratio

DIM = 20
# (parties, arms) -> times faster than CrypTen 0.4.1's step in the same run
GOALS = {(2, 10): 150.0, (3, 10): 250.0, (2, 100): 30.0}
SLOWER_THAN_PLAIN, REPLICA_MILLISECONDS = 40.0, 0.4
_WARM_UP = 20
_ABOUT = """Contexts have 20 dimensions. Each party is a process on loopback, and ours have
the puller and the payer as processes beside them. Times are medians over steps of the slowest party.
Our material is dealt beforehand; its size and the dealer's time are the offline columns. CrypTen is version
0.4.1 over gloo with the step of its bandit example, written anew (`protocols/ppcb/crypten`); its
provider deals inside the step, so 'with dealing' adds our dealer's time to ours. Its bytes count what is
sent and received."""
_AGAINST = (
    ("N", "d"), ("arms", "d"), ("ours, ms", ".2f"), ("rounds", "g"), ("bytes to each peer", ",.0f"),
    ("CrypTen, ms", ".0f"), ("its rounds", ""), ("its bytes", ","), ("times faster", ".0f"), ("goal", "g"),
    ("with dealing", ".0f"), ("fastest argmax", ".0f"),
)  # fmt: skip
_BESIDE = (
    ("N", "d"), ("arms", "d"), ("offline, bytes a step", ","), ("offline, ms a step", ".2f"),
    ("numpy's step, us", ".0f"), ("times slower than numpy", ".1f"),
)  # fmt: skip
_REPLICAS = (
    ("N", "d"), ("arms", "d"), ("replicas", "d"), ("ms a replica-step", ".3f"), ("dealing, ms", ".3f"),
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """One size; times are medians of the slowest party's microseconds a step.

    peer_*: CrypTen with the argmax its example uses; fast_*: with its fastest one.
    """

    parties: int
    arms: int
    dim: int
    microseconds: float
    rounds: float
    opened_bytes: float
    sent_bytes: float
    offline_bytes: int
    offline_microseconds: float
    plain_microseconds: float
    peer_microseconds: float | None = None
    peer_rounds: int | None = None
    peer_bytes: int | None = None
    fast_microseconds: float | None = None


@dataclass(frozen=True)
class Replicas:
    """A simulation: microseconds of one step of one replica, online and dealing."""

    parties: int
    arms: int
    replicas: int
    microseconds: float
    offline_microseconds: float


def bench(options: argparse.Namespace) -> Page:
    """Measure all sizes."""
    rows, simulated, peers, note = measure(quick=options.quick, with_peer=not options.no_peer)
    return Page(as_json(rows, simulated, peers), as_markdown(rows, simulated, note), missed(rows, simulated))


def measure(*, quick: bool, with_peer: bool) -> tuple[list[Row], list[Replicas], list[dict[str, Any]], str]:
    """All sizes, the simulation, CrypTen's rows, and why there are none."""
    steps = 30 if quick else 400
    note = peer.install() if with_peer else ""
    rows, peers = [], []
    for parties, arms in GOALS:
        say(f"N = {parties}, {arms} arms")
        row = ours(parties, arms, steps)
        if with_peer and not note:
            found = peer.measure_bandit(parties, arms, DIM, 4 if quick else 15)
            peers += found
            row = _beside(row, found)
        rows.append(row)
    say("simulation, 40 replicas")
    return rows, [_replicas(2, 10, 40, 4 if quick else 60)], peers, note


def ours(parties: int, arms: int, steps: int) -> Row:
    """A size, CrypTen aside.  A dealer that worked beside so many processes would be a part of some steps' time."""
    environment, settings = _environment(arms), Settings(arms=arms, dim=DIM, owners=parties)
    total = steps + _WARM_UP
    program = Bandit.on(environment, settings, parties=parties, steps=total, seed=1)
    plan = rehearse(program).plan
    with dealt(plan, total) as folder:
        prepare(program, Processes(material=folder / "material"), Keep(folder / "keep"), folder)
        said: dict[str, str] = {}
        clients = {
            role: [sys.executable, "-m", "protocols.run.role_process", str(folder), role] for role in (PULLER, PAYER)
        }
        launch(
            [sys.executable, "-m", "protocols.bench.ppcb_party", str(folder)], parties, clients=clients,
            output=said.__setitem__,
        )  # fmt: skip
    told = [json.loads(said[f"party {party}"]) for party in range(parties)]
    slowest = np.max([party["nanoseconds"] for party in told], axis=0)[_WARM_UP:]
    first = told[0]
    return Row(
        parties, arms, DIM, float(np.median(slowest)) / 1e3, first["rounds"] / total, first["opened"] / total,
        first["sent"] / total, plan.step_bytes, time_dealing(plan), _plain(environment, arms),
    )  # fmt: skip


def _environment(arms: int) -> Environment:
    return synthetic_linear(arms, DIM, rows=2000, seed=1)


def _plain(environment: Environment, arms: int, steps: int = 2000) -> float:
    """Microseconds of a step of the twin, coins included."""
    rng = np.random.default_rng(1)
    coins = (Choice.draw(rng, 1, arms, 0.1) for _ in range(steps))
    episode = environment.episode(steps, 1)
    started = time.perf_counter_ns()
    for _ in play(LinearBandit(1, arms, DIM), [episode], coins):
        pass
    return (time.perf_counter_ns() - started) / steps / 1e3


def _replicas(parties: int, arms: int, replicas: int, steps: int) -> Replicas:
    settings = Settings(arms=arms, dim=DIM, replicas=replicas)
    program = Bandit.on(_environment(arms), settings, parties=parties, steps=steps + 5, seed=1)
    simulation = Simulation(program, seed=1)
    for _ in range(5):
        simulation.turn()
    before = simulation.session.meter.total.seconds, simulation.dealer.seconds
    for _ in range(steps):
        simulation.turn()
    whole, dealing = (now - then for now, then in zip(
        (simulation.session.meter.total.seconds, simulation.dealer.seconds), before))  # fmt: skip
    each = 1e6 / (steps * replicas)
    return Replicas(parties, arms, replicas, (whole - dealing) * each, dealing * each)


def _beside(row: Row, found: list[dict[str, Any]]) -> Row:
    timed = {peer["method"]: peer for peer in found if peer.get("microseconds") is not None}
    if (usual := timed.get("log_reduction")) is None:
        return row
    return replace(
        row, peer_microseconds=usual["microseconds"], peer_rounds=usual["rounds"],
        peer_bytes=usual["bytes_per_party"], fast_microseconds=min(peer["microseconds"] for peer in timed.values()),
    )  # fmt: skip


def as_json(rows: list[Row], simulated: list[Replicas], peers: list[dict[str, Any]]) -> str:
    """One document."""
    document = {
        "rows": [asdict(row) for row in rows],
        "simulation": [asdict(row) for row in simulated],
        "crypten": peers,
    }
    return json.dumps(document, indent=1)


def as_markdown(rows: list[Row], simulated: list[Replicas], note: str) -> str:
    """A page for a reader."""
    against = [
        (row.parties, row.arms, row.microseconds / 1e3, row.rounds, row.opened_bytes, ratio(row.peer_microseconds, 1e3),
         row.peer_rounds, row.peer_bytes, ratio(row.peer_microseconds, row.microseconds), GOALS[row.parties, row.arms],
         ratio(row.peer_microseconds, row.microseconds + row.offline_microseconds),
         ratio(row.fast_microseconds, row.microseconds))
        for row in rows
    ]  # fmt: skip
    beside = [
        (row.parties, row.arms, row.offline_bytes, row.offline_microseconds / 1e3, row.plain_microseconds,
         row.microseconds / row.plain_microseconds)
        for row in rows
    ]  # fmt: skip
    replicas = [
        (row.parties, row.arms, row.replicas, row.microseconds / 1e3, row.offline_microseconds / 1e3)
        for row in simulated
    ]
    return "\n".join([
        *head("A step of the private contextual bandit", "ppcb", _ABOUT),
        *([f"CrypTen could not be installed ({note}).", ""] if note else []),
        *markdown(_AGAINST, against),
        "",
        "'Fastest argmax' compares with CrypTen's pairwise argmax where that is faster than its default.",
        "",
        *markdown(_BESIDE, beside),
        "",
        "## In one process",
        "",
        *markdown(_REPLICAS, replicas),
    ]) + "\n"  # fmt: skip


def missed(rows: list[Row], simulated: list[Replicas]) -> list[str]:
    """The goals that this run did not reach."""
    out = []
    for row in rows:
        goal, found = GOALS[row.parties, row.arms], ratio(row.peer_microseconds, row.microseconds)
        if found is not None and found < goal:
            out.append(
                f"N = {row.parties}, {row.arms} arms: {found:.0f} times faster than CrypTen, the goal is {goal:g}"
            )
        slower = row.microseconds / row.plain_microseconds
        if (row.parties, row.arms) == (2, 10) and slower > SLOWER_THAN_PLAIN:
            out.append(f"{slower:.0f} times slower than numpy, the goal is {SLOWER_THAN_PLAIN:g}")
    return out + [
        f"{row.replicas} replicas: {row.microseconds / 1e3:.2f} ms a replica-step, the goal is {REPLICA_MILLISECONDS:g}"
        for row in simulated
        if row.microseconds / 1e3 > REPLICA_MILLISECONDS
    ]
