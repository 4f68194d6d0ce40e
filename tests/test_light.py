"""The light install: numpy and cryptography are enough for the library and the command, and an error names the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mpc.extras import EXTRAS, MissingExtra, extra, installed, require

ROOT = Path(__file__).resolve().parents[1]
HEAVY = {
    "mpc/net/gloo.py", "bandits/accounting.py", "bandits/audit.py", "protocols/run/picture.py",
    "protocols/run/plots.py", "protocols/commands/attack_plots.py", "protocols/commands/evaluate_plots.py",
    "mpc/net/web.py", "protocols/bench/serve_fuzz.py", "protocols/ppcb/live/beside.py",
}  # fmt: skip
"""Modules that an extra is for; so is every picture below protocols/figures."""
BLOCKED = f"import sys; sys.modules.update(dict.fromkeys({sorted(EXTRAS)}))\n"


def light_modules() -> list[str]:
    """Every module of the light part, by its dotted name."""
    files = [
        path
        for room in ("masked_bandits", "mpc", "offline", "bandits", "protocols")
        for path in (ROOT / room).rglob("*.py")
    ]
    names = [path.relative_to(ROOT) for path in files if path.stem != "__main__"]
    light = [name for name in names if name.as_posix() not in HEAVY and name.parts[:2] != ("protocols", "figures")]
    return sorted(".".join(name.with_suffix("").parts).removesuffix(".__init__") for name in light)


def without(text: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Python in a process of its own, with every package of an extra blocked."""
    return subprocess.run(
        [sys.executable, "-c", f"{BLOCKED}sys.path.insert(0, {str(ROOT)!r})\n{text}", *arguments],
        capture_output=True, text=True, timeout=300, check=False, cwd=cwd,
    )  # fmt: skip


def test_every_light_module_is_imported_without_the_extras(tmp_path: Path) -> None:
    names = light_modules()
    assert len(names) > 200
    done = without(f"from importlib import import_module\nfor name in {names}: import_module(name)", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_heavy_modules_need_their_extras(tmp_path: Path) -> None:
    """A module in HEAVY that could be imported would not belong there."""
    names = [path.removesuffix(".py").replace("/", ".") for path in sorted(HEAVY)]
    text = f"""from importlib import import_module
for name in {names}:
    try: import_module(name)
    except ImportError: continue
    sys.exit(name + " is light")
"""
    done = without(text, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("run ppcb", "--data digits (--data synthetic does not) needs scikit-learn: "),
        ("run ppcb --data synthetic --plot a.png", "--plot needs matplotlib: "),
        ("attack membership --data digits", "needs scikit-learn: "),
        ("privacy", "masked privacy needs dp-accounting: "),
        ("launch argmax --transport gloo", "--transport gloo needs torch: "),
        ("run samba --mode classic", "Paillier needs phe: "),
        ("serve --try --folder a", "masked serve needs starlette: "),
        ("run helba --mode ckks", "CKKS needs seal-python (the package named seal is another one): "),
    ],
)
def test_a_command_names_its_missing_extra_in_one_line(words: str, named: str, tmp_path: Path) -> None:
    done = without("from protocols.cli import main; main(sys.argv[1:])", *words.split(), cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("error: ") and named in done.stderr
    assert "python -m pip install 'masked-bandits[" in done.stderr


def test_a_run_without_matplotlib_keeps_its_result_and_says_so(tmp_path: Path) -> None:
    words = ("run", "ppcb", "--data", "synthetic", "--steps", "20", "--out", "runs")
    done = without("from protocols.cli import main; main(sys.argv[1:])", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "result.json").is_file() and not (tmp_path / "runs" / "reward.png").exists()
    assert "reward curve: not drawn: a picture needs matplotlib: " in done.stdout


def test_words_are_the_same_without_torch(tmp_path: Path) -> None:
    """Products large enough for torch's kernels, with and without it."""
    pytest.importorskip("torch")
    text = """
import numpy as np
from mpc.bilinear import MATMUL, Bilinear
x = np.random.default_rng(1).integers(0, 2**64, (2, 40, 40), dtype=np.uint64)
print(MATMUL(x, x).sum(), Bilinear("aij,ajk->aik")(x, x).sum(), np.bitwise_xor.reduce(MATMUL(x, x), axis=None))
"""
    here = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True, cwd=ROOT)
    assert without(text, cwd=tmp_path).stdout == here.stdout != ""


def test_an_error_of_another_kind_passes() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught, extra("this"):
        import no_such_package  # noqa: F401
    assert not isinstance(caught.value, MissingExtra)
    assert not installed("no_such_package") and installed("numpy")
    require("numpy", "this")


def test_setup_cfg_has_every_extra_of_the_table() -> None:
    import configparser

    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    extras = config["options.extras_require"]
    assert set(EXTRAS.values()) <= set(extras)
    whole = extras["all"].strip().removeprefix("masked-bandits[").removesuffix("]").split(",")
    assert set(whole) == set(extras) - {"all", "test"} == set(EXTRAS.values())
    required = [line.split(">")[0] for line in config["options"]["install_requires"].split("\n") if ";" not in line]
    assert [name for name in required if name] == ["numpy", "cryptography"]
