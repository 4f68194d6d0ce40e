"""What goes wrong in classic SAMBA, and whose name the error has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

from mpc.errors import ConfigError, Desync, MaskedError, PeerLost, RangeError
from protocols.published.drive import Part, Receive, Send, in_one_process, over_links
from protocols.published.sealing import Direction, Seal
from protocols.samba.classic import roles
from protocols.samba.classic.masks import OwnerCoins, fields_of
from protocols.samba.classic.messages import COMP, CONTROLLER, CUSTOMER, HEAD, Kind, Spec, Why, pack, pack_refusal
from protocols.samba.classic.roles import controller, data_customer, owners
from protocols.samba.owners import Holdings, LocalPolicy, Select
from protocols.samba.policies import UCB, Softmax

from .runs import BITS, KEY, MEANS, changed, classic, noted, plays

LATE = 7  # a step in the middle of a run of 12


def meddled(
    who: str, kind: Kind, change: Callable[[bytes], bytes], *, t: int | None = LATE, to: str | None = None, **rest: Any
) -> None:
    """A run in which a participant's messages of one kind are changed: of step t, to one receiver."""

    def one(want: Send) -> Send:
        if want.raw[5] != kind or to not in (None, want.to) or (t is not None and HEAD.unpack_from(want.raw)[5] != t):
            return want
        return Send(want.to, change(want.raw))

    given = plays(**rest)
    given[who] = changed(given[who], one)
    in_one_process(given)


def flipped(at: int) -> Callable[[bytes], bytes]:
    return lambda raw: raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]


# ---- ciphertexts


@pytest.mark.parametrize("at", [26, 30, -1], ids=["first byte", "score", "tag"])
def test_a_changed_score_names_its_owner(at: int) -> None:
    with pytest.raises(MaskedError, match=r"owner 1's score at step 7 does not open at Comp"):
        meddled("owner 1", Kind.SCORES, lambda raw: flipped(at % len(raw))(raw))


def test_a_changed_list_names_the_owner_whose_entry_it_is() -> None:
    with pytest.raises(MaskedError, match=r"owner \d's score at step 7 does not open at Comp"):
        meddled(CONTROLLER, Kind.SCORES, lambda raw: flipped(len(raw) - 1)(raw), to=COMP)


def test_a_changed_answer_names_comp_and_the_owner() -> None:
    with pytest.raises(MaskedError, match=r"Comp's answer to owner \d at step 7 does not open"):
        meddled(COMP, Kind.ANSWERS, flipped(30))
    with pytest.raises(MaskedError, match="Comp's answer to owner 2 at step 7 does not open: the Controller"):
        meddled(CONTROLLER, Kind.ANSWERS, flipped(30), to="owner 2")


def test_an_answer_for_somebody_else_does_not_open() -> None:
    def turned(raw: bytes) -> bytes:
        return raw[:24] + raw[41:75] + raw[24:41]

    with pytest.raises(MaskedError, match="Comp's answer to owner 0 at step 7"):
        meddled(CONTROLLER, Kind.ANSWERS, turned, to="owners 0 to 2", hosts=[range(3)])


def test_a_replayed_message_is_seen_by_its_head() -> None:
    kept: list[bytes] = []

    def replay(raw: bytes) -> bytes:
        kept.append(raw)
        return kept[max(0, len(kept) - 2)]

    with pytest.raises(
        Desync, match=r"owner 2 sent SCORES of step 4, iteration 1, where step 5, iteration 1, is due: a replay"
    ):
        meddled("owner 2", Kind.SCORES, replay, t=None)
    kept.clear()
    with pytest.raises(Desync, match=r"Controller sent ANSWERS of step 4.*a replay"):
        meddled(CONTROLLER, Kind.ANSWERS, replay, t=None, to="owner 0")


@pytest.mark.parametrize("name", ["ucb", "pursuit"])
def test_a_replayed_ciphertext_under_a_new_head_names_its_owner(name: str) -> None:
    kept: list[bytes] = []

    def replay(raw: bytes) -> bytes:
        kept.append(raw)
        return raw[:24] + raw[24:26] + kept[-2][26:] if len(kept) == 4 and len(kept[-2]) == len(raw) else raw

    def every_first(raw: bytes) -> bytes:
        return replay(raw) if raw[6] == 1 else raw

    with pytest.raises(MaskedError, match=r"owner 2's message at step 7 is one of step 6 .*somebody replayed it"):
        meddled("owner 2", Kind.SCORES, every_first, t=None, spec=Spec(name))


