"""A session between machines in the fault campaign: each role a process, with a folder and a file of its own.

Knows `masked party`, its file, its log and what it leaves; nothing of the code behind them.  One link may be a wire
that can be cut.
"""

from __future__ import annotations

import datetime as dt
import json
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bandits.environments import synthetic_linear
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE, Certificate, make
from mpc.net.cutting import Wire
from mpc.net.ports import free_port
from offline import deal

from ..ppcb.command import PPCB
from ..run.apart import Apart, links_of
from ..run.config import DEALER, ON_SHARES, STORE
from ..run.member_process import options_of, played_apart
from ..run.on_shares import OnShares
from . import faults_world
from .faults_loaded import Loaded
from .faults_processes import Launched, end_all, processes
from .greedy import departure

_ARMS, _DIM, _STEPS, _SEED = 3, 6, 40, 5
_SITTINGS = 3  # material lasts for so many runs: what a disturbed one has spent is not used again
HOST = "127.0.0.1"
RESULTS = "runs/faults"
"""Where a role keeps what it made, seen from its file."""
_WORLD = {"puller": ("tell",), "payer": ("hear",)}


@dataclass(frozen=True)
class Session:
    """The contextual bandit between so many parties.  dealer: whether a role deals, in place of material before."""

    parties: int
    dealer: bool
    system: str = "ppcb"
    keeps: bool = True
    every: int = 6

    @property
    def mode(self) -> str:
        """As it stands in reports."""
        return f"{self.parties} machines, {'a dealer' if self.dealer else 'material'}"

    @property
    def name(self) -> str:
        """The same, with the program."""
        return f"{self.system} {self.mode}"

    @property
    def options(self) -> dict[str, Any]:
        """Of the program.  Without exploration, and draws among close scores, an arm follows from those before."""
        exact = {} if self.dealer else {"tie_bits": 0}
        return {"steps": _STEPS, "arms": _ARMS, "dim": _DIM, "eps": 0.2 if self.dealer else 0.0, **exact}

    @property
    def apart(self) -> Apart:
        """The run as every role knows it."""
        system = PPCB()
        options = options_of(system, ON_SHARES, self.parties, self.options)
        return played_apart(system, options, ON_SHARES, self.material)

    @property
    def material(self) -> str:
        """Where it is from."""
        return DEALER if self.dealer else STORE

    @property
    def links(self) -> list[tuple[str, str]]:
        """All there are, as who calls, who is called."""
        apart, names = self.apart, self.apart.names
        return [(name, names[to]) for node, name in enumerate(names) for to in links_of(node, apart)[0]]

    def homes(self, folder: Path) -> dict[str, Path]:
        """A folder for each role, with keys and a file whose ports and times are left open."""
        apart, now = self.apart, dt.datetime.now(dt.timezone.utc)
        homes = {role: home_of(folder, role) for role in apart.names}
        for home in homes.values():
            home.mkdir(parents=True)
        known = {role: make(home / "keys", role, now) for role, home in homes.items()}
        for role, home in homes.items():
            (home / "role.toml").write_text(self._file(apart, role, known))
        return homes

    def material_to(self, homes: Mapping[str, Path], steps: int) -> None:
        """Each party's, where it is dealt beforehand."""
        apart = self.apart
        if isinstance(apart, OnShares) and not self.dealer:
            with tempfile.TemporaryDirectory() as folder:
                deal(apart.rehearsed.plan, steps, Path(folder) / "material", session="faults")
                for party in range(self.parties):
                    store = homes[apart.names[party]] / "material" / "store"
                    shutil.move(Path(folder) / "material" / f"party-{party}", store)

    def deal(self, folder: Path) -> None:
        """Folders of all roles, which each trial has a copy of."""
        apart, homes = self.apart, self.homes(folder / "roles")
        assert isinstance(apart, OnShares)
        episode = synthetic_linear(_ARMS, _DIM, seed=_SEED).episode(_STEPS, _SEED)
        for home in homes.values():
            shutil.copy(faults_world.__file__, home / "the_world.py")
        for party, block in enumerate(np.split(episode.contexts, self.parties, axis=1)):
            np.save(homes[apart.names[party]] / "features.npy", block)
        (folder / "roles" / "world").mkdir()
        np.save(folder / "roles" / "world" / "outcomes.npy", episode.outcomes)
        np.save(folder / "contexts.npy", episode.contexts)
        self.material_to(homes, _SITTINGS * apart.program.draws())

    def _file(self, apart: Apart, role: str, known: Mapping[str, Certificate]) -> str:
        node, names = apart.names.index(role), apart.names
        calls, called = links_of(node, apart)
        lines = [f'role = "{role}"', 'session = "faults"', f'program = "{self.system}"', f"parties = {self.parties}"]
        lines += ["[options]", *(f"{name} = {json.dumps(value)}" for name, value in self.options.items())]
        lines += ["[own]", f'key = "keys/{KEY_FILE}"', f'certificate = "keys/{CERTIFICATE_FILE}"']
        lines += [f'listen = "{HOST}:@{node}@"'] if called else []
        lines += self.own(role)
        lines += ["[material]", f'from = "{self.material}"']
        lines += ['store = "material/store"', 'session = "faults"'] if node < self.parties and not self.dealer else []
        lines += ["[output]", f'folder = "{RESULTS}"', f"checkpoint_every = {self.every}", "[timeouts]", "@timeouts@"]
        for other in sorted({*calls, *called}):
            at = home_of(Path("../"), names[other]) / "keys" / CERTIFICATE_FILE
            lines += [f'[peers."{names[other]}"]', f'certificate = "{at}"']
            lines += [f'fingerprint = "{known[names[other]].spoken}"']
            lines += [f'address = "{HOST}:@{other}@"'] if other in calls else []
        return "\n".join(lines) + "\n"

    def own(self, role: str) -> list[str]:
        """Lines of a role's file on what it brings, and what it has to do with the world."""
        if role in self.apart.names[: self.parties]:
            return ["[data]", 'file = "features.npy"']
        return ["[world]", *(f'{way} = "the_world:{way}"' for way in _WORLD.get(role, ()))]

    def judge(self, folder: Path, arms: Sequence[int], heard: Mapping[int, float], beside: Sequence[int]) -> str:
        """What is wrong with the arms that were pulled; "" if nothing is.  beside: those of an undisturbed run."""
        if len(arms) != _STEPS:
            return f"{len(arms)} arms"
        if self.dealer:
            return "" if list(arms) == list(beside) else f"arms {list(arms)} in place of {list(beside)}"
        return departure(np.load(folder / "contexts.npy"), arms, heard, _ARMS)


