"""Privacy-preserving contextual bandits, after Hannun, Knott, Sengupta and van der Maaten."""

from .program import State, decide, learn, step
from .settings import Settings

__all__ = ["Settings", "State", "decide", "learn", "step"]
