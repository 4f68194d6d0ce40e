"""Policies by name, so that a grid of experiments is a list of words.  Knows which systems there are."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import NamedTuple

from bandits.environments import Episodic
from bandits.helba import HELBA, Batches
from bandits.linear import LinearBandit
from bandits.linucb import LinUCB
from bandits.oful import OFUL
from bandits.samba import NAMES, by_name
from bandits.thompson import ThompsonSampling
from mpc.errors import ConfigError

from ..helba import EncryptedLinearBandit
from ..linucb_ds.mpc.dealt_coins import own_coins
from ..linucb_ds.problems import LINUCB, SPECTRAL
from ..ppcb import PrivateContextualBandit
from ..ppcb.settings import Policy
from ..run.choices import chosen
from .policies import Clear, FixedFeatures, OneRegression, Playable, Private, Uniform, WithoutContexts
from .problems import fixed, helba_settings
from .whole import (
    PARTIES,
    Play,
    Whole,
    bandit,
    encrypted,
    federation,
    outsourced,
    published_encrypted,
    published_federation,
    published_outsourced,
)


class How(Enum):
    """steps: arm by arm, as the loop asks.  run: whole, as `masked run` plays.  launch: whole, as `masked launch`."""

    STEPS = "steps"
    RUN = "run"
    LAUNCH = "launch"


_Maker = Callable[[Episodic, int, int, float], Playable]


class Named(NamedTuple):
    """steps: makes what is played arm by arm.  whole: of an eps, what plays it whole."""

    steps: _Maker | None = None
    whole: Callable[[float], Play] | None = None

    @property
    def ways(self) -> list[How]:
        """What it can be played by; the first is the usual one."""
        return [*([How.STEPS] if self.steps else []), *([How.RUN, How.LAUNCH] if self.whole else [])]


def _private(kind: Policy, environment: Episodic, steps: int, seed: int, eps: float) -> Playable:
    return Private(
        PrivateContextualBandit(
            environment.arms, environment.dim, eps, policy=kind.value, parties=PARTIES, steps=steps, seed=seed,
            reward_range=environment.ends,
        )
    )  # fmt: skip


def _clear(made: Callable[..., LinearBandit], environment: Episodic, steps: int, seed: int, eps: float) -> Playable:
    return Clear(made(1, environment.arms, environment.dim), eps, seed)


def _arms_only(name: str, environment: Episodic, steps: int, seed: int, eps: float) -> Playable:
    return WithoutContexts(by_name(name, environment.arms, eps=eps), seed)


def _fixed(name: str, environment: Episodic, steps: int, seed: int, eps: float) -> Playable:
    given = fixed(environment, name)
    return FixedFeatures(OFUL(given.problem.arms, given.problem.exploration), own_coins(given.settings(steps), seed))


def _helba(private: bool, environment: Episodic, steps: int, seed: int, eps: float) -> Playable:
    settings = helba_settings(environment, steps)
    if private:
        return OneRegression(EncryptedLinearBandit(settings, parties=PARTIES), environment.arms)
    return OneRegression(HELBA(settings.constants, Batches.PUBLIC), environment.arms)


def _of(made: Callable[[str], Play], name: str) -> Callable[[float], Play]:
    return lambda _: made(name)


POLICIES: dict[str, Named] = {
    **{f"private {kind.value}": Named(partial(_private, kind), partial(bandit, kind)) for kind in Policy},
    "epsilon-greedy": Named(partial(_clear, LinearBandit)),
    "linucb": Named(partial(_clear, LinUCB)),
    "thompson": Named(partial(_clear, ThompsonSampling)),
    "private helba": Named(partial(_helba, True), lambda _: encrypted),
    "helba": Named(partial(_helba, False)),
    **{f"private samba {name}": Named(whole=partial(federation, name)) for name in NAMES},
    **{f"samba {name}": Named(partial(_arms_only, name)) for name in NAMES},
    **{f"private {name}": Named(whole=_of(outsourced, name)) for name in (LINUCB, SPECTRAL)},
    **{name: Named(partial(_fixed, name)) for name in (LINUCB, SPECTRAL)},
    **{f"published samba {name}": Named(whole=partial(published_federation, name)) for name in NAMES},
    **{f"published {name}": Named(whole=_of(published_outsourced, name)) for name in (LINUCB, SPECTRAL)},
    "published helba": Named(whole=lambda _: published_encrypted),
    "uniform": Named(lambda environment, steps, seed, eps: Uniform(environment.arms, seed)),
}
"""Each policy by the name that an experiment gives it.

"private" ones compute on shares of two parties, "published" ones as in their papers.
"""


def named(name: str) -> Named:
    """The policy of this name."""
    if name not in POLICIES:
        raise ConfigError(f"there is no policy {name!r}: choose one of {', '.join(POLICIES)}")
    return POLICIES[name]


def way(name: str, how: str = "") -> How:
    """How this policy is played: as said, or as is usual for it."""
    ways = named(name).ways
    found = chosen(How, how, "how") if how else ways[0]
    if found not in ways:
        there = " and ".join(repr(one.value) for one in ways)
        raise ConfigError(f"{name} is not played by {found.value!r}: there is {there}")
    return found


def make(
    name: str, environment: Episodic, *, steps: int, seed: int, eps: float = 0.1, how: str = ""
) -> Playable | Whole:
    """The policy of this name, for so many steps on this environment."""
    found, played = named(name), way(name, how)
    if played is How.STEPS:
        assert found.steps is not None, "a way that it has"
        return found.steps(environment, steps, seed, eps)
    assert found.whole is not None, "a way that it has"
    return Whole(found.whole(eps), processes=played is How.LAUNCH)
