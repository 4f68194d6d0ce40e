"""Roles on machines of their own, in threads over TLS on loopback, each with a file and a folder of its own."""

from __future__ import annotations

import json
import os
import shutil
import threading
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from mpc.errors import MaskedError
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE
from offline import deal
from protocols.run.apart import Apart, links_of
from protocols.run.config import ON_SHARES, load
from protocols.run.log import Form, Log
from protocols.run.member_process import options_of, play, prepared
from protocols.run.on_shares import OnShares
from protocols.run.options import System
from protocols.run.program import Fresh, Program

from ..parties.members import identity
from ..parties.processes import free_port
from ..parties.threads import Outcome, side_by_side

World = Callable[[dict[str, Any]], "dict[str, Any] | None"]
"""What a line that a role tells comes to: a line that a role hears."""


@dataclass
class Machines:
    """A session.  data: rows by role.  ids: of these rows.  more: of a role's file."""

    folder: Path
    system: System
    options: Mapping[str, Any]
    parties: int = 2
    mode: str = ON_SHARES
    data: Mapping[str, np.ndarray] = field(default_factory=dict)
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    more: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 120.0
    dealer: bool = False
    logged: TextIO | None = None
    every: int = 5

    def __post_init__(self) -> None:
        parties = self.parties if self.mode == ON_SHARES else 0
        self.given: Namespace = options_of(self.system, self.mode, parties, self.options)
        self.apart: Apart = self.system.apart(self.given)
        if self.dealer:
            self.apart = OnShares(self.program, dealer=True)
        self.ports = [free_port() for _ in self.apart.names]
        self.files = {role: self._written(role) for role in self.apart.names}

    @property
    def program(self) -> Program[Any]:
        """Of a session on shares."""
        assert isinstance(self.apart, OnShares)
        return self.apart.program

    def home(self, role: str) -> Path:
        """The folder of one role."""
        return self.folder / role.replace(" ", "-")

    def result(self, role: str) -> dict[str, Any]:
        """What it wrote at its end."""
        return dict(json.loads((self.home(role) / "out/result.json").read_text()))

    def dealt(self, steps: int | None = None) -> Path:
        """Material, and a copy of it that was made before either was used: both have the same coins."""
        assert isinstance(self.apart, OnShares)
        deal(self.apart.rehearsed.plan, steps or self.program.draws(), self.folder / "material")
        shutil.copytree(self.folder / "material", self.folder / "copied")
        return self.folder / "copied"

    def _written(self, role: str) -> Path:
        home, names, node = self.home(role), self.apart.names, self.apart.names.index(role)
        calls, called = links_of(node, self.apart)
        (home / "peers").mkdir(parents=True)
        shutil.copytree(identity(node)[0], home / "keys")
        lines = [f'role = "{role}"', 'session = "trial"', f'program = "{self.system.name}"']
        lines += [f"parties = {self.parties}"] if self.mode == ON_SHARES else [f'mode = "{self.mode}"']
        lines += ["[own]", f'key = "keys/{KEY_FILE}"', f'certificate = "keys/{CERTIFICATE_FILE}"']
        lines += [f'listen = "127.0.0.1:{self.ports[node]}"'] if called else []
        if role in self.ids:
            rows = zip(self.ids[role], self.data[role].tolist(), strict=True)
            text = "\n".join(",".join([each, *map(repr, row)]) for each, row in rows)
            head = ",".join(f"x{at}" for at in range(self.data[role].shape[1]))
            (home / "data.csv").write_text(f"patient,{head}\n{text}\n")
            lines += ["[data]", 'file = "data.csv"', 'id = "patient"']
        elif role in self.data:
            np.save(home / "data.npy", self.data[role])
            lines += ["[data]", 'file = "data.npy"']
        if self.dealer:
            lines += ["[material]", 'from = "dealer"']
        elif node < self.apart.parties:
            lines += ["[material]", f'store = "../material/party-{node}"']
        lines += [self.more.get(role, ""), "[output]", 'folder = "out"', f"checkpoint_every = {self.every}"]
        lines += ["[timeouts]", f"start = {self.seconds}", f"round = {self.seconds}"]
        for other in {*calls, *called}:
            shutil.copy(identity(other)[0] / CERTIFICATE_FILE, home / "peers" / f"{other}.pem")
            lines += [f'[peers."{names[other]}"]', f'certificate = "peers/{other}.pem"']
            lines += [f'fingerprint = "{identity(other)[1].spoken}"']
            lines += [f'address = "127.0.0.1:{self.ports[other]}"'] if other in calls else []
        lines += ["[options]", *(f"{name} = {json.dumps(value)}" for name, value in self.options.items())]
        path = home / "role.toml"
        path.write_text("\n".join(lines))
        return path

    def playing(
        self, role: str, fresh: Fresh | None = None, *, resume: bool = False, **pipes: Any
    ) -> Callable[[], Any]:  # fmt: skip
        """What a process of this role does."""
        own = self.saying(role)
        return lambda: play(prepared(load(self.files[role]), self.system, fresh, resume=resume, **own), **pipes)

    def saying(self, role: str) -> dict[str, Any]:
        """Where this role's log goes, where that is said."""
        return {} if self.logged is None else {"say": Log(role, "trial", Form.JSON, self.logged)}

    def play(
        self, *, fresh: Mapping[str, Fresh] | None = None, worlds: Sequence[tuple[str, str, World]] = (),
        resume: bool = False, instead: Mapping[str, Callable[[], Any]] | None = None,
    ) -> list[Outcome]:  # fmt: skip
        """All roles, each in a thread.  worlds: who tells, who hears, and what is between them.

        instead: what some roles do in place of playing.
        """
        ends: dict[str, dict[str, Any]] = {role: {} for role in self.files}
        for teller, hearer, world in worlds:
            (told_in, told_out), (heard_in, heard_out) = os.pipe(), os.pipe()
            ends[teller]["told"] = os.fdopen(told_out, "w")
            ends[hearer]["heard"] = heard_in
            threading.Thread(target=_be, args=(told_in, heard_out, world), daemon=True).start()
        for given in ends.values():
            given.setdefault("heard", 0)

        def closing(role: str) -> Callable[[], Any]:
            played = self.playing(role, (fresh or {}).get(role), resume=resume, **ends[role])
            go = (instead or {}).get(role, played)

            def run() -> Any:
                try:
                    return go()
                finally:
                    if "told" in ends[role]:
                        ends[role]["told"].close()

            return run

        return side_by_side(*map(closing, self.files))


def _be(told: int, heard: int, world: World) -> None:
    with os.fdopen(told) as lines, os.fdopen(heard, "w", buffering=1) as out:
        for line in lines:
            if (answer := world(json.loads(line))) is not None:
                out.write(json.dumps(answer) + "\n")


def good(outcomes: Sequence[Outcome]) -> None:
    """Raise the first error there was, of a witness only where there is no other."""
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    for error in sorted(errors, key=lambda error: isinstance(error, MaskedError) and error.witness):
        raise error
