"""What this process does with memory that it has freed.  Knows glibc; does nothing elsewhere."""

from __future__ import annotations

import contextlib
import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # names of glibc's <malloc.h>


def keep_freed_memory() -> None:
    """Keep it, up to 256 MB, in place of giving it back and fetching it again page by page, in every round.

    Arrays of some hundred kilobytes, such as those of a thousand comparisons, are at glibc's usual limits.
    """
    with contextlib.suppress(AttributeError, OSError):
        choose = ctypes.CDLL(None).mallopt
        choose(_TRIM_THRESHOLD, 1 << 28)
        choose(_MMAP_THRESHOLD, 1 << 25)
