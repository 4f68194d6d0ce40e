"""LinUCB-DS as published: arms and sum are the integer reference's, and nobody sees or learns more than is said."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("phe", reason="the extra 'paillier' is not installed")

import gmpy2

from bandits.attacks.linucb_comp import recover
from bandits.attacks.linucb_p import cosine, estimate
from bandits.coins import Coins, Noise
from bandits.fixed_point import Scales, reals, rounded, words
from bandits.linear_problem import LinearProblem
from bandits.oful import Confidence
from bandits.spectral import neighbour_graph, spectral_problem
from mpc.errors import ConfigError, Desync, PeerLost, RangeError
from protocols.linucb_ds.classic.messages import (
    Kind,
    PublicProblem,
    Role,
    pack,
    pack_ciphertexts,
    pack_number,
    pack_problem,
    pack_ranges,
    unpack,
)
from protocols.linucb_ds.classic.roles import (
    Outcome,
    check_room,
    comparator,
    data_customer,
    data_owner,
    puller,
    unwrapped,
)
from protocols.linucb_ds.classic.run import ClassicRun, play_classic
from protocols.published.drive import Play, Receive, Send, in_one_process, over_links
from protocols.published.paillier import Counts, Encryptor, PublicKey, SecretKey

BITS = 256


def linucb(dim: int, arms: int, seed: int = 0, **constants: float) -> LinearProblem:
    rng = np.random.default_rng([seed, dim, arms])
    rows, theta = rng.normal(size=(arms, dim)), rng.normal(size=dim)
    return LinearProblem(rows, theta, Confidence.of(rows, theta, **constants))


def spectral(nodes: int) -> LinearProblem:
    rng = np.random.default_rng(nodes)
    return spectral_problem(neighbour_graph(rng.normal(size=(nodes, 3)), 3), 3.0 + rng.normal(size=nodes), noise=0.3)


def classic(problem: LinearProblem, budget: int, **rest: Any) -> ClassicRun:
    return play_classic(problem, budget, **{"seed": 1, "bits": BITS, "insecure": True, **rest})


def plays(problem: LinearProblem, budget: int, seed: int = 1, bits: int = BITS) -> dict[Role, Play[Outcome]]:
    return {
        Role.DO: data_owner(problem, Scales(), bits), Role.DC: data_customer(budget, bits, insecure=True),
        Role.P: puller(seed, bits), Role.COMP: comparator(bits, insecure=True),
    }  # fmt: skip


@pytest.mark.parametrize(
    "problem",
    [linucb(1, 1), linucb(3, 15), linucb(5, 12), linucb(9, 4), linucb(2, 5, gamma=0.2, delta=0.3), spectral(7)],
    ids=lambda p: f"d{p.dim}K{len(p.arms)}",
)
def test_arms_and_sum_are_the_references(problem: LinearProblem) -> None:
    for seed in range(5):
        run = classic(problem, 20, seed=seed)
        assert run.arms == run.reference.arms
        assert run.total == run.reference.total
        assert run.exact and len(run.arms) == 20


@pytest.mark.parametrize("scales", [Scales(), Scales(40, 40, 40), Scales(20, 50, 35)], ids=["30", "40", "mixed"])
@pytest.mark.parametrize("noise", list(Noise))
def test_any_scales_and_noise(scales: Scales, noise: Noise) -> None:
    assert classic(linucb(3, 6), 25, scales=scales, noise=noise).exact


@pytest.mark.parametrize("name", ["orthonormal", "pairs", "signs"])
def test_sets_where_indices_tie(name: str) -> None:
    half = np.random.default_rng(4).normal(size=(3, 3))
    arms = {
        "orthonormal": np.eye(6), "pairs": np.concatenate([half, -half]),
        "signs": np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T,
    }[name]  # fmt: skip
    theta = np.full(arms.shape[1], 0.5)
    problem = LinearProblem(arms, theta, Confidence.of(arms, theta, noise=0.5))
    for seed in range(5):
        assert classic(problem, 25, seed=seed).exact


@pytest.mark.parametrize(("arms", "budget"), [(1, 1), (1, 5), (4, 1), (4, 2)])
def test_one_arm_and_few_pulls(arms: int, budget: int) -> None:
    run = classic(linucb(2, arms), budget)
    assert run.exact and len(run.arms) == budget


@pytest.mark.parametrize(("dim", "arms", "budget"), [(3, 15, 12), (5, 2, 6), (2, 1, 3), (2, 4, 1)])
def test_operations_are_the_papers_or_fewer(dim: int, arms: int, budget: int) -> None:
    """The paper: d + 1 + N - 1 + 1 encryptions, (N - 1) K + 2 decryptions, O(N (d^2 + K d)) sums and products.

    The N encryptions of noise are sums with a public value here; K d products a step and d at the end, instead of
    d^2 + K d a step.  What the paper does not have are (N - 1) K + 2 products with a fresh r^n.
    """
    run = classic(linucb(dim, arms), budget)
    steps = budget - 1
    assert run.counts == Counts(
        encryptions=dim + 1, decryptions=steps * arms + 2, additions=steps * arms * dim + (dim - 1) + 1 + 2,
        multiplications=steps * arms * dim + dim, rerandomisations=steps * arms + 2,
    )  # fmt: skip
    assert run.outcomes[Role.DO].counts == Counts(encryptions=dim)
    assert run.outcomes[Role.DC].counts == Counts(decryptions=1)
    assert run.outcomes[Role.COMP].counts == Counts(encryptions=1, decryptions=steps * arms + 1)
    assert run.phases == {
        "initialisation": Counts(encryptions=dim),
        "exploration-exploitation": Counts(
            decryptions=steps * arms, additions=steps * arms * dim, multiplications=steps * arms * dim,
            rerandomisations=steps * arms,
        ),
        "key switching": Counts(
            encryptions=1, decryptions=2, additions=dim + 2, multiplications=dim, rerandomisations=2
        ),
    }  # fmt: skip
    paper = run.paper_phases
    assert sum((counts.encryptions for counts in paper.values()), 0) == dim + 1 + steps + 1
    assert paper["exploration-exploitation"].additions == steps * (dim**2 + arms * dim + 2 * dim)


@pytest.mark.parametrize(("cores", "arms", "budget"), [(2, 5, 8), (3, 2, 6), (4, 1, 3), (2, 3, 1)])
def test_several_cores_give_what_one_gives(cores: int, arms: int, budget: int) -> None:
    run, alone = (classic(linucb(3, arms), budget, cores=count) for count in (cores, 1))
    assert run.exact and run.arms == alone.arms and run.total == alone.total
    assert run.counts == alone.counts and run.phases == alone.phases and set(run.ledger) == set(alone.ledger)
    assert run.cores == cores and set(run.costly) == {"estimate", "indices", "fresh r^n", "decryptions"}


def test_the_ledger_is_who_knows_what() -> None:
    rows = {(entry.role, entry.what, entry.count) for entry in classic(linucb(3, 5), 10).ledger}
    assert rows == {
        ("DC", "cumulative reward", 1), ("P", "pulled arm", 10), ("P", "budget", 1),
        ("Comp", "index of an arm, arms permuted", 9 * 5), ("Comp", "number of pulls", 1),
    }  # fmt: skip
    assert not list(classic(linucb(3, 5), 10).outcomes[Role.DO].ledger)


def test_work_is_told_apart_by_participant() -> None:
    """Of the processor, once keys are made; Comp's is mostly decryption, and DO encrypts d numbers."""
    seconds = classic(linucb(3, 10), 30).work
    assert seconds.keys() == set(Role) and all(spent > 0 for spent in seconds.values())
    assert seconds[Role.P] + seconds[Role.COMP] > seconds[Role.DO] + seconds[Role.DC]


