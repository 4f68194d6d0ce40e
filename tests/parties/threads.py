"""Parties as threads of one process, each with sockets of its own."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mpc.client import ClientLink, ClientProgram, serve
from mpc.net.frames import DEALER_NODE
from mpc.net.joining import listen
from mpc.net.keys import keys_for
from mpc.net.member import Member
from mpc.net.tcp import Tcp, TcpClient
from mpc.net.tls import Tls, TlsClient
from mpc.net.transport import Transport
from mpc.session import Session

from .programs import Program, seeded

KEYS = keys_for(itertools.combinations([*range(12), DEALER_NODE], 2))
_PATIENCE = 300.0  # seconds: nobody waits so long but for a machine that is busy


@dataclass
class Outcome:
    """How one thread ended."""

    value: Any = None
    error: BaseException | None = None


def side_by_side(*calls: Callable[[], Any]) -> list[Outcome]:
    """Run each call in a thread until all have ended."""
    outcomes = [Outcome() for _ in calls]

    def run(outcome: Outcome, call: Callable[[], Any]) -> None:
        try:
            outcome.value = call()
        except BaseException as error:
            outcome.error = error

    threads = [threading.Thread(target=run, args=each, daemon=True) for each in zip(outcomes, calls, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_PATIENCE)
    hanging = [i for i, thread in enumerate(threads) if thread.is_alive()]
    ended = [f"{i}: {outcome.error!r}" for i, outcome in enumerate(outcomes) if outcome.error is not None]
    assert not hanging, f"threads {hanging} hang; others ended with {', '.join(ended) or 'no error'}"
    return outcomes


def over_tcp(
    parties: int,
    program: Program | Mapping[int, Program],
    *,
    clients: Mapping[str, Callable[[], ClientProgram] | Callable[[TcpClient], Any]] | None = None,
    timeout: float = 100.0,
) -> list[Outcome]:
    """Run a program, or each party its own, at every party; then the outcomes of the clients.

    timeout: of a round; to meet, threads have long enough on any machine.
    """
    listeners = [listen() for _ in range(parties)]
    addresses = [sock.getsockname() for sock in listeners]
    roles, starting = tuple(clients or ()), _PATIENCE / 2

    def party(node: int) -> Tcp:
        return Tcp.join(
            node, addresses, keys=KEYS[node], clients=len(roles), listener=listeners[node], timeout=timeout,
            starting=starting,
        )  # fmt: skip

    def client(node: int) -> TcpClient:
        return TcpClient.join(node, addresses, keys=KEYS[node], timeout=timeout, starting=starting)

    return _over(parties, program, clients, party, client)


def over_tls(
    members: Sequence[Member],
    listeners: Sequence[socket.socket],
    program: Program | Mapping[int, Program],
    *,
    clients: Mapping[str, Callable[[], ClientProgram] | Callable[[TlsClient], Any]] | None = None,
    timeout: float = 100.0,
    log: Callable[[str], None] = lambda _: None,
) -> list[Outcome]:
    """The same between members of a session; each party has its listener."""
    starting = _PATIENCE / 2

    def party(node: int) -> Tls:
        return Tls.join(members[node], listeners[node], timeout=timeout, starting=starting, log=log)

    def client(node: int) -> TlsClient:
        return TlsClient.join(members[node], timeout=timeout, starting=starting)

    return _over(len(listeners), program, clients, party, client)


def _over(
    parties: int,
    program: Program | Mapping[int, Program],
    clients: Mapping[str, Any] | None,
    join: Callable[[int], Transport],
    link_of: Callable[[int], ClientLink],
) -> list[Outcome]:
    roles = tuple(clients or ())

    def party(node: int) -> Callable[[], Any]:
        def run() -> Any:
            with seeded(join(node), roles=roles) as session:
                return (program[node] if isinstance(program, Mapping) else program)(session)

        return run

    def client(node: int, behave: Callable[..., Any]) -> Callable[[], Any]:
        def run() -> Any:
            link = link_of(node)
            return behave(link) if behave.__code__.co_argcount else serve(link, behave())

        return run

    calls = [party(node) for node in range(parties)]
    calls += [client(parties + i, behave) for i, behave in enumerate((clients or {}).values())]
    return side_by_side(*calls)


def values(outcomes: list[Outcome]) -> list[Any]:
    """The values of outcomes that are all good."""
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return [outcome.value for outcome in outcomes]


__all__ = ["KEYS", "Outcome", "Session", "over_tcp", "over_tls", "side_by_side", "values"]
