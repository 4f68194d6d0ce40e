"""The users, one at each step: they share features, learn an arm, and share what it paid."""

from __future__ import annotations

from functools import partial

import numpy as np

from bandits.helba import Constants
from bandits.helba.problem import FEATURE_BITS
from mpc.client import ClientProgram, Receive, Send
from mpc.errors import RangeError

from ..run.program import Desk
from .settings import Settings


def user(features: np.ndarray, rewards: np.ndarray | None, settings: Settings, desk: Desk) -> ClientProgram:
    """Each user checks its own numbers before they leave it.

    features: (T, K, d).  rewards: (T, K), of every arm; None where the world is told the arm and says what it paid.
    """
    for step in range(desk.start, settings.steps):
        check(features[step], np.zeros(settings.arms) if rewards is None else rewards[step], settings.constants, step)
        yield Send(features[step], FEATURE_BITS)
        arm = yield Receive(())
        if not 0 <= arm < settings.arms:
            raise RangeError(
                f"the user of step {step} was told arm {{}} of {settings.arms}: a range was left", own=str(int(arm))
            )
        desk.note(np.array(arm))
        if rewards is None:
            desk.tell(np.array(arm))
            paid = desk.hear((), partial(_check_paid, settings, step))
        else:
            paid = rewards[step, int(arm)]
        yield Send(paid, FEATURE_BITS)


def _check_paid(settings: Settings, step: int, paid: np.ndarray) -> None:
    if not (np.abs(paid) <= settings.constants.reward).all():
        raise RangeError(f"step {step}: a reward beyond R = {settings.constants.reward:g}: scale it, or raise R")


def check_all(features: np.ndarray, rewards: np.ndarray, given: Constants) -> None:
    """The same of all steps, where a run is begun with them.  features: (T, K, d).  rewards: (T, K)."""
    for step, pair in enumerate(zip(features, rewards)):
        check(*pair, given, step)


def check(features: np.ndarray, rewards: np.ndarray, given: Constants, step: int) -> None:
    """RangeError where they break the bounds that words were laid out for; says where, and not what."""
    longest = given.norm * (1.0 + 2.0**-FEATURE_BITS)
    for arm, (x, reward) in enumerate(zip(features, rewards)):
        if not np.linalg.norm(x) <= longest:
            raise RangeError(f"step {step}, arm {arm}: features longer than L = {given.norm:g}: scale them, or raise L")
        if not abs(reward) <= given.reward:
            raise RangeError(f"step {step}, arm {arm}: a reward beyond R = {given.reward:g}: scale it, or raise R")
