#!/usr/bin/env python3
"""Measures one step of the private contextual bandit in CrypTen, a peer framework: time, rounds, bytes and error.

Run it with the environment that scripts/setup_crypten makes. The algorithm is epsilon-greedy of "Privacy-preserving
contextual bandits" (Hannun, Knott, Sengupta, van der Maaten), Algorithm 1, with every state, score and coin in shares:

    s_a = w_a . x;  with probability eps random scores instead;  o = one-hot argmax of s, opened to the puller
    u_a = P_a x;  P_a -= o_a u_a u_a' / (1 + x'u_a);  b_a += o_a r x;  w_a = P_a b_a          for every arm a

CrypTen's own example of it is written for an earlier version and does not run with 0.4.1. What it fixes is taken from
it: 20 fraction bits, 7 Newton iterations for the reciprocal, before which CrypTen finds the sign, and eps = 0.01. The
rest is CrypTen's default, above all its argmax (log_reduction) and its provider, TrustedFirstParty, which has party 0
deal the correlated randomness inside the measured call, almost free of communication. The example also opens each
reward for its log, one round more; that is left out.

One process per party; they talk over torch.distributed (gloo) on the loopback interface, one thread each. Party 0
shares the contexts, pulls the arms and shares the rewards: in CrypTen it costs nothing who does.

  microseconds     median over the steps, after two warm-ups; a barrier precedes each step, and the time of a step is
                   that of its slowest party
  rounds           collective calls, as CrypTen's communicator counts them, in one step more, not timed
  bytes_per_party  from the same step: bytes sent plus bytes received, mean over the parties
  max_error        over all steps, the greatest of: the distance of w from that of a twin in the clear, which learns
                   from the same arms and rewards; the distance of o from a one-hot vector; and, unless the coin said
                   to explore, how far the twin's score of the pulled arm is below its best. Beyond the tolerance the
                   row is an error
"""

import argparse
import functools
import sys
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from peer_crypten import (
    PLAINTEXT_SEED,
    WARM_UPS,
    Report,
    add_options,
    at_least,
    import_crypten,
    make_ready,
    measure_row,
    write_rows,
)

PULLER = 0  # also owns the contexts and is paid
TOLERANCE = 0.01
METHODS = ("log_reduction", "double_log_reduction", "accelerated_cascade", "pairwise")
EXAMPLE = {"encoder.precision_bits": 20, "functions.reciprocal_nr_iters": 7}


@dataclass(frozen=True)
class Setting:
    """What is measured.  known_sign: tell CrypTen that 1 + x'u is positive, which its example does not."""

    arms: int
    dim: int
    steps: int
    eps: float
    method: str
    known_sign: bool

    def config(self) -> dict[str, Any]:
        """CrypTen's configuration for it."""
        return EXAMPLE | {"functions.max_method": self.method, "functions.reciprocal_all_pos": self.known_sign}


