"""Members of a session between machines: keys and certificates of their own, and each other's."""

from __future__ import annotations

import atexit
import datetime as dt
import socket
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE, Certificate, make
from mpc.net.member import Member, Peer
from mpc.net.tls import listen_on


@cache
def identity(number: int) -> tuple[Path, Certificate]:
    """A folder with a key, made once for all tests of a process; 0 to 9 are members, the others strangers."""
    folder = Path(mkdtemp(prefix="members-"))
    atexit.register(rmtree, folder, ignore_errors=True)
    return folder, make(folder, f"node {number}", dt.datetime.now(dt.timezone.utc))


def session_of(parties: int, clients: Sequence[str] = (), **rest: Any) -> tuple[list[Member], list[socket.socket]]:
    """All members of a session on loopback, and the parties' listeners."""
    names = (*(f"party {p}" for p in range(parties)), *clients)
    listeners = [listen_on("127.0.0.1", 0) for _ in range(parties)]
    peers = {
        node: Peer(identity(node)[1], listeners[node].getsockname() if node < parties else None)
        for node in range(len(names))
    }
    members = [member_of(node, parties, names, peers, **rest) for node in range(len(names))]
    return members, listeners


def member_of(
    node: int, parties: int, names: tuple[str, ...], peers: dict[int, Peer], *, session: str = "tests", **rest: Any
) -> Member:
    """One of them."""
    others = {other: peer for other, peer in peers.items() if other != node}
    folder, own = identity(node)
    return Member(
        node, parties, names, session, own, folder / CERTIFICATE_FILE, folder / KEY_FILE, others, {"arms": 3, **rest}
    )  # fmt: skip


def impostor(member: Member, number: int) -> Member:
    """The same, with the key and the certificate of somebody else."""
    folder, own = identity(number)
    return replace(member, certificate=own, certificate_file=folder / CERTIFICATE_FILE, key_file=folder / KEY_FILE)
