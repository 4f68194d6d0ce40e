"""`masked evaluate LOG`: what a private bandit would have earned, from a log of what was pulled and paid.

Knows columns of a file and words for people; `ppcb.library.log_evaluation` does the rest.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpc.errors import ConfigError, RangeError
from mpc.extras import extra
from mpc.tables import plain

from ..run.folder import PICTURES, check_picture
from ..run.options import natural
from ..run.progress import Progress
from ..run.report import learned, ledger_json
from .answer import add_json, answer

if TYPE_CHECKING:
    from bandits.columns import NamedLog
    from bandits.csv_table import Table
    from bandits.off_policy import Finding

    from ..ppcb.library.log_evaluation import LogEvaluation

_COLUMNS = (("by", "s"), ("estimate", "s"), ("95 % interval", "s"), ("rows", "s"), ("", "s"))
_COLUMNS_OF = ("context", "action", "reward", "propensity", "greedy")  # options that name columns
_WIDTH = 60  # of the table, so that it stands in a narrow terminal
_NAMES = {"average": "average", "replay": "replay", "ips": "IPS", "snips": "SNIPS", "dr": "DR"}
_ROOM = "choose --ridge and --alpha nearer 1, or fewer --rows, or leave out rows of so small a propensity"
_EXAMPLES = """examples:
  masked evaluate trial.csv --context age,bp,dose --action drug --reward cured --propensity p --owners 2,1
  masked evaluate shop.parquet --context age,visits --action offer --reward paid --in-the-clear
  masked evaluate run.csv --action arm --reward reward --greedy best --logged-eps 0.1
  masked evaluate odd.csv --context '"age, years",bp' --action drug --reward cured --propensity p

