"""One door per heavy package: who may import what, read from the source."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOORS = {
    "torch.distributed": {"mpc/net/gloo.py"},
    "torch": {"mpc/bilinear.py", "mpc/ring.py", "mpc/net/gloo.py"},
    "sklearn": {"bandits/data.py"},
    "rich": {"protocols/run/terminal.py"},
    "joblib": {"protocols/experiments/grid.py"},
    "dp_accounting": {"bandits/accounting.py"},
    "scipy": {"bandits/accounting.py"},
    "phe": {"protocols/published/paillier.py"},
    "seal": {"protocols/published/ckks.py"},
    "cryptography": {
        "mpc/prg.py",
        "mpc/net/certificates.py",
        "offline/directory.py",
        "offline/sealed.py",
        "protocols/published/sealing.py",
    },
    "pyarrow": {"bandits/tables.py"},
    "starlette": {"mpc/net/web.py"},
    "uvicorn": {"mpc/net/web.py"},
    "crypten": {"mpc/interop/crypten.py"},
    "pickle": set(),
}


@functools.cache
def imported(path: Path) -> set[str]:
    """Every module name that a file imports, anywhere in it."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def product_files() -> list[Path]:
    return [path for room in ("mpc", "offline", "bandits", "protocols") for path in sorted((ROOT / room).rglob("*.py"))]


@pytest.mark.parametrize("package", DOORS)
def test_only_its_door_imports_a_heavy_package(package: str) -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for path in product_files()
        if any(name == package or name.startswith(package + ".") for name in imported(path))
    }
    assert users == DOORS[package]


def test_sockets_stay_in_mpc_net_and_the_launcher() -> None:
    users = {
        path.relative_to(ROOT).as_posix()
        for path in product_files()
        if imported(path) & {"socket", "ssl", "selectors", "asyncio"}
    }
    assert all(user.startswith("mpc/net/") or user == "mpc/launch.py" for user in users), users


@pytest.mark.parametrize("room", ["mpc", "offline", "bandits", "parties"])
def test_tests_of_the_lower_rooms_know_no_protocols(room: str) -> None:
    """Imports, and the text of scripts that a test runs in processes of its own."""
    files = sorted((ROOT / "tests" / room).rglob("*.py"))
    assert files
    for path in files:
        text = path.read_text()
        assert not any(name.split(".")[0] == "protocols" for name in imported(path)), path
        assert not re.search(r"(\b(from|import)\s+|-m\W+)protocols\b", text), path


def test_randomness_of_numpy_stays_out_of_the_secret_rooms() -> None:
    """Masks come from the AES generator: `mpc` and `offline` never touch numpy's."""
    for path in product_files():
        if path.parts[len(ROOT.parts)] in ("mpc", "offline"):
            assert "np.random" not in path.read_text(), path


@pytest.mark.parametrize("room", ["protocols/published", "protocols/linucb_ds/classic", "protocols/helba/ckks"])
def test_randomness_that_is_no_secret_stays_out_of_what_is_published(room: str) -> None:
    """Masks, keys and permutations there come from the operating system, AES or SHAKE-256."""
    files = sorted((ROOT / room).rglob("*.py"))
    assert files
    for path in files:
        assert not re.search(r"\b(np|numpy)\.random\b", path.read_text()), path
        assert not any(name.split(".")[0] == "random" for name in imported(path)), path
