"""`masked attack membership`: attacks on a contextual bandit by those who see its arms and rewards, and what they find.

An arm must not tell more than its eta.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bandits.attacks import Attack, Row, attack_at_checkpoints
from bandits.attacks.sequence import ANYWHERE, ONE_ARM, REPLAY
from bandits.attacks.shadow import ARMS, STATE, WEIGHTS
from bandits.intervals import CONFIDENCE
from bandits.privacy import eta_per_step
from mpc.errors import ConfigError
from mpc.tables import plain

from ..ppcb.data_options import add_data, check_data, environment_of
from ..run.progress import Progress
from .answer import answer
from .attack import add_kind

_ALL = "all"
_NAMES = ", ".join([*(attack.value for attack in Attack), _ALL])
_ROUNDING = 1e-9
_COLUMNS = (
    ("attack", "s"), ("the adversary has", "s"), ("steps", ","), ("advantage", ">"), ("95 % interval", ">"),
    ("TPR at 1 % FPR", ">"),
)  # fmt: skip
_EXAMPLES = """examples:
  masked attack membership                                         all attacks on digits, about 10 seconds
  masked attack membership --attack sequence --eps 0.9 --runs 500  what much exploration is worth
  masked attack membership --attack yeom --data mnist --data-dir DIR --steps 60000 --checkpoints 12
  masked attack membership --plot runs/attacks.png --json
