"""A whole run on ciphertexts, in one process or in three, beside the policy in the clear."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from bandits.helba import HELBA, Problem, play
from mpc.ledger import Ledger
from mpc.net.transport import DEFAULT_TIMEOUT

from ...published import kept
from ...published.ckks import Vault
from ...published.drive import STEPS, Times, Watch
from ...published.outcome import whole_ledger
from ...published.participant import launched, played_here
from ...run.folder import Keep
from ...run.program import fingerprint
from ...run.report import Report, learned, ledger_json
from ..beside import Beside, facts, picture, said
from ..clients import check_all
from .cast import KEEPING, PUBLISHED, cast_of, play_of
from .messages import Role
from .outcome import Outcome
from .refresh import DISTANCE
from .server import Seen
from .settings import Settings


@dataclass(frozen=True)
class CkksRun(Beside):
    """What the participants ended with.  start: steps of earlier sittings."""

    mode, where, near = "ckks", "on ciphertexts", 1e-3

    settings: Settings
    outcomes: dict[str, Outcome]
    parts: dict[str, Times] = field(repr=False)
    processes: bool
    start: int = 0

    @property
    def server(self) -> Outcome:
        """Of the server, who counts."""
        return self.outcomes[Role.SERVER]

    @property
    def distance(self) -> float:
        """Statistical, of all that users see of masked numbers from nothing at all; at most."""
        return self.server.masked * DISTANCE

    @property
    def ledger(self) -> Ledger:
        """Of all participants."""
        return whole_ledger(self.outcomes.values())

    @property
    def seconds_per_step(self) -> float:
        """On the server's clock; keys are not in it."""
        return self.parts[Role.SERVER][STEPS].wall / max(1, self.settings.steps - self.start)

    @property
    def cpu_seconds_per_step(self) -> float:
        """Of the processor, keys and all, for the steps of this sitting."""
        return self.cpu_seconds / max(1, self.settings.steps - self.start)

    @property
    def cpu_seconds(self) -> float:
        """Of the processor, in this sitting."""
        spent = self.parts.values() if self.processes else [self.parts[Role.SERVER]]
        return sum(part.processor for parts in spent for part in parts.values())


def play_ckks(
    settings: Settings,
    problem: Problem,
    *,
    processes: bool = False,
    watch: Watch | None = None,
    look: Callable[[Vault], Seen] | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    keep: Keep | None = None,
) -> CkksRun:
    """HELBA as published.

    processes: a process for each participant.  watch: is told how many steps are done.  timeout: seconds of silence.
    look: in one process, given the key, what is shown the server's ciphertexts.  keep: where arms and ends are kept.
    """
    vault = Vault(settings.scheme)  # says what is missing or refused before anything starts
    check_all(problem.features, problem.rewards, settings.constants)
    run, start = _begun(settings, problem, keep)
    cast = cast_of(settings, problem, keep=keep, run=run, start=start)
    if processes:
        outcomes, parts = launched(PUBLISHED, cast, watch=watch, timeout=timeout, keep=keep)
    else:
        seen = None if look is None else look(vault)
        outcomes, parts = played_here(cast, partial(play_of, watch=watch, vault=vault, seen=seen))
    arms, ends = np.array(outcomes[Role.USER].arms), np.array(outcomes[Role.SERVER].ends)
    twin = play(HELBA(settings.constants), problem, arms, near=CkksRun.near)
    return CkksRun(settings, problem, arms, ends, twin, outcomes, parts, processes, start)


def _begun(settings: Settings, problem: Problem, keep: Keep | None) -> tuple[str, int]:
    """The name of the run, and how many of its steps are kept."""
    if keep is None:
        return "", 0
    facts = {**settings.as_json(), "inputs": fingerprint(problem.features, problem.rewards)}
    homes = [keep.folder / role.value for role in KEEPING]
    if not keep.resume:
        return kept.begin(keep, homes, facts), 0
    have, start = kept.go_on(keep.folder, homes, facts, whose="server and user: run without --resume")
    return have["run"], start


def report(run: CkksRun, seed: int) -> Report:
    """What every HELBA has, then ciphertexts and what refreshing them tells."""
    server, steps, scheme = run.server, run.settings.steps, run.settings.scheme
    document: dict[str, Any] = {
        "program": "helba", "steps": steps, "seed": seed, **facts(run),
        "seconds_per_step": run.seconds_per_step,
        "cpu_seconds_per_step": run.cpu_seconds_per_step,
        "rounds_per_step": server.rounds / steps,
        "offline_bytes_per_step": server.key_bytes / steps,
        "security": scheme.security, "degree": scheme.degree, "modulus_bits": scheme.bits,
        "refreshes": server.refreshes, "masked_numbers": server.masked, "statistical_distance": run.distance,
        "ledger": ledger_json(run.ledger),
    }  # fmt: skip
    lines = [
        *said(run), "",
        f"a step took {run.seconds_per_step:.2f} s, {run.cpu_seconds_per_step:.2f} s of the processor, and "
        f"{server.rounds / steps:.1f} answers of its user; keys of {server.key_bytes / 1e6:.0f} MB",
        f"{server.refreshes:,} refreshes of {server.masked:,} numbers under masks of 32 bits: what users see is within "
        f"{run.distance:.1g} of nothing; {scheme.security} bits of security by SEAL's guard",
        "", *learned(run.ledger),
    ]  # fmt: skip
    return Report(document, "\n".join(lines), steps, lambda path: picture(run, path))
