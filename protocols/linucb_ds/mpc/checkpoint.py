"""What a run on shares goes on from: which run it was, and the shares of one process.  Knows files; no protocol.

    keep/run.json                      which run this is; a launch alone, and no party reads it
    keep/coin.key                      the dealer's coins; a launch alone
    keep/party-p/checkpoint-n.npz      party p's shares after n pulls, and what all parties know
    keep/checkpoint-n.npz              of a simulation: all shares, and the pulled arms

A run that has reached its end leaves none of them: nobody needs these shares any more.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bandits.fixed_point import rounded
from bandits.linear_problem import LinearProblem
from mpc.errors import ConfigError

from ...run.checkpoint import Checkpoint, checkpoints, half_written
from .settings import Settings

COIN_KEY, RUN = "coin.key", "run.json"


def facts_of(settings: Settings, parties: int, seed: int) -> dict[str, Any]:
    """Which run it is, as far as parties may know: no theta."""
    return {**settings.as_json(), "parties": parties, "seed": seed}


def facts_with_theta(problem: LinearProblem, settings: Settings, parties: int, seed: int) -> dict[str, Any]:
    """The same for whoever prepares a run, and has theta; it is told apart by a hash."""
    theta = rounded(problem, settings.scales).theta
    return {**facts_of(settings, parties, seed), "theta": hashlib.blake2b(theta.tobytes(), digest_size=16).hexdigest()}


def check(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """ConfigError where what was kept belongs to another run."""
    have, want = _flat(kept), _flat(wanted)
    for name, value in want.items():
        if have.get(name) == value:
            continue
        short = isinstance(value, (int, float, str)) and name != "theta"
        apart = f"{name} = {have.get(name)}, this one has {value}" if short else f"other {name}"
        raise ConfigError(f"the checkpoint is of a run with {apart}: give the arguments of that run, or another --out")


def _flat(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What arguments name comes first, and what follows from it, such as rounded arms, last."""
    last = ("theta", "eigenvalues", "scales", "arms")
    flat = {**facts, "noise-kind": facts.get("noise"), **facts.get("constants", {})}
    flat.pop("constants", None)
    return {name: flat[name] for name in sorted(flat, key=lambda name: (name in last, name == "scales"))}


def latest_in(folder: Path) -> Checkpoint:
    """The last of a simulation."""
    if not (found := checkpoints(folder)):
        if any(folder.glob("party-*")):
            raise ConfigError(f"the run in {folder} is one of processes: go on with 'masked launch ... --resume'")
        raise missing(folder)
    return Checkpoint.load(found[-1])


def latest_of_all(folder: Path, parties: int) -> int:
    """After how many pulls all parties have kept something; 0 if there is none."""
    each = [
        {int(path.stem.split("-")[1]) for path in checkpoints(folder / f"party-{party}")} for party in range(parties)
    ]  # fmt: skip
    return max(set.intersection(*each), default=0)


def private_file(path: Path, content: bytes) -> None:
    """A new file that its owner alone can read."""
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


def forget(folder: Path) -> None:
    """Delete all that a run kept."""
    homes = [folder, *folder.glob("party-*")]
    kept = [path for home in homes for path in (*checkpoints(home), *half_written(home))]
    for old in [*kept, folder / COIN_KEY, folder / RUN]:
        old.unlink(missing_ok=True)
    for empty in [*folder.glob("party-*"), folder]:
        with suppress(OSError):  # it holds something else, or is not there
            empty.rmdir()


def missing(folder: Path) -> ConfigError:
    """There is nothing to go on from."""
    return ConfigError(
        f"there is no checkpoint in {folder}: the run reached its end, or never started; run without --resume"
    )


def read_run(folder: Path) -> dict[str, Any]:
    """run.json."""
    try:
        facts: dict[str, Any] = json.loads((folder / RUN).read_text())
    except (OSError, ValueError) as error:
        raise missing(folder) from error
    return facts
