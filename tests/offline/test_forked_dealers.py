"""A fork copies dealers and material, and no half of it may deal or draw what the other does."""

from __future__ import annotations

from pathlib import Path

from tests.forks import halves, refused

_DEALERS = """
from offline_parties import step_plan
from offline import InProcessDealer, InsecureSeededDealer, TrustedDealer

item = step_plan(2).items[0]
for dealer in (TrustedDealer(2), InProcessDealer(2), InsecureSeededDealer(2, 7)):
    name = type(dealer).__name__
    half(name, lambda: dealer.make(item).shape)
    half(name + " at another block", lambda: dealer.enter(3))
"""

_STREAM = """
import socket, threading
from offline_parties import step_plan
from mpc.net.channel import Channel
from offline import StreamSource, TrustedDealer, serve

plan = step_plan(2)
ends = [socket.socketpair() for _ in range(2)]
dealer = TrustedDealer(2)
channels = {party: Channel(ours, f"party {party}") for party, (ours, _) in enumerate(ends)}
dealing = threading.Thread(target=serve, args=(plan, channels), kwargs={"blocks": 40, "dealer": dealer})
dealing.start()
sources = [StreamSource(plan, Channel(end, "the dealer"), party=party) for party, (_, end) in enumerate(ends)]
for source in sources:
    source.agree([each.statement() for each in sources])
def step(source):
    return [source.draw(item)[0].shape for item in plan.items]
for party, source in enumerate(sources):
    half(f"party {party}'s stream", lambda: step(source), source.close)
for source in sources:  # also the blocks that the dealer had not sent when the child left
    for _ in range(39):
        step(source)
dealing.join()

again = [socket.socketpair() for _ in range(2)]
channels = {party: Channel(ours, f"party {party}") for party, (ours, _) in enumerate(again)}
def deal():
    serve(plan, channels, blocks=1, dealer=dealer)
    return [len(theirs.recv(1 << 16)) > 0 for _, theirs in again]
half("serving", deal)
"""

_STORES = """
import sys
from pathlib import Path
from offline_parties import step_plan
from offline import Store, StoreSource, deal, inspect

plan = step_plan(2)
homes = deal(plan, 12, Path(sys.argv[1]), block_steps=3)
sources = [StoreSource(Store(home)) for home in homes]
def agree():
    for source in sources:
        source.agree([each.statement() for each in sources])
agree()
def step(source):
    return [source.draw(item)[0].shape for item in plan.items]
for source in sources:  # at the start of a block, and inside one
    half("store before a block", lambda: step(source))
    half("store inside a block", lambda: step(source), source.store.close)
half("agreeing", agree)
assert [inspect(home).steps_left for home in homes] == [9, 9]
"""


def test_dealers_are_refused_in_a_forked_process() -> None:
    refused(halves(_DEALERS))


def test_a_streaming_dealer_and_its_parties_are_refused_in_a_forked_process() -> None:
    refused(halves(_STREAM))


def test_a_forked_half_of_a_store_is_refused_and_claims_nothing(tmp_path: Path) -> None:
    refused(halves(_STORES, tmp_path))
