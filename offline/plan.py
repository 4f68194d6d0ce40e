"""What a program will draw, found by running it once.  Knows kinds and shapes; no randomness, no party.

A plan is one *step*: the items a program draws from its start to its end.  Material is dealt for many steps.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from mpc.bilinear import Bilinear
from mpc.correlations import KINDS, Correlation, layout
from mpc.curves import CURVES, Curve, Table
from mpc.errors import ConfigError
from mpc.files import write_whole

from .dealer import InProcessDealer

_FORMAT = "masked-bandits plan 3"


class Recorder(InProcessDealer):
    """A dealer that notes what is drawn: run a program on it with any inputs of the right shapes."""

    def __init__(self, parties: int) -> None:
        super().__init__(parties)
        self.items: list[Correlation] = []

    def draw(self, item: Correlation) -> tuple[np.ndarray, ...]:
        """Note the item and make it."""
        self.items.append(item)
        return super().draw(item)


@dataclass(frozen=True)
class Plan:
    """The items of one step of a program, for a number of parties."""

    program: str
    parties: int
    items: tuple[Correlation, ...]

    @cached_property
    def step_bytes(self) -> int:
        """What party 0 stores for one step."""
        return sum(layout(item).dealt_bytes for item in self.items)

    @cached_property
    def digest(self) -> bytes:
        """16 bytes that name this plan."""
        return digest_of(self.text().encode())

    def summary(self) -> list[tuple[str, int, int]]:
        """(item, how often a step draws it, bytes for party 0 a step), most bytes first."""
        counts = Counter(self.items)
        rows = [(describe(item), n, n * layout(item).dealt_bytes) for item, n in counts.items()]
        return sorted(rows, key=lambda row: -row[2])

    def text(self) -> str:
        """The plan as JSON; each public table is written once."""
        tables: dict[str, str] = {}
        items = [_to_json(item, tables) for item in self.items]
        document = {
            "format": _FORMAT, "program": self.program, "parties": self.parties, "items": items, "tables": tables,
        }  # fmt: skip
        return json.dumps(document, indent=1, sort_keys=True)

    @classmethod
    def parse(cls, text: str, origin: str) -> Plan:
        """A plan from JSON."""
        try:
            document = json.loads(text)
            if document.get("format") != _FORMAT:
                raise ConfigError(f"{origin} is no plan of this version: make it with 'masked offline plan'")
            tables = {
                digest: Table(np.frombuffer(base64.b64decode(raw, validate=True), "<u8"))
                for digest, raw in document["tables"].items()
            }
            if any(table.digest != digest for digest, table in tables.items()):
                raise ValueError("a table is not the one its digest names")
            items = tuple(_checked(_from_json(item, tables)) for item in document["items"])
            program, parties = document["program"], document["parties"]
            if not isinstance(program, str) or not isinstance(parties, int) or parties < 2:
                raise ValueError("no program, or no number of parties")
            return cls(program, parties, items)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ConfigError(
                f"{origin} is damaged ({type(error).__name__}): make it with 'masked offline plan'"
            ) from error

    def save(self, path: Path) -> None:
        """Write the plan."""
        write_whole(path, self.text().encode(), 0o666)

    @classmethod
    def load(cls, path: Path) -> Plan:
        """Read a plan."""
        try:
            return cls.parse(path.read_text(encoding="utf-8", errors="replace"), str(path))
        except OSError as error:
            raise ConfigError(
                f"cannot read the plan {path}: {error.strerror}; make it with 'masked offline plan'"
            ) from error


def digest_of(text: bytes) -> bytes:
    """The digest of a plan's text."""
    return hashlib.blake2b(text, digest_size=16).digest()


def describe(item: Correlation) -> str:
    """An item in a line: kind and public parameters."""
    parts = []
    for part in fields(item):  # type: ignore[arg-type]
        value = getattr(item, part.name)
        if isinstance(value, Bilinear):
            value = {"": "elementwise", "@": "matmul", "&": "and", "^": "triangle"}.get(value.spec, value.spec)
        elif isinstance(value, Table):
            value = f"2^{value.bits} entries {value.digest[:8]}"
        elif isinstance(value, Curve):
            value = f"{type(value).__name__} from {value.lower:g}"
        parts.append(f"{part.name}={value}")
    return f"{type(item).__name__}({', '.join(parts)})"


def _to_json(value: Any, tables: dict[str, str]) -> Any:
    if isinstance(value, Table):
        tables[value.digest] = base64.b64encode(value.values.astype("<u8").tobytes()).decode()
        return {"$table": value.digest}
    if isinstance(value, Bilinear):
        return {"$bilinear": value.spec}
    if isinstance(value, (Correlation, Curve)):
        name = type(value).__name__
        if type(value) not in (KINDS.get(name), CURVES.get(name)):
            raise ConfigError(f"a plan cannot name {name}: register it in KINDS or CURVES")
        named = {part.name: _to_json(getattr(value, part.name), tables) for part in fields(value)}  # type: ignore[arg-type]
        return {"kind": name, **named}
    if isinstance(value, tuple):
        return [_to_json(part, tables) for part in value]
    return value.item() if isinstance(value, np.generic) else value


def _from_json(value: Any, tables: dict[str, Table]) -> Any:
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    if "$table" in value:
        return tables[value["$table"]]
    if "$bilinear" in value:
        return Bilinear(value["$bilinear"])
    kind = KINDS.get(value["kind"]) or CURVES[value["kind"]]
    names = [part.name for part in fields(kind)]  # type: ignore[arg-type]
    if value.keys() != {"kind", *names}:
        raise ValueError(f"not the parameters of {value['kind']}")
    return kind(*[_from_json(value[name], tables) for name in names])  # in order, as programs name them


def _checked(item: Any) -> Correlation:
    """An item whose fields have sizes: what a file says is not taken on trust."""
    if not isinstance(item, Correlation):
        raise TypeError("no item")
    for part in item.free() + item.dealt():
        if not all(type(axis) is int and axis >= 0 for axis in part.shape) or type(part.bits) is not int:
            raise ValueError("a field has no size")
    layout(item)
    return item
