"""What a run on shares goes on from: which run it was, and what each role knows.  Knows files; no protocol.

    keep/checkpoint-n.npz           a simulation after n pulls: all owners
    keep/run.json                   of a launch: which run this is, and no role reads it
    keep/coin.key, seeds.json       of a launch with a dealer: its coins and the owners' seeds, for the reference
    keep/party-p/checkpoint-n.npz   a computing party: what it counted, for it holds nothing between two steps
    keep/host-h/checkpoint-n.npz    a host: its owners' pulls, rewards, means, seeds and noise

A run that has reached its end leaves none of them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bandits.samba import BernoulliArms, Seeds
from mpc.errors import ConfigError

from ...run.checkpoint import Checkpoint, checkpoint_at, checkpoints, half_written
from .settings import Settings

COIN_KEY, SEEDS, RUN = "coin.key", "seeds.json", "run.json"
COINS, DEALER, MATERIAL = "coins", "a dealer beside the run", "material"
_OTHER_COINS = {
    MATERIAL: "the run has the coins of its own dealer: go on without --material, or give another --out",
    DEALER: "the run has the coins of material that was dealt before: go on with --material, or give another --out",
}
"""What is said to a run that would go on with these coins, and began with the others."""


def facts_of(arms: BernoulliArms, settings: Settings, parties: int, seed: int) -> dict[str, Any]:
    """Which run it is; the means are told apart by a hash."""
    means = hashlib.blake2b(arms.means.tobytes(), digest_size=16).hexdigest()
    return {**settings.as_json(), "parties": parties, "seed": seed, "means": means}


def check(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """ConfigError where what was kept belongs to another run."""
    for name, value in wanted.items():
        have = kept.get(name)
        if have != value and name == COINS:
            raise ConfigError(_OTHER_COINS[value])
        if have != value:
            apart = "other means" if name == "means" else f"{name} = {have}, this one has {value}"
            raise ConfigError(
                f"the checkpoint is of a run with {apart}: give the arguments of that run, or another --out"
            )


def latest_in(folder: Path) -> Checkpoint:
    """The last of a simulation."""
    if not (found := checkpoints(folder)):
        if (folder / RUN).exists():
            raise ConfigError(f"the run in {folder} is one of processes: go on with 'masked launch samba --resume'")
        raise missing(folder)
    return Checkpoint.load(found[-1])


def latest_of_all(homes: list[Path]) -> int:
    """After how many pulls all roles have kept something; 0 if there is none."""
    each = [{int(path.stem.split("-")[1]) for path in checkpoints(home)} for home in homes]
    return max(set.intersection(*each), default=0)


def kept_anything(homes: list[Path]) -> bool:
    """Whether some role has played and kept it; what a host begins with was kept before a pull."""
    return any(path > checkpoint_at(home, 0) for home in homes for path in checkpoints(home))


def begin(folder: Path, facts: Mapping[str, Any], replay: tuple[bytes, Seeds] | None) -> None:
    """Make the folder of a launch ready.  replay: coin key and seeds, where the coins are a dealer's beside it."""
    forget(folder)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    _write_private(folder / RUN, json.dumps(facts).encode())
    if replay is not None:
        coin_key, seeds = replay
        _write_private(folder / COIN_KEY, coin_key)
        _write_private(folder / SEEDS, json.dumps([seed.hex() for seed in seeds]).encode())


def read_run(folder: Path) -> dict[str, Any]:
    """Which run a launch kept."""
    if checkpoints(folder):
        raise ConfigError(f"the run in {folder} is one in this process: go on with 'masked run samba --resume'")
    facts: dict[str, Any] = _read(folder / RUN, folder)
    return facts


def read_seeds(folder: Path) -> Seeds:
    """The owners' seeds of a launch."""
    return Seeds(*(bytes.fromhex(seed) for seed in _read(folder / SEEDS, folder)))


def read_coins(folder: Path) -> bytes:
    """The coin key of a launch's dealer."""
    return (folder / COIN_KEY).read_bytes()


def forget(folder: Path) -> None:
    """Delete all that a run kept."""
    homes = [folder, *folder.glob("party-*"), *folder.glob("host-*")]
    kept = [path for home in homes for path in (*checkpoints(home), *half_written(home))]
    for old in [*kept, folder / COIN_KEY, folder / SEEDS, folder / RUN]:
        old.unlink(missing_ok=True)
    for empty in [*folder.glob("party-*"), *folder.glob("host-*"), folder]:
        with suppress(OSError):  # it holds something else, or is not there
            empty.rmdir()


def missing(folder: Path) -> ConfigError:
    """There is nothing to go on from."""
    return ConfigError(
        f"there is no checkpoint in {folder}: the run reached its end, or never started; run without --resume"
    )


def part_of(arrays: Mapping[str, np.ndarray], at: int) -> dict[str, np.ndarray]:
    """The arrays of one host among those of a simulation."""
    prefix = f"{at} "
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _write_private(path: Path, content: bytes) -> None:
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def _read(path: Path, folder: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise missing(folder) from error
