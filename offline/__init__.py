"""Correlated randomness, made before any input exists."""

from .dealer import Expander, InProcessDealer, InsecureSeededDealer, TrustedDealer
from .plan import Plan, Recorder
from .store import Inspection, Store, StoreSource, deal, inspect
from .stream import StreamSource, serve

__all__ = [
    "Expander", "InProcessDealer", "InsecureSeededDealer", "Inspection", "Plan", "Recorder", "Store", "StoreSource",
    "StreamSource", "TrustedDealer", "deal", "inspect", "serve",
]  # fmt: skip
