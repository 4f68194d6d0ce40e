"""SAMBA as published (Ciucanu, Lafourcade, Marcadet and Soare, JAIR 2022), one function per role.

    DC                    Controller                       Comp                          owner i
     0  N, policy, pk_DC ---->
                             1  N, policy -----------------> .
                             1  N, policy, pk_DC --------------------------------------> pulls at step i + 1
    each step t > K, each iteration:
                             .  <------------------------------------------------- 2  slot_i, E(alpha v_i)
                             3  all, permuted -------------> decrypt, select
                             .  <------------------------ 4  E(bit) for each slot
                             5  each its own, E(bit_i) --------------------------------> after the last: 1 pulls
    at the end:
                             .  <------------------------------------------------- 6  E_DC(s_i)
    decrypts <----------- 7  E_DC(sum of s_i)

E is AES-256-GCM under a key that owners and Comp have in common (`published.sealing`); E_DC is Paillier's.  Where this
differs from the letter of the paper or from its code:

- What is encrypted has a fixed width (`masks`), so its length tells nothing; in text 0.0 is shorter than other scores.
- Labels bind step, iteration, slot and direction.  A slot is an owner's name for one iteration, from a permutation that
  only owners know: Comp sees that each owner is there once, and an answer opens for the owner it is for.
- Keys and seeds are dealt out before the run, to each participant its own.  The paper's Controller hands out the
  owners' seed, and so could compute the masks.
- Scores are integers (`score`), and ties go to the first in the Controller's permutation.
- In a step that explores, which follows from the owners' seed, they send a slot and no score.  Comp, told so, points at
  a uniform place of the permuted list with its own coins, as in the published code: neither it nor the Controller
  learns who pulls, but both learn that the step explores.  As in the paper's text (`Spec.zeros`) they all send 0, and
  the first of the permuted list is the largest: Comp sees that the step explores, the Controller does not.
- E_DC(s_i) of K owners are multiplied as they are: each is fresh, and so is their product.

The Controller and Comp do not collude.  A process may host several owners, as rows: then their messages travel as one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from bandits.samba.coins import OrderCoins, PointCoins
from mpc.errors import ConfigError, Desync, MaskedError, RangeError

from ...published.drive import STEPS, SUM, Part, Play, Receive, Send, Watch
from ...published.frame import Message
from ...published.paillier import Encryptor, Integer, SecretKey
from ...published.sealing import MOST_SLOTS, TAG_BYTES, Direction, Forged, Seal
from ..owners import OF_GAME, LocalPolicy, Owners, Pay, owners_name
from .masks import Field, OwnerCoins, fields_of
from .messages import (
    COMP,
    CONTROLLER,
    CUSTOMER,
    Kind,
    Order,
    Spec,
    Why,
    order_of,
    pack,
    pack_order,
    pack_refusal,
    refusal_of,
    rows_of,
    unpack,
)
from .outcome import Outcome, controller_learned, customer_learned, order_learned, owners_learned
from .selecting import Refusal, Seen, Selecting

BITS = (b"\0", b"\1")
_ANSWER = len(BITS[0]) + TAG_BYTES
_RAW_ANSWER = np.dtype(f"V{_ANSWER}")
_POOLED = 16  # encryptions from which a pool of r^n pays

Make = Callable[[Spec], LocalPolicy]
"""The policy that a spec means."""


class Keeper(Protocol):
    """Keeps owners' state on disk, and brings it back."""

    def restore(self, start: int, owners: Owners) -> None:
        """Take up what was kept after `start` steps."""

    def keep(self, done: int, owners: Owners, *, last: bool) -> None:
        """Write it, if it is time; in any case where no step follows."""


def data_customer(spec: Spec, budget: int, bits: int, *, insecure: bool = False) -> Play[Outcome]:
    """DC: pays for `budget` pulls, and learns the sum of what they paid."""
    done = Outcome(CUSTOMER)
    own = SecretKey.generate(bits, insecure=insecure, counts=done.counts.paillier)
    yield Send(CONTROLLER, pack_order(Order(spec, budget, own.public)))
    message = unpack((yield Receive(CONTROLLER, patient=True)), CONTROLLER, Kind.SUMS, Kind.STOP, rows=1)
    if message.kind is Kind.STOP:
        return done
    yield Part(SUM)
    (total,) = own.decrypt(message.ciphertexts(own.public, 1))
    if not 0 <= total <= budget:
        raise RangeError(f"{CONTROLLER} sent a sum out of 0..N: it, or an owner, did not use the key of this run's DC")
    done.total = total
    customer_learned(done)
    return done


