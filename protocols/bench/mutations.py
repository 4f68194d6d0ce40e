"""What can be changed in a module so that it means something else.  Knows Python's syntax; runs nothing.

A change is one of: a comparison moved or turned round, an operator for its neighbour, a number by 1, True for False, a
condition or a sign dropped or negated, `and` for `or`, a call that stands alone left out, two arguments swapped,
nothing returned.  Left alone is what only people read or what only takes time: texts, errors that are raised,
assertions, `__repr__`, annotations, decorators, and numbers under a name such as `timeout` or `maxsize`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,), ast.Add: (ast.Sub,), ast.Sub: (ast.Add,),
    ast.Mult: (ast.Add, ast.Div), ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,), ast.LShift: (ast.RShift,), ast.RShift: (ast.LShift,), ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,), ast.BitXor: (ast.BitAnd,),
}  # fmt: skip
_ASIDE = re.compile(
    r"_*(help|description|epilog|prog|metavar|title|label|what|why|cure|report|__slots__|__all__|maxsize|buffering|"
    r"\w*(timeout|patience|grace|poll|chunk|buffer|lines?_between))",
    re.IGNORECASE,
)
"""Names whose values no result depends on."""
_SPEAKS = {"print", "say", "TypeVar", "cast"}
_ANY_ORDER = {"isinstance", "max", "min"}
"""What takes its arguments in any order, or in one only."""
_UNREAD = (ast.Raise, ast.Assert, ast.JoinedStr, ast.Import, ast.ImportFrom, ast.arg)
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class Mutant:
    """One change.  within: the functions and classes around it, outermost first."""

    file: str
    line: int
    within: tuple[str, ...]
    before: str
    after: str
    start: int
    end: int

    def applied(self, source: bytes) -> bytes:
        """The module with this change."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def __str__(self) -> str:
        return f"{_short(self.before)} -> {_short(self.after)}"


def mutants(source: bytes, file: str) -> Iterator[Mutant]:
    """All changes of a module, from top to bottom."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, within in _read(ast.parse(source), ()):
        for old, new in _changes(node):
            start = starts[old.lineno - 1] + old.col_offset
            end = starts[(old.end_lineno or 0) - 1] + (old.end_col_offset or 0)
            text = ast.unparse(new)
            after = f"({text})" if isinstance(new, ast.expr) else text
            yield Mutant(file, old.lineno, within, source[start:end].decode(), after, start, end)


def _read(node: ast.AST, within: tuple[str, ...]) -> Iterator[tuple[ast.AST, tuple[str, ...]]]:
    """Every node below that has a meaning of its own."""
    if isinstance(node, _UNREAD) or (isinstance(node, ast.If) and _is_door(node.test)):
        return
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        if node.name in ("__repr__", "__str__"):
            return
        within = (*within, node.name)
    yield node, within
    for child in _children(node):
        yield from _read(child, within)


def _children(node: ast.AST) -> list[ast.AST]:
    if isinstance(node, ast.FunctionDef):
        given = [*node.args.posonlyargs, *node.args.args][-len(node.args.defaults) or 10**6 :] + node.args.kwonlyargs
        values = zip(given, [*node.args.defaults, *node.args.kw_defaults], strict=True)
        return [*(value for name, value in values if value is not None and not _ASIDE.fullmatch(name.arg)), *node.body]
    if isinstance(node, ast.ClassDef):
        return [*node.body]
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name) and node.func.id in _SPEAKS:
            return []
        named = [keyword.value for keyword in node.keywords if not _ASIDE.fullmatch(keyword.arg or "")]
        return [node.func, *node.args, *named]
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [ast.unparse(target).rpartition(".")[2] for target in targets]
        return [] if node.value is None or any(map(_ASIDE.fullmatch, names)) else [node.value]
    return [*ast.iter_child_nodes(node)]


def _is_door(test: ast.expr) -> bool:
    """Whether a module asks who reads it: `TYPE_CHECKING`, `__name__ == "__main__"`."""
    return ast.unparse(test) in ("TYPE_CHECKING", "__name__ == '__main__'")


def _changes(node: ast.AST) -> Iterator[tuple[ast.stmt | ast.expr, ast.AST]]:
    """What may be put in place of a node, or of its condition."""
    match node:
        case ast.Compare():
            for at, op in enumerate(node.ops):
                for other in _OPERATORS[type(op)]:
                    yield node, _with(node, ops=[*node.ops[:at], other(), *node.ops[at + 1 :]])
        case ast.BinOp(left=ast.Constant(value=str() | bytes()) | ast.JoinedStr()) | ast.BinOp(right=ast.JoinedStr()):
            return
        case ast.BinOp(op=ast.BitOr(), right=ast.Constant(value=None)):  # a type
            return
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp():
            for other in _OPERATORS.get(type(node.op), ()):
                yield node, _with(node, op=other())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node, node.operand
        case ast.Constant(value=bool() as truth):
            yield node, ast.Constant(not truth)
        case ast.Constant(value=int() | float() as number):
            yield node, ast.Constant(number + 1)
            yield node, ast.Constant(number - 1)
        case ast.Call(args=[first, second, *rest]):
            starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
            if not starred and ast.unparse(node.func) not in _ANY_ORDER:
                yield node, _with(node, args=[second, first, *rest])
        case ast.If() | ast.While() | ast.IfExp():
            yield node.test, ast.UnaryOp(ast.Not(), node.test)
        case ast.Expr(value=ast.Call() | ast.YieldFrom()):
            yield node, ast.Pass()
        case ast.Return(value=ast.expr()) if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield node, ast.Return(ast.Constant(None))


def _with(node: Node, **parts: object) -> Node:
    """A copy with other parts."""
    return type(node)(**{**{name: getattr(node, name) for name in node._fields}, **parts})


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 50 else f"{text[:34]} ... {text[-11:]}"
