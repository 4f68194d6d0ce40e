"""A bandit is killed inside `save`, loaded, worked with, and killed again: it loads, and nothing told is forgotten.

A chain begins with a bandit that was saved whole.  Then a process loads it, predicts, learns, and dies by SIGKILL at
one of the places inside `save`, up to five times in a row; in the end one saves whole.  The places are before a file
is opened, renamed or removed, before and after each flush, and, as where the power fails, in a flush that came to
nothing: the file is cut at a random byte.  All places come in turn, in an order that the seed picks.  After each kill

  - the bandit loads, with the regressions and unpaid decisions of the save before, or of this one where it was whole;
  - its ledger counts every arm that was told since the chain began, and no decision has the number of another.

The table goes to stdout, everything to --json; exit code 1 if anything was wrong.

examples:
  scripts/save_kills                                            200 kills: a minute or two
  scripts/save_kills --kills 10 --parties 2                     a short form
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mpc.errors import ConfigError, MaskedError
from mpc.tables import markdown

from ..ppcb import PrivateContextualBandit
from ..ppcb.library.decisions import Holdings
from ..ppcb.library.saved import load_parts
from ..run.exits import exit_codes

_DIM, _LONGEST, _PATIENCE = 6, 5, 120
_NOWHERE = "nowhere"
_CHANGES = ("os.mkdir", "os.chmod", "os.remove", "os.rename")
_COLUMNS = ("killed", "kills", "loads", "the save before", "this save", "all told counted", "a number twice")


@dataclass(frozen=True)
class Kill:
    """chain, link: which.  place: what `save` was about to do.  state: that which loads.  told, counted: arms."""

    parties: int
    chain: int
    link: int
    place: str
    loads: bool
    state: str
    told: int
    counted: int
    twice: int

    @property
    def wrong(self) -> bool:
        """Whether anything is not as it should be."""
        right = ["this save"] if self.place == _NOWHERE else ["this save", "the save before"]
        return not self.loads or self.state not in right or self.told != self.counted or self.twice > 0


@dataclass
class Bandit:
    """What is known of one from outside.  whole: the state of its last whole save; numbers: all that decisions got."""

    folder: Path
    parties: int
    whole: str = ""
    numbers: list[int] = field(default_factory=list)

    def live(self, seed: int, kill_at: int | None = None) -> dict[str, Any]:
        """A process loads it, works with it, and saves, or dies at a place inside; what it said until then."""
        said: dict[str, Any] = {}
        for line in _forked(lambda say: _life(self.folder, self.parties, seed, kill_at, say)):
            self.numbers += line.pop("numbers", [])
            said.update(line)
        return said

    def judged(self, said: dict[str, Any], chain: int, link: int) -> Kill:
        """How it stands after that."""
        try:
            kept, _ = load_parts(self.folder, None)
        except MaskedError as error:
            print(f"chain {chain}, kill {link}: {error}", file=sys.stderr)
            return Kill(self.parties, chain, link, said["place"], False, "", len(self.numbers), 0, 0)
        found = _state(kept.held)
        state = {said["state"]: "this save", self.whole: "the save before"}.get(found, "another")
        self.whole, told = found, len(self.numbers)
        counted, twice = sum(entry.count for entry in kept.told.ledger), told - len(set(self.numbers))
        return Kill(self.parties, chain, link, said["place"], True, state, told, counted, twice)


def campaign(kills: int, parties: int, seed: int = 1) -> Iterator[Kill]:
    """Kills as they happen, in chains of 1 to 5; each chain ends with a whole save."""
    rng = random.Random(f"{seed} {parties}")
    with tempfile.TemporaryDirectory(prefix="save-kills-") as name:
        rehearsal = Bandit(Path(name) / "rehearsal", parties)
        rehearsal.live(1)
        places, made = _in_turn(rehearsal.live(2)["passed"], rng), 0
        for chain in itertools.count():
            bandit = Bandit(Path(name) / f"chain-{chain}", parties)
            bandit.whole = bandit.live(rng.randrange(1 << 32))["state"]
            for link in range(min(rng.randint(1, _LONGEST), kills - made)):
                kill = bandit.judged(bandit.live(rng.randrange(1 << 32), next(places)), chain, link)
                yield kill
                made += 1
                if not kill.loads:
                    break
            else:
                last = bandit.judged(bandit.live(rng.randrange(1 << 32)), chain, _LONGEST)
                if last.wrong:
                    yield last
            if made >= kills:
                return


def _in_turn(count: int, rng: random.Random) -> Iterator[int]:
    """All places, each as often as the others."""
    while True:
        yield from rng.sample(range(count), count)


def _life(folder: Path, parties: int, seed: int, kill_at: int | None, say: Callable[..., object]) -> None:
    rng = np.random.default_rng(seed)
    if folder.exists():
        bandit = PrivateContextualBandit.load(folder)
    else:
        bandit = PrivateContextualBandit(3, _DIM, parties=parties, steps=1000)
    for _ in range(rng.integers(1, 4)):
        numbers = bandit.predict(rng.uniform(-0.3, 0.3, (rng.integers(1, 4), _DIM))).decision_id
        say(numbers=np.asarray(numbers).tolist())
        bandit.learn(decision_id=np.asarray(numbers)[:2], reward=rng.uniform(size=len(np.asarray(numbers)[:2])))
    say(state=_state(bandit._service.held), place=_NOWHERE)
    passed = itertools.count()

    def passing(place: str, harm: Callable[[], None] = lambda: None) -> None:
        if next(passed) == kill_at:
            say(place=place)
            harm()
            os.kill(os.getpid(), signal.SIGKILL)

    _watch(folder, passing, rng)
    bandit.save(folder)
    say(passed=next(passed))


def _state(held: Holdings) -> str:
    """Regressions in the clear and what waits for a reward, as a digest."""
    joined = hashlib.blake2b(digest_size=8)
    for rows in (held.words["table"], *(part for one in held.open.values() for part in (one.x, one.o))):
        joined.update(rows.sum(axis=0, dtype=np.uint64).tobytes())
    joined.update(repr((list(held.open), held.learned, held.arms)).encode())
    return joined.hexdigest()


def _watch(folder: Path, passing: Callable[..., None], rng: np.random.Generator) -> None:
    """From now on, call `passing` before this process changes a file below the folder, and around each flush."""

    def audit(event: str, given: tuple[Any, ...]) -> None:
        written = event == "open" and given[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)
        if (written or event in _CHANGES) and str(given[0]).startswith(str(folder)):
            passing(f"before {event.removeprefix('os.')} of {_kind(given[0])}")

    def flushed(flush: Callable[[int], None], descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        passing(f"before flush of {_kind(path)}")
        if path.is_file():
            passing(f"in flush of {_kind(path)}", lambda: os.truncate(path, int(rng.integers(path.stat().st_size))))
        flush(descriptor)
        passing(f"after flush of {_kind(path)}")

    os.fsync, os.fdatasync = functools.partial(flushed, os.fsync), functools.partial(flushed, os.fdatasync)
    sys.addaudithook(audit)


def _kind(path: str | Path) -> str:
    name = Path(path).name
    return next((f"a {kind}" for kind in ("checkpoint", "journal", "key") if kind in name), "a folder")


def _forked(life: Callable[[Callable[..., object]], None]) -> list[dict[str, Any]]:
    """Lines that a forked process said until it ended, or was killed by itself."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(_PATIENCE)
            life(lambda **facts: os.write(theirs, json.dumps(facts).encode() + b"\n"))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    os.close(theirs)
    with open(ours, "rb") as pipe:
        said = [json.loads(line) for line in pipe]
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, -signal.SIGKILL):
        raise ConfigError(f"a process of the campaign ended with {code}: what it said stands above")
    return said


