"""Optimistic linear bandits that learn in batches: OFUL, RSOFUL by determinant and by trace, and HELBA, in the clear.

HELBA: Garcelon, Perchet and Pirotta, "Encrypted Linear Contextual Bandit", AISTATS 2022.
"""

from .approximate import Approximate
from .constants import Batches, Constants, HelbaError
from .play import Played, play
from .policies import HELBA, OFUL, RSOFUL, Policy, RSOFULTrace
from .problem import Problem, fresh, rows_of, toy

__all__ = [
    "HELBA", "OFUL", "RSOFUL", "Approximate", "Batches", "Constants", "HelbaError", "Played", "Policy", "Problem",
    "RSOFULTrace", "fresh", "play", "rows_of", "toy",
]  # fmt: skip
