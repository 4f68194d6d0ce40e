"""A participant of a published protocol as a process of its own, and how a run of such processes is launched.

    python -m protocols.published.participant MODULE:NAME FOLDER         NAME is the protocol's `Published`

    FOLDER/cast.json      who takes part, by node, and who calls whom
    FOLDER/NAME.in.json   what a participant alone is given; it deletes the file when it has read it
    FOLDER/NAME.out.json  what it ends with

Knows names, files and links; no protocol.  Keys that a participant makes are never written.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Generic

from mpc.errors import ConfigError, PeerLost
from mpc.launch import Place, launch, own_command, party_main, place
from mpc.net.channel import Channel, adopt
from mpc.net.frames import Nodes
from mpc.net.joining import meet
from mpc.scratch import scratch_folder

from ..run.exits import say
from ..run.folder import OF_LAUNCHER, Keep
from ..run.progress import StepLines
from ..run.tagged_file import put_back, write
from .drive import Play, Spent, Times, Watch, in_one_process, over_links
from .outcome import O

_SECONDS_BEHIND = 0.5  # in which the centre ends first, which knows whom all of them waited for


@dataclass(frozen=True)
class Published(Generic[O]):
    """What a published protocol says of its participants.

    where: MODULE:NAME of this object.  program: of 'masked launch'.  outcome: what a participant ends with.  refusal:
    the error of its bandit, whose words a user reads.  play: of a node, from its input.
    """

    where: str
    program: str
    outcome: type[O]
    refusal: type[Exception]
    play: Callable[[int, dict[str, Any], Watch], Play[O]]


@dataclass(frozen=True)
class Cast:
    """Who takes part in a run.

    inputs: to each its own, by name, in the order of nodes.  calls: (who calls, who answers), in no circle.  centre:
    the one that all others wait for, where there is one: they give it time to say whom it waited for.  patient: the one
    that waits until all else is done.
    """

    inputs: Mapping[str, Mapping[str, Any]] = field(repr=False)
    calls: Sequence[tuple[str, str]]
    centre: str = ""
    patient: str = ""

    def write(self, folder: Path) -> None:
        """For the processes to read; each input for one of them."""
        common = {"names": list(self.inputs), "calls": list(self.calls), "centre": self.centre}
        (folder / "cast.json").write_text(json.dumps(common))
        for name, given in self.inputs.items():
            path = input_path(folder, name)
            path.touch(mode=0o600)
            path.write_text(json.dumps(given))


def input_path(folder: Path, name: str) -> Path:
    """Where a participant finds its input."""
    return folder / f"{name}.in.json"


def _outcome_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.out.json"


def launched(
    system: Published[O], cast: Cast, *, watch: Watch | None, timeout: float, keep: Keep | None = None
) -> tuple[dict[str, O], dict[str, Times]]:  # fmt: skip
    """Play a run in a process for each participant: what each ends with, and its seconds.

    keep: what the launcher wrote there is put back where the folder was removed meanwhile.
    """
    names = list(cast.inputs)
    lasting = nullcontext() if keep is None else put_back(keep.folder, OF_LAUNCHER, say)
    with scratch_folder() as folder, lasting:
        cast.write(folder)
        command = own_command("protocols.published.participant", system.where, str(folder))
        launch(
            command, len(names), names=names, timeout=timeout, patient=[cast.patient],
            output=StepLines.heard(watch), load=[system.where.partition(":")[0]],
        )  # fmt: skip
        ended = {name: json.loads(_outcome_path(folder, name).read_text()) for name in names}
    times = {name: {part: Spent(**spent) for part, spent in one["times"].items()} for name, one in ended.items()}
    return {name: system.outcome.from_json(one["outcome"]) for name, one in ended.items()}, times


def played_here(cast: Cast, play: Callable[[int, dict[str, Any]], Play[O]]) -> tuple[dict[str, O], dict[str, Times]]:
    """The same in this process.  play: of a node, from its input."""
    return in_one_process({name: play(node, dict(given)) for node, (name, given) in enumerate(cast.inputs.items())})


def main() -> None:
    """Play the participant that this process's place says."""
    where, folder = sys.argv[1], Path(sys.argv[2])
    module, _, attribute = where.partition(":")
    system: Published[Any] = getattr(importlib.import_module(module), attribute)
    here = place()
    if here is None:
        raise ConfigError(f"a participant is started by 'masked launch {system.program}'")
    cast = json.loads((folder / "cast.json").read_text())
    name: str = cast["names"][here.node]
    path = input_path(folder, name)
    given = json.loads(path.read_text())
    path.unlink()
    try:
        done, times = _played(here, system.play(here.node, given, StepLines()), **cast)
    except system.refusal as error:
        raise ConfigError(str(error)) from error
    ended = {"outcome": done.as_json(), "times": {part: asdict(spent) for part, spent in times.items()}}
    write(_outcome_path(folder, name), json.dumps(ended))


def _played(
    here: Place, play: Play[O], names: list[str], calls: list[tuple[str, str]], centre: str
) -> tuple[O, Times]:  # fmt: skip
    links = _links(here, names, calls, time.monotonic() + here.starting)
    me = names[here.node]
    return played_over(play, links, me, names, centre, timeout=here.timeout, starting=here.starting)


def played_over(
    play: Play[O], links: Mapping[str, Channel], me: str, names: Sequence[str], centre: str, *, timeout: float,
    starting: float,
) -> tuple[O, Times]:  # fmt: skip
    """What the participant `me` ends with, over its links, which end with it."""
    central = centre in ("", me)
    patience = timeout if central else 2.0 * timeout + 1.0
    try:
        return over_links(play, links, timeout=patience, first=patience + starting, nodes=names)
    except PeerLost:
        if not central:
            time.sleep(_SECONDS_BEHIND)
        raise
    finally:
        for link in links.values():
            link.close()


def _links(here: Place, names: list[str], calls: list[tuple[str, str]], deadline: float) -> dict[str, Channel]:
    """Call those it is to call, and answer the others."""
    name, nodes = names[here.node], Nodes(here.parties, tuple(names))
    called = [names.index(other) for caller, other in calls if caller == name]
    answers = [names.index(caller) for caller, other in calls if other == name]
    try:
        addresses = {node: (here.addresses[node][0], here.addresses[node][1]) for node in called}
        own = adopt(here.listener) if answers else None
        sockets = meet(here.node, addresses, own, answers, here.keys, deadline, nodes)
    except PeerLost as error:
        raise PeerLost(f"{names[error.peer]} did not join {name}: is it started?", peer=error.peer) from error
    return {names[node]: Channel(sock, names[node], peer=node) for node, sock in sockets.items()}


if __name__ == "__main__":
    party_main(main)
