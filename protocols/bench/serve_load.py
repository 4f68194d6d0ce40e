"""`scripts/serve_load`: decisions asked of `masked serve --try` at a steady rate, and how long each took.

Each decision is what it is in use: every owner sends its part, the puller asks for the arm, the payer says what it
paid.  With --batch a request has many of them.  Each is due at a time of its own, whether or not those before were
answered, and "from due" counts from there, so a service that falls behind cannot hide it.  "predict" is that request
alone.

Prints JSON: times in ms, decisions a second, and the processor's seconds: of the service, by what its one thread of the
bandit did, and "http", the rest; and of this load generator, which runs beside it.  "flush" is what the disk alone
takes for a line, measured before: a decision waits for two.  TMPDIR says where the service's folder is made.

examples:
  scripts/serve_load --rate 100 --seconds 300         100 decisions a second for five minutes
  scripts/serve_load --rate 50 --seconds 60
  scripts/serve_load --rate 1000 --batch 64 --seconds 60 --no-rewards
"""

from __future__ import annotations

import argparse
import json
import os
import re
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError
from mpc.net.asking import Asking

from ..run.exits import exit_codes, say
from ..run.parser import whole
from .serve_process import OWNERS, Serving, serving, until

_TOLD = re.compile(r'masked_serve_(\w+)(?:\{on="(\w+)"\})? ([\d.e+-]+)')


@dataclass
class Load:
    """rate: contexts a second, `batch` in each request.  paid: whether rewards are sent."""

    rate: float
    seconds: float
    batch: int = 1
    workers: int = 8
    paid: bool = True
    seed: int = 1
    predicts: list[float] = field(default_factory=list)
    dues: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    _next: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def count(self) -> int:
        """Of requests for arms."""
        return max(1, round(self.rate * self.seconds / self.batch))

    def run(self, service: Serving) -> float:
        """Seconds until all is answered."""
        start = time.perf_counter() + 0.5
        threads = [threading.Thread(target=self._work, args=(service, start, at)) for at in range(self.workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - start

    def _work(self, service: Serving, start: float, which: int) -> None:
        roles = [f"owner {owner}" for owner in range(len(OWNERS))] + ["puller", "payer"]
        links = {role: service.asking(role) for role in roles}
        rng = np.random.default_rng((self.seed, which))
        while (at := self._taken()) is not None:
            until(due := start + at * self.batch / self.rate)
            try:
                self._decision(links, rng, at, due)
            except OSError as error:
                with self._lock:
                    self.refused[type(error).__name__] += 1
        for link in links.values():
            link.close()

    def _taken(self) -> int | None:
        with self._lock:
            at, self._next = self._next, self._next + 1
        return at if at < self.count else None

    def _decision(self, links: dict[str, Asking], rng: np.random.Generator, at: int, due: float) -> None:
        names = [f"{at}-{row}" for row in range(self.batch)]
        for owner, width in enumerate(OWNERS):
            rows = (rng.uniform(-1.0, 1.0, (self.batch, width)) / np.sqrt(width)).tolist()
            parts = [{"id": name, "features": row} for name, row in zip(names, rows)]
            self._asked(links[f"owner {owner}"], "/context", {"contexts": parts})
        asked = time.perf_counter()
        told = self._asked(links["puller"], "/predict", {"ids": names})
        now = time.perf_counter()
        if told is None:
            return
        with self._lock:
            self.predicts.append(now - asked)
            self.dues.append(now - due)
        if self.paid:
            pays = [
                {"decision_id": each["decision_id"], "reward": float(rng.random() < 0.1 + 0.08 * each["arm"])}
                for each in told["decisions"]
            ]
            self._asked(links["payer"], "/reward", {"rewards": pays})

    def _asked(self, link: Asking, path: str, body: Any) -> Any:
        answered = link.post(path, body)
        if answered.status == 200:
            return answered.body
        with self._lock:
            self.refused[f"{path} {answered.status}"] += 1
        return None


def flushed(folder: Path, count: int = 300) -> list[float]:
    """Seconds that a short line takes to be on the disk below this folder, again and again."""
    took, path = list[float](), folder / "flushed"
    with path.open("ab", buffering=0) as file:
        for _ in range(count):
            file.write(bytes(512))
            start = time.perf_counter()
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - start)
    path.unlink()
    return took


def measured(load: Load, service: Serving) -> dict[str, Any]:
    """A service's run under this load, as a document."""
    flushes = flushed(service.folder.parent)
    before, own = service.cpu(), time.process_time()
    took = load.run(service)
    spent, own = service.cpu() - before, time.process_time() - own
    told = _metrics(service)
    thread = {name.split(" ")[1]: value for name, value in told.items() if name.startswith("processor_seconds_total ")}
    decisions, rewards = told.get("decisions_total", 0.0), told.get("rewards_total", 0.0)
    return {
        "rate": load.rate, "batch": load.batch, "asked": load.count * load.batch, "seconds": took,
        "decisions": decisions, "rewards": rewards, "decisions_per_second": decisions / took,
        "refused": dict(load.refused), "predict_ms": _quantiles(load.predicts), "from_due_ms": _quantiles(load.dues),
        "flush_ms": _quantiles(flushes),
        "contexts_and_rewards_per_batch": (decisions + rewards) / max(1.0, told["batches_total"]),
        "processor_seconds": {
            "service": spent, "load_generator": own, **thread, "http": spent - sum(thread.values()),
        },
    }  # fmt: skip


def _metrics(service: Serving) -> dict[str, float]:
    text = service.asking("watcher").get("/metrics").text
    return {f"{name} {label}".strip(): float(value) for name, label, value in _TOLD.findall(text)}


def _quantiles(seconds: Sequence[float]) -> dict[str, float]:
    if not seconds:
        raise ConfigError("no decision was answered: look at 'refused', and ask for less with --rate")
    low, high = np.quantile(seconds, [0.5, 0.99])
    return {"p50": 1e3 * float(low), "p99": 1e3 * float(high), "max": 1e3 * max(seconds)}


def main() -> None:
    """Start, load, print."""
    parser = argparse.ArgumentParser(
        prog="scripts/serve_load", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, default=100.0, help="contexts a second (100)")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--batch", type=whole, default=1, help="contexts in a request (1)")
    parser.add_argument("--workers", type=whole, default=8, help="requests under way at most (8)")
    parser.add_argument("--no-rewards", action="store_true", help="decide alone, and learn nothing")
    parser.add_argument("--bound", type=float, default=1.0, help="the largest norm of one owner's features (1)")
    parser.add_argument("--json", type=Path, help="write the document to this file as well")
    options = parser.parse_args()
    with exit_codes(), serving("--steps", "1e5", "--bound", str(options.bound)) as service:
        service.start()
        say(f"the service listens on port {service.port}: {options.rate:g} contexts a second for {options.seconds:g} s")
        load = Load(options.rate, options.seconds, options.batch, options.workers, not options.no_rewards)
        text = json.dumps(measured(load, service), indent=1)
        print(text)
        if options.json is not None:
            options.json.write_text(f"{text}\n")


if __name__ == "__main__":
    main()
