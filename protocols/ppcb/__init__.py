"""Privacy-preserving contextual bandits, after Hannun, Knott, Sengupta and van der Maaten.

settings        what all agree on, and which ranges follow
program         the rounds of a step; arithmetic, batch, bonus, refresh: parts of it; algorithm_1: as published
player          owners of features, step after step; clients: puller and payer
run             a run beside its plaintext twin, which plays with the coins of dealt_coins
library         a bandit as a Python class; audit: of its privacy
report          a result as JSON, text and files; command: the options
"""

from .library.bandit import Prediction, PrivateContextualBandit
from .library.offline_evaluation import Evaluation, evaluate_offline
from .library.propensity import Propensity
from .library.rounds import Hear, Say, payer_client, puller_client
from .program import State, decide, learn, step
from .settings import Settings

__all__ = [
    "Evaluation", "Hear", "Prediction", "PrivateContextualBandit", "Propensity", "Say", "Settings", "State", "decide",
    "evaluate_offline", "learn", "payer_client", "puller_client", "step",
]  # fmt: skip