def home_of(folder: Path, role: str) -> Path:
    """The folder of a role."""
    return folder / role.replace(" ", "-")


@dataclass
class Playing:
    """One run of a session.

    over: set where nothing is to be started any more.  times: its timeouts.  wired: whose link is a wire: who calls,
    who is called.
    """

    session: Session
    scratch: Path
    home: Path
    mark: str
    loaded: Loaded | None
    over: threading.Event
    times: Mapping[str, float]
    wired: tuple[str, str] | None = None
    wire: Wire | None = None
    now: dict[str, Launched] = field(default_factory=dict)
    all: list[Launched] = field(default_factory=list)

    def __post_init__(self) -> None:
        shutil.copytree(self.scratch / "roles", self.home, dirs_exist_ok=True)
        self.names = self.session.apart.names
        ports = {str(node): free_port() for node in range(self.session.parties)}
        for role in self.names:
            own = dict(ports)
            if self.wired is not None and role == self.wired[0]:
                to = str(self.names.index(self.wired[1]))
                self.wire = Wire((HOST, ports[to]))
                own[to] = self.wire.address[1]
            filled(self.home_of(role) / "role.toml", own, self.times)

    def __enter__(self) -> Playing:
        return self

    def __exit__(self, *_: object) -> None:
        end_all(self.mark)
        if self.wire is not None:
            self.wire.close()
        for launched in self.all:
            launched.__exit__()

    def home_of(self, role: str) -> Path:
        """Where it keeps all that it has."""
        return home_of(self.home, role)

    def start(self, *roles: str, resume: bool = False) -> None:
        """Each as a process."""
        for role in roles:
            if self.over.is_set():
                raise ChildProcessError("the campaign is stopped")
            said = self.home_of(role) / f"said-{len(self.all)}"
            words = ["party", "--config", str(self.home_of(role) / "role.toml"), *(["--resume"] if resume else [])]
            self.now[role] = Launched(
                words, f"{self.mark}{len(self.all)}-", said, self.home_of(role) / "tmp", told=True, loaded=self.loaded,
                by="protocols.bench.faults_role",
            )  # fmt: skip
            self.all.append(self.now[role])

    def ended_within(self, seconds: float, *but: str) -> list[str]:
        """Wait so long until all have ended; gives those that have not."""
        until, others = time.monotonic() + seconds, {role: self.now[role] for role in self.now if role not in but}
        return [role for role, launched in others.items() if not launched.ended_within(until - time.monotonic())]

    def is_over(self, role: str) -> bool:
        """Whether it has come to the end of the run."""
        return (self.home_of(role) / RESULTS / "result.json").exists()

    @property
    def decided(self) -> int:
        """Decisions whose arms were told."""
        return len({decision for decision, _ in faults_world.lines(self.home / "world" / "told")})

    def learned(self) -> list[int]:
        """The arms that the puller has at the end; of one that found the others gone, those that it told."""
        file = self.home_of("puller") / RESULTS / "result.json"
        if not file.exists():
            told = dict(faults_world.lines(self.home / "world" / "told"))
            return [int(told[decision].split()[0]) for decision in sorted(told)]
        return [int(arm) for (arm,) in json.loads(file.read_text())["learned"]]

    def heard(self) -> dict[int, float]:
        """What was paid, the last time that the payer was told."""
        heard = faults_world.lines(self.home / "world" / "heard")
        return {decision: float(rest.split()[1]) for decision, rest in heard}

    def log(self, launched: Launched) -> Iterator[tuple[float, str, str]]:
        """When, how grave, and what."""
        for line in launched.said().splitlines():
            try:
                said = json.loads(line)
                yield dt.datetime.fromisoformat(said["time"]).timestamp(), said["level"], said["message"]
            except (ValueError, TypeError, KeyError):
                yield 0.0, "none", line

    def orphans(self) -> list[str]:
        """Processes that are there though all roles have ended."""
        return [process.name for process in processes(self.mark)]

    def twice(self) -> int:
        """Keys of masks that were drawn under twice."""
        keys = [key for launched in self.all for key in launched.told().splitlines()]
        return len(keys) - len(set(keys))


def filled(file: Path, ports: Mapping[str, int], times: Mapping[str, float]) -> None:
    """Write ports and times into a role's file, where they were left open."""
    text = file.read_text().replace("@timeouts@", "\n".join(f"{name} = {each:g}" for name, each in times.items()))
    for name, port in ports.items():
        text = text.replace(f"@{name}@", str(port))
    file.write_text(text)


SESSIONS = (Session(2, True), Session(3, True), Session(2, False))
