"""One process's owners of features, who hold shares of the regressions, decision after decision.  Knows no file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from mpc import ops
from mpc.errors import ConfigError, RangeError
from mpc.rounds import labelled
from mpc.session import Session
from mpc.share import Share

from ..run.program import Arrays
from .algorithm_1 import PublishedState, step_published
from .program import State, share_block, step
from .refresh import refresh
from .settings import Settings, Variant


class Owners:
    """The owners that this process hosts, between the first and the last decision.

    features: of each of them, (decisions, R, B, width).  kept: `state` of the same run after `done` decisions.
    """

    def __init__(
        self, session: Session, settings: Settings, features: Mapping[int, np.ndarray], *, done: int = 0,
        kept: Arrays | None = None,
    ) -> None:  # fmt: skip
        kind: type[State] | type[PublishedState] = PublishedState if settings.variant is Variant.PUBLISHED else State
        self.session, self.settings, self.done, self._features = session, settings, done, features
        self.held = kind.start(session, settings) if kept is None else kind.restored(session, settings, kept)

    def turn(self) -> None:
        """Decide on the next contexts, and learn from what is paid."""
        self._check_length()
        x = self.contexts()
        if isinstance(self.held, PublishedState):
            self.session.run(labelled(self.session, "step", step_published(self.session, self.held, x, self.settings)))
        else:
            self.session.run(step(self.session, self.held, x, self.settings))
        self.done += 1
        if self.settings.refresh and self.done % self.settings.refresh == 0:
            self.refresh()

    def contexts(self) -> Share:
        """[x] of the decision that is due, (R, B, dim), from the owners' own features."""
        blocks = {owner: features[self.done] for owner, features in self._features.items()}
        return share_contexts(self.session, blocks, self.settings)

    def finish(self) -> None:
        """Nothing follows the last decision: the state is what was learned."""

    def state(self) -> Arrays:
        """Shares of the regressions."""
        return self.held.words()

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
        if isinstance(self.held, PublishedState):
            raise ConfigError("the published variant keeps no sums to refresh from")
        self.session.run(labelled(self.session, "refresh", refresh(self.session, self.held, self.settings)))


@lru_cache(maxsize=64)
def feature_blocks(dim: int, parties: int, widths: tuple[int, ...] = ()) -> tuple[slice, ...]:
    """Which features each owner holds: neighbouring blocks of these widths, or as equal as they can be."""
    ends = np.cumsum(widths or [len(part) for part in np.array_split(np.arange(dim), parties)])
    return tuple(slice(int(start), int(end)) for start, end in zip([0, *ends[:-1]], ends))


def split(contexts: np.ndarray, parties: int, widths: tuple[int, ...] = ()) -> dict[int, np.ndarray]:
    """Each owner's features of (..., dim) contexts."""
    parts = feature_blocks(contexts.shape[-1], parties, widths)
    return {owner: contexts[..., part] for owner, part in enumerate(parts)}


def share_contexts(
    session: Session, given: Mapping[int, np.ndarray], settings: Settings, *, contexts: int | None = None
) -> Share:
    """[x] from the owners' blocks, of which this process has its own; each owner enforces the declared bound.

    An owner without features shares nothing.
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
        for owner, part in enumerate(feature_blocks(settings.dim, session.parties, settings.widths))
        if part.stop > part.start
    ]
    return ops.concat(parts, axis=-1)
