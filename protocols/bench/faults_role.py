"""A role between machines in the fault campaign: `python -m protocols.bench.faults_role FILE COMMAND...`.

It is `masked COMMAND`, but that a dealer has the same coins in each run, so that all runs have the same arms; FILE
gets a digest of each key under which it drew masks, so that one that was used twice is found; and links keep little, so
that a dealer is some decisions ahead, as in a long run, and not at its end before the first.
"""

from __future__ import annotations

import hashlib
import runpy
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offline import TrustedDealer

_COINS = bytes(range(32))
_TELL, _KEPT = 1 << 12, 1 << 14  # bytes of a link; a decision draws 11 kB


def main() -> None:
    """Play the role; Ctrl-C while this loads is heard as `masked` hears it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        from unittest import mock

        from mpc.net import mesh
        from offline import TrustedDealer
        from protocols.run import member_process
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise SystemExit(130) from None
    file, draw, deal = Path(sys.argv[1]), member_process._drawn, TrustedDealer.__init__

    def drawn(name: str) -> bytes:
        return _COINS if name == "coins" else draw(name)

    def dealt(dealer: TrustedDealer, *given: Any, **named: Any) -> None:
        deal(dealer, *given, **named)
        with file.open("a") as keys:
            keys.writelines(hashlib.sha256(key).hexdigest() + "\n" for key in dealer.keys)

    little = mock.patch.multiple(mesh, _TELL=_TELL, _KEPT=_KEPT)
    with (
        mock.patch.object(member_process, "_drawn", drawn),
        mock.patch.object(TrustedDealer, "__init__", dealt),
        little,
    ):
        sys.argv = ["masked", *sys.argv[2:]]
        runpy.run_module("protocols", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
