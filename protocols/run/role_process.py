"""One role of a run as a process: `python -m protocols.run.role_process FOLDER ROLE`.  Knows files and one place.

    FOLDER/task.json        what every role is told: the program as `Program.public` has it, and where things are kept
    FOLDER/ROLE.npz         what this role alone has, `Program.private`; it deletes the file once it has read it
    FOLDER/ended.json       what party 0 counted, at the end
    FOLDER/ROLE.json        what a client's program returned

What a role goes on from lies below `keep`: see `folder`.  All roles that keep anything stop after the same decision:
see `stopping`.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpc.client import ClientLink, serve
from mpc.errors import STOPPED, ConfigError, MaskedError, Told
from mpc.launch import join, join_as_client, party_main, place
from mpc.net.transport import Transport
from mpc.session import Session
from offline import StoreSource, StreamSource

from .checkpoint import Checkpoint, checkpoint_at
from .dealer_process import Nothing, source_for
from .desk import FileDesk, State
from .folder import notes_in
from .program import Arrays, Program, Role, home_of, private_path
from .progress import StepLines
from .stopping import Stop, stopped_at
from .tagged_file import write

PIPE, ENDED = "world", "ended.json"
Drawn = StoreSource | StreamSource | Nothing
PATIENCE = 30 * 86400.0  # seconds that a client waits for the end of a run; whom the parties lose, they notice sooner


@dataclass(frozen=True)
class Task:
    """What every role is told; travels as JSON in the run's folder.

    kind: where the program's class is: module, name, and the file where the module is no installed one.
    run: the run's name.  start: decisions made before.  every: decisions between checkpoints.  keep: where they lie.
    timeout: seconds until a silent peer is lost.  draws: whether a decision draws anything.
    material, session: where the parties' stores lie, else a dealer serves them.
    attempt, of: between machines, the name of what all roles began together, and a digest of `Program.kept_for`.
    """

    kind: tuple[str, str, str | None]
    public: dict[str, Any]
    run: str
    start: int
    every: int
    keep: Path
    timeout: float
    draws: bool
    material: Path | None = None
    session: str = "local"
    attempt: str = ""
    of: str = ""

    def signature(self, role: str) -> dict[str, str]:
        """What a checkpoint says of whose it is."""
        return {"run": self.run, "role": role, **({"attempt": self.attempt, "of": self.of} if self.attempt else {})}

    def save(self, folder: Path) -> None:
        """Write it where the roles look."""
        given = {**asdict(self), "keep": str(self.keep), "material": self.material and str(self.material)}
        (folder / "task.json").write_text(json.dumps(given))

    @classmethod
    def load(cls, folder: Path) -> Task:
        """Read it."""
        given = json.loads((folder / "task.json").read_text())
        material = None if given["material"] is None else Path(given["material"])
        return cls(**{**given, "kind": tuple(given["kind"]), "keep": Path(given["keep"]), "material": material})

    def program(self) -> Program[Any]:
        """The program as every role knows it."""
        module, name, file = self.kind
        kind: type[Program[Any]] = getattr(_module(module, file), name)
        return kind.of(self.public)

    def due(self, done: int, decisions: int) -> bool:
        """Whether a checkpoint is kept after so many decisions."""
        return done > self.start and (done % self.every == 0 or done >= decisions)


def kind_of(program: Program[Any]) -> tuple[str, str, str | None]:
    """Where another process finds the program's class: its module, or the file where no such module is found there."""
    kind = type(program)
    return kind.__module__, kind.__qualname__, sys.modules[kind.__module__].__file__


def returned_path(folder: Path, role: str) -> Path:
    """The file of what a client's program returned."""
    return folder / f"{role.replace(' ', '-')}.json"


def computing_party(
    program: Program[Any], task: Task, party: int, source: Drawn, own: Arrays, join: Callable[[], Transport],
    stops: Callable[[int], bool], tell: Callable[[int], None] | None = None,
    watched: Callable[[Session], None] = lambda _: None, parting: Callable[[], None] = lambda: None,
) -> dict[str, Any] | None:  # fmt: skip
    """Plays with the others what is left of the run, and keeps its state in between; what it counted, at the end.

    own: what it alone has.  join: meets the others.  stops: asked after each decision whether all stop there; with a
    transport that can be told, the clients hear of it.  tell: for a launcher.
    watched: is given the session, whose costs it may look at.  parting: called before it leaves the others, when it has
    kept and told all.
    """
    home = task.keep / home_of(party)
    kept = Checkpoint.load(checkpoint_at(home, task.start)) if task.start else None
    source.want(program.stock(task.start))
    writer, counted = program.notes, None
    transport = join()
    if isinstance(source, StreamSource):
        source.waiting = transport.say_waiting
    with Session(transport, source, roles=[role.name for role in program.roles]) as session:
        watched(session)
        seconds = 0.0
        if kept is not None:
            session.resume(kept.facts["cost"], kept.facts["ledger"])
            seconds = kept.facts["seconds"]
        player = program.player(session, {party: own}, None if kept is None else kept.arrays, task.start)
        while True:
            finished = player.done >= program.decisions
            last = not finished and stops(player.done)
            due = task.due(player.done, program.decisions)
            if due and writer is not None:  # a checkpoint that these do not reach is none to go on from
                transport.await_noted(program.parties + program.roles.index(writer), player.done)
            if last or due:
                facts = {**task.signature(home.name), **session.counted(), "seconds": seconds}
                Checkpoint(player.done, facts, player.state()).save(home)
            if last and task.attempt:
                transport.close(reason=Told(STOPPED, str(player.done)))
            if last or finished:
                break
            started = time.perf_counter()
            player.turn()
            seconds += time.perf_counter() - started
            if tell is not None:
                tell(player.done)
        if finished:
            played = session.counted()
            player.finish()
            counted = {"played": played["cost"], **session.counted(), "seconds": seconds}
            parting()
    source.close()
    return counted


