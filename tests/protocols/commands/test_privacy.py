"""`masked privacy` as a user meets it."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("dp_accounting", reason="the extra 'privacy' is not installed")

from bandits.accounting import pld
from bandits.privacy import advanced, basic, eta_bound, eta_per_step
from offline import InsecureSeededDealer
from protocols.cli import main
from protocols.commands import privacy

from .. import harness
from ..harness import Output, masked, refused


@pytest.fixture
def seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The audit's coins come from a fixed seed."""
    monkeypatch.setattr(privacy, "InProcessDealer", lambda parties: InsecureSeededDealer(parties, 1))


def document(capsys: Output, *arguments: str) -> dict[str, object]:
    return harness.document(capsys, "privacy", *arguments)


def test_the_document_has_the_numbers_of_the_formulas(capsys: Output) -> None:
    eta = eta_per_step(10, 0.1)
    assert document(capsys) == {
        "arms": 10, "eps": 0.1, "steps": 60_000, "delta": 1e-6, "eta_per_step": eta, "eta_bound": eta_bound(10, 0.1),
        "pld": pld(10, 0.1, 60_000, 1e-6), "basic": basic(eta, 60_000), "advanced": advanced(eta, 60_000, 1e-6),
    }  # fmt: skip


def test_the_inverse_gives_the_wanted_eta(capsys: Output) -> None:
    facts = document(capsys, "--arms", "5", "--eta", "2.5", "--steps", "10", "--delta", "1e-5")
    assert facts["eta_per_step"] == pytest.approx(2.5)
    assert facts["eps"] == pytest.approx(5 / (math.exp(2.5) + 4))
    assert (facts["steps"], facts["delta"]) == (10, 1e-5)


def test_no_exploration_is_no_guarantee(capsys: Output) -> None:
    facts = document(capsys, "--eps", "0")
    assert {name for name, value in facts.items() if value is None} == {
        "eta_per_step", "eta_bound", "pld", "basic", "advanced"
    }  # fmt: skip
    main(["privacy", "--eps", "0"])
    said = capsys.readouterr().out
    assert said.count("no guarantee") == 5 and "Choose --eps above 0" in said


def test_the_text_says_what_it_means_and_against_whom(capsys: Output) -> None:
    main(["privacy", "--eps", "0.1", "--arms", "10"])
    said = capsys.readouterr().out
    for words in ("4.511", "4.605", "270,652", "245,309", "at most 91 times", "everyone but the dealer", "T - t + 1",
                  "promises nothing in practice"):  # fmt: skip
        assert words in said
    main(["privacy", "--eps", "0.99", "--steps", "50"])
    assert "promises nothing" not in capsys.readouterr().out


@pytest.mark.usefixtures("seeded")
def test_an_audit_bounds_eta_from_below(capsys: Output) -> None:
    """Exceeds eta at p < 1e-3, on a fixed seed."""
    facts = document(
        capsys, "--audit", "--runs", "4000", "--parties", "2", "--arms", "3", "--eps", "0.5", "--steps", "5"
    )
    found = facts["audit"]
    assert isinstance(found, dict)
    assert found["respected"] is True and found["eta_stated"] == facts["eta_per_step"]
    assert 0.5 < found["eta_at_least"] <= found["eta_stated"]
    assert (found["runs"], found["parties"], found["confidence"]) == (4000, 2, 0.999)


@pytest.mark.usefixtures("seeded")
def test_an_audit_that_finds_a_leak_says_so_and_fails(capsys: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secure choice explores a tenth as often as is stated."""
    honest = privacy.secure_chooser
    monkeypatch.setattr(privacy, "secure_chooser", lambda session, eps: honest(session, eps / 10))
    with pytest.raises(SystemExit) as end:
        main(["privacy", "--audit", "--runs", "4000", "--parties", "2", "--arms", "3", "--eps", "0.5", "--steps", "5"])
    assert end.value.code == 1
    assert "VIOLATED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "cure"),
    [
        ("--eps 0.1 --eta 3", "not allowed with"),
        ("--eps 1.5", "eps in [0, 1]"),
        ("--eps nan", "eps in [0, 1]"),
        ("--eps 1e-20", "choose --eps from 9.1e-13"),
        ("--eta 40", "--eta up to 30.0"),
        ("--eta inf", "--eta up to 30.0"),
        ("--eta -1", "eta >= 0"),
        ("--eta nan", "eta >= 0"),
        ("--arms 0", "at least 1 arm"),
        ("--arms 0 --eta 3", "at least 1 arm"),
        ("--steps 0", "1 to 10,000,000"),
        ("--steps 100000000", "1 to 10,000,000"),
        ("--delta 0", "such as 1e-6"),
        ("--delta 1e-15", "larger delta"),
        ("--runs 5", "add --audit"),
        ("--parties 3", "add --audit"),
        ("--audit --runs 1", "at least 2 runs"),
        ("--audit --parties 1", "at least 2 parties"),
        ("--audit --eps 0", "--eps above 0"),
        ("--audit --arms 1001", "1000 arms"),
    ],
)
def test_a_mistake_is_one_line_with_the_cure(arguments: str, cure: str, capsys: Output) -> None:
    refused(masked(capsys, "privacy", arguments), cure)
