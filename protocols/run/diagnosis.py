"""What a session's links and certificates will do, by the measures of all its roles at once.  Knows no inputs.

A role that is not there in time is a row of its own; the links of the others are measured.
"""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from mpc.errors import ConfigError, PeerLost
from mpc.net.certificates import Certificate
from mpc.net.probe import Link, probe
from mpc.net.tls import let_idle, over, version_of
from mpc.net.tuning import KEEP_ALIVE, keeps_window

from .exits import say
from .member_process import Prepared, gathered_in_time

PASS, WARN, FAIL = "PASS", "WARN", "FAIL"
_SLOW = 0.1  # seconds of a round trip
_FAR = 0.01  # seconds of a round trip that is worth saving
_FORGETS = (
    "after a silence TCP begins with 14 kB again here, and what is larger takes round trips more: let users have bbr "
    "(net.ipv4.tcp_allowed_congestion_control), or set net.ipv4.tcp_slow_start_after_idle to 0"
)
_NARROW = 1e6  # bytes a second
_APART = 60.0  # seconds between two clocks


@dataclass(frozen=True)
class Finding:
    """verdict: PASS, WARN or FAIL.  of: a link, a role or a certificate.  what: was found, and the cure.

    tls: the version that a link to this role speaks.
    """

    verdict: str
    of: str
    what: str
    seconds: float | None = None
    bytes_per_second: float | None = None
    tls: str | None = None


def diagnosed(
    given: Prepared, *, wait: float = 60.0, idle: float = 0.0, sleep: Callable[[float], None] = time.sleep
) -> tuple[list[Finding], dict[str, Any]]:
    """Findings, and what a decision will take as far as this role's links say.

    wait: seconds for the others.  idle: seconds for which links are left alone, to find out whether they last.
    """
    config, waits = given.config, f" idle {idle:g}" if idle else ""
    member = replace(given.member, session=f"{config.session} doctor{waits}")
    names = member.names
    links, missing = gathered_in_time(replace(given, member=member), wait)
    versions = {names[peer]: version_of(sock) for peer, sock in links.items()}
    mesh = over(member, links, config.round + 2.0 * wait, say)
    try:
        measured = probe(mesh, member.linked, links)
        found = [_of_link(names[peer], each) for peer, each in sorted(measured.items())]
        far = [names[peer] for peer, each in measured.items() if _is_far(each) and not keeps_window(links[peer])]
        found += [Finding(WARN, f"silent link to {name}", _FORGETS) for name in far]
        alive = [peer for peer, each in measured.items() if isinstance(each, Link)]
        if idle:
            let_idle(links)
            sleep(idle)
            again = probe(mesh, member.linked, alive)
            found += [_of_idle(names[peer], idle, each) for peer, each in sorted(again.items())]
        elif alive:
            found.append(Finding(PASS, "idle links", f"kept alive each {KEEP_ALIVE} s; --idle 300 tries them without"))
    finally:
        mesh.close()
    found += [
        Finding(FAIL, f"link to {names[peer]}", f"none after {wait:g} s: {why}")
        for peer, why in sorted(missing.items())
    ]
    certificates = {config.role: member.certificate}
    certificates |= {names[other]: peer.certificate for other, peer in member.peers.items()}
    now = dt.datetime.now(dt.timezone.utc)
    found += [_of_certificate(role, each, now, versions.get(role)) for role, each in certificates.items()]
    return found, _prediction(given, [each for each in measured.values() if isinstance(each, Link)])


def _of_certificate(role: str, certificate: Certificate, now: dt.datetime, tls: str | None) -> Finding:
    """tls: the version that is spoken with it, of one that there is a link to."""
    spoken = f"; {tls} is spoken" if tls else ""
    try:
        soon = certificate.check_time(now)
    except ConfigError as error:
        return Finding(FAIL, role, f"{error}{spoken}", tls=tls)
    what = soon or f"certificate until {certificate.end:%Y-%m-%d}"
    return Finding(WARN if soon else PASS, role, f"{what}{spoken}", tls=tls)


def _of_link(name: str, link: Link | PeerLost) -> Finding:
    if isinstance(link, PeerLost):
        return Finding(FAIL, f"link to {name}", f"{link}: start all doctors again")
    what = f"round trip {1e3 * link.round_trip:.2f} ms, {link.bandwidth / 1e6:.1f} MB/s, clock {link.clock:+.1f} s"
    verdict = PASS
    for bad, cure in (
        (link.round_trip > _SLOW, "a decision takes some ten round trips: bring the machines nearer"),
        (link.bandwidth < _NARROW, "another line, or fewer arms and dimensions"),
        (abs(link.clock) > _APART, "set both clocks by NTP: certificates are judged by them"),
    ):
        if bad:
            verdict, what = WARN, f"{what}; {cure}"
    return Finding(verdict, f"link to {name}", what, link.round_trip, link.bandwidth)


def _is_far(link: Link | PeerLost) -> bool:
    return isinstance(link, Link) and link.round_trip > _FAR


def _of_idle(name: str, idle: float, link: Link | PeerLost) -> Finding:
    """A link that nobody used and nothing kept alive."""
    if not isinstance(link, PeerLost):
        return Finding(PASS, f"idle link to {name}", f"lasted {idle:g} s without keep-alive")
    cut = f"was cut while it was idle for {idle:g} s"
    if idle > KEEP_ALIVE:
        return Finding(WARN, f"idle link to {name}", f"{cut}: a run keeps it alive each {KEEP_ALIVE} s")
    return Finding(
        FAIL, f"idle link to {name}", f"{cut}, and keep-alive comes each {KEEP_ALIVE} s: let the firewall wait longer"
    )


def _prediction(given: Prepared, links: Iterable[Link]) -> dict[str, Any]:
    """Rounds and hops, each at the slowest link's delay, bytes at the narrowest, and what this machine computes."""
    cost, apart, links = given.apart.cost, given.apart, list(links)
    if cost is None:
        return {"text": f"how long a {apart.unit} takes is not known beforehand: it is mostly computing"}
    said = f"{cost.rounds} rounds, {cost.client_hops} messages of clients and {cost.opened_bytes:,} bytes to each party"
    if not links:
        return {"rounds": cost.rounds, "bytes": cost.opened_bytes, "text": f"{said}: no link was measured"}
    delay = max(link.round_trip for link in links) / 2
    narrowest = min(link.bandwidth for link in links)
    on_links = (cost.rounds + cost.client_hops) * delay + (apart.parties - 1) * cost.opened_bytes / narrowest
    computing = apart.computing()
    text = (
        f"{said}: a {apart.unit} takes about {1e3 * (on_links + computing):.1f} ms, {1e3 * on_links:.1f} of them on "
        f"these links and {1e3 * computing:.1f} computing on this machine"
    )
    return {
        "rounds": cost.rounds, "client_hops": cost.client_hops, "bytes": cost.opened_bytes,
        "seconds_on_links": on_links, "seconds_computing": computing, "seconds": on_links + computing, "text": text,
    }  # fmt: skip


__all__ = ["FAIL", "PASS", "WARN", "Finding", "diagnosed"]
