"""HELBA on ciphertexts beside its policy in the clear: the same arms, the same batch ends, and how precise it all is.

    inverse   |A - V^-1| at a batch's begin, over eps(t_j)
    root      |sqrt(z + c) - its own| over 1 / t
    index     how far an index is off, over beta / t, which the root's bound lets it be
    bits      how far below the best an arm with b >= 1 / (4 t) is, over 2 / (4.1 t), of indices in [0, 1]

Each is the largest over the run and 1 at the paper's bound; who looks on has the key, and nobody of a run does.
The clear pulls as the run did where indices are within 1e-3, and a run fails where it pulls another arm, ends a batch
elsewhere, or misses a bound.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from bandits.helba import HELBA, Constants, Problem, fresh, toy

from ..helba.ckks.run import play_ckks
from ..helba.ckks.settings import Settings
from ..published.ckks import Ciphertext, Scheme, Vault
from ..run.exits import exit_codes
from ..run.progress import Progress


@dataclass
class Precision:
    """The largest errors over the paper's bounds."""

    inverse: float = 0.0
    root: float = 0.0
    index: float = 0.0
    bits: float = 0.0


@dataclass
class Looking:
    """Follows a run in the clear, by the arms that its bits say, and notes how far its ciphertexts are off."""

    settings: Settings
    problem: Problem
    vault: Vault
    found: Precision = field(default_factory=Precision)

    def __post_init__(self) -> None:
        self.policy = HELBA(self.settings.constants)

    def __call__(self, name: str, t: int, ciphertext: Ciphertext) -> None:
        """Look at a ciphertext of step t."""
        given, policy, x = self.settings, self.policy, self.problem.features[t - 1]
        numbers = self.vault.decrypt(ciphertext)
        own = numbers[given.layout.arm_at[: given.arms]]
        if name == "root":
            exact = np.sqrt(policy.squares(x) + policy.slack)
            self._worst("root", own * np.sqrt(given.root_range(policy.start)[1]) - exact, 1.0 / t)
        elif name == "index":
            off = own * given.index_range(t, policy.start) - 1.0 - policy.indices(x)
            self._worst("index", off, given.constants.beta(t) / t)
        elif name == "bits":
            indices = policy.indices(x)
            below = (indices.max() - indices) / given.index_range(t, policy.start)
            self._worst("bits", below[(own + 1.0) / 2.0 >= 1.0 / (4.0 * t)], 2.0 * given.precision(t))
            arm = int(own.argmax())
            policy.learn(x[arm], float(self.problem.rewards[t - 1, arm]))
        elif name == "state":
            dim, ridge = given.constants.dim, given.constants.ridge
            upper = np.zeros((dim, dim))
            upper[np.triu_indices(dim)] = numbers[: dim * (dim + 1) // 2]
            off = (upper + np.triu(upper, 1).T) / ridge - policy.inverse
            self._worst("inverse", float(np.linalg.norm(off, 2)), given.constants.eps(policy.start))

    def _worst(self, name: str, off: np.ndarray | float, bound: float) -> None:
        largest = float(np.abs(off).max(initial=0.0)) / bound
        setattr(self.found, name, max(getattr(self.found, name), largest))


def measure(settings: Settings, problem: Problem, *, progress: bool = False) -> dict[str, object]:
    """Play it in this process; one row."""
    seen: list[Looking] = []

    def look(vault: Vault) -> Looking:
        seen.append(Looking(settings, problem, vault))
        return seen[0]

    watch = Progress(settings.steps) if progress else None
    run = play_ckks(settings, problem, watch=watch, look=look)
    found = seen[0].found
    agrees = run.first_difference is None and bool(run.ends_equal) and max(asdict(found).values()) <= 1.0
    assert run.ends is not None
    return {
        "steps": settings.steps, "arms_equal": int((run.arms == run.twin.arms).sum()),
        "ends_equal": int((run.ends == run.twin.ends).sum()), "updates": int(run.ends.sum()),
        "near_ties": int((run.twin.gaps <= run.near).sum()), "smallest_gap": float(run.twin.gaps.min()),
        "over_bound": asdict(found), "refreshes": run.server.refreshes, "masked_numbers": run.server.masked,
        "statistical_distance": run.distance, "cpu_seconds": run.cpu_seconds,
        "seconds": run.seconds_per_step * settings.steps, "regret": run.regret, "agrees": agrees,
    }  # fmt: skip


def main() -> None:
    """Run, compare, print."""
    usual = Scheme()
    parser = argparse.ArgumentParser(prog="scripts/agreement_helba ckks", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    parser.add_argument("--steps", type=int, default=130, help="of the paper's problem (130)")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1], help="of its runs (1)")
    parser.add_argument("--fresh", action="store_true", help="new features at each step, batches by the trace alone")
    parser.add_argument("--degree", type=int, default=usual.degree, help="of polynomials (16384)")
    parser.add_argument("--products", type=int, default=usual.products, help="between two refreshes (2)")
    parser.add_argument("--security", type=int, default=usual.security, help="bits (128)")
    parser.add_argument("--json", type=Path, help="write the rows to this file as well")
    options = parser.parse_args()
    with exit_codes(place="name another file with --json"):
        constants = Constants(growth=None) if options.fresh else Constants()
        scheme = Scheme.of(options.degree, options.products, options.security)
        settings, rows = Settings(constants, 2, options.steps, scheme=scheme), []
        for seed in options.seeds:
            problem = (fresh if options.fresh else toy)(constants, options.steps, seed)
            row = {"seed": seed, **asdict(scheme), **measure(settings, problem, progress=True)}
            print(json.dumps(row), flush=True)
            rows.append(row)
        if options.json is not None:
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    if not all(row["agrees"] for row in rows):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
