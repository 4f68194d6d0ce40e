"""Packages that not everybody installs, and the one error that says which extra brings each.

The library and the command run with numpy and cryptography alone.  Whatever a door imports beside them stands here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from .errors import ConfigError

EXTRAS = {
    "torch": "torch", "sklearn": "data", "joblib": "data", "matplotlib": "plot", "dp_accounting": "privacy",
    "scipy": "privacy", "rich": "terminal", "phe": "paillier", "gmpy2": "paillier", "seal": "ckks",
    "pyarrow": "parquet", "starlette": "serve", "uvicorn": "serve",
}  # fmt: skip
"""Each package by the name that it is imported by, and the extra that brings it."""
_NAMES = {
    "sklearn": "scikit-learn", "dp_accounting": "dp-accounting",
    "seal": "seal-python (the package named seal is another one)",
}  # fmt: skip


class MissingExtra(ConfigError, ImportError):
    """What was asked for needs a package that is not installed."""


def missing(package: str, what: str = "this") -> MissingExtra:
    """The error that names a package and its extra.  what: what needs it."""
    name = _NAMES.get(package, package)
    return MissingExtra(f"{what} needs {name}: python -m pip install 'masked-bandits[{EXTRAS[package]}]'")


def installed(package: str) -> bool:
    """Whether a package of an extra is here; does not import it."""
    return find_spec(package) is not None


def require(package: str, what: str) -> None:
    """MissingExtra unless a package is here, before anything is computed."""
    if not installed(package):
        raise missing(package, what)


@contextmanager
def extra(what: str = "this") -> Iterator[None]:
    """Around what imports a package of an extra: where it is not here, MissingExtra says what needs it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (package := (error.name or "").partition(".")[0]) not in EXTRAS:
            raise
        raise missing(package, what) from None
