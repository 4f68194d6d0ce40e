"""Where a run's material comes from: a dealer process beside it, or files.  Knows sources; no protocol."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mpc.errors import ConfigError
from mpc.launch import NOTE
from mpc.net.channel import adopt, await_parties, call_dealer, listen
from offline import Plan, Store, StoreSource, StreamSource, serve

from ..ppcb.witness import WitnessDealer

_DEALER = "MASKED_DEALER"


class _Where(NamedTuple):
    """How a party finds the dealer; travels as JSON in its environment."""

    address: tuple[str, int]
    token: str
    plan: str

    def __repr__(self) -> str:
        return f"_Where(address={self.address}, token hidden)"


@contextmanager
def dealer_beside(plan: Plan, steps: int, scratch: Path, *, witness: Path | None = None) -> Iterator[dict[str, str]]:
    """A dealer in a process of its own; gives the environment by which parties find it.

    witness: where it writes the exploration coins at its end, for an experiment that replays them in the clear.
    """
    path = scratch / "plan.json"
    plan.save(path)
    listener = listen()
    token = secrets.token_hex(16)
    environment = {_DEALER: json.dumps(_Where(listener.getsockname(), token, str(path)))}
    command = [sys.executable, "-m", "protocols", "dealer", str(path), "--steps", str(steps)]
    command += ["--witness", str(witness)] if witness is not None else []
    log = (scratch / "dealer.log").open("wb")  # a dealer that loses a party is a witness, not the cause
    process = subprocess.Popen(
        [*command, "--listener", str(listener.fileno())],
        pass_fds=[listener.fileno()],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stderr=log,
        start_new_session=True,
    )
    listener.close()
    log.close()
    try:
        yield environment
        if witness is not None:
            process.wait(30)
    except ConfigError as error:
        last = (scratch / "dealer.log").read_text().strip().splitlines()[-1:]
        if "the dealer" in str(error) and last:
            raise ConfigError(f"{error}; the dealer said: {last[0].removeprefix('error: ')}") from error
        raise
    finally:
        process.terminate()
        process.wait(5)


def serve_from_environment(plan: Plan, steps: int, listener: int, witness: Path | None) -> None:
    """The dealer process's own work."""
    where = _where()
    channels = await_parties(plan.parties, adopt(listener), bytes.fromhex(where.token))
    if witness is None:
        serve(plan, channels, blocks=steps)
        return
    dealer = WitnessDealer(plan.parties)
    serve(plan, channels, blocks=steps, dealer=dealer)
    dealer.save(witness)


def source_for(party: int, material: Path | None, session: str = "local") -> StoreSource | StreamSource:
    """A networked party's source: its own store below `material`, or the dealer the launcher started."""
    if material is not None:
        store = Store(material / f"party-{party}")
        return StoreSource(
            store, party=party, session=session, report=lambda line: print(f"{NOTE}{line}", file=sys.stderr)
        )
    if _DEALER not in os.environ:
        raise ConfigError(
            "no material: deal it with 'masked offline deal' and name it with --material DIR, or use 'masked launch', "
            "which starts a dealer"
        )
    where = _where()
    channel = call_dealer(party, where.address, bytes.fromhex(where.token))
    return StreamSource(Plan.load(Path(where.plan)), channel, party=party)


def _where() -> _Where:
    address, token, plan = json.loads(os.environ[_DEALER])
    return _Where((str(address[0]), int(address[1])), str(token), str(plan))
