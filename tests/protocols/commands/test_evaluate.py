"""`masked evaluate`: a log of one's own, its table, its document, and mistakes in one line."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from protocols.cli import main

COLUMNS = ["--context", "age,bp,dose", "--action", "drug", "--reward", "cured"]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    lines = ["age;bp;dose;drug;cured;p"]
    for _ in range(120):
        arm, age = rng.integers(0, 2), rng.normal(60, 10)
        paid = int(rng.random() < (0.8 if (age > 60) == arm else 0.2))
        lines.append(f"{age:.1f};{rng.integers(90, 160)};{rng.random():.2f};{'ab'[arm]};{paid};0.5".replace(".", ","))
    path = tmp_path / "trial.csv"
    path.write_text("\ufeff" + "\r\n".join(lines) + "\r\n")
    return path


def greedy(path: Path) -> list[str]:
    """A log of 200 rows, of which the first 60 have two of four arms; and the words that judge it."""
    rng = np.random.default_rng(2)
    best = rng.integers(0, 2, 200)
    arms = np.where(rng.random(200) < 0.3, rng.integers(0, 4, 200), best)
    arms[:60] = best[:60]
    rows = [f"{at % 7},{arm},{rng.integers(0, 2)},{int(arm == top)}" for at, (arm, top) in enumerate(zip(arms, best))]
    path.write_text("\n".join(["x0,arm,reward,best", *rows[:60], "1,,1,0", *rows[60:]]))
    return ["evaluate", str(path), "--greedy", "best", "--logged-eps", "0.3", "--owners", "1,0", "--rows", "60"]


@pytest.mark.parametrize(("more", "arms"), [([], 4), (["--arms", "6"], 6), (["--arms", "2"], 2)])
def test_propensities_are_of_all_arms_that_the_logger_had(
    more: list[str], arms: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """On shares too, where it had more than are in the rows that are read."""
    main([*greedy(tmp_path / "log.csv"), *more, "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["smallest_propensity"] == pytest.approx(0.7 + 0.3 / arms) and found["arms"] == ["0", "1"]
    assert found["notes"][-1].startswith(f"propensities are of a logger with {arms} arms: if it had more")
    assert found["shares_differ_by"] < 1e-4


@pytest.mark.needs("matplotlib")
def test_a_log_from_excel(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = log.with_suffix(".png")
    main(["evaluate", str(log), *COLUMNS, "--propensity", "p", "--owners", "2,1", "--plot", str(plot)])
    said = capsys.readouterr().out
    for words in ("120 rows", "first 60 rows", "byte order mark", "smallest propensity 0.5", "the private bandit",
                  "effective rows", "everyone  3 x estimate by IPS, SNIPS, DR"):  # fmt: skip
        assert words in said
    assert plot.stat().st_size > 1000


def test_a_log_without_propensities_is_replayed_in_the_clear(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(log), *COLUMNS])
    assert left.value.code == 2 and "--in-the-clear" in capsys.readouterr().err
    main(["evaluate", str(log), *COLUMNS, "--in-the-clear", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert {each["estimator"] for each in found["findings"]} == {"average", "replay"} and found["ledger"] == []
    assert found["arms"] == ["a", "b"] and found["judged_on"] == 60


def test_parquet_without_its_extra_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "log.parquet").write_bytes(b"PAR1....PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(tmp_path / "log.parquet"), *COLUMNS])
    assert left.value.code == 2 and "'masked-bandits[parquet]'" in capsys.readouterr().err


@pytest.mark.parametrize("size", [1.0, 1e6, 1e9, -3.21e6, -1.234e-7])
def test_its_table_stands_in_60_columns(size: float, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever rewards amount to, and however long the name of an arm."""
    lines = log.read_text().splitlines()
    rows = [line.split(";") for line in lines[1:] if line]
    rows = [[*row[:3], row[3] * 70 + " b", f"{size * int(row[4]):.9f}".replace(".", ","), row[5]] for row in rows]
    log.write_text("\n".join([lines[0], *(";".join(row) for row in rows)]))
    main(["evaluate", str(log), *COLUMNS, "--propensity", "p"])
    said = capsys.readouterr().out.splitlines()
    start = next(at for at, line in enumerate(said) if line.startswith("  by"))
    table = said[start : said.index("", start)]
    assert max(map(len, table)) <= 60 and len(table) == 1 + 5 + 13 + 3
    assert next(line for line in table if not line.startswith("  ")) == "the log's own"
    assert sum(line.endswith("...") for line in table) == 1


def test_an_arm_of_two_lines_is_one_in_the_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.csv"
    path.write_text("age,drug,cured\n" + '1,"two\nlines",1\n2,b,0\n' * 20)
    main(["evaluate", str(path), "--context", "age", *COLUMNS[2:], "--owners", "1,0", "--in-the-clear"])
    assert "\nalways two lines\n" in capsys.readouterr().out


