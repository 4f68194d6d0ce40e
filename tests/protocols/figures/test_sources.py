"""The key of a kept piece: it changes with every module that the piece depends on, and with no other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from protocols.figures import sources


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Rooms of a few lines, which import each other in all ways."""
    pages = {
        "mpc/__init__.py": "from .ring import WORD",
        "mpc/ring.py": "WORD = 64",
        "mpc/net.py": "import socket",
        "mpc/ops/__init__.py": "from .sign import less\nfrom .roots import root",
        "mpc/ops/sign.py": "from ..ring import WORD",
        "mpc/ops/roots.py": "",
        "bandits/__init__.py": "",
        "bandits/play.py": "import numpy as np\nfrom .linear import Bandit",
        "bandits/linear.py": "",
        "offline/__init__.py": "from mpc.net import socket",
        "protocols/__init__.py": "from .loud import shout",
        "protocols/loud.py": "",
        "protocols/page.py": "from bandits import play\n\ndef late():\n    from mpc.ops.sign import less\n",
        "protocols/whole.py": "from mpc import WORD\nimport bandits.linear",
        "protocols/starts.py": "COMMAND = ['-m', 'protocols.loud', 'nothing.here', 'mpc.absent']",
    }
    for name, text in pages.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(sources, "find_spec", lambda room: SimpleNamespace(origin=tmp_path / room / "__init__.py"))
    forget()
    yield tmp_path
    forget()


def forget() -> None:
    sources.fingerprint.cache_clear()
    sources._is_module.cache_clear()


@pytest.mark.usefixtures("house")
def test_modules_count_that_something_is_taken_from() -> None:
    assert sources.sources("protocols.page") == {
        "protocols.page", "bandits.play", "bandits.linear", "mpc.ops.sign", "mpc.ring",
    }  # fmt: skip
    assert sources.sources("protocols.whole") == {"protocols.whole", "mpc", "mpc.ring", "bandits.linear"}
    assert sources.sources("protocols.starts") == {"protocols.starts", "protocols.loud"}
    assert sources.sources("offline") == {"offline", "mpc.net"}


@pytest.mark.needs("sklearn")
def test_the_name_changes_with_these_and_with_no_other(house: Path) -> None:
    names = []
    for changed in ("mpc/net.py", "mpc/ops/roots.py", "protocols/loud.py", "mpc/ring.py", "bandits/linear.py"):
        page = house / changed
        page.write_text(page.read_text() + "\n# changed")
        forget()
        names.append(sources.fingerprint("protocols.page"))
    assert names[0] == names[1] == names[2] and len(set(names)) == 3


def test_a_figures_rows_do_not_depend_on_how_they_are_drawn() -> None:
    for module in ("ppcb_rewards", "ppcb_attack", "ppcb_costs"):
        found = sources.sources(f"protocols.figures.{module}")
        assert f"protocols.figures.{module}" in found and "bandits.environments" in found
        assert not {name for name in found if name.endswith(("_plots", ".picture", ".style", ".making"))}
    rewards, attack = (sources.sources(f"protocols.figures.{name}") for name in ("ppcb_rewards", "ppcb_attack"))
    assert {"protocols.ppcb.algorithm_1", "offline.dealing", "mpc.ops.argmax"} <= rewards
    assert not {name for name in attack if name.startswith(("mpc.ops", "offline", "protocols.ppcb"))}
