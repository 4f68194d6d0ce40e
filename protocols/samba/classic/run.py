"""A whole classic run, in one process or in K + 3, beside the plaintext policy.  Knows every participant's outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from bandits.samba import BernoulliArms, Played, SambaError, Seeds, by_name, run
from bandits.samba.coins import CommonCoins, SeededCoins, derived
from mpc.errors import ConfigError
from mpc.ledger import Ledger
from mpc.net.transport import DEFAULT_TIMEOUT

from ...published.drive import STEPS, Spent, Times, Watch
from ...published.outcome import whole_ledger
from ...published.paillier import KEY_BITS, check_bits, require_packages
from ...published.participant import launched, played_here
from ...published.sealing import fresh_key
from ...run.folder import Keep
from ..owners import LocalPolicy, game_of, require_local
from .cast import PUBLISHED, cast_of, play_of
from .checkpoints import RunKept
from .messages import COMP, CONTROLLER, CUSTOMER, Spec
from .outcome import Operations, Outcome, earlier
from .roles import Make, check_budget
from .selecting import Seen, uniform

OWNERS = "owners"


@dataclass(frozen=True)
class ClassicRun:
    """What the participants ended with.  reference: the plaintext policy's game with the same coins.

    start: steps of earlier sittings, which taught `before`.
    """

    spec: Spec
    budget: int
    bits: int
    start: int
    outcomes: dict[str, Outcome]
    parts: dict[str, Times]
    before: list[Outcome] = field(repr=False)
    reference: Played | None = field(repr=False)

    @property
    def done(self) -> int:
        """Steps, fewer than `budget` where the run was stopped."""
        return self.outcomes[CONTROLLER].done

    @property
    def sitting(self) -> int:
        """Steps of this sitting in which an arm was chosen."""
        return self.done - max(len(self.game.pulls), self.start)

    @property
    def total(self) -> int | None:
        """DC's sum."""
        return self.outcomes[CUSTOMER].total

    @cached_property
    def game(self) -> Played:
        """What all owners together know."""
        states = (done.state for name, done in self.outcomes.items() if name not in (CUSTOMER, CONTROLLER, COMP))
        return game_of(
            ({name: np.array(rows, np.int64) for name, rows in state.items()} for state in states), self.done
        )

    @property
    def finished(self) -> bool:
        """Whether DC has its sum."""
        return self.total is not None

    @property
    def cumulative_reward(self) -> int:
        """DC's sum; of a run that was stopped, what its owners have together."""
        return self.game.total if self.total is None else self.total

    @property
    def pulls_equal_reference(self) -> bool | None:
        """Whether every pull, every (s_i, n_i) and the sum are the plaintext policy's; None without one."""
        if self.reference is None:
            return None
        return self.game.equals(self.reference) and self.cumulative_reward == self.reference.total

    @property
    def counts(self) -> Operations:
        """Of all participants, in this sitting."""
        return sum((outcome.counts for outcome in self.outcomes.values()), Operations())

    @property
    def ledger(self) -> Ledger:
        """Of all participants, in all sittings."""
        return whole_ledger([*self.outcomes.values(), *self.before])

    @property
    def seconds_per_step(self) -> float:
        """Of a step that chooses, on the Controller's clock; keys and the sum are not in it."""
        return self.parts[CONTROLLER][STEPS].wall / max(1, self.sitting)

    @property
    def cpu_seconds_per_step(self) -> float:
        """The same of the Controller's process: of all participants, where they share it."""
        return self.parts[CONTROLLER][STEPS].processor / max(1, self.sitting)

    @property
    def seconds(self) -> dict[str, float]:
        """Computing time of DC, Controller, Comp, and all owners together."""
        return self._by_participant(lambda parts: sum(spent.own for spent in parts.values()))

    @property
    def step_seconds(self) -> dict[str, float]:
        """The part of it that goes into steps: without keys and the sum."""
        return self._by_participant(lambda parts: parts.get(STEPS, Spent()).own)

    def _by_participant(self, of: Callable[[Times], float]) -> dict[str, float]:
        out = {CUSTOMER: 0.0, CONTROLLER: 0.0, COMP: 0.0, OWNERS: 0.0}
        for name, parts in self.parts.items():
            out[name if name in out else OWNERS] += of(parts)
        return out


