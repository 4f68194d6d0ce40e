"""Which participant is given what, and what it then plays, in this process or in one of its own.

server       has  the settings, and of earlier sittings which steps ended a batch
user         has  features and rewards of all users, and which arms they pulled
key owner    has  the settings
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.helba import HelbaError, Problem

from ...published.ckks import Vault
from ...published.drive import Play, Watch
from ...published.kept import Home
from ...published.participant import Cast, Published
from ...run.folder import Keep
from .messages import Role
from .outcome import Outcome
from .server import Seen, server
from .settings import Settings
from .user import key_owner, user

ROLES = tuple(Role)
KEEPING = Role.SERVER, Role.USER
CALLS = [
    (one.value, other.value)
    for one, other in ((Role.USER, Role.SERVER), (Role.OWNER, Role.SERVER), (Role.OWNER, Role.USER))
]


def cast_of(settings: Settings, problem: Problem, *, keep: Keep | None = None, run: str = "", start: int = 0) -> Cast:
    """To each its own.  run: the name of what is kept.  start: steps of earlier sittings."""
    own: dict[Role, dict[str, Any]] = {role: {} for role in ROLES}
    own[Role.USER] = {"features": problem.features.tolist(), "rewards": problem.rewards.tolist()}
    for role in () if keep is None else KEEPING:
        assert keep is not None
        own[role] |= {"home": Home(keep.folder / role.value, run, every=1).as_json(), "start": start}
    inputs = {role.value: {"settings": settings.as_json(), **own[role]} for role in ROLES}
    return Cast(inputs, CALLS, centre=Role.SERVER.value)


def play_of(
    node: int, given: dict[str, Any], watch: Watch | None, vault: Vault | None = None, seen: Seen | None = None
) -> Play[Outcome]:
    """What a node plays.  vault: the key of whoever looks on.  seen: is shown ciphertexts of the server."""
    role, settings = ROLES[node], Settings.from_json(given["settings"])
    home, start = Home.from_json(given.get("home")), given.get("start", 0)
    if role is Role.SERVER:
        return server(settings, home, start, watch=watch, seen=seen)
    if role is Role.OWNER:
        return key_owner(settings, vault)
    return user(settings, np.array(given["features"]), np.array(given["rewards"]), home, start)


PUBLISHED = Published(f"{__name__}:PUBLISHED", "helba", Outcome, HelbaError, play_of)
