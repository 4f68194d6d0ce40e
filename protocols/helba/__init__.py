"""HELBA (Garcelon, Perchet and Pirotta 2022), the encrypted linear contextual bandit: on shares, and on ciphertexts."""

from .library import EncryptedLinearBandit
from .settings import Settings

__all__ = ["EncryptedLinearBandit", "Settings"]