def play_classic(
    policy: Spec | LocalPolicy | str,
    means: Sequence[float] | np.ndarray | BernoulliArms,
    budget: int,
    *,
    seed: int | None = None,
    processes: bool = False,
    seen: list[Seen] | None = None,
    watch: Watch | None = None,
    stop: Callable[[], bool] | None = None,
    mask_seed: int | None = None,
    bits: int = KEY_BITS,
    insecure: bool = False,
    keep: Keep | None = None,
    reference: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
) -> ClassicRun:
    """SAMBA with AES-GCM, and Paillier keys of `bits`.

    policy: a name, a name with constants, or an own policy for one process.  seed: of all coins but masks and keys,
    which are fresh; without one all are.  mask_seed: of the masks.  processes: one for each of the K + 3 participants.
    seen: in one process, collects the lists that Comp decrypts.  watch: is told how many pulls are done.
    stop: in one process, asked before each step.  insecure: allow Paillier keys below 1024 bits, for tests.
    keep: where checkpoints lie, and stay until `checkpoints.forget`.
    reference: play the plaintext policy as well.  timeout: seconds of silence.
    """
    require_packages()
    check_bits(bits, insecure=insecure)
    spec = policy if isinstance(policy, Spec) else Spec(policy if isinstance(policy, str) else policy.name)
    own = policy if isinstance(policy, LocalPolicy) else None
    local = own or spec.policy()
    require_local(local)
    if processes and (own is not None or seen is not None or stop is not None):
        raise ConfigError("own policies, `seen` and `stop` are for a run in one process: leave out `processes`")
    try:
        arms = means if isinstance(means, BernoulliArms) else BernoulliArms(np.asarray(means, np.float64))
        seeds = Seeds.fresh() if seed is None else Seeds.of(seed)
        masks = fresh_key() if mask_seed is None else derived(Seeds.of(mask_seed).common, "masks of a run")
    except SambaError as error:
        raise ConfigError(str(error)) from error
    count = len(arms)
    check_budget(budget, count)
    hosts = [range(i, i + 1) for i in range(count)] if processes else [range(count)]
    this, start = RunKept(spec, arms.means.tolist(), budget, seeds), 0
    if keep is not None and keep.resume:
        this, start = this.resumed(keep.folder, hosts, seeded=seed is not None)
        seeds = this.seeds
    elif keep is not None:
        this = this.begin(keep)
    cast = cast_of(this, hosts, masks=masks, bits=bits, insecure=insecure, start=start, keep=keep)
    if processes:
        outcomes, parts = launched(PUBLISHED, cast, watch=watch, timeout=timeout, keep=keep)
    else:
        make: Make = Spec.policy if own is None else lambda _: own
        outcomes, parts = played_here(cast, partial(play_of, watch=watch, make=make, seen=seen, stop=stop))
    twin = None
    if reference and own is None:
        plain = by_name(spec.name, count, eps=spec.eps, tau=spec.tau, beta=spec.beta)
        twin = run(plain, arms, outcomes[CONTROLLER].done, ReferenceCoins(seeds, count, local), seeds.rewards)
    return ClassicRun(spec, budget, bits, start, outcomes, parts, _before(local, seeds, count, start), twin)


def _before(policy: LocalPolicy, seeds: Seeds, arms: int, start: int) -> list[Outcome]:
    common, steps = CommonCoins(seeds.common), range(arms + 1, start + 1)
    silent = policy.may_explore and not policy.zeros
    explored = sum(common.explore(t, policy.explores(t)) for t in steps) if silent else 0
    return earlier(policy, arms, len(steps), explored)


class ReferenceCoins(SeededCoins):
    """A plaintext player's, who then pulls what the protocol pulls.

    In a step that explores Comp points at a place of the Controller's order; a player in the clear pulls the first arm,
    so its order is turned until that place comes first.  Where owners send zeros, Comp takes the first as well.
    """

    def __init__(self, seeds: Seeds, arms: int, policy: LocalPolicy) -> None:
        super().__init__(seeds, arms)
        self._arms, self._policy = arms, policy

    def order(self, t: int, iteration: int) -> np.ndarray:
        """A permutation of the arms."""
        order = super().order(t, iteration)
        chance = self._policy.explores(t)
        if chance > 0.0 and not self._policy.zeros and self.explore(t, chance):
            return np.roll(order, -uniform(self._arms, *self.point(t)))
        return order
