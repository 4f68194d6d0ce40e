"""`scripts/bench ops`: every operation over memory, tcp and gloo, beside plaintext and CrypTen.

`scripts/bench ppcb`: a step of the private contextual bandit.

`scripts/bench linucb`: a pull of the outsourced linear bandit, with Paillier and on shares.

`scripts/bench samba`: a step of federated arms, with AES-GCM and on shares.

`scripts/bench helba`: runs of the encrypted linear contextual bandit on shares.

`scripts/bench network`: exchanges and the bandit's step over TLS, TCP, unix sockets and gloo, on links with delay.
"""

from __future__ import annotations

import argparse

from ..run.exits import exit_codes
from . import helba, linucb, network, ops, ppcb, samba
from .report import tell

BENCHES = {
    "ops": ops.bench, "ppcb": ppcb.bench, "linucb": linucb.bench, "samba": samba.bench, "helba": helba.bench,
    "network": network.bench,
}  # fmt: skip
_EXAMPLES = """examples:
  scripts/bench ops                      all operations, N = 2, 3, 5; writes benchmarks/ops.json and ops.md
  scripts/bench ops --quick --json -     small sizes, few repeats, one JSON document on stdout, no file
  scripts/bench ops --no-peer            without CrypTen
  scripts/bench ppcb                     the bandit's step; writes benchmarks/ppcb.json and ppcb.md
  scripts/bench linucb                   the outsourced bandit's pull; writes benchmarks/linucb.json and linucb.md
  scripts/bench samba                    a step of federated arms; writes benchmarks/samba.json and samba.md
  scripts/bench helba                    HELBA on shares; writes benchmarks/helba.json and helba.md
  scripts/bench network                  links; writes benchmarks/network.json and network.md
"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="scripts/bench", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("what", choices=list(BENCHES), help="what to measure")
    parser.add_argument("--quick", action="store_true", help="small sizes and few repeats: does it run, not how fast")
    parser.add_argument(
        "--json", metavar="FILE", help="write the rows to FILE ('-': stdout) and nothing to benchmarks/"
    )
    parser.add_argument("--parties", type=int, nargs="+", default=[2, 3, 5], help="numbers of parties, for ops (2 3 5)")
    parser.add_argument("--repeats", type=int, help="timed runs of each operation, for ops (25, quick 5)")
    parser.add_argument("--only", help="operations to measure, by name, with commas, for ops")
    parser.add_argument(
        "--no-peer", action="store_true", help="leave CrypTen's column empty; else .venv-crypten is made (45 MB)"
    )
    options = parser.parse_args()
    with exit_codes():
        tell(BENCHES[options.what](options), options)


if __name__ == "__main__":
    main()
