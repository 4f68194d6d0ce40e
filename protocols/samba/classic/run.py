"""A whole classic run, in one process or in K + 3, beside the plaintext policy.  Knows every participant's outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bandits.samba import BernoulliArms, Run, SambaError, Seeds, by_name, run
from bandits.samba.coins import CommonCoins, OrderCoins, PointCoins, derived, owner_noise
from mpc.errors import ConfigError
from mpc.ledger import Ledger
from mpc.net.transport import DEFAULT_TIMEOUT

from ...published.drive import Seconds, in_one_process
from ...published.paillier import KEY_BITS, check_bits, require_packages
from ...published.sealing import fresh_key
from ...run.checkpoint import forget_beyond
from ..score import LocalPolicy, require_local
from .disclosed import earlier
from .kept import OwnersKept, RunKept, home_of, last_common
from .messages import COMP, CONTROLLER, CUSTOMER, Spec, owners_name
from .opening import Seen
from .outcome import Operations, Outcome
from .process import launched
from .randomness import OwnerCoins, ReferenceCoins
from .roles import STEPS, Make, Watch, check_budget, comparator, controller, data_customer, owners

OWNERS = "owners"


@dataclass(frozen=True)
class ClassicRun:
    """What the participants ended with.  reference: the plaintext policy's game with the same coins.

    arms: by step, which only owners together know.  done: steps, fewer than `budget` where the run was stopped.
    """

    spec: Spec
    budget: int
    bits: int
    done: int
    pulls: np.ndarray
    sums: np.ndarray
    arms: list[int]
    total: int | None  # DC's
    outcomes: dict[str, Outcome]
    parts: dict[str, Seconds]
    sitting: int  # steps of this sitting in which an arm was chosen
    before: list[Outcome] = field(repr=False)  # what earlier sittings taught
    reference: Run | None = field(repr=False)

    @property
    def finished(self) -> bool:
        """Whether DC has its sum."""
        return self.total is not None

    @property
    def cumulative_reward(self) -> int:
        """DC's sum; of a run that was stopped, what its owners have together."""
        return int(self.sums.sum()) if self.total is None else self.total

    @property
    def pulls_equal_reference(self) -> bool | None:
        """Whether every pull, every (s_i, n_i) and the sum are the plaintext policy's; None without one."""
        if self.reference is None:
            return None
        same = np.array_equal(self.pulls, self.reference.pulls) and np.array_equal(self.sums, self.reference.sums)
        return same and self.arms == self.reference.arms.tolist() and self.cumulative_reward == self.reference.total

    @property
    def counts(self) -> Operations:
        """Of all participants, in this sitting."""
        return sum((outcome.counts for outcome in self.outcomes.values()), Operations())

    @property
    def ledger(self) -> Ledger:
        """Of all participants, in all sittings."""
        whole = Ledger()
        for outcome in (*self.outcomes.values(), *self.before):
            for entry in outcome.ledger:
                whole.record(entry.role, entry.what, entry.count, entry.why)
        return whole

    @property
    def seconds_per_step(self) -> float:
        """Of a step that chooses, as the Controller sees it; keys and the sum are not in it."""
        return self.outcomes[CONTROLLER].wall_seconds / max(1, self.sitting)

    @property
    def cpu_seconds_per_step(self) -> float:
        """The same of the Controller's process: of all participants, where they share it."""
        return self.outcomes[CONTROLLER].cpu_seconds / max(1, self.sitting)

    @property
    def seconds(self) -> dict[str, float]:
        """Computing time of DC, Controller, Comp, and all owners together."""
        return self._by_participant(lambda parts: sum(parts.values()))

    @property
    def step_seconds(self) -> dict[str, float]:
        """The part of it that goes into steps: without keys and the sum."""
        return self._by_participant(lambda parts: parts.get(STEPS, 0.0))

    def _by_participant(self, of: Callable[[Seconds], float]) -> dict[str, float]:
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
    folder: Path | None = None,
    every: int = 5000,
    resume: bool = False,
    reference: bool = True,
    timeout: float = DEFAULT_TIMEOUT,
) -> ClassicRun:
    """SAMBA with AES-GCM, and Paillier keys of `bits`.

    policy: a name, a name with constants, or an own policy for one process.  seed: of all coins but masks and keys,
    which are fresh; without one all are.  mask_seed: of the masks.  processes: one for each of the K + 3 participants.
    seen: in one process, collects the lists that Comp decrypts.  watch: is told how many pulls are done.
    stop: in one process, asked before each step.  insecure: allow Paillier keys below 1024 bits, for tests.
    folder, every: where checkpoints are kept, and after how many steps.  resume: go on from the last one.
    reference: play the plaintext policy as well.  timeout: seconds of silence.
    """
    require_packages()
    check_bits(bits, insecure=insecure)
    spec = policy if isinstance(policy, Spec) else Spec(policy if isinstance(policy, str) else policy.name)
    local = policy if isinstance(policy, LocalPolicy) else spec.policy()
    require_local(local)
    if processes and (isinstance(policy, LocalPolicy) or seen is not None or stop is not None):
        raise ConfigError("own policies, `seen` and `stop` are for a run in one process: leave out `processes`")
    try:
        arms = means if isinstance(means, BernoulliArms) else BernoulliArms(np.asarray(means, np.float64))
        seeds = Seeds.fresh() if seed is None else Seeds.of(seed)
        masks = None if mask_seed is None else derived(Seeds.of(mask_seed).common, "masks of a run")
    except SambaError as error:
        raise ConfigError(str(error)) from error
    count = len(arms)
    check_budget(budget, count)
    hosts = [range(i, i + 1) for i in range(count)] if processes else [range(count)]
    this, start = RunKept(spec, arms.means.tolist(), budget, seeds), 0
    if folder is not None and resume:
        seeds = this.check(folder, seeded=seed is not None).seeds
        start = last_common(folder, hosts)
        for rows in hosts:
            forget_beyond(home_of(folder, rows), start)
    elif resume:
        raise ConfigError("resuming needs the folder of the run")
    elif folder is not None:
        this.begin(folder)
    if processes:
        outcomes, parts = launched(
            spec, arms, budget, seeds, masks=masks, bits=bits, insecure=insecure, start=start, watch=watch,
            folder=folder, every=every, timeout=timeout,
        )  # fmt: skip
    else:
        make: Make = (lambda _: local) if isinstance(policy, LocalPolicy) else Spec.policy
        key, rows = fresh_key(), hosts[0]
        coins = OwnerCoins(seeds.common, fresh_key() if masks is None else masks, count)
        keeper = None if folder is None else OwnersKept(home_of(folder, rows), spec, budget, every)
        noise = [owner_noise(seeds.noise, i) for i in rows]
        outcomes, parts = in_one_process({
            CUSTOMER: data_customer(spec, budget, bits, insecure=insecure),
            CONTROLLER: controller(hosts, OrderCoins(seeds.order, count), bits, make=make, start=start, watch=watch),
            COMP: comparator(PointCoins(seeds.point), key, bits, make=make, seen=seen),
            owners_name(rows): owners(
                rows, count, coins, key, noise, lambda arm, t: arms.reward(seeds.rewards, arm, t), bits, make=make,
                keeper=keeper, stop=stop,
            ),
        })  # fmt: skip
    compare = reference and not isinstance(policy, LocalPolicy)
    return _result(spec, local, arms, budget, bits, seeds, hosts, outcomes, parts, start, compare)