def test_another_key_names_who_has_it() -> None:
    with pytest.raises(
        MaskedError, match="owner 1's score at step 4 does not open at Comp: it was changed on its way, or"
    ):
        in_one_process(plays(keys={"owner 1": bytes(32)}))
    with pytest.raises(
        MaskedError, match="none of the scores of step 4 opens at Comp: it and the owners hold different"
    ):
        in_one_process(plays(keys={COMP: bytes(32)}))
    with pytest.raises(ConfigError, match="a key of AES-256 has 32 bytes, this one 5"):
        in_one_process(plays(keys={COMP: b"short"}))


def test_two_owners_under_one_slot() -> None:
    given = plays()
    given["owner 1"] = owners(
        range(1, 2), 3, OwnerCoins(bytes(32), bytes(range(32)), 3), KEY, [np.random.default_rng(1)], lambda *_: 1, BITS
    )
    with pytest.raises(Desync, match="under one slot: give all owners the same seed"):
        in_one_process(given)


# ---- values


class Broken(UCB):
    """Owner 2's score at step 7 is whatever a test says."""

    def __init__(self, value: float) -> None:
        self._value = value

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        scores = super().score(mine, t, iteration)
        scores[(mine.numbers == 2) & (t == LATE)] = self._value
        return scores


@pytest.mark.parametrize(("value", "words"), [(np.nan, "not a number"), (-0.1, "negative"), (np.inf, "too large")])
def test_an_owner_refuses_to_send_a_score_that_is_none(value: float, words: str) -> None:
    with pytest.raises(RangeError, match=f"owner 2's score at step 7 is {words}: ucb must give a finite score"):
        classic(Broken(value), budget=12)


@pytest.mark.parametrize("value", [np.nan, -1.0, -np.inf, np.inf])
def test_comp_refuses_one_that_was_sent_all_the_same(value: float) -> None:
    coins = OwnerCoins(bytes(32), bytes(32), 3)

    def sealed(raw: bytes) -> bytes:
        seal = Seal(KEY, Direction.TO_COMP, 1)
        (text,) = seal.seal(LATE, 1, coins.slots(LATE, 1)[1:2], [np.array([value], "<f8").tobytes()])
        return raw[:26] + text

    with pytest.raises(RangeError, match="owner 1 sent a score at step 7 that is negative or not a number"):
        meddled("owner 1", Kind.SCORES, sealed)


class Never(LocalPolicy):
    """No arm has a weight."""

    name = "never"
    selects = (Select.DRAW,)

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        return np.zeros(len(mine.numbers))

    def largest(self, budget: int, iteration: int) -> float:
        return 1.0


def test_a_draw_among_nothing() -> None:
    with pytest.raises(RangeError, match="Comp cannot draw at step 4: all weights are 0"):
        classic(Never())


@pytest.mark.parametrize("tau", [0.0, -1.0, float("nan")])
def test_no_temperature(tau: float) -> None:
    with pytest.raises(ConfigError, match="gives no weights: choose a tau above 0"):
        classic(Spec("softmax", tau=tau))


def test_a_small_temperature_works_down_to_a_thousandth() -> None:
    assert classic(Spec("softmax", tau=0.001), [0.0, 1.0, 0.5], 100).pulls_equal_reference
    with pytest.raises(ConfigError, match=r"tau lies between 0\.001 and 1e\+06"):
        classic(Spec("softmax", tau=0.0009))
    assert fields_of(Softmax(0.001), 100)[0].width == 194


@pytest.mark.parametrize("budget", [0, 2, -1])
def test_fewer_pulls_than_arms(budget: int) -> None:
    with pytest.raises(
        ConfigError, match=f"DC orders {budget} pulls of 3 arms: each is pulled once first, so order at"
    ):
        classic("ucb", budget=budget)


def test_the_controller_looks_at_the_order_itself() -> None:
    with pytest.raises(ConfigError, match="DC orders 2 pulls of 3 arms"):
        in_one_process(plays(budget=2))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"policy": "ucbb"}, "no policy 'ucbb': choose one of epsilon-greedy"),
        ({"policy": Spec("epsilon-greedy", eps=1.5)}, "eps is a probability, 1.5 is not"),
        ({"policy": Spec("pursuit", beta=float("nan"))}, "beta is a probability"),
        ({"means": [0.5, 1.5]}, "arm 1 has mean 1.5"), ({"means": []}, "at least one arm"),
        ({"seed": -1}, "a seed lies between"), ({"mask_seed": -1}, "a seed lies between"),
        ({"policy": UCB(), "processes": True}, "leave out `processes`"),
        ({"policy": "reinforcement-comparison"}, "breaks score locality: it needs the common reference reward"),
    ],
)  # fmt: skip
def test_orders_that_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        classic(**{"policy": "ucb", **given})


