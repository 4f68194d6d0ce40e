"""One process's end of a run: its shares of the state, and the turn that a context brings.  Knows no data, no file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from mpc.errors import ConfigError, RangeError
from mpc.session import Session
from mpc.share import Share

from .algorithm_1 import PublishedState, step_published
from .program import State, share_block, step
from .refresh import refresh
from .settings import Settings, Variant


class Play:
    """A bandit between its first and its last decision."""

    def __init__(
        self, session: Session, settings: Settings, *, done: int = 0, kept: Mapping[str, np.ndarray] | None = None
    ) -> None:
        kind: type[State] | type[PublishedState] = PublishedState if settings.variant is Variant.PUBLISHED else State
        self.session, self.settings, self.done = session, settings, done
        self.state = kind.start(session, settings) if kept is None else kind.restored(session, settings, kept)

    def turn(self, blocks: Mapping[int, np.ndarray]) -> None:
        """Decide on the contexts of which this process owns these blocks, and learn from what is paid."""
        self._check_length()
        x = share_contexts(self.session, blocks, self.settings)
        if isinstance(self.state, PublishedState):
            self.session.run(step_published(self.session, self.state, x, self.settings))
        else:
            self.session.run(step(self.session, self.state, x, self.settings))
        self.done += 1
        if self.settings.refresh and self.done % self.settings.refresh == 0:
            self.refresh()

    def _check_length(self) -> None:
        learned, given = (self.done + 1) * self.settings.batch, self.settings
        if learned > given.steps:
            raise RangeError(f"context {learned} of a run whose ranges hold for {given.steps}: declare more `steps`")
        if given.refresh is None and given.variant is Variant.RECAST and learned > given.lasts:
            raise RangeError(
                f"after {given.lasts} contexts rounding may cost P its sign at {given.state_bits} state bits: set "
                "`refresh`, or use more state_bits"
            )

    def refresh(self) -> None:
        """Bring the regressions back to the exact sums."""
        if isinstance(self.state, PublishedState):
            raise ConfigError("the published variant keeps no sums to refresh from")
        self.session.run(refresh(self.session, self.state, self.settings))


@lru_cache(maxsize=64)
def feature_blocks(dim: int, parties: int) -> tuple[slice, ...]:
    """Which features each owner holds: neighbouring blocks, as equal as they can be."""
    ends = np.cumsum([len(part) for part in np.array_split(np.arange(dim), parties)])
    return tuple(slice(int(start), int(end)) for start, end in zip([0, *ends[:-1]], ends))


def split(contexts: np.ndarray, parties: int) -> dict[int, np.ndarray]:
    """Each owner's features of (..., dim) contexts."""
    return {owner: contexts[..., part] for owner, part in enumerate(feature_blocks(contexts.shape[-1], parties))}


def share_contexts(
    session: Session, given: Mapping[int, np.ndarray], settings: Settings, *, contexts: int | None = None
) -> Share:
    """[x] from the owners' blocks, of which this process has its own; each owner enforces the declared bound.

    contexts: how many, where they are decided on and not learned from together.
    """
    if settings.owners < session.parties:
        raise ConfigError(
            f"settings for {settings.owners} owners of blocks do not cover {session.parties}: the norm of a whole "
            "context follows from their number"
        )
    parts = [
        share_block(
            session,
            given.get(owner),
            owner=owner,
            width=part.stop - part.start,
            settings=settings,
            bound=settings.bound,
            contexts=contexts,
        )
        for owner, part in enumerate(feature_blocks(settings.dim, session.parties))
    ]
    return Share(session, np.concatenate([part.words for part in parts], axis=-1), settings.fraction_bits)