def controller(
    hosts: Sequence[range], orders: OrderCoins, bits: int, *, make: Make = Spec.policy, start: int = 0,
    watch: Watch | None = None,
) -> Play[Outcome]:  # fmt: skip
    """Controller: permutes what owners send to Comp, and brings back the answers.

    hosts: which owners each of their processes plays.  start: steps done in an earlier sitting.
    """
    done = Outcome(CONTROLLER)
    names, arms = [owners_name(rows) for rows in hosts], sum(len(rows) for rows in hosts)
    order = order_of(unpack((yield Receive(CUSTOMER)), CUSTOMER, Kind.ORDER), bits)
    policy, fields = _checked(order, arms, make)
    passed_on = pack_order(Order(order.spec, order.budget, order.key, arms, start))
    for name in (COMP, *names):
        yield Send(name, passed_on)
    order_learned(done, "DC orders them")
    yield Part(STEPS)
    done.done = first = max(arms, start)
    for t in range(first + 1, order.budget + 1):
        for iteration, field in enumerate(fields, 1):
            kind, slots, sealed = yield from _gather(names, hosts, field, t, iteration)
            if kind is Kind.STOP:
                for name in (COMP, CUSTOMER):
                    yield Send(name, pack(Kind.STOP))
                controller_learned(done, policy, t - 1 - first)
                return done
            place = orders.order(t, iteration)  # list position -> owner
            back = yield from _answered(kind, slots, sealed, place, t, iteration)
            for name, rows in zip(names, hosts):
                own = back[rows.start : rows.stop].tobytes()
                yield Send(name, pack(Kind.ANSWERS, own, t=t, iteration=iteration, rows=len(rows)))
            done.counts.permutations += 2
        done.done = t
        if watch is not None:
            watch(t)
    yield Part(SUM)
    cloud = Encryptor(order.key, done.counts.paillier)
    product: Integer | None = None
    for name, rows in zip(names, hosts):
        message = unpack((yield Receive(name)), name, Kind.SUMS, rows=len(rows))
        for ciphertext in message.ciphertexts(order.key, len(rows)):
            product = ciphertext if product is None else cloud.add(product, ciphertext)
    yield Send(CUSTOMER, pack(Kind.SUMS, order.key.pack([product]), rows=1))
    controller_learned(done, policy, order.budget - first)
    return done


def comparator(
    points: PointCoins, key: bytes, bits: int, *, make: Make = Spec.policy, seen: list[Seen] | None = None
) -> Play[Outcome]:  # fmt: skip
    """Comp: opens lists of masked scores, and selects.

    seen: collects the lists; what an attack by Comp starts from.
    """
    done = Outcome(COMP)
    order = order_of(unpack((yield Receive(CONTROLLER)), CONTROLLER, Kind.ORDER), bits)
    policy, fields = _checked(order, order.arms, make)
    seal = Seal(key, Direction.TO_OWNER, order.arms)
    select = Selecting(seal, order.arms, seen, len(fields))
    order_learned(done, "it selects as the policy says")
    yield Part(STEPS)
    done.done = first = max(order.arms, order.start)
    for t in range(first + 1, order.budget + 1):
        for iteration, field in enumerate(fields, 1):
            raw = yield Receive(CONTROLLER)
            message = unpack(
                raw, CONTROLLER, Kind.SCORES, Kind.EXPLORE, Kind.STOP, t=t, iteration=iteration, rows=order.arms
            )
            if message.kind is Kind.STOP:
                return select.end(done, policy, done.done - first)
            try:
                slots, chosen = select.from_message(message, field, t, iteration, *points.point(t))
            except Refusal as refusal:  # the Controller knows whose message it was, and ends the run
                answer = pack_refusal(refusal.why, refusal.place, refusal.more, t=t, iteration=iteration)
                yield Send(CONTROLLER, answer)
                return select.end(done, policy, done.done - first)
            answers = [BITS[0]] * order.arms
            answers[chosen] = BITS[1]
            sealed = b"".join(seal.seal(t, iteration, slots, answers))
            yield Send(CONTROLLER, pack(Kind.ANSWERS, sealed, t=t, iteration=iteration, rows=order.arms))
        done.done = t
    return select.end(done, policy, done.done - first)


