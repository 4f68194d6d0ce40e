"""CrypTen's column: the same operations in its own environment, by a script of its own.  Imports nothing of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_PYTHON = _ROOT / ".venv-crypten" / "bin" / "python"
_SECONDS = 1200.0  # that a script may take


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


def measure_bandit(parties: int, arms: int, dim: int, steps: int) -> list[dict[str, Any]]:
    """CrypTen's bandit step, a row for each of its argmax methods; empty where it could not run."""
    size = {"--parties": parties, "--arms": arms, "--dim": dim, "--steps": steps}
    return _rows("peer_crypten_bandit.py", *(word for name, value in size.items() for word in (name, str(value))))


def measure(parties: int, repeats: int) -> dict[tuple[str, int], dict[str, Any]]:
    """CrypTen's rows by (op, size); empty where it could not run."""
    size = ("--parties", str(parties), "--repeats", str(repeats))
    rows = _rows("peer_crypten.py", *size, "--transport-baseline")
    return {(row["op"], int(row["size"])): row for row in rows if row.get("microseconds") is not None}


def there() -> bool:
    """Whether its environment has been made."""
    return _PYTHON.is_file()


def _rows(script: str, *words: str) -> list[dict[str, Any]]:
    return rows_of(str(_PYTHON), script, *words, "--json", "-")


def rows_of(python: str, script: str, *words: str) -> list[dict[str, Any]]:
    """What a script of `scripts/` prints as JSON; empty where it could not run."""
    command = [python, str(_ROOT / "scripts" / script), *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)
        rows: list[dict[str, Any]] = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return []
    return rows
