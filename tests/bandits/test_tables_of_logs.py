"""Tables as pandas, Excel and R write them: read without being told how, or refused with what to change."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.columns import NamedLog, log_of
from bandits.csv_table import TableError
from bandits.scaling import crowded, scale
from bandits.tables import table_of

AGES, DRUGS, PAID = [63.5, 41.0, 70.25], ["b", "a", "b"], [1.0, 0.0, 1.0]
FILES = {
    "plain": b"age,drug,cured\n63.5,b,1\n41,a,0\n70.25,b,1\n",
    "pandas": b",age,drug,cured\n0,63.5,b,True\n1,41.0,a,False\n2,70.25,b,True\n",
    "excel": "\ufeffage;drug;cured\r\n63,5;b;1\r\n41;a;0\r\n70,25;b;1\r\n".encode(),
    "excel with a hint": b"sep=;\r\nage;drug;cured\r\n63,5;b;1\r\n41;a;0\r\n70,25;b;1\r\n",
    "excel, unicode text": "age\tdrug\tcured\r\n63,5\tb\t1\r\n41\ta\t0\r\n70,25\tb\t1\r\n".encode("utf-16"),
    "R, write.csv": b'"","age","drug","cured"\n"1",63.5,"b",TRUE\n"2",41,"a",FALSE\n"3",70.25,"b",TRUE\n',
    "R, write.csv2": b'"";"age";"drug";"cured"\n"1";63,5;"b";1\n"2";41;"a";0\n"3";70,25;"b";1\n',
    "R, write.table": b'"age" "drug" "cured"\n"1" 63.5 "b" 1\n"2" 41 "a" 0\n"3" 70.25 "b" 1\n',
    "quoted decimals": b'age,drug,cured\n"63,5",b,1\n"41",a,0\n"70,25",b,1\n',
    "a last delimiter": b"age,drug,cured,\n63.5,b,1,\n41,a,0,\n70.25,b,1,\n",
}


def log(source: Any, **more: Any) -> NamedLog:
    return log_of(table_of(source), context=["age"], action="drug", reward="cured", **more)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", FILES)
def test_a_csv_of_any_usual_kind(kind: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(gzip.compress(FILES[kind]) if packed else FILES[kind])
    found = log(path)
    assert found.log.contexts.tolist() == [[age] for age in AGES] and found.log.rewards.tolist() == PAID
    assert found.arms == ("a", "b") and found.log.arms.tolist() == [1, 0, 1]
    assert any("row names" in note for note in found.notes) == (kind == "pandas" or kind.startswith("R,"))


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_bytes("age;drug;cured\n1,5;caf\u00e9;1\n2;th\u00e9;0\n".encode("cp1252"))
    found = log(tmp_path / "log.csv")
    assert found.arms == ("caf\u00e9", "th\u00e9") and "Windows-1252" in found.notes[0]


def test_json_lines_and_frames(tmp_path: Path) -> None:
    lines = [f'{{"age": {a}, "drug": "{d}", "cured": {int(r)}}}' for a, d, r in zip(AGES, DRUGS, PAID)]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    (tmp_path / "log.json").write_text(f"[{','.join(lines)}]")
    frame = {"age": np.array(AGES), "drug": np.array(DRUGS, object), "cured": np.array(PAID, bool)}
    for source in (tmp_path / "log.jsonl", tmp_path / "log.json", frame):
        found = log(source)
        assert found.log.contexts[:, 0].tolist() == AGES and found.arms == ("a", "b")
    (tmp_path / "deep.jsonl").write_text('{"c": {"x": [1, 2]}, "drug": 3, "cured": 0}\n' * 2)
    assert table_of(tmp_path / "deep.jsonl").names == ["c.x.0", "c.x.1", "drug", "cured"]


def test_frames_and_parquet_of_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": AGES, "drug": DRUGS, "cured": PAID})
    assert log(frame).log.contexts[:, 0].tolist() == AGES
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "log.parquet")
    assert log(tmp_path / "log.parquet").log.arms.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"PK\x03\x04....", "workbook or a zip archive: save it as CSV"),
        (b"\x1f\x8b not packed", "damaged"),
        (b"age,drug,cured\n\x00\x01,b,1\n", "damaged or no text"),
        (b"age,drug,cured\n,b,1\n3,a,0\n", "age of line 2 is missing"),
        (b"age,drug,cured\nNA,b,1\n3,a,0\n", "age of line 2 is missing"),
        (b"age,drug,cured\n1,b,1\n3,,0\n", "drug of line 3 is missing"),
        (b"age,drug,cured\n1,b,1\n3,b,0\n", "has 'b' in every row"),
        (
            b"age,drug,cured\n1,b,yes\n3,a,no\n",
            "cured of line 2 is no number: 'yes'; write it as a number, or as true or false",
        ),
        (
            b'age,drug,cured\n"1,234,567",b,1\n"3,400,100",a,1\n',
            "is no number: '1,234,567'; write it without thousands",
        ),
        (b"age,drug,cured\n1,b,1\n3?,a,1\n", r"age of line 3 is no number: '3\?'"),
        (b'age,drug,cured\n"1,250",b,1\n"3,400",a,1\n', "with or without thousands"),
        (b"age;drug;cured\n1.250,5;b;1\n3,5;a;1\n", "with or without thousands"),
        (b"years,drug,cured\n1,b,1\n3,a,1\n", "no column 'age': it has years, drug, cured"),
        (b"age,drug,age,cured\n1,b,1,1\n3,a,1,1\n", "names column 'age' twice"),
        (b"age,drug,cured\n1,b,1\n\n3,a,1,7\n", "line 4 has 4 values for 3 columns"),
        (b"sep=,\nage,drug,cured\n1,b,1\n,a,1\n", "age of line 4 is missing"),
        (b'age,drug,cured\n1,"b\nb",1\n,a,1\n', "age of line 4 is missing"),
        (b"age,drug,cured\n1,b,1\n1e300,a,1\n", "age of line 3 is 1e[+]300, 1e[+]100 at most"),
        (b"age,drug,cured\n1,b,1\n1,a,-inf\n", "cured of line 3 is -inf, 1e[+]100 at most"),
        (b"age,drug,cured\n1,b,1\nnan,a,1\n", "age of line 3 is missing"),
        (b"age,drug,cured\nm,b,1\nNA,a,1\n", "age of line 3 is missing"),
        (b"age,drug,cured\nm,b,1\nNaN,a,1\n", "age of line 3 is missing"),
        *[
            (f"age,drug,cured\n1,b,1\n2,a,1\n3,{none},1\n".encode(), "drug of line 4 is missing")
            for none in ("NA", "NaN", "NULL", "n/a", "")
        ],
        (b"age,drug,cured\n1,10,1\n2,inf,1\n3,20,1\n", "drug of line 3 is 'inf', and others are numbers"),
    ],
)
def test_what_cannot_be_read_says_what_to_change(text: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(text)
    with pytest.raises(TableError, match=words):
        log(path)


def test_text_with_thousands_is_no_decimal_in_json_and_frames(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text('{"age": "900", "tag": "1,5"}\n{"age": "1,250", "tag": 2.5}\n')
    (tmp_path / "log.json").write_text('[{"age": "900"}, {"age": "1,250"}]')
    for source, place in (
        (tmp_path / "log.jsonl", "line 2"), (tmp_path / "log.json", "row 1"),
        ({"age": np.array(["900", "1,250"], object)}, "row 1"), ({"age": ["900", "1,250"]}, "row 1"),
    ):  # fmt: skip
        with pytest.raises(TableError, match=f"age of {place}.* is '1,250', with or without thousands: write it with"):
            table_of(source).numbers("age")
    assert table_of(tmp_path / "log.jsonl").numbers("tag").tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["9007199254740993", "1152921504606846977", "9007199254740992"], None),
        ([9007199254740993, 1152921504606846977, 9007199254740992], None),
        (["01", "1", "2"], ("01", "1", "2")),
        (["true", "false", "2"], ("2", "false", "true")),
        (["True", "False", "True"], ("False", "True")),
        (["10", "2", "-1"], ("-1", "2", "10")),
        ([1.0, 2.5, 10.0], ("1", "2.5", "10")),
        (["none", "a", "None"], ("None", "a", "none")),
        (["snan", "1", "nanny"], ("1", "nanny", "snan")),
    ],
)
def test_arms_that_are_written_apart_are_never_one(given: list[Any], names: tuple[str, ...] | None) -> None:
    """Numbers beyond 2^53 as well; what came as text keeps its name, and numbers stand in their order."""
    frame = {"age": [1] * len(given), "drug": np.array(given, object), "cured": [1] * len(given)}
    found = log(frame)
    assert found.arms == (names or tuple(map(str, sorted(map(int, given)))))
    wanted = [f"{each:g}" if isinstance(each, float) else str(each) for each in given]
    assert [found.arms[code] for code in found.log.arms] == wanted
    assert any("two arms, since they are written apart" in note for note in found.notes) == ("01" in given)


@pytest.mark.parametrize("none", [None, float("nan"), ""])
def test_an_arm_that_is_missing_is_no_arm(none: Any) -> None:
    for given in (["a", "b", none], [1, 2, none]):
        with pytest.raises(TableError, match=r"drug of row 2 \(counted from 0\) is missing"):
            log({"age": [1, 2, 3], "drug": np.array(given, object), "cured": [1, 0, 1]})
    with pytest.raises(TableError, match=r"age of row 1 \(counted from 0\) is missing"):
        log({"age": np.array(["m", none, "f"], object), "drug": [0, 1, 0], "cured": [1, 0, 1]})


@pytest.mark.parametrize("at", [0, 1, 300])
def test_a_propensity_that_is_none_is_named(at: int, tmp_path: Path) -> None:
    for bad in ("0", "1.5", "-0.5", "1e-300"):
        rows = [f"{i},{i % 2},1,{bad if i == at else 0.5}" for i in range(301)]
        (tmp_path / "log.csv").write_text("\n".join(["age,drug,cured,p", *rows]))
        with pytest.raises(TableError, match=f"p of line {at + 2} is {bad}: .* above 0 and at most 1"):
            log(tmp_path / "log.csv", propensity="p")
    rows = [f"{i},{i % 2},1,{2 if i == at else 1}" for i in range(301)]
    (tmp_path / "log.csv").write_text("\n".join(["age,drug,cured,p", *rows]))
    with pytest.raises(TableError, match=f"p of line {at + 2} is 2: .* holds 0 and 1"):
        log(tmp_path / "log.csv", greedy=("p", 0.1))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "it is nested too deep"),
        ('\n{"age": 1}\n' + '{"age":' * 2000 + "1" + "}" * 2000, "line 3 is nested too deep"),
        ('{"age": 1}\n\n{bad\n', "line 3 is no JSON"),
        ("1\n2\n", "line 1 is no object"),
        ('[{"age": 1}, 2]', r"row 1 \(counted from 0\) is no object"),
        ('{"age": {"0": 1, "1": 2}, "drug": {"0": "a", "1": "b"}}', "holds columns, not rows"),
        ('{"columns": ["age"], "index": [0], "data": [[1]]}', "holds columns, not rows"),
        ('{"age": 1}\n{"dose": 1}\n', "line 2 and line 1 differ in 'age'"),
        ("[]", "has no rows"),
    ],
)
def test_json_that_is_no_table_says_how_to_write_one(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "log.json").write_text(text)
    with pytest.raises(TableError, match=words) as refused:
        table_of(tmp_path / "log.json")
    assert "\n" not in str(refused.value) and ("orient=" in str(refused.value) or "differ" in words)


def test_text_is_a_feature_for_each_word_and_owners_count_columns() -> None:
    table = table_of({"age": [1, 2, 3], "ward": ["n", "s", "n"], "drug": [7, 9, 7], "cured": [0, 1, 1]})
    found = log_of(table, context=["ward", "age"], action="drug", reward="cured")
    assert found.log.contexts.tolist() == [[1, 0, 1], [0, 1, 2], [1, 0, 3]] and found.arms == ("7", "9")
    assert found.features_of([1, 1]) == (2, 1) and found.features_of([2, 0]) == (3, 0)
    with pytest.raises(TableError, match="do not add up to the 2"):
        found.features_of([2, 1])
    many = {"ward": [f"w{i}" for i in range(60)], "drug": [0, 1] * 30, "cured": [1] * 60}
    with pytest.raises(TableError, match="60 different texts"):
        log_of(table_of(many), context=["ward"], action="drug", reward="cured")


def test_propensities_of_a_logger_that_explored() -> None:
    table = table_of({"age": [1, 2], "drug": [0, 1], "cured": [1, 0], "best": [True, False]})
    found = log_of(table, context=["age"], action="drug", reward="cured", greedy=("best", 0.2)).log
    assert found.propensities is not None and found.propensities.tolist() == [0.9, 0.1]
    found = log_of(table, context=["age"], action="drug", reward="cured", greedy=("best", 0.2), arms=4)
    assert found.log.propensities is not None and np.allclose(found.log.propensities, [0.85, 0.05])
    assert found.notes == ("propensities are of a logger with 4 arms: if it had more than the log, say so with --arms",)
    for arms in (1, -3, 10**400):
        with pytest.raises(TableError, match="had the 2 of the log at least, 1,000,000 at most"):
            log_of(table, context=["age"], action="drug", reward="cured", greedy=("best", 0.2), arms=arms)
    with pytest.raises(TableError, match="asked for where propensities follow from"):
        log_of(table, context=["age"], action="drug", reward="cured", arms=4)
    for eps in (0.0, 1e-320, 1.5, float("nan")):
        with pytest.raises(TableError, match=f"a probability above 0 and at most 1, not {eps:g}"):
            log_of(table, context=["age"], action="drug", reward="cured", greedy=("best", eps))


def test_each_owner_scales_its_own_columns_within_the_bound() -> None:
    rng = np.random.default_rng(1)
    raw = rng.normal([100, -3, 1e6], [20, 0.01, 1e5], (500, 3))
    raw[7] *= 50.0
    scaled, widths = scale(raw, (2, 0, 1), fitted=slice(0, 400), bound=0.5)
    assert widths == (3, 0, 1) and (scaled[:, 0] == scaled[0, 0]).all() and scaled[0, 0] > 0
    for block in (scaled[:, :3], scaled[:, 3:]):
        norms = np.linalg.norm(block, axis=1)
        assert norms.max() <= 0.5 * (1 + 1e-12) and norms.max() > 0.49
    other = raw.copy()
    other[:, 2] = 0.0  # another owner's numbers change nothing
    assert (scale(other, (2, 0, 1), fitted=slice(0, 400), bound=0.5)[0][:, :3] == scaled[:, :3]).all()


def test_a_column_is_crowded_where_few_rows_hold_nearly_all_of_it() -> None:
    rng = np.random.default_rng(1)
    usual = rng.normal(60, 10, 300)
    for cells in ([5], [5, 9], [5, 9, 11]):
        odd = usual.copy()
        odd[cells] = 1e9
        assert crowded(odd) == len(cells)
    odd[:4] = 1e9
    assert crowded(odd) == 0, "so many are a second kind of rows"
    rare = np.zeros(300)
    rare[:2] = 1.0
    for even in (usual, rare, np.full(300, 7.0), rng.random(300) < 0.5, rng.lognormal(0, 1, 300), rng.random(1)):
        assert crowded(np.asarray(even, float)) == 0
