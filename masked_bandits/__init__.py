"""The public face: what a user imports, whatever room it lives in.

    from masked_bandits import PrivateContextualBandit, Session, ops, deal

A name is loaded when it is asked for, so that a program pays for what it uses.  Knows where each name lives, and that
the rooms it names are ours: a folder of the user's own called `bandits` would be found before them.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bandits.environments import Environment, synthetic_linear
    from bandits.logs import RecordedLog
    from mpc import (
        Input,
        Ledger,
        MaskedError,
        Meter,
        Open,
        RangeError,
        Reveal,
        Rounds,
        Session,
        Share,
        ops,
        together,
    )
    from offline import InProcessDealer, Plan, Recorder, StoreSource, deal
    from protocols.experiments import Experiment, evaluate, experiments, grid, plot_regret
    from protocols.ppcb import PrivateContextualBandit, evaluate_offline, payer_client, puller_client

_HOMES = {
    "bandits.environments": ("Environment", "synthetic_linear"),
    "bandits.logs": ("RecordedLog",),
    "mpc": (
        "Input", "Ledger", "MaskedError", "Meter", "Open", "RangeError", "Reveal", "Rounds", "Session", "Share", "ops",
        "together",
    ),
    "offline": ("InProcessDealer", "Plan", "Recorder", "StoreSource", "deal"),
    "protocols.experiments": ("Experiment", "evaluate", "experiments", "grid", "plot_regret"),
    "protocols.ppcb": ("PrivateContextualBandit", "evaluate_offline", "payer_client", "puller_client"),
}  # fmt: skip
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_ROOMS = ("mpc", "offline", "bandits", "protocols")

__all__ = [
    "Environment", "Experiment", "InProcessDealer", "Input", "Ledger", "MaskedError", "Meter", "Open", "Plan",
    "PrivateContextualBandit", "RangeError", "RecordedLog", "Recorder", "Reveal", "Rounds", "Session", "Share",
    "StoreSource", "deal", "evaluate", "evaluate_offline", "experiments", "grid", "ops", "payer_client",
    "plot_regret", "puller_client", "synthetic_linear", "together",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"masked_bandits has no {name!r}: it has {', '.join(__all__)}")
    module = import_module(_HOME[name])
    found = import_module(f"{module.__name__}.ops") if name == "ops" else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)


def _check_rooms(beside: Path) -> None:
    """ImportError where Python finds something else than the rooms that lie beside this package."""
    for room in _ROOMS:
        spec = find_spec(room)
        found = None if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), None)
        if found is None:
            raise ImportError(f"Masked Bandits has lost its package {room!r}: install it again", name=room)
        if Path(found).resolve() != beside / room / "__init__.py":
            raise ImportError(
                f"{found} hides the package {room!r} of Masked Bandits: rename it, or move the script elsewhere",
                name=room,
            )


_check_rooms(Path(__file__).resolve().parents[1])
