"""HELBA (Garcelon, Perchet and Pirotta 2022), the encrypted linear contextual bandit: on shares, and on ciphertexts.

game        what is public of any run
program     the rounds on shares; clients: the users; settings: how many bits fit
run         what a run asks of `protocols.run`, and what it gave; beside: next to the policy in the clear
library     the same as an object; report, command: documents and options
ckks        as published
"""

from .library import EncryptedLinearBandit
from .settings import Settings

__all__ = ["EncryptedLinearBandit", "Settings"]
