"""`masked serve` from the command line: the examples of its page, its end, and what is refused in a line."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from protocols.cli import main
from protocols.run.folder import reserved

from ..harness import ROOT

pytestmark = pytest.mark.needs("starlette", "uvicorn")
PAGE = (ROOT / "docs" / "service.md").read_text()
MASKED = [sys.executable, "-m", "protocols"]


@contextmanager
def started(words: list[str], folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process, and where it listens."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [*MASKED, *words, "--listen", "127.0.0.1:0"], cwd=folder, stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if found := re.search(r"http://(127\.0\.0\.1:\d+)/docs says what is asked", line):
                yield process, found.group(1)
                return
        raise AssertionError(said)
    finally:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


def test_the_examples_of_the_page_run_and_its_end_is_in_order(tmp_path: Path) -> None:
    command = re.search(r"^masked (serve --try .*--make-tokens)$", PAGE, re.M)
    shell = re.search(r"^```bash\n(.*?)^```$", PAGE, re.M | re.S)
    assert command is not None and shell is not None
    with started(command.group(1).split(), tmp_path) as (process, address):
        text = shell.group(1).replace("127.0.0.1:7780", address)
        done = subprocess.run(
            ["bash", "-euc", text], cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
        )
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        assert [json.loads(line) for line in lines[:3]] == [{"received": 1}] * 3
        told = json.loads(lines[3])
        assert told["decision_id"] == 0 and told["arm"] in ("ibuprofen", "naproxen", "paracetamol")
        assert json.loads(lines[4]) == {"learned": 1} and json.loads(lines[5])[0]["what"] == "arm"
        assert "masked_serve_decisions_total 1" in lines
        process.send_signal(signal.SIGTERM)
        assert process.wait(300) == 128 + signal.SIGTERM
    assert stat.S_IMODE((tmp_path / "trial" / "tokens" / "payer.token").stat().st_mode) == 0o600
    again = tmp_path / "trial"
    with started(["serve", "--try", "--folder", str(again), "--batch", "2"], tmp_path) as (process, _):
        process.send_signal(signal.SIGINT)
        assert process.wait(300) == 130
    assert not (again / "lock").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--folder a", "say --try, with all parties"),
        ("--try --config a.toml", "say --try, with all parties"),
        ("--try", "--try takes --folder"),
        ("--try --folder a --resume", "--resume is with --config"),
        ("--config a.toml --arms 3", "--arms is with --try: what a role between machines is, its file says, a.toml"),
        ("--config a.toml --most-unpaid 3", "--most-unpaid is with --try"),
        ("--config a.toml", "a.toml cannot be read"),
        ("--try --folder a", "say --arms and --owners"),
        ("--try --folder a --arms 3 --owners 2,1", "owner-0.token is missing"),
        (
            "--try --folder a --arms 3 --owners 2,1 --no-tokens --listen 0.0.0.0:0",
            "without tokens only this machine may ask",
        ),
        ("--try --folder a --arms 3 --owners 2,1 --listen 0.0.0.0:" + "1" * 5000, "--listen is HOST:PORT"),
        ("--try --folder a --arms 3 --owners 2,1 --no-tokens --listen a..b:0", "--listen is HOST:PORT"),
        ("--try --folder a --arms 3 --owners 2,1 --listen 7780", "--listen is HOST:PORT"),
        ("--try --folder a --arms 1 --owners 2,1", "at least 2 arms"),
        ("--try --folder a --arms x,x --owners 2,1", "two arms are called ...: give each a name"),
        ("--try --folder a --arms x,y --owners 3", "at least 2 parties"),
        ("--try --folder a --arms 3 --owners 2,1 --batch 0", "--batch is at least 1"),
        ("--try --folder a --arms 3 --owners 2,1 --alpha 2", "--alpha is of --policy linucb and thompson"),
        ("--try --folder a --arms 3 --owners 2,1 --no-tokens --make-tokens", "leave out --tokens and --make-tokens"),
        ("--try --folder a --arms 3 --owners 2,1 --no-tokens --tokens t", "leave out --tokens and --make-tokens"),
        ("--config a.toml --listen 127.0.0.1:7780", "--listen is with --try"),
        ("--config a.toml --batch 64", "--batch is with --try"),
        ("--config a.toml --eps 0", "--eps is with --try"),
        ("--config a.toml --no-tokens", "--no-tokens is with --try"),
        ("--try --folder a --arms 3 --owners 2,1 --reward-range 0,1e-9", "rewards that differ by 1e-09 at most are"),
        ("--try --folder a --arms 3 --owners 2,b", "numbers of features, such as 2,1,1"),
        ("--try --folder a --arms 3, --owners 2,1", "their names with commas between them"),
    ],
)
def test_what_is_refused_is_one_line(
    words: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(["serve", *words.split()])
    lines = capsys.readouterr().err.splitlines()
    assert caught.value.code == 2 and said in lines[-1], lines


def test_a_second_service_of_a_folder_is_told_of_the_option_that_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with reserved(tmp_path), pytest.raises(SystemExit) as caught:
        main(["serve", "--try", "--folder", str(tmp_path), "--arms", "3", "--owners", "2,1", "--no-tokens"])
    told = json.loads(capsys.readouterr().err.splitlines()[-1])["message"]
    assert caught.value.code == 2
    assert told == f"process {os.getpid()} has a run in {tmp_path}: wait for its end, or choose another --folder"


def test_it_listens_on_this_machine_unless_told_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    where = list[tuple[str, int]]()

    def noted(_: Any, address: tuple[str, int], **__: Any) -> None:
        where.append(address)

    monkeypatch.setattr("mpc.net.web.serve", noted)
    words = ["--arms", "2", "--owners", "1,1", "--batch", "1", "--make-tokens"]
    main(["serve", "--try", "--folder", str(tmp_path), *words])
    assert where == [("127.0.0.1", 7780)]


def test_its_limit_is_of_rewards_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--help"])
    assert "contexts and rewards that may wait (4,096)" in " ".join(capsys.readouterr().out.split())
