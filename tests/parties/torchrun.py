"""torchrun whose ranks are forked: its own code, off a process that has loaded torch for it and for all of them.

To load torch is most of what a short run under torchrun takes, once for itself and once for each rank.  The command of
README, and what is tested in `tests.protocols.test_cli`, start all of them anew.
"""

from __future__ import annotations

import atexit
import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpc.nursery import NURSERIES, Forked, Nursery

from .processes import ENVIRONMENT, ended_of, free_port


def torchrun(
    ranks: int, *words: str, cwd: Path, load: Sequence[str] = (), python: str = sys.executable
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    """When all have ended.  words: a script, or -m and a module, and what it is given; load: as `launch` has it."""
    place = ["--master-addr", "127.0.0.1", "--master-port", free_port(), "--nproc-per-node", str(ranks)]
    modules, environment = [__name__, "mpc.net.gloo", *load], {**os.environ, **ENVIRONMENT, "TMPDIR": str(cwd)}
    return ended_of(_warm(python), modules, [str(cwd), *place, *words], environment, limit=500.0)


@functools.cache
def _warm(python: str) -> Nursery:
    nursery = Nursery.new({**os.environ, **ENVIRONMENT}, python=python)
    nursery.patience = 300.0  # to load torch on a busy machine
    atexit.register(nursery.close)
    return nursery


def _rank(_: Any, command: Sequence[str], environment: dict[str, str]) -> Forked:
    """Of `python -u -m module ...` or `python -u script ...`, in this folder; off a fork of torchrun's own nursery."""
    (nursery,) = NURSERIES._of.values()
    what, *words = command[2:]
    run = f"run_path({what!r}, run_name='__main__')"
    if what == "-m":
        what, *words = words
        run = f"run_module({what!r}, run_name='__main__', alter_sys=True)"
    text = f"import os, runpy, sys; os.chdir({os.getcwd()!r}); sys.argv[0] = {what!r}; runpy.{run}"
    with open(os.devnull, "rb") as nothing:
        streams = {0: nothing.fileno(), 1: 1, 2: 2}
        return nursery.forked(["tests.parties.newborn"], [text, *words], environment, streams)


if __name__ == "__main__":
    from torch.distributed.elastic.multiprocessing.subprocess_handler.subprocess_handler import SubprocessHandler
    from torch.distributed.run import main

    os.chdir(sys.argv.pop(1))
    SubprocessHandler._popen = _rank
    main()
