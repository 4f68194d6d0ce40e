"""What a session's links and certificates will do, by the measures of all its roles at once.  Knows no inputs.

A role that is not there ends it with the list, as it would end a run.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, replace
from typing import Any

from mpc.net.probe import Link, probe
from mpc.net.tls import over

from .exits import say
from .member_process import Prepared, gathered

_PASS, _WARN = "PASS", "WARN"
_SLOW = 0.1  # seconds of a round trip
_NARROW = 1e6  # bytes a second
_APART = 60.0  # seconds between two clocks


@dataclass(frozen=True)
class Finding:
    """verdict: PASS or WARN; what fails ends a diagnosis with its error.  of: a link or a certificate.

    what: was found, and the cure.
    """

    verdict: str
    of: str
    what: str
    seconds: float | None = None
    bytes_per_second: float | None = None


def diagnosed(given: Prepared) -> tuple[list[Finding], dict[str, Any]]:
    """Findings, and what a decision will take as far as this role's links say."""
    config, member = given.config, replace(given.member, session=f"{given.config.session} doctor")
    mesh = over(member, gathered(replace(given, member=member)), config.round, say)
    try:
        links = probe(mesh, member.linked)
    finally:
        mesh.close()
    now = dt.datetime.now(dt.timezone.utc)
    certificates = {config.role: member.certificate}
    certificates |= {member.names[other]: peer.certificate for other, peer in member.peers.items()}
    found = [_of_link(member.names[link.peer], link) for link in links]
    found += [
        Finding(
            _WARN if (soon := each.check_time(now)) else _PASS, role, soon or f"certificate until {each.end:%Y-%m-%d}"
        )
        for role, each in certificates.items()
    ]
    return found, _prediction(given, links)


def _of_link(name: str, link: Link) -> Finding:
    what = f"round trip {1e3 * link.round_trip:.2f} ms, {link.bandwidth / 1e6:.1f} MB/s, clock {link.clock:+.1f} s"
    verdict = _PASS
    for bad, cure in (
        (link.round_trip > _SLOW, "a decision takes some ten round trips: bring the machines nearer"),
        (link.bandwidth < _NARROW, "another line, or fewer arms and dimensions"),
        (abs(link.clock) > _APART, "set both clocks by NTP: certificates are judged by them"),
    ):
        if bad:
            verdict, what = _WARN, f"{what}; {cure}"
    return Finding(verdict, f"link to {name}", what, link.round_trip, link.bandwidth)


def _prediction(given: Prepared, links: list[Link]) -> dict[str, Any]:
    """Rounds, each at the slowest link's delay, and bytes at the narrowest; what machines compute is not in it."""
    cost, apart = given.apart.cost, given.apart
    if cost is None:
        return {"text": f"how long a {apart.unit} takes is not known beforehand: it is mostly computing"}
    delay = max(link.round_trip for link in links) / 2
    narrowest = min(link.bandwidth for link in links)
    seconds = cost.rounds * delay + (apart.parties - 1) * cost.opened_bytes / narrowest
    text = (
        f"{cost.rounds} rounds and {cost.opened_bytes:,} bytes to each party: a {apart.unit} takes at least "
        f"{1e3 * seconds:.1f} ms over these links"
    )
    return {"rounds": cost.rounds, "bytes": cost.opened_bytes, "seconds_at_least": seconds, "text": text}
