"""`scripts/serve_faults`: a service is killed at random moments, started again, and must have lost nothing.

One folder goes through all trials.  In each, clients ask as fast as they are answered until a SIGKILL; then the service
starts again, and

  - every reward that was answered with 200 is learned: to send it again is refused with 409, and the count of learned
    rewards is at least what was answered and at most what was sent;
  - a request with a key that got no answer is sent again, and its answer counts; one that was answered gets the same
    answer again;
  - no decision number is given twice, and every decision that was told and not paid can still be paid;
  - the ledger counts at least every arm that was told, and no fewer than before.

With --machines it is a service of roles on machines of their own, each a process, of which one is killed, or all:
{between}

Prints a line for each trial that went wrong, and JSON at the end; exit code 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mpc.net.asking import Asking

from ..run.exits import exit_codes, say
from ..run.parser import whole
from . import serve_faults_between as machines
from .serve_process import OWNERS, Serving, serving
from .serve_seen import Seen

_CLIENTS = 4


class Client:
    """One that asks and pays until the service is gone."""

    def __init__(self, service: Serving, seen: Seen, rng: random.Random, name: str) -> None:
        self._owners = [service.asking(f"owner {owner}") for owner in range(len(OWNERS))]
        self._puller, self._payer = service.asking("puller"), service.asking("payer")
        self._seen, self._rng, self._name, self._count = seen, rng, name, 0

    def work(self, over: Callable[[], bool]) -> None:
        """Until nobody answers."""
        try:
            while not over():
                self._once()
        except OSError:
            pass

    def _once(self) -> None:
        self._count += 1
        name = f"{self._name}-{self._count}"
        for link, width in zip(self._owners, OWNERS):
            row = [self._rng.uniform(-0.3, 0.3) for _ in range(width)]
            link.post("/context", {"id": name, "features": row})
        number = self._seen.decided(self._keyed(self._puller, "/predict", {"id": name}, name))
        if self._rng.random() < 0.8:  # some are never paid, or after a kill
            reward, key = self._rng.random(), f"pay {name}" if self._rng.random() < 0.5 else ""
            with self._seen.lock:
                self._seen.sent.add(number)
            body = {"decision_id": number, "reward": reward}
            if key:
                self._keyed(self._payer, "/reward", body, key)
            elif (status := self._payer.post("/reward", body).status) != 200:
                self._seen.wrong.append(f"a reward was refused with {status}")
            with self._seen.lock:
                self._seen.paid.add(number)

    def _keyed(self, link: Asking, path: str, body: Any, key: str) -> Any:
        with self._seen.lock:
            self._seen.keyed[key] = path, body, None
        answered = link.post(path, body, key=key)
        if answered.status != 200:
            raise ConnectionError(f"{path} was answered with {answered.status}")
        with self._seen.lock:
            self._seen.keyed[key] = path, body, answered.body
        return answered.body


def trial(service: Serving, seen: Seen, rng: random.Random, which: int) -> None:
    """Work, a kill, and what is found after it."""
    over = threading.Event()
    clients = [Client(service, seen, random.Random(rng.random()), f"{which}-{at}") for at in range(_CLIENTS)]
    threads = [threading.Thread(target=client.work, args=(over.is_set,)) for client in clients]
    before = _disclosed(service)
    for thread in threads:
        thread.start()
    time.sleep(rng.uniform(0.05, 2.0))
    service.end(signal.SIGKILL)
    over.set()
    for thread in threads:
        thread.join()
    service.start()
    _judge(service, seen, rng, before)


def _judge(service: Serving, seen: Seen, rng: random.Random, before: int) -> None:
    puller, payer, watcher = (service.asking(role) for role in ("puller", "payer", "watcher"))
    for key, (path, body, answer) in seen.keyed.items():
        link = puller if path == "/predict" else payer
        if answer is not None and rng.random() > 0.1:
            continue
        again = link.post(path, body, key=key)
        if answer is not None and (again.status, again.text and again.body) != (200, answer):
            seen.wrong.append(f"{path} with a key was answered otherwise after the kill: {again.status}")
        elif answer is None and path == "/reward":
            if again.status != 200:
                seen.wrong.append(f"a reward with a key was refused with {again.status} after the kill")
            seen.paid.add(body["decision_id"])
        elif answer is None and again.status == 200:
            seen.decided(again.body)
        elif answer is None and again.status != 404:  # its context is gone, which owners send again
            seen.wrong.append(f"/predict was answered with {again.status} after the kill")
    seen.keyed.clear()
    for number in rng.sample(sorted(seen.paid), min(5, len(seen.paid))):
        if (status := payer.post("/reward", {"decision_id": number, "reward": 0.5}).status) != 409:
            seen.wrong.append(f"decision {number} was paid twice: {status}")
    open_ones = [number for number in seen.told if number not in seen.sent]
    for number in rng.sample(open_ones, min(3, len(open_ones))):
        status = payer.post("/reward", {"decision_id": number, "reward": 0.5}).status
        seen.sent.add(number)
        seen.paid.add(number)
        if status != 200:
            seen.wrong.append(f"decision {number}, told and not paid, was lost: {status}")
    learned = watcher.get("/healthz").body["learned"]
    if not len(seen.paid) <= learned <= len(seen.sent):
        seen.wrong.append(f"{learned} rewards are learned, {len(seen.paid)} were answered and {len(seen.sent)} sent")
    if (disclosed := _disclosed(service)) < max(before, len(seen.told)):
        seen.wrong.append(f"the ledger counts {disclosed} arms, {len(seen.told)} were told and {before} counted before")


def _disclosed(service: Serving) -> int:
    return sum(entry["count"] for entry in service.asking("watcher").get("/ledger").body if entry["what"] == "arm")


def campaign(kills: int, seed: int, say: Callable[[str], None]) -> dict[str, Any]:
    """So many kills of one folder's service, as a document."""
    rng, seen, begun = random.Random(seed), Seen(), time.perf_counter()
    with serving("--steps", "1e5", batch=2) as service:  # a small batch is soon warm
        service.start()
        for which in range(kills):
            known = len(seen.wrong)
            trial(service, seen, rng, which)
            for line in seen.wrong[known:]:
                say(f"kill {which}: {line}")
        counted = _disclosed(service)
        code = service.end()
    return {
        "kills": kills, "seed": seed, "decisions_told": len(seen.told), "rewards_answered": len(seen.paid),
        "rewards_sent": len(seen.sent), "arms_in_the_ledger": counted, "wrong": len(seen.wrong), "last_exit": code,
        "seconds": time.perf_counter() - begun,
    }  # fmt: skip


def main() -> None:
    """Kill, judge, print."""
    _, _, between = (machines.__doc__ or "").partition("\n\n")
    about = (__doc__ or "").replace("{between}", between.strip())
    parser = argparse.ArgumentParser(
        prog="scripts/serve_faults", description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=whole, default=50, help="how often it is killed (50)")
    parser.add_argument("--seed", type=whole, default=1, help="of moments and of what is asked (1)")
    parser.add_argument("--json", type=Path, help="write the document to this file as well")
    parser.add_argument("--machines", type=whole, metavar="N", help="roles of a service of N owners between machines")
    parser.add_argument("--material", action="store_true", help="with --machines: dealt before, in place of a dealer")
    parser.add_argument("--refresh", type=whole, metavar="N", help="with --machines: refresh after N full turns")
    options = parser.parse_args()
    with exit_codes():
        if options.machines:
            found = machines.campaign(
                options.kills, options.seed, options.machines, say, dealer=not options.material, refresh=options.refresh
            )
        else:
            found = campaign(options.kills, options.seed, say)
        text = json.dumps(found, indent=1)
        print(text)
        if options.json is not None:
            options.json.write_text(f"{text}\n")
        if found["wrong"]:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