def test_progress_is_told() -> None:
    steps: list[int] = []
    classic(linucb(2, 3), 6, watch=steps.append)
    assert steps == [2, 3, 4, 5, 6]


# ---- what is on the wire


class Tap:
    """A participant whose messages are noted."""

    def __init__(self) -> None:
        self.sent: list[tuple[Role, Role, bytes]] = []

    def on(self, role: Role, play: Play[Outcome]) -> Play[Outcome]:
        reply = None
        while True:
            try:
                want = play.send(reply)
            except StopIteration as stop:
                return stop.value
            if isinstance(want, Send):
                self.sent.append((role, want.to, want.raw))
            reply = yield want

    def of(self, kind: Kind) -> list[bytes]:
        return [raw for _, _, raw in self.sent if raw[5] == kind]


def tapped(problem: LinearProblem, budget: int, seed: int = 1) -> tuple[Tap, dict[Role, Outcome]]:
    tap = Tap()
    return tap, in_one_process({role: tap.on(role, play) for role, play in plays(problem, budget, seed).items()})[0]


def test_no_ciphertext_is_seen_twice_or_follows_from_others() -> None:
    tap, _ = tapped(linucb(2, 4), 12)
    key = PublicKey(int.from_bytes(tap.of(Kind.KEY)[0][18:], "big"))
    lists = [key.unpack(raw[18:], sender="P") for raw in tap.of(Kind.INDICES)]
    everything = [ciphertext for one in lists for ciphertext in one]
    assert len(set(everything)) == len(everything) == 11 * 4
    # P alone knows how a list came about: the deterministic products never appear.
    theta = key.unpack(tap.of(Kind.THETA)[0][18:], sender="DO")
    assert not set(theta) & set(everything)
    square, n = key.n**2, key.n
    for one in lists:  # no quotient of two entries is a power of 1 + n
        quotients = [int(gmpy2.invert(a, square) * b % square) for a in one for b in one if a is not b]
        assert all(quotient % n != 1 for quotient in quotients)


