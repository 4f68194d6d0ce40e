"""`python -m protocols ...` is `masked ...`; a bare program name means `run`, as torchrun users expect."""

from __future__ import annotations

import difflib
import os
import signal
import sys
from collections.abc import Iterable


def main() -> None:
    """The `masked` command, which takes a while to load: Ctrl-C and its launcher's death end it then as at any time."""
    # Before numpy and torch look: small products gain nothing from a second thread, and wait where its core is busy.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what stands in the background
    try:
        import masked_bandits  # noqa: F401 - refuses where a package of the user's hides one of ours
        from mpc.lifeline import end_with_launcher

        end_with_launcher()
        from .cli import COMMANDS
        from .cli import main as masked
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None
    except ImportError as error:
        if error.name not in ("masked_bandits", "mpc", "offline", "bandits", "protocols"):
            raise
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    arguments = sys.argv[1:]
    bare = sys.argv[0].endswith("__main__.py") and arguments and not arguments[0].startswith("-")
    if bare and arguments[0] not in COMMANDS and not _is_nearly(arguments[0], COMMANDS):
        arguments = ["run", *arguments]
    try:
        masked(arguments)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # all is said and tidied, and Python may end


def _is_nearly(word: str, commands: Iterable[str]) -> bool:
    """Whether a word is no program's, and a command's rather than a program's with a slip."""
    from .commands import operation, programs

    known = [*programs.names(), *operation.names()]
    return word not in known and bool({*difflib.get_close_matches(word, [*known, *commands], n=1)} & {*commands})


if __name__ == "__main__":
    main()
