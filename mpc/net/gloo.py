"""torch.distributed's gloo as a transport.  The door to torch.distributed; knows ranks and tensors of bytes, no shares.

Gloo aborts the process when two parties disagree on a message's size, and returns garbage when they disagree on its
shape alone.  So each round first exchanges our header, of fixed size, and a payload follows only where the headers
fit.  Gloo has no encryption: it is for parties inside one trust domain.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from ..errors import ConfigError, MaskedError, PeerLost
from .frames import HEADER_BYTES, Kind, aborted, expect, pack, unpack
from .transport import DEFAULT_TIMEOUT, Stamp


class Gloo:
    """One party in torch's default process group: rank p is party p."""

    def __init__(self, *, init_method: str | None = None, party: int = -1, parties: int = -1,
                 timeout: float = DEFAULT_TIMEOUT) -> None:  # fmt: skip
        if dist.is_initialized():
            raise ConfigError("torch.distributed already has a process group: close it before a session starts one")
        try:
            dist.init_process_group(
                "gloo", init_method=init_method, rank=party, world_size=parties, timeout=timedelta(seconds=timeout)
            )
        except (ValueError, RuntimeError) as error:
            raise ConfigError(f"torch.distributed could not start: {_first_line(error)}") from error
        atexit.register(_destroy)
        self.node, self.parties = dist.get_rank(), dist.get_world_size()
        if self.parties < 2:
            _destroy()
            raise ConfigError("secret sharing needs at least 2 parties: torchrun --nproc-per-node 2 or more")
        self.hosted = (self.node,)
        self.frame_bytes = 0
        self._others = [q for q in range(self.parties) if q != self.node]
        self._timeout = timeout
        self._closed = False

    def exchange(
        self, stamp: Stamp, common: np.ndarray, direct: Mapping[int, np.ndarray]
    ) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """One round; see `Transport`."""
        me, n = self.node, common.shape[1]
        own = direct.get(me)
        expected = n + (0 if own is None else own.shape[1])
        outgoing = {
            q: common[0] if q not in direct else np.concatenate([common[0], direct[q][0]]) for q in self._others
        }
        headers = self._swap(
            {q: np.frombuffer(pack(Kind.DATA, me, stamp, part.size), np.uint8) for q, part in outgoing.items()},
            HEADER_BYTES,
            stamp,
        )
        for q, raw in headers.items():
            header = unpack(raw.tobytes(), q)
            if header.kind is Kind.ABORT:
                raise aborted(header.position.encode(), q, self.parties)
            expect(header, q, stamp, expected, self.parties)
        rows = np.empty((self.parties, expected), np.uint8)
        rows[me, :n] = common[0]
        if own is not None:
            rows[me, n:] = own[0]
        for q, payload in self._swap(outgoing, expected, stamp).items():
            rows[q] = payload
        return rows[:, :n], {} if own is None else {me: rows[:, n:]}

    def _swap(self, outgoing: dict[int, np.ndarray], count: int, stamp: Stamp) -> dict[int, np.ndarray]:
        """Send each peer its bytes and receive `count` from each."""
        self.frame_bytes += HEADER_BYTES * len(outgoing) if count == HEADER_BYTES else 0
        incoming = {q: torch.empty(count, dtype=torch.uint8) for q in self._others}
        work: list[tuple[int, Any]] = []
        for q in self._others:
            if outgoing[q].size:
                tensor = torch.from_numpy(np.array(outgoing[q]))
                work.append((q, self._or_lost(q, stamp, partial(dist.isend, tensor, q))))
            if count:
                work.append((q, self._or_lost(q, stamp, partial(dist.irecv, incoming[q], q))))
        for q, pending in work:
            self._or_lost(q, stamp, pending.wait)
        return {q: tensor.numpy() for q, tensor in incoming.items()}

    def _or_lost(self, peer: int, stamp: Stamp, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except RuntimeError as error:
            silent = "imed out" in str(error)
            how = f"was silent for {self._timeout:g} s" if silent else "closed its connection: it died or was stopped,"
            raise PeerLost(f"party {peer} {how} in round {stamp.round}", peer=peer) from error

    def send_to_client(self, node: int, stamp: Stamp, payload: np.ndarray) -> None:
        """Gloo connects the computing parties only."""
        raise ConfigError("gloo carries no clients: reveal to a party, or use the tcp transport")

    def receive_from_client(self, node: int, stamp: Stamp, count: int) -> np.ndarray:
        """Gloo connects the computing parties only."""
        raise ConfigError("gloo carries no clients: share from a party, or use the tcp transport")

    def close(self, reason: str = "") -> None:
        """Tell the peers, in the fixed size they wait for, and destroy the group."""
        if self._closed:
            return
        self._closed = True
        kind, stamp = (Kind.ABORT, Stamp(0, bytes(8), _short(reason))) if reason else (Kind.BYE, Stamp(0, bytes(8), ""))
        if reason:
            for q in self._others:
                try:
                    dist.isend(torch.from_numpy(np.frombuffer(pack(kind, self.node, stamp, 0), np.uint8).copy()), q)
                except (RuntimeError, MaskedError):
                    continue
        _destroy()


def _short(reason: str) -> str:
    """An abort payload that fits a header's text: kind, blamed party, the head of the message."""
    kind, _, text = reason.partition(": ")
    words = text.split(" ", 2)
    blamed = words[1] if len(words) > 1 and words[0] == "party" else ""
    return f"{kind}\n{blamed}\n{text}".encode()[:96].decode(errors="ignore")


def _destroy() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
