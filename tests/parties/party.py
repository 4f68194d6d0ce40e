"""A party or client as a process: runs named programs one after the other and prints how each ended, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from mpc.errors import MaskedError
from mpc.launch import join, party_main, place
from mpc.net.transport import Transport

from .programs import PROGRAMS, seeded


def transports(count: int) -> Iterator[Transport]:
    """The transport of the launcher; of gloo, a group of its own for each program."""
    here = place()
    assert here is not None
    if count == 1 or here.transport != "gloo":
        yield join()
        return
    from mpc.net.gloo import Gloo

    for number in range(count):
        yield Gloo(
            init_method=f"{here.rendezvous}-{number}",
            party=here.node,
            parties=here.parties,
            timeout=here.timeout,
            starting=here.starting,
        )


def _say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def main() -> None:
    names = sys.argv[1:]
    failed: MaskedError | None = None
    for name, transport in zip(names, transports(len(names)), strict=True):
        try:
            with seeded(transport) as session:
                value = PROGRAMS[name](session)
            _say(program=name, value=value)
        except MaskedError as error:
            failed = error
            _say(program=name, error=type(error).__name__, text=str(error), peer=getattr(error, "peer", None))
    if failed is not None and len(names) == 1:
        raise failed


if __name__ == "__main__":
    party_main(main)
