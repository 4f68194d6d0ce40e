"""The computing parties' end of a run on shares.  They keep nothing between two steps: owners share anew each time."""

from __future__ import annotations

from mpc.session import Session

from .program import pay_out, step
from .settings import Settings


class Player:
    """done: pulls that are over; the first K take no message."""

    def __init__(self, session: Session, settings: Settings, done: int = 0) -> None:
        self.session, self.settings = session, settings
        self.done = max(done, settings.arms)
        if session.trail is not None:  # parties with other settings find out in the first round
            session.trail.note("samba", settings.digest, self.done)

    def turn(self) -> None:
        """One choice."""
        self.session.run(step(self.session, self.settings))
        self.done += 1

    def finish(self) -> None:
        """Tell the customer."""
        self.session.run(pay_out(self.settings))
