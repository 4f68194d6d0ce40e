"""The benchmark as JSON and as a page.  Knows rows; no clock."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from .measure import Row

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


def as_json(rows: Sequence[Row]) -> str:
    """One document: a list of rows."""
    return json.dumps([asdict(row) for row in rows], indent=1)


def as_markdown(rows: Sequence[Row], note: str, peers: Sequence[Mapping[str, Any]] = ()) -> str:
    """Tables for a reader: goals first, then every number."""
    lines = [
        "# Operations",
        "",
        f"Measured {date.today().isoformat()} on {machine()}",
        "with `scripts/bench ops`, in one run. Times are medians of the slowest party. Material is dealt beforehand;",
        "its size and the dealer's time are the offline columns. Bytes are what a party sends in all. Plain is numpy.",
        "CrypTen is version 0.4.1 over gloo with its default provider, which makes its randomness in the timed call;",
        "'with dealing' is the ratio when our dealer's time is added to ours as if nothing had been dealt beforehand.",
        "",
        *([note, ""] if note else []),
        "## Against CrypTen, two parties over tcp",
        "",
        "| operation | size | ours, us | CrypTen, us | times faster | goal | with dealing | rounds | its rounds |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        if row.parties == 2 and row.transport == "tcp" and row.peer_microseconds:
            goal = GOALS.get((row.op, row.size))
            inline = row.peer_microseconds / (row.microseconds + (row.offline_microseconds or 0.0))
            lines.append(
                f"| {row.op} | {row.size} | {row.microseconds:,.0f} | {row.peer_microseconds:,.0f} | "
                f"{row.peer_microseconds / row.microseconds:.1f} | {f'{goal:g}' if goal else ''} | "
                f"{inline:.1f} | {row.rounds} | {row.peer_rounds if row.peer_rounds is not None else ''} |"
            )
    lines += ["", "## Every operation", ""]
    lines += ["| operation | size | N | transport | us | plain us | rounds | bytes sent | offline bytes | offline us |"]
    lines += ["| --- | ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for row in rows:
        dealing = "" if row.offline_microseconds is None else f"{row.offline_microseconds:,.0f}"
        plain = "" if row.plain_microseconds is None else f"{row.plain_microseconds:,.1f}"
        lines.append(
            f"| {row.op} | {row.size} | {row.parties} | {row.transport} | {row.microseconds:,.0f} | {plain} | "
            f"{row.rounds} | {row.bytes_per_party:,} | {row.offline_bytes:,} | {dealing} |"
        )
    if peers:
        lines += ["", "## CrypTen, all that was measured", ""]
        lines += ["| operation | size | N | us | rounds | bytes sent and received | largest error |"]
        lines += ["| --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
        lines += [
            f"| {peer['op']} | {peer['size']} | {peer['parties']} | {peer['microseconds']:,.0f} | {peer['rounds']} | "
            f"{peer['bytes_per_party']:,.0f} | {peer.get('max_error', 0.0):.1e} |"
            for peer in peers
        ]
    return "\n".join(lines) + "\n"


def missed(rows: Sequence[Row]) -> list[str]:
    """The goals that this run did not reach."""
    out = []
    for row in rows:
        goal = GOALS.get((row.op, row.size))
        if goal and row.parties == 2 and row.transport == "tcp" and row.peer_microseconds:
            ratio = row.peer_microseconds / row.microseconds
            if ratio < goal:
                out.append(f"{row.op} of {row.size}: {ratio:.1f} times faster than the peer, the goal is {goal:g}")
    return out


def save(rows: Sequence[Row], folder: Path, note: str, peers: Sequence[Mapping[str, Any]] = ()) -> None:
    """Write ops.json and ops.md."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ops.json").write_text(as_json(rows) + "\n")
    (folder / "ops.md").write_text(as_markdown(rows, note, peers))


def machine() -> str:
    """Cores, processor and versions."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.split(":")[1].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}, numpy {np.__version__}"
