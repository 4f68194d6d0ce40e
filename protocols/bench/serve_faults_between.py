"""`scripts/serve_faults --machines N`: roles of a service between machines are killed at random moments.

One session goes through all trials; roles take turns, all of them at once among them.  In each, clients ask and pay
until a SIGKILL and beyond it, and ask again what was not answered; who was killed is started again with --resume, alone
while the others wait, and now and then killed once more soon after.  When every request has its answer and every reward
is learned from,

  - the regressions, put together from the parties' shares, are those of plaintext over all rewards that were answered
    with 200, each once; and an arm that is asked for then is the best by them;
  - no decision number was given twice, and a key that is sent again gets the answer that it got;
  - a decision that was told before and not paid can be paid;
  - every party's ledger counts at least every arm that was told, and no fewer than before.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mpc.net.asking import Answered, Asking

from .serve_between import ARMS, WIDTH, Between, Served, asks, between
from .serve_seen import Seen

_CLIENTS = 2
_PATIENCE = 150.0  # seconds until an answer comes, all starts of roles among them
_AGAIN = 0.05
_NEAR = 1e-4  # of regressions, entry by entry
_SAME = 2.0**-8  # two scores that are closer may fall either way
_ALL = "all"
_TIMES = (1, 1, 2)  # the second while it starts, or has just met the others


@dataclass
class Known(Seen):
    """contexts: whole ones, of the decisions that were told.  rewards: of those that were answered."""

    contexts: dict[int, np.ndarray] = field(default_factory=dict)
    rewards: dict[int, float] = field(default_factory=dict)
    deviation: float = 0.0

    def regressions(self) -> np.ndarray:
        """In plaintext, (arms, dim + 1, dim): inverses, and coefficients below each."""
        dim = len(next(iter(self.contexts.values())))
        gram, sums = np.stack([np.eye(dim)] * len(ARMS)), np.zeros((len(ARMS), dim))
        for number, reward in self.rewards.items():
            x, arm = self.contexts[number], ARMS.index(self.told[number])
            gram[arm] += np.outer(x, x)
            sums[arm] += reward * x
        inverses = np.linalg.inv(gram)
        return np.concatenate([inverses, np.einsum("aij,aj->ai", inverses, sums)[:, None]], axis=1)


class Client:
    """One that asks and pays, whatever becomes of the roles, until it is told that it is over."""

    def __init__(self, service: Between, known: Known, rng: random.Random, name: str) -> None:
        self._links = {role: service.asking(role) for role in service.ports}
        self._service, self._known, self._rng, self._name, self._count = service, known, rng, name, 0

    def work(self, over: Callable[[], bool]) -> None:
        """Whole decisions."""
        try:
            while not over():
                self.once()
        except (OSError, TimeoutError) as error:
            self._known.wrong.append(f"{self._name}: {error}")

    def once(self) -> None:
        """An arm, and mostly a reward."""
        number = self.decide(keyed=self._rng.random() < 0.7)
        if number is not None and self._rng.random() < 0.8:
            self.pay(number)

    def decide(self, *, keyed: bool) -> int | None:
        """The number of a decision; None of one whose answer was lost, and which cannot be asked for again."""
        self._count += 1
        name, parties = f"{self._name}-{self._count}", self._service.session.parties
        x = np.array([self._rng.uniform(-0.5, 0.5) for _ in range(WIDTH * parties)])
        key, until = name if keyed else "", time.monotonic() + _PATIENCE
        while True:
            for party, block in enumerate(np.split(x, parties)):
                self._asked(f"party {party}", "/context", {"id": name, "features": block.tolist()})
            try:
                answered = self._asked("puller", "/predict", {"id": name}, key, once=not keyed)
            except OSError:
                return None
            if answered.status == 200:
                break
            if time.monotonic() > until:
                raise TimeoutError(f"{name} was refused for {_PATIENCE:g} s: {answered.text.strip()}")
            # else an owner was killed, and its part is gone
        with self._known.lock:
            self._known.contexts[int(answered.body["decision_id"])] = x
            if keyed:
                self._known.keyed[key] = "/predict", {"id": name}, answered.body
        return self._known.decided(answered.body)

    def pay(self, number: int) -> None:
        """What came of it."""
        reward, key = round(self._rng.random(), 3), f"pay {number}" if self._rng.random() < 0.7 else ""
        body = {"decision_id": number, "reward": reward}
        answered = self._asked("payer", "/reward", body, key)
        with self._known.lock:
            self._known.rewards[number] = reward
            if key:
                self._known.keyed[key] = "/reward", body, answered.body

    def _asked(self, role: str, path: str, body: Any, key: str = "", *, once: bool = False) -> Answered:
        """Again and again until it is answered.  once: OSError where the connection is lost."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                answered = self._links[role].post(path, body, key=key)
            except OSError:
                if once:
                    raise
            else:
                if answered.status in (200, 404) or (answered.status == 409 and "waits already" in answered.text):
                    return answered
                if answered.status != 503:
                    self._known.wrong.append(f"{path} was answered with {answered.status}: {answered.text.strip()}")
                    return answered
            time.sleep(_AGAIN)
        raise TimeoutError(f"{path} at {role} got no answer in {_PATIENCE:g} s")


