"""Privacy-preserving contextual bandits, after Hannun, Knott, Sengupta and van der Maaten."""

from .program import Settings, State, step

__all__ = ["Settings", "State", "step"]
