"""What a request over HTTP is and how it is refused.  No I/O in it: `web` has that; knows no content.

A refusal is a 4xx or 503 with one sentence that names the cure: {"error": "..."}.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..errors import MaskedError
from .pages import Page

Answer = Mapping[str, Any]
ANYONE = "anyone"
"""The role of all who ask, where there are no tokens."""
_LONGEST_KEY = 128


class Refused(MaskedError):
    """A request that is not served.  status: of HTTP.  retry: seconds after which it may be."""

    def __init__(self, status: int, message: str, *, retry: int | None = None) -> None:
        super().__init__(message)
        self.status, self.retry = status, retry


@dataclass(frozen=True)
class Request:
    """role: whose token it bore.  body: from JSON.  digest: of the body.  key: what the client calls it, or None."""

    role: str
    body: Any = field(repr=False)
    digest: str = field(repr=False, default="")
    key: str | None = field(repr=False, default=None)


@dataclass(frozen=True)
class Endpoint:
    """call: raises Refused, or gives an answer or one that comes later.  roles: who may ask, nobody else."""

    call: Callable[[Request], Answer | Future[Answer]]
    roles: tuple[str, ...]


@dataclass(frozen=True)
class Site:
    """What is there, by path: endpoints are asked by POST, pages by GET.

    guarded: the roles of pages that are not for everybody.  counted: told of each request its path and status.
    """

    endpoints: Mapping[str, Endpoint]
    pages: Mapping[str, Page]
    guarded: Mapping[str, tuple[str, ...]]
    counted: Callable[[str, int], None]


@dataclass(frozen=True)
class Limits:
    """body: bytes of a request.  at_once: requests that wait for an answer.  connections: that are served at a time.

    patience: seconds for a whole head, for a whole body, and in which some of an answer is read.
    """

    body: int = 1 << 20
    at_once: int = 1024
    connections: int = 1024
    patience: float = 10.0


def read_body(raw: bytes, kind: str) -> tuple[Any, str]:
    """JSON that says what it seems to, and its digest.  kind: the content's type."""
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise Refused(415, "the body is JSON: send it with the header Content-Type: application/json")
    try:
        body = json.loads(raw.decode(), parse_constant=_no_number, object_pairs_hook=_distinct)
        digest = hashlib.blake2b(raw, digest_size=16).hexdigest()
    except Refused:
        raise
    except (ValueError, RecursionError):
        raise Refused(400, "the body is no JSON in UTF-8: mend it") from None
    return body, digest


def read_key(given: str | None) -> str | None:
    """The header Idempotency-Key."""
    if given is None:
        return None
    if not (0 < len(given) <= _LONGEST_KEY and given.isascii() and given.isprintable()):
        raise Refused(400, f"an Idempotency-Key has 1 to {_LONGEST_KEY} printable letters of ASCII: choose another")
    return given


def _no_number(_: str) -> NoReturn:
    raise Refused(400, "NaN and infinities are no JSON: leave those rows out")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise Refused(400, "an object of the body has the same key twice: send each once")
    return found
