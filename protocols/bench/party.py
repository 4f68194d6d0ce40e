"""One launched party of a benchmark: times every case over its transport, and party 0 prints the rows as JSON."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

import numpy as np

from mpc.cases import cases, paper_cases
from mpc.launch import join, party_main, place
from mpc.session import Session
from offline import InsecureSeededDealer, Store, StoreSource

from .measure import Row, time_case, time_exchange, time_plain


def main() -> None:
    """Play this process's part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--material", type=Path, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--paper", type=int, metavar="ARMS", help="the operations of Table 1 on so many numbers")
    options = parser.parse_args()
    here = place()
    assert here is not None
    transport = join()
    table = cases(quick=options.quick) if options.paper is None else paper_cases(options.paper)
    chosen = {case.name.replace("/", "-"): case for case in table}
    rows = []
    with Session(transport, InsecureSeededDealer(here.parties, 0, party=here.node)) as idle:
        micro = time_exchange(idle, 200 * options.repeats)
        rows.append(Row("exchange", here.parties, here.transport, 8, 1, 8 * (here.parties - 1), 0, micro, None))
        for case in (case for case in table if not case.rounds):  # local, so nothing was dealt for it
            _, _, micro = time_case(idle, case, options.repeats)
            rows.append(Row(case.op, here.parties, here.transport, case.size, 0, 0, 0, micro, None))
        for folder in sorted(path for path in options.material.iterdir() if path.is_dir()):  # beside them a lock
            case = chosen[folder.name]
            source = StoreSource(Store(folder / f"party-{here.node}"), party=here.node)
            rounds, sent, micro = time_case(Session(transport, source), case, options.repeats)
            offline = source.plan.step_bytes
            source.close()
            values = case.inputs(np.random.default_rng(1))
            plain = time_plain(case.plain, values) if here.node == 0 else None
            rows.append(Row(case.op, here.parties, here.transport, case.size, rounds, sent, offline, micro, plain))
    if here.node == 0:
        print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    party_main(main)
