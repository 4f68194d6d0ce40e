"""The launcher: all processes come up, and all come down, however one of them ends."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import warnings
from pathlib import Path

import pytest

from mpc.errors import DEALER, ConfigError, OutOfMaterial, ProcessFailed
from mpc.launch import join, join_as_client, launch, party_main, place
from tests.parties.processes import ENVIRONMENT, PARTY, Launched, ended, gone, script

_HEAD = """
import os, signal, sys, threading
from pathlib import Path
from mpc.errors import *
from mpc.launch import join, join_as_client, party_main, place
from tests.parties.programs import *
me = place().node
"""
_LIGHT = "import json, os, sys, time; me = json.loads(os.environ['MASKED_PLACE'])['node']\n"  # up at once


def party(text: str) -> list[str]:
    """A party whose main function has this body."""
    body = "".join(f"    {line}\n" for line in text.strip().splitlines())
    return script(f"{_HEAD}def main():\n{body}party_main(main)\n")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a failure the others would not end by themselves: do not give them long."""
    monkeypatch.setattr("mpc.launch._GRACE", 0.3)


def test_each_party_runs_and_its_lines_are_handed_over(parties: int) -> None:
    launched = Launched([*PARTY, "to_one"], parties)
    assert launched.error is None
    assert sorted(launched.said) == [f"party {p}" for p in range(parties)]
    assert [launched.outcome(f"party {p}")["value"][1] for p in range(parties)] == [[3.0, -4.0]] * parties
    assert len(launched.pids) == parties
    assert all(gone(pid) for pid in launched.pids)


def test_without_a_callback_party_0_speaks(capfd: pytest.CaptureFixture[str]) -> None:
    launch(script("from mpc.launch import place; print('I am', place().node)"), 3, environment=ENVIRONMENT, limit=300)
    assert capfd.readouterr().out == "I am 0\n"


def test_each_process_is_given_its_own_keys_and_nothing_of_another_s() -> None:
    """Two parties and two clients, who do not meet; party 1 alone is told a word."""
    tells = script(
        "import json, os; from mpc.launch import place; here = place()\n"
        "print(json.dumps({'keys': here.keys.as_json(), 'word': os.environ.get('WORD'), 'all': str(dict(os.environ))}))"
    )
    launched = Launched(
        tells, 2, clients={"puller": tells, "payer": tells}, own_environments={1: {"WORD": "for party 1"}}
    )
    assert launched.error is None
    told = [launched.outcome(name) for name in ("party 0", "party 1", "puller", "payer")]
    assert [sorted(each["keys"]) for each in told] == [["1", "2", "3"], ["0", "2", "3"], ["0", "1"], ["0", "1"]]
    assert [each["word"] for each in told] == [None, "for party 1", None, None]
    for node, each in enumerate(told):
        for other, key in each["keys"].items():
            assert told[int(other)]["keys"][str(node)] == key
            assert [at for at in range(4) if key in told[at]["all"]] == sorted([node, int(other)])


def test_clients_are_launched_too() -> None:
    asks = script(
        _HEAD + "from mpc.client import *\n"
        "def asks():\n"
        "    yield Send([1.5, 2.0], 20)\n"
        "    return (yield Receive((2,), 20))\n"
        "print(serve(join_as_client(), asks()).tolist())"
    )
    serves = party("""
from mpc.rounds import Input, Reveal
def program(session):
    x = yield Input("patient", (2,), 20)
    yield Reveal(3 * x, "patient")
with seeded(join(), roles=("patient",)) as session:
    session.run(program(session))
""")
    launched = Launched(serves, 2, clients={"patient": asks})
    assert launched.error is None
    assert launched.said == {"patient": ["[4.5, 6.0]"]}


def test_a_client_that_is_killed_ends_all() -> None:
    dies = script(_HEAD + "link = join_as_client(); os.kill(os.getpid(), signal.SIGKILL)")
    serves = party("""
from mpc.rounds import Input
def program(session):
    yield Input("patient", (2,), 20)
with seeded(join(), roles=("patient",)) as session:
    try:
        session.run(program(session))
    except PeerLost as error:
        print(error.peer, error)
        raise
""")
    launched = Launched(serves, 3, clients={"patient": dies})
    assert str(launched.error) == "patient was ended by SIGKILL"
    for p in range(3):
        (line,) = launched.said[f"party {p}"]
        assert line.startswith("3 patient closed its connection")


