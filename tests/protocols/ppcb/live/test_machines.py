"""A service of roles on machines of their own: each asked over HTTP by its owner's programs, the parties over TLS."""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mpc.errors import OutOfMaterial
from mpc.net.asking import Asking
from mpc.net.tokens import make_tokens
from offline import deal
from protocols.cli import main
from protocols.ppcb.command import PPCB
from protocols.ppcb.live.feeds import digest_of
from protocols.ppcb.live.program import Live
from protocols.ppcb.serving.described import page
from protocols.run.config import DEALER, ON_SHARES, load
from protocols.run.member_process import options_of, play, prepared
from protocols.run.on_shares import OnShares
from protocols.run.stopping import Stopped
from tests.parties.processes import free_port

from ...harness import ROOT
from ...machines import Machines

pytestmark = pytest.mark.needs("starlette", "uvicorn")
ROLES = {"party 0": "owner 0", "party 1": "owner 1", "puller": "puller", "payer": "payer"}


class Service:
    """Two owners of two features and of one, the puller, the payer, and a dealer where no material was dealt before."""

    def __init__(self, folder: Path, *, dealt: int = 0) -> None:
        self.ports = {role: free_port() for role in ROLES}
        more = {
            role: f'[serve]\nlisten = "127.0.0.1:{port}"\ntokens = "tokens"\nbeat = 0.1'
            for role, port in self.ports.items()
        }
        options = {"live": True, "arms": "a,b", "dim": 3, "owners": "2,1", "batch": 4, "steps": 100}
        dealer = not dealt
        self.machines = Machines(folder, PPCB(), options, 2, dealer=dealer, more=more, every=1, seconds=60.0)
        if dealt:
            self.machines.dealt(dealt)
        for role, asks in ROLES.items():
            make_tokens(self.machines.home(role) / "tokens", [asks])
        self.over = threading.Event()

    def ask(self, role: str, path: str, body: Any = None) -> Any:
        """As its owner's programs do, until it listens; a page where there is no body."""
        token = (self.machines.home(role) / "tokens" / f"{ROLES[role].replace(' ', '-')}.token").read_text().strip()
        while not self.over.wait(0.05):
            link = Asking(("127.0.0.1", self.ports[role]), token, patience=60.0)
            try:
                answered = link.get(path) if body is None else link.post(path, body)
            except ConnectionRefusedError:
                continue
            finally:
                link.close()
            return answered.body if answered.status == 200 else answered.status
        raise AssertionError("the roles ended")

    def play(self, work: Callable[[], None]) -> list[BaseException | None]:
        """All roles, until the work is done."""
        failed: list[BaseException] = []

        def working() -> None:
            try:
                work()
            except BaseException as error:
                failed.append(error)
            finally:
                self.over.set()

        threading.Thread(target=working, daemon=True).start()
        ends = self.machines.play(instead={role: lambda role=role: self._role(role) for role in ROLES})
        self.over.set()
        errors = [end.error for end in ends]
        if failed:  # what the roles ended with says why
            raise AssertionError(errors) from failed[0]
        return errors

    def _role(self, role: str) -> None:
        try:
            self._play(role)
        except OutOfMaterial:  # and its owner names what was dealt meanwhile
            file = self.machines.files[role]
            file.write_text(file.read_text().replace("../material/", "../more/"))
            self._play(role, resume=True)

    def _play(self, role: str, *, resume: bool = False) -> None:
        from protocols.ppcb.live.beside import asked_beside

        @contextmanager
        def asked() -> Iterator[Callable[[], bool]]:
            yield self.over.is_set

        given = prepared(load(self.machines.files[role]), PPCB(), resume=resume, **self.machines.saying(role))
        with asked_beside(given):
            play(given, heard=0, asked=asked)


@pytest.mark.parametrize("dealt", [0, 40])
def test_what_is_asked_at_one_machine_is_served_by_all(dealt: int, tmp_path: Path) -> None:
    service = Service(tmp_path, dealt=dealt)

    def work() -> None:
        for name in ("v", "w"):
            assert service.ask("party 0", "/context", {"id": name, "features": [0.5, 0.5]}) == {"received": 1}
        assert service.ask("party 1", "/context", {"id": "v", "features": [0.5]}) == {"received": 1}
        told = service.ask("puller", "/predict", {"id": "v"})
        assert told["arm"] in ("a", "b") and service.ask("puller", "/predict", {"id": "w"}) == 404
        assert service.ask("payer", "/reward", {"decision_id": told["decision_id"], "reward": 1}) == {"received": 1}
        assert service.ask("payer", "/reward", {"decision_id": told["decision_id"], "reward": 2}) == 422
        assert service.ask("party 0", "/context", {"id": "x", "features": [0.5]}) == 422
        ledger = service.ask("party 1", "/ledger")
        assert sum(entry["count"] for entry in ledger if entry["what"] == "arm") == 2
        for role, path in (("party 0", "/context"), ("puller", "/predict"), ("payer", "/reward")):
            document = service.ask(role, "/openapi.json")
            assert set(document["paths"]) - {"/ledger"} == {path, "/healthz"}
            assert path in page(document)

    ends = service.play(work)
    assert all(isinstance(error, Stopped) for error in ends), ends


