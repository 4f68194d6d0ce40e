"""The command line as a user meets it: in processes of their own, with their exit codes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from protocols.cli import main
from protocols.run import release
from tests.parties.processes import ended, free_port

from .harness import LIMIT, ROOT, awaited, children, finished, started, without_progress

SYSTEMS = ["ppcb", "samba", "linucb_ds", "helba"]


def refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    """A user's mistake: exit code 2, the cure on stderr, no traceback."""
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize(
    ("words", "loaded"),
    [
        ("run ppcb", {"ppcb"}), ("offline plan samba", {"samba"}), ("attack helba", {"helba"}),
        ("launch argmax", set()), ("dealer", set()), ("demo", set()), ("run", set(SYSTEMS)),
    ],
)  # fmt: skip
def test_a_command_loads_the_programs_that_it_names(words: str, loaded: set[str]) -> None:
    script = (
        "import contextlib, os, sys\n"
        "from protocols.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(open(os.devnull, 'w')):\n"
        f"    main({[*words.split(), '--help']})\n"
        f"print(*(name for name in {SYSTEMS} if 'protocols.' + name in sys.modules))"
    )
    done = finished(script, program=("-c",))
    assert set(done.stdout.split()) == loaded, done.stderr


@pytest.mark.parametrize("parties", [2, 3, 5])
def test_demo_finds_the_best_treatment_and_says_who_learned_it(parties: int) -> None:
    done = finished("demo", "--parties", str(parties), "--seed", "3")
    assert done.returncode == 0, done.stderr
    best = done.stdout.rsplit("best ", 1)[1].strip(". \n")
    for party in range(parties):
        lines = [line for line in done.stdout.splitlines() if line.startswith(f"party {party} | ")]
        assert any(f"the result            {best}" in line for line in lines)
        assert sum("ledger" in line for line in lines) == 1
        assert any("everyone learned best treatment (5 values)" in line for line in lines)


@pytest.mark.parametrize("how", [
    ("run",), ("launch",),
    pytest.param(("launch", "--transport", "gloo"), id="launch --transport gloo", marks=pytest.mark.needs("torch")),
], ids=" ".join)  # fmt: skip
def test_an_operation_gives_the_plaintext_result(how: tuple[str, ...]) -> None:
    command, *rest = how
    done = finished(command, "argmax", "--size", "7", "--parties", "2", "--steps", "3", "--json", *rest)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["max_error"] == 0
    assert document["rounds_per_step"] == 5
    assert document["ledger"] == [
        {"role": "everyone", "what": "result", "count": 21, "why": "the run compares it with plaintext"}
    ]


