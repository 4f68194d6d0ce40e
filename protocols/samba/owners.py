"""The owners' side of SAMBA: what an owner holds, and the two places where a policy plugs in.  Knows no message.

    ComputeScore   `LocalPolicy.score`: v_i from what owner i holds, the step and the iteration
    SelectArm      `LocalPolicy.selects`: for each iteration, the largest word or a draw in proportion to the words;
                   its length is the declared number of iterations

After each iteration every owner is told its own bit, and after the last one the owner whose bit is 1 pulls.

Score locality: nothing may go into the score of owner i but what owner i holds, its own noise, and what is public (K,
the step, constants).  A policy that needs more says so in `shared`, and `require_local` refuses it with the reason.
It also finds out: owners are rows, and a process that hosts one row must compute what a process that hosts all
computes.

A score leaves its owner as an integer, word = round(v 2^bits), half to even, plus a constant that makes it
non-negative.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import ClassVar

import numpy as np

from bandits.samba import Played
from mpc.errors import ConfigError, Desync, RangeError
from mpc.prg import Unshared

from ..run.program import Desk

SCORE_BITS = 40
MOST_ITERATIONS = 255  # a message's head has a byte for it
_PROBE_OWNERS, _PROBE_STEPS = 4, 40

_HALF = (1 << 64) - 1
OF_GAME = "numbers", "pulls", "sums", "steps"  # of a state, what a game is made of

Pay = Callable[[int, int], int]
"""(arm, t) -> 0 or 1: what the arm pays at step t."""


def paid_by(rows: Sequence[int], recorded: np.ndarray | None, desk: Desk) -> Pay:
    """What arms pay that nobody makes up.  recorded: of each, by step; None where the world is told which is pulled."""

    def pay(arm: int, t: int) -> int:
        if recorded is not None:
            return int(recorded[t - 1, arm - rows[0]])
        return int(desk.ask(t - 1, np.array(arm), (), partial(_check_paid, arm, t)).item())

    return pay


def _check_paid(arm: int, t: int, paid: np.ndarray) -> None:
    if not np.isin(paid, (0, 1)).all():
        raise RangeError(f"owner {arm}'s arm paid no 0 or 1 at step {t}: SAMBA is for such rewards")


def check_recorded(rows: Sequence[int], recorded: np.ndarray) -> None:
    """RangeError where an arm would pay something else than 0 or 1."""
    if (unfit := ~np.isin(recorded, (0, 1))).any():
        step, at = (int(each[0]) for each in np.nonzero(unfit))
        raise RangeError(f"owner {rows[at]}'s arm pays no 0 or 1 in row {step}: SAMBA is for such rewards")


def owners_name(rows: Sequence[int]) -> str:
    """Of a participant that hosts these neighbouring owners."""
    return f"owner {rows[0]}" if len(rows) == 1 else f"owners {rows[0]} to {rows[-1]}"


class Select(Enum):
    """How an arm is selected from the words."""

    LARGEST = "largest"
    DRAW = "draw"


@dataclass
class Holdings:
    """What the owners hold that this process hosts, a row each.  own: arrays a policy adds, (R,) each."""

    numbers: np.ndarray
    arms: int  # K, of all owners everywhere
    pulls: np.ndarray = field(repr=False)
    sums: np.ndarray = field(repr=False)
    noise: Sequence[np.random.Generator] = field(repr=False)
    own: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @property
    def means(self) -> np.ndarray:
        """m, once each arm was pulled."""
        return np.asarray(self.sums / self.pulls)


class LocalPolicy(ABC):
    """A policy as owners play it: everything works on rows, and no row reads another one."""

    name: ClassVar[str]
    selects: ClassVar[tuple[Select, ...]] = (Select.LARGEST,)
    shared: ClassVar[str] = ""  # what a score needs that no owner holds: such a policy is refused
    placed: ClassVar[str] = ""  # what selecting needs of arms beyond their masked words in a secret order: refused too
    lift: int = 0  # added to every score, in words: an integer that makes them non-negative
    zeros: bool = False  # as published, owners send a score of 0 where a step explores, instead of none

    @property
    def iterations(self) -> int:
        """How often scores are sent for one pull."""
        return len(self.selects)

    def begin(self, mine: Holdings) -> None:  # noqa: B027  most policies need none
        """Make `mine.own` ready, before the first pull."""

    @abstractmethod
    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        """(R,) float64."""

    @abstractmethod
    def largest(self, budget: int, iteration: int) -> float:
        """No score is larger in a run of so many pulls; the lift not counted."""

    def told(self, mine: Holdings, bits: np.ndarray, t: int, iteration: int) -> None:  # noqa: B027  most policies need none
        """Learn each owner's own bit."""

    def paid(self, mine: Holdings, row: int, reward: int) -> None:  # noqa: B027  most policies need none
        """Learn what an owner's arm paid; pulls and sums know already."""

    def explores(self, t: int) -> float:
        """How likely step t explores instead of asking for scores."""
        return 0.0

    @property
    def may_explore(self) -> bool:
        """Whether some step does."""
        return type(self).explores is not LocalPolicy.explores

    def words(self, mine: Holdings, t: int, iteration: int, bits: int = SCORE_BITS) -> np.ndarray:
        """Scores as integers below 2^word_bits: int64, or Python integers where these do not fit."""
        lifted = np.rint(self.score(mine, t, iteration) * 2.0**bits) + float(self.lift << bits)
        if not (lifted.min() >= 0.0 and lifted.max() < 2.0**62):  # a NaN is its list's least and its largest
            raise _unfit(mine, lifted, self.name, t)
        return lifted.astype(np.int64)

    def word_bits(self, budget: int, iteration: int, bits: int = SCORE_BITS) -> int:
        """Every word of the iteration is below 2 to this."""
        return math.ceil((self.largest(budget, iteration) + self.lift) * 2.0**bits).bit_length()


