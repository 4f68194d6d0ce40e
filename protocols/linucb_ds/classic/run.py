"""A whole classic run, in one process or in four, beside the exact reference.  Knows every participant's outcome."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bandits.coins import Coins, Noise
from bandits.fixed_point import FixedRun, Scales, play_fixed
from bandits.linear_problem import LinearProblem, ProblemError
from mpc.errors import ConfigError
from mpc.launch import launch, own_command
from mpc.ledger import Ledger
from mpc.net.transport import DEFAULT_TIMEOUT

from ...published.paillier import KEY_BITS, Counts, check_bits, require_packages
from ...run.progress import StepLines
from .drive import in_one_process
from .messages import Role
from .process import ROLES, read_outcome, write_inputs
from .roles import Outcome, Play, Watch, comparator, data_customer, data_owner, player, working

_NODE = re.compile(r"\bparty ([0-3])\b")


@dataclass(frozen=True)
class ClassicRun:
    """What the participants ended with, and the integers that the same seed gives in the clear."""

    scales: Scales
    bits: int
    outcomes: dict[Role, Outcome]
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
    def ledger(self) -> Ledger:
        """Of all participants."""
        whole = Ledger()
        for outcome in self.outcomes.values():
            for entry in outcome.ledger:
                whole.record(entry.role, entry.what, entry.count, entry.why)
        return whole

    @property
    def seconds_per_step(self) -> float:
        """Of the steps with a list, as P measured them; keys, tables and key switching are not in it."""
        return self.outcomes[Role.P].seconds["steps"] / max(1, len(self.arms) - 1)


def play_classic(
    problem: LinearProblem,
    budget: int,
    *,
    seed: int,
    scales: Scales = Scales(),  # noqa: B008  frozen
    noise: Noise = Noise.SIGN,
    bits: int = KEY_BITS,
    insecure: bool = False,
    processes: bool = False,
    watch: Watch | None = None,
    seen: Callable[[list[int]], None] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
) -> ClassicRun:
    """LinUCB-DS or SpectralUCB-DS, as the problem's constants say, with keys of `bits`.

    insecure: allow keys below 1024 bits, for tests.  processes: a process for each participant.  watch: is told how
    many pulls are done.  seen: in one process, is told the lists that Comp decrypts.  timeout: seconds of silence.
    """
    require_packages()
    check_bits(bits, insecure=insecure)
    try:
        coins = Coins.draw(seed, budget=budget, arms=len(problem.arms), size=problem.exploration.noise, noise=noise)
        reference = play_fixed(problem, coins, scales)
        if processes:
            outcomes = _launched(
                problem, scales, budget=budget, seed=seed, noise=noise, bits=bits, insecure=insecure, watch=watch,
                timeout=timeout,
            )  # fmt: skip
        else:
            plays: dict[Role, Play[Outcome]] = {
                Role.P: player(seed, bits, noise=noise, watch=watch),
                Role.COMP: comparator(bits, insecure=insecure, seen=seen),
                Role.DO: data_owner(problem, scales, bits),
                Role.DC: data_customer(budget, bits, insecure=insecure),
            }
            outcomes = in_one_process({role: working(play) for role, play in plays.items()})
    except ProblemError as error:
        raise ConfigError(str(error)) from error
    return ClassicRun(scales, bits, outcomes, reference)


def _launched(
    problem: LinearProblem, scales: Scales, *, budget: int, seed: int, noise: Noise, bits: int, insecure: bool,
    watch: Watch | None, timeout: float,
) -> dict[Role, Outcome]:  # fmt: skip
    command = own_command("protocols.linucb_ds.classic.process")
    with tempfile.TemporaryDirectory(prefix="masked-") as name:
        folder = Path(name)
        write_inputs(
            folder, problem, scales, budget=budget, seed=seed, noise=noise, bits=bits, insecure=insecure
        )  # fmt: skip
        try:
            launch([*command, name], len(ROLES), timeout=timeout, output=StepLines.heard(watch))
        except ConfigError as error:
            raise ConfigError(_NODE.sub(lambda found: str(ROLES[int(found[1])]), str(error))) from error
        return {role: read_outcome(folder, role) for role in ROLES}
