"""How commands and scripts end: a mistake, or a role or dealer that died, is one line on stderr and exit code 2;
Ctrl-C is exit code 130.

What is said of a role that died, or of the dealer, is put together in `mpc.children` and `dealer_process`.  A reader of
stdout who left is no mistake.  Knows kinds of errors; no program.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator

from mpc.errors import MaskedError
from mpc.extras import extra
from mpc.launch import tell_launcher
from mpc.lifeline import ENDS, end_with_launcher, hear_ctrl_c

from .terminal import write_line

PLACE = "choose a place that can be used"


def say(line: str) -> None:
    """On stderr, at once."""
    write_line(line, sys.stderr)


@contextlib.contextmanager
def exit_codes(*mistakes: type[Exception], place: str = PLACE, stopped: str = "stopped") -> Iterator[None]:
    """Around all that a command does.  mistakes: of a user, beside MaskedError.  place: the cure of an OSError.

    Behind it nothing is left to be tidied: SIGTERM and SIGHUP end the process as they would have before.
    """
    end_with_launcher()
    hear_ctrl_c()
    before = {how: signal.getsignal(how) for how in ENDS if how is not signal.SIGINT}
    for how, handler in before.items():
        if how is not signal.SIGHUP or handler is not signal.SIG_IGN:  # nohup: a closed terminal ends nothing
            signal.signal(how, _unwind)
    users: tuple[type[Exception], ...] = (MaskedError, *mistakes)
    try:
        with extra("this command"):
            yield
        sys.stdout.flush()
    except BrokenPipeError:
        _leave(0)
    except users as error:
        if isinstance(error, MaskedError):
            tell_launcher(error)
        say(f"error: {error}")
        raise SystemExit(2) from None
    except (OSError, MemoryError) as error:
        say(f"error: {of_machine(error, place)}")
        _leave(2)
    except KeyboardInterrupt as error:
        if isinstance(error.__context__, SystemExit):  # it had said why, and was on its way out
            raise error.__context__ from None
        say(stopped)
        raise SystemExit(130) from None
    finally:
        for how, handler in before.items():
            if handler is not None:
                signal.signal(how, handler)


def of_machine(error: OSError | MemoryError, place: str = PLACE) -> str:
    """What this machine has not got, in words.  place: the cure where it is one."""
    if isinstance(error, MemoryError):
        return "there is not the memory for this: choose smaller sizes, such as fewer arms, dimensions or steps"
    where = f"{error.filename}: " if error.filename else ""
    return f"{where}{error.strerror or error}: {place}"


def _unwind(how: int, _: object) -> None:
    """End through every `finally`, so that processes and folders of a launch are taken along."""
    raise SystemExit(128 + how)


def _leave(code: int) -> None:
    """Exit without a second complaint about what stdout could not take."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(code)
