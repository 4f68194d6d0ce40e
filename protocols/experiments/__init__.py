"""Experiments: any policy on any environment by one loop, many of them on all cores, and one table of what came of it.

policies  what is played arm by arm, private or in the clear; whole: systems that play an episode from end to end
problems  what each system plays by `masked run`, as an environment
named     policies by name
loop      evaluate a policy on an environment
grid      many experiments, kept as they are made; the table and its picture
"""

from .grid import Experiment, experiments, grid, plot_regret
from .loop import Evaluated, evaluate
from .named import POLICIES, How, make
from .policies import Playable
from .problems import PROBLEMS, FixedArms, OwnersArms, UsersFeatures

__all__ = [
    "POLICIES", "PROBLEMS", "Evaluated", "Experiment", "FixedArms", "How", "OwnersArms", "Playable", "UsersFeatures",
    "evaluate", "experiments", "grid", "make", "plot_regret",
]  # fmt: skip
