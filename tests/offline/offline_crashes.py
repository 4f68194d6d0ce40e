"""Two parties, killed over and over: `python offline_crashes.py DIR SEED RUNS`.  Started by test_one_time_use.

A fork server: it imports once, deals once into DIR, and then plays RUNS runs of both parties over tcp, each in a
process of its own.  In each run but the last somebody is killed with SIGKILL, at a place that the seed picks.  Every
item's id goes to DIR/used-PARTY, opened with O_APPEND, before the item is used.  Knows no assertion: the test reads
the files.
"""

from __future__ import annotations

import json
import os
import random
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from offline_parties import right, step, step_plan

from mpc.errors import MaskedError
from mpc.net.tcp import Tcp, listen
from mpc.session import Session
from offline import Store, StoreSource, deal
from tests.parties.threads import KEYS

PARTIES, STEPS, BLOCK_STEPS = 2, 8, 3
ITEMS = 2 * STEPS
CLAIMS = -(-STEPS // BLOCK_STEPS)
_PATIENCE = 100.0  # seconds: nobody waits so long but for a machine that is busy
_IN_VAIN = 2.0  # seconds in which all meet, where one of them dies before or soon after


@dataclass(frozen=True)
class Kill:
    """Who is killed, and where: at an item, inside a claim, or by the server after some milliseconds."""

    victims: tuple[int, ...]
    place: str
    at: int


def kills(seed: int, runs: int) -> list[Kill | None]:
    """One for each run but the last."""
    rng = random.Random(seed)
    places = [
        "before log",
        "after log",
        "before write",
        "half write",
        "zero write",
        "after write",
        "after sync",
        "server",
    ]
    chosen: list[Kill | None] = []
    for run in range(runs - 1):
        place = places[run % len(places)]
        victims = rng.choice([(0,), (1,), (0, 1)])
        limit = ITEMS if place.endswith("log") else 10 if place == "server" else CLAIMS
        chosen.append(Kill(victims, place, rng.randrange(limit)))
    return [*chosen, None]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def rig_claims(log: int, kill: Kill) -> None:
    """Die inside the claim number `kill.at` of this process."""
    real_write, real_sync, seen = os.write, os.fdatasync, [-1]

    def write(fd: int, data: bytes) -> int:
        if fd != log:
            return real_write(fd, data)
        seen[0] += 1
        if seen[0] == kill.at and kill.place != "after sync":
            part = {"before write": b"", "half write": data[:13], "zero write": bytes(len(data)), "after write": data}
            real_write(fd, part[kill.place])
            die()
        return real_write(fd, data)

    def sync(fd: int) -> None:
        real_sync(fd)
        if fd == log and seen[0] == kill.at and kill.place == "after sync":
            die()

    os.write, os.fdatasync = write, sync


def play(run: int, party: int, home: Path, listener: socket.socket, addresses: list[tuple[str, int]],
         kill: Kill | None) -> int:  # fmt: skip
    """One party's run, in a process of its own: 0 all steps, 3 came down in order, 9 a wrong result."""
    to = os.open(home.parent / f"used-{party}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    drawn = 0

    def note(**what: object) -> None:
        os.write(to, (json.dumps({"run": run, **what}) + "\n").encode())

    def used(block: int, index: int) -> None:
        nonlocal drawn
        if mine is not None and mine.place == "before log" and mine.at == drawn:
            die()
        note(draw=drawn, block=block, index=index)
        if mine is not None and mine.place == "after log" and mine.at == drawn:
            die()
        drawn += 1

    mine = kill if kill is not None and party in kill.victims else None
    store = Store(home)
    if mine is not None and (mine.place.endswith("write") or mine.place == "after sync"):
        rig_claims(store._log, mine)
    note(cursor=store.cursor, finished=store.finished)
    source = StoreSource(store, party=party, report=lambda line: note(report=line), used=used)
    try:
        starting = _IN_VAIN if kill is not None and kill.place == "server" else _PATIENCE
        transport = Tcp.join(
            party, addresses, keys=KEYS[party], listener=listener, timeout=_PATIENCE, starting=starting
        )  # fmt: skip
        with Session(transport, source) as session:
            for _ in range(STEPS):
                if not right(session.run(step(session))):
                    return 9
        source.close()
    except MaskedError as error:
        note(error=f"{type(error).__name__}: {error}")
        return 3
    return 0


def forked(job: Callable[[], int]) -> int:
    """The process id of a child that runs the job."""
    pid = os.fork()
    if pid:
        return pid
    code = 10
    try:
        code = job()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def wait(pids: list[int], seconds: float) -> dict[int, int]:
    """Exit codes; whoever still runs after `seconds` is ended and counts as -99."""
    codes, deadline = {}, time.monotonic() + seconds
    handles = {os.pidfd_open(pid): pid for pid in pids}
    while handles and (left := deadline - time.monotonic()) > 0:
        for fd in select.select(list(handles), [], [], left)[0]:
            pid = handles.pop(fd)
            os.close(fd)
            codes[pid] = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    for fd, pid in handles.items():
        os.close(fd)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        codes[pid] = -99
    return codes


def main(directory: Path, seed: int, runs: int) -> None:
    homes = deal(step_plan(PARTIES), runs * BLOCK_STEPS * (CLAIMS + 1), directory, block_steps=BLOCK_STEPS)
    for run, kill in enumerate(kills(seed, runs)):
        listeners = [listen() for _ in homes]
        addresses = [sock.getsockname() for sock in listeners]
        pids = [
            forked(lambda p=p: play(run, p, homes[p], listeners[p], addresses, kill)) for p in range(PARTIES)
        ]  # fmt: skip
        for sock in listeners:
            sock.close()
        if kill is not None and kill.place == "server":
            time.sleep(kill.at / 1000)
            for victim in kill.victims:
                os.kill(pids[victim], signal.SIGKILL)
        codes = wait(pids, 2 * _PATIENCE)
        line = {"run": run, "codes": [codes[pid] for pid in pids], "kill": kill and [kill.victims, kill.place, kill.at]}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
