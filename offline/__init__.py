"""Correlated randomness, made before any input exists."""

from .dealer import Expander, InProcessDealer, InsecureSeededDealer, TrustedDealer

__all__ = ["Expander", "InProcessDealer", "InsecureSeededDealer", "TrustedDealer"]
