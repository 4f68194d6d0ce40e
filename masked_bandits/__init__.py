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
    from bandits.columns import log_of
    from bandits.environments import Environment, synthetic_linear
    from bandits.helba import Constants as HelbaConstants
    from bandits.logs import RecordedLog, replay
    from bandits.privacy import eta_per_step
    from bandits.tables import table_of
    from mpc import (
        ConfigError,
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
    from protocols.experiments import (
        PROBLEMS,
        Experiment,
        FixedArms,
        OwnersArms,
        UsersFeatures,
        evaluate,
        experiments,
        grid,
        plot_regret,
    )
    from protocols.helba import EncryptedLinearBandit
    from protocols.helba import Settings as HelbaSettings
    from protocols.ppcb import PrivateContextualBandit, evaluate_offline, payer_client, puller_client
    from protocols.ppcb.library.log_evaluation import evaluate_log
    from protocols.ppcb.library.offline_evaluation import estimate_offline

_HOMES = {
    "bandits.columns": ("log_of",),
    "bandits.environments": ("Environment", "synthetic_linear"),
    "bandits.logs": ("RecordedLog", "replay"),
    "bandits.privacy": ("eta_per_step",),
    "bandits.tables": ("table_of",),
    "mpc": (
        "ConfigError", "Input", "Ledger", "MaskedError", "Meter", "Open", "RangeError", "Reveal", "Rounds", "Session",
        "Share", "ops", "together",
    ),
    "offline": ("InProcessDealer", "Plan", "Recorder", "StoreSource", "deal"),
    "protocols.experiments": (
        "PROBLEMS", "Experiment", "FixedArms", "OwnersArms", "UsersFeatures", "evaluate", "experiments", "grid",
        "plot_regret",
    ),
    "protocols.helba": ("EncryptedLinearBandit",),
    "protocols.ppcb": ("PrivateContextualBandit", "evaluate_offline", "payer_client", "puller_client"),
    "protocols.ppcb.library.log_evaluation": ("evaluate_log",),
    "protocols.ppcb.library.offline_evaluation": ("estimate_offline",),
}  # fmt: skip
_CALLED = {"HelbaConstants": ("bandits.helba", "Constants"), "HelbaSettings": ("protocols.helba", "Settings")}
_HOME = {name: (home, name) for home, names in _HOMES.items() for name in names} | _CALLED
_ROOMS = ("mpc", "offline", "bandits", "protocols")

__all__ = [
    "PROBLEMS", "ConfigError", "EncryptedLinearBandit", "Environment", "Experiment", "FixedArms", "HelbaConstants",
    "HelbaSettings", "InProcessDealer", "Input", "Ledger", "MaskedError", "Meter", "Open", "OwnersArms", "Plan",
    "PrivateContextualBandit", "RangeError", "RecordedLog", "Recorder", "Reveal", "Rounds", "Session", "Share",
    "StoreSource", "UsersFeatures", "deal", "estimate_offline", "eta_per_step", "evaluate", "evaluate_log",
    "evaluate_offline", "experiments", "grid", "log_of", "ops", "payer_client", "plot_regret", "puller_client",
    "replay", "synthetic_linear", "table_of", "together",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"masked_bandits has no {name!r}: it has {', '.join(__all__)}")
    home, own = _HOME[name]
    module = import_module(home)
    found = import_module(f"{module.__name__}.ops") if name == "ops" else getattr(module, own)
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
