"""Users, one at each step, who hold the key; and the owner of the key, who makes it.

A user checks its own numbers, sends them encrypted, refreshes what the server asks for, pulls the arm whose b is the
largest, and says, masked, how its test came out.
"""

from __future__ import annotations

import numpy as np

from mpc.errors import ConfigError, Desync, RangeError

from ...published.ckks import LEAST, Ciphertext, Vault
from ...published.drive import STEPS, Part, Play, Receive, Send
from ...published.kept import Home
from ..clients import check
from .layout import Plan
from .messages import RESULT, Frames, Kind, Role
from .outcome import Outcome
from .refresh import DISTANCE, refreshed
from .settings import Settings


def key_owner(settings: Settings, vault: Vault | None = None) -> Play[Outcome]:
    """Makes the keys: the secret one for users, what computes for the server.  vault: of whoever looks on."""
    done = Outcome(Role.OWNER.value)
    frames, layout, scheme = Frames(settings.digest), settings.layout, settings.scheme
    vault = vault or Vault(scheme)
    yield Send(Role.USER, frames.pack(Kind.SECRET, vault.secret()))
    products, shifts = vault.evaluation(layout.steps)
    nothing = vault.encrypt(np.zeros(scheme.slots), fresh_scale(settings), scheme.top).to_string()
    for kind, raw in ((Kind.PRODUCTS, products), (Kind.SHIFTS, shifts), (Kind.NOTHING, nothing)):
        yield Send(Role.SERVER, frames.pack(kind, raw))
    done.learned("key to what all users send", 1, "it makes the keys, and sees no ciphertext")
    return done


def user(
    settings: Settings, features: np.ndarray, rewards: np.ndarray, home: Home | None = None, start: int = 0
) -> Play[Outcome]:
    """All users, in turn.  features: (T, K, d).  rewards: (T, K), of every arm.  start: steps of earlier sittings."""
    done = Outcome(Role.USER.value)
    if start and home is not None:
        done.restore(home.restored(start))
    frames, scheme = Frames(settings.digest), settings.scheme
    secret = frames.unpack((yield Receive(Role.OWNER)), Role.OWNER, Kind.SECRET)
    one = _User(settings, Vault(scheme, secret.rest, sender=Role.OWNER), frames, done)
    yield Part(STEPS)
    for t in range(1, settings.steps + 1):
        check(features[t - 1], rewards[t - 1], settings.constants, t - 1)
        arm = yield from one.step(t, features[t - 1], rewards[t - 1], done.arms[t - 1] if t <= start else None)
        if t > start:
            done.arms.append(arm)
            if home is not None:
                home.keep(t, done.state)
    count = settings.steps
    done.learned("arm, and how near to the best each arm is", count, "it is pulled")
    distance = f"{done.masked * DISTANCE:.1e}"
    done.learned("masked number", done.masked, f"it refreshes ciphertexts; distance {distance} in all")
    done.learned("key to what all users send", 1, "each user encrypts and decrypts under the same key")
    return done


def fresh_scale(settings: Settings) -> float:
    """Of what users encrypt."""
    return float(2 ** (settings.scheme.prime - 1))


class _User:
    """done: counts what it refreshes."""

    def __init__(self, settings: Settings, vault: Vault, frames: Frames, done: Outcome) -> None:
        self.settings, self.vault, self.frames, self.done = settings, vault, frames, done
        self.layout, self.scheme = settings.layout, settings.scheme

    def step(self, t: int, features: np.ndarray, rewards: np.ndarray, arm: int | None = None) -> Play[int]:
        """Sends features, serves the server until the step is over; the arm that was pulled.

        arm: of a step of an earlier sitting, of which what was learned is sent alone.
        """
        layout, x = self.layout, features / self.settings.constants.norm
        if arm is None:
            yield self._sent(Kind.FEATURES, layout.features(x), t)
        else:
            yield self._learned(x[arm], rewards[arm], t)
        while True:
            message = self.frames.unpack(
                (yield Receive(Role.SERVER)), Role.SERVER, Kind.REFRESH, Kind.CHOICE, Kind.TEST, Kind.NEXT, step=t
            )
            _, _, level, plan = message.fields
            if message.kind is Kind.NEXT:
                if arm is None:
                    raise Desync(f"{Role.SERVER} ended step {t} without an arm: run the same release everywhere")
                return arm
            y = self.scheme.load(message.rest, Role.SERVER, level=LEAST)
            if message.kind is Kind.REFRESH:
                for one in self._refreshed(y, level, plan):
                    yield Send(Role.SERVER, self.frames.pack(Kind.REFRESHED, one.to_string(), step=t))
            elif message.kind is Kind.CHOICE:
                arm = self._chosen((self.vault.decrypt(y)[layout.arm_at[: layout.arms]] + 1.0) / 2.0, t)
                self.done.masked += len(layout.kept) - layout.arms
                yield self._learned(x[arm], rewards[arm], t)
                if plan:
                    pulled = layout.of_tests(np.arange(layout.arms) == arm)
                    yield self._sent(Kind.PULLED, pulled, t, LEAST + 1)
            else:
                self.done.masked += len(layout.kept)
                number = float(self.vault.decrypt(y)[layout.test_at].sum())
                yield Send(Role.SERVER, self.frames.pack(Kind.RESULT, RESULT.pack(number), step=t))

    def _refreshed(self, y: Ciphertext, level: int, number: int) -> list[Ciphertext]:
        if number not in set(Plan) or not LEAST < level <= self.scheme.top:
            raise ConfigError(f"{Role.SERVER} asks for plan {number} at level {level}: run the same release everywhere")
        layout, plan = self.layout, Plan(number)
        corners = layout.edges() if plan is Plan.ESTIMATE else layout.corners()
        stay = plan in (Plan.STAY, Plan.ROUNDED)
        kept = layout.kept if stay else np.flatnonzero(corners)
        self.done.refreshes += 1
        self.done.masked += len(kept)
        placings = [] if stay else layout.placings(plan)
        return refreshed(self.vault, self.scheme, y, level, kept, placings, rounded=plan is Plan.ROUNDED)

    def _chosen(self, b: np.ndarray, t: int) -> int:
        least = 1.0 / (4.0 * t)
        if not (np.isfinite(b).all() and b.min() > -0.1 and b.max() < 1.1 and b.max() >= least):
            raise RangeError(
                f"step {t}: no arm's b lies between 1 / (4 t) and 1: an index has left its range, which happens with "
                "probability delta, or a user broke its bounds; play again with a smaller --delta"
            )
        return int(b.argmax())

    def _learned(self, x: np.ndarray, reward: float, t: int) -> Send:
        return self._sent(Kind.LEARN, self.layout.learned(x, float(reward) / self.settings.constants.reward), t)

    def _sent(self, kind: Kind, numbers: np.ndarray, t: int, level: int = 0) -> Send:
        raw = self.vault.encrypt(numbers, fresh_scale(self.settings), level or self.scheme.top).to_string()
        return Send(Role.SERVER, self.frames.pack(kind, raw, step=t))
