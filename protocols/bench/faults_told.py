"""A command that also writes down whom it blames: `python -m protocols.bench.faults_told FILE COMMAND...`.

COMMAND is the words of `masked`, or a script with a program of its own and its words.  The file gets the node that the
error of the launch stands for: one that a signal ended, else the peer that the blamed process lost, else itself.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from unittest import mock

from mpc.errors import MaskedError, ProcessFailed
from protocols.run import exits


def blamed(error: BaseException | None) -> int | None:
    """The node that an error stands for; None where it stands for no process."""
    if error is None:
        return None
    if not isinstance(error, ProcessFailed):
        return blamed(error.__cause__)
    return error.node if error.code < 0 or error.peer is None else error.peer


def main() -> None:
    """Run the command."""
    told, tell_launcher = Path(sys.argv[1]), exits.tell_launcher

    def tell(error: MaskedError) -> None:
        told.write_text(str(blamed(error)))
        tell_launcher(error)

    with mock.patch.object(exits, "tell_launcher", tell):
        if (script := sys.argv[2]).endswith(".py"):
            sys.argv = sys.argv[2:]
            runpy.run_path(script, run_name="__main__")
        else:
            sys.argv = ["masked", *sys.argv[2:]]
            runpy.run_module("protocols", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
