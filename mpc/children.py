"""Processes that a launcher started: what they say, how they ended, who is to blame.  Knows no place and no transport.

A process that ends of an error of ours writes one record of it, as JSON, into a pipe that its launcher gave it.  Blame
follows from the records and the exit codes; what a process said on stderr is shown where it left no record.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import IO

from .errors import ConfigError, MaskedError, PeerLost, ProcessFailed
from .lifeline import to_the_end
from .nursery import start

NOTE = "note: "
_RECORD_BYTES = 1 << 15  # a pipe takes them at once
_TEXT = 4000
_TO_LEAVE = 1.0  # seconds that those have together who are asked to end


@dataclass(frozen=True)
class Record:
    """What a process ended of; travels as JSON."""

    kind: str
    text: str
    peer: int | None
    witness: bool

    @classmethod
    def of(cls, error: MaskedError) -> Record:
        """What is to be known of an error: a launcher shows its words to whoever reads its terminal."""
        peer = error.peer if isinstance(error, PeerLost) else None
        return cls(type(error).__name__, error.told[:_TEXT], peer, error.witness)

    def write(self, descriptor: int) -> None:
        """Leave it to the launcher, which may be gone."""
        with contextlib.suppress(OSError):
            os.write(descriptor, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, descriptor: int) -> Record | None:
        """The record that was left, if one was, in whole."""
        try:
            return cls(**json.loads(os.read(descriptor, _RECORD_BYTES)))
        except (OSError, ValueError, TypeError):
            return None


class Child:
    """A node's process, the record it left, and the tail of what it said on stderr."""

    def __init__(
        self,
        node: int,
        name: str,
        argv: Sequence[str],
        environment: Mapping[str, str],
        *,
        keep: Sequence[int],
        record: int,
        output: Callable[[str, str], None],
        speaking: threading.Lock,
        load: Sequence[str] = (),
    ) -> None:
        self.node, self.name = node, name
        self._record = record
        self._speaking = speaking
        (says, said_to), (complains, complained_to) = os.pipe(), os.pipe()
        streams = [os.fdopen(end, errors="replace") for end in (says, complains)]
        try:
            self.process = start(argv, environment, keep=keep, stdout=said_to, stderr=complained_to, load=load)
        except BaseException as error:
            for stream in streams:
                stream.close()
            if isinstance(error, OSError):
                raise ConfigError(f"cannot start {name} as {argv[0]!r}: {error.strerror}") from error
            raise
        finally:
            os.close(said_to)
            os.close(complained_to)
        self._said: list[str] = []
        self._left: Record | None = None
        self.ended_at: float | None = None
        self.broken: BaseException | None = None  # what the output callback raised
        self._readers = [
            threading.Thread(target=self._read, args=(stream, said), daemon=True)
            for stream, said in zip(streams, (output, self._remember), strict=True)
        ]
        for reader in self._readers:
            reader.start()

    def _read(self, stream: IO[str], output: Callable[[str, str], None]) -> None:
        with stream:
            for line in stream:
                if self.broken is None:
                    try:
                        with self._speaking:
                            output(self.name, line.rstrip("\n"))
                    except BaseException as error:
                        self.broken = error

    def _remember(self, name: str, line: str) -> None:
        if line.startswith(NOTE):
            sys.stderr.write(f"{name}: {line[len(NOTE) :]}\n")  # in one piece: others say theirs there too
            sys.stderr.flush()
            return
        self._said = [*self._said[-30:], line]

    def poll(self) -> int | None:
        """Its exit code, if it has ended."""
        code = self.process.poll()
        if code is not None and self.ended_at is None:
            self.ended_at = time.monotonic()
            self._left = Record.read(self._record)
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

    def failure(self) -> ProcessFailed:
        """How it failed, in its own words where it had any."""
        code, left = self.process.returncode, self._left
        if code < 0:
            said = f"{self.name} was ended by {signal.Signals(-code).name}"
            return ProcessFailed(said, name=self.name, node=self.node, code=code)
        said = f"{self.name} failed with exit code {code}"
        if left is None:
            words = "\n".join(line for line in self._said if line.strip()) or "it said nothing"
            return ProcessFailed(f"{said}: {words}", name=self.name, node=self.node, code=code)
        return ProcessFailed(
            f"{said}: {left.text}", name=self.name, node=self.node, code=code, kind=left.kind, peer=left.peer,
            witness=left.witness,
        )  # fmt: skip

    def blame(self, parties: int, failed: Collection[int]) -> tuple[bool, bool, bool, float]:
        """A process that lost a peer is a witness; the others come first, in the order of their end.

        Of witnesses, one that lost a peer which failed as well comes last: that peer knows more.  A party comes before
        a client: what the parties wait for, the clients wait for in vain as well.
        """
        witness = self._left is not None and self._left.witness and self.process.returncode >= 0
        further = witness and self._left is not None and self._left.peer in failed
        return witness, further, witness and self.node >= parties, self.ended_at or 0.0


def stop(children: Sequence[Child]) -> None:
    """End all, kindly and then not, whatever signals come meanwhile."""
    with to_the_end():
        for how, seconds in ((signal.SIGTERM, _TO_LEAVE), (signal.SIGKILL, 5.0)):
            for child in children:
                child.signal(how)
            deadline = time.monotonic() + seconds
            for child in children:
                child.wait(deadline - time.monotonic())


def watch(
    children: Sequence[Child], parties: int, waiting: Collection[int], *, grace: float, linger: float,
    limit: float | None,
) -> None:  # fmt: skip
    """Wait until all have ended; once one has failed the others have `grace` seconds.  Raises the failure to blame.

    waiting: nodes that may wait until all others have ended.  linger: seconds that these then have, and that the last
    one of the others has: nobody is left who would miss it.
    """
    started, failed_at, left_at = time.monotonic(), None, None
    while any(child.poll() is None for child in children):
        now = time.monotonic()
        _raise_broken(children)
        if failed_at is None and any(child.poll() not in (None, 0) for child in children):
            failed_at = now
        if failed_at is not None and now - failed_at > grace:
            break
        running = [child for child in children if child.poll() is None]
        busy = [child for child in running if child.node not in waiting]
        if left_at is None and len(busy) <= 1 and len(running) < len(children):
            left_at = now
        if running and failed_at is None and left_at is not None and now - left_at > linger:
            hangs = (busy or running)[0]
            raise ProcessFailed(
                f"{hangs.name} was silent for {linger:g} s after all others had ended: it hangs",
                name=hangs.name, node=hangs.node, code=-signal.SIGKILL,
            )  # fmt: skip
        if limit is not None and now - started > limit:
            if failed_at is not None:
                break
            raise ConfigError(f"stopped after {limit:g} s: {', '.join(child.name for child in running)} still ran")
        time.sleep(0.01)
    _raise_broken(children)
    failures = [child for child in children if child.poll() not in (None, 0)]
    if failures:
        failed = [child.node for child in failures]
        raise min(failures, key=lambda child: child.blame(parties, failed)).failure()


def _raise_broken(children: Sequence[Child]) -> None:
    for child in children:
        if child.broken is not None:
            raise child.broken
