"""The library's bandit on disk: a checkpoint for each party with its own shares, and one with what the puller knows.

    folder/party-p/checkpoint-n.npz     party p's shares, and what is public
    folder/party-p/journal              what was told, also after the save; begun before the save, so it is always there
    folder/puller/checkpoint-n.npz      the arms of decisions that are not paid yet

n counts what was done.  The files of one save have one number and one stamp, drawn for it; only a save that every home
has counts, and it stays until a later one is whole everywhere.  A folder belongs to one bandit.

Where all parties are in one process, the shares that are written are made afresh: masks of a bandit with a seed follow
from it, and a party that guessed it would else know the others' rows.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError
from mpc.files import flush_folder, make_place
from mpc.meter import Cost
from mpc.prg import Prg, fresh_key
from mpc.session import Session

from ...run.checkpoint import Checkpoint, checkpoint_at, checkpoints
from ...run.standing import Save, newest
from ...run.tagged_file import prepare
from ..settings import Settings
from .decisions import Holdings, OpenDecision
from .journal import Journal, Told, greatest
from .names import Names
from .place import Hosting
from .rounds import said_by_all

_KIND = "library bandit"
_PULLER = "puller"


@dataclass(frozen=True)
class Kept:
    """What was read back.  told: whatever any party knows to be told, after this save too."""

    parties: int
    settings: Settings
    held: Holdings
    told: Told
    cost: Cost

    def resume(self, hosting: Hosting) -> None:
        """Ledger and costs go on."""
        for entry in self.told.ledger:
            hosting.ledger.record(entry.role, entry.what, entry.count, entry.why)
        hosting.meter.add(self.cost)


def save_parts(
    folder: Path, held: Holdings, settings: Settings, hosting: Hosting, session: Session, journals: dict[Path, Journal]
) -> None:
    """Write all files of this process, in a call of its own; the folder's journal is added to `journals`."""
    names = (held.names if hosting.whole else replace(held.names, features=None)).as_json()
    arrays, told = _arrays(held, settings.dim), Told(held.next_decision, tuple(hosting.ledger))
    if hosting.whole:
        arrays = {key: _shared_afresh(rows) for key, rows in arrays.items()}
    parts = {
        folder / f"party-{party}": {key: rows[at : at + 1] for key, rows in arrays.items()}
        for at, party in enumerate(hosting.hosted)
    }
    if hosting.whole:
        parts[folder / _PULLER] = {"pulled": np.array([each.pulled for each in held.open.values()], np.int64)}
    try:
        make_place(folder)
        homes = {home: _opened(home) for home in parts}
        said = _said(session, homes)
        stamp = hashlib.blake2b("".join(each["word"] for each in said).encode(), digest_size=8).hexdigest()
        held.name = held.name or stamp
        journal = journals.get(folder.resolve()) or Journal(next(iter(homes)))
        known = greatest([told, *(Told.read(each["told"]) for each in said)])
        last, _ = _newest(said) or (-1, "")
        _make_room(homes, held, last, later=journal.changed or known != told)
        journals[folder.resolve()] = journal
        journal.begin(told, held.calls)
        public: dict[str, Any] = {
            "kind": _KIND, "name": held.name, "stamp": stamp, "parties": hosting.parties,
            "settings": settings.as_json(), "arms": list(held.arms), "next_arm": held.next_arm,
            "learned": held.learned, "unrefreshed": held.unrefreshed, "most_unpaid": held.most_unpaid,
            "open": [[number, list(decision.arms)] for number, decision in held.open.items()],
            "names": names,
            **asdict(told), "cost": asdict(hosting.meter.total),
        }  # fmt: skip
        for home, own in parts.items():
            Checkpoint(held.calls, {**public, "role": home.name}, own).save(home)
    except OSError as error:
        raise ConfigError(f"{error.filename or folder}: {error.strerror}: save into a folder of your own") from error


def load_parts(folder: Path, session: Session | None) -> tuple[Kept, dict[Path, Journal]]:
    """The last save of which every home has its file: all are here, or each party of a network says what it has."""
    hosted = range(len(list(folder.glob("party-*")))) if session is None else session.hosted
    roles = [f"party-{party}" for party in hosted]
    homes = {folder / role: _saves(folder / role) for role in (*roles, *([] if session else [_PULLER]))}
    journal = Journal(next(iter(homes)))
    said = _said(session, homes)
    if not roles or not (common := _newest(said)):
        stand = ", ".join(f"{each['role']} has {_listed(each['saves'])}" for each in said)
        raise ConfigError(
            f"{folder} holds no bandit with a file for every party ({stand}): load a folder that `save` wrote, or put "
            "back what is missing"
        )
    done, _ = common
    read = {home.name: saves[done] for home, saves in homes.items()}
    first = read[roles[0]]
    for role, one in read.items():
        if one.facts.get("kind") != _KIND or one.facts.get("role") != role or _public(one) != _public(first):
            raise ConfigError(f"{checkpoint_at(folder / role, done)} is not of this bandit and role: put its own back")
    try:
        saved, told = Told.read(first.facts), greatest(Told.read(each["told"]) for each in said)
        if max(each["noted"] for each in said) < done or greatest([told, saved]) != told:
            raise ConfigError(
                f"the journal below {folder} is gone, or of an earlier save, or says less than this one, so what was "
                "told since then would be forgotten: put back that of this save"
            )
        kept = _kept(first, [read[role] for role in roles], read.get(_PULLER), told)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ConfigError(f"the files in {folder} do not fit together: load another save") from error
    return kept, {folder.resolve(): journal}


