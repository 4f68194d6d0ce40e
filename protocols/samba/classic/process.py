"""One participant of a launched classic run, in a process of its own, with its own input and nobody else's.

    Controller   has  the seed of its permutations
    Comp         has  the seed of its coins, the key it shares with owners
    DC           has  the policy and the budget
    owner i      has  that key, the owners' seeds, the seed of its noise, its arm's mean

Inputs and outcomes are JSON in the run's folder; a participant deletes its input when it has read it.  All of them talk
to the Controller alone.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bandits.samba import BernoulliArms, SambaError, Seeds
from bandits.samba.coins import OrderCoins, PointCoins, derived
from bandits.samba.rewards import reward
from mpc.errors import ConfigError, PeerLost
from mpc.launch import Place, end_with_launcher, launch, own_command, party_main, place
from mpc.net.channel import Channel, adopt
from mpc.net.joining import call, take_calls

from ...published.drive import Play, Seconds, over_links
from ...published.sealing import fresh_key
from ...run.progress import StepLines
from .kept import OwnersKept, home_of
from .messages import COMP, CONTROLLER, CUSTOMER, Spec, owners_name
from .outcome import Outcome
from .randomness import OwnerCoins, noise_of
from .roles import Watch, comparator, controller, data_customer, owners

_FIRST = (CONTROLLER, COMP, CUSTOMER)
"""By node; after these come the owners."""

_SECONDS_TO_START = 1.0  # a process, where many start on few cores
_SECONDS_BEHIND = 0.5  # in which the Controller ends first, who knows whom all of them waited for
_NODE = re.compile(r"\bparty (\d+)\b")


def name_of(node: int) -> str:
    """The participant that a node plays."""
    return _FIRST[node] if node < len(_FIRST) else owners_name(_rows(node))


def launched(
    spec: Spec, arms: BernoulliArms, budget: int, seeds: Seeds, *, masks: bytes | None, bits: int, insecure: bool,
    start: int, watch: Watch | None, folder: Path | None, every: int, timeout: float,
) -> tuple[dict[str, Outcome], dict[str, Seconds]]:  # fmt: skip
    """Play a run in K + 3 processes: what each participant ends with, and its seconds."""

    nodes = range(len(_FIRST) + len(arms))
    with tempfile.TemporaryDirectory(prefix="masked-") as name:
        scratch = Path(name)
        write_inputs(
            scratch, spec, arms, budget, seeds, masks=fresh_key() if masks is None else masks, bits=bits,
            insecure=insecure, start=start, folder=folder, every=every,
        )  # fmt: skip
        command = own_command("protocols.samba.classic.process", name)
        try:
            launch(command, len(nodes), timeout=timeout, output=StepLines.heard(watch))
        except ConfigError as error:
            raise ConfigError(_NODE.sub(lambda found: name_of(int(found[1])), str(error))) from error
        read = {name_of(node): json.loads(_outcome_path(scratch, node).read_text()) for node in nodes}
    outcomes = {name: Outcome.from_json(given["outcome"]) for name, given in read.items()}
    return outcomes, {name: given["seconds"] for name, given in read.items()}


def write_inputs(
    scratch: Path, spec: Spec, arms: BernoulliArms, budget: int, seeds: Seeds, *, masks: bytes, bits: int,
    insecure: bool, start: int, folder: Path | None, every: int,
) -> None:  # fmt: skip
    """To each its own."""
    key, count = fresh_key().hex(), len(arms)
    owner = {
        "key": key, "common": seeds.common.hex(), "masks": masks.hex(), "rewards": seeds.rewards.hex(),
        "spec": asdict(spec), "budget": budget, "folder": None if folder is None else str(folder.resolve()),
        "every": every,
    }  # fmt: skip
    given: list[dict[str, Any]] = [
        {"seed": seeds.order.hex(), "start": start},
        {"seed": seeds.point.hex(), "key": key},
        {"spec": asdict(spec), "budget": budget, "insecure": insecure},
        *(
            {**owner, "mean": mean, "noise": derived(seeds.noise, f"noise {i}").hex()}
            for i, mean in enumerate(arms.means.tolist())
        ),
    ]
    for node, own in enumerate(given):
        path = input_path(scratch, node)
        path.touch(mode=0o600)
        path.write_text(json.dumps({"arms": count, "bits": bits, **own}))


def _play_of(node: int, given: dict[str, Any], watch: Watch) -> Play[Outcome]:
    arms, bits = given["arms"], given["bits"]
    if node == 0:
        hosts = [_rows(other) for other in range(len(_FIRST), len(_FIRST) + arms)]
        return controller(hosts, OrderCoins(_seed(given, "seed"), arms), bits, start=given["start"], watch=watch)
    if node == 1:
        return comparator(PointCoins(_seed(given, "seed")), _seed(given, "key"), bits)
    if node == 2:
        return data_customer(Spec(**given["spec"]), given["budget"], bits, insecure=given["insecure"])
    rows = _rows(node)
    coins = OwnerCoins(_seed(given, "common"), _seed(given, "masks"), arms)
    seed, mean, keeper = _seed(given, "rewards"), given["mean"], None
    if given["folder"] is not None:
        home = home_of(Path(given["folder"]), rows)
        keeper = OwnersKept(home, Spec(**given["spec"]), given["budget"], given["every"])
    noise = [noise_of(_seed(given, "noise"))]
    return owners(
        rows, arms, coins, _seed(given, "key"), noise, lambda arm, t: reward(seed, mean, arm, t), bits, keeper=keeper
    )


def _rows(node: int) -> range:
    owner = node - len(_FIRST)
    return range(owner, owner + 1)


def _seed(given: dict[str, Any], name: str) -> bytes:
    return bytes.fromhex(given[name])


def input_path(scratch: Path, node: int) -> Path:
    """Where a participant finds its input."""
    return scratch / f"{node}.in.json"


def _outcome_path(scratch: Path, node: int) -> Path:
    return scratch / f"{node}.out.json"


def _links(here: Place) -> dict[str, Channel]:
    """The Controller answers, all others call it."""
    deadline = time.monotonic() + here.timeout + _SECONDS_TO_START * here.parties
    token = bytes.fromhex(here.token)
    try:
        if here.node:
            host, port = here.addresses[0]
            return {CONTROLLER: Channel(call(here.node, 0, (host, port), token, deadline), CONTROLLER)}
        calls = take_calls(0, adopt(here.listener), token, range(1, here.parties), deadline)
    except PeerLost as error:
        raise PeerLost(
            f"{name_of(error.peer)} did not join {name_of(here.node)}: is it started?", peer=error.peer
        ) from error
    return {name_of(node): Channel(sock, name_of(node)) for node, sock in calls.items()}


def main() -> None:
    """Play the participant that this process's place says."""
    here, scratch = place(), Path(sys.argv[1])
    if here is None:
        raise ConfigError("a participant is started by 'masked launch samba'")
    end_with_launcher(here)
    path = input_path(scratch, here.node)
    given = json.loads(path.read_text())
    path.unlink()
    try:
        play = _play_of(here.node, given, StepLines())
        links = _links(here)
        try:
            # whoever waits for the Controller gives it time to name the one that it waits for
            patience = here.timeout if here.node == 0 else 2.0 * here.timeout + 1.0
            starting = patience + here.timeout + _SECONDS_TO_START * here.parties
            done, seconds = over_links(play, links, timeout=patience, first=starting)
        except PeerLost as error:  # a witness, not the cause: the launcher looks for these words
            if here.node:
                time.sleep(_SECONDS_BEHIND)
            raise PeerLost(f"{error} (reported by {name_of(here.node)})", peer=error.peer) from error
        finally:
            for link in links.values():
                link.close()
    except SambaError as error:
        raise ConfigError(str(error)) from error
    _outcome_path(scratch, here.node).write_text(json.dumps({"outcome": done.as_json(), "seconds": seconds}))


if __name__ == "__main__":
    party_main(main)
