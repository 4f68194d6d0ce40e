"""What the parties see is uniform whatever the secret, and reduced to the ring it is opened in before it is sent.

Each case runs on extreme secrets.  Every Open of a run is tested by itself: what all parties get, and the message of
each party, by chi-square on each byte.  The smallest p-value times the number of tests must exceed 1e-6 (Bonferroni),
on fixed seeds.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from mpc import Open, ops, ring
from mpc.cases import Case, cases
from mpc.chunks import cut
from mpc.correlations import LookupMask, SignTables
from mpc.curves import Reciprocal, Table
from mpc.ops import Lines
from mpc.rounds import Rounds
from mpc.share import Share
from mpc.strings import strings
from offline import InsecureSeededDealer
from tests.oracles import stats

Fixture = Callable[..., Any]
ULP = 2.0**-20
HALF = 2.0**11 - ULP  # a product of two stays below 2^22
FULL = 2.0**42 - 1.0
WORD = (1 << 62) - 1
SCORE = 2.0**23 - 1.0

# For each operation the shapes of its inputs, large enough for the test, and extreme secrets that fill them.
EXTREMES: dict[str, tuple[tuple[tuple[int, ...], ...], tuple[Any, ...]]] = {
    "product": (((1300,), (1300,)), (0.0, HALF, -HALF)),
    "square": (((1300,),), (0.0, HALF, -HALF)),
    "outer-square": (((65, 20),), (0.0, HALF, -HALF)),
    "matmul": (((36, 36), (36, 36)), (0.0, 256.0, -256.0)),
    "truncate": (((1300,),), (0.0, 2.0**22 - ULP, ULP - 2.0**22)),
    "round-off": (((1300,),), (0.0, 2.0**22 - ULP, ULP - 2.0**22)),
    "truncate-published": (((1300,),), (0.0, 2.0**22 - ULP, ULP - 2.0**22)),
    "wraps": (((1300,),), (0.0, FULL, -FULL)),
    "lookup": (((1300,),), (0, 255)),
    "comparison": (((1300,),), (0.0, FULL, -FULL)),
    "comparison-strings": (((1300,),), (0.0, FULL, -FULL)),
    "comparison-circuit": (((1300,),), (0.0, FULL, -FULL)),
    "equality": (((1300,),), (0, WORD, -WORD)),
    "binary-adder": (((1300,), (1300,)), (0, -1, WORD)),
    "binary-round-trip": (((1300,),), (0, -1, WORD)),
    "argmax": (((140, 10),), (0.0, SCORE, -SCORE)),
    "argmax-tournament": (((220, 32),), (0.0, SCORE)),
    "argmax-published": (((140, 10),), (0.0, SCORE, -SCORE)),
    "reciprocal-table": (((1300,),), (1.0, 2.0)),
    "reciprocal-newton": (((1300,),), (1.0, 20.0)),
    "reciprocal-published": (((1300,),), (1.0, 20.0)),
    "sqrt": (((1300,),), (0.0, 10.0)),
    "sqrt-newton": (((1300,),), (0.5, 10.0)),
    "sqrt-helba": (((1300,),), (0.0, 10.0)),
    "sqrt-levels": (((1300,),), (2.0**-21, 10.0)),
    "exp": (((1300,),), (-1.0, 1.0)),
    "exp-table": (((1300,),), (-1.0, 1.0)),
    "inverse": (((36, 8, 8),), (1.0 * np.eye(8), 8.0 * np.eye(8))),
    "draw": (((1300, 10),), (0, 2**30 // 10 - 1)),
    "epsilon-greedy": (((140, 10),), (0.0, 2.0**11 - 1)),
    "epsilon-greedy-blurred": (((140, 10),), (0.0, 2.0**11 - 1)),
    "einsum": (((36, 36), (36, 36)), (0.0, 256.0, -256.0)),
    "outer": (((650, 2), (650, 2)), (0.0, HALF, -HALF)),
    "max-value": (((140, 10), (140, 10)), (0.0, 256.0, -256.0)),
    "less": (((1300,),), (0.0, FULL, -FULL)),
    "equal": (((1300,),), (0, WORD, -WORD)),
    "lift": (((1300,),), (0, 1)),
}


def extremes(case: Case) -> tuple[tuple[tuple[int, ...], ...], tuple[Any, ...]]:
    """A product with its truncation has the product's."""
    return EXTREMES[case.op.removesuffix("-truncate")]


class Wire:
    """A listener: notes each Open's ring, the words every party sent, and what came back."""

    def __init__(self) -> None:
        self.opens: list[tuple[int, np.ndarray, list[np.ndarray]]] = []

    def __call__(self, request: Any, payload: np.ndarray, reply: Any) -> None:
        if isinstance(request, Open):
            words = payload.view(ring.dtype_for(request.bits))
            joint = np.bitwise_xor.reduce(words, 0) if request.xor else np.add.reduce(words, 0, dtype=words.dtype)
            joint = joint & ring.narrow_mask(request.bits)
            expected = words if request.apart else joint
            assert (expected.reshape(-1) == reply.reshape(-1)).all()
            self.opens.append((request.bits, words.copy(), [joint]))


