"""Secret sharing for N parties: shares, rounds, protocols, transports.  Never heard of an arm.

session, rounds      a run of one process, and what a round of a program may ask for; exchange does it
share, ring          secret-shared values and the words they are made of; packing holds a symmetric matrix once
bilinear             what is linear in each of two operands: every product of shares
ops                  the protocols, one family a file: products, truncate, sign (comparisons), argmax, ...
correlations         what is dealt for them, field by field
chunks, strings      how a comparison is cut, in 3 and in 2 rounds, and how many bytes are dealt for it
curves               public functions as tables of lines
prg, pairs           where masks come from, and seeds that two parties share
client               roles that do not compute
ledger, meter, trail who learned what; what it cost; what all must have done alike
interop              shares of other frameworks, as ours and back
net                  transports; launch, children, nursery, lifeline, scratch: processes of this machine, how they are
                     started, and what they leave
cases                the operations as a table, for tests and measurements
turns                of threads that share an object
errors, files, tables, extras
"""

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