def test_the_mask_of_the_sum_does_not_follow_from_the_wire() -> None:
    tap, outcomes = tapped(linucb(2, 3), 5)
    customer = PublicKey(int.from_bytes(next(raw for role, _, raw in tap.sent if role is Role.DC)[18:], "big"))
    (switched,) = customer.unpack(tap.of(Kind.SWITCHED_SUM)[0][18:], sender="Comp")
    (answer,) = customer.unpack(tap.of(Kind.SUM)[0][18:], sender="P")
    quotient = int(gmpy2.invert(switched, customer.n**2) * answer % customer.n**2)
    assert quotient % customer.n != 1  # else (quotient - 1) / n is minus the mask
    assert outcomes[Role.DC].total


def test_comp_sees_a_uniform_sum() -> None:
    """60 masked sums, in units of n: each eighth of (-1/2, 1/2) is met."""
    keys, masked = SecretKey.generate(BITS, insecure=True), []
    problem = linucb(1, 1)

    def comp_like() -> Play[Outcome]:
        for other in (Role.DO, Role.DC, Role.P):
            yield Send(other, pack(Kind.KEY, keys.public.to_bytes()))
        customer = PublicKey(int.from_bytes((yield Receive(Role.DC))[18:], "big"))
        yield Receive(Role.P)
        raw = yield Receive(Role.P)
        (value,) = keys.decrypt(keys.public.unpack(raw[18:], sender="P"))
        masked.append(value / keys.public.n)
        switched = Encryptor(customer).encrypt([value % keys.public.n])
        yield Send(Role.P, pack(Kind.SWITCHED_SUM, customer.pack(switched), customer))
        return Outcome(Role.COMP)

    totals = {in_one_process({**plays(problem, 1), Role.COMP: comp_like()})[0][Role.DC].total for _ in range(60)}
    assert len(totals) == 1
    assert len(np.unique(np.floor(8 * (np.array(masked) + 0.5)))) == 8


@pytest.mark.parametrize("noise", list(Noise))
def test_ranges_follow_from_public_bounds_and_not_from_the_noise_that_was_drawn(noise: Noise) -> None:
    """300 seeds of P's, one message to each: it would tell Comp and DC how large the largest noise was."""
    problem, budget, scales = linucb(2, 3), 8, Scales()
    comp, customer = (SecretKey.generate(BITS, insecure=True).public for _ in range(2))
    exact = rounded(problem, scales)
    shown = PublicProblem(words(exact.arms, scales.arm), problem.exploration, scales)
    theta = Encryptor(comp).encrypt(words(exact.theta, scales.theta).tolist())
    answers = {
        Role.COMP: [pack(Kind.KEY, comp.to_bytes())],
        Role.DC: [pack(Kind.KEY, customer.to_bytes()), pack_number(Kind.BUDGET, budget)],
        Role.DO: [pack_problem(shown), pack_ciphertexts(Kind.THETA, theta, comp)],
    }  # fmt: skip
    seen: dict[str, set[bytes]] = {Role.COMP: set(), Role.DC: set()}
    for seed in range(300):
        play, boxes, reply = puller(seed, BITS, noise=noise), {role: list(raw) for role, raw in answers.items()}, None
        for _ in range(20):
            want = play.send(reply)
            reply = boxes[Role(want.sender)].pop(0) if isinstance(want, Receive) else None
            if isinstance(want, Send):
                seen[want.to].add(want.raw)
                if want.to is Role.DC:
                    break
    assert [len(messages) for messages in seen.values()] == [1, 1]


