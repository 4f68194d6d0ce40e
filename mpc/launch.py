"""Local party processes: spawn them, watch them, bring all down with the first error.  Knows processes; no protocol.

A launched process finds its place in the environment, and so does one that torchrun started; `join` turns either
into a transport.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

from .client import ClientLink
from .errors import ConfigError, MaskedError
from .net.joining import listen_in_kernel
from .net.tcp import Tcp, TcpClient
from .net.transport import DEFAULT_TIMEOUT, Transport, check_timeout

_PLACE = "MASKED_PLACE"
_GRACE = 3.0
NOTE = "note: "


@dataclass(frozen=True)
class Place:
    """Where a launched process belongs; travels as JSON in its environment."""

    node: int
    parties: int
    transport: str
    token: str = field(repr=False)
    addresses: list[tuple[str, int]] = field(default_factory=list)
    clients: int = 0
    listener: int = -1
    lifeline: int = -1
    rendezvous: str = ""
    timeout: float = DEFAULT_TIMEOUT


def place() -> Place | None:
    """This process's place, if a launcher or torchrun started it."""
    if raw := os.environ.get(_PLACE):
        return Place(**json.loads(raw))
    if {"RANK", "WORLD_SIZE", "MASTER_ADDR"} <= os.environ.keys():
        return Place(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), "gloo", token="")
    return None


def join(timeout: float | None = None, *, clients: int = 0) -> Transport:
    """The transport of this launched party.

    clients: how many there are, where torchrun started this process: the last ranks are theirs.
    """
    here = place()
    if here is None:
        raise ConfigError("this process has no place among parties: start it with 'masked launch' or torchrun")
    end_with_launcher(here)
    limit = here.timeout if timeout is None else timeout
    if here.transport == "gloo":
        from .net.gloo import Gloo

        if not here.rendezvous:
            return Gloo(clients=clients, timeout=limit)
        return Gloo(init_method=here.rendezvous, party=here.node, parties=here.parties, timeout=limit)
    import socket

    listener = socket.socket(fileno=here.listener) if here.listener >= 0 else None
    addresses = [(host, port) for host, port in here.addresses]
    return Tcp.join(
        here.node, addresses, token=bytes.fromhex(here.token), clients=here.clients, listener=listener, timeout=limit
    )


def join_as_client(timeout: float | None = None, *, clients: int = 0) -> ClientLink:
    """The link of this launched client; under torchrun the last `clients` ranks are clients."""
    here = place()
    limit = timeout if timeout is not None else DEFAULT_TIMEOUT if here is None else here.timeout
    if here is not None and here.transport == "gloo" and here.node >= here.parties - clients:
        from .net.gloo import GlooClient

        return GlooClient(clients=clients, timeout=limit)
    if here is None or here.transport != "tcp" or here.node < here.parties:
        raise ConfigError("this process is no launched client: name it in launch(clients=...)")
    end_with_launcher(here)
    addresses = [(host, port) for host, port in here.addresses]
    return TcpClient.join(here.node, addresses, token=bytes.fromhex(here.token), timeout=limit)


def own_command(module: str, *arguments: str) -> list[str]:
    """What runs a module of this project in a process of its own; from Python 3.11 on, whatever the folder it is in."""
    apart = ["-P"] if sys.version_info >= (3, 11) else []
    return [sys.executable, *apart, "-m", module, *arguments]


def launch(
    command: Sequence[str],
    parties: int,
    *,
    transport: str = "tcp",
    clients: Mapping[str, Sequence[str]] | None = None,
    environment: Mapping[str, str] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    limit: float | None = None,
    output: Callable[[str, str], None] | None = None,
    started: Callable[[list[int]], None] | None = None,
) -> None:
    """Run `command` once for each party, and the commands of the clients, until all have ended.

    output(name, line) receives each line a process prints, one at a time; without it party 0's lines are printed.
    Lines on stderr that begin with "note: " are passed on at once.  `started` is told the process ids.  The first
    failure ends all, and is raised once as a ConfigError with what that process said.
    limit: seconds after which all are stopped.
    """
    if parties < 2:
        raise ConfigError(f"secret sharing needs at least 2 parties, not {parties}")
    if transport not in ("tcp", "gloo"):
        raise ConfigError(f"local processes talk over tcp or gloo, not {transport!r}")
    if clients and transport != "tcp":
        raise ConfigError("clients need the tcp transport")
    check_timeout(timeout)
    names = [f"party {p}" for p in range(parties)] + list(clients or {})
    commands = [command] * parties + list((clients or {}).values())
    token = secrets.token_hex(16)
    children: list[_Child] = []
    with contextlib.ExitStack() as open_:
        scratch = open_.enter_context(tempfile.TemporaryDirectory(prefix="masked-"))
        doors = [listen_in_kernel() for _ in range(parties)] if transport == "tcp" else []
        listeners = [open_.enter_context(sock) for sock, _ in doors]
        addresses = [address for _, address in doors]
        lifeline_read, lifeline_write = os.pipe()
        open_.callback(os.close, lifeline_write)
        open_.callback(os.close, lifeline_read)
        open_.callback(_stop, children)
        speaking = threading.Lock()
        local = {"OMP_NUM_THREADS": "1"}  # the parties share this machine's cores, as under torchrun
        if transport == "gloo" and sys.platform == "linux":
            local["GLOO_SOCKET_IFNAME"] = "lo"
        for node, (name, argv) in enumerate(zip(names, commands, strict=True)):
            listener = listeners[node].fileno() if node < len(listeners) else -1
            where = Place(
                node, parties, transport, token, addresses, len(names) - parties, listener, lifeline_read,
                f"file://{scratch}/rendezvous" if transport == "gloo" else "", timeout,
            )  # fmt: skip
            keep = [fd for fd in (listener, lifeline_read) if fd >= 0]
            env = {**local, **os.environ, **(environment or {}), _PLACE: json.dumps(where.__dict__)}
            children.append(_Child(name, argv, env, keep, output or (_print_first if node == 0 else _drop), speaking))
        for sock in listeners:
            sock.close()
        if started is not None:
            started([child.process.pid for child in children])
        _watch(children, limit)


