"""Systems that play an episode from its first step to its last, as `masked run` and `masked launch` do.

Clients bring what each step needs before anyone decides on it, so nobody outside pulls an arm in between.  Knows each
system's program and its published protocol; no table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bandits.environments import Episodic
from bandits.samba import RecordedArms, SambaError
from mpc.errors import ConfigError

from ..helba.ckks.run import play_ckks
from ..helba.ckks.settings import Settings as CiphertextSettings
from ..helba.run import Encrypted
from ..linucb_ds.classic.run import play_classic as play_linucb
from ..linucb_ds.mpc.run import Outsourced
from ..ppcb.run import Bandit
from ..ppcb.settings import Policy
from ..ppcb.settings import Settings as BanditSettings
from ..run.launch import Processes, launch
from ..run.program import Program
from ..run.simulate import simulate
from ..samba.classic.messages import Spec
from ..samba.classic.run import play_classic as play_samba
from ..samba.mpc.run import Federation
from ..samba.mpc.settings import Settings as SambaSettings
from ..samba.mpc.settings import hosts_of
from .problems import fixed, helba_settings, owned, users_problem

PARTIES = 2


class Asked(NamedTuple):
    """batch: contexts that are decided on together.  processes: one for each role.  watch: told how many are done.

    Where roles are processes a dealer draws fresh coins; else all follows from the seed.
    """

    environment: Episodic
    steps: int
    seed: int
    batch: int
    processes: bool
    watch: Callable[[int], None]

    def one_by_one(self, name: str) -> None:
        """ConfigError where contexts are to be decided on together."""
        if self.batch != 1:
            raise ConfigError(f"{name} is paid before it decides again: play it with batch=1, not {self.batch}")


Play = Callable[[Asked], "tuple[Any, Any]"]
"""(steps,) arms, and the system's own result."""


@dataclass(frozen=True)
class Whole:
    """A system that is given all of an episode."""

    by: Play
    processes: bool = False

    def play(
        self, environment: Episodic, steps: int, seed: int, batch: int, progress: Callable[[int], object] | None
    ) -> tuple[np.ndarray, Any]:
        """(steps,) arms, and the system's own result: costs, ledger, and its reference."""

        def watch(done: int) -> None:
            if progress is not None:
                progress(done * batch)

        arms, run = self.by(Asked(environment, steps, seed, batch, self.processes, watch))
        return np.asarray(arms, np.int64), run


def bandit(policy: Policy, eps: float) -> Play:
    """The private contextual bandit."""

    def play(asked: Asked) -> tuple[Any, Any]:
        given, steps = asked.environment, asked.steps
        settings = BanditSettings(
            given.arms, given.dim, eps, batch=asked.batch, policy=policy, owners=PARTIES, reward_range=given.ends,
            steps=max(steps, 1 << 16),
        )  # fmt: skip
        run = _shares(asked, Bandit.on(given, settings, parties=PARTIES, steps=steps, seed=asked.seed))
        return run.arms[:, 0], run

    return play


def federation(policy: str, eps: float) -> Play:
    """SAMBA on shares: each owner has what its arm would pay at each step."""

    def play(asked: Asked) -> tuple[Any, Any]:
        asked.one_by_one("SAMBA")
        arms, steps, seed = asked.environment.arms, asked.steps, asked.seed
        settings = SambaSettings(policy, arms, steps, hosts_of(arms, asked.processes), eps=eps)
        try:
            paid = RecordedArms(asked.environment.episode(steps, seed).outcomes)
        except SambaError as error:
            raise ConfigError(str(error)) from error
        run = _shares(asked, Federation(settings, PARTIES, seed, paid))
        return run.game.arms, run

    return play


def published_federation(policy: str, eps: float) -> Play:
    """SAMBA as published, with AES-GCM and Paillier."""

    def play(asked: Asked) -> tuple[Any, Any]:
        asked.one_by_one("SAMBA")
        arms = owned(asked.environment, "SAMBA as published").paid
        run = play_samba(
            Spec(policy, eps), arms, asked.steps, seed=asked.seed, processes=asked.processes, watch=asked.watch
        )
        return run.game.arms, run

    return play


def outsourced(name: str) -> Play:
    """LinUCB-DS or SpectralUCB-DS on shares, arms shown to the computing parties."""

    def play(asked: Asked) -> tuple[Any, Any]:
        asked.one_by_one(name)
        given = fixed(asked.environment, name)
        run = _shares(asked, Outsourced(given.settings(asked.steps), PARTIES, asked.seed, given.problem))
        return run.arms, run

    return play


def published_outsourced(name: str) -> Play:
    """The same as published, with Paillier."""

    def play(asked: Asked) -> tuple[Any, Any]:
        asked.one_by_one(name)
        given = fixed(asked.environment, name)
        run = play_linucb(
            given.problem, asked.steps, seed=asked.seed, noise=given.noise, processes=asked.processes, watch=asked.watch
        )
        return run.arms, run

    return play


def encrypted(asked: Asked) -> tuple[Any, Any]:
    """HELBA on shares."""
    asked.one_by_one("HELBA")
    settings = helba_settings(asked.environment, asked.steps)
    problem = users_problem(asked.environment.episode(asked.steps, asked.seed), settings)
    program = Encrypted(settings, PARTIES, seed=asked.seed, data=asked.environment.name, problem=problem)
    run = _shares(asked, program)
    return run.arms, run


def published_encrypted(asked: Asked) -> tuple[Any, Any]:
    """HELBA as published, with CKKS: seconds a step."""
    asked.one_by_one("HELBA")
    game = helba_settings(asked.environment, asked.steps)
    settings = CiphertextSettings(game.constants, game.arms, game.steps, game.batches)
    problem = users_problem(asked.environment.episode(asked.steps, asked.seed), settings)
    run = play_ckks(settings, problem, processes=asked.processes, watch=asked.watch)
    return run.arms, run


def _shares(asked: Asked, program: Program[Any]) -> Any:
    if asked.processes:
        return launch(program, Processes(), watch=asked.watch)
    return simulate(program, seed=asked.seed, watch=asked.watch)
