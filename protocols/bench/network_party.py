"""One launched node of `scripts/bench network`: all ways to talk at once, timed in turns.

A computing party prints, as JSON, how long its exchanges took and each step of the bandit; a client plays its role over
each way in turn.  Ways are met in one order by all, and each run of the bandit is over before the next begins.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mpc.client import ClientLink
from mpc.launch import Place, join, join_as_client, party_main, place
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE, read
from mpc.net.client_mesh import ClientMesh
from mpc.net.insecure import insecure_links
from mpc.net.member import Member, Peer, called_by, calling
from mpc.net.party_mesh import PartyMesh
from mpc.net.remaking import meet_lasting
from mpc.net.tls import Tls, TlsClient, listen_on
from mpc.net.transport import Stamp, Transport
from offline import Store, StoreSource

from ..run.program import home_of
from ..run.role_process import Task, client, computing_party, own_inputs

TLS, TCP, UNIX, GLOO, GATHER = "TLS mesh", "plain TCP", "unix sockets", "gloo", "gloo's all_gather"
_TIMEOUT = 240.0  # seconds: many start on few cores
_SILENCE = 1.0  # seconds after which TCP has forgotten its window
_STAMP = Stamp(0, bytes(8), "exchange")
Timed = Callable[[np.ndarray], Any]
"""Sends (1, n) bytes to each other party, and receives as much of each."""


@dataclass(frozen=True)
class Plan:
    """What is measured; travels as JSON.

    addresses: of all nodes, ports: of all ways.  device: what gloo talks over.  exchanges: (bytes, blocks, of how
    many).  silent: (bytes, how often).  steps: ways over which the bandit is played, a run of it in `folder / way`.
    """

    folder: Path
    ways: tuple[str, ...]
    addresses: tuple[str, ...]
    ports: dict[str, int]
    device: str
    exchanges: tuple[tuple[int, int, int], ...] = ()
    silent: tuple[tuple[int, int], ...] = ()
    steps: tuple[str, ...] = ()

    def save(self) -> Path:
        """Write it where the nodes look."""
        path = self.folder / "plan.json"
        path.write_text(json.dumps({**asdict(self), "folder": str(self.folder)}))
        return path

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read it."""
        given = json.loads(path.read_text())
        return cls(**{**given, "folder": Path(given["folder"])})


def identity(folder: Path, node: int) -> Path:
    """Where a node's key and certificate lie."""
    return folder / f"node-{node}"


def main() -> None:
    """Meet over all ways, then measure."""
    plan, here = Plan.load(Path(sys.argv[1])), place()
    assert here is not None
    links = dict(_met(plan, here))
    if here.node < here.parties:
        print(json.dumps(_measured(plan, here.node, links)), flush=True)
        return
    for way in plan.steps:
        folder = plan.folder / way.replace(" ", "-")
        task = Task.load(folder)
        program = task.program()
        client(program, task, folder, program.roles[here.node - here.parties], here.node, links[way])


def _met(plan: Plan, here: Place) -> Iterator[tuple[str, Any]]:
    """A transport, or a client's link, for each way."""
    made: dict[str, Callable[[Plan, Place], Any]] = {TLS: _tls, TCP: _tcp, UNIX: _unix, GLOO: _gloo}
    for way in plan.ways:
        yield way, made[way](plan, here)


def _whom(plan: Plan, here: Place, way: str) -> tuple[dict[int, tuple[str, int]], list[int]]:
    """Whom this node calls, and where; who calls it."""
    port, nodes = plan.ports[way], here.parties + here.clients
    called = {other: (plan.addresses[other], port) for other in called_by(here.node, here.parties)}
    return called, calling(here.node, here.parties, nodes)


def _listener(plan: Plan, here: Place, way: str) -> Any:
    return listen_on(plan.addresses[here.node], plan.ports[way]) if here.node < here.parties else None


def _tls(plan: Plan, here: Place) -> Transport | ClientLink:
    listener, (called, awaited) = _listener(plan, here, TLS), _whom(plan, here, TLS)
    certificates = {
        node: read(identity(plan.folder, node) / CERTIFICATE_FILE) for node in (here.node, *called, *awaited)
    }
    own = identity(plan.folder, here.node)
    peers = {node: Peer(certificates[node], called.get(node)) for node in (*called, *awaited)}
    member = Member(
        here.node, here.parties, here.names, "network", certificates[here.node], own / CERTIFICATE_FILE, own / KEY_FILE,
        peers,
    )  # fmt: skip
    links = meet_lasting(member, listener, grace=_TIMEOUT, timeout=_TIMEOUT)
    return (Tls if here.node < here.parties else TlsClient).over(member, links, _TIMEOUT)


