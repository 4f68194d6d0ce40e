"""A file of numpy's is read also where Python stops the reader because another thread parses."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bandits.arrays import unhurried
from bandits.csv_table import read_rows
from bandits.linear_problem import load_matrix


def test_it_is_read_again_and_other_errors_pass() -> None:
    tries = list[int]()

    def read() -> int:
        tries.append(len(tries))
        if len(tries) < 3:
            raise SystemError("AST constructor recursion depth mismatch (before=27, after=24)")
        return 7

    assert unhurried(read) == 7 and len(tries) == 3

    def fails(error: Exception) -> Any:
        tries.append(0)
        raise error

    for error, count in ((ValueError("damaged"), 1), (SystemError("always"), 5)):
        tries.clear()
        with pytest.raises(type(error), match=str(error)):
            unhurried(lambda error=error: fails(error))  # type: ignore[misc]
        assert len(tries) == count


@pytest.mark.parametrize("read", [load_matrix, lambda path: read_rows(path)[0]], ids=["matrix", "table"])
def test_a_user_s_array_is_read_so(read: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, real, stopped = np.arange(6.0).reshape(3, 2), ast.literal_eval, []
    np.save(tmp_path / "rows.npy", given)

    def hurried(text: str) -> Any:
        if not stopped:
            stopped.append(text)
            raise SystemError("AST constructor recursion depth mismatch (before=27, after=24)")
        return real(text)

    monkeypatch.setattr(ast, "literal_eval", hurried)
    assert np.array_equal(read(tmp_path / "rows.npy"), given) and stopped
