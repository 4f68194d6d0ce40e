"""`masked run OPERATION` and `masked launch OPERATION`: the protocol book from the command line.

Each step runs the operation once on inputs drawn from --seed, reveals the result to everyone, and compares it with
plaintext.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np

from mpc.cases import Case, argmax_case, cases
from mpc.errors import ConfigError
from mpc.extras import require
from mpc.launch import join, launch, own_command, place
from mpc.rounds import Reveal, Rounds
from mpc.scratch import scratch_folder
from mpc.session import Session
from mpc.share import Share
from offline import InProcessDealer

from ..bench.measure import plan_case
from ..run.dealer_process import dealer_beside, source_for
from ..run.options import check_parties, natural
from ..run.progress import Progress
from ..run.report import learned, ledger_json
from .answer import add_json, answer

_LOADED = ("protocols.cli", "protocols.commands.programs", __name__)


def register(run: Any, launch_: Any) -> None:
    """Add every operation to the programs of `run` and `launch`."""
    for name in names():
        for programs, command in ((run, _run), (launch_, _launch)):
            parser = programs.add_parser(name, description=f"{name}: an operation, checked against plaintext.")
            parser.set_defaults(run=command, operation=name)
            add_size(parser)
            parser.add_argument("--steps", type=int, default=1, help="how often the operation runs (1)")
            parser.add_argument("--seed", type=natural, default=0, help="of the inputs, never of the masks (0)")
            add_json(parser)
            parser.add_argument("--material", type=Path, help="draw from the stores below this directory")
            parser.add_argument("--session", default="local", help="the session the stores were dealt for (local)")
            if command is _launch:
                parser.add_argument("--transport", choices=["tcp", "gloo"], default="tcp", help="how they talk (tcp)")
                parser.add_argument(
                    "--timeout", type=float, default=60.0, help="seconds until a silent peer is lost (60)"
                )


def names() -> list[str]:
    """The operations of the table."""
    return sorted({case.op for case in cases()})


def epilog() -> str:
    """Their names, below the help of a list of programs."""
    said = f"or an operation of the protocol book, checked against plaintext: {', '.join(names())}"
    return fill(said, break_on_hyphens=False)


def add_size(parser: argparse.ArgumentParser) -> None:
    """The arguments that choose an operation's size and the parties."""
    parser.add_argument("--size", type=int, help="arms of argmax; other operations come in the size they list")
    parser.add_argument("--parties", type=int, default=3, help="how many computing parties (3)")


def chosen(options: argparse.Namespace) -> Case:
    """The case that the options name."""
    if options.operation == "argmax" and options.size is not None:
        if not 1 <= options.size <= 1000:
            raise ConfigError(
                f"argmax over all pairs takes 1 to 1000 arms, not {options.size}: ops.argmax_tournament takes more"
            )
        return argmax_case(options.size)
    found = [case for case in cases() if case.op == options.operation]
    if options.size is None:
        return found[0]
    for case in found:
        if case.size == options.size:
            return case
    sizes = ", ".join(str(case.size) for case in found)
    raise ConfigError(f"{options.operation} comes in size {sizes}, not {options.size}")


def _run(options: argparse.Namespace) -> None:
    """In one process; or, where torchrun or a launcher started this process, as one party."""
    here = place()
    case = chosen(options)
    _check(options)
    if here is None:
        if options.material is not None:
            raise ConfigError("--material is for parties in processes of their own: use 'masked launch'")
        _report(options, case, Session.simulate(options.parties, InProcessDealer(options.parties)), True)
        return
    source = source_for(here, options.material, options.session)
    source.want(options.steps)
    with Session(join(), source) as session:
        _report(options, case, session, here.node == 0)
    source.close()


def _launch(options: argparse.Namespace) -> None:
    case = chosen(options)
    _check(options)
    if options.transport == "gloo":
        require("torch", "--transport gloo")
    given = {"steps": options.steps, "seed": options.seed, "parties": options.parties, "session": options.session,
             "size": case.size}  # fmt: skip
    words = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    command = own_command("protocols", "run", options.operation, *words, *["--json"] * options.json)
    if options.material is not None:
        launch([*command, "--material", str(options.material)], options.parties, transport=options.transport,
               timeout=options.timeout, load=_LOADED)  # fmt: skip
        return
    with (
        scratch_folder() as scratch,
        dealer_beside(plan_case(case, options.parties), options.steps, scratch) as own,
    ):
        launch(command, options.parties, transport=options.transport, own_environments=own, timeout=options.timeout,
               load=_LOADED)  # fmt: skip


def _check(options: argparse.Namespace) -> None:
    check_parties(options.parties)
    if options.steps < 1:
        raise ConfigError(f"at least 1 step, not {options.steps}")


def _report(options: argparse.Namespace, case: Case, session: Session, speaks: bool) -> None:
    rng = np.random.default_rng(options.seed)
    error, result = 0.0, np.zeros(0)
    progress = Progress(options.steps) if speaks else None
    for done in range(1, options.steps + 1):
        values = case.inputs(rng)
        result = session.run(_revealed(case.program(session, *case.share(session, values))))
        if case.tolerance is not None:
            error = max(error, float(np.abs(result - case.plain(*values)).max()))
        if progress is not None:
            progress(done)
    if progress is None:
        return
    progress.end()
    cost, steps, allowed = session.meter.total, options.steps, case.tolerance
    opened = cost.opened_bytes / steps
    document = {
        "program": case.op, "size": case.size, "parties": session.parties, "seed": options.seed, "steps": steps,
        "max_error": None if allowed is None else error, "rounds_per_step": cost.rounds / steps,
        "bytes_per_step_per_party": opened, "sent_bytes_per_step_per_party": cost.sent_bytes / steps,
        "seconds_per_step": cost.seconds / steps, "ledger": ledger_json(session.ledger),
        "operation": case.op, "opened_bytes_per_step_per_peer": opened,  # their names until 1.0
    }  # fmt: skip
    head = np.array2string(result.reshape(-1)[:12], precision=4, separator=" ", max_line_width=200)
    answer(options, document, "\n".join([
        f"{case.name}, {session.parties} parties, {steps} steps; the last result begins {head}",
        *([] if allowed is None else [f"largest error against plaintext {error:.2g}, allowed {allowed:.2g}"]),
        f"a step took {cost.rounds / steps:g} rounds (the last one reveals), {opened:,.0f} masked "
        f"bytes to each peer, {1e3 * cost.seconds / steps:.2f} ms",
        "",
        *learned(session.ledger),
    ]))  # fmt: skip


def _revealed(program: Rounds[Share]) -> Rounds[Any]:
    share = yield from program
    return (yield Reveal(share, what="result", why="the run compares it with plaintext"))
