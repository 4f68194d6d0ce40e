"""What a role alone knows is not shown where an object is named, as in a log or a debugger: read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from mpc.net.requests import Request
from protocols.helba.ckks import outcome as helba
from protocols.linucb_ds.classic import roles as linucb_ds
from protocols.ppcb.clients import Tally
from protocols.ppcb.library.decisions import OpenDecision
from protocols.ppcb.library.rounds import Say
from protocols.ppcb.library.service import Pay
from protocols.ppcb.live.feeds import _Wish
from protocols.ppcb.serving.durable import _Batch
from protocols.samba.classic import outcome as samba
from protocols.samba.classic.selecting import Seen
from protocols.samba.mpc.clients import Due

from .test_doors import ROOT, product_files

SECRETS = {"ndarray", "bytes", "Arrays"}
EXPERIMENTS = ("bandits", "protocols/bench", "protocols/figures")  # they know all roles, and what is true
PUBLIC = {
    # on a wire as it is, and said to all
    "_Round.digest", "Header.digest", "Stamp.digest", "Kind.magic", "Standing.magic", "Standing.deal", "Standing.plan",
    "Message.rest", "Send.raw", "Certificate.der",
    # a turn's contexts, by number and by digest of its id, and its decisions that are paid: announced to all
    "Asked.numbers", "Asked.digests", "Asked.due",
    # tables that follow from the width of a comparison
    "_Term.value", "_Term.equal", "_Term.less",
    # arms, and numbers of owners, that all know
    "PublicProblem.arms", "HiddenRanges.arms", "HiddenRanges.start", "Settings.arms", "Holdings.numbers",
    # which slot goes where, the same for all
    "Placing.to", "Placing.source",
    # what a caller asked for
    "Prediction.decision_id", "Propensity.low", "Propensity.high", "Run.arms",
    "Run.rewards", "Run.twin_arms", "Run.twin_rewards", "Beside.arms", "Beside.ends", "Beside.rewards",
    # estimates that all were told
    "Judged.values", "Judged.variances",
}  # fmt: skip
LISTS = {"list", "Sequence", "tuple", "dict", "Mapping", "float", "deque", "set", "frozenset"}
OPEN = {  # a class stands for all its fields
    "what all roles agree on before a run, or the role's own file says": {
        "Settings", "Wanted", "Spec", "Experiment", "Exploration", "ChoiceNoise", "Keys", "Gaussian", "Declared",
        "HiddenRanges", "Attacked.p", "Limits", "Config", "PeerConfig", "Task", "Place", "Processes", "Case",
    },
    "shapes, places and constants that follow from that": {
        "_Term", "Cut", "Layout", "_Round", "Input", "Receive", "Curve", "Reciprocal", "InverseSquareRoot",
        "InverseSteps", "Strings", "Plan", "Rehearsed",
    },
    "who is there, by name, and what may be asked": {
        "Nodes", "Member", "Endpoint", "Site", "Cast", "Answered.headers", "Names.arms", "Holdings.arms", "Say.arms",
    },
    "counts and times of messages, and who learned what": {
        "Cost", "Link", "Finding", "Spent", "Status", "Ended", "Told", "Outcome.phases",
    },
    "which saves there are, and which decisions were told": {"Standing", "Agreed"},
    "numbers of decisions": {"_Wish.numbers", "_Ask.decisions", "_Batch.paid", "_Batch.decided"},
    "on a wire as it is": {"Message.fields"},
    "of values that hide themselves": {"State.unpaid", "Holdings.open", "ClassicRun", "CkksRun"},
    "what a caller asked for: a result, or a comparison with what is true": {
        "Report", "Run", "Beside", "Difference", "Reference", "Evaluation", "LogEvaluation",
    },
    "what an attack found, beside what is true": {"Found", "Row", "CompFound", "DCFound"},
}  # fmt: skip


def shown(kinds: set[str]) -> Iterator[str]:
    """Fields of dataclasses and named tuples that hold some of these, and that a repr shows."""
    for path in product_files():
        if not path.relative_to(ROOT).as_posix().startswith(EXPERIMENTS):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and names(*node.bases, *node.decorator_list) & {
                    "NamedTuple", "dataclass",
                }:  # fmt: skip
                    yield from fields(node, kinds)


def fields(kind: ast.ClassDef, kinds: set[str]) -> Iterator[str]:
    if any(isinstance(part, ast.FunctionDef) and part.name == "__repr__" for part in kind.body):
        return
    for part in kind.body:
        if isinstance(part, ast.AnnAssign) and "repr=False" not in ast.unparse(part):
            found = names(part.annotation)
            if found & kinds and not found & {"Callable", "ClassVar"}:
                yield f"{kind.name}.{ast.unparse(part.target)}"


def names(*trees: ast.AST) -> set[str]:
    parts = [part for tree in trees for part in ast.walk(tree)]
    return {part.id for part in parts if isinstance(part, ast.Name)} | {
        part.attr for part in parts if isinstance(part, ast.Attribute)
    }


def test_only_what_is_public_is_shown() -> None:
    assert set(shown(SECRETS)) == PUBLIC


def test_of_lists_and_real_numbers_too() -> None:
    """Each is of a class that is public, or is itself; and nothing is listed that is not there."""
    found = set(shown(LISTS)) - PUBLIC
    listed = set().union(*OPEN.values())
    seen = {name: {name, name.partition(".")[0]} & listed for name in found}
    assert {name for name, by in seen.items() if not by} == set()
    assert listed == set().union(*seen.values())


def test_tuples_that_hide_themselves_do() -> None:
    secret = np.array([8675309])
    hiding = (OpenDecision((0, 1), secret, secret, 8675309), Pay(secret, secret), Due(3, 1, secret))
    for one in (*hiding, Seen(1, 2, [8675309])):
        assert "8675309" not in repr(one) and type(one).__name__ in repr(one)


def test_numbers_of_one_role_are_hidden() -> None:
    """Whole numbers are mostly counts, so that these are not must be said."""
    ended = (
        linucb_ds.Outcome("P", arms=[8675309], total=8675309), samba.Outcome("DC", total=8675309),
        helba.Outcome("user", arms=[8675309]),
    )  # fmt: skip
    wish = _Wish(Request("puller", None), ["id 8675309"], True, answer={"decision_id": 1, "arm": 8675309})
    for one in (*ended, wish, Tally(3, 8675309.0), Say([8675309], [0]), _Batch(rewards=[8675309.0])):
        assert "8675309" not in repr(one) and type(one).__name__ in repr(one)
