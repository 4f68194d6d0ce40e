"""Correlated randomness, made before any input exists."""

from .dealer import Expander, InProcessDealer, InsecureSeededDealer, TrustedDealer
from .plan import Plan, Recorder
from .store import Store, StoreSource, deal
from .stream import StreamSource, serve

__all__ = [
    "Expander", "InProcessDealer", "InsecureSeededDealer", "Plan", "Recorder", "Store", "StoreSource", "StreamSource",
    "TrustedDealer", "deal", "serve",
]  # fmt: skip