@pytest.mark.parametrize("culprit", [0, 2])
def test_the_root_cause_is_shown_once(culprit: int) -> None:
    """The others lose their peer, and are witnesses."""
    text = f"""
with seeded(join()) as session:
    session.run(rounds(session, 3))
    if me == {culprit}:
        raise RangeError("values leave the declared bound")
    session.run(rounds(session, 3))
"""
    launched = Launched(party(text), 3)
    assert str(launched.error) == f"party {culprit} failed with exit code 2: values leave the declared bound"


def test_a_failure_is_handed_over_as_data_and_nodes_have_their_names() -> None:
    text = """
with seeded(join()) as session:
    session.run(rounds(session, 3))
    if me == 1:
        raise RangeError("values leave the declared bound")
    try:
        session.run(rounds(session, 3))
    except PeerLost as error:
        print(error.peer, error.witness, error)
        raise
"""
    launched = Launched(party(text), 3, names=["Ada", "Bob", "Eve"])
    failed = launched.error
    assert isinstance(failed, ProcessFailed)
    assert str(failed) == "Bob failed with exit code 2: values leave the declared bound"
    assert (failed.name, failed.node, failed.code, failed.kind) == ("Bob", 1, 2, "RangeError")
    assert (failed.peer, failed.witness) == (None, False)
    for name in ("Ada", "Eve"):
        (line,) = launched.said[name]
        assert line.startswith("1 True Bob stopped with RangeError")


@pytest.mark.usefixtures("impatient")
def test_where_all_that_failed_are_witnesses_the_first_of_them_speaks() -> None:
    """A peer that ends in peace and too soon; what it said of itself on stderr is no blame."""
    text = """
if me == 0:
    print("error: PeerLost reported by nobody", file=sys.stderr)
    raise SystemExit(0)
raise PeerLost("Ada did not call", peer=0)
"""
    failed = Launched(party(text), 2, names=["Ada", "Bob"]).error
    assert isinstance(failed, ProcessFailed)
    assert (failed.name, failed.kind, failed.peer, failed.witness) == ("Bob", "PeerLost", 0, True)
    assert str(failed) == "Bob failed with exit code 2: Ada did not call"


def test_a_witness_whose_peer_failed_as_well_lets_that_one_speak() -> None:
    """Party 2 ends first, of party 1, which waited in vain for party 0: what party 1 knows is the cause."""
    left = party("""
if me:
    lost, seconds = me - 1, 0.0 if me == 2 else 0.2
    threading.Event().wait(seconds)
    raise PeerLost(f"party {lost} is missed", peer=lost)
""")
    launched = Launched(left, 3)
    assert str(launched.error) == "party 1 failed with exit code 2: party 0 is missed"


def test_words_on_stderr_make_no_witness(tmp_path: Path) -> None:
    """A process that dies without a record is no witness, whatever it printed before."""
    text = f"""
pid = Path({str(tmp_path)!r}) / "pid"
if me == 0:
    print("PeerLost: party 1 closed its connection (reported by party 1)", file=sys.stderr, flush=True)
    pid.with_suffix(".new").write_text(str(os.getpid()))
    pid.with_suffix(".new").rename(pid)
    os.kill(os.getpid(), signal.SIGKILL)
while not pid.exists() or Path("/proc", pid.read_text()).exists():  # until the launcher has seen its end
    threading.Event().wait(0.01)
raise ConfigError("the party that comes later")
"""
    failed = Launched(party(text), 2).error
    assert isinstance(failed, ProcessFailed)
    assert (failed.name, failed.node, failed.code, failed.kind) == ("party 0", 0, -signal.SIGKILL, "")
    assert str(failed) == "party 0 was ended by SIGKILL"


def test_whoever_loses_a_dealer_that_was_not_launched_is_the_cause() -> None:
    text = """
import time
if me == 0:
    raise PeerLost("party 1 was silent", peer=1)
time.sleep(0.5)
raise PeerLost("the dealer left", peer=DEALER, witness=False)
"""
    failed = Launched(party(text), 2).error
    assert isinstance(failed, ProcessFailed)
    assert (failed.node, failed.peer, str(failed)) == (1, DEALER, "party 1 failed with exit code 2: the dealer left")


def test_a_cause_that_begins_with_a_party_is_no_witness() -> None:
    text = """
with seeded(join()) as session:
    session.run(rounds(session, 3))
    if me == 2:
        raise ConfigError("party 2 owns this input: it must give the values")
    session.run(rounds(session, 3))
"""
    launched = Launched(party(text), 3)
    assert str(launched.error) == "party 2 failed with exit code 2: party 2 owns this input: it must give the values"


@pytest.mark.usefixtures("impatient")
def test_a_traceback_is_shown_where_an_error_is_not_ours() -> None:
    text = "here = join()\nif me == 1:\n    raise KeyError('a bug')\nthreading.Event().wait(600)"
    launched = Launched(party(text), 2)
    assert "party 1 failed with exit code 1: Traceback" in str(launched.error)
    assert "KeyError: 'a bug'" in str(launched.error)