def _opened(home: Path) -> dict[int, Checkpoint]:
    """The saves of a home that is there from now on; their names are on disk before anybody counts on them."""
    prepare(home)
    flush_folder(home)
    return _saves(home)


def _saves(home: Path) -> dict[int, Checkpoint]:
    return {(kept := Checkpoint.load(path)).done: kept for path in checkpoints(home)}


def _said(session: Session | None, homes: Mapping[Path, Mapping[int, Checkpoint]]) -> list[dict[str, Any]]:
    """What each home has: of those here, or of every party of a network."""
    own = [
        {
            "role": home.name, "saves": [[done, kept.facts.get("stamp")] for done, kept in saves.items()],
            "told": asdict((journal := Journal(home)).told()), "noted": journal.save, "word": secrets.token_hex(8),
        }
        for home, saves in homes.items()
    ]  # fmt: skip
    if session is None or len(session.hosted) == session.parties:
        return own
    return [json.loads(text) for text in session.run(said_by_all(json.dumps(own[0]).encode()))]


def _newest(said: Sequence[Mapping[str, Any]]) -> Save | None:
    """Number and stamp of the last save that every home has."""
    return newest([(done, stamp) for done, stamp in each["saves"]] for each in said)


def _make_room(homes: Mapping[Path, Mapping[int, Checkpoint]], held: Holdings, last: int, *, later: bool) -> None:
    """Drop all but the last save that every home has; without one, those that would seem later than this one is.

    Refuse homes of another bandit or of a later state.
    """
    for home, saves in homes.items():
        if later or last >= held.calls or any(kept.facts.get("name") != held.name for kept in saves.values()):
            raise ConfigError(f"{home} holds another bandit, or a later state of this one: save into another folder")
    for home, saves in homes.items():
        for done in saves:
            if done != last and (last >= 0 or done >= held.calls):
                checkpoint_at(home, done).unlink()


def _listed(saves: Sequence[Sequence[Any]]) -> str:
    return " and ".join(f"save {done} ({stamp})" for done, stamp in saves) or "none"


def _shared_afresh(rows: np.ndarray) -> np.ndarray:
    """The same values as rows of fresh noise, the last of which makes the sum right."""
    noise = Prg(fresh_key()).words((rows.shape[0] - 1, *rows.shape[1:]))
    last = rows.sum(axis=0, dtype=np.uint64) - noise.sum(axis=0, dtype=np.uint64)
    return np.concatenate([noise, last[None]])


def _arrays(held: Holdings, dim: int) -> dict[str, np.ndarray]:
    """Shares of the parties here; one-hots of all open decisions behind each other, since each has its own width."""
    hosted, decisions = len(held.words["table"]), held.open.values()
    x = [decision.x.reshape(hosted, 1, dim) for decision in decisions]
    o = [decision.o.reshape(hosted, -1) for decision in decisions]
    return {
        **held.words,
        "x": np.concatenate([np.zeros((hosted, 0, dim), np.uint64), *x], axis=1),
        "o": np.concatenate([np.zeros((hosted, 0), np.uint64), *o], axis=1),
    }


def _kept(first: Checkpoint, parts: list[Checkpoint], puller: Checkpoint | None, told: Told) -> Kept:
    facts = first.facts
    settings, arms = Settings.from_json(facts["settings"]), tuple(facts["arms"])
    if puller is not None and len(parts) != facts["parties"]:
        raise ConfigError(
            f"the bandit has {facts['parties']} parties, files of {len(parts)} are here: bring all of them"
        )
    shape = len(parts), 1, len(arms), settings.dim + 1, settings.dim
    words = {key: np.concatenate([part.arrays[key] for part in parts]) for key in parts[0].arrays}
    regressions = {name: words[name] for name in ("table", *(["sums"] if settings.refresh else []))}
    if any(each.shape != shape or each.dtype != np.uint64 for each in regressions.values()):
        raise ValueError("regressions of another shape")
    x, o = words["x"], words["o"]
    opened, at = {}, 0
    for index, (number, then) in enumerate(facts["open"]):
        own = o[:, at : at + len(then)].reshape(len(parts), 1, 1, len(then))
        pulled = None if puller is None else int(puller.arrays["pulled"][index])
        opened[number] = OpenDecision(tuple(then), x[:, index].reshape(len(parts), 1, 1, settings.dim), own, pulled)
        at += len(then)
    held = Holdings(
        regressions, arms, facts["next_arm"], facts["most_unpaid"], facts["unrefreshed"], told.next_decision,
        facts["learned"], first.done, facts["name"], opened, Names.from_json(facts["names"]),
    )  # fmt: skip
    return Kept(facts["parties"], settings, held, told, Cost(**facts["cost"]))


def _public(checkpoint: Checkpoint) -> dict[str, Any]:
    return {key: value for key, value in checkpoint.facts.items() if key != "role"}
