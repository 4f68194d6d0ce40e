"""Which release this is.  Knows the package's name."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

NOT_INSTALLED = "not installed"


def release() -> str:
    """Its number, as it was installed."""
    try:
        return version("masked-bandits")
    except PackageNotFoundError:  # the code is run from where it lies
        return NOT_INSTALLED
