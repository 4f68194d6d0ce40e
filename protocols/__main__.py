"""`python -m protocols ...` is `masked ...`; a bare program name means `run`, as torchrun users expect."""

from __future__ import annotations

import sys

from .cli import COMMANDS, main

if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments and arguments[0] not in COMMANDS and not arguments[0].startswith("-"):
        arguments = ["run", *arguments]
    main(arguments)
