"""The `masked` command.  Knows which module serves which command; no protocol.

Options that all programs have stand in `run.options`, those of one program in its own `command`.  Loading all modules
takes longer than most commands: what the first words name is loaded, and all only where they name nothing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

from .run.exits import exit_codes
from .run.parser import Parser
from .run.release import release
from .run.terminal import on_terminals

COMMANDS = {
    "demo": "demo", "evaluate": "evaluate", "run": "programs", "launch": "programs", "offline": "offline",
    "dealer": "dealer", "privacy": "privacy", "attack": "attack", "keys": "keys", "config": "config", "party": "party",
    "doctor": "doctor", "serve": "serve",
}  # fmt: skip
"""Each command, and the module in `commands` that serves it."""
_EXAMPLES = """examples:
  masked demo                                         three parties in three processes, and what each learned
  masked evaluate log.csv --context age,bp --action drug --reward cured --propensity p --owners 1,1
  masked run ppcb --steps 500 --plot runs/reward.png  the private contextual bandit on digits, and its reward curve
  masked run samba --policy ucb                       arms that belong to owners, on shares and in the clear
  masked run linucb-ds --budget 200                   a linear bandit that its owner outsources
  masked run helba --steps 130                        the encrypted linear contextual bandit
  masked run argmax --size 10 --parties 3             one operation, all parties simulated in this process
  masked launch argmax --size 10 --parties 3          the same with a process for each party and one for the dealer
  masked offline plan argmax --parties 3 -o plan.json
  masked offline deal plan.json --steps 1000 --out material
  masked offline inspect material/party-0
  masked launch argmax --parties 3 --material material --steps 100
  masked keys init --name "Clinic A"                  between machines: a key and a certificate, then a file each
  masked config new "party 0" --program ppcb --parties 3 --session trial -o party-0.toml
  masked doctor --config party-0.toml                 what the links can do; masked party plays the role
  masked privacy --arms 10 --eps 0.1 --steps 60000    what the pulled arms tell; --audit measures it
  masked attack membership                            what attackers find out from arms and rewards
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command; a user's mistake is one line on stderr and exit code 2."""
    words = sys.argv[1:] if arguments is None else arguments
    with on_terminals(plain="--json" in words), exit_codes():  # around the options too: to make all takes a moment
        options = _parser(words).parse_args(words)
        options.run(options)


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    parser = Parser(
        prog="masked",
        description="Several organisations compute on secret shares; a ledger says what each of them learned.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"masked {release()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    named = COMMANDS.get(words[0]) if words else None
    for module in dict.fromkeys(COMMANDS.values()) if named is None else [named]:
        import_module(f".commands.{module}", __package__).register(commands, words[1:])
    return parser