def unit_rows(rng: np.random.Generator, rows: int, dim: int) -> np.ndarray:
    """Uniform directions."""
    values = rng.normal(size=(rows, dim))
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def draw_world(setting: Setting, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Contexts, (steps, dim), and what each arm would pay, (steps, arms): 1 with probability (1 + theta_a . x) / 2."""
    rng = np.random.default_rng(PLAINTEXT_SEED)
    contexts, thetas = unit_rows(rng, steps, setting.dim), unit_rows(rng, setting.arms, setting.dim)
    return contexts, (2 * rng.random((steps, setting.arms)) < 1 + contexts @ thetas.T).astype(float)


class Twin:
    """The bandit in the clear: it does not choose, but learns from the arms it is told and judges them."""

    def __init__(self, arms: int, dim: int) -> None:
        self.inverse = np.tile(np.eye(dim), (arms, 1, 1))
        self.rewarded = np.zeros((arms, dim))

    def weights(self) -> np.ndarray:
        """w_a = P_a b_a."""
        return np.einsum("aij,aj->ai", self.inverse, self.rewarded)

    def fault(self, x: np.ndarray, onehot: np.ndarray, explore: float) -> float:
        """How far a choice is from a right one."""
        scores, arm = self.weights() @ x, onehot.argmax()
        regret = scores.max() - scores[arm] if explore == 0 else abs(explore - 1)
        return max(regret, np.abs(onehot - (np.arange(len(onehot)) == arm)).max())

    def update(self, x: np.ndarray, arm: int, reward: float) -> None:
        """Sherman and Morrison, for the pulled arm."""
        u = self.inverse[arm] @ x
        self.inverse[arm] -= np.outer(u, u) / (1 + x @ u)
        self.rewarded[arm] += reward * x


class PrivateBandit:
    """One party's shares of the bandit; everything in it is a CrypTen tensor."""

    def __init__(self, setting: Setting) -> None:
        self.crypten, self.torch = import_crypten()
        self.eps, self.arms = setting.eps, setting.arms
        self.inverse = self.share(np.tile(np.eye(setting.dim), (setting.arms, 1, 1)))  # P
        self.rewarded = self.share(np.zeros((setting.arms, setting.dim)))  # b
        self.weights = self.share(np.zeros((setting.arms, setting.dim)))

    def share(self, values: np.ndarray) -> Any:
        """A sharing of party 0's values; the others' matter for their shape only."""
        return self.crypten.cryptensor(self.torch.tensor(values, dtype=self.torch.float), src=PULLER)

    def step(self, context: np.ndarray, outcomes: np.ndarray) -> tuple[Any, Any]:
        """One step; gives the one-hot arm, which only the puller is told, and the coin, still shared."""
        x = self.share(context)
        scores = self.weights.matmul(x)
        explore = self.crypten.bernoulli(self.torch.tensor([self.eps]))
        scores = scores * (1 - explore) + self.crypten.rand(self.arms) * explore
        onehot = scores.argmax(one_hot=True)

        told = onehot.get_plain_text(dst=PULLER)
        reward = self.share(np.zeros(1) if told is None else outcomes[told.argmax()][None])

        u = self.inverse.matmul(x)
        outer = u.unsqueeze(1) * u.unsqueeze(2)
        gain = outer * (u.matmul(x) + 1).view(-1, 1, 1).reciprocal()
        self.inverse -= gain * onehot.view(-1, 1, 1)
        self.rewarded += (x * reward).unsqueeze(0) * onehot.unsqueeze(1)
        self.weights = self.rewarded.unsqueeze(1).matmul(self.inverse).squeeze(1)
        return told, explore


def measure_bandit(setting: Setting, party: int) -> Report:
    """One party's part: the time of each step, then the communication of one more; all steps are checked."""
    crypten, torch = import_crypten()
    communicator = crypten.communicator.get()
    contexts, outcomes = draw_world(setting, WARM_UPS + setting.steps + 1)
    twin = Twin(setting.arms, setting.dim)
    times, faults = [], []
    with crypten.cfg.temp_override(setting.config()):
        bandit = PrivateBandit(setting)
        for x, paid in zip(contexts, outcomes, strict=True):
            counted = len(times) == WARM_UPS + setting.steps
            communicator.reset_communication_stats()
            communicator.barrier()
            with crypten.cfg.temp_override({"communicator.verbose": counted}):
                started = time.perf_counter_ns()
                told, explore = bandit.step(x, paid)
                times.append((time.perf_counter_ns() - started) / 1000)
            # For the check alone, untimed and uncounted, everybody learns the arm, the coin and the weights.
            told = torch.zeros(setting.arms, dtype=torch.long) if told is None else told
            onehot = communicator.broadcast(told, PULLER).numpy()
            faults.append(twin.fault(x, onehot, float(explore.get_plain_text())))
            twin.update(x, onehot.argmax(), paid[onehot.argmax()])
            faults.append(np.abs(bandit.weights.get_plain_text().numpy() - twin.weights()).max())
    max_error = float(np.max(faults))
    if not max_error <= TOLERANCE:
        raise ArithmeticError(f"the bandit is off its twin in the clear by {max_error:g}, more than {TOLERANCE:g}")
    counts = communicator.get_communication_stats()
    return {"times": times[WARM_UPS:-1], "rounds": counts["rounds"], "bytes": counts["bytes"], "max_error": max_error}


def probability(text: str) -> float:
    """A type for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"must be a probability, from 0 to 1, not {text!r}")
    return value


def main() -> None:
    """Reads the command line, measures one row per argmax method, and writes the rows as one JSON document."""
    epilog = f"example: {sys.argv[0]} --parties 2 --arms 10 --dim 20 --steps 10 --json -"
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, "row")
    parser.add_argument("--arms", type=at_least(2), default=10, help="number of arms (default: %(default)s)")
    parser.add_argument("--dim", type=at_least(1), default=20, help="features of a context (default: %(default)s)")
    parser.add_argument("--steps", type=at_least(1), default=10, help="timed steps of each row (default: %(default)s)")
    parser.add_argument("--eps", type=probability, default=0.01, help="chance of exploring (default: %(default)s)")
    methods_help = f"argmax methods, a row for each, from {', '.join(METHODS)} (default: %(default)s)"
    parser.add_argument("--methods", metavar="M,M", default="log_reduction,pairwise", help=methods_help)
    sign_help = "spare CrypTen finding the sign of 1 + x'u, which is positive; its example does not"
    parser.add_argument("--known-sign", action="store_true", help=sign_help)
    options = parser.parse_args()
    methods = options.methods.split(",")
    if unknown := [method for method in methods if method not in METHODS]:
        parser.error(f"--methods: no method is called {', '.join(unknown)}; choose from {', '.join(METHODS)}")
    make_ready(parser, options.json)

    rows = []
    for method in methods:
        setting = Setting(options.arms, options.dim, options.steps, options.eps, method, options.known_sign)
        labels = {"program": "ppcb", "parties": options.parties, "arms": options.arms, "dim": options.dim}
        labels |= {"method": method, "known_sign": options.known_sign}
        rows.append(measure_row(labels, options.timeout, functools.partial(measure_bandit, setting)))
    write_rows(rows, options.json)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
