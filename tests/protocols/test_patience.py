"""Who waits in each decision says so in a round's time, and gives up in it: only who waits for the end is patient."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from protocols.run import options

from .harness import masked

PROGRAMS = [
    "ppcb --data synthetic --arms 3 --dim 4 --parties 2 --steps 6", "samba --arms 4 --hosts 2 --budget 12",
    "linucb-ds --dim 2 --arms 3 --budget 6", "linucb-ds --dim 2 --arms 3 --budget 6 --hide-arms",
    "spectralucb-ds --dim 2 --arms 6 --budget 6", "helba --parties 2 --steps 6",
]  # fmt: skip


@pytest.mark.parametrize("words", PROGRAMS)
def test_who_is_told_something_in_each_decision_is_not_patient(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the parties, which do not hear for whom it waits, take it for the one that is silent."""
    told, patient, real = Counter[str](), dict[str, bool](), options.simulate

    def simulated(program: Any, **how: Any) -> Any:
        patient.update((role.name, role.patient) for role in program.roles)
        run = real(program, **how)
        for entry in run.ledger:
            told[entry.role] += entry.count
        return run

    monkeypatch.setattr(options, "simulate", simulated)
    assert masked(capsys, "run", *words.split(), "--json")[0] == 0
    assert patient and told
    assert [name for name, waits in patient.items() if waits and told[name] > 1] == []