def _result(
    spec: Spec, local: LocalPolicy, arms: BernoulliArms, budget: int, bits: int, seeds: Seeds, hosts: Sequence[range],
    outcomes: dict[str, Outcome], parts: dict[str, Seconds], start: int, compare: bool,
) -> ClassicRun:  # fmt: skip
    blocks = [outcomes[owners_name(rows)] for rows in hosts]
    done = outcomes[CONTROLLER].done
    pulled = [0] * done
    for arm, steps in enumerate(steps for block in blocks for steps in block.steps):
        for t in steps:
            pulled[t - 1] = arm
    twin = None
    if compare:
        plain = by_name(spec.name, len(arms), eps=spec.eps, tau=spec.tau, beta=spec.beta)
        twin = run(plain, arms, done, ReferenceCoins(seeds, len(arms), local), seeds.rewards)
    return ClassicRun(
        spec, budget, bits, done, np.array([n for block in blocks for n in block.pulls]),
        np.array([s for block in blocks for s in block.sums]), pulled, outcomes[CUSTOMER].total, outcomes, parts,
        done - max(len(arms), start), _before(local, seeds, len(arms), start), twin,
    )  # fmt: skip


def _before(policy: LocalPolicy, seeds: Seeds, arms: int, start: int) -> list[Outcome]:
    common = CommonCoins(seeds.common)
    steps = range(arms + 1, start + 1)
    explored = sum(common.explore(t, policy.explores(t)) for t in steps) if policy.may_explore else 0
    return earlier(policy, arms, len(steps), explored)