def client(program: Program[Any], task: Task, folder: Path, role: Role, node: int, link: ClientLink) -> None:
    """Plays a client; one that is left waiting because all others were asked to stop ends in peace."""
    desk = _desk(program, task, folder, role, node, link)
    try:
        left = serve(link, program.client(role.name, own_inputs(folder, role.name), desk))
    except MaskedError:
        if stopped_at(folder) is None:
            raise
        return
    finally:
        desk.close()
    if desk.stopped:
        return
    write(returned_path(folder, role.name), json.dumps(left))


def play(folder: Path, role: str, *, clients: int = 0, tell: StepLines | None = None) -> None:
    """The role of this process, where its launcher says.

    clients: how many there are, under torchrun.  tell: where a launcher, and nobody else, reads this process's lines.
    """
    here = place()
    if here is None:
        raise ConfigError("a role is started by 'masked launch'")
    task = Task.load(folder)
    program = task.program()
    if role == PARTY:
        source = source_for(here, task.material, task.session, timeout=task.timeout) if task.draws else Nothing()
        own = own_inputs(folder, home_of(here.node))
        first = here.node == 0
        counted = computing_party(
            program, task, here.node, source, own, lambda: join(task.timeout, clients=clients),
            Stop(folder, here.node, task.timeout, _keeping(program)).here, tell if first else None,
        )  # fmt: skip
        if first and counted is not None:
            write(folder / ENDED, json.dumps(counted))
        return
    part = next((part for part in program.roles if part.name == role), None)
    if part is None:
        raise ConfigError(f"there is no role {role!r} in {program.name}")
    link = join_as_client(PATIENCE if part.patient else task.timeout, clients=clients)
    client(program, task, folder, part, here.node, link)


PARTY = "party"


def own_inputs(folder: Path, role: str) -> Arrays:
    """What this role alone has; the file is gone once it is read."""
    path = private_path(folder, role)
    if not path.exists():
        return {}
    with np.load(path, allow_pickle=False) as own:
        arrays = {name: own[name] for name in own.files}
    path.unlink()
    return arrays


def _desk(program: Program[Any], task: Task, folder: Path, role: Role, node: int, link: ClientLink) -> FileDesk:
    kept, keeps = None, None
    if role.home:
        home, stop = task.keep / role.home, Stop(folder, node, task.timeout, _keeping(program))
        if task.start:
            kept = Checkpoint.load(checkpoint_at(home, task.start)).arrays

        def keeps(done: int, state: State) -> bool:
            last = done < program.decisions and stop.here(done)
            if last or task.due(done, program.decisions):
                Checkpoint(done, task.signature(home.name), state()).save(home)
            return last

    others = [(program.parties + at, other.name) for at, other in enumerate(program.roles) if other is not role]
    notes = notes_in(program, task.keep)

    def written(done: int) -> None:
        if notes is not None and task.due(done, program.decisions):
            notes.flush()
            link.say_noted(done)

    return FileDesk(
        start=task.start, kept=kept, keeps=keeps, notes=notes, pipe=folder / PIPE, others=others, timeout=task.timeout,
        waiting=link.say_waiting, written=written,
    )  # fmt: skip


def _keeping(program: Program[Any]) -> dict[int, str]:
    """The roles that keep checkpoints, by node, as a launch calls them."""
    clients = {program.parties + at: role.name for at, role in enumerate(program.roles) if role.home}
    return {**{party: f"party {party}" for party in range(program.parties)}, **clients}


def _module(name: str, file: str | None) -> Any:
    """The program's module; a script, or a module that was found by where its process was started, from its file."""
    if name != "__main__":
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    spec = None if file is None else importlib.util.spec_from_file_location("program_of_this_run", file)
    if spec is None or spec.loader is None:
        raise ConfigError(f"the program's module {name} is not found, nor its file {file}: is it still there?")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    party_main(lambda: play(Path(sys.argv[1]), sys.argv[2], tell=StepLines()))