@pytest.mark.usefixtures("impatient")
def test_a_party_that_ends_before_it_joins_brings_all_down() -> None:
    launched = Launched(party("if me == 1:\n    raise SystemExit(7)\njoin()"), 3, limit=300)
    assert str(launched.error) == "party 1 failed with exit code 7: it said nothing"
    assert all(gone(pid) for pid in launched.pids)


@pytest.mark.needs("torch")
@pytest.mark.usefixtures("impatient")
def test_over_gloo_a_party_that_ends_before_it_joins_brings_all_down() -> None:
    launched = Launched(party("if me == 1:\n    raise SystemExit(7)\njoin()"), 2, transport="gloo", limit=300)
    assert str(launched.error) == "party 1 failed with exit code 7: it said nothing"
    assert all(gone(pid) for pid in launched.pids)


def test_the_limit_ends_all_and_names_who_still_ran() -> None:
    launched = Launched(script(f"{_LIGHT}if me: time.sleep(600)"), 3, limit=3)
    assert str(launched.error) == "stopped after 3 s: party 1, party 2 still ran"
    assert all(gone(pid) for pid in launched.pids)


def test_the_last_one_is_not_waited_for_for_ever() -> None:
    """Nobody is left who would miss it; one that waits for the end of all others is not to blame."""
    stays = party("if me:\n    threading.Event().wait(600)")
    assert str(Launched(stays, 2, linger=0.3).error) == (
        "party 1 was silent for 0.3 s after all others had ended: it hangs"
    )
    launched = Launched(stays, 3, names=["Ada", "DC", "Bob"], patient=["DC"], linger=0.3)
    assert str(launched.error) == "Bob was silent for 0.3 s after all others had ended: it hangs"
    assert all(gone(pid) for pid in launched.pids)