def _tcp(plan: Plan, here: Place) -> Transport | ClientLink:
    listener, (called, awaited) = _listener(plan, here, TCP), _whom(plan, here, TCP)
    links = insecure_links(here.node, called, awaited, listener, _TIMEOUT)
    return (PartyMesh if here.node < here.parties else ClientMesh)(
        here.node, here.parties, links, _TIMEOUT, here.names
    )  # fmt: skip


def _unix(_: Plan, here: Place) -> Transport | ClientLink:
    return join(_TIMEOUT) if here.node < here.parties else join_as_client(_TIMEOUT)


def _gloo(plan: Plan, here: Place) -> Transport | ClientLink:
    """As torchrun would have it: the clients' ranks are behind the parties'."""
    from mpc.net.gloo import Gloo, GlooClient

    os.environ |= {
        "RANK": str(here.node), "WORLD_SIZE": str(here.parties + here.clients), "MASTER_ADDR": plan.addresses[0],
        "MASTER_PORT": str(plan.ports[GLOO]), "GLOO_SOCKET_IFNAME": plan.device,
    }  # fmt: skip
    return (Gloo if here.node < here.parties else GlooClient)(clients=here.clients, timeout=_TIMEOUT)


def _measured(plan: Plan, node: int, links: dict[str, Any]) -> dict[str, Any]:
    timed: dict[str, Timed] = {way: partial(_exchange, link) for way, link in links.items()}
    if GLOO in links:
        timed[GATHER] = lambda payload: links[GLOO].all_gather(payload[0])
    exchanges = [_in_turns(timed, size, blocks, each) for size, blocks, each in plan.exchanges]
    after = [_after_silence(timed, size, times) for size, times in plan.silent]
    steps = {way: _steps(plan.folder / way.replace(" ", "-"), node, links[way]) for way in plan.steps}
    for way in links.keys() - steps.keys():
        links[way].close()
    return {"exchanges": exchanges, "silent": after, "steps": steps}


def _exchange(transport: Transport, payload: np.ndarray) -> None:
    transport.exchange(_STAMP, payload, {})


def _in_turns(timed: dict[str, Timed], size: int, blocks: int, each: int) -> dict[str, Any]:
    """Microseconds by way, the median over blocks.

    Parties that begin apart stay so, and wait long and not at all by turns: only of an even number is the mean right.
    A way that lets processes sleep leaves them apart, and on fewer cores than there are, for some milliseconds: so as
    many exchanges again go before a block, not timed, and the order of the ways is drawn anew, for all parties alike.
    """
    payload, spent = np.zeros((1, size), np.uint8), {way: list[int]() for way in timed}
    order, ways = np.random.default_rng(size), list(timed)
    for _ in range(blocks):
        for way in (ways[at] for at in order.permutation(len(ways))):
            for _ in range(each):
                timed[way](payload)
            started = time.perf_counter_ns()
            for _ in range(each):
                timed[way](payload)
            spent[way].append(time.perf_counter_ns() - started)
    return {way: float(np.median(times)) / 1e3 / each for way, times in spent.items()}


def _after_silence(timed: dict[str, Timed], size: int, times: int) -> dict[str, Any]:
    """The same of the first message of its size when nothing was said for a while; a small one is before it."""
    payload, small, spent = np.zeros((1, size), np.uint8), np.zeros((1, 8), np.uint8), dict[str, list[int]]()
    for way, call in timed.items():
        for _ in range(times):
            time.sleep(_SILENCE)
            call(small)
            started = time.perf_counter_ns()
            call(payload)
            spent.setdefault(way, []).append(time.perf_counter_ns() - started)
    return {way: float(np.median(times)) / 1e3 for way, times in spent.items()}


def _steps(folder: Path, node: int, transport: Transport) -> dict[str, Any]:
    """Nanoseconds of each step of the bandit, and what they cost."""
    task = Task.load(folder)
    program = task.program()
    assert task.material is not None
    source, own = StoreSource(Store(task.material / f"party-{node}"), party=node), own_inputs(folder, home_of(node))
    ended = [time.perf_counter_ns()]
    counted = computing_party(
        program, task, node, source, own, lambda: transport, lambda _: False,
        lambda _: ended.append(time.perf_counter_ns()),
    )  # fmt: skip
    assert counted is not None
    return {"nanoseconds": np.diff(ended).tolist(), "cost": counted["played"]}


if __name__ == "__main__":
    party_main(main)
