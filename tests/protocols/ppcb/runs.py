"""What the tests of the private bandit lean on: short runs, and oracles that follow them in the clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from bandits.environments import Environment, synthetic_linear
from bandits.linear import Choice, LinearBandit
from mpc import Session
from mpc.client import ClientProgram
from mpc.rounds import Rounds
from mpc.share import Share
from protocols.ppcb import clients
from protocols.ppcb.clients import pulled
from protocols.ppcb.dealt_coins import choices
from protocols.ppcb.player import Owners
from protocols.ppcb.program import PAYER, PULLER, Decision, State, decide, learn
from protocols.ppcb.run import Bandit, Run, twin_of
from protocols.ppcb.settings import Settings
from protocols.run import folder
from protocols.run import simulate as simulation_of_any
from protocols.run.checkpoint import Checkpoint
from protocols.run.desk import MemoryDesk, World
from protocols.run.folder import Keep
from protocols.run.launch import Processes
from protocols.run.launch import launch as launch_any
from protocols.run.rehearsal import Rehearsed, rehearse
from protocols.run.seeded_dealer import MeteredDealer

ENVIRONMENT = synthetic_linear(4, 8, rows=400, seed=1)
SEED = 7


def settings(**changes: Any) -> Settings:
    return Settings(**{"arms": 4, "dim": 8, "eps": 0.2, "replicas": 3, **changes})


def name_of(changes: dict[str, Any]) -> str:
    """For test ids."""
    return "-".join(f"{key}={getattr(value, 'value', value)}" for key, value in changes.items()) or "default"


def paying(contexts: np.ndarray, *, arms: int = 4, chance: float = 0.5) -> Environment:
    """An environment of these contexts, in which every arm pays as often."""
    return Environment("given", contexts, np.full((len(contexts), arms), chance))


@dataclass(frozen=True)
class Played:
    """What happened outside a simulation, decision by decision."""

    contexts: np.ndarray
    arms: np.ndarray
    rewards: np.ndarray


class Simulation(simulation_of_any.Simulation[Run]):
    """A simulation of the bandit on an environment."""

    program: Bandit
    player: Owners

    def __init__(
        self, environment: Environment, given: Settings, *, parties: int, steps: int, seed: int,
        kept: Checkpoint | None = None,
    ) -> None:  # fmt: skip
        super().__init__(Bandit.on(environment, given, parties=parties, steps=steps, seed=seed), seed=seed, kept=kept)
        self.settings, self.parties, self.decisions = self.program.settings, parties, self.program.decisions

    @property
    def world(self) -> Played:
        """Contexts of all decisions, arms and rewards of those that were made."""
        world, arms = self.program.world, self.notes
        return Played(world.contexts, arms, pulled(world.outcomes[: len(arms)], arms))


def simulate(
    environment: Environment, settings: Settings, *, parties: int, steps: int, seed: int,
    progress: Callable[[Any], bool] | None = None, folder: Path | None = None, every: int = 1 << 30,
    resume: bool = False, overwrite: bool = False,
) -> Run:  # fmt: skip
    """All decisions in this process.  progress: is shown the decisions that are `done`, and says whether to go on."""
    return simulation_of_any.simulate(
        Bandit.on(environment, settings, parties=parties, steps=steps, seed=seed),
        seed=seed,
        keep=None if folder is None else Keep(folder, every, resume, overwrite),
        watch=None if progress is None else lambda done: progress(SimpleNamespace(done=done)),
    )


def latest(home: Path) -> Checkpoint:
    """The last one that a simulation kept there."""
    return folder.latest(bandit(settings(), 3), home)


def bandit(given: Settings, parties: int) -> Bandit:
    """One that shall play a single decision."""
    return Bandit.on(ENVIRONMENT, given, parties=parties, steps=given.batch, seed=SEED)


def plan_of(given: Settings, parties: int) -> Rehearsed:
    """What a turn draws and costs."""
    return rehearse(Bandit(given, parties, given.batch))


def launch(given: Settings, parties: int, steps: int, home: Path, **rest: Any) -> Run:
    """With a process for each role; what it keeps lies in `home`/keep."""
    scratch = home / f"scratch{len(list(home.iterdir()))}"
    scratch.mkdir()
    program = Bandit.on(ENVIRONMENT, given, parties=parties, steps=steps, seed=SEED)
    keep = Keep(home / "keep", rest.pop("every", 8), rest.pop("resume", False))
    return launch_any(program, Processes(timeout=100.0), keep=keep, scratch=scratch, **rest)


def clients_of(world: clients.World) -> dict[str, ClientProgram]:
    """A puller and a payer who play all of it in this process."""
    desk = MemoryDesk(World())
    return {
        PULLER: clients.puller(world.settings, len(world), desk),
        PAYER: clients.payer(world.outcomes, world.settings, len(world), desk),
    }


def played(given: Settings, parties: int, steps: int, environment: Environment = ENVIRONMENT, seed: int = SEED) -> Run:
    return simulate(environment, given, parties=parties, steps=steps, seed=seed)


def finished(
    given: Settings, parties: int, steps: int, environment: Environment = ENVIRONMENT, seed: int = SEED
) -> Simulation:
    """A simulation after its last step."""
    simulation = Simulation(environment, given, parties=parties, steps=steps, seed=seed)
    while not simulation.finished:
        simulation.turn()
    return simulation


def shortfalls(simulation: Simulation, policy: LinearBandit | None = None) -> np.ndarray:
    """By how much each pulled arm's rank fell short of the best, by a policy in the clear that follows the run.

    The policy learns what the run learned, so a difference at one step is not carried on; (decisions, R, B).  Where
    the coins say to explore, the arm must be theirs, and the shortfall is 0.
    """
    given, world, short = simulation.settings, simulation.world, []
    policy = twin_of(given) if policy is None else policy
    coins = choices(simulation.dealer.coin_key, simulation.dealer.coin_items, range(simulation.done), given)
    for done, choice in enumerate(coins):
        arms = world.arms[done]
        assert ((arms >= 0) & (arms < given.arms)).all(), "no arm has such a number"
        scores = policy.scores(world.contexts[done], choice)
        explores = np.broadcast_to(choice.explore, arms.shape)
        order = np.broadcast_to(choice.order, scores.shape)
        assert (arms == order.argmax(axis=-1))[explores].all(), "an exploring step pulled another arm than its coins'"
        ranks = choice.ranks(scores)
        chosen = np.take_along_axis(ranks, arms[..., None], axis=-1)[..., 0]
        short.append(np.where(explores, 0.0, ranks.max(axis=-1) - chosen))
        if (paid := done - given.delay) >= 0:
            policy.update(world.contexts[paid], world.arms[paid], world.rewards[paid])
    return np.stack(short)


def exact(simulation: Simulation) -> LinearBandit:
    """Regressions in the clear on all that the run was paid for, one update after the other."""
    given, world = simulation.settings, simulation.world
    bandit = LinearBandit(given.replicas, given.arms, given.dim, ridge=given.ridge)
    for paid in range(simulation.done - given.delay):
        bandit.update(world.contexts[paid], world.arms[paid], world.rewards[paid])
    return bandit


def regressions_of(bandit: LinearBandit) -> np.ndarray:
    """[P_a; w_a'] of a bandit in the clear."""
    return np.concatenate([bandit.inverse, bandit.weights[:, :, None]], axis=2)


def error(simulation: Simulation) -> float:
    """How far any entry of P and w is from the exact one."""
    return float(np.abs(simulation.result().regressions - regressions_of(exact(simulation))).max())


def smallest_eigenvalue(run: Run) -> float:
    inverse = run.regressions[:, :, :-1]
    return float(np.linalg.eigvalsh(0.5 * (inverse + inverse.swapaxes(-1, -2))).min())


class Parts:
    """A session for parts of a step, with coins that can be read, and what is behind its shares."""

    def __init__(self, parties: int, given: Settings, *, start: LinearBandit | None = None, seed: int = SEED) -> None:
        self.given, self.dealer = given, MeteredDealer(parties, seed)
        self.session = Session.simulate(parties, self.dealer)
        self.state = State.start(self.session, given)
        if start is not None:
            self.state.table = self.session.share(regressions_of(start), owner=1, scale=given.state_bits)

    def contexts(self, values: np.ndarray) -> Share:
        return self.session.share(values, owner=0, scale=self.given.fraction_bits)

    def learn(self, contexts: np.ndarray, arms: np.ndarray, rewards: np.ndarray) -> None:
        """Learn from (R, B) arms and rewards, whoever chose them."""
        onehot = self.session.share(np.eye(self.given.arms)[arms], owner=1, scale=0)
        paid = self._paid(self.session.share(rewards, owner=0, scale=self.given.fraction_bits))
        self.session.run(learn(self.session, self.state, self.contexts(contexts), onehot, paid, self.given))

    def decide(self, contexts: np.ndarray, block: int, eligible: np.ndarray | None = None) -> np.ndarray:
        """The one-hot of a decision that takes its randomness from this block."""
        self.dealer.enter(block)
        chosen: Decision = self.session.run(
            decide(self.session, self.state, self.contexts(contexts), self.given, eligible=eligible)
        )
        return clear(chosen.o)

    @property
    def table(self) -> np.ndarray:
        return clear(self.state.table) * 2.0**-self.given.state_bits

    def choice(self, block: int) -> Choice:
        """The coins of the decision that was made in this block."""
        return next(choices(self.dealer.coin_key, self.dealer.coin_items, range(block, block + 1), self.given))

    @staticmethod
    def _paid(rewards: Share) -> Rounds[Share]:
        yield from ()
        return rewards


def clear(share: Share) -> np.ndarray:
    """The signed words behind the shares of all parties."""
    return share.words.sum(axis=0, dtype=np.uint64).view(np.int64)
