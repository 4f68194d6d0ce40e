"""Of an error that ends a client the parties hear the kind, and its launcher words without a value: every client."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.helba import Constants
from examples.auction import bidder, regulator, seller
from mpc.children import Record
from mpc.client import ClientProgram, Receive, Send, serve
from mpc.errors import MaskedError, PeerLost, Told
from mpc.net.frames import Nodes, aborted, farewell
from protocols.helba import EncryptedLinearBandit
from protocols.helba.clients import user
from protocols.helba.settings import Settings
from protocols.linucb_ds.mpc.clients import customer as linucb_customer
from protocols.linucb_ds.mpc.clients import owner
from protocols.linucb_ds.mpc.settings import Settings as LinUCBSettings
from protocols.ppcb.clients import payer, puller
from protocols.ppcb.library.on_shares import Declared, logging_puller
from protocols.ppcb.library.rounds import Hear, Say, payer_client, puller_client
from protocols.ppcb.live.feeds import Feed
from protocols.ppcb.live.program import Live
from protocols.ppcb.program import PAYER, PULLER
from protocols.run.desk import MemoryDesk, World
from protocols.samba.mpc.clients import customer as samba_customer
from protocols.samba.mpc.clients import host

from .linucb_ds.mpc.runs import normal
from .ppcb.runs import settings as ppcb_settings
from .samba.mpc.test_owners import hosted

ROOT = Path(__file__).resolve().parents[2]
SECRET = 8675309
"""What a client knows and nobody else may: it is in a value that each client below fails of."""


class Deaf:
    """A link to two parties that reveal `SECRET` to whoever receives, and note why a client leaves."""

    parties = 2
    left: Told | None = None

    def __init__(self, lost: bool) -> None:
        self._lost = lost

    def send(self, payloads: np.ndarray, what: str) -> None:
        if self._lost:
            raise PeerLost(f"party 1 left while {SECRET} was sent", peer=1)

    def receive(self, count: int, what: str) -> np.ndarray:
        if self._lost:
            raise PeerLost(f"party 1 left before {SECRET} came", peer=1)
        rows = np.zeros((2, count // 8), np.uint64)
        rows[0] = SECRET
        return rows.view(np.uint8)

    def close(self, reason: Told | None = None) -> None:
        self.left = reason


def desk(*heard: int) -> MemoryDesk:
    world = World()
    world.told.extend(np.full((1, 1), arm) for arm in heard)
    return MemoryDesk(world)


class FullDesk(MemoryDesk):
    """Whose notes do not fit on its disk."""

    def note(self, words: np.ndarray) -> None:
        raise OSError(f"no space for {words.tolist()}")


def fails(*_: Any) -> Any:
    raise KeyError(SECRET)


def bandit_puller(at: MemoryDesk) -> ClientProgram:
    return puller(ppcb_settings(replicas=1), 3, at)


def bandit_payer(paid: float) -> ClientProgram:
    given = ppcb_settings(replicas=1)
    return payer(np.full((3, 1, 1, given.arms), paid), given, 3, desk(0, 0, 0))


def outside_payer() -> ClientProgram:
    """Whose world gives what is no reward."""
    return payer(None, ppcb_settings(replicas=1), 3, desk(*[SECRET] * 3))


class Asks(Feed):
    """Programs of a role, which ask about a context and pay for a decision."""

    def __init__(self, number: int = 0, paid: float = 0.0, *, asks: Callable[[int], Any] | None = None) -> None:
        self._number, self._paid, self._asks = number, paid, asks

    def ask(self, most: int) -> list[tuple[int, int]]:
        return [(self._number, SECRET)] if self._asks is None else self._asks(most)

    def due(self, most: int) -> list[tuple[int, float]]:
        return [(self._number, self._paid)] if self._asks is None else self._asks(most)


def live(role: str, feed: Feed) -> ClientProgram:
    """Of a service between machines."""
    program = Live(ppcb_settings(replicas=1), 2, 3)
    program.feed = feed
    return program.client(role, {}, desk())


def helba_user(paid: float) -> ClientProgram:
    """Who is told an arm that there is not, or has a reward beyond R."""
    given = Settings(Constants(dim=2), steps=2)
    return user(np.zeros((2, 2, 2)), np.full((2, 2), paid), given, desk())


def helba_library_user() -> ClientProgram:
    """Whose features cannot be sent."""
    bandit = EncryptedLinearBandit(Settings(Constants(dim=2), steps=2))
    bandit._features[...] = [[np.inf, SECRET], [0.0, 0.0]]
    return bandit._user()


def log_puller(pulled: Any, given: Any) -> ClientProgram:
    """Whose log holds a propensity that it must not have, or no number at all."""
    return logging_puller([(pulled, given)], 2, Declared(rows=1, floor=0.1))


def long_theta() -> ClientProgram:
    settings = LinUCBSettings.of(normal(3, 4), 10)
    return owner(np.array([float(SECRET), 0.0, 0.0]), settings)


def owners_beyond_their_range() -> ClientProgram:
    own = hosted("ucb")
    own.owners.words = lambda *_: np.full(6, SECRET << 40)  # type: ignore[method-assign]
    return host(own, desk())


def sends(value: Any, **rest: Any) -> ClientProgram:
    yield Send(value, **rest)


def receives() -> ClientProgram:
    told = yield Receive(())
    raise ValueError(f"what was told is {told}")


class Shy:
    def __repr__(self) -> str:
        return str(SECRET)


CLIENTS: dict[str, list[Callable[[], ClientProgram]]] = {
    "protocols/ppcb/clients.py:puller": [lambda: bandit_puller(desk()), lambda: bandit_puller(FullDesk(World()))],
    "protocols/ppcb/clients.py:payer": [lambda: bandit_payer(SECRET), lambda: bandit_payer(np.nan)],
    "protocols/ppcb/clients.py:_paid_outside": [outside_payer],
    "protocols/ppcb/library/rounds.py:puller_client": [
        lambda: puller_client([Say([SECRET], [0, 1])], fails),
        lambda: puller_client([Hear()], fails),
        lambda: puller_client(map(fails, [0]), fails),
    ],
    "protocols/ppcb/library/rounds.py:payer_client": [
        lambda: payer_client([[SECRET]]), lambda: payer_client([[np.nan]]), lambda: payer_client([Shy()]),
        lambda: payer_client(map(fails, [0])),
    ],
    "protocols/ppcb/library/on_shares.py:logging_puller": [
        lambda: log_puller(np.array([0]), np.array([1.0 / SECRET])),
        lambda: log_puller(np.array([0]), np.array([np.nan])),
    ],
    "protocols/ppcb/live/program.py:_puller": [lambda: live(PULLER, Asks()), lambda: live(PULLER, Asks(asks=fails))],
    "protocols/ppcb/live/program.py:_payer": [
        lambda: live(PAYER, Asks(paid=SECRET)), lambda: live(PAYER, Asks(paid=np.nan)),
        lambda: live(PAYER, Asks(asks=fails)),
    ],
    "protocols/helba/clients.py:user": [lambda paid=paid: helba_user(paid) for paid in (0.0, SECRET, np.nan)],
    "protocols/helba/library.py:_user": [helba_library_user],
    "protocols/samba/mpc/clients.py:host": [owners_beyond_their_range],
    "protocols/samba/mpc/clients.py:customer": [samba_customer],
    "protocols/linucb_ds/mpc/clients.py:owner": [long_theta],
    "protocols/linucb_ds/mpc/clients.py:customer": [linucb_customer],
    "examples/auction.py:bidder": [lambda: bidder(np.array([SECRET * 1000])), lambda: bidder(np.array([np.nan]))],
    "examples/auction.py:seller": [lambda: seller(1, FullDesk(World()))],
    "examples/auction.py:regulator": [regulator],
    "any": [
        lambda: sends(SECRET, bound=1.0), lambda: sends([np.inf, SECRET]), lambda: sends([Shy()]),
        lambda: sends(str(SECRET)), receives,
    ],
}  # fmt: skip
CASES = [pytest.param(make, id=f"{name} {at}") for name, makers in CLIENTS.items() for at, make in enumerate(makers)]


def ended(client: ClientProgram, *, lost: bool) -> tuple[BaseException | None, Told | None]:
    """What a client ends of, and what it tells the parties."""
    link = Deaf(lost)
    try:
        serve(link, client)
    except Exception as error:
        return error, link.left
    return None, link.left


@pytest.mark.parametrize("make", CASES)
def test_the_parties_hear_the_kind_alone(make: Callable[[], ClientProgram]) -> None:
    error, told = ended(make(), lost=False)
    if error is None:  # a customer takes whatever number it is told
        assert make in (samba_customer, linucb_customer, regulator) and told is None
        return
    assert told == Told(type(error).__name__)
    assert str(SECRET) not in str(farewell(told, 2)) + str(aborted(farewell(told, 2)[1], 2, Nodes(2)))
    if isinstance(error, MaskedError):
        record = Record.of(error)
        assert record.kind == told.kind and record.text and str(SECRET) not in record.text


@pytest.mark.parametrize("make", CASES)
def test_of_a_lost_party_the_others_hear_which(make: Callable[[], ClientProgram]) -> None:
    error, told = ended(make(), lost=True)
    if isinstance(error, PeerLost):
        assert told == Told("PeerLost", peer=1)
        heard = aborted(farewell(told, 2)[1], 2, Nodes(2))
        assert isinstance(heard, PeerLost) and (heard.peer, str(heard)) == (1, "client 0 lost party 1")
    else:
        assert told == Told(type(error).__name__)


def test_what_its_own_process_reads_has_the_value() -> None:
    """The owner needs it: which arm, which norm."""
    for name, value in (
        ("ppcb/library/rounds.py:puller_client", str(SECRET)),
        ("linucb_ds/mpc/clients.py:owner", "8.6"),
    ):
        error, _ = ended(CLIENTS[f"protocols/{name}"][0](), lost=False)
        assert isinstance(error, MaskedError) and value in str(error) and value not in error.told
        assert error.told.replace("...", "") != str(error) and error.told.count("...") == 1


def test_every_client_is_here() -> None:
    """Functions of the programs there are that give a ClientProgram and yield."""
    found = set()
    for path in (*(ROOT / "protocols").rglob("*.py"), *(ROOT / "examples").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name):
                yields = any(isinstance(part, ast.Yield) for part in ast.walk(node))
                if node.returns.id == "ClientProgram" and yields:
                    found.add(f"{path.relative_to(ROOT)}:{node.name}")
    assert found == CLIENTS.keys() - {"any"}
