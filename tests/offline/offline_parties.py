"""Parties over tcp in threads of this process, each with a session of its own.  Every wait here has an end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from typing import Any

import numpy as np

from mpc import ops
from mpc.bilinear import MULTIPLY
from mpc.correlations import Source
from mpc.errors import Told
from mpc.net.tcp import Tcp, listen
from mpc.ring import decode
from mpc.rounds import Reveal
from mpc.session import Session
from offline import Plan, Recorder
from tests.parties.threads import KEYS

TIMEOUT = 100.0
Program = Callable[[Session], Any]


def in_threads(jobs: Sequence[Callable[[], Any]], *, limit: float = 300.0) -> list[Any]:
    """Run all at once; gives what each returned, or the exception it ended with."""
    results: list[Any] = [TimeoutError("still running")] * len(jobs)

    def work(at: int) -> None:
        try:
            results[at] = jobs[at]()
        except BaseException as error:
            results[at] = error

    threads = [threading.Thread(target=work, args=(at,), daemon=True) for at in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(limit)
    return results


def over_tcp(make_sources: Sequence[Callable[[], Source]], program: Program, *, timeout: float = TIMEOUT) -> list[Any]:
    """One session a party, over loopback: what `program` returns there, or how it ended."""
    listeners = [listen() for _ in make_sources]
    addresses = [sock.getsockname() for sock in listeners]

    def party(p: int) -> Any:
        transport = Tcp.join(p, addresses, keys=KEYS[p], listener=listeners[p], timeout=timeout)
        try:
            source = make_sources[p]()
        except BaseException as error:
            transport.close(reason=Told(type(error).__name__, "no source"))
            raise
        try:
            with Session(transport, source) as session:
                return program(session)
        finally:
            close = getattr(source, "close", None)
            if close is not None:
                close()

    return in_threads([lambda p=p: party(p) for p in range(len(make_sources))])


X = np.array([1.5, -2.25, 3.0])
Y = np.array([-4.0, 0.5, 2.0**-6])


def step(session: Session) -> Generator[Any, Any, Any]:
    """One product, truncated, and shown: the step that the stores of these tests are dealt for."""
    x = session.share(X if 0 in session.hosted else None, owner=0, shape=X.shape)
    y = session.share(Y if 1 in session.hosted else None, owner=1, shape=Y.shape)
    z = yield from ops.bilinear(session, MULTIPLY, x, y)
    z = yield from ops.truncate(session, z, 20)
    return (yield Reveal(z, why="test"))


def steps(count: int) -> Program:
    """The step, `count` times; gives the number of right results."""
    return lambda session: sum(right(session.run(step(session))) for _ in range(count))


def right(result: Any) -> bool:
    values = result if result.dtype.kind == "f" else decode(result, 20)
    return bool((np.abs(values - X * Y) <= 2.0**-19).all())


def plan_of(program: Program, parties: int, name: str = "step") -> Plan:
    """A plan by a dry run."""
    recorder = Recorder(parties)
    with Session.simulate(parties, recorder) as session:
        program(session)
    return Plan(name, parties, tuple(recorder.items))


def step_plan(parties: int) -> Plan:
    return plan_of(steps(1), parties)
