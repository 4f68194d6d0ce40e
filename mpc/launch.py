"""Local party processes: start them, bring all down with the first error.  Knows places and names; no protocol.

A launched process finds its place in the environment, and so does one that torchrun started; `join` turns either
into a transport.  What a process ended of it tells its launcher as a record; see `children`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from .children import NOTE, Child, Record, stop, watch
from .client import ClientLink
from .errors import ConfigError, MaskedError
from .heap import keep_freed_memory
from .lifeline import end_with_launcher, hear_ctrl_c, lifeline
from .net.joining import listen_in_kernel
from .net.keys import Keys, keys_for
from .net.tcp import Tcp, TcpClient
from .net.transport import DEFAULT_TIMEOUT, Transport, check_timeout
from .nursery import ONE_THREAD, own_command
from .scratch import scratch_folder

__all__ = [
    "NOTE", "Place", "join", "join_as_client", "launch", "own_command", "party_main", "place", "tell_launcher",
]  # fmt: skip

_PLACE = "MASKED_PLACE"
_GRACE = 3.0
_SECONDS_TO_START = 1.5  # a process, where many start on few cores
_PARTIES_MEET, _CLIENTS_MEET = 1.5, 2.0
"""Of the seconds in which all should have met.

Who waits for somebody gives up before those who wait for it: a party its dealer, whose time is less than either; then
the parties one another; then clients the parties.
"""


@dataclass(frozen=True)
class Place:
    """Where a launched process belongs; travels as JSON in its environment.

    keys: with each node that it may meet.  names: of all nodes, as every error calls them.  record: the pipe that takes
    what this process ends of.  timeout: seconds of a silent peer.  starting: seconds in which all that were started
    together should have met.
    """

    node: int
    parties: int
    transport: str
    keys: Keys = field(default_factory=Keys)
    addresses: list[tuple[str, int]] = field(default_factory=list)
    clients: int = 0
    listener: int = -1
    rendezvous: str = ""
    timeout: float = DEFAULT_TIMEOUT
    names: tuple[str, ...] = ()
    record: int = -1
    starting: float = DEFAULT_TIMEOUT


def place() -> Place | None:
    """This process's place, if a launcher or torchrun started it."""
    if raw := os.environ.get(_PLACE):
        given = json.loads(raw)
        return Place(**{**given, "keys": Keys.from_json(given["keys"]), "names": tuple(given["names"])})
    if {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys():
        return Place(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "gloo")
    return None


def join(timeout: float | None = None, *, clients: int = 0) -> Transport:
    """The transport of this launched party.

    clients: how many there are, where torchrun started this process: the last ranks are theirs.
    """
    here = place()
    if here is None:
        raise ConfigError("this process has no place among parties: start it with 'masked launch' or torchrun")
    end_with_launcher()
    limit = here.timeout if timeout is None else timeout
    if here.transport == "gloo":
        from .net.gloo import Gloo

        if not here.rendezvous:
            return Gloo(clients=clients, timeout=limit)
        return Gloo(init_method=here.rendezvous, party=here.node, parties=here.parties, timeout=limit,
                    starting=here.starting, names=here.names)  # fmt: skip
    import socket

    listener = socket.socket(fileno=here.listener) if here.listener >= 0 else None
    addresses = [(host, port) for host, port in here.addresses]
    return Tcp.join(
        here.node, addresses, keys=here.keys, clients=here.clients, listener=listener, timeout=limit,
        starting=_PARTIES_MEET * here.starting, names=here.names,
    )  # fmt: skip


def join_as_client(timeout: float | None = None, *, clients: int = 0) -> ClientLink:
    """The link of this launched client; under torchrun the last `clients` ranks are clients."""
    here = place()
    limit = timeout if timeout is not None else DEFAULT_TIMEOUT if here is None else here.timeout
    if here is not None and here.transport == "gloo" and here.node >= here.parties - clients:
        from .net.gloo import GlooClient

        return GlooClient(clients=clients, timeout=limit)
    if here is None or here.transport != "tcp" or here.node < here.parties:
        raise ConfigError("this process is no launched client: name it in launch(clients=...)")
    end_with_launcher()
    addresses = [(host, port) for host, port in here.addresses]
    return TcpClient.join(
        here.node, addresses, keys=here.keys, timeout=limit, starting=_CLIENTS_MEET * here.starting, names=here.names
    )


def launch(
    command: Sequence[str],
    parties: int,
    *,
    names: Sequence[str] | None = None,
    transport: str = "tcp",
    clients: Mapping[str, Sequence[str]] | None = None,
    environment: Mapping[str, str] | None = None,
    own_environments: Mapping[int, Mapping[str, str]] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    linger: float | None = None,
    patient: Collection[str] = (),
    limit: float | None = None,
    output: Callable[[str, str], None] | None = None,
    started: Callable[[list[int]], None] | None = None,
    load: Sequence[str] = (),
) -> None:
    """Run `command` once for each party, and the commands of the clients, until all have ended.

    names: how the parties are called, here and in every error that a process makes; clients keep their names.
    environment: of all processes, beside this one's.  own_environments: what a node alone has, by its number.
    output(name, line) receives each line a process prints, one at a time; without it the first party's are printed.
    Lines on stderr that begin with "note: " are passed on at once.  `started` is told the process ids.  The first
    failure ends all, and is raised once as `ProcessFailed`, in the words of that process.
    patient: names of those that may wait until all others have ended, as clients may.  linger: seconds that these have
    once all others have ended, and that the last one of the others has; `timeout` unless told.  limit: seconds after
    which all are stopped.
    load: modules of this project, or module:function, that they import, where `own_command` starts them.
    """
    if parties < 2:
        raise ConfigError(f"secret sharing needs at least 2 parties, not {parties}")
    if transport not in ("tcp", "gloo"):
        raise ConfigError(f"local processes talk over tcp or gloo, not {transport!r}")
    if clients and transport != "tcp":
        raise ConfigError("clients need the tcp transport")
    check_timeout(timeout)
    called = _names(names, parties, list(clients or {}))
    commands = [command] * parties + list((clients or {}).values())
    children: list[Child] = []
    with contextlib.ExitStack() as open_:
        rendezvous = f"file://{open_.enter_context(scratch_folder())}/rendezvous" if transport == "gloo" else ""
        doors = [listen_in_kernel() for _ in range(parties)] if transport == "tcp" else []
        listeners = [open_.enter_context(sock) for sock, _ in doors]
        addresses = [address for _, address in doors]
        held, tied = open_.enter_context(lifeline())
        keys = keys_for((p, q) for p in range(len(doors)) for q in range(p + 1, len(called)))
        open_.callback(stop, children)
        speaking = threading.Lock()
        local = dict(ONE_THREAD)
        if transport == "gloo" and sys.platform == "linux":
            local["GLOO_SOCKET_IFNAME"] = "lo"
        for node, (name, argv) in enumerate(zip(called, commands, strict=True)):
            listener = listeners[node].fileno() if node < len(listeners) else -1
            record, record_write = os.pipe()
            open_.callback(os.close, record)
            os.set_blocking(record, False)
            where = Place(
                node, parties, transport, keys.get(node, Keys()), addresses, len(called) - parties, listener,
                rendezvous, timeout, called, record_write, timeout + _SECONDS_TO_START * len(called),
            )  # fmt: skip
            keep = [fd for fd in (listener, held, record_write) if fd >= 0]
            own = {**(own_environments or {}).get(node, {}), _PLACE: json.dumps(where.__dict__, default=Keys.as_json)}
            env = {**local, **os.environ, **(environment or {}), **tied, **own}
            heard = output or (_print_first if node == 0 else _drop)
            with open(record_write, "wb"):  # the child's alone
                children.append(
                    Child(node, name, argv, env, keep=keep, record=record, output=heard, speaking=speaking, load=load)
                )
        for sock in listeners:
            sock.close()
        if started is not None:
            started([child.process.pid for child in children])
        waiting = {node for node, name in enumerate(called) if node >= parties or name in patient}
        watch(children, parties, waiting, grace=_GRACE, linger=timeout if linger is None else linger, limit=limit)


def _names(parties: Sequence[str] | None, count: int, clients: Sequence[str]) -> tuple[str, ...]:
    """What all nodes are called, each by a name of its own."""
    names = (*(parties or [f"party {p}" for p in range(count)]), *clients)
    if len(names) != count + len(clients) or len(set(names)) < len(names):
        raise ConfigError(f"{count} parties and {len(clients)} clients need a name each, all distinct, not {names}")
    return names


def _print_first(_: str, line: str) -> None:
    print(line, flush=True)


def _drop(_: str, line: str) -> None:
    """The other parties print the same."""


def tell_launcher(error: MaskedError) -> None:
    """Give the launcher of this process, if it has one, a record of what it ends of."""
    here = place()
    if here is not None and here.record >= 0:
        Record.of(error).write(here.record)


def party_main(main: Callable[[], None]) -> None:
    """Run a party's main function: a user's error is a record, one line on stderr and exit code 2, no traceback."""
    end_with_launcher()
    hear_ctrl_c()
    keep_freed_memory()
    try:
        main()
    except MaskedError as error:
        tell_launcher(error)
        print(f"error: {error}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
