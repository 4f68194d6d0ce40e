"""`masked offline seal` at the dealer, `masked offline open` at the party."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpc.bilinear import MULTIPLY
from mpc.correlations import ProductMask
from mpc.net.certificates import CERTIFICATE_FILE
from offline import Plan, deal
from protocols.cli import main

from ...parties.members import identity

PLAN = Plan("sealed", 2, (ProductMask(MULTIPLY, (40,), (40,)),))


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, (dealer, _), (party, own) = deal(PLAN, 3, tmp_path / "dealt")[0], identity(5), identity(0)
    file, mine = tmp_path / "party.sealed", tmp_path / "mine"
    main(["offline", "seal", str(home), "--to", f"{party}/{CERTIFICATE_FILE}", "--own", str(dealer), "-o", str(file)])
    said = capsys.readouterr().out
    assert own.spoken in said and "tell 'node 0' that it holds store " in said
    store = said[said.index("store ", said.index("holds")) :].rstrip()
    main(
        [
            "offline",
            "open",
            str(file),
            "--dealer",
            f"{dealer}/{CERTIFICATE_FILE}",
            "--own",
            str(party),
            "--out",
            str(mine),
        ]
    )
    said = capsys.readouterr().out
    assert "3 of 3 steps are left" in said and f"{store}, session 'local'" in said
    with pytest.raises(SystemExit):
        main(
            [
                "offline",
                "open",
                str(home / "key"),
                "--dealer",
                f"{dealer}/{CERTIFICATE_FILE}",
                "--own",
                str(party),
                "--out",
                "x",
            ]
        )
    assert "is no sealed material" in capsys.readouterr().err
