"""Which participant is given what, and what it then plays, in this process or in one of its own.

server       has  the settings
user         has  features and rewards of all users
key owner    has  the settings
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bandits.helba import HelbaError, Problem

from ...published.drive import Play, Watch
from ...published.participant import Cast, Published
from .messages import Role
from .outcome import Outcome
from .scheme import Vault
from .server import Seen, server
from .settings import Settings
from .user import key_owner, user

ROLES = tuple(Role)
_CALLS = [(Role.USER, Role.SERVER), (Role.OWNER, Role.SERVER), (Role.OWNER, Role.USER)]


def cast_of(settings: Settings, problem: Problem) -> Cast:
    """To each its own."""
    own: dict[Role, dict[str, Any]] = {role: {} for role in ROLES}
    own[Role.USER] = {"features": problem.features.tolist(), "rewards": problem.rewards.tolist()}
    inputs = {role.value: {"settings": settings.as_json(), **own[role]} for role in ROLES}
    return Cast(inputs, [(one.value, other.value) for one, other in _CALLS], centre=Role.SERVER.value)


def play_of(
    node: int, given: dict[str, Any], watch: Watch | None, vault: Vault | None = None, seen: Seen | None = None
) -> Play[Outcome]:
    """What a node plays.  vault: the key of whoever looks on.  seen: is shown ciphertexts of the server."""
    role, settings = ROLES[node], Settings.from_json(given["settings"])
    if role is Role.SERVER:
        return server(settings, watch=watch, seen=seen)
    if role is Role.OWNER:
        return key_owner(settings, vault)
    return user(settings, np.array(given["features"]), np.array(given["rewards"]))


PUBLISHED = Published(f"{__name__}:PUBLISHED", "helba", Outcome, HelbaError, play_of)
