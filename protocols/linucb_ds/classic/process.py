"""One participant of a launched classic run, in a process of its own, with its own input and nobody else's.

    DO    has  arms, constants, theta
    DC    has  the budget
    P     has  the seed of its coins
    Comp  has  nothing

Inputs and outcomes are JSON in the run's folder, `<role>.in.json` and `<role>.out.json`; keys are made in the processes
and never written.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from bandits.coins import Noise
from bandits.fixed_point import Scales
from bandits.linear_problem import Exploration, LinearProblem, ProblemError
from bandits.oful import Confidence
from bandits.spectral import SpectralConfidence
from mpc.errors import ConfigError, PeerLost
from mpc.launch import Place, end_with_launcher, party_main, place
from mpc.ledger import Ledger
from mpc.net.channel import Channel, adopt
from mpc.net.joining import call, take_calls

from ...published.paillier import Counts
from ...run.progress import StepLines
from .drive import over_links
from .messages import Role
from .roles import Outcome, Play, Watch, comparator, data_customer, data_owner, player, working

ROLES = (Role.P, Role.COMP, Role.DO, Role.DC)
"""By node: each calls those before it."""

_STRANGERS = {Role.DO, Role.DC}  # these two have nothing to say to each other


def input_path(folder: Path, role: Role) -> Path:
    """Where a participant finds its input."""
    return folder / f"{role}.in.json"


def outcome_path(folder: Path, role: Role) -> Path:
    """Where it leaves its outcome."""
    return folder / f"{role}.out.json"


def write_inputs(
    folder: Path, problem: LinearProblem, scales: Scales, *, budget: int, seed: int, noise: Noise, bits: int,
    insecure: bool,
) -> None:  # fmt: skip
    """To each its own."""
    common = {"bits": bits, "insecure": insecure}
    kind = "spectralucb" if isinstance(problem.exploration, SpectralConfidence) else "linucb"
    own: dict[Role, dict[str, Any]] = {
        Role.DO: {
            "arms": problem.arms.tolist(), "theta": problem.theta.tolist(), "kind": kind,
            "constants": constants_of(problem.exploration), "scales": asdict(scales),
        },
        Role.DC: {"budget": budget},
        Role.P: {"seed": seed, "noise": noise.value},
        Role.COMP: {},
    }  # fmt: skip
    for role, given in own.items():
        path = input_path(folder, role)
        path.touch(mode=0o600)
        path.write_text(json.dumps({**common, **given}))


def constants_of(exploration: Exploration) -> dict[str, Any]:
    """A policy's public constants by name."""
    if not isinstance(exploration, Confidence | SpectralConfidence):
        raise ConfigError(f"constants of LinUCB or SpectralUCB are wanted, not {type(exploration).__name__}")
    return asdict(exploration)


def read_outcome(folder: Path, role: Role) -> Outcome:
    """What a participant ended with."""
    given = json.loads(outcome_path(folder, role).read_text())
    ledger = Ledger()
    for entry in given["ledger"]:
        ledger.record(**entry)
    return Outcome(
        role, Counts(**given["counts"]), ledger, given["seconds"], given["arms"], given["total"], given["scale"]
    )


def _write_outcome(folder: Path, done: Outcome) -> None:
    ledger = [asdict(entry) for entry in done.ledger]
    given = {
        "counts": asdict(done.counts), "ledger": ledger, "seconds": done.seconds, "arms": done.arms,
        "total": done.total, "scale": done.scale,
    }  # fmt: skip
    outcome_path(folder, done.role).write_text(json.dumps(given))


def _play_of(role: Role, given: dict[str, Any], watch: Watch) -> Play[Outcome]:
    bits, insecure = given["bits"], given["insecure"]
    if role is Role.DC:
        return data_customer(given["budget"], bits, insecure=insecure)
    if role is Role.COMP:
        return comparator(bits, insecure=insecure)
    if role is Role.P:
        return player(given["seed"], bits, noise=Noise(given["noise"]), watch=watch)
    constants = given["constants"]
    if given["kind"] == "spectralucb":
        constants["eigenvalues"] = tuple(constants["eigenvalues"])
    exploration = (SpectralConfidence if given["kind"] == "spectralucb" else Confidence)(**constants)
    problem = LinearProblem(np.array(given["arms"]), np.array(given["theta"]), exploration)
    return data_owner(problem, Scales(**given["scales"]), bits)


def _links(here: Place, role: Role) -> dict[Role, Channel]:
    """Call those before, answer those after."""
    deadline = time.monotonic() + here.timeout
    token, links = bytes.fromhex(here.token), {}
    others = [node for node, other in enumerate(ROLES) if other is not role and {role, other} != _STRANGERS]
    try:
        for node in (other for other in others if other < here.node):
            host, port = here.addresses[node]
            links[node] = call(here.node, node, (host, port), token, deadline)
        after = [node for node in others if node > here.node]
        if after:
            links |= take_calls(here.node, adopt(here.listener), token, after, deadline)
    except PeerLost as error:
        raise PeerLost(f"{ROLES[error.peer]} did not join {role}: is it started?", peer=error.peer) from error
    return {ROLES[node]: Channel(sock, str(ROLES[node])) for node, sock in links.items()}


def main() -> None:
    """Play the participant that this process's place says."""
    here, folder = place(), Path(sys.argv[1])
    if here is None:
        raise ConfigError("a participant is started by 'masked launch linucb-ds'")
    end_with_launcher(here)
    role = ROLES[here.node]
    try:
        play = _play_of(role, json.loads(input_path(folder, role).read_text()), StepLines())
        links = _links(here, role)
        try:
            done = over_links(working(play), links, timeout=here.timeout)
        except PeerLost as error:  # a witness, not the cause: the launcher looks for these words
            raise PeerLost(f"{error} (reported by {role})", peer=error.peer) from error
        finally:
            for link in links.values():
                link.close()
    except ProblemError as error:
        raise ConfigError(str(error)) from error
    _write_outcome(folder, done)


if __name__ == "__main__":
    party_main(main)
