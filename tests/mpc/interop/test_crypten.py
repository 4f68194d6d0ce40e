"""Words that go from CrypTen to a share and back.  The parties are processes of the Python that has CrypTen."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from mpc import ConfigError
from mpc.interop.crypten import PYTHON, crypten_python, load
from mpc.launch import own_command
from tests.parties.processes import Launched

pytest.importorskip("torch", reason="the extra 'torch' is not installed")

from tests.parties.on_crypten import EDGES, REALS


@pytest.mark.parametrize("parties", [2, 3])
def test_a_tensor_is_a_share_and_back_to_its_last_bit(parties: int) -> None:
    launched = Launched(
        own_command("tests.parties.on_crypten", python=crypten_python()), parties, transport="gloo",
        load=["mpc.interop.crypten:load"], timeout=280, limit=300,
    )  # fmt: skip
    assert launched.error is None
    told = [launched.outcome(f"party {party}") for party in range(parties)]
    for said in told:
        carried, both = said["there and back"], said["together"]
        assert carried["here"] == carried["back"] == EDGES.tolist()
        assert carried["cost"] == [0, 0], "neither a round nor a byte"
        assert carried["same words"] == carried["same words back"] == 0, "words are fresh on either side"
        assert both["scale"] == 20 and np.allclose(both["here"], REALS * REALS, atol=2.0**-40)
        assert np.allclose(both["there"], REALS * REALS, atol=2.0**-18)
        assert said["decoded"] == [-131071 / 65536], "CrypTen itself says -3"
        assert said["one seed"], "the seed of CrypTen's masks has 32 bits"
        for words, given in zip(
            ("TypeError: an arithmetic CrypTensor", "RangeError: a share with 8 fraction bits, and CrypTen multiplies",
             "TypeError: a share mod 2^8", "ConfigError: CrypTen plays one party", "ConfigError: CrypTen plays one"),
            said["refusals"], strict=True,
        ):  # fmt: skip
            assert given.startswith(words)


def test_where_crypten_is_missing_the_cure_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="run scripts/setup_crypten"):
        load()
    monkeypatch.setattr("mpc.interop.crypten.__file__", str(tmp_path / "mpc" / "interop" / "crypten.py"))
    with pytest.raises(ConfigError, match="run scripts/setup_crypten, or name a Python"):
        crypten_python()
    monkeypatch.setenv(PYTHON, str(tmp_path / "python"))
    with pytest.raises(ConfigError, match=f"{PYTHON} names .*, which cannot be run"):
        crypten_python()
