"""Parties of CrypTen, a process each in the Python that has it: how they are started, what they said, what they saw.

A module plays such a party by `crypten_party`; whoever wants it played calls `play_on_crypten` with its name.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from mpc.interop.crypten import crypten_python, load
from mpc.interop.crypten import join as join_crypten
from mpc.launch import join, launch, own_command, party_main
from mpc.ledger import EVERYONE, Ledger
from mpc.scratch import scratch_folder

from .launch import write_private
from .program import Arrays, home_of, private_path
from .role_process import own_inputs

_ROOT = Path(__file__).resolve().parents[2]
_GIVEN = "given.json"
_LOADED = ("mpc.net.gloo", "mpc.interop.crypten:load")  # takes seconds: once for all parties
_TIMEOUT = 300.0  # seconds of a silent peer, which may still import CrypTen on a busy machine
Said = Mapping[str, Any]
Play = Callable[[ModuleType, Said, Arrays], Iterable[Said]]
"""A party's part: CrypTen, what all parties know, what this one alone has; gives what it says, as it comes."""


def play_on_crypten(
    module: str, parties: int, given: Said, *, private: Mapping[int, Arrays] | None = None, limit: float | None = None,
    heard: Callable[[Said], None] = lambda _: None, inside: Callable[[list[str]], list[str]] = list,
    device: str | None = None,
) -> list[list[Said]]:  # fmt: skip
    """All that each party said, in order.

    inside: makes of a command one that runs where the parties are, who talk over that device.
    heard: is told what party 0 says, as it comes.  limit: seconds in which all have to be done.
    """
    said: dict[str, list[Said]] = {f"party {party}": [] for party in range(parties)}

    def hear(name: str, line: str) -> None:
        if line.startswith("{"):
            said[name].append(json.loads(line))
            if name == "party 0":
                heard(said[name][-1])

    python, paths = crypten_python(), [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {"PYTHONPATH": os.pathsep.join(paths), **({"GLOO_SOCKET_IFNAME": device} if device else {})}
    with scratch_folder() as folder:
        (folder / _GIVEN).write_text(json.dumps(given))
        for party, own in (private or {}).items():
            write_private(private_path(folder, home_of(party)), own)
        launch(
            inside(own_command(module, str(folder), python=python)), parties, transport="gloo", output=hear,
            limit=limit, timeout=_TIMEOUT, environment=environment, load=_LOADED,
        )  # fmt: skip
    return list(said.values())


def crypten_party(play: Play) -> None:
    """The life of one party's process."""

    def main() -> None:
        load()  # where it was not yet, it takes seconds, in which nobody waits for anybody
        folder, transport = Path(sys.argv[1]), join()
        crypten = join_crypten(transport)
        own = own_inputs(folder, home_of(transport.hosted[0]))
        for said in play(crypten, json.loads((folder / _GIVEN).read_text()), own):
            print(json.dumps(said), flush=True)
        transport.close()

    party_main(main)


class Watched:
    """What CrypTen's parties open to one another, and its own count of rounds and bytes, while the block lasts.

    bytes: that a party sends and receives.  opened: words by who sees them; all are masked, but for what a program asks
    to have in the clear.
    """

    def __init__(self, crypten: ModuleType) -> None:
        self.opened: dict[str, int] = {}
        self._among = crypten.communicator.get()
        self._verbose = crypten.cfg.temp_override({"communicator.verbose": True})

    def __enter__(self) -> Watched:
        self._verbose.__enter__()
        self._among.reset_communication_stats()
        for name in ("all_reduce", "reduce", "gather"):
            setattr(self._among, name, self._counted(getattr(self._among, name), alone=name != "all_reduce"))
        return self

    def __exit__(self, *how: Any) -> None:
        for name in ("all_reduce", "reduce", "gather"):
            delattr(self._among, name)
        self._verbose.__exit__(*how)

    @property
    def rounds(self) -> int:
        """Collective calls, as CrypTen counts them."""
        return int(self._among.get_communication_stats()["rounds"])

    @property
    def bytes(self) -> int:
        return int(self._among.get_communication_stats()["bytes"])

    def _counted(self, send: Callable[..., Any], *, alone: bool) -> Callable[..., Any]:
        def counted(tensors: Any, *given: Any, **named: Any) -> Any:
            words = sum(each.nelement() for each in (tensors if isinstance(tensors, list) else [tensors]))
            to = f"party {given[0] if given else named['dst']}" if alone else EVERYONE
            self.opened[to] = self.opened.get(to, 0) + words
            return send(tensors, *given, **named)

        return counted


def masked_entries(ledger: Ledger, opened: Mapping[str, int]) -> None:
    """What CrypTen opens of its own accord: `opened` without what a program asked to have in the clear."""
    for to, words in sorted(opened.items()):
        if words:
            ledger.record(
                to, "masked word", words, "products, comparisons and truncations, masked by a Mersenne twister"
            )
    if total := sum(opened.values()):
        ledger.record("party 0", "mask", total, "CrypTen's default provider has it deal them: it could unmask them all")
