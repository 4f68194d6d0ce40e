"""`masked serve --config` of all roles, each a process, for the campaign of kills.  Knows files, tokens, logs, ends."""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError
from mpc.net.asking import Asking
from mpc.net.ports import free_port
from mpc.net.tokens import make_tokens
from mpc.nursery import Started, own_command, start

from ..ppcb.live.program import Live
from ..run.checkpoint import Checkpoint, numbers
from ..run.config import DEALER
from ..run.folder import CHECKPOINTS
from ..run.on_shares import OnShares
from ..run.program import home_of as keeper
from .faults_between import HOST, RESULTS, Session, filled, home_of

ARMS = ("red", "green", "blue")
WIDTH = 2  # features of each owner
_LOADED = ("protocols.cli", "protocols.commands.serve", "protocols.commands.party", "protocols.ppcb.live.beside")
_TIMES = {"start": 120.0, "round": 60.0, "back": 120.0, "link": 30.0}
_BEAT = 0.1
_MATERIAL = 20_000  # steps that are dealt beforehand
_LOOKS = 100


@dataclass(frozen=True)
class Served(Session):
    """A service of so many owners.  Without exploration an arm follows from what was learned before.

    refresh: after so many full turns; None where words last without.
    """

    every: int = 1
    refresh: int | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Of the program."""
        given = {"live": True, "arms": ",".join(ARMS), "dim": WIDTH * self.parties, "eps": 0.0}
        given |= {"owners": ",".join([str(WIDTH)] * self.parties), "batch": 4, "steps": 20_000}
        return given | ({} if self.refresh is None else {"refresh": self.refresh})

    @property
    def program(self) -> Live:
        """As every role knows it."""
        apart = self.apart
        assert isinstance(apart, OnShares) and isinstance(apart.program, Live)
        return apart.program

    def own(self, role: str) -> list[str]:
        """Where its owner's programs ask."""
        if role == DEALER:
            return []
        port = f"@serve {role}@"
        return ["[serve]", f'listen = "{HOST}:{port}"', f"beat = {_BEAT}"]

    def deal(self, folder: Path) -> None:
        """Folders of all roles, and tokens of those who are asked."""
        homes = self.homes(folder)
        for role, home in homes.items():
            if role != DEALER:
                make_tokens(home / "tokens", [asks(role)])
        self.material_to(homes, _MATERIAL)


def asks(role: str) -> str:
    """Whose programs ask a role, as tokens name them."""
    return role.replace("party", "owner")


@dataclass
class Between:
    """A session's roles, which are started and killed."""

    session: Served
    folder: Path
    ports: dict[str, int] = field(default_factory=dict)
    _now: dict[str, Started] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.names = self.session.apart.names
        self.session.deal(self.folder)
        mesh = {str(node): free_port() for node in range(self.session.parties)}
        self.ports = {role: free_port() for role in self.names if role != DEALER}
        for role in self.names:
            own = {f"serve {other}": port for other, port in self.ports.items()}
            filled(home_of(self.folder, role) / "role.toml", mesh | own, _TIMES)

    def start(self, *roles: str, resume: bool = False) -> None:
        """Each as a process."""
        for role in roles:
            home = home_of(self.folder, role)
            words = ["party" if role == DEALER else "serve", "--config", str(home / "role.toml")]
            with (home / "said").open("ab") as said:
                self._now[role] = start(
                    own_command("protocols", *words, *(["--resume"] if resume else [])), os.environ, keep=[],
                    stdout=said.fileno(), stderr=said.fileno(), load=_LOADED,
                )  # fmt: skip

    def kill(self, *roles: str) -> None:
        """By SIGKILL, all before the first is waited for."""
        for role in roles:
            self._now[role].kill()
        for role in roles:
            self._now[role].wait()

    def end(self) -> dict[str, int]:
        """Party 0 is asked to stop, and all do; exit codes, by role."""
        os.kill(self._now[self.names[0]].pid, signal.SIGTERM)
        return {role: process.wait(_TIMES["round"]) for role, process in self._now.items()}

    def ended(self) -> dict[str, str]:
        """What roles said last that have ended by themselves."""
        return {role: self.said(role) for role, process in self._now.items() if process.poll() is not None}

    def said(self, role: str) -> str:
        """The last line of its log."""
        return (home_of(self.folder, role) / "said").read_text().strip().rpartition("\n")[2]

    def asking(self, role: str) -> Asking:
        """A connection of its owner's programs."""
        file = home_of(self.folder, role) / "tokens" / f"{asks(role).replace(' ', '-')}.token"
        return Asking((HOST, self.ports[role]), file.read_text().strip(), patience=_TIMES["round"])

    def learned(self) -> np.ndarray:
        """The regressions, from all parties' shares of the last turn that all have kept: inverses, and coefficients."""
        homes = [
            home_of(self.folder, name) / RESULTS / CHECKPOINTS / keeper(party)
            for party, name in enumerate(self.names[: self.session.parties])
        ]
        for _ in range(_LOOKS):
            if in_all := set.intersection(*map(numbers, homes)):
                with suppress(ConfigError):  # a turn is over meanwhile, and its file gone
                    return self._opened(homes, max(in_all))
            time.sleep(_BEAT / 4)
        raise ConfigError("the parties keep no turn that all have: is one of them gone?")

    def _opened(self, homes: list[Path], done: int) -> np.ndarray:
        words = np.zeros((), np.uint64)
        for home in homes:
            words = words + Checkpoint.load(home / f"checkpoint-{done:09d}.npz").arrays["table"].sum(0, dtype=np.uint64)
        found: np.ndarray = words.view(np.int64)[0] * 2.0**-self.session.program.settings.state_bits
        return found

    def close(self) -> None:
        """None is alive."""
        for process in self._now.values():
            process.kill()
            process.wait()


@contextmanager
def between(session: Served) -> Iterator[Between]:
    """A fresh one, in a folder of its own that goes with it."""
    with tempfile.TemporaryDirectory(prefix="masked-serve-", ignore_cleanup_errors=True) as name:
        made = Between(session, Path(name))
        try:
            yield made
        finally:
            made.close()
