"""What became of mutants: in a table, in a file, and which of them are played again.  Runs nothing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from mpc.errors import ConfigError

from .mutations import Mutant, mutants


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant.  killer: the test that failed, "" where it is alive; reason: why no test can."""

    mutant: Mutant
    killer: str
    seconds: float
    reason: str = ""


def again(root: Path, before: Sequence[Outcome]) -> tuple[list[Outcome], list[Mutant]]:
    """What stays, and what is played again: mutants alive without a reason, where the code has them now.

    A change that the code no longer has is left out.
    """
    stay = [each for each in before if each.killer or each.reason]
    found: list[Mutant] = []
    for each in before:
        if each not in stay and (root / each.mutant.file).exists():
            now = mutants((root / each.mutant.file).read_bytes(), each.mutant.file)
            same = [mutant for mutant in now if change(mutant) == change(each.mutant)]
            found += sorted(same, key=lambda mutant: abs(mutant.line - each.mutant.line))[:1]
    return stay, found


def change(mutant: Mutant) -> tuple[object, ...]:
    return mutant.file, mutant.within, mutant.before, mutant.after


def kept(file: Path) -> list[Outcome]:
    """The outcomes in a file that `keep` wrote."""
    try:
        rows = json.loads(file.read_text())
        changes = ({**row.pop("mutant")} for row in rows)
        return [Outcome(Mutant(**{**change, "within": tuple(change["within"])}), **row)
                for change, row in zip(changes, rows, strict=True)]  # fmt: skip
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"--json {file}: these are no outcomes of mutants ({error}): name another file") from None


def keep(file: Path, found: Iterable[Outcome]) -> None:
    """Write outcomes, in the order of their places."""
    order = sorted(found, key=lambda each: (each.mutant.file, each.mutant.start, each.mutant.after))
    file.write_text(json.dumps([asdict(each) for each in order], indent=1) + "\n")


def table(outcomes: Iterable[Outcome]) -> str:
    """Markdown: those alive first, and how many were killed."""
    found = sorted(outcomes, key=lambda each: (each.killer != "", each.mutant.file, each.mutant.line))
    rows = ["| place | change | killed by |", "| --- | --- | --- |"]
    for each in found:
        told = each.killer or f"**alive**{': ' * bool(each.reason)}{each.reason}"
        cells = (f"{each.mutant.file}:{each.mutant.line}", f"`{each.mutant}`", told)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    killed, same = sum(bool(each.killer) for each in found), sum(bool(each.reason) for each in found)
    words = [f"{killed} of {len(found)} mutants were killed."]
    if same:
        words.append(f"{same} of those alive have a reason.")
    return "\n".join([*rows, "", " ".join(words)])
