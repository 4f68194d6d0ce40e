"""`masked offline plan|deal|inspect|seal|open`: material for the online phase."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE, Certificate, check_key, read
from offline import Plan, deal, inspect
from offline.sealed import seal, unseal
from offline.store import Manifest

from ..bench.measure import plan_case
from ..run.options import add_planned, check_parties, planned
from ..run.plan_command import add_plan, table
from ..run.progress import Progress
from .operation import add_size, chosen, epilog, names
from .programs import systems


def register(commands: Any, words: Sequence[str]) -> None:
    """Add `offline`; words: what follows it."""
    offline = commands.add_parser("offline", help="plan, deal and inspect correlated randomness")
    actions = offline.add_subparsers(dest="action", metavar="ACTION", required=True)

    plan = actions.add_parser(
        "plan", help="run a program once and write what a step draws", epilog=epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    programs = plan.add_subparsers(dest="program", metavar="PROGRAM", required=True)
    for system in systems(words[1:]):
        add_plan(
            programs, system.name, partial(planned, system), add=partial(add_planned, system), summary=system.summary
        )
    for name in names():
        add_plan(programs, name, partial(_planned, name), add=add_size)

    dealing = actions.add_parser("deal", help="make material for many steps, a directory for each party")
    dealing.add_argument("plan", type=Path, help="a plan's file")
    dealing.add_argument("--steps", type=int, required=True, help="how many steps the material lasts")
    dealing.add_argument("--out", type=Path, required=True, help="where the parties' directories are made")
    dealing.add_argument("--session", default="local", help="a name that binds the material to one session (local)")
    dealing.add_argument("--block-steps", type=int, default=0, help="steps a crash may lose (about 1/16, at most 64)")
    dealing.set_defaults(run=_deal)

    look = actions.add_parser("inspect", help="say what a store is and what is left in it")
    look.add_argument("store", type=Path, help="a party's directory")
    look.set_defaults(run=_inspect)

    sealing = actions.add_parser(
        "seal", help="encrypt a party's directory for its certificate, to be sent by any means"
    )
    sealing.add_argument("store", type=Path, help="the party's directory, before its first use")
    sealing.add_argument("--to", type=Path, required=True, help="the party's certificate")
    sealing.add_argument(
        "--own", type=Path, default=Path("keys"), help="the dealer's folder of 'masked keys init' (keys)"
    )
    sealing.add_argument("-o", "--out", type=Path, required=True, help="the file to send")
    sealing.set_defaults(run=_seal)

    opening = actions.add_parser("open", help="make the directory that a dealer sealed for this party")
    opening.add_argument("file", type=Path, help="the file that the dealer sent")
    opening.add_argument("--dealer", type=Path, required=True, help="the dealer's certificate")
    opening.add_argument(
        "--own", type=Path, default=Path("keys"), help="this party's folder of 'masked keys init' (keys)"
    )
    opening.add_argument("--out", type=Path, required=True, help="the directory to be made")
    opening.set_defaults(run=_open)


def _planned(operation: str, options: argparse.Namespace) -> Plan:
    check_parties(options.parties)
    options.operation = operation
    return plan_case(chosen(options), options.parties)


def _deal(options: argparse.Namespace) -> None:
    plan = Plan.load(options.plan)
    progress = Progress(options.steps)
    try:
        homes = deal(
            plan, options.steps, options.out, session=options.session, block_steps=options.block_steps,
            progress=lambda done, blocks: progress(max(1, options.steps * done // blocks)),
        )  # fmt: skip
    except (KeyboardInterrupt, SystemExit):
        print(f"\nnot finished: delete {options.out} before you deal there again", file=sys.stderr)
        raise
    progress.end()
    steps = inspect(homes[0]).manifest.steps
    print(f"material of {plan.program} for {steps:,} steps, whole blocks of {inspect(homes[0]).manifest.block_steps}:")
    for home in homes:
        size = sum(file.stat().st_size for file in home.iterdir())
        print(f"  {home}  {size:,} bytes")
    print("hand each party its own directory over a secure channel, and delete it here")


def _seal(options: argparse.Namespace) -> None:
    own, key = _identity(options.own)
    size = seal(options.store, to := read(options.to), own, key, options.out)
    print(
        f"{options.out}: {size:,} bytes for {to.name!r} ({to.spoken}); send it by any means, and delete {options.store}"
    )
    print(f"it opens once, with this certificate: {options.own / CERTIFICATE_FILE} ({own.spoken})")
    print(f"tell {to.name!r} that it holds {_named(inspect(options.store).manifest)}")


def _open(options: argparse.Namespace) -> None:
    own, key = _identity(options.own)
    unseal(options.file, own, key, read(options.dealer), options.out)
    print(f"{options.out}: name it as material.store in this party's file, and delete {options.file}")
    print("ask the dealer which store it sealed: an older one may have been sent in its place")
    _inspect(argparse.Namespace(store=options.out))


def _identity(folder: Path) -> tuple[Certificate, Path]:
    own = read(folder / CERTIFICATE_FILE)
    check_key(folder / KEY_FILE, own)
    return own, folder / KEY_FILE


def _named(what: Manifest) -> str:
    """For both ends to compare."""
    return f"store {what.store[:8]} of party {what.party} of {what.parties}"


def _inspect(options: argparse.Namespace) -> None:
    if parties := sorted(options.store.glob("party-*/manifest.json")):
        homes = ", ".join(path.parent.name for path in parties)
        raise ConfigError(f"{options.store} holds the stores of {homes}: inspect one, such as {parties[0].parent}")
    store = inspect(options.store, whole=True)
    what = store.manifest
    print(f"{_named(what)}, session {what.session!r}, {what.program}")
    print(f"{store.steps_left} of {what.steps} steps are left, in blocks of {what.block_steps}")
    print(table(store.plan))
