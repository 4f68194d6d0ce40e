"""Places whose packets take a stated time to each other: network namespaces, and between them a line of our own.

    place 0  [line: 10.77.0.1]   --\\
    place 1  [line: 10.77.0.2]   ---  this process: holds each packet for so long, then hands it on
    place 2  [line: 10.77.0.3]   --/

Each place has an interface, a TUN device, and nothing else but its own loopback, so that TCP behaves there as between
machines that far apart: its windows, its acknowledgements and its timers are the kernel's.  The kernel hands over as
much at once as a network card that cuts packets itself would get.  Namespaces have no names: whatever ends, they go.

`python -m protocols.bench.delay_line PLACES MILLISECONDS` says {"process": ..., "places": [descriptors]} and carries
packets until its stdin is closed; `delayed` does that, and `Line.inside` gives a command that runs in a place.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpc.errors import ConfigError
from mpc.launch import place

DEVICE = "line"
_NEW_NETWORK = 0x40000000
_SET_INTERFACE, _SET_OFFLOAD = 0x400454CA, 0x400454D0  # requests of the kernel's TUN driver
_TUN, _NO_PREFIX, _WITH_HEADER = 0x0001, 0x1000, 0x4000
_SUMS_AND_PIECES = 0x01 | 0x02  # checksums and cutting are left to who receives
_HEADER = 10  # bytes that the kernel sets before each packet
_MOST = _HEADER + (1 << 16)
_TO, _VERSION_4 = slice(_HEADER + 16, _HEADER + 20), 4
_OPTIONS = Path("/proc/sys/net/ipv4")  # of the namespace that this process is in
_QUEUE = 10_000  # packets that wait in a device
_BURST = 64  # packets of one place before the others are looked at
USUAL = ("cubic", "reno")
"""How TCP finds its window where nobody chose another way; where a namespace may not have that, its elder brother."""


@dataclass(frozen=True)
class Line:
    """A line that is there.  process: carries it, and holds the places by these descriptors.

    window: how TCP finds its window there.
    """

    process: int
    places: tuple[int, ...]
    window: str

    @staticmethod
    def address(at: int) -> str:
        """Of a place."""
        return f"10.77.0.{at + 1}"

    def inside(self, command: Sequence[str], at: int | None = None) -> list[str]:
        """A command that runs in a place; without one, in that of the node that a launcher makes of it."""
        where = "-" if at is None else str(at)
        paths = ",".join(f"/proc/{self.process}/fd/{descriptor}" for descriptor in self.places)
        return [sys.executable, "-m", __name__, "inside", paths, where, *command]


@contextlib.contextmanager
def delayed(
    places: int, milliseconds: float, *, windows: Sequence[str] = USUAL, keeps: bool = False
) -> Iterator[Line]:  # fmt: skip
    """A line between so many places; ConfigError where this machine refuses namespaces or devices.

    milliseconds: one way.  windows: ways in which TCP may find its window there, the first that is to be had.  keeps:
    whether TCP keeps its window when a connection is silent, as an administrator may have it.
    """
    if not sys.platform.startswith("linux") or shutil.which("ip") is None:
        raise ConfigError("network namespaces are Linux's, and made with 'ip' of iproute2: install it")
    command = [sys.executable, "-m", __name__, "carry", str(places), str(milliseconds), str(int(not keeps)), *windows]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=Path(__file__).resolve().parents[2],
    ) as process:  # fmt: skip
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        said = process.stdout.readline()
        if not said:
            raise ConfigError((process.stderr.read().strip().splitlines() or ["the line ended without a word"])[-1])
        given = json.loads(said)
        try:
            yield Line(given["process"], tuple(given["places"]), given["window"])
        finally:
            process.stdin.close()


def _carry(places: int, seconds: float, restarts: str, windows: Sequence[str]) -> None:
    namespaces, devices, window = [], [], ""
    try:
        for at in range(places):
            _system("unshare", _NEW_NETWORK)
            namespaces.append(os.open("/proc/thread-self/ns/net", os.O_RDONLY))
            devices.append(_device(at))
            window = _found(windows)
            (_OPTIONS / "tcp_slow_start_after_idle").write_text(restarts)
    except OSError as error:
        why = f"{error.filename or 'namespaces'}: {error.strerror}"
        raise SystemExit(f"this machine refuses network namespaces ({why}): be root, or play on loopback") from error
    print(json.dumps({"process": os.getpid(), "places": namespaces, "window": window}), flush=True)
    _hand_on(devices, seconds)


def _device(at: int) -> int:
    """A place's interface, in the namespace that this process is in."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _SET_INTERFACE, struct.pack("16sH22x", DEVICE.encode(), _TUN | _NO_PREFIX | _WITH_HEADER))
    fcntl.ioctl(device, _SET_OFFLOAD, _SUMS_AND_PIECES)
    for words in (
        f"addr add {Line.address(at)}/24 dev {DEVICE}", f"link set {DEVICE} txqueuelen {_QUEUE} up", "link set lo up"
    ):  # fmt: skip
        done = subprocess.run(["ip", *words.split()], capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(done.returncode, done.stderr.strip())
    return device


def _found(windows: Sequence[str]) -> str:
    """The first of these that this namespace may have."""
    for window in windows:
        with contextlib.suppress(OSError):
            (_OPTIONS / "tcp_congestion_control").write_text(window)
            return window
    raise OSError(1, f"TCP finds its window by none of {', '.join(windows)} here")


def _hand_on(devices: Sequence[int], seconds: float) -> None:
    """Each packet after its time, until nobody wants any more."""
    of = {bytes(map(int, Line.address(at).split("."))): device for at, device in enumerate(devices)}
    waiting: deque[tuple[float, int, bytes]] = deque()  # all wait as long, so the first is due first
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            _, to, packet = waiting.popleft()
            with contextlib.suppress(OSError):  # a device that is full loses it, as any does
                os.write(to, packet)
        left = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        for ready in select.select([0, *devices], [], [], left)[0]:
            if ready == 0:
                return
            with contextlib.suppress(BlockingIOError):
                for _ in range(_BURST):
                    packet = os.read(ready, _MOST)
                    if packet[_HEADER] >> 4 == _VERSION_4 and (device := of.get(packet[_TO])) is not None:
                        waiting.append((time.monotonic() + seconds, device, packet))


def _inside(paths: Sequence[str], where: str, command: Sequence[str]) -> None:
    """Become a command in a place."""
    here = place()
    at = int(where) if where != "-" else -1 if here is None else here.node
    try:
        namespace = os.open(paths[at], os.O_RDONLY)
        _system("setns", namespace, _NEW_NETWORK)
        os.close(namespace)
        os.execvp(command[0], list(command))
    except OSError as error:
        raise SystemExit(
            f"error: {command[0]} cannot run in place {at}: {error.strerror}; is its line there?"
        ) from error


def _system(name: str, *given: int) -> None:
    """A call of the kernel that Python has not in all releases."""
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*given):
        raise OSError(code := ctypes.get_errno(), os.strerror(code))


if __name__ == "__main__":
    if sys.argv[1] == "carry":
        _carry(int(sys.argv[2]), float(sys.argv[3]) / 1e3, sys.argv[4], sys.argv[5:])
    else:
        _inside(sys.argv[2].split(","), sys.argv[3], sys.argv[4:])
