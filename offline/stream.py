"""A dealer in a process of its own that streams ahead of use.  Knows blocks and channels; nothing that happens online.

Each party is sent its key once, as soon as it calls: it waits for the dealer alone, and misses a party that does not
call where the parties meet.  Party 0 is also sent the corrections, block by block; the dealer runs ahead until the
connection's buffers and party 0's queue are full, and waits there.  Nothing flows back.
"""

from __future__ import annotations

import contextlib
import queue
import struct
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

import numpy as np

from mpc.errors import DEALER, ConfigError, MaskedError, PeerLost
from mpc.net.transport import DEFAULT_TIMEOUT
from mpc.prg import KEY_BYTES, fresh_key

from .dealer import Expander, TrustedDealer
from .material import Kind, Material, Standing, Used
from .plan import Plan

_SOON = 0.25  # of the time that a dealer has; then the peers are told for whom this party waits
_HELLO = struct.Struct(f"<{KEY_BYTES}s16s16sQQHH")


class _Hello(NamedTuple):
    """What every party is sent first."""

    key: bytes
    deal: bytes
    plan: bytes
    blocks: int
    block_steps: int
    party: int
    parties: int

    def __repr__(self) -> str:
        return f"_Hello(key hidden, party={self.party}, blocks={self.blocks})"


class Drain(Protocol):
    """Where a dealer's messages to one party go; it waits while that party is far behind."""

    def send(self, message: bytes) -> None:
        """The next one."""

    def close(self) -> None:
        """There are no more."""


def serve(
    plan: Plan,
    channels: Mapping[int, Drain] | Iterable[tuple[int, Drain]],
    *,
    blocks: int,
    block_steps: int = 1,
    progress: Callable[[int, int], None] | None = None,
    dealer: TrustedDealer | None = None,
) -> None:
    """Deal `blocks` blocks of `block_steps` steps to the parties behind the channels, and close these.

    channels: to all parties, or to each as it calls.
    """
    met: dict[int, Drain] = {}
    try:
        if isinstance(channels, Mapping):
            met.update(channels)
            if sorted(met) != list(range(plan.parties)):
                raise ConfigError(f"the plan is for {plan.parties} parties, connected are {sorted(met)}")
        if blocks < 1 or block_steps < 1:
            raise ConfigError(f"a dealer deals at least 1 block of 1 step, not {blocks} of {block_steps}")
        if not plan.items:
            raise ConfigError(f"a step of {plan.program!r} draws nothing: it needs no dealer")
        dealer = dealer or TrustedDealer(plan.parties)
        dealer.require_own()
        deal = fresh_key()
        for party, channel in channels.items() if isinstance(channels, Mapping) else channels:
            met[party] = channel
            hello = _Hello(dealer.keys[party], deal, plan.digest, blocks, block_steps, party, plan.parties)
            channel.send(_HELLO.pack(*hello))
        _deal(plan, met[0], blocks, block_steps, progress, dealer)
    finally:
        for channel in met.values():
            channel.close()


def _deal(
    plan: Plan,
    channel: Drain,
    blocks: int,
    block_steps: int,
    progress: Callable[[int, int], None] | None,
    dealer: TrustedDealer,
) -> None:
    """Party 0's corrections."""
    for block, data in enumerate(dealer.lots(plan.items, blocks, block_steps)):
        channel.send(data.tobytes())
        if progress is not None:
            progress(block + 1, blocks)


class Stream(Protocol):
    """Where a dealer's messages come from.  ahead: whether it is read ahead of use, by a thread."""

    ahead: bool

    def receive(self, *, timeout: float | None = None, limit: int) -> bytes | None:
        """The next one; None where the dealer has left."""

    def close(self) -> None:
        """Leave."""


