"""A published protocol whose participants are on machines of their own.  Knows names, links and files; no protocol.

Nobody deals anything out here: each participant makes its own input from its own file and draws its own coins, and what
some have in common the first of them draws and hands on, over links of their own (`run.apart.Common`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Generic

from mpc.errors import ConfigError, PeerLost
from mpc.net.channel import Channel
from mpc.net.member import Links

from ..run.apart import Apart, Common, Seat, agreed_secrets
from ..run.config import Config
from ..run.desk import FileDesk
from ..run.line_desk import LineDesk
from ..run.on_shares import print_found, told
from ..run.progress import Progress
from ..run.report import Report, learned, ledger_json, show
from .drive import Play, Watch
from .outcome import O
from .participant import Published, played_over


class AsPublished(Apart, Generic[O]):
    """calls: who calls whom.  centre: as in `Cast`."""

    parties = 0

    def __init__(
        self, system: Published[O], names: Sequence[str], calls: Sequence[tuple[str, str]], *, unit: str,
        decisions: int, centre: str = "",
    ) -> None:  # fmt: skip
        self.system, self.name, self.names = system, system.program, tuple(map(str, names))
        self.unit, self.decisions, self.centre = unit, decisions, centre
        self._calls = [(str(caller), str(called)) for caller, called in calls]

    @property
    def common(self) -> Common:
        """Most have none."""
        return {}

    @property
    def beside(self) -> Links:
        """All links there are."""
        at = self.names.index
        return super().beside | {(at(caller), at(called)) for caller, called in self._calls}

    @abstractmethod
    def played(self, role: str, given: Any, common: Mapping[str, bytes], desk: FileDesk, watch: Watch) -> Play[O]:
        """A participant.  given: of `brought`."""

    def ends(self, role: str, done: O) -> Mapping[str, Any]:
        """What its owner reads of what it ends with."""
        return {}

    def check(self, config: Config, *, resume: bool) -> None:
        """Keys of these protocols are never written, so nothing can be gone on with."""
        if resume:
            raise ConfigError(f"{self.name} in mode {config.mode!r} begins anew: leave out --resume")

    def play(self, seat: Seat) -> None:
        """The participant of this machine."""
        try:
            self._play(seat)
        except PeerLost as lost:
            lost.begun = False  # nothing is kept that could be gone on with
            raise

    def _play(self, seat: Seat) -> None:
        config, me = seat.config, seat.config.role
        links = seat.meet(config.start)
        common = agreed_secrets(self, seat, links)
        partners = {other for pair in self._calls for other in pair if me in pair} - {me}
        channels = {
            name: Channel(links[self.names.index(name)], name, peer=self.names.index(name)) for name in partners
        }
        desk = LineDesk(
            seat.world(None), timeout=config.round, start=0, kept=None, keeps=None, notes=None, pipe=Path(), others=[]
        )
        progress = Progress(self.decisions, self.unit, say=seat.say)

        def watch(done: int) -> None:
            seat.status.made(done)
            progress(done)

        try:
            play = self.played(me, seat.own, common, desk, watch)
            done, _ = played_over(
                play, channels, me, self.names, self.centre, timeout=config.round, starting=config.start
            )  # fmt: skip
        except self.system.refusal as error:
            raise ConfigError(str(error)) from error
        finally:
            desk.close()
            progress.end()
        found = self.ends(me, done)
        document = {
            "program": self.name, "mode": config.mode, "role": me, "session": config.session, **found,
            "outcome": done.as_json(), "ledger": ledger_json(done.ledger),
        }  # fmt: skip
        print_found(found)
        text = "\n".join([f"{me}: {self.decisions:,} {self.unit}s are over", *learned(done.ledger)])
        show(Report(document, text, self.decisions), told(config), config.folder, None, as_json=False, say=seat.say)
