"""Games that are really played and then attacked: by Comp of the published protocol, by a party of the one on shares.

Both want every (s_i, n_i) and the cumulative reward.  Comp has the lists that it decrypts, a party its shares of the
owners' words.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from bandits.attacks.samba_comp import Look, as_answered, recover, score
from bandits.attacks.samba_node import Guesses, guess_pulls
from bandits.samba import BernoulliArms, Seeds
from bandits.samba.coins import PointCoins
from mpc.rounds import Input, Request

from ..run.simulate import Simulation
from .classic.messages import Spec
from .classic.run import play_classic
from .classic.selecting import Seen
from .mpc.run import Federation
from .mpc.settings import CHANCE_BITS, Settings

_KEY_BITS = 1024  # of DC's key, which no attack looks at
_PARTIES, _PARTY = 2, 0


@dataclass(frozen=True)
class Game:
    """arms: what they pay.  seed: of all coins."""

    spec: Spec
    arms: BernoulliArms
    budget: int
    seed: int


@dataclass(frozen=True)
class Attacked:
    """fits: whether any game fits what was seen.  pairs, before: whether every (s, n), and the sum of s, are right.

    total: the attacker's cumulative reward, None if nothing fits.  true_total: that of the game.
    guesses: of who is pulled, from shares.
    """

    fits: bool
    pairs: bool
    before: bool
    total: int | None
    true_total: int
    guesses: Guesses | None = None


def attack_classic(game: Game) -> Attacked:
    """Comp, from the lists of a run as published."""
    seen: list[Seen] = []
    run = play_classic(
        game.spec, game.arms, game.budget, seed=game.seed, seen=seen, bits=_KEY_BITS, reference=False
    )  # fmt: skip
    looks = as_answered(seen, game.spec.name, PointCoins(Seeds.of(game.seed).point))
    return _judged(game, looks, run.game.arms, run.cumulative_reward)


def attack_mpc(game: Game) -> Attacked:
    """Party 0 of two, from its shares of the owners' words; it takes them for a list, and guesses who is pulled."""
    shares: list[np.ndarray] = []

    def listener(request: Request, sent: np.ndarray, reply: object) -> None:
        if isinstance(request, Input):
            shares.append(reply.words[_PARTY].copy())  # type: ignore[attr-defined]

    spec, count = game.spec, len(game.arms)
    settings = Settings(spec.name, count, game.budget, eps=spec.eps, tau=spec.tau, beta=spec.beta)
    program = Federation(settings, _PARTIES, game.seed, game.arms)
    simulation = Simulation(program, seed=game.seed, listener=listener)
    while simulation.done < game.budget:
        simulation.turn()
    iterations = settings.local.iterations
    words = np.array(shares).reshape(settings.steps, iterations, count)
    run = simulation.result()
    looks = [
        Look(count + 1 + step, 1 + iteration, row.tolist(), int(row.argmax()))
        for step, rows in enumerate(words) for iteration, row in enumerate(rows)
    ]  # fmt: skip
    judged = _judged(game, looks, run.game.arms, run.total, weight_bits=CHANCE_BITS)
    return replace(judged, guesses=guess_pulls(words[:, -1], run.game.arms[count:]))


def _judged(game: Game, looks: list[Look], pulled: np.ndarray, total: int, **bits: int) -> Attacked:
    """pulled: the arm of each step."""
    count, spec = len(game.arms), game.spec
    found = recover(looks, spec.name, arms=count, budget=game.budget, tau=spec.tau, beta=spec.beta, **bits)
    if found is None:
        return Attacked(False, False, False, None, total)
    last = max((look.t for look in looks), default=count + 1)
    seed, pulls, sums = Seeds.of(game.seed).rewards, np.zeros(count, np.int64), np.zeros(count, np.int64)
    for t, arm in enumerate(pulled[: last - 1].tolist(), 1):
        pulls[arm] += 1
        sums[arm] += game.arms.reward(seed, arm, t)
    told = score(found, sums, pulls, total)
    return Attacked(True, told.pairs, told.before, found.total, total)