def owners(
    rows: range, arms: int, coins: OwnerCoins, key: bytes, noise: Sequence[np.random.Generator], pay: Pay, bits: int,
    *, make: Make = Spec.policy, keeper: Keeper | None = None, stop: Callable[[], bool] | None = None,
) -> Play[Outcome]:  # fmt: skip
    """Owners `rows` of 0..arms-1, of one process; alone in it, an owner is a range of length 1.

    noise: each one's own stream.  pay: what their arms pay.  stop: asked before each step, where one process hosts all.
    """
    done = Outcome(owners_name(rows))
    order = order_of(unpack((yield Receive(CONTROLLER)), CONTROLLER, Kind.ORDER), bits)
    policy, fields, mine = _begun(done, order, rows, arms, noise, pay, make, keeper)
    here, count, counts = slice(rows.start, rows.stop), len(rows), done.counts
    seal = Seal(key, Direction.TO_COMP, count)
    yield Part(STEPS)
    done.done = first = max(arms, order.start)
    stopped = False
    for t in range(first + 1, order.budget + 1):
        if stopped := stop is not None and stop():
            yield Send(CONTROLLER, pack(Kind.STOP))
            break
        for iteration, field in enumerate(fields, 1):
            slots = coins.slots(t, iteration)[here]
            named = slots.astype("<u2").tobytes()
            explores = coins.explores(t, policy.explores(t))
            if explores and not policy.zeros:
                message = pack(Kind.EXPLORE, named, t=t, iteration=iteration, rows=count)
            else:
                words = np.zeros(count, np.int64) if explores else mine.words(t, iteration)
                texts = field.write(words, coins.mask(t, iteration))
                sealed = b"".join(seal.seal(t, iteration, slots, texts))
                message = pack(Kind.SCORES, named + sealed, t=t, iteration=iteration, rows=count)
                counts.masks += count
                counts.seals += count
            yield Send(CONTROLLER, message)
            raw = yield Receive(CONTROLLER)
            answers = unpack(raw, CONTROLLER, Kind.ANSWERS, t=t, iteration=iteration, rows=count)
            told = _opened(answers, seal, slots, rows, t, iteration)
            counts.opens += count
            mine.told(told, t, iteration)
        done.done = t
        if keeper is not None:
            keeper.keep(t, mine, last=t == order.budget)
    if stopped and keeper is not None:
        keeper.keep(done.done, mine, last=True)
    if not stopped:
        yield Part(SUM)
        encryptor = Encryptor(order.key, counts.paillier, pooled=count >= _POOLED)
        yield Send(CONTROLLER, pack(Kind.SUMS, order.key.pack(encryptor.encrypt(mine.sums.tolist())), rows=count))
    state = mine.state()
    done.state = {name: state[name].tolist() for name in OF_GAME}
    owners_learned(done, policy, rows, done.done - first)
    return done


# ---- what goes wrong, and who learns what


def _gather(
    names: Sequence[str], hosts: Sequence[range], field: Field, t: int, iteration: int
) -> Generator[Any, Any, tuple[Kind, np.ndarray, np.ndarray]]:
    """What all owners sent: a kind, slots and ciphertexts, in the owners' order."""
    kinds, slots, sealed = [], [], []
    for name, rows in zip(names, hosts):
        raw = yield Receive(name)
        message = unpack(raw, name, Kind.SCORES, Kind.EXPLORE, Kind.STOP, t=t, iteration=iteration, rows=len(rows))
        kinds.append(message.kind)
        if message.kind is not Kind.STOP:
            width = 0 if message.kind is Kind.EXPLORE else field.width + TAG_BYTES
            own, ciphertexts = rows_of(message, len(rows), width, slots=True)
            slots.append(own)
            sealed.append(ciphertexts)
    for name, kind in zip(names, kinds):
        if kind is not kinds[0]:
            raise Desync(
                f"{name} sent {kind.name} at step {t} where {names[0]} sent {kinds[0].name}: give all owners the same "
                "seed, and let one process host all where a run may be stopped"
            )
    if kinds[0] is Kind.STOP:
        return Kind.STOP, np.zeros(0), np.zeros(0)
    return kinds[0], _joined(slots), _joined(sealed)


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _begun(
    done: Outcome, order: Order, rows: range, arms: int, noise: Sequence[np.random.Generator], pay: Pay, make: Make,
    keeper: Keeper | None,
) -> tuple[LocalPolicy, list[Field], Owners]:  # fmt: skip
    """Owners who have pulled once, or hold what was kept."""
    if order.arms != arms:
        raise ConfigError(f"{CONTROLLER} plays with {order.arms} owners, {done.name} with {arms}: set up all alike")
    policy, fields = _checked(order, arms, make)
    mine = Owners(policy, rows, arms, noise=noise, pay=pay)
    for owner in rows:
        order_learned(done, "it plays", f"owner {owner}")
    if order.start:
        if keeper is None:
            raise ConfigError(f"{CONTROLLER} goes on after step {order.start}, {done.name} kept nothing: start anew")
        keeper.restore(order.start, mine)
    else:
        mine.first_pulls()
    return policy, fields, mine


