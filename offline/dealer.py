"""The trusted dealer: knows every mask of the items it makes, and nothing that happens online.

Randomness comes in *blocks*.  Block b of party p is stream b of p's key, and the dealer's own randomness is stream b
of two keys of its own, one for masks and one for coins, so that any block can be made, or expanded, without those
before it, and coins can be dealt again under fresh masks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NoReturn

import numpy as np

from mpc.correlations import Correlation, Layout, layout
from mpc.errors import ConfigError
from mpc.prg import KEY_BYTES, Prg, Unshared, fresh_key

from .batch import Batch, room
from .dealing import correct, dealt_words

_SEEDED = b"insecure-seeded:"
_LOT = 16  # blocks: more save little, and a party would use up what it has while they are made


class TrustedDealer(Unshared):
    """Makes items for N parties from their keys and its own.

    own_key: of what masks tables.  coin_key: of coins, such as who explores; first_coins: the block of them that goes
    with block 0 of masks.  All keys are fresh unless they are given.
    Trust: whoever runs it and also sees one party's messages learns everything; it must not collude with any party.
    """

    def __init__(
        self,
        parties: int,
        *,
        keys: Sequence[bytes] | None = None,
        own_key: bytes | None = None,
        coin_key: bytes | None = None,
        first_coins: int = 0,
    ) -> None:
        super().__init__()
        if parties < 2:
            raise ConfigError(f"secret sharing needs at least 2 parties, not {parties}")
        self.parties = parties
        self.keys = tuple(keys) if keys is not None else tuple(fresh_key() for _ in range(parties))
        if len(self.keys) != parties:
            raise ConfigError(f"{parties} parties need {parties} keys, not {len(self.keys)}")
        self._own_key, self._coin_key = _given_or_fresh(own_key, "own_key"), _given_or_fresh(coin_key, "coin_key")
        self._first_coins = first_coins
        self._batch: Batch | None = None
        self.enter(0)

    def enter(self, block: int) -> None:
        """Stand at the start of a block."""
        self.require_own()
        self._streams = [Prg(key, block) for key in self.keys]
        self._own = Prg(self._own_key, block)
        self._coins = Prg(self._coin_key, block + self._first_coins)

    def make(self, item: Correlation) -> np.ndarray:
        """All parties' bytes of the next item, (parties, total_bytes); row 0 holds the corrections of dealt fields."""
        place = layout(item)
        rows = np.empty((self.parties, place.total_bytes + 16), np.uint8)
        for row, stream in zip(rows, self._streams, strict=True):
            stream.fill(row)
        rows = rows[:, : place.total_bytes]
        fields = place.views(rows)
        free = len(place.free)
        with np.errstate(over="ignore"):
            clear = dealt_words(item, fields[:free], self._coins if item.coins else self._own)
            for part, value, shares in zip(place.dealt, clear, fields[free:], strict=True):
                correct(part, shares, value)
        return rows

    def deal(self, items: Sequence[Correlation], blocks: range, steps: int = 1) -> np.ndarray:
        """What party 0 is handed in these blocks of so many steps, which draw these items: (blocks, bytes).

        The same bytes as item after item.
        """
        if self._batch is None or self._batch.items != tuple(items):
            self._batch = Batch(items, self.parties)
        batch = self._batch
        batch.begin(len(blocks) * steps)
        for block in blocks:
            self.enter(block)
            left = steps
            while left:
                left -= batch.expand(left, self._streams, self._own, self._coins)
        return batch.handed().reshape(len(blocks), -1)

    def lots(self, items: Sequence[Correlation], blocks: int, steps: int) -> Iterator[np.ndarray]:
        """Each of the first blocks as `deal` has it; the first alone, for who waits, then up to `_LOT` at a time."""
        most, done, size = max(1, min(_LOT, room(items, self.parties) // steps)), 0, 1
        while done < blocks:
            lot = range(done, min(blocks, done + size))
            yield from self.deal(items, lot, steps)
            done, size = lot.stop, min(most, 2 * size)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a dealer holds keys and is never pickled")

    def __repr__(self) -> str:
        return f"{type(self).__name__}(parties={self.parties})"


def _given_or_fresh(key: bytes | None, what: str) -> bytes:
    if key is not None and len(key) != KEY_BYTES:
        raise ConfigError(f"{what} has {KEY_BYTES} bytes, this one {len(key)}: leave it out for a fresh one")
    return fresh_key() if key is None else key


class InProcessDealer(TrustedDealer):
    """A dealer in the process that hosts all parties: for simulations and tests, where one process sees all anyway."""

    def __init__(
        self,
        parties: int,
        *,
        keys: Sequence[bytes] | None = None,
        own_key: bytes | None = None,
        coin_key: bytes | None = None,
    ) -> None:
        super().__init__(parties, keys=keys, own_key=own_key, coin_key=coin_key)
        self._name = fresh_key()

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """The fields of the next item, for all parties."""
        return layout(item).views(self.make(item))

    def statement(self) -> bytes:
        """Which dealer this is: there is only one, in the one process."""
        return b"in-process:" + self._name

    def agree(self, statements: list[bytes]) -> None:
        """One process agrees with itself; with no other."""
        if len(statements) != self.parties:
            raise ConfigError(
                f"a dealer for {self.parties} parties serves a session of {len(statements)}: make one for it"
            )
        for party, statement in enumerate(statements):
            if statement.rstrip(b"\0") != self.statement().rstrip(b"\0"):
                raise ConfigError(
                    f"party {party} draws from another source: an in-process dealer serves one process that hosts all "
                    "parties; parties in processes of their own draw from a store or a streaming dealer"
                )


class InsecureSeededDealer(InProcessDealer):
    """Every process plays the dealer from one shared seed and takes its own row: no secrecy, for tests."""

    def __init__(self, parties: int, seed: int, *, party: int | None = None) -> None:
        if not 0 <= seed < 1 << 8 * KEY_BYTES:
            raise ConfigError(f"a seed lies in [0, 2^{8 * KEY_BYTES}), not {seed}")
        if party is not None and not 0 <= party < parties:
            raise ConfigError(f"the parties are 0..{parties - 1}, not {party}")
        stream = Prg(seed.to_bytes(KEY_BYTES, "big"))
        keys = [stream.bytes(KEY_BYTES).tobytes() for _ in range(parties + 2)]
        super().__init__(parties, keys=keys[:parties], own_key=keys[parties], coin_key=keys[parties + 1])
        self._seed_digest = stream.bytes(16).tobytes()
        self._party = party

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """The fields of the next item, for this process's party or for all."""
        rows = self.make(item)
        return layout(item).views(rows if self._party is None else rows[self._party : self._party + 1])

    def statement(self) -> bytes:
        """A digest of the seed, and whose row this process takes; of all rows, this very dealer."""
        whose = b"all " + self._name if self._party is None else struct.pack("<4sH", b"one ", self._party)
        return _SEEDED + self._seed_digest + whose

    def agree(self, statements: list[bytes]) -> None:
        """Refuse another seed, and rows that are not each party's own."""
        known = len(_SEEDED) + len(self._seed_digest)
        own = self.statement()
        for party, statement in enumerate(statements):
            if statement[: len(_SEEDED)] != _SEEDED:
                raise ConfigError(f"party {party} draws from another source: start all parties with the same one")
            if statement[:known] != own[:known]:
                raise ConfigError(f"party {party} deals from another seed: start all parties with the same one")
            expected = own if self._party is None else own[:-2] + struct.pack("<H", party)
            if statement[: len(expected)] != expected:
                raise ConfigError(f"party {party} takes another party's row: give each process `party`, its own number")


class Expander(Unshared):
    """One party's own end: expands its key, and for party 0 lays the corrections over it."""

    def __init__(self, key: bytes, *, party: int) -> None:
        super().__init__()
        self._key = key
        self.party = party
        self.enter(0)

    def enter(self, block: int) -> None:
        """Stand at the start of a block."""
        self.require_own()
        self._stream = Prg(self._key, block)

    def fields(self, place: Layout, corrections: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """The fields of the next item, of this layout, as (1, *shape); party 0 brings the item's corrections."""
        row = np.empty(place.total_bytes + 16, np.uint8)
        self._stream.fill(row)
        if corrections is not None:
            row[place.free_bytes : place.total_bytes] = corrections
        return tuple([np.ndarray((1, *shape), dtype, row, start) for start, _, dtype, shape in place.places])

    def __reduce__(self) -> NoReturn:
        raise TypeError("an expander holds a key and is never pickled")

    def __repr__(self) -> str:
        return f"Expander(party={self.party})"