class Restless(LocalPolicy):
    """Explores, and has two iterations."""

    name = "restless"
    selects = (Select.LARGEST, Select.LARGEST)

    def explores(self, t: int) -> float:
        return 0.5

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        return mine.means

    def largest(self, budget: int, iteration: int) -> float:
        return 1.0


def test_exploring_takes_one_iteration() -> None:
    with pytest.raises(ConfigError, match="restless explores and has 2 iterations"):
        classic(Restless())


class Thrice(Restless):
    """Three iterations of scores that need more bits than a double has."""

    name = "thrice"
    selects = (Select.LARGEST,) * 3
    explores = LocalPolicy.explores  # type: ignore[assignment]

    def score(self, mine: Holdings, t: int, iteration: int) -> np.ndarray:
        return ((mine.numbers + iteration) % 3 + mine.means) * 2.0**12

    def largest(self, budget: int, iteration: int) -> float:
        return 3.0 * 2.0**12


def test_an_own_policy_plugs_in() -> None:
    run = classic(Thrice(), [0.0, 0.0, 0.0], 10)
    assert run.game.arms.tolist() == [0, 1, *[2] * 8]
    assert run.counts.masks == 3 * 3 * 7 and run.reference is None and run.pulls_equal_reference is None
    assert not fields_of(Thrice(), 10)[0].doubles
    assert classic(UCB(), budget=30).game.equals(classic("ucb", budget=30).game)


def test_an_answer_that_is_no_bit_names_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "BITS", (b"\0", b"\2"))
    with pytest.raises(Desync, match=r"^owner \d was answered neither 0 nor 1 at step 4, so it does not pull"):
        classic("ucb")


# ---- messages


SENT = [
    (CUSTOMER, Kind.ORDER, None), (CONTROLLER, Kind.ORDER, COMP), (CONTROLLER, Kind.ORDER, "owner 1"),
    ("owner 1", Kind.SCORES, None), (CONTROLLER, Kind.SCORES, COMP), (COMP, Kind.ANSWERS, None),
    (CONTROLLER, Kind.ANSWERS, "owner 2"), ("owner 2", Kind.SUMS, None), (CONTROLLER, Kind.SUMS, CUSTOMER),
]  # fmt: skip


@pytest.mark.parametrize(("who", "kind", "to"), SENT)
def test_messages_that_are_none_name_their_sender(who: str, kind: Kind, to: str | None) -> None:
    step = LATE if kind in (Kind.SCORES, Kind.ANSWERS) else 0
    for kept in (0, 10, 24, -1):
        with pytest.raises(Desync, match=f"^{who} sent .*truncated"):
            meddled(who, kind, lambda raw, kept=kept: raw[:kept], t=None if kept < 24 else step, to=to)
    with pytest.raises(Desync, match=f"^{who} sent .*run the same release"):
        meddled(who, kind, lambda raw: b"XXXX" + raw[4:], t=step, to=to)
    with pytest.raises(Desync, match=f"^{who} sent .* is due"):
        meddled(who, kind, lambda raw: raw[:5] + bytes([77]) + raw[6:], t=step, to=to)
    if kind is not Kind.ORDER:
        with pytest.raises(Desync, match=f"^{who} sent .* owners where those of"):
            meddled(who, kind, lambda raw: raw[:8] + b"\7" + raw[9:], t=step, to=to)


def test_rest_of_another_length() -> None:
    def longer(raw: bytes) -> bytes:
        head = list(HEAD.unpack_from(raw))
        return HEAD.pack(*head[:-1], head[-1] + 1) + raw[24:] + b"x"

    for who, kind, to in SENT[3:]:
        step = LATE if kind in (Kind.SCORES, Kind.ANSWERS) else 0
        with pytest.raises((Desync, ConfigError), match=f"^{who} sent .* due"):
            meddled(who, kind, longer, t=step, to=to)


def test_an_order_that_cannot_be_read() -> None:
    with pytest.raises(Desync, match="DC sent an ORDER that cannot be read"):
        meddled(CUSTOMER, Kind.ORDER, lambda raw: raw[:50] + b"\0" * (len(raw) - 50), t=None)
    with pytest.raises(ConfigError, match="DC sent a modulus"):
        meddled(CUSTOMER, Kind.ORDER, lambda raw: raw[:-1] + b"\0", t=None)


