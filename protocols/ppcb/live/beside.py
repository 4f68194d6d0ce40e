"""One role of a service between machines, and beside it what its owner's programs ask: by the role's file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mpc.errors import ConfigError
from mpc.net.pages import url_of
from mpc.net.requests import Limits
from mpc.net.tokens import Tokens, make_tokens
from mpc.net.web import Web, serving_requests

from ...run.folder import reserved
from ...run.member_process import Prepared
from ...run.on_shares import OnShares
from .program import Live
from .site import place_of


@contextmanager
def asked_beside(given: Prepared, *, make: bool = False) -> Iterator[None]:
    """While it is entered, programs may ask; what they ask enters the run that `play` plays.  make: a missing token."""
    config, program = given.config, given.apart.program if isinstance(given.apart, OnShares) else None
    if not isinstance(program, Live):
        raise ConfigError("this run has its contexts beforehand: play it with 'masked party', or say live = true")
    if config.serve is None:
        raise ConfigError("serve.listen is missing: say where its owner's programs ask, such as 127.0.0.1:7780")
    if config.every != 1:
        raise ConfigError("a service keeps each turn before it answers: set output.checkpoint_every = 1 at all roles")
    keep = config.folder / "serve"
    with reserved(keep, "output.folder"):
        place = place_of(program, config.role, keep, config.beat)
        if make and config.tokens is not None:
            for path in make_tokens(config.tokens, (place.asks,)):
                given.say(f"made {path}: hand it to {place.asks}'s programs, and to nobody else")
        tokens = None if config.tokens is None else Tokens.read(config.tokens, (place.asks,))
        program.feed = place.feed
        with serving_requests(Web(place.site, tokens=tokens, limits=Limits(), say=given.say), config.serve) as where:
            given.say(f"{url_of(*where)}/docs says what {place.asks}'s programs ask here")
            try:
                yield
            finally:
                place.feed.end()
