"""Keys, certificates of others, and files of roles, as a user makes them."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from protocols.run.config import load

from ...parties.members import identity
from ..harness import Output, masked, refused

CERTIFICATE = "keys/certificate.pem"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_key_is_made_shown_and_trusted_by_what_its_owner_reads(here: Path, capsys: Output) -> None:
    code, said, _ = masked(capsys, "keys init --name Clinic")
    spoken = re.search(r"^  ([A-Z2-7]{4}(-[A-Z2-7]{4}){4})$", said, re.M)
    assert code == 0 and spoken
    assert spoken[1] in masked(capsys, "keys show")[1]
    refused(masked(capsys, "keys init --name Clinic"), "keys/key.pem exists")
    trust = f"keys trust {CERTIFICATE} --fingerprint"
    assert masked(capsys, f"{trust} {spoken[1].lower()} --as", "puller")[0] == 0
    assert (here / "peers/puller.pem").exists()
    other = identity(9)[1].spoken
    refused(masked(capsys, f"{trust} {other} --as puller"), "has another fingerprint than")
    shutil.copy(identity(9)[0] / "certificate.pem", here / "new.pem")
    refused(masked(capsys, f"keys trust new.pem --fingerprint {other} --as puller"), "is another certificate of puller")
    refused(masked(capsys, f"{trust} {spoken[1]} --as ../x"), "a role is called party 0")


def test_a_new_file_has_the_fingerprints_that_are_trusted(here: Path, capsys: Output) -> None:
    (here / "peers").mkdir()
    shutil.copy(identity(1)[0] / "certificate.pem", here / "peers/party-1.pem")
    code, _, err = masked(capsys, "config new puller --parties 2 --session trial -o role.toml")
    assert code == 0, err
    config = load(here / "role.toml")
    assert config.peers["party 1"].fingerprint == identity(1)[1].spoken and not config.computes
    assert config.peers.keys() == {"party 0", "party 1"} and config.listen is None
    refused(masked(capsys, "config new puller --session trial -o role.toml"), "role.toml exists")
    refused(masked(capsys, "config new payee --session trial -o x.toml"), "no role 'payee' in ppcb with these opt")


def test_a_new_file_of_a_service_says_where_programs_ask(here: Path, capsys: Output) -> None:
    words = "--parties 2 --session trial --set live=true --set arms=red,green --material dealer"
    for role in ("party-0", "payer", "dealer"):
        assert masked(capsys, f"config new {role} {words} -o {role}.toml")[0] == 0
    config = load(here / "payer.toml")
    assert config.serve == ("127.0.0.1", 7780) and config.tokens == here / "tokens" and config.every == 1
    assert load(here / "dealer.toml").serve is None and load(here / "dealer.toml").every == 1
    assert load(here / "party-0.toml").options == {"live": True, "arms": "red,green"}
    refused(masked(capsys, f"config new payer {words} --set arms=red,red -o x.toml"), "two arms are called 'red'")
    refused(
        masked(capsys, "config new payer --parties 2 --session trial --set arms=red,green -o x.toml"),
        "names of arms are for a service",
    )


def test_what_is_not_filled_in_is_listed_at_once(capsys: Output) -> None:
    assert masked(capsys, "config new puller --parties 2 --session trial -o role.toml")[0] == 0
    code, out, err = masked(capsys, "config check role.toml")
    assert code == 2 and out == "" and "Traceback" not in err
    assert err.startswith("error: role.toml does not fit:") or "mistake" in err
    assert "key.pem" in err or "certificate.pem" in err or "party-0.pem" in err


def test_a_new_file_is_of_any_program_with_its_options_and_places(here: Path, capsys: Output) -> None:
    own = "--session trial --parties 2 --at party-0=10.0.0.1:7700 --at party-1=10.0.0.2:7700 -o role.toml"
    options = "--program samba --set arms=3 --set policy=epsilon-greedy"
    assert masked(capsys, f"config new owner-1 {options} --at owner-0=10.0.0.3:7701 {own}")[0] == 0
    config = load(here / "role.toml")
    assert config.options == {"arms": 3, "policy": "epsilon-greedy"} and config.listen is None
    assert config.peers["owner 0"].address == ("10.0.0.3", 7701), "who explores alike agrees on when"
    assert "<" not in (here / "role.toml").read_text().replace("<what its owner reads out>", "")
    said = masked(capsys, "config new puller --program samba --set arms=1 --session trial -o other.toml")
    refused(said, "there is no role 'puller' in samba with these options: there are party 0, party 1, party 2, owner 0")
    refused(masked(capsys, "config new DC --program samba --mode x --session trial -o x.toml"), "no mode 'x': there")
    refused(masked(capsys, "config new DC --program samba --set arms --session t -o x.toml"), "--set takes NAME=VALUE")
    refused(
        masked(capsys, "config new DC --program samba --set arms=1 --at x=y --session t -o x.toml"),
        "--at takes ROLE=HOST:PORT",
    )
    refused(masked(capsys, "config new puller --program chess --session trial -o role.toml"), "program is one of ppcb")
    refused(masked(capsys, "party --config none.toml"), "none.toml cannot be read")