@pytest.mark.parametrize("comp_bits", [256, 512])
@pytest.mark.parametrize("own_bits", [256, 512])
def test_wraps_of_the_mask_are_taken_away(comp_bits: int, own_bits: int) -> None:
    comp, own = (SecretKey.generate(bits, insecure=True).public.n for bits in (comp_bits, own_bits))
    for total in (0, 5, -5, (1 << 69) - 1, 1 - (1 << 69)):
        for rand in (0, 1, 6, comp // 2, comp - 1, comp - 6):
            switched = (((total + rand) % comp) - rand) % own
            assert unwrapped(switched, own, comp, 70) == total
    with pytest.raises(RangeError, match="out of range"):
        unwrapped(own // 3, own, comp, 70)


def test_keys_without_room_are_refused() -> None:
    one, two = PublicKey((1 << 255) + 5), PublicKey((1 << 255) + 99)
    with pytest.raises(ConfigError, match="too close"):
        check_room(one, two, 60, 60)
    check_room(one, one, 60, 60)
    with pytest.raises(ConfigError, match="use larger keys"):
        check_room(one, one, 255, 60)
    with pytest.raises(ConfigError, match="use larger keys"):
        classic(linucb(9, 4), 5, scales=Scales(45, 60, 60), bits=128)


# ---- what goes wrong


def broken(role: Role, change: Callable[[bytes], bytes], kind: Kind, problem: LinearProblem | None = None) -> None:
    """A run in which one participant's messages of one kind are changed."""

    def meddled(play: Play[Outcome]) -> Play[Outcome]:
        reply = None
        while True:
            try:
                want = play.send(reply)
            except StopIteration as stop:
                return stop.value
            if isinstance(want, Send) and want.raw[5] == kind:
                want = Send(want.to, change(want.raw))
            reply = yield want

    given = plays(linucb(2, 3) if problem is None else problem, 4)
    given[role] = meddled(given[role])
    in_one_process(given)


SENDERS = [
    (Role.COMP, Kind.KEY), (Role.DC, Kind.KEY), (Role.DC, Kind.BUDGET), (Role.DO, Kind.PROBLEM),
    (Role.DO, Kind.THETA), (Role.P, Kind.RANGES), (Role.P, Kind.INDICES), (Role.COMP, Kind.POSITION),
    (Role.P, Kind.MASKED_SUM), (Role.COMP, Kind.SWITCHED_SUM), (Role.P, Kind.SUM),
]  # fmt: skip


@pytest.mark.parametrize(("role", "kind"), SENDERS, ids=lambda value: value.name)
@pytest.mark.parametrize("kept", [0, 10, 18, -1])
def test_a_truncated_message_names_its_sender(role: Role, kind: Kind, kept: int) -> None:
    with pytest.raises(Desync, match="truncated") as caught:
        broken(role, lambda raw: raw[:kept], kind)
    assert str(caught.value).startswith(f"{role} sent")


@pytest.mark.parametrize(("role", "kind"), SENDERS, ids=lambda value: value.name)
def test_a_foreign_message_names_its_sender(role: Role, kind: Kind) -> None:
    with pytest.raises(Desync, match="run the same release") as caught:
        broken(role, lambda raw: b"XXXX" + raw[4:], kind)
    assert str(caught.value).startswith(f"{role} sent")
    with pytest.raises(Desync, match="is due") as caught:
        broken(role, lambda raw: raw[:5] + bytes([77]) + raw[6:], kind)
    assert str(caught.value).startswith(f"{role} sent")


@pytest.mark.parametrize(
    ("role", "kind"),
    [(Role.DO, Kind.THETA), (Role.P, Kind.INDICES), (Role.P, Kind.MASKED_SUM), (Role.COMP, Kind.SWITCHED_SUM),
     (Role.P, Kind.SUM)],
    ids=lambda value: value.name,
)  # fmt: skip
def test_ciphertexts_under_another_key(role: Role, kind: Kind) -> None:
    with pytest.raises(ConfigError, match="give it the key of this run") as caught:
        broken(role, lambda raw: raw[:6] + b"otherkey" + raw[14:], kind)
    assert str(caught.value).startswith(f"{role} sent {kind.name}")
    size = BITS // 4
    for unfit in (bytes(size), b"\xff" * size):
        with pytest.raises(RangeError, match="not below n") as refused:
            broken(role, lambda raw, unfit=unfit: raw[:-size] + unfit, kind)
        assert f"of {role} " in str(refused.value)


def test_a_list_that_another_key_encrypted_is_out_of_range() -> None:
    other = SecretKey.generate(BITS, insecure=True).public

    def foreign(raw: bytes) -> bytes:
        count = (len(raw) - 18) // other.ciphertext_bytes
        small = [c % (1 << 500) for c in Encryptor(other).encrypt([1] * count)]
        return raw[:18] + other.pack(small)

    with pytest.raises(RangeError, match="of P's list is out of range"):
        broken(Role.P, foreign, Kind.INDICES)


@pytest.mark.parametrize("role", [Role.COMP, Role.DC], ids=str)
def test_a_wrong_modulus_names_its_sender(role: Role) -> None:
    for change in (lambda raw: raw[:-1] + b"\0", lambda raw: raw[:18] + b"\0" + raw[19:]):
        with pytest.raises(ConfigError, match=f"{role} sent a modulus"):
            broken(role, change, Kind.KEY)
    with pytest.raises(ConfigError, match="same key size"):
        in_one_process({**plays(linucb(2, 3), 4), Role.DC: data_customer(4, 512, insecure=True)})


def test_answers_that_make_no_sense() -> None:
    with pytest.raises(Desync, match="Comp answered place 3 of 3"):
        broken(Role.COMP, lambda _: pack_number(Kind.POSITION, 3), Kind.POSITION)
    with pytest.raises(ConfigError, match="at least 1 pull, not 0"):
        broken(Role.DC, lambda _: pack_number(Kind.BUDGET, 0), Kind.BUDGET)
    with pytest.raises(ConfigError, match="at most"):
        broken(Role.DC, lambda _: pack_number(Kind.BUDGET, 1 << 60), Kind.BUDGET)


def test_a_problem_that_cannot_be_played_names_its_owner() -> None:
    changes: tuple[Callable[[bytes], bytes], ...] = (
        lambda raw: raw.replace(b'"gamma": 1.0', b'"gamma":-1.0'),
        lambda raw: raw.replace(b'"delta": 0.01', b'"delta":  NaN'),
        lambda raw: raw.replace(b'"delta": 0.01', b'"delta": "01"'),
        lambda raw: raw.replace(b'"noise"', b'"nosie"'),
        lambda raw: raw.replace(b'"linucb"', b'"linucc"'),
        lambda raw: raw.replace(b'"kind"', b'"kind '),
        lambda raw: raw[:26] + b"\0" + raw[27:],  # scale of arms
        lambda raw: raw[:-48] + np.tile(np.int64(1), 6).tobytes(),  # equal arms
    )
    for change in changes:
        with pytest.raises(ConfigError, match="DO sent a problem that cannot be played"):
            broken(Role.DO, change, Kind.PROBLEM)


@pytest.mark.parametrize(
    ("arms", "theta", "words"),
    [([[1e-30], [1.0]], [1.0], "vanishes"), ([[1.0], [2.0]], [1e-30], "theta vanishes"), ([[5e6]], [1.0], "outweigh")],
)
def test_values_that_do_not_fit_are_refused(arms: list[list[float]], theta: list[float], words: str) -> None:
    rows, parameter = np.array(arms), np.array(theta)
    with pytest.raises(ConfigError, match=words):
        classic(LinearProblem(rows, parameter, Confidence.of(rows, parameter)), 20_000)


def test_large_values_that_fit_work() -> None:
    rows, parameter = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1e30, -1e30])
    assert classic(LinearProblem(rows, parameter, Confidence.of(rows, parameter)), 5, bits=512).exact


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"budget": 0}, "at least 1 pull"),
        ({"seed": -1}, "seed"),
        ({"bits": 512, "insecure": False}, "hides nothing"),
        ({"bits": 1000, "insecure": True}, "multiple of 16"),
    ],
)
def test_orders_that_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        classic(linucb(2, 3), **{"budget": 3, **given})


