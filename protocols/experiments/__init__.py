"""Experiments: any policy on any environment by one loop, many of them on all cores, and one table of what came of it.

policies  what can be played, by one name each: private or in the clear
loop      evaluate a policy on an environment, step by step
grid      many experiments, kept as they are made; the table and its picture
"""

from .grid import Experiment, experiments, grid, plot_regret
from .loop import Evaluated, evaluate
from .policies import POLICIES, Playable, make

__all__ = ["POLICIES", "Evaluated", "Experiment", "Playable", "evaluate", "experiments", "grid", "make", "plot_regret"]