class StreamSource(Material):
    """A party's end of a streaming dealer.

    ahead: how many blocks party 0 holds at most.  timeout: seconds of a silent dealer after which it counts as lost.
    starting: seconds until it has greeted this party, else as many.  waiting: told whom this party waits for when it
    does so for long.
    """

    kind = Kind(b"mbstream", "streaming dealer", ConfigError)

    def __init__(
        self,
        plan: Plan,
        channel: Stream,
        *,
        party: int,
        ahead: int = 8,
        timeout: float = DEFAULT_TIMEOUT,
        starting: float | None = None,
        report: Callable[[str], None] | None = None,
        used: Used | None = None,
    ) -> None:
        self._channel = channel
        self.waiting: Callable[[str], None] = lambda _: None
        self._timeout = timeout
        self._next = 0
        self._closed = False
        self._queue: queue.Queue[bytes | MaskedError | None] = queue.Queue(maxsize=max(1, ahead))
        self._reader: threading.Thread | None = None
        try:
            hello = self._greeting(plan, party, timeout if starting is None else starting)
        except BaseException:
            channel.close()
            raise
        self._blocks = hello.blocks
        self._block_bytes = hello.block_steps * plan.step_bytes
        expander = Expander(hello.key, party=party)
        super().__init__(plan, expander, hello.block_steps, deal=hello.deal, report=report, used=used)
        if party == 0 and channel.ahead:
            self._reader = threading.Thread(target=self._read_ahead, daemon=True)
            self._reader.start()

    def _greeting(self, plan: Plan, party: int, timeout: float) -> _Hello:
        raw = self._channel.receive(timeout=timeout, limit=_HELLO.size)
        if raw is None or len(raw) != _HELLO.size:
            raise _lost("left before it sent a key")
        hello = _Hello(*_HELLO.unpack(raw))
        if (hello.plan, hello.parties) != (plan.digest, plan.parties):
            raise ConfigError("the dealer deals for another plan: start it and all parties with the same one")
        if hello.party != party:
            raise ConfigError(f"the dealer takes party {party} for party {hello.party}: call it by this party's number")
        return hello

    def _read_ahead(self) -> None:
        last: MaskedError | None = None
        try:
            while (message := self._channel.receive(limit=self._block_bytes)) is not None:
                self._queue.put(message)
                if self._closed:
                    return
        except MaskedError as error:
            last = error
        self._queue.put(last)

    def _standing(self) -> Standing:
        return self._stand(self._next, False)

    def agree(self, statements: list[bytes]) -> None:
        """All parties draw from one dealer by one plan, each its own; they move to the furthest block."""
        standings = self._read(statements)
        left = self._index if not self._at_block_end() else 0
        if not self._continues(standings) and left:
            self._report(f"block {self._next - 1} was not used to its end: the rest of its {self.block_steps} steps is "
                         "skipped")  # fmt: skip
        while self._next < min(max(standing.cursor for standing in standings), self._blocks):
            self._next_block()

    def want(self, steps: int) -> None:
        """Refuse a run that would be longer than what the dealer announced."""
        left = (self._blocks - self._next) * self.block_steps
        if left < steps:
            raise self._exhausted(steps, left, "start the dealer for more steps")

    def _next_block(self) -> tuple[int, np.ndarray | None]:
        if self._closed:
            raise ConfigError("this source is closed: no dealer is behind it any more")
        block = self._next
        if block >= self._blocks:
            raise self._exhausted(1, 0, "start the dealer for more steps")
        corrections = self._received(block) if self.party == 0 else None
        self._next = block + 1
        return block, corrections

    def _received(self, block: int) -> np.ndarray:
        so_far = f"after {block} of {self._blocks} blocks"
        try:
            message = self._soon()
        except queue.Empty:
            raise _lost(f"was silent for {self._timeout:g} s {so_far}: it hangs") from None
        if message is None or isinstance(message, MaskedError):
            self._queue.put(message)  # whoever asks again hears the same
            if message is None:
                raise _lost(f"left {so_far}: it died or was stopped")
            raise message
        if len(message) != self._block_bytes:
            raise _lost(f"sent {len(message)} bytes for a block of {self._block_bytes}")
        return np.frombuffer(message, np.uint8)

    def _soon(self) -> bytes | MaskedError | None:
        if self._reader is None:
            return self._channel.receive(limit=self._block_bytes)
        with contextlib.suppress(queue.Empty):
            return self._queue.get(timeout=_SOON * self._timeout)
        self.waiting("the dealer")
        return self._queue.get(timeout=(1.0 - _SOON) * self._timeout)

    def close(self) -> None:
        """Leave the dealer."""
        self._closed = True
        self._abandon()
        self._channel.close()
        while self._reader is not None and self._reader.is_alive():
            try:
                while True:
                    self._queue.get_nowait()
            except queue.Empty:
                self._reader.join(0.05)


def _lost(how: str) -> PeerLost:
    """The dealer is none of the processes launched together: who loses it knows the cause."""
    return PeerLost(f"the dealer {how}", peer=DEALER, witness=False)
