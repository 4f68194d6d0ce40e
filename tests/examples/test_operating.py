"""What pages hand to other programs: units for systemd, lines for a firewall, a tunnel and torchrun.

Nothing here is started.  Each is judged by its own program where this machine has that.
"""

from __future__ import annotations

import configparser
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from protocols.bench.snippets import ROOT
from protocols.cli import _parser
from protocols.commands.config import _PORT

CLINICS, DEPLOYMENT = ROOT / "examples/three_clinics/README.md", ROOT / "docs/deployment.md"
PLACE = "/srv/masked"


def blocks_of(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.M | re.S)


def units() -> list[str]:
    """The page's unit, as it stands and with each of the other lines."""
    unit, lines = blocks_of(CLINICS, "ini")
    (own,) = re.findall(r"^ExecStart=.*$", unit, re.M)
    return [unit, *(unit.replace(own, line) for line in lines.splitlines())]


def test_units_start_what_the_command_line_knows() -> None:
    assert len(units()) == 3
    for unit in units():
        (line,) = re.findall(r"^ExecStart=(.*)$", unit, re.M)
        words = shlex.split(line)
        if Path(words[0]).name == "bash":
            first, last = (shlex.split(part) for part in words[-1].split(" | "))
            assert ("pipefail" in words) is (last[0] != f"{PLACE}/.venv/bin/masked"), "its end is the role's"
            words = first if first[0].endswith("/masked") else last
        assert words[0] == f"{PLACE}/.venv/bin/masked"
        given = _parser(words[1:]).parse_args(words[1:])
        assert str(given.config) == "role.toml" and not given.resume


def test_units_are_units(tmp_path: Path) -> None:
    if (verify := shutil.which("systemd-analyze")) is None:
        pytest.skip("systemd-analyze is not here")
    for program in (".venv/bin/masked", "tell-the-ward", "read-outcomes"):
        (path := tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)

    def said(text: str, name: str) -> tuple[int, str]:
        (tmp_path / name).write_text(text.replace(PLACE, str(tmp_path)))
        command = [verify, "verify", str(tmp_path / name)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, "".join(line for line in done.stderr.splitlines(True) if name in line)

    for at, unit in enumerate(units()):
        assert said(unit, f"masked-party-{at}.service") == (0, "")
    for wrong, word in (("KillSignal=SIGHELLO", "SIGHELLO"), ("Restrat=no", "Restrat")):
        assert word in said(f"{units()[0]}\n[Service]\n{wrong}\n", "wrong.service")[1], "what is wrong is seen"


def test_the_firewall_lets_in_where_clinics_listen() -> None:
    lines = [line for block in blocks_of(CLINICS, "text") for line in block.splitlines() if line.startswith("ufw ")]
    assert len(lines) == 2
    for line in lines:
        words = line.partition("#")[0].split()
        assert words[:6] == ["ufw", "allow", "proto", "tcp", "from", words[5]]
        assert words[6:] == ["to", "any", "port", str(_PORT)]
    listens = re.findall(r'^listen = ".*:(\d+)"$', CLINICS.read_text(), re.M)
    assert listens == [str(_PORT)]


def test_the_tunnel_is_one_and_torchrun_goes_through_it() -> None:
    (block,) = [block for block in blocks_of(DEPLOYMENT, "text") if "wg genkey" in block]
    config = "\n".join(
        re.split(r"\s{2,}", line)[0]
        for line in block[block.index("[Interface]") :].splitlines()
        if "wg-quick" not in line
    )
    config, _, command = config.partition("GLOO_SOCKET_IFNAME=")
    parser = configparser.ConfigParser()
    parser.read_string(config)
    assert {name: set(parser[name]) for name in parser.sections()} == {
        "Interface": {"address", "listenport", "privatekey"},
        "Peer": {"publickey", "endpoint", "allowedips"},
    }
    assert parser["Peer"]["Endpoint"].endswith(f":{parser['Interface']['ListenPort']}")
    interface, *words = shlex.split(command)
    assert f"wg-quick up {interface}" in block and words[0] == "torchrun"
    run = pytest.importorskip("torch.distributed.run", reason="the extra 'torch' is not installed")
    given = run.get_args_parser().parse_args(words[1:])
    assert f"{given.master_addr}/24" == parser["Interface"]["Address"] and given.nnodes == "3"