def test_some_explore_and_some_do_not() -> None:
    given = plays(Spec("epsilon-greedy", eps=0.5))
    given["owner 2"] = owners(
        range(2, 3), 3, OwnerCoins(bytes(32), bytes(32), 3), KEY, [np.random.default_rng(1)], lambda *_: 1, BITS
    )
    with pytest.raises(
        Desync, match=r"owner 2 sent \w+ at step \d+ where owner 0 sent \w+: give all owners the same seed"
    ):
        in_one_process(given)


def test_another_number_of_owners() -> None:
    given = plays()
    given["owner 1"] = owners(
        range(1, 2), 4, OwnerCoins(bytes(32), bytes(32), 4), KEY, [np.random.default_rng(1)], lambda *_: 1, BITS
    )
    with pytest.raises(ConfigError, match="Controller plays with 3 owners, owner 1 with 4"):
        in_one_process(given)


def test_a_sum_under_another_key() -> None:
    outcomes, sent = noted(plays())
    assert outcomes[CUSTOMER].total is not None
    foreign = next(raw for who, to, raw in sent if who == CONTROLLER and to == CUSTOMER)
    with pytest.raises(RangeError, match=r"Controller sent a sum out of 0\.\.N|of Controller is not below n"):
        meddled(CONTROLLER, Kind.SUMS, lambda raw: raw[:24] + foreign[24:], t=None)


def test_what_comp_says_without_a_reason() -> None:
    refusal = pack_refusal(Why.SLOTS, 0, 0, t=LATE, iteration=1)
    with pytest.raises(Desync, match="two owners sent step 7's score under one slot"):
        meddled(COMP, Kind.ANSWERS, lambda _: refusal)


def test_an_owner_cannot_stop_alone() -> None:
    with pytest.raises(Desync, match="owner 1 sent STOP at step 7 where owner 0 sent SCORES"):
        meddled("owner 1", Kind.SCORES, lambda _: pack(Kind.STOP))


def test_nobody_goes_on_from_what_nobody_kept() -> None:
    given = plays()
    from bandits.samba.coins import OrderCoins

    given[CONTROLLER] = controller([range(1), range(1, 2), range(2, 3)], OrderCoins(bytes(32), 3), BITS, start=5)
    with pytest.raises(ConfigError, match="Controller goes on after step 5, owner 0 kept nothing"):
        in_one_process(given)


# ---- never a hang


def test_nobody_waits_for_one_who_is_not_there() -> None:
    given = plays()
    del given[CUSTOMER]
    with pytest.raises(Desync, match="nobody can go on, Controller for DC, Comp for Controller"):
        in_one_process(given)
    given = plays()
    del given[COMP]
    with pytest.raises(Desync, match="Controller sends to Comp, which does not take part"):
        in_one_process(given)


class Line:
    """A link that ends, and notes for how long it would have been waited for."""

    def __init__(self) -> None:
        self.patience: list[float | None] = []

    def send(self, message: bytes, *, timeout: float | None = None) -> None:
        assert message

    def receive(self, *, timeout: float | None = None, limit: int = 0) -> bytes | None:
        self.patience.append(timeout)
        return None


def test_one_that_has_gone_is_named() -> None:
    line = Line()
    with pytest.raises(PeerLost, match="Controller has ended before its time"):
        over_links(data_customer(Spec("ucb"), 9, BITS, insecure=True), {CONTROLLER: line}, timeout=3.0)
    with pytest.raises(PeerLost, match="Controller has ended before its time"):
        over_links(plays()["owner 0"], {CONTROLLER: line}, timeout=3.0)
    assert line.patience == [None, 3.0]  # DC has nothing to wait for until all is done


def test_the_first_message_may_take_longer_since_others_start() -> None:
    class Slow(Line):
        def receive(self, *, timeout: float | None = None, limit: int = 0) -> bytes | None:
            self.patience.append(timeout)
            return b"x"

    def waits() -> Any:
        yield Receive("a")
        yield Receive("a")
        yield Receive("a", patient=True)
        return 1

    line = Slow()
    assert over_links(waits(), {"a": line}, timeout=3.0, first=9.0)[0] == 1
    assert line.patience == [9.0, 3.0, None]


def test_seconds_go_to_their_part() -> None:
    def one() -> Any:
        yield Part("steps")
        yield Receive("other")
        return 5

    def other() -> Any:
        yield Send("one", b"x")
        return 6

    outcomes, seconds = in_one_process({"one": one(), "other": other()})
    assert outcomes == {"one": 5, "other": 6}
    assert set(seconds["one"]) == {"preparation", "steps"} and set(seconds["other"]) == {"preparation"}
    assert MEANS
