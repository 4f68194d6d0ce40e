"""A picture as a file.  A door to matplotlib; knows nothing of what is drawn."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mpc.extras import extra
from mpc.files import write_whole

with extra("a picture"):
    from matplotlib.figure import Figure  # pyplot would take longer to import than all the rest


@contextmanager
def picture(path: Path, width: float, height: float, *, dpi: int = 120) -> Iterator[Figure]:
    """A canvas of so many inches, written to `path` when all is drawn."""
    canvas = Figure(figsize=(width, height), layout="constrained")
    yield canvas
    path.parent.mkdir(parents=True, exist_ok=True)
    drawn = io.BytesIO()
    kind = path.suffix[1:].lower()
    undated = {"Date": None} if kind == "svg" else None  # the same drawing gives the same file
    canvas.savefig(drawn, dpi=dpi, format=kind, metadata=undated)
    write_whole(path, drawn.getvalue(), 0o666)