def campaign(
    kills: int, seed: int, parties: int, say: Callable[[str], None], *, dealer: bool = True, refresh: int | None = None
) -> dict[str, Any]:
    """So many kills of one session's roles, as a document.  dealer: whether one of them deals meanwhile.

    refresh: turns after which the regressions are refreshed, if any.
    """
    rng, known, begun = random.Random(seed), Known(), time.perf_counter()
    with between(Served(parties, dealer, refresh=refresh)) as service:
        service.start(*service.names)
        Client(service, known, rng, "first").once()
        hit = [*service.names, _ALL]
        counted, hits = 0, Counter[str]()
        for which in range(kills):
            before, role = len(known.wrong), hit[(which + seed) % len(hit)]
            hits[role] += _trial(service, known, rng, which, [role] if role != _ALL else service.names)
            counted = _judge(service, known, rng, which, counted)
            for line in known.wrong[before:]:
                say(f"kill {which}, {role}: {line}")
            if ended := service.ended():
                known.wrong.append(f"ended: {ended}")
                say(known.wrong[-1])
                break
        codes = {} if service.ended() else service.end()
    return {
        "machines": parties, "kills": sum(hits.values()), "of": dict(hits), "seed": seed, "dealer": dealer,
        "refresh": refresh, "decisions_told": len(known.told), "rewards_answered": len(known.rewards),
        "arms_in_the_ledger": counted, "largest_deviation": known.deviation, "wrong": len(known.wrong), "exits": codes,
        "seconds": time.perf_counter() - begun,
    }  # fmt: skip


def _trial(service: Between, known: Known, rng: random.Random, which: int, roles: Sequence[str]) -> int:
    """Work, a kill, a new start, and work until all is served that was asked; gives how many kills it was."""
    over = threading.Event()
    clients = [Client(service, known, random.Random(rng.random()), f"{which}-{at}") for at in range(_CLIENTS)]
    threads = [threading.Thread(target=client.work, args=(over.is_set,)) for client in clients]
    for thread in threads:
        thread.start()
    time.sleep(rng.uniform(0.05, 2.0))
    times = rng.choice(_TIMES)
    for _ in range(times):
        service.kill(*roles)
        time.sleep(rng.uniform(0.0, 1.0))
        service.start(*roles, resume=True)
        time.sleep(rng.uniform(0.0, 2.0))
    time.sleep(rng.uniform(0.0, 1.0))
    over.set()
    for thread in threads:
        thread.join()
    return times


def _judge(service: Between, known: Known, rng: random.Random, which: int, before: int) -> int:
    """When all is quiet; gives the arms that the ledgers count."""
    client = Client(service, known, rng, f"{which}-judge")
    if open_ones := [number for number in known.told if number not in known.rewards]:
        client.pay(rng.choice(open_ones))
    client.decide(keyed=True)  # behind which no reward is under way
    if waiting := _drained(service.asking("payer")):
        known.wrong.append(f"{waiting} rewards are not learned from")
    wanted, found = known.regressions(), service.learned()
    off = float(np.abs(found - wanted).max())
    known.deviation = max(known.deviation, off)
    if off > _NEAR:
        known.wrong.append(f"the regressions are off by {off:.2g} from those of {len(known.rewards)} rewards")
    if (number := client.decide(keyed=True)) is not None:
        scores = wanted[:, -1] @ known.contexts[number]
        if scores[ARMS.index(known.told[number])] < scores.max() - _SAME:
            known.wrong.append(f"{known.told[number]} was told where the scores are {scores.round(4).tolist()}")
    for key in rng.sample(sorted(known.keyed), min(5, len(known.keyed))):
        path, body, answer = known.keyed[key]
        again = service.asking("puller" if path == "/predict" else "payer").post(path, body, key=key)
        if (again.status, again.text and again.body) != (200, answer):
            known.wrong.append(f"{path} with a key was answered otherwise after the kill: {again.status}")
    ledgers = [_arms(service.asking(role)) for role in service.ports if asks(role) != role]
    if min(ledgers) < max(before, len(known.told)):
        known.wrong.append(f"ledgers count {ledgers} arms, {len(known.told)} were told and {before} counted before")
    return min(ledgers)


def _drained(payer: Asking) -> int:
    """Rewards that still wait after a long while."""
    until = time.monotonic() + _PATIENCE
    while (waiting := payer.get("/healthz").body["waiting"]) and time.monotonic() < until:
        time.sleep(_AGAIN)
    return int(waiting)


def _arms(owner: Asking) -> int:
    return sum(entry["count"] for entry in owner.get("/ledger").body if entry["what"] == "arm")
