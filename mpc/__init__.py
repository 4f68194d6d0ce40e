"""Secret sharing for N parties: shares, rounds, protocols, transports.  Never heard of an arm."""

from .errors import ConfigError, Desync, MaskedError, OutOfMaterial, PeerLost, RangeError, StoreRefused
from .ledger import EVERYONE, Ledger
from .meter import Cost, Meter
from .ring import FRACTION_BITS, decode, encode
from .rounds import Input, Open, Reveal, Rounds, labelled, supplied, together
from .session import Session
from .share import BinaryShare, Share

__all__ = [
    "EVERYONE", "FRACTION_BITS", "BinaryShare", "ConfigError", "Cost", "Desync", "Input", "Ledger", "MaskedError",
    "Meter", "Open", "OutOfMaterial", "PeerLost", "RangeError", "Reveal", "Rounds", "Session", "Share", "StoreRefused",
    "decode", "encode", "labelled", "supplied", "together",
]  # fmt: skip