class _Child:
    """A party's process and the tail of what it said on stderr."""

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        env: Mapping[str, str],
        keep: Sequence[int],
        output: Callable[[str, str], None],
        speaking: threading.Lock,
    ) -> None:
        self.name = name
        self._speaking = speaking
        try:
            self.process = subprocess.Popen(
                argv, env=dict(env), pass_fds=keep, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            raise ConfigError(f"cannot start {name} as {argv[0]!r}: {error.strerror}") from error
        self.said: list[str] = []
        self.ended_at: float | None = None
        self.broken: BaseException | None = None  # what the output callback raised
        self._readers = [
            threading.Thread(target=self._read, args=(self.process.stdout, output), daemon=True),
            threading.Thread(target=self._read, args=(self.process.stderr, self._remember), daemon=True),
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str] | None, output: Callable[[str, str], None]) -> None:
        with contextlib.closing(stream) if stream else contextlib.nullcontext():
            for line in stream or ():
                if self.broken is None:
                    try:
                        with self._speaking:
                            output(self.name, line.rstrip("\n"))
                    except BaseException as error:
                        self.broken = error

    def _remember(self, name: str, line: str) -> None:
        if line.startswith(NOTE):
            print(f"{name}: {line[len(NOTE) :]}", file=sys.stderr, flush=True)
            return
        self.said = [*self.said[-30:], line]

    def poll(self) -> int | None:
        code = self.process.poll()
        if code is not None and self.ended_at is None:
            self.ended_at = time.monotonic()
            for reader in self._readers:
                reader.join(1.0)
        return code

    def signal(self, how: signal.Signals) -> None:
        """Send a signal to it and what it started."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, how)

    def wait(self, seconds: float) -> None:
        """Give it time to end, and its last lines to be read."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, seconds))
            for reader in self._readers:
                reader.join(1.0)

    def failure(self) -> str:
        """How it failed, in its own words where it had any."""
        code = self.process.returncode
        if code is not None and code < 0:
            return f"{self.name} was ended by {signal.Signals(-code).name}"
        words = "\n".join(line for line in self.said if line.strip())
        if self.said and self.said[-1].startswith("error: "):
            words = self.said[-1][len("error: ") :]
        return f"{self.name} failed with exit code {code}: {words or 'it said nothing'}"


def _stop(children: Sequence[_Child]) -> None:
    """End all, kindly and then not."""
    for how, seconds in ((signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0)):
        for child in children:
            child.signal(how)
        deadline = time.monotonic() + seconds
        for child in children:
            child.wait(deadline - time.monotonic())


def _watch(children: Sequence[_Child], limit: float | None) -> None:
    started, failed_at = time.monotonic(), None
    while any(child.poll() is None for child in children):
        now = time.monotonic()
        _raise_broken(children)
        if failed_at is None and any(child.poll() not in (None, 0) for child in children):
            failed_at = now
        if failed_at is not None and now - failed_at > _GRACE:
            break
        if limit is not None and now - started > limit:
            if failed_at is not None:
                break
            running = ", ".join(child.name for child in children if child.poll() is None)
            raise ConfigError(f"stopped after {limit:g} s: {running} still ran")
        time.sleep(0.01)
    _raise_broken(children)
    failures = [child for child in children if child.poll() not in (None, 0)]
    if failures:
        raise ConfigError(min(failures, key=_blame).failure())


def _raise_broken(children: Sequence[_Child]) -> None:
    for child in children:
        if child.broken is not None:
            raise child.broken


_WITNESS = re.compile(
    r"PeerLost|reported by|"
    r"error: (party|client) \d+ (at \S+ did not answer|did not call|was silent|closed its connection|stopped with)"
)


def _blame(child: _Child) -> tuple[bool, bool, float]:
    """A process that lost a peer is a witness; the others come first, in the order of their end.

    Of witnesses a party comes before a client: what the parties wait for, the clients wait for in vain as well.
    """
    witness = any(_WITNESS.search(line) for line in child.said[-2:])
    return witness, witness and not child.name.startswith("party "), child.ended_at or 0.0


def _print_first(_: str, line: str) -> None:
    print(line, flush=True)


def _drop(_: str, line: str) -> None:
    """The other parties print the same."""


def end_with_launcher(here: Place) -> None:
    """Leave when the launcher is gone, however it went: its end of the lifeline closes."""
    if here.lifeline < 0:
        return

    def wait() -> None:
        os.read(here.lifeline, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def party_main(main: Callable[[], None]) -> None:
    """Run a party's main function: a user's error is one line on stderr and exit code 2, never a traceback."""
    try:
        main()
    except MaskedError as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(130) from None
