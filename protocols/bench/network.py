"""`scripts/bench network`: exchanges, and the bandit's step, over TLS, plain TCP, unix sockets and gloo, near and far.

All ways are timed in turns by the same processes, so what else the machine does hits all alike.  "Here" is loopback;
other delays are those of a line of our own between network namespaces, see `delay_line`.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bandits.environments import synthetic_linear
from mpc.errors import ConfigError
from mpc.extras import installed
from mpc.launch import launch
from mpc.net.certificates import make
from mpc.net.tls import listen_on
from mpc.scratch import scratch_folder
from offline import deal

from ..ppcb.program import PAYER, PULLER
from ..ppcb.run import Bandit
from ..ppcb.settings import Settings
from ..run.exits import say
from ..run.folder import Keep
from ..run.launch import Processes, prepare
from ..run.rehearsal import rehearse
from . import crypten as peer
from .delay_line import DEVICE, Line, delayed
from .network_page import ARMS, DIM, Distance, Exchange, Results, Step, as_json, as_markdown, missed
from .network_party import GLOO, TCP, TLS, UNIX, Plan, identity
from .report import Page

PARTIES = (2, 3, 5)
DISTANCES = (Distance(None), Distance(0.0), Distance(1.0), Distance(10.0), Distance(40.0), Distance(40.0, kept=True))
_LIMIT = 1500.0  # seconds that one setting may take
_WARM_UP = 3
_FAR = 10.0  # milliseconds from which on a first message after silence is measured


@dataclass(frozen=True)
class Repeats:
    """How often: blocks and exchanges of each size, messages after silence, steps of the bandit, steps of CrypTen."""

    exchanges: tuple[tuple[int, int, int], ...]
    silent: tuple[tuple[int, int], ...]
    steps: int
    peer: int


def bench(options: argparse.Namespace) -> Page:
    """Measure all numbers of parties and delays."""
    results = measure(quick=options.quick, with_peer=not options.no_peer)
    return Page(as_json(results), as_markdown(results), missed(results))


def measure(*, quick: bool, with_peer: bool) -> Results:
    """All numbers of parties and delays; where this machine refuses namespaces, loopback alone."""
    results = Results([], [], [], [])
    why_not = peer.install() if with_peer else ""
    if why_not:
        results.notes.append(f"CrypTen could not be installed ({why_not}), so it is missing.")
    if not installed("torch"):
        results.notes.append("torch is not installed, so gloo is missing.")
    for parties in (2,) if quick else PARTIES:
        for distance in (DISTANCES[0], DISTANCES[3]) if quick else DISTANCES:
            try:
                with _between(parties, distance) as line:
                    say(f"N = {parties}, {distance.text}{' ms one way' * (distance.delay is not None)}")
                    repeats, peers = _repeats(distance, quick=quick), with_peer and not why_not and not distance.kept
                    _set_up(results, parties, distance, line, repeats, peers=peers)
            except _Refused as refused:
                if str(refused) not in results.notes:
                    say(str(refused))
                    results.notes.append(str(refused))
    return results


class _Refused(ConfigError):
    """This machine has no namespaces to give."""


@contextlib.contextmanager
def _between(parties: int, distance: Distance) -> Iterator[Line | None]:
    if distance.delay is None:
        yield None
        return
    with contextlib.ExitStack() as around:
        try:
            line = around.enter_context(delayed(parties + 2, distance.delay, keeps=distance.kept))
        except ConfigError as error:
            raise _Refused(f"{error}; so all is on loopback.") from error
        yield line


def _repeats(distance: Distance, *, quick: bool) -> Repeats:
    far, silent = (distance.delay or 0.0) >= _FAR, ((32_000, 3), (1 << 20, 2))
    if quick:
        return Repeats(((8, 3, 4), (32_000, 2, 2)), silent[:1] if far else (), 6, 1)
    if far:
        return Repeats(((8, 4, 4), (32_000, 4, 4), (1 << 20, 3, 2)), silent, 13, 1)
    return Repeats(((8, 30, 40), (32_000, 20, 8), (1 << 20, 8, 2)), (), 103, 5)


def _set_up(
    results: Results, parties: int, distance: Distance, line: Line | None, repeats: Repeats, *, peers: bool
) -> None:  # fmt: skip
    """One number of parties at one distance."""
    ways = (TLS, TCP, *([UNIX] if line is None else []), *([GLOO] if installed("torch") else []))
    roles, nodes = (PULLER, PAYER), parties + 2
    environment, settings = synthetic_linear(ARMS, DIM, rows=2000, seed=1), Settings(arms=ARMS, dim=DIM, owners=parties)
    program = Bandit.on(environment, settings, parties=parties, steps=repeats.steps, seed=1)
    rehearsed = rehearse(program).plan
    with scratch_folder() as folder:
        for node in range(nodes):
            make(identity(folder, node), f"node {node}", dt.datetime.now(dt.timezone.utc))
        for way in ways:
            home = folder / way.replace(" ", "-")
            home.mkdir()
            deal(rehearsed, repeats.steps, home / "material", block_steps=20)
            keep = Keep(home / "keep", every=repeats.steps)
            prepare(program, Processes(material=home / "material"), keep, home)
        addresses = tuple(f"127.0.0.{node + 1}" if line is None else line.address(node) for node in range(nodes))
        device = "lo" if line is None else DEVICE
        apart = (
            Plan(folder, ways, addresses, _ports(ways), device, repeats.exchanges, repeats.silent),
            Plan(folder, ways, addresses, _ports(ways), device, steps=ways),
        )
        os.sync()  # or the kernel writes the material back while the parties are timed
        exchanged = _launched(apart[0], parties, (), line)
        played = _launched(apart[1], parties, roles, line)
    results.exchanges.extend(_exchanges(exchanged, apart[0], parties, distance))
    results.steps.extend(_steps(played, ways, parties, distance))
    if peers:
        found = peer.measure_bandit(parties, ARMS, DIM, repeats.peer, fastest=False, line=line)
        results.peers.extend({**row, "delay": distance.delay} for row in found if row["microseconds"] is not None)


def _launched(plan: Plan, parties: int, roles: Sequence[str], line: Line | None) -> list[dict[str, Any]]:
    """What each party measured, over connections of its own: what went over one before tells TCP how to send on it."""
    command = [sys.executable, "-m", "protocols.bench.network_party", str(plan.save())]
    command = command if line is None else line.inside(command)
    said: dict[str, str] = {}
    launch(
        command, parties, clients=dict.fromkeys(roles, command), output=said.__setitem__, limit=_LIMIT, timeout=_LIMIT
    )  # fmt: skip
    return [json.loads(said[f"party {party}"]) for party in range(parties)]


def _ports(ways: tuple[str, ...]) -> dict[str, int]:
    """One for each way, which was free a moment ago."""
    taken = [listen_on("127.0.0.1", 0) for _ in ways]
    ports = {way: sock.getsockname()[1] for way, sock in zip(ways, taken, strict=True)}
    for sock in taken:
        sock.close()
    return ports


def _exchanges(told: list[dict[str, Any]], plan: Plan, parties: int, distance: Distance) -> list[Exchange]:
    silent = {size: [each["silent"][at] for each in told] for at, (size, _) in enumerate(plan.silent)}
    rows = []
    for at, (size, _, _) in enumerate(plan.exchanges):
        for way in told[0]["exchanges"][at]:
            after = float(np.mean([each[way] for each in silent[size]])) if size in silent else None
            slowest = max(each["exchanges"][at][way] for each in told)
            rows.append(Exchange(parties, distance, way, size, slowest, after))
    return rows


def _steps(told: list[dict[str, Any]], ways: tuple[str, ...], parties: int, distance: Distance) -> list[Step]:
    rows = []
    for way in ways:
        first, every = told[0]["steps"][way]["cost"], [each["steps"][way]["nanoseconds"] for each in told]
        count, slowest = len(every[0]), np.max(every, axis=0)[_WARM_UP:]
        rounds, hops, opened = (first[name] / count for name in ("rounds", "client_hops", "opened_bytes"))
        rows.append(Step(parties, distance, way, float(np.median(slowest)) / 1e3, rounds, hops, opened))
    return rows
