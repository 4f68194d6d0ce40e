"""A picture as a file.  A door to matplotlib; knows nothing of what is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure


@contextmanager
def picture(path: Path, width: float, height: float, *, dpi: int = 120) -> Iterator[Figure]:
    """A canvas of so many inches, written to `path` when all is drawn."""
    canvas = plt.figure(figsize=(width, height), layout="constrained")
    try:
        yield canvas
        path.parent.mkdir(parents=True, exist_ok=True)
        canvas.savefig(path, dpi=dpi)
    finally:
        plt.close(canvas)
