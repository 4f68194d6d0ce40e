"""Asks a service of this machine over HTTP, on one connection: what tests, load and faults need, and no more.

Knows requests and answers of `web`; no other server's.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping
from typing import Any, NamedTuple

_LONGEST = 1 << 24  # bytes of an answer


class Answered(NamedTuple):
    """status: of HTTP.  headers: by their names in small letters.  text: the body."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def body(self) -> Any:
        """From JSON."""
        return json.loads(self.text)


class Asking:
    """A connection that is made when it is needed, and again when it was lost.  OSError where nobody answers.

    token: of the role that asks.
    """

    def __init__(self, address: tuple[str, int], token: str = "", *, patience: float = 60.0) -> None:
        self._address, self._token, self._patience = address, token, patience
        self._link: socket.socket | None = None
        self._rest = b""

    def post(self, path: str, body: Any, *, key: str = "") -> Answered:
        """JSON, by POST.  key: of idempotency."""
        headers = {"Content-Type": "application/json", **({"Idempotency-Key": key} if key else {})}
        return self.ask("POST", path, json.dumps(body).encode(), headers)

    def get(self, path: str) -> Answered:
        """A page."""
        return self.ask("GET", path)

    def ask(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answered:
        """Any request; `headers` take the place of those that are usual."""
        usual = {"Host": f"{self._address[0]}:{self._address[1]}", "Content-Length": str(len(body))}
        if self._token:
            usual["Authorization"] = f"Bearer {self._token}"
        lines = [
            f"{method} {path} HTTP/1.1",
            *(f"{name}: {said}" for name, said in {**usual, **(headers or {})}.items()),
        ]
        return self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    def send(self, raw: bytes) -> Answered:
        """Bytes that are a request, or none."""
        try:
            link = self._link or self._made()
            with contextlib.suppress(ConnectionError):  # who refuses a body may have answered before its end
                link.sendall(raw)
            answered = self._answered(link)
        except OSError:
            self.close()
            raise
        if answered.headers.get("connection") == "close":
            self.close()
        return answered

    def close(self) -> None:
        """Until the next request."""
        link, self._link, self._rest = self._link, None, b""
        if link is not None:
            link.close()

    def _made(self) -> socket.socket:
        self._link = socket.create_connection(self._address, self._patience)
        self._link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return self._link

    def _answered(self, link: socket.socket) -> Answered:
        head = [""]
        while not head[0] or head[0].split(" ")[1].startswith("1"):  # 100 is no answer yet
            head = self._until(link, b"\r\n\r\n").decode("latin-1").split("\r\n")
        pairs = [line.partition(":") for line in head[1:] if line]
        headers = {name.lower(): said.strip() for name, _, said in pairs}
        while len(self._rest) < (size := int(headers.get("content-length", "0"))):
            self._more(link)
        text, self._rest = self._rest[:size].decode(), self._rest[size:]
        return Answered(int(head[0].split(" ")[1]), headers, text)

    def _until(self, link: socket.socket, end: bytes) -> bytes:
        while (at := self._rest.find(end)) < 0:
            self._more(link)
        found, self._rest = self._rest[:at], self._rest[at + len(end) :]
        return found

    def _more(self, link: socket.socket) -> None:
        got = link.recv(1 << 16)
        if not got or len(self._rest) > _LONGEST:
            raise ConnectionError("the service closed the connection before its answer was whole")
        self._rest += got
