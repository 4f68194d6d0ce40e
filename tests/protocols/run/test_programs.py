"""What a program may be: it may draw nothing, its roles have names that files can have, and a client may not hang."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from mpc import ConfigError
from mpc.errors import PeerLost
from protocols.run.desk import FileDesk
from protocols.run.launch import Processes, launch
from protocols.run.simulate import simulate

from .adding import Adding

SITES = ["site A", "site B"]
NUMBERS = np.arange(10).reshape(5, 2)


@pytest.mark.parametrize("parties", [2, 3])
def test_a_program_that_draws_nothing_needs_no_dealer(parties: int) -> None:
    program = Adding(parties, SITES, 5, False, NUMBERS)
    assert simulate(program, seed=1) == launch(program, Processes(timeout=100.0)) == 45


def test_material_for_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="draws nothing: leave out --material"):
        launch(Adding(2, SITES, 5, False, NUMBERS), Processes(material=Path("nowhere")))


def test_what_follows_the_last_decision_draws_nothing() -> None:
    with pytest.raises(ConfigError, match="what follows the last one draws nothing"):
        launch(Adding(2, SITES, 2, True, NUMBERS[:2]), Processes(timeout=100.0))


@pytest.mark.parametrize("sites", [["site/A"], ["site A", "site-A"], ["party 0"], ["..", "a\nb"]], ids=repr)
def test_names_that_no_file_can_have_are_refused_in_one_process_too(sites: list[str]) -> None:
    program = Adding(2, sites, 1, False, np.zeros((1, len(sites)), np.int64))
    for play in (lambda: simulate(program, seed=1), lambda: launch(program, Processes())):
        with pytest.raises(ConfigError, match="a role is named by letters, digits and spaces"):
            play()


def test_a_client_that_says_nothing_at_the_pipe_is_named(tmp_path: Path) -> None:
    """The one who waits there says so before those lose it who wait for it."""
    os.mkfifo(tmp_path / "world")
    said: list[str] = []
    desk = FileDesk(
        start=0, kept=None, keeps=None, notes=None, pipe=tmp_path / "world", others=[(3, "puller")], timeout=0.1,
        waiting=said.append,
    )  # fmt: skip
    with pytest.raises(PeerLost, match=r"puller was silent for 0\.3 s: it hangs") as lost:
        desk.hear((1,))
    assert lost.value.peer == 3
    assert said == ["puller"], "those who wait for this client meanwhile"