def test_the_last_one_has_the_timeout_that_all_have(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr("mpc.launch.watch", lambda *_, linger, **__: seen.append(linger))
    launch(script("pass"), 2, timeout=7.5)
    launch(script("pass"), 2, timeout=7.5, linger=2.0)
    assert seen == [7.5, 2.0]


def test_a_failure_before_the_limit_is_the_cause() -> None:
    launched = Launched(script(f"{_LIGHT}if me: time.sleep(600)\nsys.exit('no file')"), 2, limit=3)
    assert str(launched.error) == "party 0 failed with exit code 1: no file"


def test_a_child_that_is_killed_is_named() -> None:
    def hears(launched: Launched, name: str, line: str) -> None:
        if (name, line) == ("party 0", "ready"):
            os.kill(launched.pids[1], signal.SIGKILL)

    launched = Launched([*PARTY, "endless"], 3, hears=hears)
    assert str(launched.error) == "party 1 was ended by SIGKILL"
    assert all(gone(pid) for pid in launched.pids)


@pytest.mark.usefixtures("impatient")
def test_children_that_resist_are_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And they are given their time together, not one after the other."""
    monkeypatch.setattr("mpc.children._TO_LEAVE", 3.0)
    text = f"""
ready = Path({str(tmp_path)!r})
signal.signal(signal.SIGTERM, lambda *_: print("asked", flush=True))
(ready / str(me)).touch()
if me == 0:
    while len(list(ready.iterdir())) < 3:
        threading.Event().wait(0.01)
    raise SystemExit(3)
while True:
    threading.Event().wait(1)
"""
    launched = Launched(party(text), 3)
    assert str(launched.error) == "party 0 failed with exit code 3: it said nothing"
    assert launched.said == {"party 1": ["asked"], "party 2": ["asked"]}
    assert all(gone(pid) for pid in launched.pids)


@pytest.mark.usefixtures("impatient")
def test_children_may_say_goodbye(monkeypatch: pytest.MonkeyPatch) -> None:
    """A joined party is asked to end before its lifeline is cut."""
    monkeypatch.setattr("mpc.children._TO_LEAVE", 300.0)
    text = """
def leaves(*_):
    print("goodbye", flush=True)
    raise SystemExit(0)
signal.signal(signal.SIGTERM, leaves)
transport = join()
if me == 0:
    raise SystemExit(3)
while True:
    threading.Event().wait(1)
"""
    assert Launched(party(text), 2).said == {"party 1": ["goodbye"]}


def test_a_killed_launcher_leaves_no_child(tmp_path: Path) -> None:
    told = tmp_path / "pids"
    main = f"""
import json, sys
from pathlib import Path
from mpc.launch import launch
def started(pids):
    Path({str(told)!r}).write_text(json.dumps(pids))
launch([sys.executable, "-m", "tests.parties.party", "endless"], 3, started=started,
       output=lambda name, line: print(name, line, flush=True))
"""
    launcher = subprocess.Popen(script(main), env={**os.environ, **ENVIRONMENT}, stdout=subprocess.PIPE, text=True)
    try:
        assert launcher.stdout is not None
        ready = {launcher.stdout.readline() for _ in range(3)}
        assert ready == {f"party {p} ready\n" for p in range(3)}
        pids = json.loads(told.read_text())
        assert not any(gone(pid) for pid in pids)
    finally:
        launcher.kill()
        launcher.communicate(timeout=300)
    for pid in pids:
        assert ended(pid), f"process {pid} has outlived its launcher"


def test_an_interrupted_launcher_leaves_no_child() -> None:
    """Ctrl-C reaches the launcher alone; here it comes when all are up."""
    pids: list[int] = []

    def started(of: list[int]) -> None:
        pids.extend(of)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch([*PARTY, "endless"], 2, environment=ENVIRONMENT, limit=300, started=started)
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_an_error_of_the_callback_is_raised_and_ends_all() -> None:
    def output(name: str, line: str) -> None:
        raise ZeroDivisionError(line)

    pids: list[int] = []
    with pytest.raises(ZeroDivisionError, match="ready"):
        launch([*PARTY, "endless"], 2, environment=ENVIRONMENT, limit=300, output=output, started=pids.extend)
    assert all(gone(pid) for pid in pids)


def test_much_output_blocks_nobody() -> None:
    text = "for _ in range(20000):\n    print('x' * 100)\n    print('y' * 100, file=sys.stderr)"
    launched = Launched(party(text), 2)
    assert launched.error is None
    assert {name: len(lines) for name, lines in launched.said.items()} == {"party 0": 20000, "party 1": 20000}


@pytest.mark.parametrize(
    ("how", "cure"),
    [
        ({"parties": 1}, "at least 2 parties, not 1"),
        ({"parties": 0}, "at least 2 parties, not 0"),
        ({"transport": "memory"}, "over tcp or gloo, not 'memory'"),
        ({"transport": "gloo", "clients": {"patient": ["true"]}}, "clients need the tcp transport"),
        ({"timeout": 0.0}, "a timeout is a positive number"),
        ({"names": ["Ada"]}, "2 parties and 0 clients need a name each"),
        ({"names": ["Ada", "Ada"]}, "all distinct"),
        ({"names": ["Ada", "Bob"], "clients": {"Bob": ["true"]}}, "2 parties and 1 clients need a name each"),
    ],
)
def test_what_cannot_be_launched(how: dict, cure: str) -> None:
    with pytest.raises(ConfigError, match=cure):
        launch(["true"], **{"parties": 2, "limit": 20, **how})


def test_a_command_that_is_none() -> None:
    with pytest.raises(ConfigError, match="cannot start party 0 as '/no/such/program': No such file"):
        launch(["/no/such/program"], 2, limit=300)


def test_a_process_without_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MASKED_PLACE", "RANK", "WORLD_SIZE", "MASTER_ADDR"):
        monkeypatch.delenv(name, raising=False)
    assert place() is None
    with pytest.raises(ConfigError, match="start it with 'masked launch' or torchrun"):
        join()
    with pytest.raises(ConfigError, match="no launched client"):
        join_as_client()


def test_party_main_says_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    def fails() -> None:
        raise OutOfMaterial("4 wanted, 3 left: deal more")

    with pytest.raises(SystemExit) as ended:
        party_main(fails)
    assert ended.value.code == 2
    assert ended.value.__cause__ is None and ended.value.__suppress_context__
    assert capsys.readouterr().err == "error: 4 wanted, 3 left: deal more\n"


def test_party_main_as_a_process() -> None:
    done = subprocess.run(
        script("from mpc.launch import *; party_main(lambda: launch(['true'], 1))"),
        env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: secret sharing needs at least 2 parties, not 1\n"


def test_a_launch_leaves_no_descriptor() -> None:
    """Behind the first one, which starts the nursery; what tests before it have left is gone as well."""

    def left() -> int:
        gc.collect()
        return len(os.listdir("/proc/self/fd"))

    Launched(party("join().close()"), 2)
    before = left()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        Launched(party("join().close()"), 2)
        Launched(party("raise ConfigError('no')"), 2)
        Launched(["/no/such/program"], 2)
        after = left()
    assert after == before
    assert [str(each.message) for each in caught if each.category is ResourceWarning] == []
