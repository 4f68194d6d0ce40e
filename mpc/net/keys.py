"""How a node proves who it is: a key for each two nodes, and a proof that one has it.  Knows numbers; no sockets.

    caller                          answerer
    its number, x        ------>
                         <------    its number, y, HMAC(key, "answers", both numbers, x, y)
    HMAC(key, "calls", both numbers, x, y)
                         ------>
                         <------    why not; or welcome, when all have called whom the answerer awaits

x and y are 32 fresh random bytes, so no proof serves twice; a proof of one side is none of the other's, nor of other
nodes.  Keys are never sent.  The answerer proves first: who it is, nobody needs to hide on a listening socket.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple, NoReturn

from ..errors import ConfigError

KEY_BYTES = NONCE_BYTES = PROOF_BYTES = 32
_NODES = struct.Struct("<HH")


class Keys:
    """One node's keys: one for each other node that it may meet, known to these two alone."""

    __slots__ = ("_own",)

    def __init__(self, own: Mapping[int, bytes] | None = None) -> None:
        self._own = dict(own or {})
        for other, key in self._own.items():
            if len(key) != KEY_BYTES:
                raise ConfigError(f"a key of two nodes has {KEY_BYTES} bytes, that with node {other} has {len(key)}")

    @classmethod
    def from_json(cls, given: Mapping[str, str]) -> Keys:
        """As `as_json` wrote them."""
        return cls({int(other): bytes.fromhex(key) for other, key in given.items()})

    def as_json(self) -> dict[str, str]:
        """For the one process that these are of."""
        return {str(other): key.hex() for other, key in self._own.items()}

    def get(self, other: int) -> bytes | None:
        """The key with another node, if this one may meet it."""
        return self._own.get(other)

    def __repr__(self) -> str:
        return f"Keys(with {len(self._own)} nodes, hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("keys of nodes are never pickled")


def keys_for(pairs: Iterable[tuple[int, int]]) -> dict[int, Keys]:
    """A fresh key for each pair of nodes that may meet; gives each node its own."""
    own: dict[int, dict[int, bytes]] = {}
    for one, other in pairs:
        key = secrets.token_bytes(KEY_BYTES)
        own.setdefault(one, {})[other] = own.setdefault(other, {})[one] = key
    return {node: Keys(keys) for node, keys in own.items()}


class Meeting(NamedTuple):
    """One attempt of two nodes to meet; x, y: what the caller and the answerer drew for it."""

    key: bytes
    caller: int
    answerer: int
    x: bytes
    y: bytes

    def answers(self) -> bytes:
        """The answerer's proof."""
        return self._proof(b"answers")

    def calls(self) -> bytes:
        """The caller's."""
        return self._proof(b"calls")

    def _proof(self, side: bytes) -> bytes:
        said = b"masked bandits, " + side + _NODES.pack(self.caller, self.answerer) + self.x + self.y
        return hmac.digest(self.key, said, "sha256")

    def __repr__(self) -> str:
        return f"Meeting(caller={self.caller}, answerer={self.answerer}, key hidden)"
