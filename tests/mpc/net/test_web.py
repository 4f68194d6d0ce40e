"""Requests over HTTP: who may ask, how much, and what comes back.  Endpoints are small ones of these tests."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from mpc.errors import ConfigError
from mpc.net.asking import Asking
from mpc.net.requests import ANYONE, Answer, Endpoint, Limits, Refused, Request, Site
from mpc.net.tokens import Tokens, make_tokens

pytestmark = pytest.mark.needs("starlette", "uvicorn")
ROLES = ("puller", "payer")
SECRET = "0.123456789"
LONG = 1 << 25  # bytes of a page, more than two ends of a connection keep for each other
HEAD = b"POST /echo HTTP/1.1\r\nHost: a\r\n"


class Place:
    """A service with an endpoint that echoes, one that waits, one that refuses and one with an error."""

    def __init__(self, folder: Path, *, tokens: bool = True, limits: Limits | None = None) -> None:
        from mpc.net.web import Web, serving_requests

        self.counts, self.log, self.let_go = Counter[tuple[str, int]](), list[str](), Future[Answer]()
        self._folder = folder
        if tokens:
            make_tokens(folder, ROLES)
        site = Site(
            {
                "/echo": Endpoint(lambda request: {"role": request.role, "body": request.body}, ("puller",)),
                "/wait": Endpoint(lambda _: self.let_go, ROLES),
                "/refuse": Endpoint(self._refuse, ROLES),
                "/fail": Endpoint(self._fail, ROLES),
            },
            {
                "/open": lambda: (200, "text/plain", "all"),
                "/guarded": lambda: (200, "text/plain", "some"),
                "/long": lambda: (200, "text/plain", "a" * LONG),
            },
            {"/guarded": ("payer",)},
            lambda path, status: self.counts.update([(path, status)]),
        )
        known = Tokens.read(folder, ROLES) if tokens else None
        self.web = Web(site, tokens=known, limits=limits or Limits(), say=self.log.append)
        self.serving = serving_requests(self.web)
        self.address = ("", 0)

    @staticmethod
    def _refuse(_: Request) -> Answer:
        raise Refused(429, "too much of it: ask later", retry=7)

    @staticmethod
    def _fail(request: Request) -> Answer:
        raise ValueError(f"{request.body}")

    def as_role(self, role: str = "") -> Asking:
        token = (self._folder / f"{role}.token").read_text().strip() if role else ""
        return Asking(self.address, token, patience=20.0)

    def __enter__(self) -> Place:
        self.address = self.serving.__enter__()
        return self

    def __exit__(self, *given: Any) -> None:
        self.let_go.cancel() if not self.let_go.done() else None
        self.serving.__exit__(*given)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    with Place(tmp_path, limits=Limits(body=1000, at_once=2, patience=1.0)) as made:
        yield made


def test_a_role_gets_its_answer_and_others_the_reason(place: Place) -> None:
    told = place.as_role("puller").post("/echo", {"a": [1, 2.5]})
    assert (told.status, told.body) == (200, {"role": "puller", "body": {"a": [1, 2.5]}})
    other, nobody = place.as_role("payer").post("/echo", {}), place.as_role().post("/echo", {})
    assert other.status == 403 and "this is for puller" in other.body["error"]
    assert nobody.status == 401 and nobody.headers["www-authenticate"] == "Bearer"
    assert place.as_role().get("/open").text == "all" and place.as_role("payer").get("/guarded").text == "some"
    assert place.as_role("puller").get("/guarded").status == 403 and place.as_role().get("/guarded").status == 401
    assert place.counts["/echo", 200] == place.counts["/echo", 403] == place.counts["/echo", 401] == 1


def test_what_is_not_there_is_said_in_json(place: Place) -> None:
    asking = place.as_role("puller")
    for answered, status in (
        (asking.get("/nowhere"), 404), (asking.get("/echo"), 405), (asking.post("/open", {}), 405),
        (asking.post("/echo/", {}), 404),
    ):  # fmt: skip
        assert answered.status == status and ":" in answered.body["error"]


def test_a_large_or_slow_body_is_refused(place: Place) -> None:
    asking = place.as_role("puller")
    assert asking.post("/echo", "a" * 990).status == 200
    assert asking.post("/echo", "a" * 999).status == 413
    asking.close()
    chunked = {"Transfer-Encoding": "chunked", "Content-Type": "application/json"}
    whole = b"".join(b"64\r\n" + b"1" * 100 + b"\r\n" for _ in range(11)) + b"0\r\n\r\n"
    token = (place._folder / "puller.token").read_text().strip()
    lines = [
        "POST /echo HTTP/1.1",
        "Host: a",
        f"Authorization: Bearer {token}",
        *map(": ".join, chunked.items()),
        "",
        "",
    ]
    assert asking.send("\r\n".join(lines).encode() + whole).status == 413
    asking.close()
    slow = asking.ask("POST", "/echo", b"{", {"Content-Length": "9", "Content-Type": "application/json"})
    assert slow.status == 408 and "send it at once" in slow.body["error"]


def test_no_token_no_body_is_read(place: Place) -> None:
    """The answer is there before the body is."""
    with socket.create_connection(place.address, 20.0) as link:
        link.sendall(b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 900\r\n\r\n")
        assert link.recv(4096).startswith(b"HTTP/1.1 401 ")


def test_so_many_wait_and_no_more(place: Place) -> None:
    answers: list[int] = []
    threads = [
        threading.Thread(target=lambda: answers.append(place.as_role("puller").post("/wait", {}).status))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    while place.web._at_once < 2:
        time.sleep(0.01)
    asking = place.as_role("puller")
    third = asking.post("/echo", {})
    assert third.status == 503 and third.headers["retry-after"] == "1"
    place.let_go.set_result({"at": "last"})
    for thread in threads:
        thread.join()
    assert answers == [200, 200] and asking.post("/echo", {}).status == 200


@pytest.mark.parametrize("first", [b"", HEAD, b"GET /open HTTP/1.1\r\nHost: a\r\n\r\n" + HEAD])
def test_who_sends_no_whole_head_is_cut_however_it_comes(first: bytes, place: Place) -> None:
    """Also behind a request that was answered; a byte now and then helps nobody."""
    with socket.create_connection(place.address, 20.0) as link:
        link.sendall(first)
        drip_until_cut(link, b"X" if first else b"")


def test_who_goes_on_with_a_body_after_the_answer_is_cut(place: Place) -> None:
    with socket.create_connection(place.address, 20.0) as link:
        link.sendall(HEAD + b"Content-Length: 900\r\n\r\n")
        assert link.recv(4096).startswith(b"HTTP/1.1 401 ")
        drip_until_cut(link, b"1")


def drip_until_cut(link: socket.socket, drop: bytes) -> None:
    """So many drops take longer than the patience of these tests, and come to less than a head or a body."""
    with pytest.raises((ConnectionError, EOFError)):
        for _ in range(400):
            link.sendall(drop)
            link.settimeout(0.05)
            with contextlib.suppress(TimeoutError):
                if not link.recv(4096):
                    raise EOFError


def test_who_does_not_read_an_answer_is_cut(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    from mpc.net.web import _Connection

    cut, cutting = threading.Event(), _Connection._cut
    monkeypatch.setattr(_Connection, "_cut", lambda connection: (cutting(connection), cut.set()))
    with socket.create_connection(place.address, 20.0) as link:
        link.sendall(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
        assert cut.wait(20.0)


def test_who_reads_slowly_gets_all(tmp_path: Path) -> None:
    with (
        Place(tmp_path, limits=Limits(patience=1.0)) as place,
        socket.create_connection(place.address, 20.0) as link,
        link.makefile("rb") as answer,
    ):
        link.sendall(b"GET /long HTTP/1.1\r\nHost: a\r\n\r\n")
        while answer.readline() != b"\r\n":
            pass
        for _ in range(32):
            assert len(answer.read(LONG // 32)) == LONG // 32
            time.sleep(0.05)


def test_a_waiting_request_is_not_cut(place: Place) -> None:
    with socket.create_connection(place.address, 20.0) as link:
        token = (place._folder / "puller.token").read_text().strip()
        kind = "Content-Type: application/json\r\nContent-Length: 2"
        link.sendall(f"POST /wait HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n{kind}\r\n\r\n{{}}".encode())
        threading.Timer(2.0, lambda: place.let_go.set_result({"at": "last"})).start()
        assert link.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_connections_beyond_their_number_hear_503_and_recover(tmp_path: Path) -> None:
    with Place(tmp_path, limits=Limits(connections=2, patience=20.0)) as place:
        served = place.as_role("puller")
        assert served.post("/echo", 1).status == 200
        others = [socket.create_connection(place.address, 20.0) for _ in range(2)]
        late = place.as_role("puller").post("/echo", 1)
        assert (late.status, late.headers["retry-after"]) == (503, "1") and "connections" in late.body["error"]
        assert late.headers["connection"] == "close"
        others += [socket.create_connection(place.address, 20.0) for _ in range(2)]
        others[-1].settimeout(20.0)
        with contextlib.suppress(ConnectionResetError):
            assert others[-1].recv(1) == b"", "one more than are told so"
        assert served.post("/echo", 1).status == 200, "who is served already is served on"
        for link in others:
            link.close()
        while place.as_role("puller").post("/echo", 1).status != 200:
            time.sleep(0.01)


def test_limits_are_those_that_security_md_says_and_more_generous_nowhere() -> None:
    """Who has no token takes this much of a service, and no more."""
    assert Limits() == Limits(body=1 << 20, at_once=1024, connections=1024, patience=10.0)


def test_files_are_left_for_the_process_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    from mpc.net import web

    for files, most in ((1024, 448), (100, 1), (1 << 20, 1024)):
        monkeypatch.setattr(web.resource, "getrlimit", lambda _, files=files: (files, files))
        assert web._most_connections(Limits()) == most


def test_an_error_of_ours_tells_nothing_of_what_was_sent(place: Place) -> None:
    failed = place.as_role("payer").post("/fail", SECRET)
    assert failed.status == 500 and SECRET not in failed.text
    assert len(place.log) == 1 and "ValueError in test_web.py" in place.log[0] and SECRET not in place.log[0]
    refused = place.as_role("payer").post("/refuse", {})
    assert (refused.status, refused.headers["retry-after"]) == (429, "7")
    assert refused.body == {"error": "too much of it: ask later"}


def test_without_tokens_this_machine_alone_may_ask(tmp_path: Path) -> None:
    from mpc.net.pages import check_exposed

    with Place(tmp_path, tokens=False) as place:
        asking = place.as_role()
        assert asking.post("/echo", 1).body["role"] == ANYONE and asking.get("/guarded").status == 200
        foreign = asking.ask("POST", "/echo", b"1", {"Host": "evil.example", "Content-Type": "application/json"})
        assert foreign.status == 421 and "make tokens" in foreign.body["error"]
        for host, status in (
            ("LOCALHOST:7780", 200), ("127.0.0.2:1", 200), ("[::1]:1", 200), ("[::1]", 200), ("localhost", 200),
            ("", 421), ("[::2]:1", 421), ("localhost.example:1", 421), ("127.0.0.1.example", 421), ("::1", 421),
        ):  # fmt: skip
            told = asking.ask("POST", "/echo", b"1", {"Host": host, "Content-Type": "application/json"})
            assert told.status == status, host
        assert asking.ask("POST", "/echo", b"1", {"Content-Type": "text/plain"}).status == 415
    check_exposed("127.0.0.1")
    with pytest.raises(ConfigError, match="only this machine may ask"):
        check_exposed("0.0.0.0")


def test_small_answers_leave_at_once(place: Place) -> None:
    """Else the head of an answer would wait for the receipt of what came before, and its body for that of the head."""
    from mpc.net.web import _listener

    listener = _listener(("127.0.0.1", 0))
    with listener, socket.create_connection(listener.getsockname()):
        listener.setblocking(True)
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP, "by which asyncio knows that it may"


def test_a_port_that_is_taken_is_said_in_a_line(place: Place) -> None:
    from mpc.net.web import serve

    with pytest.raises(ConfigError, match="choose another address"):
        serve(place.web, place.address, ready=lambda *_: None)
