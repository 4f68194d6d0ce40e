"""A run as one document, as text and as a picture.  Knows results; no protocol."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..run.program import Program
from ..run.report import Report, plain_report
from .beside import facts, picture, said
from .program import ROUNDS_TO_ARM
from .run import Run


def report(program: Program[Any], run: Run) -> Report:
    """Costs and the ledger behind what is HELBA's own."""
    plain = plain_report(program, {**facts(run), "rounds_to_arm": ROUNDS_TO_ARM}, said(run), run.ended)
    return replace(plain, picture=lambda path: picture(run, path))
