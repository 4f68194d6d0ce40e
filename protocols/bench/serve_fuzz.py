"""`scripts/serve_fuzz`: requests that are none, or almost: each gets a 4xx that says what to change, and never a 500.

Among them are some that are right, which must be served all the while.  JSON that counts answers by status, and says
what was wrong, goes to stdout; exit code 1 if anything was.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from mpc.net.asking import Answered, Asking
from mpc.net.requests import Limits
from mpc.net.tokens import Tokens, make_tokens
from mpc.net.web import Web, serving_requests

from ..ppcb.serving.endpoints import roles_of
from ..ppcb.serving.service import Wanted, opened
from ..run.exits import exit_codes, say
from ..run.parser import whole

_PATHS = ("/context", "/predict", "/reward", "/healthz", "/metrics", "/ledger", "/docs", "/openapi.json")
_ROLES = ("owner 0", "owner 1", "puller", "payer", "watcher")
_SOUND: dict[str, dict[str, Any]] = {
    "/context": {"id": "v", "features": [0.1, 0.2]}, "/predict": {"id": "v"},
    "/reward": {"decision_id": 0, "reward": 0.5},
}  # fmt: skip
_BYTES = 1 << 14
_WORDS = (
    "id",
    "ids",
    "features",
    "contexts",
    "decision_id",
    "reward",
    "rewards",
    "owner",
    "",
    "\0",
    "é" * 40,
    "__proto__",
)


def fuzz(count: int, seed: int, folder: Path, watch: Callable[[int], None] = lambda done: None) -> dict[str, Any]:
    """So many requests to a service in this process.  folder: of the service, a fresh one."""
    rng, ends, wrong, lines = random.Random(seed), Counter[str](), list[str](), list[str]()
    with opened(folder, Wanted(arms=["a", "b"], owners=[2, 1], steps=100_000), say=lines.append) as service:
        make_tokens(folder / "tokens", roles := roles_of(service.found.bandit.settings))
        known, limits = Tokens.read(folder / "tokens", roles), Limits(body=_BYTES)
        web = Web(service.site, tokens=known, limits=limits, say=lines.append)
        letters = {role: (folder / "tokens" / f"{role.replace(' ', '-')}.token").read_text().strip() for role in _ROLES}
        with serving_requests(web) as address:
            link = Asking(address, patience=30.0)
            for done, raw in enumerate(_requests(count, rng, letters), 1):
                try:
                    answered = link.send(raw)
                except OSError:
                    ends["closed"] += 1  # what is no HTTP at all may find no other answer
                    continue
                finally:
                    length = len(raw.rpartition(b"\r\n\r\n")[2])
                    if b"Content-Length: %d\r\n" % length not in raw or rng.random() < 0.05:
                        link.close()  # the service may wait for the rest of a body
                ends[str(answered.status)] += 1
                if (fault := _fault(answered)) and len(wrong) < 20:
                    wrong.append(f"{fault}: {raw[:200]!r}")
                if done % 200 == 0 and (fault := _unserved(address, letters, done)):
                    wrong.append(fault)
                watch(done)
            link.close()
    return {"requests": count, "seed": seed, "ends": dict(sorted(ends.items())), "wrong": wrong, "log": lines[:20]}


def _fault(answered: Answered) -> str:
    """What is wrong with an answer, or nothing."""
    if answered.status >= 500:
        return f"status {answered.status}"
    if answered.status >= 400 and "application/json" in answered.headers.get("content-type", ""):
        said = answered.body.get("error", "")
        return "" if ":" in said and len(said) < 600 else f"{answered.status} without a cure: {said!r}"
    return ""


def _unserved(address: tuple[str, int], letters: dict[str, str], which: int) -> str:
    """One whole decision, as sound clients ask for it."""
    name = f"sound {which}"
    steps = (
        ("owner 0", "/context", {"id": name, "features": [0.1, 0.2]}),
        ("owner 1", "/context", {"id": name, "features": [0.3]}),
        ("puller", "/predict", {"id": name}),
    )
    for role, path, body in steps:
        link = Asking(address, letters[role])
        answered = link.post(path, body)
        link.close()
        if answered.status != 200:
            return f"a sound request to {path} was answered with {answered.status}: {answered.text}"
    payer = Asking(address, letters["payer"])
    paid = payer.post("/reward", {"decision_id": answered.body["decision_id"], "reward": 1})
    payer.close()
    return "" if paid.status == 200 else f"a sound reward was answered with {paid.status}: {paid.text}"


def _requests(count: int, rng: random.Random, letters: dict[str, str]) -> Iterator[bytes]:
    """Raw requests."""
    for _ in range(count):
        path = rng.choice(_PATHS[:3]) if rng.random() < 0.85 else _path(rng)
        method = "POST" if rng.random() < 0.9 else rng.choice(("GET", "PUT", "HEAD", "BREW", "OPTIONS", "post"))
        if method == "HEAD":  # has no body to read
            method = "DELETE"
        body = _body(path, rng)
        headers = {
            "Host": "127.0.0.1", "Content-Length": str(len(body)), "Content-Type": "application/json",
            "Authorization": f"Bearer {letters[_role(path, rng)]}", **_headers(rng),
        }  # fmt: skip
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        raw = "\r\n".join(lines).encode("utf-8", "surrogatepass") + body
        yield bytes(rng.randrange(256) for _ in range(60)) + b"\r\n\r\n" if rng.random() < 0.01 else raw


def _role(path: str, rng: random.Random) -> str:
    mine = {"/context": "owner 0", "/predict": "puller", "/reward": "payer"}.get(path, "watcher")
    return mine if rng.random() < 0.9 else rng.choice(_ROLES)


def _path(rng: random.Random) -> str:
    kinds = (
        "/",
        "//context",
        "/../etc/passwd",
        "/context?id=1",
        "/%00",
        f"/{'a' * 3000}",
        "/predict/",
        "/CONTEXT",
        "*",
    )
    return rng.choice((*kinds, *_PATHS))


def _headers(rng: random.Random) -> dict[str, str]:
    """Now and then one that is odd."""
    if rng.random() < 0.7:
        return {}
    odd = (
        ("Authorization", "Bearer"), ("Authorization", "Basic YTpi"), ("Authorization", "Bearer " + "x" * 2000),
        ("Authorization", "Bearer é"), ("Content-Type", "text/plain"), ("Content-Type", ""),
        ("Content-Type", "application/json; charset=utf-16"), ("Idempotency-Key", ""), ("Idempotency-Key", "k" * 500),
        ("Idempotency-Key", "é"), ("Idempotency-Key", rng.choice("abcdefgh")), ("Content-Length", "-1"),
        ("Content-Length", "1e9"), ("Content-Length", str(10**30)), ("Content-Length", str(_BYTES * 9)),
        ("Host", ""), ("X" * 200, "y" * 2000), ("Expect", "100-continue"),
    )  # fmt: skip
    name, value = rng.choice(odd)
    return {name: value}


def _body(path: str, rng: random.Random) -> bytes:
    """Almost what is wanted: a sound one that was changed, JSON of any shape, or no JSON."""
    kind = rng.random()
    if kind < 0.1:
        return rng.choice((b"", b"{", b"[" * 9000, b'{"id":"v"}}', b"\xff\xfe{}", b"null", b"\0", b'"' + b"a" * 20_000))
    if kind < 0.2:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(200)))
    if kind < 0.4:
        return _text(_value(rng, 3))
    sound: dict[str, Any] = {**_SOUND.get(path, {"id": "v"})}
    many = {"/context": "contexts", "/predict": "ids", "/reward": "rewards"}.get(path)
    for _ in range(rng.randrange(3)):
        sound[rng.choice((*sound, *_WORDS))] = _value(rng, 2)
    if many is not None and rng.random() < 0.3:
        items = [
            sound["id"] if path == "/predict" and "id" in sound else sound for _ in range(rng.choice((0, 1, 2, 1100)))
        ]
        sound = {many: items}
    text = _text(sound)
    if rng.random() < 0.1:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
    return text


def _text(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=isinstance(value, dict)).encode("utf-8", "surrogatepass")


def _value(rng: random.Random, depth: int) -> Any:
    kinds: list[Any] = [
        None, True, False, 0, -1, 1, 0.5, -0.0, 1e308, 1e-320, float("nan"), float("inf"), 1 << 63, 1 << 64, -(1 << 70),
        10**400, "", "v", "0", "\0", "\ud800", "é", "a" * 300, [], {}, [0.1, 0.2], [[0.1], 0.2], ["0.1", 0.2],
        [9.0, 9.0], [True, False], [1e200, 1e200], rng.randrange(100), rng.random(),
    ]  # fmt: skip
    if depth and rng.random() < 0.3:
        if rng.random() < 0.5:
            return [_value(rng, depth - 1) for _ in range(rng.randrange(4))]
        return {rng.choice(_WORDS): _value(rng, depth - 1) for _ in range(rng.randrange(4))}
    return rng.choice(kinds)


def main() -> None:
    """Fuzz, and print how it ended."""
    parser = argparse.ArgumentParser(prog="scripts/serve_fuzz", description=__doc__)
    parser.add_argument("--count", type=whole, default=100_000, help="requests (100,000)")
    parser.add_argument("--seed", type=whole, default=1, help="of what is drawn (1)")
    options = parser.parse_args()
    with exit_codes(), tempfile.TemporaryDirectory(prefix="masked-serve-") as name:

        def watch(done: int) -> None:
            if done % 10_000 == 0:
                say(f"{done:,} requests")

        found = fuzz(options.count, options.seed, Path(name) / "service", watch)
        print(json.dumps(found, indent=1))
        if found["wrong"] or found["log"]:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
