"""One launched owner of the bandit's benchmark: plays the steps of a task and prints how long each took."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

from mpc.launch import join, party_main, place
from mpc.session import Session

from ..ppcb.play import Play
from ..ppcb.program import PAYER, PULLER
from ..ppcb.roles import Task
from ..run.sources import source_for


def main() -> None:
    """Play this owner's part."""
    folder, here = Path(sys.argv[1]), place()
    assert here is not None
    task = Task.load(folder)
    own = np.load(folder / f"block-{here.node}.npy")
    source = source_for(here.node, task.material)
    spent = np.zeros(task.decisions, np.int64)
    with Session(join(), source, roles=(PULLER, PAYER)) as session:
        play = Play(session, task.settings)
        for step, features in enumerate(own):
            started = time.perf_counter_ns()
            play.turn({here.node: features})
            spent[step] = time.perf_counter_ns() - started
        cost = session.meter.total
    source.close()
    told = {"nanoseconds": spent.tolist(), "rounds": cost.rounds, "opened": cost.opened_bytes, "sent": cost.sent_bytes}
    print(json.dumps(told))


if __name__ == "__main__":
    party_main(main)