def one_of_each() -> list[Case]:
    every = {case.op: case for case in cases(quick=True)}
    greedy, blurred = every["epsilon-greedy"], partial(ops.argmax, score_bits=33, eps=0.1, blur=10)
    own = replace(greedy, op="epsilon-greedy-blurred", program=blurred), *map(unmeasured, UNMEASURED)
    return [*every.values(), *own]


UNMEASURED: dict[str, tuple[str, Callable[..., Rounds[Any]]]] = {
    "einsum": ("matmul", lambda s, x, y: ops.einsum(s, "ij,kj->ik", x, y)),
    "outer": ("product", ops.outer),
    "max-value": ("product", ops.max_value),
    "less": ("comparison", lambda s, x: ops.less(s, x, x - x)),
    "equal": ("equality", lambda s, x: ops.equal(s, x, x - x)),
    "lift": ("equality", lambda s, x: ops.lift(s, x.mod(8))),
}
"""Operations that nothing else measures, each with a case that takes the same inputs."""


def unmeasured(op: str) -> Case:
    like, program = UNMEASURED[op]
    return replace(next(case for case in cases(quick=True) if case.op == like), op=op, program=program)


@pytest.mark.parametrize("case", one_of_each(), ids=lambda case: case.op)
def test_openings_are_uniform(case: Case, parties: int, simulate: Fixture, uniformity: Fixture) -> None:
    """Between two parties whatever the secret; between more of them at one extreme."""
    shapes, secrets = extremes(case)
    for seed, secret in enumerate(secrets, start=1) if parties == 2 else [(parties, secrets[-1])]:
        wire = Wire()
        session = simulate(parties, seed, listener=wire)
        values = tuple(np.broadcast_to(np.asarray(secret), shape) for shape in shapes)
        session.run(case.program(session, *case.share(session, values)))
        assert len(session.ledger) == 0 and wire.opens
        smallest, tests = 1.0, 0
        for bits, rows, joint in wire.opens:
            assert not (rows & ~ring.narrow_mask(bits)).any(), "a bit above the opened ring was sent"
            for words in (*rows, *joint):
                assert words.size >= 5 << min(bits, 8), "too few words for a chi-square"
                smallest, tests = min(smallest, uniformity(words, bits)), tests + 1
        assert smallest * tests > 1e-6


def test_every_operation_is_among_them(simulate: Fixture) -> None:
    """Of what the cases run: an operation that is added without one, or that others are in place of, fails here."""
    wanted = {name for name in ops.__all__ if inspect.isgeneratorfunction(getattr(ops, name))}
    ran, before = set[Any](), sys.getprofile()
    for case in one_of_each():
        session = simulate(2)
        program = case.program(session, *case.share(session, case.inputs(np.random.default_rng(22))))
        sys.setprofile(lambda frame, event, _: ran.add(frame.f_code) if event == "call" else None)
        try:
            session.run(program)
        finally:
            sys.setprofile(before)
    assert len(wanted) > 25 and [name for name in sorted(wanted) if getattr(ops, name).__code__ not in ran] == []


@pytest.mark.parametrize("case", cases(quick=True), ids=lambda case: case.name)
def test_no_payload_has_a_bit_above_its_ring(case: Case, parties: int, simulate: Fixture) -> None:
    """On the case's own inputs."""
    wire = Wire()
    session = simulate(parties, listener=wire)
    session.run(case.program(session, *case.share(session, case.inputs(np.random.default_rng(22)))))
    for bits, rows, _ in wire.opens:
        assert not (rows & ~ring.narrow_mask(bits)).any()


LINES = Lines.over(Reciprocal(), 2.0, 0, 9)
MODULAR: dict[str, tuple[int, Callable[..., Rounds[Any]]]] = {
    "lookup": (8, lambda s, x: ops.lookup(s, x, Table(np.arange(256)))),
    "lookup 1": (1, lambda s, x: ops.lookup(s, x, Table(np.arange(2)))),
    "curve": (LINES.bits, lambda s, x: ops.curve(s, x, LINES)),
    **{f"tables {w}": (w, lambda s, x, w=w: ops.sign_by_tables(s, x, width=w)) for w in (5, 8, 16, 33, 48)},
    **{f"strings {w}": (w, lambda s, x, w=w: ops.sign_by_strings(s, x, width=w)) for w in (5, 16, 48)},
    **{f"circuit {w}": (w, lambda s, x, w=w: ops.sign_by_circuit(s, x, width=w)) for w in (5, 8, 16, 33, 48)},
    **{f"is_zero {w}": (w, lambda s, x, w=w: ops.is_zero(s, x, width=w)) for w in (1, 8, 12, 33, 48)},
    "lift": (1, lambda s, x: ops.lift(s, x.mod(8))),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULAR)
