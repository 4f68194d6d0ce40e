"""Numbers as Prometheus reads them, a text of a line for each.  Knows names and labels; not what is counted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The kind of the content."""


def exposition(said: Mapping[str, tuple[str, str]], values: Iterable[tuple[str, Mapping[str, str], float]]) -> str:
    """Values by name and labels.  said: of each name its kind, such as "counter", and what it counts."""
    rows: dict[str, list[tuple[Mapping[str, str], float]]] = {}
    for name, labels, value in values:
        rows.setdefault(name, []).append((labels, value))
    lines = []
    for name, found in rows.items():
        kind, what = said[name]
        lines += [f"# HELP {name} {what}", f"# TYPE {name} {kind}"]
        lines += [f"{name}{_shown(labels)} {value:.12g}" for labels, value in found]
    return "\n".join(lines) + "\n"


def _shown(labels: Mapping[str, str]) -> str:
    escaped = {
        name: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for name, value in labels.items()
    }
    return "{" + ",".join(f'{name}="{value}"' for name, value in escaped.items()) + "}" if escaped else ""
