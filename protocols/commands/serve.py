"""`masked serve`: the bandit beside the programs that need an arm now, over HTTP."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.extras import extra

from ..run.parser import count_or_names, whole

_ABOUT = """A private contextual bandit as a service: owners send parts of contexts, the puller asks for an arm, and the
payer says what it paid, when it is known.  --try has all parties in this process: to try it, and where one process may
see everything.  What was answered is on disk: after a crash, start the same command again.
"""
_EXAMPLES = """examples:
  masked serve --try --folder trial --arms ibuprofen,naproxen,paracetamol --owners 2,1,1 --make-tokens
  masked serve --try --folder trial                          go on with what is there
  masked serve --try --folder trial --steps 1e5              learn from more than was declared
  curl -H "Authorization: Bearer $(cat trial/tokens/watcher.token)" http://127.0.0.1:7780/ledger
"""
_LISTEN = "127.0.0.1:7780"
_SIZES = {"batch": (64, 1), "longest": (4096, 1), "body": (1 << 20, 100)}  # if not said, and the least
_OF_TRY = (
    "folder", "listen", "tokens", "no_tokens", "arms", "owners", "policy", "eps", "alpha", "ridge", "bound",
    "reward_range", "most_unpaid", "steps", "batch", "longest", "body",
)  # fmt: skip


def register(commands: Any, _: Sequence[str]) -> None:
    """Add `serve`."""
    serve: ArgumentParser = commands.add_parser(
        "serve", help="decide and learn for other programs, over HTTP", description=_ABOUT, epilog=_EXAMPLES,
        formatter_class=RawDescriptionHelpFormatter,
    )  # fmt: skip
    serve.add_argument("--try", dest="alone", action="store_true", help="with all parties in this process")
    serve.add_argument("--config", type=Path, help="beside one role of a session between machines: its file")
    serve.add_argument("--resume", action="store_true", help="with --config: go on with what all roles kept")
    serve.add_argument("--folder", type=Path, help="with --try: where the bandit is, or will be")
    serve.add_argument("--listen", metavar="HOST:PORT", help=f"of this machine, if not said ({_LISTEN})")
    tokens = serve.add_argument_group("who may ask")
    tokens.add_argument("--tokens", type=Path, metavar="DIR", help="a file for each role (FOLDER/tokens)")
    tokens.add_argument("--make-tokens", action="store_true", help="make those that are missing")
    tokens.add_argument("--no-tokens", action="store_true", help="whoever is on this machine may ask as any role")
    made = serve.add_argument_group("the bandit, when it is made")
    made.add_argument("--arms", type=count_or_names, help="how many, or their names with commas between them")
    made.add_argument("--owners", type=_widths, metavar="D0,D1,...", help="features of each owner")
    made.add_argument("--policy", choices=("epsilon-greedy", "linucb", "thompson"), help="(epsilon-greedy)")
    made.add_argument("--eps", type=float, help="how often it explores (0.1)")
    made.add_argument("--alpha", type=float, help="of linucb and thompson (1)")
    made.add_argument("--ridge", type=float, help="of its regressions (1)")
    made.add_argument("--bound", type=float, help="the largest norm of one owner's features (1)")
    made.add_argument("--reward-range", type=_range, metavar="LOW,HIGH", help="where every reward lies (0,1)")
    made.add_argument("--most-unpaid", type=whole, metavar="N", help="decisions that are kept for a reward (10,000)")
    made.add_argument("--steps", type=whole, metavar="N", help="rewards to learn from, or more than before (10,000)")
    serve._negative_number_matcher = re.compile(r"^-[\d.][-\d.,e+]*$")
    limits = serve.add_argument_group("limits")
    limits.add_argument("--batch", type=whole, metavar="N", help="contexts taken together (64)")
    limits.add_argument("--longest", type=whole, metavar="N", help="contexts and rewards that may wait (4,096)")
    limits.add_argument("--body", type=whole, metavar="BYTES", help="of a request (1,048,576)")
    serve.set_defaults(run=_serve)


def _serve(options: Namespace) -> None:
    if options.alone == (options.config is not None):
        raise ConfigError("say --try, with all parties in this process, or --config FILE of a role between machines")
    _check_said(options)
    if options.config is not None:
        _beside(options)
    elif options.folder is None:
        raise ConfigError("--try takes --folder, where the bandit is, or will be")
    else:
        _alone(options)


def _check_said(options: Namespace) -> None:
    """What is said in vain is not passed over."""
    if options.alone and options.resume:
        raise ConfigError("--resume is with --config: --try goes on with what is in its folder")
    if options.no_tokens and (options.tokens is not None or options.make_tokens):
        raise ConfigError("--no-tokens lets anybody on this machine ask: leave out --tokens and --make-tokens, or it")
    said = [name for name in _OF_TRY if (given := getattr(options, name)) is not None and given is not False]
    if options.config is not None and said:
        flag = said[0].replace("_", "-")
        raise ConfigError(f"--{flag} is with --try: what a role between machines is, its file says, {options.config}")


def _beside(options: Namespace) -> None:
    with extra("masked serve"):
        from ..ppcb.live.beside import asked_beside
    from ..run.config import read
    from ..run.log import Log
    from .config import fitting
    from .party import played

    config = read(options.config)
    log = Log(config.role, config.session, config.log)
    with log.ending():
        given = fitting(config, resume=options.resume, say=log)
        with asked_beside(given, make=options.make_tokens):
            played(given, log)


def _alone(options: Namespace) -> None:
    with extra("masked serve"):
        from mpc.net.web import Web, serve
    from mpc.net.pages import check_exposed, url_of
    from mpc.net.requests import Limits
    from mpc.net.tokens import Tokens, make_tokens

    from ..ppcb.serving.endpoints import roles_of
    from ..ppcb.serving.service import Wanted, opened
    from ..run.log import Log

    batch, longest, body = (_size(options, name, *size) for name, size in _SIZES.items())
    address, log = _address(options.listen or _LISTEN), Log("all parties", options.folder.name)
    if options.no_tokens:
        check_exposed(address[0])
    wanted = Wanted(**{name: getattr(options, name) for name in Wanted.__dataclass_fields__})
    with log.ending(), opened(
        options.folder, wanted, most=batch, longest=longest, say=log
    ) as service:  # fmt: skip
        roles, place = roles_of(service.found.bandit.settings), options.tokens or options.folder / "tokens"
        if options.make_tokens:
            for path in make_tokens(place, roles):
                log(f"made {path}: hand it to who asks as {path.stem.replace('-', ' ')}, and to nobody else")
        known = None if options.no_tokens else Tokens.read(place, roles)
        web = Web(service.site, tokens=known, limits=Limits(body=body), say=log)

        service.found.warm_up(batch)

        def ready(host: str, port: int) -> None:
            log(f"{url_of(host, port)}/docs says what is asked; {service.found.held.next_decision:,} decisions so far")

        serve(web, address, ready=ready)


def _size(options: Namespace, name: str, usual: int, least: int) -> int:
    given = usual if (said := getattr(options, name)) is None else int(said)
    if given < least:
        raise ConfigError(f"--{name} is at least {least}, not {given}")
    return given


def _address(text: str) -> tuple[str, int]:
    from ..run.config import place_of

    if (place := place_of(text, least=0)) is None:
        raise ConfigError(f"--listen is HOST:PORT, such as {_LISTEN}, not {text[:80]!r}")
    return place


def _widths(text: str) -> list[int]:
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"numbers of features, such as 2,1,1, not {text!r}") from None


def _range(text: str) -> tuple[float, float]:
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        raise ArgumentTypeError(f"two numbers, such as 0,1, not {text!r}") from None
    return low, high
