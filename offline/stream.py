"""A dealer in a process of its own that streams ahead of use.  Knows blocks and channels; nothing that happens online.

Each party is sent its key once.  Party 0 is also sent the corrections, block by block; the dealer runs ahead until
the connection's buffers and party 0's queue are full, and waits there.  Nothing flows back.
"""

from __future__ import annotations

import queue
import struct
import threading
from collections.abc import Callable, Mapping

import numpy as np

from mpc.errors import ConfigError, MaskedError, PeerLost
from mpc.net.channel import Channel
from mpc.prg import KEY_BYTES

from .dealer import Expander, TrustedDealer
from .material import Material, Used
from .plan import Plan

_HELLO = struct.Struct(f"<{KEY_BYTES}s16sQQ")


def serve(
    plan: Plan,
    channels: Mapping[int, Channel],
    *,
    blocks: int,
    block_steps: int = 1,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Deal `blocks` blocks of `block_steps` steps to the parties behind the channels."""
    if sorted(channels) != list(range(plan.parties)):
        raise ConfigError(f"the plan is for {plan.parties} parties, connected are {sorted(channels)}")
    dealer = TrustedDealer(plan.parties)
    for party, channel in channels.items():
        channel.send(_HELLO.pack(dealer.keys[party], plan.digest, blocks, block_steps))
    for block in range(blocks):
        dealer.enter(block)
        channels[0].send(
            b"".join(dealer.corrections(item).tobytes() for _ in range(block_steps) for item in plan.items)
        )
        if progress is not None:
            progress(block + 1, blocks)
    for channel in channels.values():
        channel.close()


class StreamSource(Material):
    """A party's end of a streaming dealer."""

    def __init__(self, plan: Plan, channel: Channel, *, party: int, ahead: int = 8, used: Used | None = None) -> None:
        hello = channel.receive()
        if hello is None or len(hello) != _HELLO.size:
            raise PeerLost("the dealer left before it sent a key", peer=-1)
        key, digest, self._blocks, block_steps = _HELLO.unpack(hello)
        if digest != plan.digest:
            raise ConfigError("the dealer deals for another plan: start it and all parties with the same one")
        super().__init__(plan, Expander(key, party=party), block_steps, used=used)
        self._next = 0
        self._queue: queue.Queue[bytes | MaskedError | None] = queue.Queue(maxsize=ahead)
        if party == 0:
            threading.Thread(target=self._read_ahead, args=(channel,), daemon=True).start()

    def _read_ahead(self, channel: Channel) -> None:
        try:
            while (message := channel.receive()) is not None:
                self._queue.put(message)
            self._queue.put(None)
        except MaskedError as error:
            self._queue.put(error)

    def statement(self) -> bytes:
        """The plan that this party draws by."""
        return b"stream:" + self.plan.digest

    def agree(self, statements: list[bytes]) -> None:
        """All parties draw from a streaming dealer by one plan."""
        for party, statement in enumerate(statements):
            if statement[: len(self.statement())] != self.statement():
                raise ConfigError(f"party {party} draws from another source: start all parties with the same plan")

    def _next_block(self) -> tuple[int, np.ndarray | None]:
        block, self._next = self._next, self._next + 1
        if block >= self._blocks:
            steps = self._blocks * self.block_steps
            raise self._exhausted(steps, "start the dealer for more steps")
        if self.party != 0:
            return block, None
        message = self._queue.get()
        if message is None:
            raise PeerLost(f"the dealer left after {block} of {self._blocks} blocks", peer=-1)
        if isinstance(message, MaskedError):
            raise message
        return block, np.frombuffer(message, np.uint8)
