"""The picture of a log's evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bandits.off_policy import Finding

from ..run.picture import picture


def intervals(findings: Sequence[Finding], names: Mapping[str, str], path: Path) -> None:
    """Estimates with their intervals, a line for each; those in doubt are hollow."""
    rows = [each for each in findings if np.isfinite(each.estimate.value)]
    with picture(path, 7, 1.2 + 0.28 * len(rows)) as canvas:
        axes = canvas.subplots()
        for at, each in enumerate(rows):
            value, _, low, high = each.estimate
            reach = np.nan_to_num([[max(0.0, value - low)], [max(0.0, high - value)]])
            face = "white" if each.doubts else "C0"
            axes.errorbar([value], [at], xerr=reach, fmt="o", color="C0", mfc=face, markersize=5, capsize=2)
        axes.set_yticks(range(len(rows)), [f"{each.policy}, {names[each.estimator]}" for each in rows], fontsize=8)
        axes.invert_yaxis()
        axes.set(xlabel="average reward, 95 % interval; hollow: in doubt")