def test_material_is_planned_dealt_inspected_used_and_runs_out(tmp_path: Path) -> None:
    plan, home = tmp_path / "plan.json", tmp_path / "material"
    assert finished("offline", "plan", "argmax", "--parties", "2", "-o", str(plan)).returncode == 0
    dealt = finished("offline", "deal", str(plan), "--steps", "8", "--block-steps", "2", "--out", str(home))
    assert dealt.returncode == 0, dealt.stderr
    assert "8 of 8 steps are left" in finished("offline", "inspect", str(home / "party-0")).stdout
    used = finished("launch", "argmax", "--parties", "2", "--material", str(home), "--steps", "3")
    assert used.returncode == 0, used.stderr
    assert "4 of 8 steps are left" in finished("offline", "inspect", str(home / "party-1")).stdout
    refused(
        finished("launch", "argmax", "--parties", "2", "--material", str(home), "--steps", "5"),
        "SignTables", "4 steps of 'argmax/10' are left, 5 wanted", "masked offline deal",
    )  # fmt: skip
    refused(finished("offline", "deal", str(plan), "--steps", "8", "--out", str(home)), "exists")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "argmax", "--parties", "1"), ("at least 2 parties",)),
        (("run", "argmax", "--steps", "0"), ("at least 1 step",)),
        (("run", "argmax", "--size", "0"), ("1 to 1000 arms",)),
        (("run", "product", "--size", "7"), ("comes in size 1000",)),
        (("run", "nonsense"), ("invalid choice", "argmax")),
        (("run", "argmax", "--material", "x"), ("masked launch",)),
        (("launch", "argmax", "--material", "no-such-folder"), ("masked offline deal",)),
        (("offline", "inspect", "no-such-folder"), ("no store", "masked offline deal")),
        (("offline", "deal", "no-such-plan", "--steps", "3", "--out", "x"), ("masked offline plan",)),
        (("demo", "--parties", "1"), ("2 to 16 clinics",)),
        (("demo", "--seed", "-1"), ("a seed is a whole number from 0",)),
        (("run", "ppcb", "--eps", "1.5"), ("probability",)),
        (("run", "ppcb", "--data", "nonsense"), ("digits",)),
        (("run", "ppcb", "--data", "mnist"), ("--data",)),
        (("launch", "ppcb", "--parties", "30"), ("owns at least one",)),
        ((), ("COMMAND",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else str(value),
)
def test_a_mistake_is_one_clear_line(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    refused(finished(*arguments), *words)


def test_help_teaches() -> None:
    done = finished("--help")
    assert done.returncode == 0
    assert "masked launch argmax" in done.stdout


@pytest.mark.needs("torch")
def test_torchrun_starts_parties(tmp_path: Path) -> None:
    plan, home = tmp_path / "plan.json", tmp_path / "material"
    finished("offline", "plan", "product", "--parties", "2", "-o", str(plan))
    finished("offline", "deal", str(plan), "--steps", "2", "--out", str(home))
    done = finished(
        "--master-addr", "127.0.0.1", "--master-port", free_port(), "--nproc-per-node", "2",
        "-m", "protocols", "product", "--material", str(home), "--json",
        program=("-m", "torch.distributed.run"),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["parties"] == 2
    assert "destroy_process_group" not in done.stderr


@pytest.mark.parametrize("how", ["run", "launch"])
def test_the_private_bandit_prints_its_contract(how: str) -> None:
    done = finished(
        how, "ppcb", "--data", "synthetic", "--arms", "5", "--dim", "6", "--steps", "40", "--parties", "2",
        "--eps", "0.2", "--seed", "3", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["first_difference"] is None
    assert document["average_reward"] == document["twin_average_reward"]
    assert document["rounds_per_step"] == 12
    assert document["client_hops_per_step"] == 2
    assert document["eta_per_step"] == pytest.approx(3.0445, abs=1e-4)
    assert document["ledger"] == [
        {"role": "puller", "what": "arm", "count": 40, "why": "it is pulled"},
        {"role": "payer", "what": "reward", "count": 40, "why": "its own input"},
    ]
    assert {"steps", "parties", "arms", "dim", "eps", "seed", "bytes_per_step_per_party", "seconds_per_step",
            "offline_bytes_per_step", "offline_seconds_per_step"} <= document.keys()  # fmt: skip


@pytest.mark.needs("matplotlib")
def test_the_private_bandit_draws_its_reward_curve(tmp_path: Path) -> None:
    picture = tmp_path / "new" / "reward.png"
    done = finished("run", "ppcb", "--data", "synthetic", "--steps", "30", "--parties", "2", "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "puller" in done.stdout and "30 x arm" in done.stdout
    assert "4.511-differentially private" in done.stdout


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_party_that_is_ended_is_said_once_and_takes_the_launch_along(how: signal.Signals) -> None:
    """The dealer, which loses that party too, says nothing."""
    with started("launch", "argmax", "--parties", "2", "--steps", "1000000") as launcher:
        parties = awaited(lambda: both if len(both := children(launcher.pid, "run", "argmax")) == 2 else [])
        os.kill(parties[1], how)
        _, said = launcher.communicate(timeout=LIMIT)
    assert launcher.returncode == 2
    errors = without_progress(said)
    assert len(errors) == 1 and errors[0].startswith("error: party 1 "), said
    assert not any(Path(f"/proc/{party}").exists() for party in parties)


CLASSIC = [
    "launch",
    "linucb-ds",
    "--mode",
    "classic",
    "--bits",
    "1024",
    "--dim",
    "2",
    "--arms",
    "3",
    "--budget",
    "3000",
    "--json",
]


def under_way(launcher: subprocess.Popen[str], temporary: Path) -> list[int]:
    """Its processes, once all have what they are given."""
    awaited(lambda: launcher.poll() is not None or list(temporary.glob("masked-*/cast.json")))
    assert launcher.poll() is None, launcher.communicate()
    roles = awaited(lambda: four if len(four := children(launcher.pid, "protocols.published.participant")) == 4 else [])
    awaited(lambda: launcher.poll() is not None or not list(temporary.glob("masked-*/*.in.json")))
    return roles


@pytest.mark.needs("phe", "gmpy2")
@pytest.mark.parametrize(
    ("signals", "code"),
    [([signal.SIGINT] * 3, 130), ([signal.SIGQUIT], 131)],
    ids=["Ctrl-C thrice", "SIGQUIT"],
)
def test_a_launch_that_is_ended_leaves_no_process_and_no_temporary_file(
    signals: list[signal.Signals], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with started(*CLASSIC) as launcher:
        roles = under_way(launcher, tmp_path)
        for how in signals:
            launcher.send_signal(how)
        _, said = launcher.communicate(timeout=LIMIT)
    assert launcher.returncode == code and "Traceback" not in said, said
    assert list(tmp_path.iterdir()) == []
    assert all(ended(pid) for pid in roles)


@pytest.mark.needs("phe", "gmpy2")
def test_what_a_killed_launcher_leaves_goes_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with started(*CLASSIC) as launcher:
        roles = under_way(launcher, tmp_path)
        launcher.kill()
    assert all(ended(pid) for pid in roles)
    assert list(tmp_path.glob("masked-*/cast.json"))
    assert finished("launch", "square", "--parties", "2").returncode == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.needs("phe", "gmpy2")
def test_ctrl_c_ends_a_launch_in_the_background(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With SIGINT ignored, which its processes inherit."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with started(*CLASSIC, deaf=True) as launcher:
        roles = under_way(launcher, tmp_path)
        launcher.send_signal(signal.SIGINT)
        _, said = launcher.communicate(timeout=LIMIT)
    assert launcher.returncode == 130 and said.splitlines()[-1] == "stopped", said
    assert all(ended(pid) for pid in roles)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("evalute log.csv", "masked: argument COMMAND: invalid choice: 'evalute': did you mean evaluate?"),
        ("pcb", "masked run: argument PROGRAM: invalid choice: 'pcb': did you mean ppcb?"),
        ("--verson", "masked: there is no --verson: did you mean --version?"),
    ],
)
def test_a_slip_in_the_first_word_is_seen(words: str, said: str) -> None:
    refused(finished(*words.split()), said)


def test_code_that_is_not_installed_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    def missing(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", missing)
    monkeypatch.setattr(release, "version", missing)
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and capsys.readouterr().out == "masked not installed\n"


@pytest.mark.parametrize(("given", "then"), [(None, "1"), ("3", "3")])
def test_it_computes_with_one_thread_unless_told(
    given: str | None, then: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    if given is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", given)
    script = "import os, protocols.__main__ as it\ntry: it.main()\nfinally: print(os.environ['OMP_NUM_THREADS'])"
    done = subprocess.run(
        [sys.executable, "-c", script, "--version"], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.splitlines()[1:] == [then]
