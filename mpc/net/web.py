"""Endpoints and pages over HTTP.  The door to Starlette and uvicorn (extra `serve`).  Knows requests; no content.

Whoever asks proves a role by `Authorization: Bearer TOKEN`, before a byte of the body is read.  No line is written of
what was asked; of an error that is ours its kind and place, and none of its words.

So many connections are served at a time, as many more are told to come again, and what comes then is cut.  One that
brings no whole head in time, or does not read, is cut too: who has no token cannot keep the others out for long.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.requests import Request as Asked
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from uvicorn import Config, Server
from uvicorn.protocols.http.h11_impl import H11Protocol

from ..errors import ConfigError
from .pages import Page, is_own
from .requests import ANYONE, Answer, Endpoint, Limits, Refused, Request, Site, read_body, read_key
from .tokens import Tokens

_SENTENCES = {404: "there is nothing here: /docs says what is", 405: "this path is asked by another method: see /docs"}
_STOPPING = 10  # seconds for requests that wait for an answer
_OTHER_FILES = 128  # that the process may have open beside its connections


class Web:
    """Answers requests.  tokens: None lets all ask as ANYONE, from this machine.  say: told of errors that are ours."""

    def __init__(self, site: Site, *, tokens: Tokens | None, limits: Limits, say: Callable[[str], None]) -> None:
        self._tokens, self._counted, self._say = tokens, site.counted, say
        self.limits, self._at_once = limits, 0
        routes = [Route(path, self._posted(path, its), methods=["POST"]) for path, its in site.endpoints.items()]
        routes += [
            Route(path, self._got(path, page, site.guarded.get(path)), methods=["GET"])
            for path, page in site.pages.items()
        ]
        self.app = Starlette(routes=routes, exception_handlers={HTTPException: self._no_such})
        self.app.router.redirect_slashes = False

    def _posted(self, path: str, its: Endpoint) -> Callable[[Asked], Any]:
        async def handler(asked: Asked) -> Response:
            return await self._judged(path, lambda: self._served(asked, its))

        return handler

    def _got(self, path: str, page: Page, roles: tuple[str, ...] | None) -> Callable[[Asked], Any]:
        async def shown(asked: Asked) -> Response:
            self._check_host(asked)
            if roles is not None:
                self._check_role(asked, roles)
            status, kind, text = page()
            return Response(text, status, media_type=kind)

        async def handler(asked: Asked) -> Response:
            return await self._judged(path, lambda: shown(asked))

        return handler

    async def _judged(self, path: str, serve: Callable[[], Any]) -> Response:
        try:
            response: Response = await serve()
        except Refused as refused:
            response = _refusal(refused)
        except ClientDisconnect:
            response = _refusal(Refused(400, "the request ended before its body did: send it whole"))
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            self._say(f"warning: {path} failed by {type(error).__name__} in {Path(last.filename).name}:{last.lineno}")
            response = _refusal(Refused(500, "an error of the service itself: its log says where"))
        self._counted(path, response.status_code)
        return response

    async def _served(self, asked: Asked, its: Endpoint) -> Response:
        self._check_host(asked)
        role = self._check_role(asked, its.roles)
        key = read_key(asked.headers.get("idempotency-key"))
        if self._at_once >= self.limits.at_once:
            raise Refused(503, f"{self._at_once:,} requests wait for an answer: ask again later", retry=1)
        self._at_once += 1
        try:
            body, digest = read_body(await self._in_time(asked), asked.headers.get("content-type", ""))
            answer: Answer | Future[Answer] = its.call(Request(role, body, digest, key))
            if isinstance(answer, Future):
                answer = await asyncio.shield(asyncio.wrap_future(answer))
        finally:
            self._at_once -= 1
        return JSONResponse(answer)

    async def _in_time(self, asked: Asked) -> bytes:
        patience = self.limits.patience
        try:
            return await asyncio.wait_for(self._whole(asked), patience)
        except asyncio.TimeoutError:
            raise Refused(408, f"the body was not there after {patience:g} s: send it at once") from None

    async def _whole(self, asked: Asked) -> bytes:
        """The body, of no more bytes than are taken."""
        most, parts, size = self.limits.body, list[bytes](), 0
        declared = asked.headers.get("content-length", "0")
        if declared.isdecimal() and int(declared[:20]) > most:
            raise Refused(413, f"a body has at most {most:,} bytes: send several")
        async for part in asked.stream():
            parts.append(part)
            size += len(part)
            if size > most:
                raise Refused(413, f"a body has at most {most:,} bytes: send several")
        return b"".join(parts)

    def _check_role(self, asked: Asked, roles: tuple[str, ...]) -> str:
        if self._tokens is None:
            return ANYONE
        scheme, _, token = asked.headers.get("authorization", "").partition(" ")
        role = self._tokens.role_of(token.strip()) if scheme.lower() == "bearer" else None
        if role is None:
            raise Refused(401, "no role has this token: send your own as 'Authorization: Bearer TOKEN'")
        if role not in roles:
            raise Refused(403, f"this is for {' or '.join(roles)}, and the token is of {role}: ask with another")
        return role

    def _check_host(self, asked: Asked) -> None:
        """Without tokens, no page of a browser may ask in the name of whoever looks at it."""
        if self._tokens is None and not is_own(_host_of(asked.headers.get("host", ""))):
            raise Refused(421, "without tokens this service is asked as 127.0.0.1 alone: make tokens")

    async def _no_such(self, _: Asked, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        response = _refusal(Refused(status, _SENTENCES.get(status, "this is not served: see /docs")))
        response.headers.update(getattr(error, "headers", None) or {})
        self._counted("other", status)
        return response


def _host_of(header: str) -> str:
    """Without the port, and without the brackets around colons."""
    whole = header.startswith("[") and header.endswith("]")
    host = header if whole or ":" not in header else header.rpartition(":")[0]
    return host.strip("[]")


def _refusal(refused: Refused) -> Response:
    headers = {} if refused.retry is None else {"Retry-After": str(refused.retry)}
    if refused.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": refused.told}, refused.status, headers)


class _Connection(H11Protocol):
    """One, from when it is made; uvicorn itself waits for a head, and for a reader, as long as they like."""

    limits = Limits()
    _timer: asyncio.TimerHandle | None = None
    _unread = 0  # bytes, when the timer began

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        most = _most_connections(self.limits)
        if len(self.connections) > 2 * most:
            transport.abort()
        elif len(self.connections) > most:
            refused = _refusal(Refused(503, f"{most:,} connections are served already: ask again later", retry=1))
            refused.headers["Connection"] = "close"
            self.app = refused
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused:
            self._unwatch()  # a request is being answered
        else:
            self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unwatch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        """It came back with no request; what it has not read by now goes nowhere."""
        self.transport.abort()

    def _watch(self) -> None:
        """From the first moment on, however often."""
        if self._timer is None:
            self._unread = self.transport.get_write_buffer_size()
            self._timer = self.loop.call_later(self.limits.patience, self._cut)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut(self) -> None:
        """Unless it read some of what it was waited for."""
        self._timer = None
        if self.flow.write_paused and self.transport.get_write_buffer_size() < self._unread:
            self._watch()
        else:
            self.transport.abort()


def _most_connections(limits: Limits) -> int:
    """As many again are told that there are too many, and the process needs files of its own."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return min(limits.connections, max(1, (files - _OTHER_FILES) // 2))


