"""Many steps dealt as one array.  Knows layouts and streams; not what a block is.

Of a small step, calls cost a dealer more than what they compute: 45 microseconds an item, fifteen items, on a machine
that copies the step's bytes in ten.  So steps are laid one behind the other, and each item is worked out for all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpc.correlations import Correlation, layout
from mpc.prg import Prg

from .dealing import correct, dealt_words, is_drawn, of_free

_TOGETHER = 1 << 22  # bytes of all parties that are worked on at once


def room(items: Sequence[Correlation], parties: int) -> int:
    """How many steps of these items are worked on at once."""
    return max(1, _TOGETHER // max(1, parties * sum(layout(item).total_bytes for item in items)))


class Batch:
    """Makes the corrections of steps that draw these items, `room` of them at a time, in memory that it keeps."""

    def __init__(self, items: Sequence[Correlation], parties: int) -> None:
        self.items = tuple(items)
        self._items = [(item, layout(item), is_drawn(item)) for item in items]
        self._step = sum(place.total_bytes for _, place, _ in self._items)
        self._room = room(items, parties)
        self._rows = np.empty((parties, self._room * self._step + 16), np.uint8)
        self._fields = self._views()
        self._drawn = {
            at: [np.empty((self._room, *part.shape), part.dtype) for part in place.dealt]
            for at, (_, place, drawn) in enumerate(self._items)
            if drawn
        }
        self.begin(0)

    def begin(self, steps: int) -> None:
        """So many steps are dealt from now on."""
        self._filled = self._done = 0
        self._handed = np.empty((steps, sum(place.dealt_bytes for _, place, _ in self._items)), np.uint8)

    def _views(self) -> list[tuple[np.ndarray, ...]]:
        """The fields of each item, (parties, room, *shape)."""
        lead = len(self._rows), self._room
        steps, start, found = self._rows[:, : self._room * self._step].reshape(*lead, self._step), 0, []
        for _, place, _ in self._items:
            own, start = steps[..., start : start + place.total_bytes], start + place.total_bytes
            views = [own[..., a:b].view(dtype).reshape(*lead, *shape) for a, b, dtype, shape in place.places]
            found.append(tuple(views))
        return found

    def expand(self, steps: int, streams: Sequence[Prg], own: Prg, coins: Prg) -> int:
        """Take in up to so many steps of a block, of whose streams they come next; gives how many."""
        if self._filled == self._room:
            self._work_out()
        first, self._filled = self._filled, min(self._room, self._filled + steps)
        for row, stream in zip(self._rows, streams, strict=True):
            stream.fill(row[first * self._step : self._filled * self._step + 16])
        with np.errstate(over="ignore"):
            for step in range(first, self._filled):
                for at, kept in self._drawn.items():
                    item, place, _ = self._items[at]
                    free = tuple([field[:, step] for field in self._fields[at][: len(place.free)]])
                    for into, value in zip(kept, dealt_words(item, free, coins if item.coins else own), strict=True):
                        into[step] = value
        return self._filled - first

    def _work_out(self) -> None:
        """All items of the steps taken in, and the corrections out of them."""
        count, start, end = self._filled, 0, 0
        steps = self._rows[0, : count * self._step].reshape(count, self._step)
        handed = self._handed[self._done : self._done + count]
        for at, (item, place, drawn) in enumerate(self._items):
            fields, free = [field[:, :count] for field in self._fields[at]], len(place.free)
            clear = [kept[:count] for kept in self._drawn[at]] if drawn else of_free(item, tuple(fields[:free]))
            for part, shares, value in zip(place.dealt, fields[free:], clear, strict=True):
                correct(part, shares, value)
            start, end = start + place.total_bytes, end + place.dealt_bytes
            handed[:, end - place.dealt_bytes : end] = steps[:, start - place.dealt_bytes : start]
        self._done, self._filled = self._done + count, 0

    def handed(self) -> np.ndarray:
        """The corrections of all steps, (steps, bytes)."""
        self._work_out()
        return self._handed
