"""Where a run's material comes from: a dealer in a process beside it, or stores that fit it.  Knows no protocol.

A run that goes on has the same coins: its dealer deals by the same coin key, from a later block on.  A dealer that dies
or hangs is named by the party that waits for it, and the run ends with exit code 2, as after any role's death.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mpc.correlations import Correlation, ProductMask
from mpc.errors import DEALER, ConfigError, OutOfMaterial, ProcessFailed
from mpc.heap import keep_freed_memory
from mpc.launch import NOTE, Place, own_command
from mpc.lifeline import lifeline, to_the_end
from mpc.net.channel import adopt, await_parties, call_dealer
from mpc.net.frames import DEALER_NODE
from mpc.net.joining import Address, listen_in_kernel
from mpc.net.keys import Keys, keys_for
from mpc.nursery import ONE_THREAD, Started, start
from offline import Plan, Store, StoreSource, StreamSource, TrustedDealer, serve
from offline.plan import describe

from .tagged_file import read_kept, write
from .terminal import write_line

_DEALER = "MASKED_DEALER"
_TO_GREET = 1.5  # times what all have to meet: a dealer that dies is missed at once, and one that loads is none to lose
_PATIENCE = 20 * 86400.0  # seconds that a dealer waits for parties; it ends with its launcher
REPORT = "dealer.json"


class _Where(NamedTuple):
    """How a party finds the dealer, and its key with it; of the dealer, its keys with all.  Travels as JSON."""

    address: Address
    keys: Keys
    plan: str

    def environment(self) -> dict[str, str]:
        """What its one process finds it by."""
        return {_DEALER: json.dumps([self.address, self.keys.as_json(), self.plan])}


@contextmanager
def dealer_beside(
    plan: Plan, steps: int, scratch: Path, *, coins: Path | None = None, first: int = 0
) -> Iterator[dict[int, dict[str, str]]]:
    """A dealer in a process of its own; gives each party the environment by which it alone finds the dealer.

    coins: the file with its coin key, for an experiment that replays the coins or goes on with block `first` of them;
    else a fresh one.  At its end it writes down, in `REPORT`, how many blocks took how many seconds.
    """
    path = scratch / "plan.json"
    plan.save(path)
    listener, address = listen_in_kernel()
    keys = keys_for((party, DEALER_NODE) for party in range(plan.parties))
    places = {node: _Where(address, own, str(path)).environment() for node, own in keys.items()}
    command = own_command("protocols", "dealer", str(path), "--steps", str(steps))
    command += ["--coins", str(coins), "--first", str(first)] if coins is not None else []
    command += ["--report", str(scratch / REPORT)]
    said = scratch / "dealer.log"  # a dealer that loses a party is a witness, not the cause
    with listener, lifeline() as (held, tied), said.open("wb") as log:
        process = start(
            [*command, "--listener", str(listener.fileno())],
            {**ONE_THREAD, **os.environ, **places.pop(DEALER_NODE), **tied},
            keep=[listener.fileno(), held], stdout=None, stderr=log.fileno(),
            load=["protocols.cli", "protocols.commands.dealer"],
        )  # fmt: skip
        listener.close()
        try:
            yield places
            with suppress(subprocess.TimeoutExpired):
                process.wait(5)  # it ends with its last block
        except ConfigError as error:
            last = said.read_text().strip().splitlines()[-1:]
            if isinstance(error, ProcessFailed) and error.peer == DEALER and last:
                raise ConfigError(f"{error}; the dealer said: {last[0].removeprefix('error: ')}") from error
            raise
        finally:
            _end(process)


def _end(process: Started) -> None:
    """Kindly and then not."""
    with to_the_end():
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def serve_from_environment(
    plan: Plan, steps: int, listener: int, *, coins: Path | None, first: int, report: Path | None
) -> None:
    """The dealer process's own work."""
    keep_freed_memory()
    where = _where()
    warm_up(plan.items)
    key = None if coins is None else read_kept(coins, cure="start the run again")
    dealer = _Timed(plan.parties, coin_key=key, first_coins=first)
    try:
        calling = await_parties(plan.parties, adopt(listener), where.keys, _PATIENCE)
        serve(plan, calling, blocks=steps, dealer=dealer)
    finally:
        if report is not None:
            write(report, json.dumps({"blocks": dealer.blocks, "seconds": dealer.seconds}))


class _Timed(TrustedDealer):
    """A dealer that counts the seconds of its work."""

    blocks = 0
    seconds = 0.0

    def deal(self, items: Sequence[Correlation], blocks: range, steps: int = 1) -> np.ndarray:
        """What party 0 is handed in these blocks."""
        started = time.perf_counter()
        made = super().deal(items, blocks, steps)
        self.seconds += time.perf_counter() - started
        self.blocks += len(blocks)
        return made


