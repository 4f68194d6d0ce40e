"""Both halves of a fork, in a process of their own: what each source does in the child, and that the parent goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OTHER_ROOMS = (ROOT, ROOT / "tests" / "offline")
REFUSAL = "both would draw the same: let each worker make or load its own after the fork"

_HALF = """
import json, os

def half(name, use, leave=lambda: None, fork=os.fork):
    # The child's half is used and left, then the parent's is used.
    if not (child := fork()):
        try:
            said = f"drew {use()!r}"
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        leave()
        os.write(1, (json.dumps([name, said]) + "\\n").encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.write(1, (json.dumps([name + ", parent", f"drew {use()!r}"]) + "\\n").encode())
"""


def halves(script: str, *arguments: object) -> dict[str, str]:
    """What the halves said, by the name that the script gives each `half`."""
    ended = subprocess.run(
        [sys.executable, "-c", _HALF + script, *map(str, arguments)], capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, OTHER_ROOMS))}, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return dict(json.loads(line) for line in ended.stdout.splitlines() if line.startswith("["))


def refused(said: dict[str, str]) -> None:
    """Every child was refused with the cure, and every parent went on."""
    assert said
    for name, words in said.items():
        if name.endswith(", parent"):
            assert words.startswith("drew "), (name, words)
        else:
            assert words.startswith("ConfigError: ") and REFUSAL in words, (name, words)
            assert f"{name}, parent" in said
