"""The clients of a run on shares: DO, who has theta, and DC, who pays for the pulls."""

from __future__ import annotations

import numpy as np

from mpc.client import ClientProgram, Receive, Send
from mpc.errors import RangeError

from .settings import Settings

_SLACK = 1.0 + 2.0**-10


def owner(theta: np.ndarray, settings: Settings, *, shared: bool = False) -> ClientProgram:
    """DO: shares theta, once it keeps the bound S that ranges follow from.

    shared: it did so already, in a run that goes on.
    """
    norm = float(np.linalg.norm(theta))
    if theta.shape != (settings.dim,) or not norm <= settings.exploration.theta_norm * _SLACK:
        raise RangeError(
            f"theta has shape {theta.shape} and norm {{}}: ({settings.dim},) and at most "
            f"{settings.exploration.theta_norm:g} are declared; scale it or declare a larger theta_norm",
            own=f"{norm:.6g}",
        )
    if not shared:
        yield Send(theta, settings.scales.theta)


def customer() -> ClientProgram:
    """DC: learns the sum of rewards, as a whole number of units."""
    return int((yield Receive((), 0)))
