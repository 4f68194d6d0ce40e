"""The public face: every name it has, nothing loaded before it is asked for, and no foreign room taken for ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import masked_bandits

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", masked_bandits.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(masked_bandits, name) is not None
    assert name in dir(masked_bandits)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"no 'Bandit': it has .*PrivateContextualBandit"):
        _ = masked_bandits.Bandit


def python(text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A user's script in a folder of his own, beside an install of ours that is found after it."""
    (cwd / "script.py").write_text(text)
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    return subprocess.run(
        [sys.executable, "script.py"], capture_output=True, text=True, check=False, cwd=cwd, env=environment
    )


@pytest.mark.parametrize(
    "page",
    ["README.md", "docs/logs.md", "docs/ppcb.md", "docs/helba.md", "docs/tutorial.py", "docs/tutorials/helba.md"],
)
def test_pages_for_users_import_from_the_face_alone(page: str) -> None:
    """So a folder of the user's own that hides a room is named, whatever he copies from there."""
    imports = [line for line in (ROOT / page).read_text().splitlines() if line.startswith(("from ", "import "))]
    assert any(line.startswith("from masked_bandits import") for line in imports)
    assert not [line for line in imports if line.split()[1].partition(".")[0] in masked_bandits._ROOMS]


def test_nothing_is_loaded_before_it_is_asked_for(tmp_path: Path) -> None:
    text = (
        "import sys, masked_bandits; assert not {'mpc', 'offline', 'bandits', 'protocols', 'numpy'} & set(sys.modules)"
    )
    assert python(text, tmp_path).returncode == 0


@pytest.mark.parametrize("room", ["mpc", "offline", "bandits", "protocols"])
@pytest.mark.parametrize("kind", ["module", "package"])
def test_a_folder_of_the_users_own_that_hides_a_room_is_named(room: str, kind: str, tmp_path: Path) -> None:
    place = tmp_path / f"{room}.py" if kind == "module" else tmp_path / room / "__init__.py"
    place.parent.mkdir(exist_ok=True)
    place.write_text("")
    done = python("from masked_bandits import Session", tmp_path)
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: ") and f"{place} hides the package {room!r}" in last


@pytest.mark.parametrize("room", ["mpc", "offline", "bandits"])
def test_the_command_names_it_too(room: str, tmp_path: Path) -> None:
    (tmp_path / f"{room}.py").write_text("")
    done = subprocess.run(
        [sys.executable, "-m", "protocols", "demo"], capture_output=True, text=True, check=False, cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 2
    said = f"error: {tmp_path / room}.py hides the package {room!r} of Masked Bandits: rename it, or move the script"
    assert done.stderr.startswith(said) and done.stderr.count("\n") == 1


def test_a_folder_that_hides_nothing_is_left_alone(tmp_path: Path) -> None:
    """One without code gives way to a package that is found later."""
    (tmp_path / "bandits").mkdir()
    done = python("from masked_bandits import Environment, ops; print(ops.__name__)", tmp_path)
    assert done.returncode == 0 and done.stdout == "mpc.ops\n"