def test_what_is_left_out_of_the_difference_is_said(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text(log.read_text().replace(";0,5", ";0,05"))
    main(["evaluate", str(log), *COLUMNS, "--propensity", "p"])
    assert "at most, without SNIPS, which has no number" in capsys.readouterr().out
    main(["evaluate", str(log), *COLUMNS, "--propensity", "p", "--json"])
    assert json.loads(capsys.readouterr().out)["shares_differ_without"] == ["snips"]


@pytest.mark.parametrize("context", ['"age, years",bp', 'bp, "age, years"'])
def test_a_name_with_a_comma_is_quoted(context: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.write_text(log.read_text().replace("age;", '"age, years";', 1))
    main(["evaluate", str(log), "--context", context, *COLUMNS[2:], "--in-the-clear", "--json"])
    assert sorted(json.loads(capsys.readouterr().out)["context"]) == ["age, years", "bp"]
    with pytest.raises(SystemExit):
        main(["evaluate", str(log), "--context", "years", *COLUMNS[2:], "--in-the-clear"])
    assert 'it has "age, years", bp, dose' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--action", "drug", "--reward", "cured"], "name the columns of the context with --context"),
        ([*COLUMNS, "--reward", "paid"], "no column 'paid': it has age, bp"),
        ([*COLUMNS, "--reward", "paid"], "name another with --reward"),
        (["--context", "age", "--reward", "cured"], "name another with --action"),
        ([*COLUMNS, "--context", "years"], "name another with --context"),
        ([*COLUMNS, "--greedy", "best", "--logged-eps", "0.1"], "name another with --greedy"),
        ([*COLUMNS, "--context", '"age'], "argument --context: names between commas"),
        ([*COLUMNS, "--context", "age", "--propensity", "bp"], "bp of line 2 is 1"),
        ([*COLUMNS, "--propensity", "q"], "no column 'q'"),
        ([*COLUMNS, "--propensity", "q"], "name another with --propensity"),
        ([*COLUMNS, "--propensity", "p", "--owners", "2,2"], "do not add up to the 3"),
        ([*COLUMNS, "--propensity", "p", "--owners", "3"], "at least 2 owners"),
        ([*COLUMNS, "--propensity", "age"], "'age' is named twice"),
        ([*COLUMNS, "--context", "age", "--propensity", "bp"], "propensities are the chances"),
        ([*COLUMNS, "--greedy", "cured"], "belong together"),
        ([*COLUMNS, "--propensity", "p", "--arms", "3"], "--arms belongs to --greedy"),
        ([*COLUMNS, "--greedy", "cured", "--logged-eps", "0.1", "--arms", "1"], "had the 2 of the log at least"),
        ([*COLUMNS, "--propensity", "p", "--learn", "1"], "lies between 0 and 1"),
        ([*COLUMNS, "--propensity", "p", "--rows", "1"], "read at least 3"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], said: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(log), *words])
    told = capsys.readouterr().err
    assert left.value.code == 2 and said in told and told.count("\n") == 1


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "has an arm 10,000,000,007: number arms from 0, 1,000 of them at most"),
        (["--context", "age"], "no columns: leave out --context"),
        (["--action", "arm"], "leave out --action"),
        (["--reward", "paid"], "leave out --reward"),
        (["--propensity", "q"], "leave out --propensity"),
        (["--greedy", "best", "--logged-eps", "0.1", "--rows", "9"], "leave out --greedy"),
    ],
)
def test_what_an_archive_has_no_use_for_is_one_line(
    more: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = np.arange(20) % 2 * 10**10 + 7
    np.savez(tmp_path / "log.npz", contexts=np.ones((20, 2)), arms=arms, rewards=np.ones(20))
    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(tmp_path / "log.npz"), "--in-the-clear", *more])
    told = capsys.readouterr().err
    assert left.value.code == 2 and said in told and told.count("\n") == 1
    np.savez(tmp_path / "log.npz", contexts=np.ones((20, 2)), arms=np.arange(20) % 2 * 999, rewards=np.ones(20))
    main(["evaluate", str(tmp_path / "log.npz"), "--in-the-clear", "--owners", "1,1"])


@pytest.mark.parametrize(
    ("chance", "more"), [("0.5", ["--ridge", "1e-300"]), ("0.5", ["--ridge", "1e-30"]), ("1e-9", [])]
)  # fmt: skip
def test_what_leaves_no_room_is_told_with_its_own_options(
    chance: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path := tmp_path / "log.csv").write_text(
        "x0,x1,arm,reward,p\n" + "".join(f"0.{at},0.5,{at % 2},{at % 3 % 2},{chance}\n" for at in range(1, 40))
    )
    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(path), "--propensity", "p", "--owners", "1,1", *more])
    said = capsys.readouterr().err.splitlines()[-1]
    assert left.value.code == 2 and said.startswith("error: ") and "leave a word no room: choose --ridge" in said
    assert "steps" not in said and "declare" not in said