def test_nobody_waits_forever() -> None:
    given = plays(linucb(2, 3), 4)
    del given[Role.DC]
    with pytest.raises(Desync, match=r"nobody can go on, .*P for DC"):
        in_one_process(given)


class Line:
    """A link that ends."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    def receive(self, *, timeout: float | None = None, limit: int = 0) -> bytes | None:
        assert timeout == 3.0
        return None


def test_a_participant_that_has_gone_is_named() -> None:
    with pytest.raises(PeerLost, match="Comp has ended before its time"):
        over_links(puller(1, BITS), dict.fromkeys(Role, Line()), timeout=3.0)


def test_message_heads_hold_their_key() -> None:
    key = PublicKey((1 << 255) + 5)
    raw = pack(Kind.SUM, b"12", key)
    assert unpack(raw, Role.P, Kind.SUM, key=key).rest == b"12"
    with pytest.raises(ConfigError, match=key.fingerprint.hex()):
        unpack(pack(Kind.SUM, b"12"), Role.P, Kind.SUM, key=key)


# ---- what it leaks all the same


def test_comp_finds_everything_out() -> None:
    for seed in range(3):
        problem, seen = linucb(3, 8, seed), []
        run = classic(problem, 40, seed=seed, scales=Scales(40, 40, 40), seen=seen.append)
        exact = rounded(problem, run.scales)
        found = recover(reals(np.array(seen, object), run.scales.index), exact.arms, exact.exploration)
        assert found.arms.tolist() == run.arms
        rewards = [math.ldexp(pull.reward, -run.scales.reward) for pull in run.reference.pulls[:-1]]
        assert np.abs(found.rewards - rewards).max() < 1e-7


def test_p_finds_the_direction_of_theta() -> None:
    angles = []
    for seed in range(3):
        problem = linucb(3, 12, seed)
        run = classic(problem, 100, seed=seed)
        noise = Coins.draw(seed, budget=100, arms=12).noise
        angles.append(cosine(estimate(problem.arms, run.arms, noise, problem.exploration), problem.theta))
    assert np.median(angles) > 0.95


def test_constants_of_other_policies_are_refused() -> None:
    class Other:
        noise, theta_norm = 1.0, 1.0

        def regulariser(self, dim: int) -> np.ndarray:
            return np.ones(dim)

        def omega(self, pulls: int, dim: int) -> float:
            return 1.0

        def prediction_bound(self, arms: np.ndarray) -> float:
            return 10.0

        def check(self, arms: np.ndarray, theta: np.ndarray | None = None) -> None:
            pass

    with pytest.raises(ConfigError, match="constants of LinUCB or SpectralUCB"):
        classic(replace(linucb(2, 3), exploration=Other()), 3)


def test_the_customer_waits_for_the_sum_as_long_as_p_lives() -> None:
    """A run may last longer than the silence that means a dead peer."""
    waits: list[float | None] = []

    class Heard:
        def send(self, message: bytes) -> None: ...

        def receive(self, *, timeout: float | None = None, limit: int = 0) -> bytes | None:
            waits.append(timeout)
            return b"message"

    def play() -> Any:
        yield Receive(Role.P)
        yield Receive(Role.P, patient=True)

    over_links(play(), {Role.P: Heard()}, timeout=7.0)
    assert waits == [7.0, None]
    asked, play_of_dc = [], data_customer(3, 256, insecure=True)
    want = next(play_of_dc)
    while not (isinstance(want, Receive) and len(asked) == 2):
        reply = None
        if isinstance(want, Receive):
            asked.append(want)
            key = SecretKey.generate(256, insecure=True).public.to_bytes()
            reply = pack(Kind.KEY, key) if want.sender is Role.COMP else pack_ranges(60, 100)
        want = play_of_dc.send(reply)
    assert [receive.patient for receive in (*asked, want)] == [False, False, True]