class Owners(Unshared):
    """Owners in one process: the rows of `numbers`, out of `arms` owners in all.  A fork of it draws nothing.

    noise: each owner's own stream.  pay: what their arms pay.
    """

    def __init__(
        self, policy: LocalPolicy, numbers: Sequence[int], arms: int, *, noise: Sequence[np.random.Generator], pay: Pay
    ) -> None:
        super().__init__()
        rows = np.array(numbers, np.int64)
        if not rows.size or len(noise) != rows.size:
            raise ConfigError(f"{rows.size} owners with {len(noise)} streams of noise: give each owner one")
        self.policy, self._pay = policy, pay
        self.mine = Holdings(rows, arms, np.zeros_like(rows), np.zeros_like(rows), noise)
        self.steps: list[list[int]] = [[] for _ in numbers]  # when each pulled
        policy.begin(self.mine)

    @property
    def pulls(self) -> np.ndarray:
        """(R,) n."""
        return self.mine.pulls

    @property
    def sums(self) -> np.ndarray:
        """(R,) s."""
        return self.mine.sums

    def first_pulls(self) -> None:
        """Steps 1 to K: step t is owner t - 1's."""
        self.require_own()
        for row, number in enumerate(self.mine.numbers.tolist()):
            self._pull(row, number + 1)

    def words(self, t: int, iteration: int, bits: int = SCORE_BITS) -> np.ndarray:
        """(R,) non-negative integers."""
        self.require_own()
        return self.policy.words(self.mine, t, iteration, bits)

    def told(self, bits: np.ndarray, t: int, iteration: int) -> None:
        """Each owner's own bit; after the last iteration whoever has a 1 pulls.  `Desync` where one is no bit."""
        self.require_own()
        if (unfit := (bits != 0) & (bits != 1)).any():
            raise Desync(
                f"owner {int(self.mine.numbers[int(np.argmax(unfit))])} was answered neither 0 nor 1 at step {t}, so "
                "it does not pull: some owner's score left its range, or a role is of another release; run the same "
                "release everywhere, with honest owners"
            )
        self.policy.told(self.mine, bits, t, iteration)
        if iteration == self.policy.iterations:
            for row in bits.nonzero()[0].tolist():
                self._pull(row, t)

    def _pull(self, row: int, t: int) -> None:
        number = int(self.mine.numbers[row])
        reward = self._pay(number, t)
        _check_paid(number, t, np.array(reward))
        self.mine.pulls[row] += 1
        self.mine.sums[row] += reward
        self.steps[row].append(t)
        self.policy.paid(self.mine, row, reward)

    def state(self) -> dict[str, np.ndarray]:
        """Everything but the constants, as arrays."""
        own = {f"own {name}": array.copy() for name, array in self.mine.own.items()}
        steps = np.array([step for row in self.steps for step in row], np.int64)
        return {
            "numbers": self.mine.numbers,
            "pulls": self.pulls.copy(),
            "sums": self.sums.copy(),
            "steps": steps,
            "noise": np.stack([packed(stream) for stream in self.mine.noise]),
            **own,
        }

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from what `state` gave."""
        wanted = {*OF_GAME, "noise"} | {f"own {name}" for name in self.mine.own}
        if not wanted <= set(state) or not np.array_equal(state["numbers"], self.mine.numbers):
            raise ConfigError("what was kept is of other owners or of another policy: start the run again")
        pulls, steps = state["pulls"], state["steps"].tolist()
        if pulls.sum() != len(steps):
            raise Desync("what was kept of the owners does not fit together: start the run again")
        self.mine.pulls[:], self.mine.sums[:] = pulls, state["sums"]
        ends = np.cumsum(pulls).tolist()
        self.steps = [steps[start:end] for start, end in zip([0, *ends], ends)]
        for stream, words in zip(self.mine.noise, state["noise"], strict=True):
            unpack(stream, words)
        for name in self.mine.own:
            self.mine.own[name] = np.array(state[f"own {name}"])


def game_of(states: Iterable[Mapping[str, np.ndarray]], steps: int) -> Played:
    """What all owners together know after so many steps, as `Owners.state` has it; no one of them does."""
    rows = list(states)
    numbers, pulls, sums, when = (np.concatenate([row[name] for row in rows]) for name in OF_GAME)
    arms = np.full(steps, -1)
    arms[when - 1] = np.repeat(numbers, pulls)
    return Played(pulls, sums, arms)


def packed(stream: np.random.Generator) -> np.ndarray:
    """The state of a PCG64 stream, as words."""
    state = stream.bit_generator.state
    words = []
    for number in (state["state"]["state"], state["state"]["inc"]):
        words += [number & _HALF, number >> 64]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def unpack(stream: np.random.Generator, words: np.ndarray) -> None:
    """Bring a PCG64 stream to the state that `packed` gave."""
    low, high, inc_low, inc_high, has, rest = words.tolist()
    stream.bit_generator.state = {
        "bit_generator": "PCG64", "state": {"state": high << 64 | low, "inc": inc_high << 64 | inc_low},
        "has_uint32": has, "uinteger": rest,
    }  # fmt: skip


def require_local(policy: LocalPolicy) -> None:
    """ConfigError where a score needs more than its owner holds: declared, or found by playing owners apart.

    Or where selecting needs more than words in a secret order, as declared.

    Found: in 40 steps of made-up bits and rewards, an owner that is hosted alone computes other words, or another
    state, than the same owner beside three others.
    """
    if policy.shared:
        raise ConfigError(f"{policy.name} breaks score locality: it needs {policy.shared}, which no owner holds alone")
    if policy.placed:
        raise ConfigError(
            f"{policy.name} breaks oblivious selection: Comp would need {policy.placed}, "
            "and has masked words alone, in a secret order"
        )
    if not policy.selects:
        raise ConfigError(f"{policy.name} declares no iteration: say how each selects an arm")
    if policy.iterations > MOST_ITERATIONS:
        raise ConfigError(
            f"{policy.name} declares {policy.iterations} iterations, and messages count to {MOST_ITERATIONS}: declare "
            "fewer"
        )
    together = _probe(policy, range(_PROBE_OWNERS))
    apart = [_probe(policy, [number]) for number in range(_PROBE_OWNERS)]
    for number, (beside, alone) in enumerate(zip(together, (rows[0] for rows in apart))):
        if beside != alone:
            raise ConfigError(
                f"{policy.name} breaks score locality: owner {number} alone computes another score than beside the "
                "others, so it needs what they hold; only policies whose score follows from its owner's own pulls and "
                "rewards can be played"
            )


def _probe(policy: LocalPolicy, numbers: Sequence[int]) -> list[list[int]]:
    """By owner, its words in a made-up game."""
    noise = [np.random.default_rng([7, number]) for number in numbers]
    owners = Owners(policy, numbers, _PROBE_OWNERS, noise=noise, pay=lambda arm, t: (7 * t + 3 * arm) % 5 % 2)
    owners.first_pulls()
    said: list[list[int]] = [[] for _ in numbers]
    for t in range(_PROBE_OWNERS + 1, _PROBE_OWNERS + _PROBE_STEPS + 1):
        for iteration in range(1, policy.iterations + 1):
            for row, word in zip(said, owners.words(t, iteration).tolist()):
                row.append(word)
            chosen = (t * t + iteration) // 3 % _PROBE_OWNERS
            owners.told((owners.mine.numbers == chosen).astype(np.int64), t, iteration)
    return said


def _unfit(mine: Holdings, lifted: np.ndarray, name: str, t: int) -> RangeError:
    """Who computed a score that is none; never the score itself."""
    row = int(np.nonzero(~((lifted >= 0.0) & (lifted < 2.0**62)))[0][0])
    value = float(lifted[row])
    what = "not a number" if math.isnan(value) else "negative" if value < 0 else "too large"
    return RangeError(
        f"owner {int(mine.numbers[row])}'s score at step {t} is {what}: {name} must give a finite score of at least 0"
    )
