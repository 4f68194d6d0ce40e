"""The library's bandit on disk: a checkpoint for each party with its own shares, and one with what the puller knows.

    folder/party-p/checkpoint-n.npz     party p's shares, and what is public
    folder/puller/checkpoint-n.npz      the arms of decisions that are not paid yet

n counts what was done, so that the files of one save have one number.  A folder belongs to one bandit.

Where all parties are in one process, the shares that are written are made afresh: masks of a bandit with a seed follow
from it, and a party that guessed it would else know the others' rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError
from mpc.ledger import Entry
from mpc.meter import Cost
from mpc.prg import Prg, fresh_key
from mpc.session import Session

from ...run.checkpoint import Checkpoint, checkpoint_at, checkpoints
from ..settings import Settings
from .decisions import Holdings, OpenDecision
from .place import Hosting

_KIND = "library bandit"
_PULLER = "puller"


@dataclass(frozen=True)
class Kept:
    """What was read back."""

    name: str
    parties: int
    settings: Settings
    held: Holdings
    ledger: tuple[Entry, ...]
    cost: Cost

    def resume(self, hosting: Hosting, session: Session | None) -> None:
        """Ledger and costs go on; parties of a network that loaded different saves find out in the next round."""
        for entry in self.ledger:
            hosting.ledger.record(entry.role, entry.what, entry.count, entry.why)
        hosting.meter.add(self.cost)
        if session is not None and session.trail is not None:
            session.trail.note("library", "load", self.name, self.held.calls)


def save_parts(folder: Path, held: Holdings, settings: Settings, hosting: Hosting, name: str) -> None:
    """Write all files of this process.

    In one process a save counts as a call: fresh shares of one state in files of one number would not fit together if
    the process died between them.
    """
    held.calls += hosting.whole
    arrays = _arrays(held, settings.dim)
    if hosting.whole:
        arrays = {key: _shared_afresh(rows) for key, rows in arrays.items()}
    homes = {
        folder / f"party-{party}": {key: rows[at : at + 1] for key, rows in arrays.items()}
        for at, party in enumerate(hosting.hosted)
    }
    _check_homes(homes, held.calls, name, whole=hosting.whole)
    public: dict[str, Any] = {
        "kind": _KIND, "name": name, "parties": hosting.parties, "settings": settings.as_json(),
        "arms": list(held.arms), "next_arm": held.next_arm, "next_decision": held.next_decision,
        "learned": held.learned, "unrefreshed": held.unrefreshed, "most_unpaid": held.most_unpaid,
        "open": [[number, list(decision.arms)] for number, decision in held.open.items()],
        "ledger": [asdict(entry) for entry in hosting.ledger], "cost": asdict(hosting.meter.total),
    }  # fmt: skip
    parts = dict(homes)
    if hosting.whole:
        parts[folder / _PULLER] = {"pulled": np.array([each.pulled for each in held.open.values()], np.int64)}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for home, own in parts.items():
            Checkpoint(held.calls, {**public, "role": home.name}, own).save(home)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {error.strerror}: save into a folder of your own") from error


def load_parts(folder: Path, hosted: Sequence[int] | None) -> Kept:
    """The last save of which the files of all roles are here: of one party, or of all and the puller."""
    if hosted is None:
        parties = len(list(folder.glob("party-*")))
        roles = [f"party-{party}" for party in range(parties)]
        wanted = [*roles, _PULLER] if roles else []
    else:
        wanted = roles = [f"party-{party}" for party in hosted]
    numbers = [{int(path.stem.split("-")[1]) for path in checkpoints(folder / role)} for role in wanted]
    common = set.intersection(*numbers) if numbers else set()
    if not common:
        raise ConfigError(f"{folder} holds no bandit with a file for every party: load a folder that `save` wrote")
    done = max(common)
    read = {role: Checkpoint.load(checkpoint_at(folder / role, done)) for role in wanted}
    first = read[roles[0]]
    for role, one in read.items():
        if one.facts.get("kind") != _KIND or one.facts.get("role") != role or _public(one) != _public(first):
            raise ConfigError(f"{checkpoint_at(folder / role, done)} is not of this bandit and role: put its own back")
    try:
        return _kept(first, [read[role] for role in roles], read.get(_PULLER), hosted is None)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ConfigError(f"the files in {folder} do not fit together: load another save") from error


def _check_homes(homes: Mapping[Path, Mapping[str, np.ndarray]], calls: int, name: str, *, whole: bool) -> None:
    """Refuse folders of another bandit or of a later state; where all parties are here, drop half a save."""
    kept = {home: {int(path.stem.split("-")[1]): path for path in checkpoints(home)} for home in homes}
    complete = set.intersection(*(set(paths) for paths in kept.values()))
    for home, paths in kept.items():
        for number, path in paths.items():
            older = Checkpoint.load(path)
            same = not whole and number == calls and _same(older.arrays, homes[home])
            later = number >= calls and not same and (number in complete or not whole)
            if older.facts.get("name") != name or later:
                raise ConfigError(
                    f"{home} holds another bandit, or a later state of this one: save into another folder"
                )
    for paths in kept.values() if whole else ():
        for number, path in paths.items():
            if number >= calls:
                path.unlink()


def _shared_afresh(rows: np.ndarray) -> np.ndarray:
    """The same values as rows of fresh noise, the last of which makes the sum right."""
    noise = Prg(fresh_key()).words((rows.shape[0] - 1, *rows.shape[1:]))
    last = rows.sum(axis=0, dtype=np.uint64) - noise.sum(axis=0, dtype=np.uint64)
    return np.concatenate([noise, last[None]])


def _arrays(held: Holdings, dim: int) -> dict[str, np.ndarray]:
    """Shares of the parties here; one-hots of all open decisions behind each other, since each has its own width."""
    hosted, decisions = len(held.table), held.open.values()
    x = [decision.x.reshape(hosted, 1, dim) for decision in decisions]
    o = [decision.o.reshape(hosted, -1) for decision in decisions]
    return {
        **held.words,
        "x": np.concatenate([np.zeros((hosted, 0, dim), np.uint64), *x], axis=1),
        "o": np.concatenate([np.zeros((hosted, 0), np.uint64), *o], axis=1),
    }


def _kept(first: Checkpoint, parts: list[Checkpoint], puller: Checkpoint | None, whole: bool) -> Kept:
    facts = first.facts
    settings, arms = Settings.from_json(facts["settings"]), tuple(facts["arms"])
    if whole and len(parts) != facts["parties"]:
        raise ConfigError(
            f"the bandit has {facts['parties']} parties, files of {len(parts)} are here: bring all of them"
        )
    shape = len(parts), 1, len(arms), settings.dim + 1, settings.dim
    words = {key: np.concatenate([part.arrays[key] for part in parts]) for key in parts[0].arrays}
    regressions = [words["table"], words["sums"]] if settings.refresh else [words["table"]]
    if any(each.shape != shape or each.dtype != np.uint64 for each in regressions):
        raise ValueError("regressions of another shape")
    x, o = words["x"], words["o"]
    opened, at = {}, 0
    for index, (number, then) in enumerate(facts["open"]):
        own = o[:, at : at + len(then)].reshape(len(parts), 1, 1, len(then))
        pulled = None if puller is None else int(puller.arrays["pulled"][index])
        opened[number] = OpenDecision(tuple(then), x[:, index].reshape(len(parts), 1, 1, settings.dim), own, pulled)
        at += len(then)
    held = Holdings(
        words["table"], arms, facts["next_arm"], facts["most_unpaid"], words["sums"] if settings.refresh else None,
        facts["unrefreshed"], facts["next_decision"], facts["learned"], first.done, opened,
    )  # fmt: skip
    ledger = tuple(Entry(**entry) for entry in facts["ledger"])
    return Kept(facts["name"], facts["parties"], settings, held, ledger, Cost(**facts["cost"]))


def _same(one: Mapping[str, np.ndarray], other: Mapping[str, np.ndarray]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in other)


def _public(checkpoint: Checkpoint) -> dict[str, Any]:
    return {key: value for key, value in checkpoint.facts.items() if key != "role"}
