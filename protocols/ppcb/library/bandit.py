"""A private contextual bandit as a library object: predict, pull, and learn from the reward whenever it comes.

    bandit = PrivateContextualBandit(n_arms=10, dim=20, parties=3)
    arm, propensity, decision = bandit.predict(context)
    bandit.learn(decision_id=decision, reward=1.0)

Knows what a user may ask; `service` does it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from bandits.linear import Choice, LinearBandit
from mpc.correlations import Correlation
from mpc.errors import ConfigError
from mpc.ledger import Ledger
from mpc.meter import Cost
from mpc.session import Session
from mpc.turns import Turn, in_turn
from offline import Plan, Recorder

from ..player import feature_blocks
from ..run import twin_of
from ..settings import Settings
from . import arguments, propensity
from .arguments import ArgumentError
from .fitting import settings_of
from .names import Names
from .place import Hosting, InOneProcess, OneEnd
from .propensity import Propensity
from .saved import load_parts
from .service import Pay, Service


class Prediction(NamedTuple):
    """What a `predict` tells its caller: of one context, or arrays (contexts,) of several.

    arm: its number or name, in a process that hosts the puller; None elsewhere.  decision_id: by which a reward names
    it.
    """

    arm: Any
    propensity: Propensity
    decision_id: int | np.ndarray


class PrivateContextualBandit:
    """A contextual bandit whose contexts, choices, rewards and regressions are secret shares among N parties.

    The owners of the features are the parties; party p owns the p-th block of neighbouring features, as equal as they
    can be.  The *puller* learns the arm of each decision, the *payer* knows the rewards.  This object plays them all,
    for a simulation, for tests, and where one process may see everything; `over` makes one party's end of the same
    bandit on a network.  `ledger` says who learned what.

    parties: N, else as many as there are `owners`, else 3.  owners: how many features each party owns, where blocks are
    not equal; a party may own none.
    arms: what the arms are called, any hashable names, in place of `n_arms`.  features: what the columns are called, in
    place of `dim`.  A data frame's columns must be these, in this order; the first frame says them where nobody has.
    Names are public, and saved in clear.

    policy: "epsilon-greedy", "linucb" or "thompson", the latter two with alpha; each explores uniformly with
    probability eps.  ridge: of the regressions.  bound: the largest norm of one party's features of a context.
    reward_range: where rewards lie.
    steps: how many contexts are learned from at most, 10,000 where it is not said; ranges and the precision of the
    state follow from both, so say what you expect, and `extend` it later.  seed: makes a simulation repeatable and its
    `coins` known; without one the dealer's keys are fresh.

    most_unpaid: how many decisions are kept for a reward, the latest; one that is older can be learned from by its
    context alone.  Pay by `decision_id` where you can: learning without it leaves the decision open until then, and
    shares context and action again.

    Arms without names have numbers, from 0, that never change: `remove_arm` leaves a gap, `add_arm` takes the next new
    number.

    Threads may share a bandit: a call begins when that of another thread has ended.  turn: held by it; hold it for
    several calls that belong together.
    """

    def __init__(
        self,
        n_arms: int | None = None,
        dim: int | None = None,
        eps: float = 0.1,
        *,
        arms: Iterable[Hashable] | None = None,
        features: Iterable[Hashable] | None = None,
        parties: int | None = None,
        policy: str = "epsilon-greedy",
        alpha: float = 1.0,
        ridge: float = 1.0,
        bound: float = 1.0,
        owners: Sequence[int] | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        steps: int = 10_000,
        most_unpaid: int = 10_000,
        seed: int | None = None,
        _service: Service | None = None,
    ) -> None:
        if _service is None:  # `over`, `load` and `plan` bring their own, whose settings hold
            names = Names.of(arms, features)
            count, width = names.count_arms(n_arms), names.count_features(dim)
            own = arguments.parties_of(parties, owners)
            settings = settings_of(count, width, eps, policy, alpha, ridge, bound, steps, own, owners, reward_range)
            most = arguments.most_unpaid_of(most_unpaid)
            _service = Service(settings, InOneProcess.of(settings.owners, seed), most_unpaid=most)
            _service.held.names = names
        self.turn = Turn()
        self._open: Service | None = _service
        self._hosting, self._settings = _service.hosting, _service.settings

    @classmethod
    def over(
        cls,
        session: Session,
        *,
        n_arms: int,
        dim: int,
        eps: float = 0.1,
        policy: str = "epsilon-greedy",
        alpha: float = 1.0,
        ridge: float = 1.0,
        bound: float = 1.0,
        owners: Sequence[int] | None = None,
        reward_range: tuple[float, float] = (0.0, 1.0),
        steps: int = 10_000,
        most_unpaid: int = 10_000,
    ) -> PrivateContextualBandit:
        """One party's end of a bandit on a network; all parties make the same calls in the same order.

        session: of this party, with the roles "puller" and "payer", whose processes run `puller_client` and
        `payer_client`.  `predict` takes this party's own features and returns None for the arm.  `learn` takes
        `decision_id`, and `overridden` where the puller pulled another arm; or, for what was not predicted here, this
        party's own features.  Actions and rewards come from the clients.

        Material that was dealt ahead follows a `plan`: a predict, and one learn of all its decisions.  Then calls
        alternate so, with as many contexts each time; the source refuses anything else before it is used.
        """
        hosting, most = OneEnd(session), arguments.most_unpaid_of(most_unpaid)
        settings = settings_of(
            n_arms, dim, eps, policy, alpha, ridge, bound, steps, hosting.parties, owners, reward_range
        )
        return cls._of(Service(settings, hosting, most_unpaid=most))

    @property
    def arms(self) -> tuple[Any, ...]:
        """The names of the present arms, or their numbers."""
        held = self._service.held
        return tuple(map(held.names.arm, held.arms))

    @property
    def features(self) -> tuple[Any, ...] | None:
        """The names of the columns, once somebody said them."""
        return self._service.held.names.features

    @property
    def dim(self) -> int:
        """Features of a context, of all parties together."""
        return self._settings.dim

    @property
    def parties(self) -> int:
        """N."""
        return self._hosting.parties

    @property
    def settings(self) -> Settings:
        """What all parties agree on, for the present arms."""
        return self._service.settings

    @property
    @in_turn
    def unpaid(self) -> tuple[int, ...]:
        """The decisions that wait for a reward: the latest `most_unpaid` of those not paid."""
        return tuple(self._service.held.open)

    @property
    def learned(self) -> int:
        """How many contexts were learned from; `settings.steps` is the limit."""
        return self._service.held.learned

    @property
    def learn_batch(self) -> int:
        """How many contexts are learned from together, in rounds that hardly depend on their number."""
        return self._service.learn_batch

    @property
    def ledger(self) -> Ledger:
        """Who learned what: iterate over its rows, or print its `table()`."""
        return self._hosting.ledger

    @property
    def cost(self) -> Cost:
        """All rounds, bytes and seconds so far."""
        return replace(self._hosting.meter.total)

    @in_turn
    def predict(self, contexts: Any, eligible: Any = None, *, reveal_propensity: bool = False) -> Prediction:
        """Choose an arm for one context (dim,), or for several (B, dim) in the rounds of one.

        eligible: the arms that may be pulled in this call, public; all if left out.

        How likely the pulled arm was depends on whether it is the best one.  That is a secret: exploration hides the
        best arm, and the pulled arm with its propensity would name it.  So the propensity is the interval that
        everybody knows, from eps / A to 1 - eps + eps / A for A eligible arms.
        reveal_propensity: reveal the number to the puller all the same, with epsilon-greedy.  The ledger says so, and
        these arms have no differential privacy any more.
        """
        service = self._service
        held, names = service.held, service.held.names
        rows, alone = self._rows(contexts)
        places = arguments.eligible_places(names.numbers(eligible, held.arms), held.arms)
        if arguments.flag_of(reveal_propensity, "reveal_propensity"):
            propensity.check_revealable(service.settings)
        decisions, arms, ties = service.predict(rows, places, propensity=reveal_propensity)
        eps, count = self._settings.eps, len(held.arms) if places is None else len(places)
        known = propensity.bounds(eps, count)
        low, high = (np.full(len(rows), end) for end in known)
        if ties is not None:
            low = high = propensity.exact(ties, eps, count)
        if not alone:
            return Prediction(None if arms is None else names.called(arms), Propensity(low, high), decisions)
        arm = None if arms is None else names.arm(int(arms[0]))
        return Prediction(arm, Propensity(float(low[0]), float(high[0])), int(decisions[0]))

    @in_turn
    def learn(
        self,
        context: Any = None,
        action: Any = None,
        reward: Any = None,
        *,
        decision_id: Any = None,
        overridden: Any = False,
    ) -> None:
        """Learn from the reward of one decision, or of several given as arrays; late, and in any order.

        decision_id: of `predict`.  The shares that were kept then are used; nothing but the reward is shared, and a
        `context` is not looked at again.  `action` may be left out.  Where it differs from the predicted arm, the
        organisation pulled another one: the puller shares its one-hot, all parties learn that this decision was
        overridden, and none of them which arm was pulled.  `overridden` says so, row by row, on a network, where the
        puller's client gives the action and the payer's the reward.
        Without decision_id: context, action and reward are shared anew, by the owners, the puller and the payer.
        """
        service, whole = self._service, self._hosting.whole
        if decision_id is None:
            self.partial_fit(action, reward, context)
            return
        arguments.same_rows(decision_id=decision_id, action=action, reward=reward)
        if whole == (reward is None) or (not whole and action is not None):
            raise ArgumentError(self._who_pays)
        decisions = arguments.whole_numbers(decision_id, None, "decision ids").tolist()
        found = service.held.find(decisions)
        if not whole:
            service.learn_open(decisions, arguments.flags_of(overridden, len(decisions)), None)
            return
        if arguments.flags_of(overridden, len(decisions)).any():
            raise ArgumentError("in one process `action` says which decisions were overridden: leave `overridden` out")
        predicted = np.array([decision.pulled for decision in found], np.int64)
        actions = predicted if action is None else self._actions(action, len(found))
        said = actions != predicted
        arguments.places_of(actions[said], service.held.arms)
        service.learn_open(decisions, said, Pay(actions, self._rewards(reward, len(found))))

    @in_turn
    def fit(self, decisions: Any, rewards: Any, contexts: Any) -> None:
        """Forget all that was learned, and the decisions that wait for a reward; then learn from logged rows alone.

        Names, arms and the ledger stay: what was disclosed is not taken back.  Arguments are those of `partial_fit`.
        """
        rows, whole = self._rows(contexts)[0], self._hosting.whole
        if whole in (decisions is None, rewards is None):
            raise ArgumentError(self._who_pays)
        if whole:  # what is refused is refused before anything is forgotten
            arguments.places_of(self._actions(decisions, len(rows)), self._service.held.arms)
            self._rewards(rewards, len(rows))
        self._service.check_room(len(rows), learned=0)
        self._service.restart()
        self.partial_fit(decisions, rewards, contexts)

    def predict_expectations(self, *_: Any, **__: Any) -> NoReturn:
        """Refused: what each arm is expected to pay is a secret of all owners, and stays one."""
        raise ArgumentError(
            "expected rewards are not told: a few of them give away the regressions, and these what contexts and "
            "rewards of others were: `predict` tells the arm, `evaluate_offline` an average reward"
        )

    @in_turn
    def partial_fit(self, decisions: Any, rewards: Any, contexts: Any) -> None:
        """Learn from logged rows: the arms that were pulled (rows,), rewards (rows,) and contexts (rows, dim).

        All are shared anew, `learn_batch` rows at a time; the result is that of one after the other.  On a network
        only this party's features are given here.
        """
        service, whole = self._service, self._hosting.whole
        if contexts is None:
            raise ArgumentError("give a decision_id, or the context of what is learned from")
        arguments.same_rows(decisions=decisions, rewards=rewards, contexts=contexts)
        rows, _ = self._rows(contexts)
        if whole in (decisions is None, rewards is None):
            raise ArgumentError(self._who_pays)
        if not whole:
            service.learn_given(rows, None)
            return
        actions = self._actions(decisions, len(rows))
        arguments.places_of(actions, service.held.arms)
        service.learn_given(rows, Pay(actions, self._rewards(rewards, len(rows))))

    @in_turn
    def forget(self, decision_id: Any) -> None:
        """Let go of decisions that will never be paid."""
        self._service.forget(arguments.whole_numbers(decision_id, None, "decision ids").tolist())

    @in_turn
    def add_arm(self, name: Hashable = None) -> Any:
        """A new arm of which nothing is known, P = I / ridge and w = 0; its number, or the name that it is given."""
        names = self._service.held.names
        names.check_new(name)
        number = self._service.add_arm()
        names.named(number, name)
        return names.arm(number)

    @in_turn
    def remove_arm(self, arm: Any) -> None:
        """Forget an arm and what was learned of it; rewards of it that are still to come change nothing."""
        held = self._service.held
        (place,) = arguments.places_of(arguments.whole_number(held.names.one(arm, held.arms), "arm"), held.arms)
        if len(held.arms) == 2:
            raise ArgumentError("a bandit chooses between at least 2 arms: add another before this one is removed")
        held.remove_arm(int(place))

    @in_turn
    def extend(self, steps: int) -> None:
        """Let so many contexts be learned from in all, more than before; nothing that was learned changes.

        The state may take more bits then, so material of an earlier `plan` does not fit any more.
        """
        self._service.extend(arguments.whole_number(steps, "steps"))

    @in_turn
    def save(self, folder: str | Path) -> None:
        """Write, for each party here, a file with its own shares and what is public, that only this user can read.

        In one process also one with what the puller knows.  They lie in folders of their own, party-0 to party-N-1 and
        puller, so that each can be given to its owner; whoever has all of them has everything.  No seed is among them,
        and in one process the shares are made afresh for the files, so that they follow from none.  The coins of a
        seeded bandit do: who guesses the seed can tell exploring decisions from greedy ones.

        A crash leaves this save or the one before.  From now on each call that tells something adds a line to a journal
        beside the files, here and in any other folder that this object was saved to or loaded from, before it tells.
        On a network all parties save at the same point; it takes 2 rounds.
        """
        self._service.save(arguments.folder_of(folder))

    @classmethod
    def load(
        cls, folder: str | Path, *, seed: int | None = None, session: Session | None = None
    ) -> PrivateContextualBandit:
        """The bandit as it was saved last; with a network's session, this party's end.  Dealt keys are fresh again.

        What was told after that save counts, and its decisions' numbers are not given again.  On a network, in 2
        rounds, the parties agree on the last save that all of them have.  One object goes on with a save: of two,
        the second that would tell something is refused.
        """
        end = None if session is None else OneEnd(session)
        kept, journals = load_parts(arguments.folder_of(folder), session)
        hosting: Hosting = InOneProcess.of(kept.parties, seed) if end is None else end
        if hosting.parties != kept.parties:
            raise ConfigError(f"{folder} is of {kept.parties} parties, this session has {hosting.parties}")
        kept.resume(hosting)
        if not hosting.whole:
            kept.held.names.features = None  # those of all owners; this end's own frames say its own
        return cls._of(Service(kept.settings, hosting, kept.held, journals=journals))

    @in_turn
    def plan(self, contexts: int = 1, eligible: Any = None, *, reveal_propensity: bool = False) -> Plan:
        """What a predict of so many contexts and one learn of all its decisions draw, with the present arms.

        Where the bandit refreshes its state, a step of the plan is as many of these as lie between two refreshes.
        """
        if not 1 <= arguments.whole_number(contexts, "contexts") <= self.learn_batch:
            raise ArgumentError(f"a plan is for 1 to {self.learn_batch} contexts: as many are learned from together")
        cycles = -(-(self.settings.refresh or 1) // contexts)
        items: list[Correlation] = []
        for cycle in range(cycles):
            if cycle in (0, cycles - 1):
                recorder = Recorder(self.parties)
                service = Service(self.settings, InOneProcess(self.parties, recorder), most_unpaid=contexts)
                service.held.arms, service.held.unrefreshed = self._service.held.arms, cycle * contexts
                service.held.names = Names(self._service.held.names.arms)
                rehearsal = self._of(service)
                told = rehearsal.predict(np.zeros((contexts, self.dim)), eligible, reveal_propensity=reveal_propensity)
                rehearsal.learn(decision_id=told.decision_id, reward=np.zeros(contexts))
            items += recorder.items
        return Plan("library", self.parties, tuple(items))

    def twin(self) -> LinearBandit:
        """A plaintext policy of the same settings that has learned nothing; for comparisons."""
        return twin_of(self.settings)

    def coins(self) -> Iterator[Choice]:
        """The coins of every predict since this object was made, in order, for a plaintext twin; needs a seed."""
        return self._service.coins()

    @in_turn
    def close(self) -> None:
        """Let go of all shares; a network's session stays open for whoever opened it."""
        self._open = None

    def __enter__(self) -> PrivateContextualBandit:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._open is None else f"{len(self.arms)} arms, {self.learned} learned"
        return (
            f"PrivateContextualBandit({self._settings.policy.value}, dim={self.dim}, parties={self.parties}, {state})"
        )

    @classmethod
    def _of(cls, service: Service) -> PrivateContextualBandit:
        return cls(service.settings.arms, service.settings.dim, _service=service)

    @property
    def _service(self) -> Service:
        if self._open is None:
            raise ConfigError("this bandit is closed: make another, or load one that was saved")
        return self._open

    @property
    def _who_pays(self) -> str:
        if self._hosting.whole:
            return "action and reward are wanted, and with a decision_id the reward alone: give them"
        return "on a network the puller's client gives the action and the payer's the reward: leave them out here"

    def _actions(self, given: Any, count: int) -> np.ndarray:
        """The numbers of the arms that were pulled."""
        held = self._service.held
        return arguments.whole_numbers(held.names.numbers(given, held.arms), count, "actions")

    def _rewards(self, given: Any, count: int) -> np.ndarray:
        return arguments.rewards_of(given, count, within=self._settings.reward_range)

    def _rows(self, contexts: Any) -> tuple[np.ndarray, bool]:
        """Whole contexts where all parties are here, else this party's features of them."""
        own = dict(enumerate(feature_blocks(self.dim, self.parties, self._settings.widths)))
        if not self._hosting.whole:
            (party,) = self._hosting.hosted
            own = {party: slice(0, own[party].stop - own[party].start)}
        names = self._service.held.names
        numbers, columns = names.columns(contexts)
        settings = self._settings
        rows, alone = arguments.contexts_of(numbers, own, bound=settings.bound, bits=settings.fraction_bits)
        names.features = columns or names.features
        return rows, alone
