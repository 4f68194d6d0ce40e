"""Which modules of the project a module takes something from, near or far: what its results depend on.

Read from their texts, so nothing is run.  A package's own page counts where a name is taken from it that is no module;
a text that names a module counts as well, as processes are started by such names.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

ROOMS = ("bandits", "mpc", "offline", "protocols")
_COMPUTE = ("numpy", "scikit-learn")


@lru_cache(maxsize=64)
def fingerprint(module: str) -> str:
    """A name for what the results of a module depend on: all that it takes from, and the packages that compute."""
    digest = hashlib.sha256()
    for name in sorted(sources(module)):
        digest.update(f"{name} ".encode() + _place(name).read_bytes())
    digest.update(" ".join(f"{package} {version(package)}" for package in _COMPUTE).encode())
    return digest.hexdigest()[:12]


def sources(module: str) -> set[str]:
    """The module, and every module of the project that it takes from, directly or through others."""
    found, waiting = set[str](), [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += taken(name)
    return found


def taken(module: str) -> set[str]:
    """The modules of the project that this one names itself."""
    place = _place(module)
    package = module if place.name == "__init__.py" else module.rpartition(".")[0]
    return {name for name in _named(ast.parse(place.read_text()), package) if _is_module(name)}


def _named(tree: ast.AST, package: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                yield f"{base}.{alias.name}" if _is_module(f"{base}.{alias.name}") else base
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            yield node.value


@lru_cache(maxsize=4096)
def _is_module(name: str) -> bool:
    parts = name.split(".")
    return parts[0] in ROOMS and all(part.isidentifier() for part in parts) and _found(parts) is not None


def _place(name: str) -> Path:
    found = _found(name.split("."))
    assert found is not None, f"{name} is a module of the project"
    return found


def _found(parts: list[str]) -> Path | None:
    room = Path(str(find_spec(parts[0]).origin)).parent  # type: ignore[union-attr]
    inside = room.joinpath(*parts[1:])
    places = (inside.with_name(inside.name + ".py"), inside / "__init__.py")
    return next((place for place in places if place.is_file()), None)