CSV (any delimiter, encoding, decimal comma, packed or not), Parquet (extra 'parquet'), JSON lines, or the .npz and .csv
that bandits.logs writes. The policy learns from the first part of the log and is judged on the rest.
"""


def register(commands: Any, _: Sequence[str]) -> None:
    """Add `evaluate`."""
    parser = commands.add_parser(
        "evaluate", help="what a private bandit would have earned, from a log", epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("log", metavar="LOG", help="file with a row for each decision")
    columns = parser.add_argument_group("columns")
    columns.add_argument(
        "--context", type=_words, metavar="A,B,...",
        help="what was known (x0, x1, ...); a name with a comma in it is quoted, as in CSV: '\"age, years\",bp'",
    )  # fmt: skip
    columns.add_argument("--action", metavar="NAME", help="the arm that was pulled (arm)")
    columns.add_argument("--reward", metavar="NAME", help="what it paid (reward)")
    chance = columns.add_mutually_exclusive_group()
    chance.add_argument("--propensity", metavar="NAME", help="how likely the arm was (propensity, where there is one)")
    chance.add_argument("--greedy", metavar="NAME", help="whether it was the best arm, by a logger that explored")
    columns.add_argument("--logged-eps", type=float, metavar="E", help="with --greedy: how often it explored")
    columns.add_argument("--arms", type=int, metavar="K", help="with --greedy: how many arms it had (those in the log)")
    columns.add_argument("--owners", type=_counts, metavar="2,1", help="columns of the context that each owner has")
    columns.add_argument("--rows", type=int, metavar="N", help="only the first N rows")
    policy = parser.add_argument_group("policy")
    policy.add_argument("--policy", default="epsilon-greedy", choices=("epsilon-greedy", "linucb", "thompson"))
    policy.add_argument("--eps", type=float, default=0.1, help="how often it explores (0.1)")
    policy.add_argument("--alpha", type=float, default=1.0, help="of linucb and thompson (1)")
    policy.add_argument("--ridge", type=float, default=1.0, help="of its regressions (1)")
    policy.add_argument("--learn", type=float, default=0.5, metavar="PART", help="of the log, learned from (0.5)")
    policy.add_argument("--seed", type=natural, default=1, help="of coins and of masks (1)")
    parser.add_argument(
        "--logger", default="fixed", choices=("fixed", "learning"), help="whether the log's policy was learning (fixed)"
    )
    parser.add_argument("--in-the-clear", action="store_true", help="leave the shares out: quick, for a first look")
    parser.add_argument("--plot", type=Path, help=f"draw estimates and intervals: {', '.join(PICTURES)}")
    add_json(parser)
    parser.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> None:
    from bandits.csv_table import TableError

    from ..ppcb.library.log_evaluation import evaluate_log

    if options.plot is not None:
        check_picture(options.plot)
    _check(options)
    options.action, options.reward = options.action or "arm", options.reward or "reward"
    progress: list[Progress] = []

    def watch(done: int, of: int) -> None:
        if not progress:
            progress.append(Progress(of, "row"))
        progress[0](done)

    try:
        arms = _logger_arms(options)
        named = _named(options, arms)
        shares = not options.in_the_clear
        if shares and named.log.propensities is None:
            raise ConfigError(
                "this log has no propensities, by which rows are weighted on shares: name their column with "
                "--propensity, or --greedy, or replay it with --in-the-clear"
            )
        found = evaluate_log(
            named, owners=options.owners, policy=options.policy, eps=options.eps, alpha=options.alpha,
            ridge=options.ridge, learn=options.learn, learning=options.logger == "learning",
            logged_eps=options.logged_eps if arms in (None, len(named.arms)) else None,  # by other arms: as any chances
            shares=shares, seed=options.seed, progress=watch,
        )  # fmt: skip
    except RangeError as error:  # its cure is of a bandit, which has other options
        raise RangeError(f"{str(error).partition(':')[0]}: {_ROOM}") from error
    except TableError as error:
        raise ConfigError(f"{options.log}: {error}".replace(f"{options.log}: {options.log}", options.log)) from error
    for each in progress:
        each.end()
    answer(
        options, _document(options, found), "\n".join(_text(options, found)), picture=lambda path: _draw(found, path)
    )


def _check(options: argparse.Namespace) -> None:
    """ConfigError for options that do not go together."""
    if (options.greedy is None) != (options.logged_eps is None):
        raise ConfigError("--greedy and --logged-eps belong together: give both, or neither")
    if options.arms is not None and options.greedy is None:
        raise ConfigError("--arms belongs to --greedy: propensities of a column need no number of arms")
    named = [name for name in _COLUMNS_OF if getattr(options, name) is not None]
    if options.log.endswith(".npz") and named:
        raise ConfigError(f"an .npz has arrays of its own names and no columns: leave out --{named[0]}")


def _logger_arms(options: argparse.Namespace) -> int | None:
    """How many an epsilon-greedy logger had: as is said, or as are in all of the log; None: as in what is read."""
    from bandits.columns import arms_in
    from bandits.tables import table_of

    if options.greedy is None or options.arms is not None or options.rows is None:
        return options.arms
    with extra("a log in Parquet"):
        table = table_of(options.log)
    _there(table, "--action", [options.action])
    return arms_in(table, options.action)


def _named(options: argparse.Namespace, arms: int | None) -> NamedLog:
    from bandits.columns import MOST_ARMS, NamedLog, log_of
    from bandits.csv_table import listed
    from bandits.logs import read_log
    from bandits.tables import table_of

    if options.rows is not None and options.rows < 3:
        raise ConfigError(f"a log of {options.rows} rows cannot be learned from and judged: read at least 3")
    if options.log.endswith(".npz"):
        log = read_log(options.log).rows(0, options.rows or 1 << 62)
        if (last := int(log.arms.max())) >= MOST_ARMS:
            raise ConfigError(f"{options.log} has an arm {last:,}: number arms from 0, {MOST_ARMS:,} of them at most")
        names = tuple(str(arm) for arm in range(last + 1))
        return NamedLog(log, names, tuple(f"x{i}" for i in range(log.dim)), (1,) * log.dim)
    with extra("a log in Parquet"):
        table = table_of(options.log, most=options.rows)
    numbered = list(itertools.takewhile(table.columns.__contains__, (f"x{i}" for i in itertools.count())))
    if options.context is None and not numbered:
        raise ConfigError(f"name the columns of the context with --context: {options.log} has {listed(table.names)}")
    propensity = options.propensity
    if propensity is None and options.greedy is None and "propensity" in table.columns:
        propensity = "propensity"
    context = options.context or numbered
    _there(table, "--context", context)
    _there(table, "--action", [options.action])
    _there(table, "--reward", [options.reward])
    _there(table, "--propensity" if options.greedy is None else "--greedy", [propensity or options.greedy])
    return log_of(
        table,
        context=context,
        action=options.action,
        reward=options.reward,
        propensity=propensity,
        greedy=None if options.greedy is None else (options.greedy, options.logged_eps),
        arms=arms,
    )


def _there(table: Table, option: str, names: Sequence[str | None]) -> None:
    """TableError with the option by which another column is named."""
    from bandits.csv_table import TableError, listed

    for name in names:
        if name is not None and name not in table.columns:
            raise TableError(f"it has no column {name!r}: it has {listed(table.names)}; name another with {option}")


def _text(options: argparse.Namespace, found: LogEvaluation) -> list[str]:
    named, problem = found.named, found.problem
    rows, late = len(problem.log), problem.judged
    lines = [
        f"{options.log}: {rows:,} rows, {len(named.columns)} columns of a context, {problem.arms} arms",
        f"learned from the first {problem.first:,} rows, judged on the other {len(late):,}",
    ]
    if late.propensities is not None:
        lines += [f"smallest propensity {late.propensities.min():.3g}"]
    lines += [f"note: {note}" for note in named.notes]
    marks: dict[str, str] = {}
    cells = [_cells(each, marks) for each in found.findings]
    lines += ["", *_table(found.findings, cells), ""]
    lines += [f"{mark} {text}" for text, mark in marks.items()]
    lines += [f"warning: {doubt}" for doubt in found.doubts]
    if found.difference is not None:
        lines += [f"on shares and in the clear differ by {found.difference:.2g} at most{_without(found.left_out)}"]
    return [*lines, "", *learned(found.ledger)] if found.ledger else lines[: -1 if not lines[-1] else None]


def _table(findings: Sequence[Finding], cells: Sequence[Sequence[str]]) -> list[str]:
    """A line for each policy, and one below for each estimator: no wider than a narrow terminal."""
    head, *rows = plain(_COLUMNS, cells)
    lines = [f"  {head}"]
    for at, (finding, row) in enumerate(zip(findings, rows, strict=True)):
        name = " ".join(finding.policy.split())
        if not at or finding.policy != findings[at - 1].policy:
            lines += [name if len(name) <= _WIDTH else f"{name[: _WIDTH - 3]}..."]
        lines += [f"  {row}"]
    return lines


def _without(left_out: Sequence[str]) -> str:
    names = " and ".join(_NAMES[name] for name in left_out)
    return f", without {names}, which has no number" if names else ""


def _cells(finding: Finding, marks: dict[str, str]) -> tuple[str, ...]:
    value, _, low, high = (_number(each) for each in finding.estimate)
    doubts = [marks.setdefault(doubt, f"[{len(marks) + 1}]") for doubt in finding.doubts]
    rows = "" if math.isnan(finding.rows) else f"{finding.rows:,.0f}"
    return _NAMES[finding.estimator], value, f"{low} to {high}", rows, "".join(doubts)


def _number(value: float) -> str:
    if math.isnan(value):
        return "-"
    if 1e4 <= abs(value) < 1e7:
        return f"{value:,.0f}"
    short = f"{value:.4g}"
    return short if "e" not in short else f"{value:.3g}"


def _document(options: argparse.Namespace, found: LogEvaluation) -> dict[str, Any]:
    problem, given = found.problem, found.problem.judged.propensities
    return {
        "log": options.log, "rows": len(problem.log), "learned_from": problem.first, "judged_on": len(problem.judged),
        "arms": list(found.named.arms), "context": list(found.named.columns), "notes": list(found.named.notes),
        "smallest_propensity": None if given is None else float(given.min()), "warnings": list(found.doubts),
        "findings": [
            {
                "policy": each.policy, "estimator": each.estimator,
                **{name: _plain(value) for name, value in each.estimate._asdict().items()},
                "effective_rows": _plain(each.rows), "doubts": list(each.doubts),
            }
            for each in found.findings
        ],
        "shares_differ_by": found.difference, "shares_differ_without": list(found.left_out),
        "ledger": ledger_json(found.ledger),
    }  # fmt: skip


def _plain(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def _draw(found: LogEvaluation, path: Path) -> None:
    from .evaluate_plots import intervals

    intervals(found.findings, _NAMES, path)


def _words(text: str) -> list[str]:
    """Names between commas; one that has a comma itself is quoted, as CSV has it."""
    try:
        (words,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        raise argparse.ArgumentTypeError(f"names between commas, such as '\"age, years\",bp', not {text!r}") from None
    return [word.strip() for word in words if word.strip()]


def _counts(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"numbers of columns, such as 2,1, not {text!r}") from None
