"""Privacy-preserving contextual bandits, after Hannun, Knott, Sengupta and van der Maaten."""

from .library.bandit import Prediction, PrivateContextualBandit
from .library.calls import Hear, Say, payer_client, puller_client
from .library.offline_evaluation import Evaluation, evaluate_offline
from .library.propensity import Propensity
from .program import State, decide, learn, step
from .settings import Settings

__all__ = [
    "Evaluation", "Hear", "Prediction", "PrivateContextualBandit", "Propensity", "Say", "Settings", "State", "decide",
    "evaluate_offline", "learn", "payer_client", "puller_client", "step",
]  # fmt: skip
