"""Statistics that tests judge by, of a package that the light install leaves out: loaded when a test asks for one."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest


class Lazy:
    """A module that is imported at its first use; without it, the test that asks is skipped."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # what pytest looks for in whatever it finds
            raise AttributeError(name)
        try:
            return getattr(import_module(self._name), name)
        except ModuleNotFoundError:
            pytest.skip("the extra 'test' is not installed")


stats, special = Lazy("scipy.stats"), Lazy("scipy.special")
