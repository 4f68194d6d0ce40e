"""CrypTen's column: the same operations, and the bandit's step, by parties in CrypTen's own Python.

microseconds     median over the repeats, after two warm-ups; a barrier precedes each, and its time is that of the
                 slowest party
rounds           collective calls, as CrypTen counts them, in a run of its own, not timed
bytes_per_party  from the same run: bytes sent plus bytes received, mean over the parties
max_error        greatest distance from the plaintext result over all runs; beyond the tolerance the row is an error
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpc.errors import MaskedError
from mpc.interop.crypten import VERSION, crypten_python

from ..ppcb.crypten.bandit import METHODS
from ..run.crypten_parties import Said, play_on_crypten
from ..run.exits import say
from .delay_line import DEVICE, Line

_ROOT = Path(__file__).resolve().parents[2]
_OPERATIONS, _STEPS = "protocols.bench.crypten_operations", "protocols.bench.crypten_steps"
_SECONDS = 1200.0  # that a measurement may take
_EPS = 0.01  # of the paper's example
_FASTEST = "pairwise"


def install() -> str:
    """Make the environment if it is not there; gives the reason where that fails, else nothing."""
    script = _ROOT / "scripts" / "setup_crypten"
    if not script.exists():
        return "scripts/setup_crypten is not here: run from a clone of the repository"
    done = subprocess.run([str(script)], capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        return lines[-1] if lines else "the installation failed without a word"
    return ""


def measure_bandit(
    parties: int, arms: int, dim: int, steps: int, *, fastest: bool = True, line: Line | None = None
) -> list[dict[str, Any]]:  # fmt: skip
    """CrypTen's bandit step with its default argmax and, if wanted, its fastest; empty where it could not run.

    line: what is between the parties, if they are apart.
    """
    methods = [METHODS[0], *([_FASTEST] if fastest else [])]
    given = {"arms": arms, "dim": dim, "steps": steps, "eps": _EPS, "methods": methods}
    return [row | {"arms": arms, "dim": dim} for row in _rows(_STEPS, parties, given, line)]


def measure(parties: int, repeats: int, *, only: Sequence[str] = ()) -> dict[tuple[str, int], dict[str, Any]]:
    """CrypTen's rows by (op, size); empty where it could not run.  only: operations by name; all of them without."""
    rows = _rows(_OPERATIONS, parties, {"repeats": repeats, "only": list(only)})
    return {(row["op"], int(row["size"])): row for row in rows if row["microseconds"] is not None}


def there() -> bool:
    """Whether its environment has been made."""
    try:
        return bool(crypten_python())
    except MaskedError:
        return False


def _rows(module: str, parties: int, given: Said, line: Line | None = None) -> list[dict[str, Any]]:
    apart: dict[str, Any] = {} if line is None else {"inside": line.inside, "device": DEVICE}
    try:
        said = play_on_crypten(module, parties, given, limit=_SECONDS, **apart)
    except MaskedError as error:
        say(f"CrypTen: {error}")
        return []
    return [_row(told, parties) for told in zip(*said, strict=True)]


def _row(told: Sequence[Said], parties: int) -> dict[str, Any]:
    """One row of what each party measured; one whose check fails has an error text and no figures."""
    row = {**told[0]["labels"], "parties": parties, "version": VERSION}
    row |= dict.fromkeys(("rounds", "bytes_per_party", "microseconds", "max_error"))
    if errors := {each["error"]: None for each in told if "error" in each}:
        say(f"CrypTen: {'; '.join(errors)}")
        return row | {"error": "; ".join(errors)}
    slowest = [max(times) for times in zip(*(each["times"] for each in told), strict=True)]
    return row | {
        "rounds": max(each["rounds"] for each in told),
        "bytes_per_party": round(statistics.mean(each["bytes"] for each in told)),
        "microseconds": round(statistics.median(slowest), 1),
        "max_error": max(each["max_error"] for each in told),
    }


def rows_of(python: str, script: str) -> list[dict[str, Any]]:
    """What a script of `scripts/` prints as JSON; empty where it could not run."""
    try:
        done = subprocess.run(
            [python, str(_ROOT / "scripts" / script)], capture_output=True, text=True, check=True, timeout=_SECONDS
        )
        rows: list[dict[str, Any]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    return rows
