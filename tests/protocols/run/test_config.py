"""A role's file: what is wrong with it is a line for each mistake, found before anybody is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc.errors import ConfigError
from protocols.cli import main
from protocols.commands.config import fitting
from protocols.ppcb.program import PULLER
from protocols.run.config import DEALER, load, place_of, read, tomllib

from ..machines import Machines
from .trial import session


@pytest.fixture
def machines(tmp_path: Path) -> Machines:
    """A session that could be played."""
    made = session(tmp_path)
    made.dealt()
    return made


def changed(machines: Machines, role: str, old: str, new: str) -> Path:
    """The file of a role, with other words in it."""
    path = machines.files[role]
    whole = path.read_text()
    assert old in whole
    path.write_text(whole.replace(old, new, 1))
    return path


def said(path: Path) -> str:
    """What `masked config check` says of a file, on one line."""
    with pytest.raises(ConfigError) as raised:
        fitting(read(path))
    lines = str(raised.value).splitlines()
    assert len(lines) == 2 and lines[0] == f"{path} has 1 mistake:"
    return lines[1].strip()


LONG = "a" * 64
PLACES = ("a..b:7700", f"{LONG}:7700", "a\\u0000b:7700", "a b:7700", "a:" + "1" * 5000, "a:+80", "a:65536", ":7700")


@pytest.mark.parametrize("place", PLACES)
def test_an_address_that_cannot_be_one(machines: Machines, place: str) -> None:
    path = machines.files[PULLER]
    was = next(line for line in path.read_text().splitlines() if line.startswith("address"))
    line = said(changed(machines, PULLER, was, f'address = "{place}"'))
    assert line.startswith('peers.party 0.address is HOST:PORT, such as "clinic-b.example:7700", not ')
    assert len(line) < 200


def test_addresses_that_are_some() -> None:
    assert place_of("a.b:7700") == ("a.b", 7700) and place_of("[::1]:1") == ("::1", 1)
    assert place_of("klinik-süd.example:7700") == ("klinik-süd.example", 7700)


@pytest.mark.parametrize("key", ["certificate", "folder"])
def test_no_path_holds_a_zero(machines: Machines, key: str) -> None:
    path = machines.files["party 0"]
    was = next(line for line in path.read_text().splitlines() if line.startswith(f"{key} = "))
    line = said(changed(machines, "party 0", was, f'{key} = "a\\u0000b"'))
    assert line == f"{'own' if key == 'certificate' else 'output'}.{key} is a path, not 'a\\x00b'"


def test_pages_that_others_could_see(machines: Machines) -> None:
    path = changed(machines, "party 0", "[own]", '[watch]\nlisten = "0.0.0.0:9000"\n[own]')
    assert said(path).startswith("watch.listen: ") and "127.0.0.1" in said(path)


@pytest.mark.parametrize("below", ["", "/x/y"])
def test_an_output_that_is_a_file(machines: Machines, below: str) -> None:
    path = machines.files["party 0"]
    was = next(line for line in path.read_text().splitlines() if line.startswith("folder = "))
    changed(machines, "party 0", was, f'folder = "{path.name}{below}"')
    assert said(path) == f"output.folder: {path} is no folder: name another one"


def test_a_name_of_a_session_that_no_hello_has_room_for(machines: Machines) -> None:
    line = said(changed(machines, "party 0", 'session = "trial"', f'session = "{"x" * 70_000}"'))
    assert line.startswith("session is text of at most 200 letters, not 'xxx") and line.endswith("of 70,002 letters")


@pytest.mark.parametrize("mode", ["foo", "classic"])
def test_a_mode_that_the_program_has_not(machines: Machines, mode: str) -> None:
    path = changed(machines, "party 0", "parties = 2", f'mode = "{mode}"')
    assert said(path) == f"ppcb has no mode {mode!r}: there is mpc"
    changed(machines, "party 0", f'mode = "{mode}"', f'mode = "{mode}"\nparties = 2')
    with pytest.raises(ConfigError, match=f"parties is of mode 'mpc' alone, and mode is {mode!r}"):
        fitting(read(path))


def test_a_mark_of_the_encoding_is_passed_over(machines: Machines) -> None:
    path = machines.files["party 0"]
    before = load(path)
    path.write_text(path.read_text(), "utf-8-sig")
    assert load(path) == before


@pytest.mark.parametrize("raw", [b"parties = " + b"1" * 5000, b"x = " + b"[" * 50_000, b"\xff\xfep\x00", b'x = "a" "'])
def test_what_is_no_toml(tmp_path: Path, raw: bytes) -> None:
    (path := tmp_path / "x.toml").write_bytes(raw)
    with pytest.raises(ConfigError, match=r"x\.toml is no TOML: "):
        read(path)


def test_what_a_role_does_not_use_is_noted(machines: Machines, capsys: pytest.CaptureFixture[str]) -> None:
    more = '[material]\nstore = "nowhere"\n[serve]\nlisten = "127.0.0.1:7780"\n[data]\nid = "x"\ncolumns = ["a"]\n[own]'
    path = changed(machines, PULLER, "[own]", more)
    main(["config", "check", str(path)])
    out = capsys.readouterr().out
    assert " fits: puller of session 'trial'" in out
    assert [line for line in out.splitlines() if line.startswith("note: ")] == [
        "note: material.store is not used by puller: only computing parties draw material",
        "note: data.id is not used by puller: there is no data.file",
        "note: data.columns is not used by puller: there is no data.file",
        "note: [serve] is not used by puller: it is not asked over HTTP",
    ]
    path = changed(machines, "party 1", "[own]", '[world]\ntell = "json:dumps"\n[own]')
    main(["config", "check", str(path)])
    assert "note: [world] is not used by party 1: only clients meet the world" in capsys.readouterr().out


def test_what_no_role_uses_beside_a_dealer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machines = session(tmp_path, dealer=True)
    path = changed(machines, DEALER, "[own]", '[world]\ntell = "json:dumps"\n[own]')
    main(["config", "check", str(path)])
    assert "note: [world] is not used by dealer: only clients meet the world" in capsys.readouterr().out
    path = changed(machines, PULLER, "[material]\n", '[material]\nsession = "other"\n')
    assert said(path) == "material.session is of a store, and material is from a dealer: leave it out"


def test_a_seed_is_unknown_where_it_means_nothing(machines: Machines) -> None:
    path = changed(machines, PULLER, "[options]", "[options]\nseed = 5")
    assert said(path).startswith("options: 'seed' is unknown: there are ")


@pytest.mark.parametrize("more", [["--idle", "-3"], ["--idle", "nan"], ["--wait", "0"], ["--wait", "inf"]])
def test_a_doctor_waits_no_time_that_is_none(
    machines: Machines, more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    with pytest.raises(SystemExit) as ended:
        main(["doctor", "--config", str(machines.files["party 0"]), *more])
    assert ended.value.code == 2 and f"error: {more[0]} takes a " in capsys.readouterr().err


def new(folder: Path, *more: str) -> Path:
    """`masked config new`."""
    path = folder / "party-0.toml"
    main(["config", "new", "party 0", "--session", "trial", "-o", str(path), "--peers", str(folder / 'p"s'), *more])
    return path


def test_a_new_file_is_toml_whatever_is_named(tmp_path: Path) -> None:
    given = tomllib.loads(new(tmp_path, "--data", 'a"b\\ü\x7f', "--by", 'q"', "--set", "arms=4").read_text())
    assert given["data"] == {"file": 'a"b\\ü\x7f', "id": 'q"'}
    assert given["peers"]["party 1"]["certificate"] == 'p"s/party-1.pem'


@pytest.mark.parametrize(("option", "words"), [("--listen", "nonsense"), ("--listen", "a..b:1"), ("--at", "party 1=x")])
def test_a_new_file_names_places(
    tmp_path: Path, option: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    with pytest.raises(SystemExit):
        new(tmp_path, option, words)
    assert f"error: {option}" in (err := capsys.readouterr().err) and "takes HOST:PORT" in err
    assert not list(tmp_path.glob("*.toml"))
