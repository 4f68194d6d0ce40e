"""The shop's and the bank's files play in a short form; payments come late and in any order."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.ppcb.command import PPCB
from protocols.ppcb.program import PAYER, PULLER
from protocols.run.member_process import apart_of

from ..protocols.machines import Machines, good
from .written import meet, written

PLACE = Path(__file__).resolve().parents[2] / "examples/offer_engine"
OPTIONS = {"steps": 24, "arms": 4, "dim": 7, "owners": "4,3", "delay": 20, "eps": 0.1}


@pytest.fixture(scope="module")
def customers() -> dict[str, Any]:
    """The example's own."""
    return runpy.run_path(str(PLACE / "customers.py"))


def test_the_files_are_those_that_are_made(customers: dict[str, Any], tmp_path: Path) -> None:
    customers["make"](tmp_path)
    for owner in ("shop", "bank"):
        file = f"{owner}/customers.csv"
        assert (tmp_path / file).read_text() == (PLACE / file).read_text()


def test_payments_come_late_in_any_order_and_all_of_them(customers: dict[str, Any]) -> None:
    wanted = customers["uses"](customers["read"](PLACE))
    offers = [(decision, decision % 4) for decision in range(60)]
    told, came = list[tuple[int, int]](), list[tuple[int, int]]()

    def shown() -> Any:
        for offer in offers:
            told.append(offer)
            yield offer

    for decision, used in customers["payments"](shown(), wanted, 60):
        came.append((decision, used))
        assert len(told) - 1 - decision <= customers["LATEST"] < OPTIONS["delay"]
    assert sorted(came) == [(decision, int(wanted[decision, offer])) for decision, offer in offers] != came


def test_shop_and_bank_play_with_what_lies_there(
    customers: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each role in a thread; the till's lines go to the customers, and the bank's books say what came of them."""
    columns = np.split(customers["read"](PLACE)[: OPTIONS["steps"]], [4], axis=1)
    cards = [f"C{at:04}" for at in range(len(columns[0]))]
    data = {f"party {p}": block for p, block in enumerate(columns)}
    more = {PAYER: '[world]\nhear = "payments:came"'}
    machines = Machines(tmp_path, PPCB(), OPTIONS, data=data, ids=dict.fromkeys(data, cards), more=more, dealer=True)
    home = machines.home(PAYER)
    (home / "payments.py").write_text((PLACE / "bank/payments.py").read_text())
    monkeypatch.delitem(sys.modules, "payments", raising=False)
    wanted, book = customers["uses"](customers["read"](PLACE)), (home / "payments.csv").open("w")
    shown = list[tuple[int, int]]()

    def world(said: dict[str, Any]) -> None:
        shown.append((said["decision"], int(said["values"][0])))
        late = list(customers["payments"](iter(shown), wanted, OPTIONS["steps"]))
        book.seek(0)
        book.writelines(f"{decision},{used}\n" for decision, used in late)
        book.flush()

    good(machines.play(worlds=[(PULLER, PULLER, world)]))
    learned = np.array(machines.result(PULLER)["learned"]).reshape(-1)
    assert [offer for _, offer in shown] == learned.tolist() and len(learned) == OPTIONS["steps"]
    assert [(row["role"], row["count"]) for row in machines.result("party 0")["ledger"]] == [(PULLER, 24)]


def test_every_role_has_a_script_that_writes_a_file_that_fits(tmp_path: Path) -> None:
    scripts = {
        "party-0": "shop/start", "party-1": "bank/start", "puller": "shop/till", "payer": "bank/books",
        "dealer": "dealer",
    }  # fmt: skip
    files = written(PLACE, scripts, tmp_path, steps=24)
    meet(files)
    apart = apart_of(PPCB(), files["dealer"])
    assert apart.decisions == 24 and files["payer"].options == OPTIONS and files["payer"].hear == "payments:came"
    assert files["party-0"].id == files["party-1"].id == "card"