"""


@dataclass(frozen=True)
class Report:
    """What was attacked, and what each adversary reached."""

    options: argparse.Namespace
    arms: int
    dim: int
    rows: list[Row]

    @property
    def eta(self) -> float:
        """What one arm may tell."""
        return eta_per_step(self.arms, self.options.eps)

    @property
    def respected(self) -> bool:
        """No arm told more than that."""
        return all(row.arm_ratio is None or row.arm_ratio <= self.eta + _ROUNDING for row in self.rows)

    def last(self, knows: str) -> Row:
        """The last checkpoint of one adversary."""
        return [row for row in self.rows if row.knows == knows][-1]


def register(group: Any) -> None:
    """Add `membership`."""
    parser = add_kind(
        group, "membership", _attack, help_="was this context among those that the bandit learned from?",
        examples=_EXAMPLES, runs=(100, "bandits, targets or streams of an attack"), seeds="everything",
        mistakes=ValueError, picture="advantage against steps",
    )  # fmt: skip
    parser.add_argument("--attack", default=_ALL, help=f"{_NAMES} ({_ALL})")
    add_data(parser)
    parser.add_argument("--arms", type=int, default=10, help="how many arms (10)")
    parser.add_argument("--dim", type=int, default=20, help="dimensions of a context (20)")
    parser.add_argument("--eps", type=float, default=0.1, help="how often to explore (0.1)")
    parser.add_argument("--steps", type=int, default=1200, help="contexts that the bandit learns from (1200)")
    parser.add_argument(
        "--hold-out", choices=["rows", "test"], default="rows",
        help="who was not met: rows of the data that are not played, or MNIST's test file, for --attack yeom (rows)",
    )  # fmt: skip
    parser.add_argument("--checkpoints", type=int, default=4, help="how often to attack on the way (4)")


def _attack(options: argparse.Namespace) -> None:
    chosen = _chosen(options.attack)
    check_data(options)
    held_out = options.hold_out == "test"
    if held_out and chosen != [Attack.YEOM]:
        raise ConfigError(
            "--hold-out test is for --attack yeom: the others need targets among the rows that are played"
        )
    environment = environment_of(options, held_out=held_out)
    if not environment.drawn:
        raise ConfigError(
            f"{options.data} pays real numbers: attacks count rewards of 0 and 1, so give it a column label"
        )
    rows = []
    for attack in chosen:
        progress = Progress(options.steps, f"{attack.value}: step")
        rows += attack_at_checkpoints(
            environment, attack, eps=options.eps, steps=options.steps, checkpoints=options.checkpoints,
            runs=options.runs, seed=options.seed, watch=progress,
        )  # fmt: skip
        progress.end()
    report = Report(options, environment.arms, environment.dim, rows)

    def picture(path: Path) -> None:
        from .attack_plots import advantages  # matplotlib takes a while to import

        advantages(rows, f"{environment.name}, {environment.arms} arms, eps = {options.eps:g}", path)

    answer(options, document(report), text(report), picture=picture, respected=report.respected)


def _chosen(name: str) -> list[Attack]:
    found = [attack for attack in Attack if name in (attack.value, _ALL)]
    if not found:
        raise ConfigError(f"--attack is one of {_NAMES}, not {name!r}")
    return found


def document(report: Report) -> dict[str, Any]:
    """The facts as other tools read them; shares of 1, and null for what is infinite or not said."""
    given = report.options
    facts = {name: getattr(given, name) for name in ("data", "eps", "steps", "checkpoints", "runs", "seed")}
    rows = [
        {
            "attack": row.attack, "knows": row.knows, "step": row.step, "advantage": row.advantage.value,
            "lower": row.advantage.lower, "upper": row.advantage.upper, "tpr_at_1_percent_fpr": row.advantage.tpr,
            "members": row.advantage.members, "others": row.advantage.others,
            "largest_log_ratio_of_an_arm": _finite(row.arm_ratio), "largest_log_ratio": _finite(row.total_ratio),
        }
        for row in report.rows
    ]  # fmt: skip
    return {
        **facts, "arms": report.arms, "dim": report.dim, "confidence": CONFIDENCE,
        "eta_per_step": _finite(report.eta), "respected": report.respected, "rows": rows,
    }  # fmt: skip


def text(report: Report) -> str:
    """A table and what it means."""
    given = report.options
    head = (
        f"{given.data}, {report.arms} arms, {report.dim} dimensions, exploration {given.eps:g}: {given.runs:,} runs of "
        f"{given.steps:,} steps"
    )
    rows, before = [], ("", "")
    for row in report.rows:
        names = (row.attack if row.attack != before[0] else "", row.knows if row.knows != before[1] else "")
        before, found = (row.attack, row.knows), row.advantage
        interval = f"{_percent(found.lower)} to {_percent(found.upper)}"
        rows.append((*names, row.step, _percent(found.value), interval, f"{100 * found.tpr:.1f} %"))
    return "\n".join([head, "", *plain(_COLUMNS, rows), "", *_meaning(report)])


def _meaning(report: Report) -> list[str]:
    lines = ["advantage  members taken for members, less others taken for members: 0 is a guess, 100 % certainty"]
    attacks = {row.attack for row in report.rows}
    if Attack.YEOM.value in attacks:
        found = [row.advantage for row in report.rows if row.attack == Attack.YEOM.value]
        best = _percent(max(advantage.value for advantage in found))
        clear = sum(advantage.lower > 0 for advantage in found)
        lines.append(
            f"yeom       at most {best}; {clear} of {len(found)} intervals above 0, where guesses have 1 in 40"
        )
    if Attack.SHADOW.value in attacks:
        arms, weights, state = (_percent(report.last(knows).advantage.value) for knows in (ARMS, WEIGHTS, STATE))
        lines += [
            "shadow     knows all but the coins and whether the target or its double was met:",
            f"           {arms} from the arms of queries at the end, {weights} from the weights and {state} from the",
            "           inverse matrices, which the private bandit keeps in shares",
        ]
    if Attack.SEQUENCE.value in attacks:
        lines += _of_sequence(report)
    return lines


def _of_sequence(report: Report) -> list[str]:
    one, every, anywhere = (_percent(report.last(knows).advantage.value) for knows in (ONE_ARM, REPLAY, ANYWHERE))
    cap = 100 * (1 - report.options.eps)
    lines = [
        "sequence   knows all contexts but one, and which two that one may be, as differential privacy supposes:",
        f"           {one} from its own arm, where exploration allows {cap:g} %, and {every} from all arms;",
        f"           {anywhere} for who knows public contexts only, and not the step",
    ]
    if not math.isfinite(report.eta):
        return [*lines, "           without exploration there is no eta: an arm may rule a context out"]
    ratio = max(row.arm_ratio for row in report.rows if row.arm_ratio is not None)
    verdict = "respected" if report.respected else "VIOLATED: an arm told more than is stated"
    return [*lines, f"           largest log-ratio of an arm {ratio:.4f}, eta {report.eta:.4f}: {verdict}"]


def _percent(share: float) -> str:
    return f"{100 * share:+.1f} %"


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
