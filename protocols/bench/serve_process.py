"""`masked serve --try` as a process of its own, for load, faults and fuzz.  Knows its folder, tokens and end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mpc.errors import ConfigError
from mpc.net.asking import Asking

OWNERS = (7, 7, 6)
ARMS = 10
_PATIENCE = 120.0  # seconds for a start


@dataclass
class Serving:
    """The service of a folder, which is started and killed.  more: options of the bandit.  batch: as --batch."""

    folder: Path
    more: Sequence[str] = ()
    batch: int = 64
    port: int = 0
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)

    def start(self) -> None:
        """And wait until it listens."""
        words = ["--try", "--folder", str(self.folder), "--listen", f"127.0.0.1:{self.port}", "--make-tokens"]
        words += ["--batch", str(self.batch)]
        if not (self.folder / "bandit").exists():
            words += [*self.more, "--arms", str(ARMS), "--owners", ",".join(map(str, OWNERS))]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "protocols", "serve", *words], stderr=subprocess.PIPE, text=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert self._process.stderr is not None
        said = ""
        for line in self._process.stderr:
            if "/docs says" in (said := line):
                self.port = int(line.split("http://127.0.0.1:")[1].split("/")[0])
                return
        raise ConfigError(f"the service did not start, and ended with {self._process.wait()}: {said.strip()}")

    def asking(self, role: str) -> Asking:
        """A connection of who has that role's token."""
        token = (self.folder / "tokens" / f"{role.replace(' ', '-')}.token").read_text().strip()
        return Asking(("127.0.0.1", self.port), token)

    def cpu(self) -> float:
        """Seconds of processor so far, of the one that runs."""
        assert self._process is not None
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        """By a signal; its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(how)
        code = process.wait(timeout=_PATIENCE)
        if process.stderr is not None:
            process.stderr.close()
        return code


@contextmanager
def serving(*more: str, batch: int = 64) -> Iterator[Serving]:
    """A fresh one, in a folder of its own that goes with it."""
    with tempfile.TemporaryDirectory(prefix="masked-serve-") as name:
        made = Serving(Path(name) / "service", more, batch)
        try:
            yield made
        finally:
            made.end(signal.SIGKILL)


def until(moment: float) -> None:
    """Sleep until then, by the clock of `time.perf_counter`."""
    if (left := moment - time.perf_counter()) > 0:
        time.sleep(left)
