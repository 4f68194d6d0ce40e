"""Memory that a role has freed stays with it."""

from __future__ import annotations

import subprocess
import sys

_ROUNDS = """
import resource
import numpy as np
from mpc.launch import party_main
def rounds():
    for _ in range(4):
        kept = [np.ones(300_000, np.uint8) for _ in range(8)]
        del kept
def main():
    rounds()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(10):
        rounds()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(end: str) -> int:
    """Pages that 40 rounds of eight arrays of 300 kB fetch, after others of the same."""
    return int(subprocess.run([sys.executable, "-c", _ROUNDS + end], capture_output=True, check=True, text=True).stdout)


def test_a_role_fetches_its_memory_once() -> None:
    """Outside of a role each round fetches what the one before gave back: 40 rounds of 8 arrays of 73 pages."""
    assert faults("party_main(main)") < 1000 < faults("main()")
