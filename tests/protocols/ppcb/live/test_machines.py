"""A service of roles on machines of their own: each asked over HTTP by its owner's programs, the parties over TLS."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from mpc.net.asking import Asking
from mpc.net.tokens import make_tokens
from protocols.cli import main
from protocols.ppcb.command import PPCB
from protocols.run.config import load
from protocols.run.member_process import play, prepared
from protocols.run.stopping import Stopped
from tests.parties.processes import free_port

from ...machines import Machines

pytestmark = pytest.mark.needs("starlette", "uvicorn")
ROLES = {"party 0": "owner 0", "party 1": "owner 1", "puller": "puller", "payer": "payer"}


class Service:
    """Two owners of two features and of one, the puller, the payer and a dealer."""

    def __init__(self, folder: Path) -> None:
        self.ports = {role: free_port() for role in ROLES}
        more = {
            role: f'[serve]\nlisten = "127.0.0.1:{port}"\ntokens = "tokens"\nbeat = 0.1'
            for role, port in self.ports.items()
        }
        options = {"live": True, "arms": 2, "dim": 3, "owners": "2,1", "batch": 4, "steps": 100}
        self.machines = Machines(folder, PPCB(), options, 2, dealer=True, more=more, every=1, seconds=60.0)
        for role, asks in ROLES.items():
            make_tokens(self.machines.home(role) / "tokens", [asks])
        self.over = threading.Event()

    def ask(self, role: str, path: str, body: Any) -> Any:
        """As its owner's programs do, until it listens."""
        token = (self.machines.home(role) / "tokens" / f"{ROLES[role].replace(' ', '-')}.token").read_text().strip()
        while not self.over.wait(0.05):
            link = Asking(("127.0.0.1", self.ports[role]), token, patience=60.0)
            try:
                answered = link.post(path, body)
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
        from protocols.ppcb.live.beside import asked_beside

        @contextmanager
        def asked() -> Iterator[Callable[[], bool]]:
            yield self.over.is_set

        given = prepared(load(self.machines.files[role]), PPCB())
        with asked_beside(given):
            play(given, heard=0, asked=asked)


def test_what_is_asked_at_one_machine_is_served_by_all(tmp_path: Path) -> None:
    service = Service(tmp_path)

    def work() -> None:
        for name in ("v", "w"):
            assert service.ask("party 0", "/context", {"id": name, "features": [0.5, 0.5]}) == {"received": 1}
        assert service.ask("party 1", "/context", {"id": "v", "features": [0.5]}) == {"received": 1}
        told = service.ask("puller", "/predict", {"id": "v"})
        assert told["arm"] in (0, 1) and service.ask("puller", "/predict", {"id": "w"}) == 404
        assert service.ask("payer", "/reward", {"decision_id": told["decision_id"], "reward": 1}) == {"received": 1}
        assert service.ask("payer", "/reward", {"decision_id": told["decision_id"], "reward": 2}) == 422
        assert service.ask("party 0", "/context", {"id": "x", "features": [0.5]}) == 422

    ends = service.play(work)
    assert all(isinstance(error, Stopped) for error in ends), ends


def test_what_a_role_s_file_lacks_is_said_before_anybody_is_called(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    service = Service(tmp_path)
    file = service.machines.files["puller"]
    whole = file.read_text()
    listen = f'listen = "127.0.0.1:{service.ports["puller"]}"'
    for text, said in (
        (whole.replace(listen, ""), "serve.listen is missing"),
        (whole.replace("checkpoint_every = 1", "checkpoint_every = 5"), "set output.checkpoint_every = 1"),
        (whole.replace("live = true\n", "").replace("live = true", ""), "play it with 'masked party'"),
        (whole.replace('tokens = "tokens"', 'tokens = "elsewhere"'), "puller.token is missing"),
        (whole.replace("127.0.0.1", "0.0.0.0").replace('tokens = "tokens"', 'tokens = "none"'), "this machine alone"),
        (whole.replace("steps = 100", "steps = 100\nreplicas = 2"), "leave out delay and replicas"),
    ):
        file.write_text(text)
        with pytest.raises(SystemExit) as caught:
            main(["serve", "--config", str(file)])
        assert caught.value.code == 2 and said in capsys.readouterr().err
    file.write_text(whole)
    with pytest.raises(SystemExit):
        main(["party", "--config", str(file)])
    assert "play it with 'masked serve --config FILE'" in capsys.readouterr().err
