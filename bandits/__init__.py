"""Bandits in the clear: true without privacy, numpy only."""

from .choice import arm_probabilities, best_arms, categorical, epsilon_greedy

__all__ = ["arm_probabilities", "best_arms", "categorical", "epsilon_greedy"]
