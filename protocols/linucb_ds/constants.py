"""A policy's public constants as plain data, by the name of their kind.  Knows no arm."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from bandits.linear_problem import Exploration
from bandits.oful import Confidence
from bandits.spectral import SpectralConfidence
from mpc.errors import ConfigError

_KINDS: dict[str, type[Confidence] | type[SpectralConfidence]] = {
    "linucb": Confidence,
    "spectralucb": SpectralConfidence,
}


def as_json(exploration: Exploration) -> dict[str, Any]:
    """Their kind, and each by its name."""
    for name, kind in _KINDS.items():
        if isinstance(exploration, kind):
            return {"kind": name, "constants": json.loads(json.dumps(asdict(exploration)))}  # tuples become lists
    raise ConfigError(f"constants of LinUCB or SpectralUCB are wanted, not {type(exploration).__name__}")


def from_json(given: Mapping[str, Any]) -> Exploration:
    """What `as_json` gave."""
    named = given["constants"].items()
    constants: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in named}
    return _KINDS[given["kind"]](**constants)