def _answered(
    kind: Kind, slots: np.ndarray, sealed: np.ndarray, place: np.ndarray, t: int, iteration: int
) -> Generator[Any, Any, np.ndarray]:
    """Comp's answers to a list that it sees permuted, in the owners' order.  place: list position -> owner."""
    rest, arms = slots[place].tobytes() + sealed[place].tobytes(), len(place)
    yield Send(COMP, pack(kind, rest, t=t, iteration=iteration, rows=arms))
    raw = yield Receive(COMP)
    message = unpack(raw, COMP, Kind.ANSWERS, Kind.REFUSED, t=t, iteration=iteration, rows=arms)
    if message.kind is Kind.REFUSED:
        _blame(message, place, t)
    _, answers = rows_of(message, arms, _ANSWER)
    back = np.empty_like(answers)
    back[place] = answers
    return back


def _opened(message: Message, seal: Seal, slots: np.ndarray, rows: range, t: int, iteration: int) -> np.ndarray:
    """Each owner's own bit."""
    sealed = np.frombuffer(message.exactly(_ANSWER * len(rows)), _RAW_ANSWER).tolist()
    try:
        return np.frombuffer(b"".join(seal.open(t, iteration, slots, sealed)), np.uint8)
    except Forged as error:
        raise MaskedError(
            f"Comp's answer to owner {rows[error.places[0]]} at step {t} does not open: the {CONTROLLER} or somebody "
            "on its way changed or replayed it, or Comp has another key; deal new keys and start again"
        ) from error


def _blame(message: Message, place: np.ndarray, t: int) -> NoReturn:
    """Comp refused the list: say whose entry it was."""
    why, at, more = refusal_of(message)
    owner = f"owner {int(place[at])}"
    if why is Why.SLOTS:
        raise Desync(f"two owners sent step {t}'s score under one slot: give all owners the same seed")
    if why is Why.ALL_ZERO:
        raise RangeError(
            f"Comp cannot draw at step {t}: all weights are 0; the policy must leave some owner a weight above it"
        )
    if why is Why.UNFIT:
        raise RangeError(
            f"{owner} sent a score at step {t} that is negative or not a number: a score is finite and at least 0"
        )
    if why is Why.REPLAYED:
        raise MaskedError(
            f"{owner}'s message at step {t} is one of step {more} or of another slot: somebody replayed it"
        )
    if more == len(place) > 1:
        raise MaskedError(f"none of the scores of step {t} opens at Comp: it and the owners hold different keys")
    raise MaskedError(
        f"{owner}'s score at step {t} does not open at Comp: it was changed on its way, or {owner} has another key; "
        "deal new keys and start again"
    )


def check_budget(budget: int, arms: int) -> None:
    """ConfigError where DC orders fewer pulls than there are arms."""
    if budget < arms:
        raise ConfigError(
            f"DC orders {budget} pulls of {arms} arms: each is pulled once first, so order at least {arms}"
        )


def _checked(order: Order, arms: int, make: Make) -> tuple[LocalPolicy, list[Field]]:
    """The policy, and the fields of its messages, where the order can be played."""
    if not 1 <= arms <= MOST_SLOTS:
        raise ConfigError(f"{arms} owners: SAMBA is for 1 to {MOST_SLOTS:,}")
    check_budget(order.budget, arms)
    if not 0 <= order.start <= order.budget:
        raise ConfigError(f"a run of {order.budget} pulls cannot go on after step {order.start}: start it anew")
    policy = make(order.spec)
    if policy.may_explore and policy.iterations > 1:
        raise ConfigError(f"{policy.name} explores and has {policy.iterations} iterations: a policy with one explores")
    return policy, fields_of(policy, order.budget)
