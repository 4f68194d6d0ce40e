"""Small services for these tests: two arms by name, two owners of two features and of one."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mpc.net.requests import Answer, Refused, Request
from protocols.ppcb.serving.service import Service, Wanted, opened

WANTED = Wanted(arms=["a", "b"], owners=[2, 1], steps=1000)
PARTS = {"owner 0": [0.1, 0.2], "owner 1": [0.3]}


class Asked:
    """A service as each role sees it, without HTTP."""

    def __init__(self, service: Service, log: list[str]) -> None:
        self.service, self.log = service, log
        self.endpoints = service.endpoints.endpoints()

    def later(self, role: str, path: str, body: Any, key: str | None = None) -> Answer | Future[Answer]:
        """What the endpoint gives."""
        endpoint = self.endpoints[path]
        assert role in endpoint.roles
        return endpoint.call(Request(role, body, repr(body), key))

    def ask(self, role: str, path: str, body: Any, key: str | None = None) -> Any:
        """The answer, or `Refused`."""
        answer = self.later(role, path, body, key)
        return answer.result(60.0) if isinstance(answer, Future) else answer

    def status(self, role: str, path: str, body: Any, key: str | None = None) -> int:
        """Of HTTP."""
        try:
            self.ask(role, path, body, key)
        except Refused as refused:
            assert ":" in refused.told
            return refused.status
        return 200

    def send(self, *names: str) -> None:
        """The parts of all owners."""
        for role, row in PARTS.items():
            self.ask(role, "/context", {"contexts": [{"id": name, "features": row} for name in names]})

    def decide(self, *names: str, key: str | None = None) -> list[dict[str, Any]]:
        """Decisions on contexts that are sent first."""
        self.send(*names)
        found: list[dict[str, Any]] = self.ask("puller", "/predict", {"ids": list(names)}, key)["decisions"]
        return found

    def pay(self, number: int, reward: float = 1.0, key: str | None = None) -> Any:
        """The answer of the payer's side."""
        return self.ask("payer", "/reward", {"decision_id": number, "reward": reward}, key)

    def told(self) -> int:
        """Arms that the ledger counts."""
        return sum(entry.count for entry in self.service.found.bandit.ledger if entry.what == "arm")


@contextmanager
def asked(folder: Path, wanted: Wanted = WANTED, **limits: int) -> Iterator[Asked]:
    """A service that ends in order."""
    log: list[str] = []
    with opened(folder, wanted, say=log.append, **limits) as service:
        yield Asked(service, log)
