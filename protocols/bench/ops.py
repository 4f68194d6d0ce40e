"""`scripts/bench ops`: every operation over memory, tcp and gloo, beside plaintext and CrypTen."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from mpc.cases import Case, cases
from mpc.errors import ConfigError
from mpc.launch import launch
from mpc.scratch import scratch_folder
from mpc.session import Session
from mpc.tables import markdown
from offline import deal

from ..run.exits import say
from . import crypten
from .measure import WARM_UPS, Prepared, Row, plan_case, time_case, time_dealing, time_plain
from .report import Page, head, ratio

PeerRow = Mapping[str, Any]

# What the project promises at N = 2 over tcp: (op, size) -> times faster than CrypTen 0.4.1 in the same run.
GOALS = {
    ("argmax", 10): 40.0,
    ("argmax", 100): 15.0,
    ("reciprocal-table", 100): 50.0,
    ("product", 1000): 3.0,
    ("product-truncate", 1000): 3.0,
    ("comparison", 1000): 3.0,
    ("exchange", 8): 5.0,
}
_ABOUT = """Times are medians of the slowest party. Material is dealt beforehand;
its size and the dealer's time are the offline columns. Bytes are what a party sends in all. Plain is numpy.
CrypTen is version 0.4.1 over gloo with its default provider, which makes its randomness in the timed call;
'with dealing' is the ratio when our dealer's time is added to ours as if nothing had been dealt beforehand."""
_AGAINST = (
    ("operation", "s"), ("size", "d"), ("ours, us", ",.0f"), ("CrypTen, us", ",.0f"), ("times faster", ".1f"),
    ("goal", "g"), ("with dealing", ".1f"), ("rounds", "d"), ("its rounds", ""),
)  # fmt: skip
_EVERY = (
    ("operation", "s"), ("size", "d"), ("N", "d"), ("transport", "s"), ("us", ",.0f"), ("plain us", ",.1f"),
    ("rounds", "d"), ("bytes sent", ","), ("offline bytes", ","), ("offline us", ",.0f"),
)  # fmt: skip
_PEERS = (
    ("operation", "s"), ("size", "d"), ("N", "d"), ("us", ",.0f"), ("rounds", ""),
    ("bytes sent and received", ",.0f"), ("largest error", ".1e"),
)  # fmt: skip


def bench(options: argparse.Namespace) -> Page:
    """Measure all operations."""
    rows, note, peers = measure(options)
    return Page(as_json(rows), as_markdown(rows, note, peers), missed(rows))


def measure(options: argparse.Namespace) -> tuple[list[Row], str, list[PeerRow]]:
    """All rows, what a reader must know of them, and all rows of the peer."""
    repeats = options.repeats or (5 if options.quick else 25)
    chosen = _chosen(options, repeats)
    note = "" if options.no_peer else crypten.install()
    if note:
        note = f"CrypTen could not be installed ({note}), so its column is empty."
        say(note)
    rows: list[Row] = []
    peers: list[PeerRow] = []
    for parties in options.parties:
        dealing = {(case.op, case.size): time_dealing(plan_case(case, parties)) for case in chosen}
        for transport in ("memory", "tcp", "gloo"):
            say(f"N = {parties}, {transport}: {len(chosen)} operations")
            run = _memory(chosen, parties, repeats) if transport == "memory" else None
            run = (
                run
                if run is not None
                else time_in_processes(chosen, parties, transport, repeats, *["--quick"] * options.quick)
            )
            rows += [replace(row, offline_microseconds=dealing.get((row.op, row.size))) for row in run]
        if not note and not options.no_peer:
            say(f"N = {parties}, CrypTen")
            found = crypten.measure(parties, min(repeats, 9))
            peers += found.values()
            rows = _beside(rows, found, chosen, parties)
    return rows, note, peers


def _chosen(options: argparse.Namespace, repeats: int) -> list[Case]:
    """The operations that are wanted; refuses what cannot be measured."""
    wanted = options.only.split(",") if options.only else None
    known = {case.op for case in cases()}
    if unknown := set(wanted or ()) - known:
        raise ConfigError(
            f"no operation is called {', '.join(sorted(unknown))}: choose from {', '.join(sorted(known))}"
        )
    if min(options.parties) < 2 or repeats < 1:
        raise ConfigError("at least 2 parties and 1 repeat")
    return [case for case in cases(quick=options.quick) if wanted is None or case.op in wanted]


