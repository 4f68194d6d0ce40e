"""`masked demo`: clinics in processes of their own find the treatment with most recoveries, and nothing else.

    clinic p                     clinics together                    everyone
recoveries_p  -- shares -->   total, exact; argmax on shares  -->  one-hot of the best treatment
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpc import ops
from mpc.errors import ConfigError
from mpc.launch import Place, join, launch, own_command, place
from mpc.rounds import Open, Request, Reveal, Rounds
from mpc.scratch import scratch_folder
from mpc.session import Session
from offline import Plan, Recorder

from ..run.dealer_process import dealer_beside, source_for
from ..run.options import natural

_TREATMENTS = ("aspirin", "bisoprolol", "candesartan", "diltiazem", "enalapril")
_BOUND = 1000.0


def register(commands: Any, _: Sequence[str]) -> None:
    """Add `demo`."""
    demo = commands.add_parser("demo", help="three parties in three processes, and what each learned")
    demo.add_argument("--parties", type=int, default=3, help="how many clinics (3)")
    demo.add_argument("--seed", type=natural, default=1, help="of the clinics' numbers (1)")
    demo.set_defaults(run=_demo)


def recoveries(party: int, seed: int) -> np.ndarray:
    """What clinic `party` alone knows."""
    return np.random.default_rng([seed, party]).integers(5, 95, len(_TREATMENTS))


def best_treatment(session: Session, own: np.ndarray | None) -> Rounds[np.ndarray]:
    """One-hot of the treatment with the largest total.  Cost: 4 rounds and the reveal."""
    shape = (len(_TREATMENTS),)
    shares = [
        session.share(own if party in session.hosted else None, owner=party, shape=shape, scale=0, bound=_BOUND)
        for party in range(session.parties)
    ]
    total = shares[0]
    for share in shares[1:]:
        total = total + share
    best = yield from ops.argmax(session, total, score_bits=20)
    return (yield Reveal(best, what="best treatment", why="the clinics agreed to learn it"))


def _demo(options: argparse.Namespace) -> None:
    here = place()
    if here is not None:
        _clinic(options, here)
        return
    if not 2 <= options.parties <= 16:
        raise ConfigError(f"the demo has 2 to 16 clinics, not {options.parties}")
    recorder = Recorder(options.parties)
    with Session.simulate(options.parties, recorder) as session:
        session.run(best_treatment(session, np.zeros(len(_TREATMENTS))))
    plan = Plan("demo", options.parties, tuple(recorder.items))
    print(
        f"{options.parties} clinics, each a process of its own, and a dealer that hands out masks and learns nothing."
    )
    print(f"Each knows its own recoveries for {', '.join(_TREATMENTS)}.\n")
    command = own_command("protocols", "demo", "--seed", str(options.seed))
    said: dict[str, list[str]] = {}
    lock = threading.Lock()

    def hear(name: str, line: str) -> None:
        with lock:
            said.setdefault(name, []).append(line)

    with scratch_folder() as scratch, dealer_beside(plan, 1, scratch) as own:
        launch(command, options.parties, own_environments=own, output=hear, load=["protocols.cli", __name__])
    for name in sorted(said):
        print("\n".join(f"{name} | {line}" for line in said[name]), end="\n\n")
    totals = np.sum([recoveries(party, options.seed) for party in range(options.parties)], axis=0)
    print(f"In the clear (only this script could know): totals {totals.tolist()}, best {_TREATMENTS[totals.argmax()]}.")


def _clinic(options: argparse.Namespace, here: Place) -> None:
    own = recoveries(here.node, options.seed)
    heard: list[str] = []

    def listener(request: Request, sent: np.ndarray, reply: Any) -> None:
        if isinstance(request, Open):
            heard.extend(
                f"{int(word):0{-(-request.bits // 4)}x} (of {request.bits} bits)" for word in reply.reshape(-1)
            )

    source = source_for(here, None)
    with Session(join(), source, listener=listener) as session:
        best = session.run(best_treatment(session, own))
        cost = session.meter.total
        print(f"my own numbers        {own.tolist()}")
        print(f"opened to me, masked  {heard[0]}, {heard[1]}, ... {len(heard)} words, each uniform noise")
        print(f"the result            {_TREATMENTS[int(best.argmax())]}")
        print(f"cost                  {cost.rounds} rounds, {cost.sent_bytes} bytes sent, {1e3 * cost.seconds:.1f} ms")
        for entry in session.ledger:
            print(f"ledger                {entry.role} learned {entry.what} ({entry.count} values): {entry.why}")
