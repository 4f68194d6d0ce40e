"""The clients of the computing parties: a host, which plays a block of owners, and the customer.

A host knows its own owners' pulls, rewards and noise, and the seed by which all owners explore in the same steps.  Its
rows travel together; no owner's row reads another's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bandits.samba.coins import CommonCoins, Seeds, owner_noise
from bandits.samba.rewards import Arms, RecordedArms, reward
from mpc.client import ClientProgram, Receive, Send
from mpc.errors import ConfigError, RangeError

from ...run.program import Desk, Fresh
from ..owners import OF_GAME, Owners, Pay, check_recorded, packed, paid_by, unpack
from .settings import Settings

MEANS, COMMON, REWARDS, PAID = "means", "common", "rewards", "paid"


class Due(NamedTuple):
    """Words that are computed and not yet answered."""

    t: int
    iteration: int
    words: np.ndarray

    def __repr__(self) -> str:
        return f"Due(t={self.t}, iteration={self.iteration}, words hidden)"


class Host:
    """The owners of one block.

    common: the seed of what all owners draw alike.  noise: a stream for each owner.  pay: what their arms pay.
    done: pulls of the whole game that these owners know the end of.
    """

    def __init__(
        self, settings: Settings, block: range, *, common: bytes, noise: Sequence[np.random.Generator], pay: Pay
    ) -> None:
        self.settings = settings
        self.owners = Owners(settings.local, block, settings.arms, noise=noise, pay=pay)
        self.done = 0
        self.inputs: Mapping[str, np.ndarray] = {}
        self._common = CommonCoins(common)
        self._due: Due | None = None

    @classmethod
    def of(cls, settings: Settings, block: range, own: Mapping[str, np.ndarray], desk: Desk | None = None) -> Host:
        """Owners of what their process alone has: `inputs`, whose arms are simulated, or `recorded`."""
        own = dict(own)  # a file that it comes from may be closed by the time an arm is pulled

        def made_up(arm: int, t: int) -> int:
            return reward(own[REWARDS].tobytes(), float(own[MEANS][arm - block.start]), arm, t)

        noise = [np.random.Generator(np.random.PCG64(0)) for _ in block]
        for stream, state in zip(noise, own["noise"]):
            unpack(stream, state)
        pay: Pay = made_up
        if MEANS not in own:
            assert desk is not None, "owners whose arms are not made up sit at a desk"
            pay = paid_by(block, own.get(PAID), desk)
        made = cls(settings, block, common=own[COMMON].tobytes(), noise=noise, pay=pay)
        made.inputs = {name: own[name] for name in (MEANS, COMMON, REWARDS, PAID) if name in own}
        if "at" in own:
            made.restore(own)
        return made

    def words(self, t: int, iteration: int) -> np.ndarray:
        """What the owners share: their words, or 0 in a step that explores.  Asked again, the same.

        Words are computed in such a step as well, so that it takes as long; policies that explore draw no noise.
        """
        due, settings = self._due, self.settings
        if due is None or (due.t, due.iteration) != (t, iteration):
            words = self.owners.words(t, iteration, settings.fraction_bits(iteration))
            self._check(words, t, iteration)
            chance = settings.local.explores(t)
            if chance > 0.0 and self._common.explore(t, chance):
                words = np.zeros_like(words)
            due = self._due = Due(t, iteration, words)
        return due.words

    def told(self, bits: np.ndarray, t: int, iteration: int) -> None:
        """Each owner's own bit."""
        self.owners.told(bits, t, iteration)
        if iteration == self.settings.local.iterations:
            self.done = t

    def first_pulls(self) -> None:
        """Steps 1 to K."""
        self.owners.first_pulls()
        self.done = self.settings.arms

    def _check(self, words: np.ndarray, t: int, iteration: int) -> None:
        limit = 1 << (self.settings.score_bits(iteration) - 1)
        if words.min() < 0 or words.max() >= limit:
            owner = int(self.owners.mine.numbers[int(np.argmax((words < 0) | (words >= limit)))])
            raise RangeError(
                f"owner {owner}'s score at step {t} leaves the range that {self.settings.policy} declares for "
                f"{self.settings.budget:,} pulls: declare a larger one"
            )

    def state(self) -> dict[str, np.ndarray]:
        """All that these owners go on from."""
        due = self._due or Due(0, 0, np.zeros(len(self.owners.pulls), np.int64))
        at = np.array([self.done, due.t, due.iteration])
        return {**self.inputs, **self.owners.state(), "due": due.words, "at": at}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from what `state` gave."""
        if not {"due", "at"} <= set(state):
            raise ConfigError("what was kept is of other owners or of another policy: start the run again")
        self.owners.restore(state)
        self.done, t, iteration = state["at"].tolist()
        self._due = Due(t, iteration, state["due"])


def inputs(block: range, seeds: Seeds, arms: Arms) -> dict[str, np.ndarray]:
    """What the process of these owners alone has: the seeds they have in common, their noise, what their arms pay."""
    own = slice(block.start, block.stop)
    made_up = {MEANS: arms.means[own], REWARDS: np.frombuffer(seeds.rewards, np.uint8)}
    return {
        **({PAID: arms.outcomes[:, own].astype(np.int64)} if isinstance(arms, RecordedArms) else made_up),
        COMMON: np.frombuffer(seeds.common, np.uint8),
        "noise": np.stack([packed(owner_noise(seeds.noise, arm)) for arm in block]),
    }


def recorded(block: range, rows: np.ndarray | None, fresh: Fresh) -> dict[str, np.ndarray]:
    """The same of owners whose coins are their own.

    rows: what each arm would pay, by step; None where the world is told which arm is pulled, and says what it paid.
    """
    if rows is not None:
        check_recorded(block, rows)
    noise = [np.random.PCG64(int.from_bytes(fresh(f"noise {arm}"), "little")) for arm in block]
    return {
        COMMON: np.frombuffer(fresh(COMMON), np.uint8),
        "noise": np.stack([packed(np.random.Generator(each)) for each in noise]),
        **({} if rows is None else {PAID: rows.astype(np.int64)}),
    }


def host(own: Host, desk: Desk) -> ClientProgram:
    """Plays what is left of the game, and shares the sums at the end; what its owners know of it is theirs."""
    settings, rows = own.settings, len(own.owners.pulls)
    if not own.done:
        own.first_pulls()
        if desk.here(own.done, own.state):
            return None
    for t in range(own.done + 1, settings.budget + 1):
        for iteration in range(1, settings.local.iterations + 1):
            yield Send(own.words(t, iteration))
            own.told((yield Receive((rows,))), t, iteration)
        if desk.here(own.done, own.state):
            return None
    yield Send(own.owners.sums)
    state = own.owners.state()
    return {name: state[name].tolist() for name in OF_GAME}


def customer() -> ClientProgram:
    """DC: learns the sum of all rewards."""
    return int((yield Receive(())))
