"""What a user can put right."""

from __future__ import annotations


class SambaError(ValueError):
    """Arms, a budget, a policy's parameter or a file are not what a game can use."""
