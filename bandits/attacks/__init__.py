"""Attacks on bandits: what somebody who sees arms and rewards finds out.  Knows plaintext learners; numpy only."""

from .advantage import Advantage, measure
from .game import Plan, Row
from .membership import Attack, attack_at_checkpoints

__all__ = ["Advantage", "Attack", "Plan", "Row", "attack_at_checkpoints", "measure"]
