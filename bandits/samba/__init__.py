"""Six policies for arms that pay 0 or 1, played in the clear by one player who sees everything."""

from .coins import Coins, SeededCoins, Seeds
from .errors import SambaError
from .named import NAMES, by_name
from .play import Played, Pull, check_budget, play, run
from .policy import Policy
from .rewards import Arms, BernoulliArms, RecordedArms, load_arms, save_arms

__all__ = [
    "NAMES", "Arms", "BernoulliArms", "Coins", "Played", "Policy", "Pull", "RecordedArms", "SambaError", "SeededCoins",
    "Seeds", "by_name", "check_budget", "load_arms", "play", "run", "save_arms",
]  # fmt: skip
