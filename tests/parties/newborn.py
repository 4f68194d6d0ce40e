"""A process that runs the text it is given."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    exec(sys.argv.pop(1))
