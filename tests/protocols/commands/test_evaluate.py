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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--action", "drug", "--reward", "cured"], "name the columns of the context with --context"),
        ([*COLUMNS, "--reward", "paid"], "no column 'paid': it has age, bp"),
        ([*COLUMNS, "--propensity", "q"], "no column 'q'"),
        ([*COLUMNS, "--propensity", "p", "--owners", "2,2"], "do not add up to the 3"),
        ([*COLUMNS, "--propensity", "p", "--owners", "3"], "at least 2 owners"),
        ([*COLUMNS, "--propensity", "age"], "'age' is named twice"),
        ([*COLUMNS, "--context", "age", "--propensity", "bp"], "propensities are the chances"),
        ([*COLUMNS, "--greedy", "cured"], "belong together"),
        ([*COLUMNS, "--propensity", "p", "--learn", "1"], "lies between 0 and 1"),
        ([*COLUMNS, "--propensity", "p", "--rows", "1"], "read at least 3"),
    ],
)
def test_a_mistake_is_one_line(words: list[str], said: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["evaluate", str(log), *words])
    told = capsys.readouterr().err
    assert left.value.code == 2 and said in told and told.count("\n") == 1
