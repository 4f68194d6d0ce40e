"""Truncation and division as the settings want them."""

from __future__ import annotations

from collections.abc import Sequence

from mpc import ops
from mpc.rounds import Rounds, together
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


def cut_all(session: Session, parts: Sequence[tuple[Share, int]], settings: Settings) -> Rounds[list[Share]]:
    """Each [x] with that many fewer fraction bits, in one round; equal bits share a mask.  Cost: 1 round."""
    by_bits: dict[int, list[Share]] = {}
    for x, bits in parts:
        by_bits.setdefault(bits, []).append(x)
    flat = {bits: _in_a_row([x.integers().reshape(x.size) for x in group]) for bits, group in by_bits.items()}
    cuts = [cut(session, whole, bits, settings) for bits, whole in flat.items()]
    done = [(yield from cuts[0])] if len(cuts) == 1 else (yield from together(*cuts))
    rest = dict(zip(flat, done, strict=True))
    out = []
    for x, bits in parts:
        part, rest[bits] = rest[bits][: x.size], rest[bits][x.size :]
        out.append(part.reshape(*x.shape).at_scale(x.scale - bits))
    return out


def _in_a_row(parts: list[Share]) -> Share:
    return parts[0] if len(parts) == 1 else ops.concat(parts)


def quotient(session: Session, x: Share, settings: Settings) -> Rounds[Share]:
    """[1 / x] for x in [1, upper], at `factor_scale`.

    Cost: 1 round by a table, 2 where `factor_scale` is less than the table's; 2 + 4 for each iteration behind it;
    18 + 4 for each as published.
    """
    if settings.division is Division.NEWTON:
        return (yield from ops.reciprocal_published(session, x, iterations=settings.iterations))
    y = yield from ops.curve(session, x, settings.lines)
    y = yield from cut_to(session, y, settings.factor_scale, settings)
    return (yield from ops.newton_reciprocal(session, x, y, settings.iterations))
