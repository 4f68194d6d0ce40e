"""Table 1 of HELBA, small: a level of security has its degree, and the arms of the clear."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")

pytest.importorskip("seal", reason="the extra 'ckks' is not installed")

from mpc.errors import ConfigError
from protocols.figures.helba_runs import CIPHERTEXTS, LEVELS, on_ciphertexts, scheme_at, security


def test_more_security_takes_a_larger_degree() -> None:
    degrees = [scheme_at(level).degree for level in LEVELS]
    assert degrees == [1 << 13, 1 << 14, 1 << 15]
    with pytest.raises(ConfigError, match="choose 128, 192 or 256"):
        scheme_at(64)


def test_a_step_on_ciphertexts() -> None:
    (row,) = security(1, 128)
    assert (row["security"], row["degree"], row["T"]) == (128, 1 << 13, 1)
    assert row["arms_equal"] and row["cpu_seconds_per_step"] > 0
    assert [(each["policy"], each["t"]) for each in on_ciphertexts(1, 0)] == [(CIPHERTEXTS, 1)]
