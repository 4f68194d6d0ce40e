"""Truncation and division as the settings want them."""

from __future__ import annotations

from mpc import ops
from mpc.rounds import Rounds
from mpc.session import Session
from mpc.share import Share

from .settings import Division, Settings, Truncation


def cut(session: Session, x: Share, bits: int, settings: Settings) -> Rounds[Share]:
    """[x] with `bits` fewer fraction bits.  Cost: 1 round."""
    published = settings.truncation is Truncation.PUBLISHED
    return (ops.truncate_published if published else ops.truncate)(session, x, bits)


def cut_to(session: Session, x: Share, scale: int, settings: Settings) -> Rounds[Share]:
    """[x] with `scale` fraction bits; no round where it has them already."""
    if x.scale == scale:
        return x
    return (yield from cut(session, x, x.scale - scale, settings))


def quotient(session: Session, x: Share, settings: Settings) -> Rounds[Share]:
    """[1 / x] for x in [1, upper], at `factor_scale`.

    Cost: 1 round by a table; 2 + 4 for each iteration behind it; 18 + 4 for each as published.
    """
    if settings.division is Division.NEWTON:
        return (yield from ops.reciprocal_published(session, x, iterations=settings.iterations))
    y = yield from ops.curve(session, x, settings.lines)
    y = yield from cut_to(session, y, settings.factor_scale, settings)
    return (yield from ops.newton_reciprocal(session, x, y, settings.iterations))
