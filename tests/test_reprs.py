"""What a role alone knows is not shown where an object is named, as in a log or a debugger: read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np

from protocols.ppcb.library.decisions import OpenDecision
from protocols.ppcb.library.service import Pay
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


def shown() -> Iterator[str]:
    """Fields of dataclasses and named tuples that hold arrays or bytes, and that a repr shows."""
    for path in product_files():
        if not path.relative_to(ROOT).as_posix().startswith(EXPERIMENTS):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and names(*node.bases, *node.decorator_list) & {
                    "NamedTuple", "dataclass",
                }:  # fmt: skip
                    yield from fields(node)


def fields(kind: ast.ClassDef) -> Iterator[str]:
    if any(isinstance(part, ast.FunctionDef) and part.name == "__repr__" for part in kind.body):
        return
    for part in kind.body:
        secret = isinstance(part, ast.AnnAssign) and names(part.annotation) & SECRETS
        if isinstance(part, ast.AnnAssign) and secret and "repr=False" not in ast.unparse(part):
            yield f"{kind.name}.{ast.unparse(part.target)}"


def names(*trees: ast.AST) -> set[str]:
    parts = [part for tree in trees for part in ast.walk(tree)]
    return {part.id for part in parts if isinstance(part, ast.Name)} | {
        part.attr for part in parts if isinstance(part, ast.Attribute)
    }


def test_only_what_is_public_is_shown() -> None:
    assert set(shown()) == PUBLIC


def test_tuples_that_hide_themselves_do() -> None:
    secret = np.array([8675309])
    for one in (OpenDecision((0, 1), secret, secret, 8675309), Pay(secret, secret), Due(3, 1, secret)):
        assert "8675309" not in repr(one) and type(one).__name__ in repr(one)
