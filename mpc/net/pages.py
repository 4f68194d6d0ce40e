"""Pages of text for this machine alone, over HTTP: what watches a process reads them.  Knows paths; no content."""

from __future__ import annotations

import ipaddress
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from ..errors import ConfigError

Page = Callable[[], tuple[int, str, str]]
"""Gives a status, the kind of the content, and the content."""
_PATIENCE = 10.0  # seconds for one who asks


@contextmanager
def serving(address: tuple[str, int], pages: Mapping[str, Page]) -> Iterator[tuple[str, int]]:
    """While it is entered, these pages are there by GET; gives where."""
    check_own(address[0])

    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            status, kind, text = (404, "text/plain", "no such page\n") if page is None else page()
            raw = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            """Who looks is no news."""

    class Pages(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET

    try:
        server = Pages(address, Handler)
    except OSError as error:
        where = f"{address[0]}:{address[1]}"
        raise ConfigError(f"cannot listen on {where}: {error.strerror or error}; choose another port") from error
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        host, port = server.server_address[:2]
        yield str(host), int(port)
    finally:
        server.shutdown()
        server.server_close()


def url_of(host: str, port: int) -> str:
    """Where pages are, as a browser takes it."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def check_own(host: str) -> None:
    """ConfigError for an address that others reach."""
    if not is_own(host):
        raise ConfigError(f"pages for whoever watches are of this machine alone: listen on 127.0.0.1, not on {host!r}")


def check_exposed(host: str) -> None:
    """ConfigError where others than this machine could ask a service that has no tokens."""
    if not is_own(host):
        raise ConfigError(
            f"without tokens only this machine may ask: listen on 127.0.0.1, not on {host!r}, or use tokens"
        )


def is_own(host: str) -> bool:
    """Whether this machine alone reaches an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
