"""pytest in forks of a process that has loaded the packages which tests need: `python -m protocols.bench.warm_pytest`.

Loading them takes longer than most tests.  Modules of the project are loaded by each fork, so it has them as they are.

    stdin     a line for each run: JSON of arguments, environment (what is changed in it) and said (file of the output)
    stdout    the fork's process number, which leads a group of its own; when it has ended, its exit code
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

PACKAGES = (
    "hypothesis",
    "pytest",
    "xdist",
    "numpy",
    "scipy.stats",
    "torch",
    "cryptography.hazmat.primitives.ciphers.aead",
)


def main() -> None:
    """Serve until stdin ends."""
    for package in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
    for line in sys.stdin:
        fork = os.fork()
        if fork == 0:
            _play(**json.loads(line))
        print(fork, flush=True)
        _, status = os.waitpid(fork, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _play(arguments: Sequence[str], environment: Mapping[str, str], said: str) -> NoReturn:
    import pytest

    os.setsid()
    for file, way, places in ((os.devnull, os.O_RDONLY, (0,)), (said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, (1, 2))):
        opened = os.open(file, way)
        for place in places:
            os.dup2(opened, place)
    os.environ.update(environment)
    code = int(pytest.main([*arguments]))
    sys.stdout.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
