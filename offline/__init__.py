"""Correlated randomness, made before any input exists.

plan        what a program will draw, found by running it once
dealing     what the dealt fields of each kind are
dealer      a dealer in this process; stream: one in a process of its own
store       material in files, each item used once; directory and material are its parts
sealed      a store on its way to its party; opened: each is opened once
"""

from .dealer import Expander, InProcessDealer, InsecureSeededDealer, TrustedDealer
from .plan import Plan, Recorder
from .store import Inspection, Store, StoreSource, deal, inspect
from .stream import StreamSource, serve

__all__ = [
    "Expander", "InProcessDealer", "InsecureSeededDealer", "Inspection", "Plan", "Recorder", "Store", "StoreSource",
    "StreamSource", "TrustedDealer", "deal", "inspect", "serve",
]  # fmt: skip