def _memory(chosen: list[Case], parties: int, repeats: int) -> list[Row]:
    rows = []
    for case in chosen:
        plan = plan_case(case, parties)
        session = Session.simulate(parties, Prepared(parties, plan.items * (repeats + WARM_UPS)))
        rounds, sent, micro = time_case(session, case, repeats)
        plain = time_plain(case.plain, case.inputs(np.random.default_rng(1)))
        rows.append(Row(case.op, parties, "memory", case.size, rounds, sent, plan.step_bytes, micro, plain))
    return rows


def time_in_processes(chosen: list[Case], parties: int, transport: str, repeats: int, *table: str) -> list[Row]:
    """A process for each party, on material dealt beforehand.  table: words that choose the party's table of cases."""
    lines: list[str] = []
    with scratch_folder() as scratch:
        steps = repeats + WARM_UPS
        for case in (case for case in chosen if case.rounds):
            deal(plan_case(case, parties), steps, scratch / case.name.replace("/", "-"), block_steps=steps)
        os.sync()  # or the kernel writes the material back while the parties are timed
        command = [sys.executable, "-m", "protocols.bench.party", "--material", str(scratch), "--repeats", str(repeats)]
        launch(
            [*command, *table], parties, transport=transport,
            output=lambda name, line: lines.append(line) if name == "party 0" else None,
        )  # fmt: skip
    return [Row(**row) for row in json.loads(lines[-1])]


def _beside(rows: list[Row], found: Mapping[tuple[str, int], PeerRow], chosen: list[Case], parties: int) -> list[Row]:
    """Rows of this N with the peer's numbers at the same size."""
    names = {case.op: case.peer for case in chosen} | {"exchange": "gloo-all-gather"}
    out = []
    for row in rows:
        size = 1 if row.op == "exchange" else row.size
        match = found.get((names.get(row.op, ""), size)) if row.parties == parties else None
        if match is not None:
            row = replace(  # noqa: PLW2901
                row,
                peer_microseconds=float(str(match["microseconds"])),
                peer_rounds=int(str(match["rounds"])) if match.get("rounds") is not None else None,
            )
        out.append(row)
    return out


def as_json(rows: Sequence[Row]) -> str:
    """One document: a list of rows."""
    return json.dumps([asdict(row) for row in rows], indent=1)


def as_markdown(rows: Sequence[Row], note: str, peers: Sequence[PeerRow] = ()) -> str:
    """Tables for a reader: goals first, then every number."""
    against = [
        (row.op, row.size, row.microseconds, other, ratio(other, row.microseconds), GOALS.get((row.op, row.size)),
         ratio(other, row.microseconds + (row.offline_microseconds or 0.0)), row.rounds, row.peer_rounds)
        for row in rows if (other := row.peer_microseconds) and _compared(row)
    ]  # fmt: skip
    every = [
        (row.op, row.size, row.parties, row.transport, row.microseconds, row.plain_microseconds, row.rounds,
         row.bytes_per_party, row.offline_bytes, row.offline_microseconds)
        for row in rows
    ]  # fmt: skip
    found = [
        (peer["op"], peer["size"], peer["parties"], peer["microseconds"], peer["rounds"], peer["bytes_per_party"],
         peer.get("max_error", 0.0))
        for peer in peers
    ]  # fmt: skip
    return "\n".join([
        *head("Operations", "ops", _ABOUT),
        *([note, ""] if note else []),
        "## Against CrypTen, two parties over tcp",
        "",
        *markdown(_AGAINST, against),
        "",
        "## Every operation",
        "",
        *markdown(_EVERY, every),
        *(["", "## CrypTen, all that was measured", "", *markdown(_PEERS, found)] if found else []),
    ]) + "\n"  # fmt: skip


def missed(rows: Sequence[Row]) -> list[str]:
    """The goals that this run did not reach."""
    out = []
    for row in rows:
        goal, found = GOALS.get((row.op, row.size)), ratio(row.peer_microseconds, row.microseconds)
        if goal and _compared(row) and found is not None and found < goal:
            out.append(f"{row.op} of {row.size}: {found:.1f} times faster than the peer, the goal is {goal:g}")
    return out


def _compared(row: Row) -> bool:
    """Goals are of two parties over tcp."""
    return row.parties == 2 and row.transport == "tcp"
