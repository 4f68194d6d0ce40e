"""`scripts/bench ops`: every operation over memory, tcp and gloo, beside plaintext and CrypTen.

`scripts/bench ppcb`: a step of the private contextual bandit.

`scripts/bench linucb`: a pull of the outsourced linear bandit, with Paillier and on shares.

`scripts/bench samba`: a step of federated arms, with AES-GCM and on shares.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mpc.cases import Case, cases
from mpc.errors import ConfigError, MaskedError
from mpc.launch import launch
from mpc.session import Session
from offline import deal

from . import bandit, linucb, peer, samba
from .measure import WARM_UPS, Prepared, Row, plan_case, time_case, time_dealing, time_plain
from .report import as_json, as_markdown, missed, save

PeerRow = dict[str, Any]

_EXAMPLES = """examples:
  scripts/bench ops                      all operations, N = 2, 3, 5; writes benchmarks/ops.json and ops.md
  scripts/bench ops --quick --json -     small sizes, few repeats, one JSON document on stdout, no file
  scripts/bench ops --no-peer            without CrypTen
  scripts/bench ppcb                     the bandit's step; writes benchmarks/ppcb.json and ppcb.md
  scripts/bench linucb                   the outsourced bandit's pull; writes benchmarks/linucb.json and linucb.md
  scripts/bench samba                    a step of federated arms; writes benchmarks/samba.json and samba.md
"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=["ops", "ppcb", "linucb", "samba"], help="what to measure")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats: does it run, not how fast")
    parser.add_argument(
        "--json", metavar="FILE", help="write the rows to FILE ('-': stdout) and nothing to benchmarks/"
    )
    parser.add_argument("--parties", type=int, nargs="+", default=[2, 3, 5], help="numbers of parties, for ops (2 3 5)")
    parser.add_argument("--repeats", type=int, help="timed runs of each operation, for ops (25, quick 5)")
    parser.add_argument("--only", help="operations to measure, by name, with commas, for ops")
    parser.add_argument(
        "--no-peer", action="store_true", help="leave CrypTen's column empty; else .venv-crypten is made (1 GB)"
    )
    options = parser.parse_args()
    try:
        {"ops": _operations, "ppcb": _bandit, "linucb": _linear, "samba": _samba}[options.what](options)
    except MaskedError as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None


def _bandit(options: argparse.Namespace) -> None:
    rows, simulated, peers, note = bandit.measure(quick=options.quick, with_peer=not options.no_peer)
    document, page = bandit.as_json(rows, simulated, peers), bandit.as_markdown(rows, simulated, note)
    _tell(options, "ppcb", document, page, bandit.missed(rows, simulated))


def _linear(options: argparse.Namespace) -> None:
    rows, long = linucb.measure(quick=options.quick)
    _tell(options, "linucb", linucb.as_json(rows, long), linucb.as_markdown(rows, long), linucb.missed(rows, long))


def _samba(options: argparse.Namespace) -> None:
    results = samba.measure(quick=options.quick)
    _tell(options, "samba", samba.as_json(results), samba.as_markdown(results), samba.missed(results))


def _tell(options: argparse.Namespace, name: str, document: str, page: str, missed_: list[str]) -> None:
    """Print and write a benchmark of one page, and say which goals it missed."""
    if options.json == "-":
        print(document)
    elif options.json:
        _write(Path(options.json), document)
    else:
        Path("benchmarks").mkdir(exist_ok=True)
        _write(Path(f"benchmarks/{name}.json"), document)
        _write(Path(f"benchmarks/{name}.md"), page.rstrip())
        print(page)
        _say(f"written: benchmarks/{name}.json, benchmarks/{name}.md")
    for line in missed_ if not options.quick else []:
        _say(f"goal missed: {line}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text + "\n")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}: choose a place that can be written") from error


def _operations(options: argparse.Namespace) -> None:
    rows, note, peers = measure(options)
    if options.json == "-":
        print(as_json(rows))
    elif options.json:
        _write(Path(options.json), as_json(rows))
    else:
        save(rows, Path("benchmarks"), note, peers)
        print(as_markdown(rows, note, peers))
        _say("written: benchmarks/ops.json, benchmarks/ops.md")
    for line in missed(rows) if not options.quick else []:
        _say(f"goal missed: {line}")


def measure(options: argparse.Namespace) -> tuple[list[Row], str, list[PeerRow]]:
    """All rows, what a reader must know of them, and all rows of the peer."""
    repeats = options.repeats or (5 if options.quick else 25)
    wanted = options.only.split(",") if options.only else None
    chosen = [case for case in cases(quick=options.quick) if wanted is None or case.op in wanted]
    if unknown := set(wanted or ()) - {case.op for case in cases()}:
        names = ", ".join(sorted({case.op for case in cases()}))
        raise ConfigError(f"no operation is called {', '.join(sorted(unknown))}: choose from {names}")
    if min(options.parties) < 2 or repeats < 1:
        raise ConfigError("at least 2 parties and 1 repeat")
    note = "" if options.no_peer else peer.install()
    if note:
        note = f"CrypTen could not be installed ({note}), so its column is empty."
        _say(note)
    rows: list[Row] = []
    peers: list[PeerRow] = []
    for parties in options.parties:
        dealing = {(case.op, case.size): time_dealing(plan_case(case, parties)) for case in chosen}
        for transport in ("memory", "tcp", "gloo"):
            _say(f"N = {parties}, {transport}: {len(chosen)} operations")
            run = _memory(chosen, parties, repeats) if transport == "memory" else None
            run = run if run is not None else _processes(chosen, parties, transport, repeats, options.quick)
            rows += [replace(row, offline_microseconds=dealing.get((row.op, row.size))) for row in run]
        if not note and not options.no_peer:
            _say(f"N = {parties}, CrypTen")
            found = peer.measure(parties, min(repeats, 9))
            peers += found.values()
            rows = _beside(rows, found, chosen, parties)
    return rows, note, peers


def _memory(chosen: list[Case], parties: int, repeats: int) -> list[Row]:
    rows = []
    for case in chosen:
        plan = plan_case(case, parties)
        session = Session.simulate(parties, Prepared(parties, plan.items * (repeats + WARM_UPS)))
        rounds, sent, micro = time_case(session, case, repeats)
        plain = time_plain(case.plain, case.inputs(np.random.default_rng(1)))
        rows.append(Row(case.op, parties, "memory", case.size, rounds, sent, plan.step_bytes, micro, plain))
    return rows


def _processes(chosen: list[Case], parties: int, transport: str, repeats: int, quick: bool) -> list[Row]:
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="masked-") as scratch:
        steps = repeats + WARM_UPS
        for case in chosen:
            deal(plan_case(case, parties), steps, Path(scratch) / case.name.replace("/", "-"), block_steps=steps)
        os.sync()  # or the kernel writes the material back while the parties are timed
        command = [sys.executable, "-m", "protocols.bench.party", "--material", scratch, "--repeats", str(repeats)]
        launch(
            [*command, *["--quick"] * quick], parties, transport=transport,
            output=lambda name, line: lines.append(line) if name == "party 0" else None,
        )  # fmt: skip
    return [Row(**row) for row in json.loads(lines[-1])]


def _beside(rows: list[Row], found: dict[tuple[str, int], PeerRow], chosen: list[Case], parties: int) -> list[Row]:
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


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
