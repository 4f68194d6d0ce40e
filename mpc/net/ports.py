"""Ports that are to be listened at a little later, by another process."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import sys
from collections import deque

from ..errors import ConfigError
from .joining import listen

_FIRST, _BEHIND = 10_000, 32_000  # below those that the kernel gives to callers, one of whom would have it by then
_KEPT = 64
_TAKEN = deque[int]()
"""Names in the kernel, as descriptors, one for each of the last ports: who draws beside this process draws others."""


def free_port() -> int:
    """One that nobody listens at, nor has drawn a moment ago."""
    while True:
        port = _FIRST + secrets.randbelow(_BEHIND - _FIRST)
        with contextlib.suppress(ConfigError, OSError), listen(port=port):
            if sys.platform == "linux":
                _TAKEN.append(_named(f"\0masked-port-{port}"))
                if len(_TAKEN) > _KEPT:
                    os.close(_TAKEN.popleft())
            return port


def _named(name: str) -> int:
    """OSError where another has it, as long as that one lives."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(name)
        return sock.detach()
