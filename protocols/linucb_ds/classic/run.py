"""A whole classic run, in one process or in four, beside the exact reference.  Knows every participant's outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from bandits.coins import Coins, Noise
from bandits.fixed_point import FixedRun, Scales, play_fixed
from bandits.linear_problem import LinearProblem, ProblemError
from mpc.errors import ConfigError
from mpc.ledger import Ledger
from mpc.net.transport import DEFAULT_TIMEOUT

from ...published.cores import check_cores
from ...published.drive import PREPARATION, STEPS, Spent, Times, Watch
from ...published.outcome import whole_ledger
from ...published.paillier import KEY_BITS, Counts, check_bits, require_packages
from ...published.participant import launched, played_here
from .cast import PUBLISHED, cast_of, play_of
from .messages import Role
from .roles import DECRYPTIONS, ESTIMATE, FRESH, INDICES, Outcome, Phase


@dataclass(frozen=True)
class ClassicRun:
    """What the participants ended with, and the integers that the same seed gives in the clear.  shape: K and d."""

    shape: tuple[int, int]
    scales: Scales
    bits: int
    cores: int
    outcomes: dict[str, Outcome]
    parts: dict[str, Times] = field(repr=False)
    reference: FixedRun

    @property
    def arms(self) -> list[int]:
        """The pulled ones, which P knows."""
        return self.outcomes[Role.P].arms

    @property
    def total(self) -> int:
        """What DC decrypted, a word of `scales.reward` fraction bits."""
        return self.outcomes[Role.DC].total

    @property
    def cumulative_reward(self) -> float:
        """As a number."""
        return self.total * 2.0**-self.scales.reward

    @property
    def exact(self) -> bool:
        """Whether arms and sum are the reference's, bit for bit."""
        return self.arms == self.reference.arms and self.total == self.reference.total

    @property
    def counts(self) -> Counts:
        """Operations of all participants together."""
        return sum((outcome.counts for outcome in self.outcomes.values()), Counts())

    @property
    def paper_phases(self) -> dict[str, Counts]:
        """What the paper's Figure 5 says of them."""
        (count, dim), steps = self.shape, len(self.arms) - 1
        sums = steps * (dim**2 + count * dim + 2 * dim)
        counted = {
            Phase.START: Counts(encryptions=dim + 1, additions=dim, multiplications=2 * dim),
            Phase.LOOP: Counts(steps, steps * count, additions=sums, multiplications=sums),
            Phase.SWITCH: Counts(encryptions=1, decryptions=2, additions=2),
        }
        return {phase.value: counts for phase, counts in counted.items()}

    @property
    def ledger(self) -> Ledger:
        """Of all participants."""
        return whole_ledger(self.outcomes.values())

    @property
    def seconds_per_step(self) -> float:
        """Of the steps with a list, on P's clock; keys, tables and key switching are not in it."""
        parts = self.parts[Role.P]
        spent = sum(parts[part].wall for part in (STEPS, ESTIMATE, INDICES, FRESH) if part in parts)
        return spent / max(1, len(self.arms) - 1)

    @property
    def costly(self) -> dict[str, float]:
        """Seconds of the clock in what a step's time goes into."""
        whose = {ESTIMATE: Role.P, INDICES: Role.P, FRESH: Role.P, DECRYPTIONS: Role.COMP}
        return {name: self.parts[role].get(name, Spent()).wall for name, role in whose.items()}

    @property
    def phases(self) -> dict[str, Counts]:
        """Operations of all participants by the phases of the paper's Figure 5."""
        return {
            phase.value: sum((one.phases.get(phase.value, Counts()) for one in self.outcomes.values()), Counts())
            for phase in Phase
        }

    @property
    def work(self) -> dict[str, float]:
        """Seconds that each participant computes, keys aside."""
        return {
            name: sum(spent.own for part, spent in parts.items() if part != PREPARATION)
            for name, parts in self.parts.items()
        }


def play_classic(
    problem: LinearProblem,
    budget: int,
    *,
    seed: int,
    scales: Scales = Scales(),  # noqa: B008  frozen
    noise: Noise = Noise.SIGN,
    bits: int = KEY_BITS,
    insecure: bool = False,
    cores: int = 1,
    processes: bool = False,
    watch: Watch | None = None,
    seen: Callable[[list[int]], None] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> ClassicRun:
    """LinUCB-DS or SpectralUCB-DS, as the problem's constants say, with keys of `bits`.

    insecure: allow keys below 1024 bits, for tests.  cores: processes in which P and Comp each do what takes long.
    processes: a process for each participant.  watch: is told how many pulls are done.  seen: in one process, is told
    the lists that Comp decrypts.  timeout: seconds of silence.
    """
    require_packages()
    check_cores(cores)
    check_bits(bits, insecure=insecure)
    try:
        coins = Coins.draw(seed, budget=budget, arms=len(problem.arms), size=problem.exploration.noise, noise=noise)
        reference = play_fixed(problem, coins, scales)
        cast = cast_of(
            problem, scales, budget=budget, seed=seed, noise=noise, bits=bits, insecure=insecure, cores=cores
        )  # fmt: skip
        if processes:
            outcomes, parts = launched(PUBLISHED, cast, watch=watch, timeout=timeout)
        else:
            outcomes, parts = played_here(cast, partial(play_of, watch=watch, seen=seen))
    except ProblemError as error:
        raise ConfigError(str(error)) from error
    return ClassicRun(problem.arms.shape, scales, bits, cores, outcomes, parts, reference)
