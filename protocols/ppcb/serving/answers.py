"""Requests with a key of the client's own: asked again, they get the answer that the first one got.

Answers that were given stay, the latest of them, also over a crash: `durable` keeps them.  Knows no content.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NamedTuple

from mpc.net.requests import Answer, Refused, Request


class Keyed(NamedTuple):
    """An answer, and of which request: role and key of who asked, and the digest of the body."""

    role: str
    key: str
    digest: str
    answer: Any

    def __repr__(self) -> str:
        return f"Keyed(of {self.role}, the rest hidden)"


class Answers:
    """most: how many are kept."""

    def __init__(self, most: int = 10_000) -> None:
        self._most, self._lock = most, threading.Lock()
        self._found: dict[tuple[str, str], tuple[str, Future[Answer]]] = {}

    def once(self, path: str, request: Request, ask: Callable[[Request], Future[Answer]]) -> Future[Answer]:
        """What `ask` gives, or gave when it was asked before; what was refused then is asked anew."""
        if request.key is None:
            return ask(request)
        place, digest = (request.role, request.key), f"{path} {request.digest}"
        with self._lock:
            before = self._found.get(place)
        if before is not None:
            if before[0] != digest:
                raise Refused(409, "this Idempotency-Key was of another request: send a new one with a new key")
            return before[1]
        future = ask(Request(request.role, request.body, digest, request.key))
        with self._lock:
            self._found[place] = digest, future
        future.add_done_callback(lambda done: self._settled(place, done))
        return future

    def put(self, several: Iterable[Keyed]) -> None:
        """Those that were kept."""
        for each in several:
            future: Future[Answer] = Future()
            future.set_result(each.answer)
            with self._lock:
                self._found[each.role, each.key] = each.digest, future

    def given(self) -> list[Keyed]:
        """Those to be kept: all that were answered."""
        with self._lock:
            found = list(self._found.items())
        return [
            Keyed(*place, digest, future.result())
            for place, (digest, future) in found
            if future.done() and future.exception() is None
        ]

    def _settled(self, place: tuple[str, str], future: Future[Answer]) -> None:
        with self._lock:
            if future.exception() is not None:
                self._found.pop(place, None)
            over = len(self._found) - self._most
            for oldest in [place for place, (_, its) in list(self._found.items())[: max(0, over)] if its.done()]:
                del self._found[oldest]

    def __len__(self) -> int:
        return len(self._found)