def serve(web: Web, address: tuple[str, int], *, ready: Callable[[str, int], None]) -> None:
    """Until SIGINT or SIGTERM; requests that wait are answered first.  ready: told where it listens."""
    listener = _listener(address)
    try:
        ready(*listener.getsockname()[:2])
        _server(web).run([listener])
    finally:
        listener.close()


@contextmanager
def serving_requests(web: Web, address: tuple[str, int] = ("127.0.0.1", 0)) -> Iterator[tuple[str, int]]:
    """While it is entered, in a thread; gives where."""
    listener = _listener(address)
    server = _server(web)
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    try:
        host, port = listener.getsockname()[:2]
        yield host, port
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


def _server(web: Web) -> Server:
    class Own(_Connection):
        limits = web.limits

    return Server(Config(
        web.app, log_config=None, log_level="critical", access_log=False, server_header=False, lifespan="off",
        ws="none", http=Own, timeout_keep_alive=30, timeout_graceful_shutdown=_STOPPING, proxy_headers=False,
    ))  # fmt: skip


def _listener(address: tuple[str, int]) -> socket.socket:
    """Named as TCP, by which asyncio knows to send small answers at once."""
    host, port = address
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(512)
    except (OSError, OverflowError) as error:
        listener.close()
        what = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot listen on {host}:{port}: {what}; choose another address") from error
    listener.setblocking(False)
    return listener