def test_what_anybody_may_look_at_has_counts_alone_and_no_log_has_what_was_sent(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Also of what is refused: ids, features and rewards stay between a program and the role that it asks."""
    service, shown = Service(tmp_path), dict[str, Any]()
    service.machines.logged = logged = io.StringIO()
    names, row, reward = ("patient-4711", "patient-4712", "patient-4713"), [0.31415926, -0.27182818], 0.73124586

    def work() -> None:
        for name in names[:2]:
            service.ask("party 0", "/context", {"id": name, "features": row})
        service.ask("party 1", "/context", {"id": names[0], "features": row[:1]})
        told = service.ask("puller", "/predict", {"id": names[0]})
        assert [service.ask("puller", "/predict", {"id": name}) for name in names[1:]] == [404, 404]
        for paid in ({"reward": reward}, {"reward": reward}, {"reward": reward + 1}):
            service.ask("payer", "/reward", {"decision_id": told["decision_id"], **paid})
        assert service.ask("party 1", "/context", {"id": names[1], "features": row}) == 422
        shown.update({role: service.ask(role, "/healthz") for role in ROLES})

    ends = service.play(work)
    assert all(isinstance(error, Stopped) for error in ends), ends
    assert {role: page.keys() for role, page in shown.items()} == {
        "party 0": {"state", "waiting"}, "party 1": {"state", "waiting"},
        "puller": {"state", "decisions", "waiting"}, "payer": {"state", "learned", "passed_over", "waiting"},
    }  # fmt: skip
    assert all(type(page.pop("state")) is str and {*map(type, page.values())} == {int} for page in shown.values())
    assert {json.loads(line)["role"] for line in logged.getvalue().splitlines()} == {*ROLES, DEALER}
    said = logged.getvalue() + "".join(capfd.readouterr()) + str(shown)
    sent = [*names, *(str(digest_of(name)) for name in names), *map(str, row), str(reward), str(reward + 1)]
    assert not [value for value in sent if value.lstrip("-") in said]


def test_material_that_is_used_up_is_said_and_more_of_it_goes_on(tmp_path: Path) -> None:
    service = Service(tmp_path, dealt=1)
    assert isinstance(service.machines.apart, OnShares)
    deal(service.machines.apart.rehearsed.plan, 5, tmp_path / "more")

    def work() -> None:
        for role, row in (("party 0", [0.5, 0.5]), ("party 1", [0.5])):
            contexts = [{"id": name, "features": row} for name in "vw"]
            assert service.ask(role, "/context", {"contexts": contexts}) == {"received": 2}
        assert service.ask("puller", "/predict", {"id": "v"})["decision_id"] == 0
        while (told := service.ask("puller", "/predict", {"id": "w"})) == 404:  # as the parts that were there are gone
            for role, row in (("party 0", [0.5, 0.5]), ("party 1", [0.5])):
                service.ask(role, "/context", {"id": "w", "features": row})
        assert told["decision_id"] > 1, "and the first number that w had is nobody's"

    ends = service.play(work)
    assert all(isinstance(error, Stopped) for error in ends), ends


def test_the_file_of_the_page_is_one_that_is_taken(tmp_path: Path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", (ROOT / "docs/service.md").read_text(), re.M | re.S)
    peers = "".join(
        f'[peers."party {party}"]\ncertificate = "c"\nfingerprint = "f"\naddress = "a:1"\n' for party in range(3)
    )
    head = 'role = "puller"\nsession = "s"\nprogram = "ppcb"\nparties = 3\n'
    (tmp_path / "role.toml").write_text(f'{head}{text}\n[own]\nkey = "k"\ncertificate = "c"\n{peers}')
    config = load(tmp_path / "role.toml")
    apart = PPCB().apart(options_of(PPCB(), ON_SHARES, 3, config.options))
    assert isinstance(apart, OnShares) and isinstance(apart.program, Live)
    assert apart.program.called(1) == "naproxen" and apart.program.settings.batch == 8
    assert config.serve == ("127.0.0.1", 7780) and (config.every, config.dealt, config.beat) == (1, DEALER, 2.0)


def test_what_a_role_s_file_lacks_is_said_before_anybody_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(tmp_path)
    file = service.machines.files["puller"]
    whole = file.read_text()
    listen = f'listen = "127.0.0.1:{service.ports["puller"]}"'
    for text, said in (
        (whole.replace(listen, ""), "serve.listen is missing"),
        (whole.replace("beat = 0.1", "beat = 60.0"), "choose a shorter beat"),
        (whole.replace("checkpoint_every = 1", "checkpoint_every = 5"), "set output.checkpoint_every = 1"),
        (whole.replace("live = true", ""), "names of arms are for a service (live = true)"),
        (whole.replace("live = true", "").replace('"a,b"', "2"), "play it with 'masked party'"),
        (whole.replace('tokens = "tokens"', 'tokens = "elsewhere"'), "puller.token is missing"),
        (
            whole.replace("127.0.0.1", "0.0.0.0").replace('tokens = "tokens"', 'tokens = "none"'),
            "only this machine may ask",
        ),
        (whole.replace("steps = 100", "steps = 100\nreplicas = 2"), "leave out delay and replicas"),
    ):
        file.write_text(text)
        with pytest.raises(SystemExit) as caught:
            main(["serve", "--config", str(file)])
        assert caught.value.code == 2 and said in capsys.readouterr().err
    beat = whole.replace("beat = 0.1", "beat = 60.0")
    file.write_text(beat.replace("127.0.0.1", "0.0.0.0").replace('tokens = "tokens"', 'tokens = "none"'))
    with pytest.raises(SystemExit):
        main(["config", "check", str(file)])
    said = capsys.readouterr().err
    assert "serve.listen: without tokens only this machine may ask" in said and "choose a shorter beat" in said
    file.write_text(whole)
    with pytest.raises(SystemExit):
        main(["party", "--config", str(file)])
    assert "play it with 'masked serve --config FILE'" in capsys.readouterr().err