def source_for(
    here: Place, material: Path | None, session: str = "local", *, timeout: float | None = None
) -> StoreSource | StreamSource:
    """A networked party's source: its own store below `material`, or the dealer the launcher started.

    timeout: of a silent dealer, the place's own without one; a party that waits for it says so before its peers, who
    wait for the party, lose it.
    """
    party = here.node
    if material is not None:
        said = lambda line: write_line(f"{NOTE}{line}", sys.stderr)  # noqa: E731
        return stored(material / f"party-{party}", party, session, said)
    if _DEALER not in os.environ:
        raise ConfigError(
            "no material: deal it with 'masked offline deal' and name it with --material DIR, or use 'masked launch', "
            "which starts a dealer"
        )
    where, patience = _where(), before(before(here.timeout if timeout is None else timeout))
    starting = before(_TO_GREET * here.starting)
    plan = Plan.load(Path(where.plan))
    warm_up(plan.items)
    channel = call_dealer(party, where.address, where.keys, starting)
    return StreamSource(plan, channel, party=party, timeout=patience, starting=starting)


def stored(home: Path, party: int, session: str, report: Callable[[str], None]) -> StoreSource:
    """A party's source that draws from its store."""
    store = Store(home)
    warm_up(store.plan.items)
    return StoreSource(store, party=party, session=session, report=report)


class Nothing:
    """The source of a program that draws nothing: shares are added up, and multiplied by public numbers."""

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """What a rehearsal did not draw, a run may not."""
        raise OutOfMaterial(
            f"the program draws {describe(item)}, and its rehearsal drew nothing: each decision draws the same, and "
            "what follows the last one draws nothing"
        )

    def want(self, steps: int) -> None:
        """Any number of steps."""

    def statement(self) -> bytes:
        """The same of all parties."""
        return b"nothing"

    def agree(self, statements: list[bytes]) -> None:
        """ConfigError where another party has a dealer."""
        if {statement.rstrip(b"\0") for statement in statements} != {self.statement()}:
            raise ConfigError(
                "another party draws material where this one's program draws nothing: run the same program"
            )

    def close(self) -> None:
        """There is nothing to close."""


def before(timeout: float) -> float:
    """Seconds to wait for one whom others wait for through us: less than they wait, within a launcher's grace."""
    return max(0.8 * timeout, timeout - 2.0)


def check_material(material: Path, session: str, plan: Plan, steps: int, *, run: str, cure: str) -> None:
    """Refuse, before anything is drawn, stores that were dealt for another run or that `steps` would use up.

    run: what this run is, in words.  cure: the command that makes its plan.
    """
    for party in range(plan.parties):
        check_store(material / f"party-{party}", party, session, plan, steps, run=run, cure=cure)


def check_store(home: Path, party: int, session: str, plan: Plan, steps: int, *, run: str, cure: str) -> None:
    """The same of one party's."""
    with Store(home) as store:
        if store.plan.digest != plan.digest:
            raise OutOfMaterial(
                f"{home} was dealt for another run: {_difference(store.plan, plan)} ({run}); make the right plan "
                f"with '{cure}' and deal it with 'masked offline deal plan.json --steps "
                f"{steps if steps > 1 else 'N'} --session {shlex.quote(session)} --out DIR'"
            )
        StoreSource(store, party=party, session=session).want(steps)


def _difference(have: Plan, want: Plan) -> str:
    """Where two plans part, the other's first."""
    if have.program != want.program:
        return f"its program is {have.program!r}, this one {want.program!r}"
    if have.parties != want.parties:
        return f"it has {have.parties} parties, this one {want.parties}"
    pairs = enumerate(zip_longest(have.items, want.items))
    at, (one, other) = next((at, pair) for at, pair in pairs if pair[0] != pair[1])
    theirs, ours = ("nothing more" if item is None else describe(item) for item in (one, other))
    return f"item {at + 1} of its step is {theirs}, of this one {ours}"


def warm_up(items: Iterable[Correlation]) -> None:
    """Do every product once, on zeros: the first large one imports torch, which is no run's time."""
    for item in dict.fromkeys(items):
        if isinstance(item, ProductMask):
            item.op(np.zeros(item.x, np.uint64), np.zeros(item.y, np.uint64))


def _where() -> _Where:
    (host, port), keys, plan = json.loads(os.environ[_DEALER])
    return _Where((host, port), Keys.from_json(keys), plan)
