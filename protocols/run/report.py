"""What every run leaves behind: facts that all documents share, text for people, files.  Knows results; no protocol.

Report      what a system makes of its result: a document, a text, a picture, files of its own
show        prints one document or the text, writes files, says where they lie
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from mpc.extras import installed, missing
from mpc.files import flush_folder
from mpc.ledger import Entry

from .folder import PICTURES
from .program import Ended, Program
from .tagged_file import writing
from .terminal import spoken, write_line

_PACKAGES = ("masked-bandits", "numpy", "torch", "cryptography", "scikit-learn")
_TWO_NAMES = ("twin", "reference"), ("client_hops", "client_messages")
"""Words of keys: what two programs call by two names is given under both until 1.0."""
_PRINTED = "the result is printed, and what the run kept stays; make room there, or choose another place"


@dataclass(frozen=True)
class Report:
    """A run that can be shown.

    document: as other tools read it.  text: what a person wants to know at the end.  done: steps that it is about.
    picture: draws the reward curve; None where there is nothing to draw.  more: for result.json alone.
    files: writes the system's own files into a folder, and gives their paths.
    settle: what is left to do when all is printed and written.
    """

    document: dict[str, Any]
    text: str
    done: int
    picture: Callable[[Path], None] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    files: Callable[[Path], list[Path]] = lambda _: []
    settle: Callable[[], None] = lambda: None


def costs(ended: Ended, steps: int) -> dict[str, Any]:
    """What a step cost, by the names that all documents have."""
    played = ended.played
    return {
        "seconds_per_step": ended.seconds / steps,
        "rounds_per_step": played.rounds / steps,
        "client_hops_per_step": played.client_hops / steps,
        "bytes_per_step_per_party": played.opened_bytes / steps,
        "sent_bytes_per_step_per_party": played.sent_bytes / steps,
        "offline_seconds_per_step": ended.offline_seconds / steps,
        "offline_bytes_per_step": ended.offline_bytes / steps,
    }


def cost_text(facts: Mapping[str, Any], unit: str) -> list[str]:
    """The same in two lines."""
    article = "an" if unit[0] in "aeiou" else "a"
    spent = facts["offline_seconds_per_step"]  # none was measured where material came from stores
    dealer = f", {spoken(spent)} of the dealer's time" if spent else ""
    return [
        f"{article} {unit} took {facts['rounds_per_step']:g} rounds, {facts['bytes_per_step_per_party']:,.0f} bytes "
        f"from each party to each other, {spoken(facts['seconds_per_step'])};",
        f"dealt beforehand: {facts['offline_bytes_per_step']:,.0f} bytes{dealer}",
    ]


def plain_report(program: Program[Any], facts: Mapping[str, Any], said: Sequence[str], ended: Ended) -> Report:
    """A report with what every run has: costs and the ledger behind a program's own facts and lines."""
    cost = costs(ended, max(1, ended.done))
    own = {"parties": program.parties, f"{program.unit}s": ended.done, **facts}
    lines = [*said, "", *cost_text(cost, program.unit), "", *learned(ended.ledger)]
    return Report({**own, **cost, "ledger": ledger_json(ended.ledger)}, "\n".join(lines), ended.done)


def learned(entries: Iterable[Entry | tuple[str, str, str]]) -> list[str]:
    """Who learned what, in aligned lines.  An entry of the ledger, or (role, what, why) in words."""
    rows = [
        (entry.role, f"{entry.count:,} x {entry.what}", entry.why) if isinstance(entry, Entry) else entry
        for entry in entries
    ]
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    lines = [f"  {role.ljust(widths[0])}  {what.ljust(widths[1])}  {why}" for role, what, why in rows]
    return ["who learned what", *(lines or ["  nobody learned anything"])]


def ledger_json(entries: Iterable[Entry]) -> list[dict[str, Any]]:
    """The ledger in a document."""
    return [asdict(entry) for entry in entries]


def with_both_names(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document, and what has two names under both."""
    whole = {name: with_both_names(value) if isinstance(value, dict) else value for name, value in document.items()}
    for one, other in (names for pair in _TWO_NAMES for names in (pair, pair[::-1])):
        for name, value in list(whole.items()):
            if f"_{one}_" in f"_{name}_":
                whole.setdefault(f"_{name}_".replace(f"_{one}_", f"_{other}_")[1:-1], value)
    return whole


def show(
    report: Report, options: Mapping[str, Any], out: Path | None, plot: Path | None, *, as_json: bool,
    say: Callable[[str], None] = write_line,
) -> None:  # fmt: skip
    """Print it first: a disk that fills up takes files, and not what an hour of computing found.

    say: in place of stdout.
    """
    document = with_both_names(report.document)
    with contextlib.suppress(OSError):  # of a reader who left, or a full disk, and said at the end: files come first
        say(json.dumps(document, indent=1) if as_json else report.text)
    files = []
    if out is not None:
        whole = {**document, **report.more, "options": _plain(options), "versions": versions()}
        with writing(out, cure=_PRINTED):
            files = _write_results(out, json.dumps(whole, indent=1) + "\n", report.files)
    undrawn = report.picture is not None and plot is None and out is not None and not installed("matplotlib")
    curves = [*([out / "reward.png"] if out is not None else []), *([plot] if plot is not None else [])]
    if report.picture is not None and not undrawn:
        for path in curves:
            with writing(path, cure=_PRINTED):
                report.picture(path)
            files.append(path)
    if as_json:
        return
    with contextlib.suppress(OSError):  # of a reader who left: the run is a finished one all the same
        for path in files:
            say(f"{'reward curve' if path.suffix in PICTURES else 'written'}: {path}")
        if undrawn:
            say(f"reward curve: not drawn: {missing('matplotlib', 'a picture')}")


def _write_results(out: Path, document: str, others: Callable[[Path], list[Path]]) -> list[Path]:
    """All files of a result take the place of an earlier one's together; where result.json is, all of them are."""
    fresh = out / "result.new"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    try:
        result = fresh / "result.json"
        result.write_text(document)
        files = [result, *others(fresh)]
        for path in files:
            with path.open("rb") as file:
                os.fsync(file.fileno())
        (out / result.name).unlink(missing_ok=True)
        for path in reversed(files):
            path.replace(out / path.name)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    flush_folder(out)
    return [out / path.name for path in files]


def versions() -> dict[str, str]:
    """Of Python and of the packages that a result depends on."""
    found = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def _plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as JSON takes them."""
    simple: Sequence[type] = (str, int, float, bool, type(None))
    return {name: value if isinstance(value, tuple(simple)) else str(value) for name, value in options.items()}
