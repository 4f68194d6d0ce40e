"""Privacy-preserving contextual bandits, after Hannun, Knott, Sengupta and van der Maaten."""

from .calls import Hear, Say, payer_client, puller_client
from .library import Prediction, PrivateContextualBandit
from .offline_evaluation import Evaluation, evaluate_offline
from .program import State, decide, learn, step
from .propensity import Propensity
from .settings import Settings

__all__ = [
    "Evaluation", "Hear", "Prediction", "PrivateContextualBandit", "Propensity", "Say", "Settings", "State", "decide",
    "evaluate_offline", "learn", "payer_client", "puller_client", "step",
]  # fmt: skip
