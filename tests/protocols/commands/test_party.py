"""Ctrl-C at a role between machines: a wish, which is said when it is heard, and kept where another role is lost."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from mpc.errors import PeerLost
from protocols.commands.party import until_asked


class Said(list[str]):
    """Lines, and whether there are any."""

    def __init__(self) -> None:
        super().__init__()
        self.some = threading.Event()

    def __call__(self, line: str) -> None:
        self.append(line)
        self.some.set()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_who_was_asked_to_stop_says_so_and_waits_for_nobody(how: signal.Signals) -> None:
    said = Said()
    with pytest.raises(KeyboardInterrupt), until_asked(said) as asked:
        assert not asked()
        os.kill(os.getpid(), how)
        assert said.some.wait(60.0), "while the decision goes on"
        assert asked()
        raise PeerLost("party 1 is lost in round 7", peer=1)
    assert said == [
        "all are asked to stop after this decision; Ctrl-C again stops here at once",
        "party 1 is lost in round 7; this one was asked to stop, and does not wait",
    ]


def test_who_was_not_asked_waits_for_the_lost() -> None:
    said = Said()
    with pytest.raises(PeerLost, match="party 1 is lost"), until_asked(said):
        raise PeerLost("party 1 is lost in round 7", peer=1)
    assert said == []