def test_high_bits_never_reach_the_wire(name: str, parties: int, simulate: Fixture) -> None:
    """Two secrets that differ above the opened ring alone send the same bytes, party by party."""
    width, program = MODULAR[name]
    low = np.random.default_rng(23).integers(1, 1 << width, 200) if width > 1 else np.array([0, 1] * 100)
    sent, owned = [], []
    for high in (0, 1, 5, -3):
        payloads: list[bytes] = []
        session = simulate(parties, listener=lambda request, payload, reply: payloads.append(payload.tobytes()))
        x = session.share(low + high * (1 << width), scale=0)
        owned.append(x.words[0].copy())
        session.run(program(session, x))
        sent.append(payloads)
    assert all((words != owned[0]).all() for words in owned[1:])
    assert sent[0] and all(other == sent[0] for other in sent[1:])


def test_low_bits_do_reach_it(simulate: Fixture) -> None:
    """The test above can fail: a secret that differs in the ring sends other bytes."""
    for width, program in MODULAR.values():
        sent = []
        for value in (0, 1):
            payloads: list[bytes] = []
            session = simulate(2, listener=lambda request, payload, reply: payloads.append(payload.tobytes()))
            session.run(program(session, session.share(np.full(200, value), scale=0)))
            sent.append(payloads[0])
        assert sent[0] != sent[1], width


@pytest.mark.parametrize("item", [LookupMask((2000,), Table(np.arange(8))), SignTables((2000,), 48, 8)], ids=str)
def test_what_party_0_is_handed_is_uniform(item: Any, parties: int, uniformity: Fixture) -> None:
    """Corrections hide the dealt fields behind the other parties' streams.  Rejects at p < 1e-6, on a fixed seed."""
    (handed,) = InsecureSeededDealer(parties, 24).deal([item], range(1))
    assert uniformity(handed, 8) > 1e-6


def opened_bits(program: Callable[..., Rounds[Any]], session: Any, x: Any, opens: list[Any]) -> np.ndarray:
    """All bits that are opened for each element: (n, bits), over all rounds."""
    opens.clear()
    session.run(program(session, x))
    columns = []
    for bits, reply in opens:
        words = reply.reshape(-1).astype(np.uint64)
        columns.append(words[:, None] >> np.arange(bits, dtype=np.uint64) & np.uint64(1))
    return np.concatenate(columns, axis=1)


@pytest.mark.parametrize(
    ("by", "width"), [*((ops.sign_by_tables, w) for w in (5, 9, 20, 51, 64)), (ops.sign_by_strings, 51)]
)
def test_a_comparison_opens_bits_that_are_uniform_in_pairs(
    by: Fixture, width: int, parties: int, simulate: Fixture
) -> None:
    """Each bit, each pair within a round and across rounds, at each secret.  Rejects at p < 1e-6, on a fixed seed."""
    opens: list[Any] = []
    session = simulate(parties, 31, listener=lambda request, _, reply: opens.append((request.bits, reply.copy())))
    top, count = (1 << (width - 1)) - 1, 4000
    for secret in (0, -1, top // 3, -top, top) if parties == 2 else (0, top):
        zero = session.share(np.zeros(count), scale=0)
        x = Share(session, session.plus(zero.words, np.full(count, secret).view(np.uint64)), 0)
        signs = 1.0 - 2.0 * opened_bits(lambda s, d: by(s, d, width=width, ring=8), session, x, opens)
        chunks = 2 * -(-(width - 1) // 4) - 1 + 2 * len(cut(width, 8).groups) - 1
        assert signs.shape[1] == width + (chunks if by is ops.sign_by_tables else 2 * len(strings(width, 8).chunks) - 1)
        z_scores = np.concatenate([signs.sum(axis=0), (signs.T @ signs)[np.triu_indices(signs.shape[1], 1)]])
        largest = np.abs(z_scores).max() / np.sqrt(count)
        assert 2 * stats.norm.sf(largest) * z_scores.size > 1e-6


@pytest.mark.parametrize(("by", "width"), [(ops.sign_by_tables, 5), (ops.sign_by_tables, 9), (ops.sign_by_strings, 9)])
def test_all_that_a_comparison_opens_is_uniform_together(
    by: Fixture, width: int, parties: int, simulate: Fixture
) -> None:
    """The joint law of all bits of all three rounds, by chi-square.  Rejects at p < 1e-6, on a fixed seed."""
    opens: list[Any] = []
    session = simulate(parties, 32, listener=lambda request, _, reply: opens.append((request.bits, reply.copy())))
    for secret in (0, -1, 5, -(1 << (width - 1)) + 1) if parties == 2 else (-1,):
        x = session.share(np.full(60_000, secret), scale=0)
        bits = opened_bits(lambda s, d: by(s, d, width=width, ring=8), session, x, opens)
        cells = bits.astype(np.int64) @ (1 << np.arange(bits.shape[1]))
        counts = np.bincount(cells, minlength=1 << bits.shape[1])
        assert stats.chisquare(counts).pvalue > 1e-6
