"""One launched owner of the bandit's benchmark: plays the steps of a task and prints how long each took."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from mpc.launch import join, party_main, place
from mpc.session import Session

from ..run.dealer_process import source_for
from ..run.program import home_of
from ..run.role_process import Task, own_inputs


def main() -> None:
    """Play this owner's part."""
    folder, here = Path(sys.argv[1]), place()
    assert here is not None
    task = Task.load(folder)
    program = task.program()
    own = {here.node: own_inputs(folder, home_of(here.node))}
    source = source_for(here, task.material)
    spent = np.zeros(program.decisions, np.int64)
    with Session(join(), source, roles=[role.name for role in program.roles]) as session:
        player = program.player(session, own, None, 0)
        for step in range(program.decisions):
            started = time.perf_counter_ns()
            player.turn()
            spent[step] = time.perf_counter_ns() - started
        cost = session.meter.total
    source.close()
    told = {"nanoseconds": spent.tolist(), "rounds": cost.rounds, "opened": cost.opened_bytes, "sent": cost.sent_bytes}
    print(json.dumps(told))


if __name__ == "__main__":
    party_main(main)
