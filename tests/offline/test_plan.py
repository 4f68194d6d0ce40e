"""Plans: found by a dry run, the same after a trip through a file, and refused with a cure where it is damaged."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_parties import plan_of, step_plan, steps
from offline_samples import CUBES, ITEMS, RECIPROCAL, name

from mpc.bilinear import MATMUL, MULTIPLY, Bilinear
from mpc.cases import Case, cases
from mpc.correlations import (
    ChoiceNoise,
    Correlation,
    LineMask,
    LookupMask,
    ProductMask,
    SquareMask,
    TruncationMask,
    layout,
)
from mpc.curves import Curve, Reciprocal, Table, indicator
from mpc.errors import ConfigError
from mpc.session import Session
from offline import Plan, Recorder
from offline.plan import describe


def again(plan: Plan) -> Plan:
    return Plan.parse(plan.text(), "a file")


@pytest.mark.parametrize("item", ITEMS, ids=name)
def test_every_kind_survives_a_file(item: Correlation) -> None:
    plan = Plan("one", 3, (item,))
    back = again(plan)
    assert back == plan and back.items[0] == item and hash(back.items[0]) == hash(item)
    assert type(back.items[0]) is type(item) and describe(back.items[0]) == describe(item)
    assert (back.text(), back.digest, back.step_bytes) == (plan.text(), plan.digest, plan.step_bytes)
    assert layout(back.items[0]) == layout(item)


def test_tables_curves_and_maps_survive_with_their_content() -> None:
    table = Table(np.array([1, 2**64 - 1, 0, 7], np.uint64))
    einsum = Bilinear("ab,bc->ca")
    plan = Plan(
        "p", 2, (LookupMask((3,), table), RECIPROCAL, ProductMask(einsum, (2, 3), (3, 4)), LookupMask((), table))
    )
    lookup, line, product, other = again(plan).items
    assert isinstance(lookup, LookupMask) and lookup.table.values.tolist() == [1, 2**64 - 1, 0, 7]
    assert isinstance(line, LineMask) and line.curve == Reciprocal(1.0) and isinstance(line.curve, Reciprocal)
    assert isinstance(product, ProductMask) and product.op == einsum
    assert isinstance(other, LookupMask) and other.table is lookup.table
    assert list(json.loads(plan.text())["tables"]) == [table.digest]


@given(st.floats(0, 1), st.integers(1, 62))
def test_parameters_survive_to_the_last_bit(eps: float, high: int) -> None:
    (item,) = again(Plan("p", 2, (ChoiceNoise((4,), eps, high),))).items
    assert isinstance(item, ChoiceNoise) and item.eps == eps and item.high == high


def test_numbers_of_numpy_are_written_as_numbers() -> None:
    item = TruncationMask((np.int64(3), 2), np.int64(20))  # type: ignore[arg-type]
    noise = ChoiceNoise((4,), np.float64(0.1), 16)
    assert again(Plan("p", 2, (item, noise))) == Plan("p", 2, (TruncationMask((3, 2), 20), ChoiceNoise((4,), 0.1, 16)))


def test_digests_tell_plans_apart() -> None:
    items = (
        *ITEMS,
        LookupMask((3,), Table(np.arange(16, dtype=np.uint64))),
        LineMask((), Reciprocal(1.25), 9, 30, 9, 4, 1 << 9),
    )
    plans = [Plan("p", 2, (item,)) for item in items]
    plans += [
        Plan("q", 2, items),
        Plan("q", 3, items),
        Plan("q", 2, items[::-1]),
        Plan("q", 2, items[1:]),
        Plan("q", 2, ()),
    ]
    assert len({plan.digest for plan in plans}) == len(plans)
    assert len({describe(item) for item in items}) == len(items)


def test_a_dry_run_notes_what_a_step_draws_in_its_order(parties: int) -> None:
    plan = step_plan(parties)
    assert plan.items == (ProductMask(MULTIPLY, (3,), (3,)), TruncationMask((3,), 20))
    assert plan.parties == parties
    assert plan_of(steps(3), parties).items == plan.items * 3


def test_a_recorder_deals_while_it_notes(parties: int) -> None:
    recorder = Recorder(parties)
    a, c = recorder.draw(SquareMask((4,)))
    total = a.sum(axis=0, dtype=np.uint64)
    assert (c.sum(axis=0, dtype=np.uint64) == total * total).all() and recorder.items == [SquareMask((4,))]


def test_the_summary_counts_and_puts_the_largest_first() -> None:
    big, small = LookupMask((5,), indicator(1, 8)), SquareMask((2,))
    plan = Plan("p", 2, (small, big, small, small))
    assert plan.summary() == [(describe(big), 1, 5 * 256 * 8), (describe(small), 3, 3 * 16)]
    assert plan.step_bytes == sum(size for _, _, size in plan.summary())
    assert Plan("p", 2, ()).summary() == [] and Plan("p", 2, ()).step_bytes == 0


@pytest.mark.parametrize("item, words", [
    (ProductMask(MATMUL, (2, 3), (3, 2)), "ProductMask(op=matmul, x=(2, 3), y=(3, 2))"),
    (ProductMask(MULTIPLY, (2,), ()), "ProductMask(op=elementwise, x=(2,), y=())"),
    (LookupMask((3,), CUBES), f"LookupMask(shape=(3,), table=2^4 entries {CUBES.digest[:8]})"),
    (
        RECIPROCAL,
        "LineMask(shape=(), curve=Reciprocal from 1, in_scale=9, out_scale=30, bits=9, segments=4, last=512, step=0)",
    ),
])  # fmt: skip
def test_items_are_described_in_a_line(item: Correlation, words: str) -> None:
    assert describe(item) == words


@pytest.mark.parametrize("case", cases(quick=True), ids=lambda case: case.name)
def test_the_plan_of_every_operation_survives(case: Case) -> None:
    values = case.inputs(np.random.default_rng(1))

    def run(session: Session) -> None:
        session.run(case.program(session, *case.share(session, values)))

    plan = plan_of(run, 2, case.name)
    assert plan.items
    assert again(plan) == plan and again(plan).digest == plan.digest
    assert plan_of(run, 2, case.name).digest == plan.digest, "two dry runs make two plans"
    assert sum(count for _, count, _ in plan.summary()) == sum(Counter(plan.items).values()) == len(plan.items)


def test_files(tmp_path: Path) -> None:
    plan = step_plan(3)
    plan.save(tmp_path / "plan.json")
    assert Plan.load(tmp_path / "plan.json") == plan
    with pytest.raises(ConfigError, match=r"cannot read the plan .*masked offline plan"):
        Plan.load(tmp_path / "none.json")
    with pytest.raises(ConfigError, match=r"cannot read the plan .*masked offline plan"):
        Plan.load(tmp_path)


def document(**changes: Any) -> str:
    whole = json.loads(Plan("p", 2, (LookupMask((3,), CUBES), RECIPROCAL, SquareMask((2,)))).text())
    return json.dumps({**whole, **changes})


SQUARE = {"kind": "SquareMask", "shape": [2]}
DAMAGED = {
    "empty": "",
    "no json": "{",
    "a list": "[]",
    "a number": "7",
    "too deep": "[" * 100_000,
    "another format": document(format="masked-bandits plan 1"),
    "no items": json.dumps({"format": "masked-bandits plan 3"}),
    "a comparison of too many bits": document(items=[{"kind": "SignTables", "shape": [2], "width": 65, "ring": 8}]),
    "a comparison of one bit": document(items=[{"kind": "SignTables", "shape": [2], "width": 1, "ring": 8}]),
    "a comparison mod 2^7": document(items=[{"kind": "SignTables", "shape": [2], "width": 9, "ring": 7}]),
    "items a number": document(items=3),
    "an item a number": document(items=[3]),
    "an item a list": document(items=[[1]]),
    "an unknown kind": document(items=[{"kind": "Mystery"}]),
    "a curve as an item": document(items=[{"kind": "Exponential", "lower": 0.0}]),
    "a missing parameter": document(items=[{"kind": "TruncationMask", "shape": [2]}]),
    "a superfluous parameter": document(items=[{**SQUARE, "bits": 3}]),
    "a shape of text": document(items=[{"kind": "SquareMask", "shape": "22"}]),
    "a shape of a number": document(items=[{"kind": "SquareMask", "shape": 2}]),
    "a shape of fractions": document(items=[{"kind": "SquareMask", "shape": [1.5]}]),
    "a negative axis": document(items=[{"kind": "SquareMask", "shape": [-2]}]),
    "a nested shape": document(items=[{"kind": "SquareMask", "shape": [[2]]}]),
    "bits beyond a word": document(items=[{"kind": "AndMask", "x": [1], "y": [1], "bits": 65}]),
    "bits a fraction": document(items=[{"kind": "AndMask", "x": [1], "y": [1], "bits": 8.0}]),
    "shapes that do not fit": document(items=[{"kind": "ProductMask", "op": {"bilinear": ""}, "x": [2], "y": [3]}]),
    "no bilinear map": document(items=[{"kind": "ProductMask", "op": {"bilinear": "abc"}, "x": [2], "y": [2]}]),
    "an unknown table": document(tables={}),
    "a table of another digest": document(tables={CUBES.digest: "AAAAAAAAAAABAAAAAAAAAA=="}),
    "a table that is no text": document(tables={CUBES.digest: "?!"}),
    "a table of three": document(tables={CUBES.digest: "AAAA" * 8}),
    "a curve at its pole": document(
        items=[{**json.loads(document())["items"][1], "curve": {"kind": "Reciprocal", "lower": -1.0}}]
    ),
    "parties as text": document(parties="2"),
    "one party": document(parties=1),
    "a program that is no text": document(program=7),
}


def test_the_document_of_these_cases_is_sound() -> None:
    assert len(Plan.parse(document(), "a file").items) == 3


@pytest.mark.parametrize("text", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_plan_is_refused_with_the_cure(text: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(ConfigError, match=rf"{file} is .*make it with 'masked offline plan'"):
        Plan.load(file)


def test_a_plan_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_bytes(b"\xff\xfe\x00" * 20)
    with pytest.raises(ConfigError, match="damaged"):
        Plan.load(tmp_path / "plan.json")


@given(st.data())
def test_a_cut_plan_is_refused(data: Any) -> None:
    text = step_plan(2).text()
    with pytest.raises(ConfigError, match="masked offline plan"):
        Plan.parse(text[: data.draw(st.integers(0, len(text) - 1))], "a file")


def test_a_curve_without_a_name_in_the_book_is_refused_when_it_is_written() -> None:
    class Sine(Curve):
        def __call__(self, x: np.ndarray) -> np.ndarray:
            return np.sin(x)

    with pytest.raises(ConfigError, match="Sine"):
        Plan("p", 2, (LineMask((), Sine(), 9, 30, 9, 4, 1 << 9),)).text()
