"""A fork copies masks and pair streams, and no half of it may draw what the other draws."""

from __future__ import annotations

import pytest

from tests.forks import halves, refused

_IN_ONE_PROCESS = """
import ctypes
import numpy as np
from mpc import Reveal, Session
from mpc.prg import Prg, fresh_key
from offline import InProcessDealer

prg = Prg(fresh_key())
half("stream", lambda: prg.words((2,)))
half("stream, forked in C", lambda: prg.words((2,)), fork=ctypes.PyDLL(None).fork)

session = Session.simulate(2, InProcessDealer(2))
x = session.share(np.arange(3.0))
def revealed():
    return (yield Reveal(x))
half("input", lambda: session.share(np.arange(3.0)))
half("pairs", lambda: session._pairs.zero((2,)))
half("reveal", lambda: session.run(revealed()))

"""

_CLIENT = """
from mpc import ConfigError
import sys
import numpy as np
from mpc.client import Receive, Send, serve

then = {"send": Send(2.0), "receive": Receive(())}[sys.argv[1]]

class Link:
    parties, left = 2, False
    def send(self, payloads, what): pass
    def receive(self, count, what): return np.zeros((2, count), np.uint8)
    def close(self, reason=None): self.left = True

link, children = Link(), []
def program():
    yield Send(1.0)
    children.append(os.fork())
    yield then

try:
    said = f"drew {serve(link, program())!r}"
except ConfigError as error:
    said = "left its parent's parties" if link.left else f"ConfigError: {error}"
os.write(1, (json.dumps(["client" + ", parent" * (children[0] > 0), said]) + "\\n").encode())
if children[0]:
    os.waitpid(children[0], 0)
"""

_NETWORKED = """
import threading
from tests.parties.programs import rounds
from tests.parties.threads import over_tcp, values

def program(session):
    # Party 0 forks; its child may say nothing to party 1, neither in a round nor when it leaves.
    first = session.run(rounds(session, 1)).tolist()
    if 0 in session.hosted:
        half("round", lambda: session.run(rounds(session, 1)).tolist(),
             lambda: (session.__exit__(None, None, None), session.__exit__(ValueError, ValueError(), None)))
    else:
        session.run(rounds(session, 1))
    return session.run(rounds(session, 2)).tolist()

half.last = values(over_tcp(2, program))
assert half.last == [[1, 1, 1, 1]] * 2, half.last
"""


_WITHIN_A_PROGRAM = """
from tests.parties.programs import rounds
from tests.parties.threads import over_tcp, values

child = None

def forking(session, fails):
    global child
    first = yield from rounds(session, 1)
    if 0 in session.hosted and (child := os.fork()):
        os.waitpid(child, 0)
    if child == 0 and fails:
        raise ValueError("the child unwinds")
    return first + (yield from rounds(session, 1))

def program(session, fails):
    # Whatever becomes of the child of party 0, party 1 plays with its parent.
    try:
        found = session.run(forking(session, fails)).tolist()
        said = f"drew {found}"
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    if child == 0:
        os.write(1, (json.dumps([str(fails), said]) + "\\n").encode())
        os._exit(0)
    os.write(1, (json.dumps([f"{fails}, parent", said]) + "\\n").encode())
    return found

for fails in (False, True):
    assert values(over_tcp(2, lambda session: program(session, fails))) == [[2, 2, 2, 2]] * 2
"""


def test_masks_pairs_and_sessions_are_refused_in_a_forked_process() -> None:
    refused(halves(_IN_ONE_PROCESS))


@pytest.mark.parametrize("then", ["send", "receive"])
def test_a_forked_half_of_a_client_is_refused_and_leaves_without_a_word(then: str) -> None:
    refused(halves(_CLIENT, then))


def test_a_forked_half_of_a_session_on_a_network_says_nothing_to_the_peers() -> None:
    refused(halves(_NETWORKED))


def test_a_half_that_was_forked_within_a_program_says_nothing_to_the_peers() -> None:
    said = halves(_WITHIN_A_PROGRAM)
    assert said.pop("True") == "ValueError: the child unwinds"
    assert said.pop("True, parent").startswith("drew ")
    refused(said)


def test_a_forked_half_of_a_link_says_nothing_and_takes_nothing() -> None:
    refused(halves("""
import socket
from mpc.net.channel import Channel

ours, theirs = (Channel(end, "Comp") for end in socket.socketpair())
def heard():
    theirs.send(b"for the one that holds the link")
    return ours.receive(timeout=5)
half("send", lambda: ours.send(b"word"))
assert theirs.receive(timeout=5) == b"word"
half("send and receive", heard)
theirs.send(b"for the parent")
half("receive", lambda: ours.receive(timeout=5))
theirs.close()
assert ours.receive(timeout=5) is None
"""))  # fmt: skip