def table(kills: Iterable[Kill]) -> str:
    """Markdown, a row for each kind of place, and one for all."""
    rows: dict[str, list[Kill]] = {}
    for kill in kills:
        for name in (kill.place, "all"):
            rows.setdefault(name, []).append(kill)
    counted = ([name, *_counts(rows[name])] for name in sorted(rows, key=lambda name: (name == "all", name)))
    return "\n".join(markdown([(name, "" if at else "s") for at, name in enumerate(_COLUMNS)], counted))


def _counts(kills: Sequence[Kill]) -> list[int]:
    states = [kill.state for kill in kills]
    counted, twice = (sum(k.told == k.counted for k in kills), sum(k.twice > 0 for k in kills))
    return [len(kills), sum(k.loads for k in kills), *map(states.count, _COLUMNS[3:5]), counted, twice]


def main() -> None:
    """Kill, load, print."""
    parser = argparse.ArgumentParser(
        prog="scripts/save_kills", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100, help="for each number of parties (100)")
    parser.add_argument("--parties", type=int, nargs="+", default=[2, 3], help="numbers of parties (2 3)")
    parser.add_argument("--seed", type=int, default=1, help="of the work and of the order of places (1)")
    parser.add_argument("--json", type=Path, help="write every kill to this file")
    options = parser.parse_args()
    with exit_codes():
        kills = [kill for parties in options.parties for kill in campaign(options.kills, parties, options.seed)]
        print(table(kills))
        if options.json is not None:
            lines = ",\n".join(json.dumps(asdict(kill)) for kill in kills)
            options.json.write_text(f"[\n{lines}\n]\n")
        if any(kill.wrong for kill in kills):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
