"""`masked run|launch samba`: a bandit whose arms belong to owners, as published and on shares, and its reference."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bandits.samba import NAMES, BernoulliArms, SambaError, Seeds, load_arms
from mpc.errors import ConfigError
from offline import Plan

from ..commands.operation import natural
from ..run.folder import reserved
from ..run.interrupt import Interrupt
from ..run.keeping import Keep, Stopped
from ..run.outcome import said_when_stopped, save_result, show
from ..run.progress import Progress
from .classic.kept import forget, last_common
from .classic.messages import Spec
from .classic.run import play_classic
from .mpc.launch import Launch, launched
from .mpc.run import Run
from .mpc.settings import Settings
from .mpc.simulate import plan_of, simulate
from .report import classic_document, classic_text, document, text

SAMBA = "samba"
CLASSIC, MPC = "classic", "mpc"
DEFAULT_ARMS = BernoulliArms(np.array([0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55]))
_HOSTS = 10
_ABOUT = """Federated multi-armed bandits (SAMBA): {more}.

K owners each hold one arm; DC pays for N pulls and learns the sum of what they brought.  Each arm is pulled once, then
a policy chooses.  Mode mpc: each step the owners share a score to the computing parties, which find the largest, or
draw, on shares and tell each owner its own bit; nobody learns anything else.  Mode classic: the published protocol, in
which a node called Comp decrypts masked scores.  Beside the run plays the plaintext policy with the same coins.

An arms file holds the number of arms, then a mean for each: an arm pays 1 with that chance, else 0.  Without a file ten
arms are played, with means 0.1, 0.15, ... 0.55.
"""
_EXAMPLES = """examples:
  masked {how} samba                                  ucb, the ten arms, 1000 pulls, on shares
  masked {how} samba --policy thompson --arms-file means.txt --budget 5000
  masked {how} samba --policy softmax --tau 0.02 --mode classic
  masked {how} samba --budget 100000 --out runs/a     Ctrl-C, then the same with --resume
  masked {how} samba --json                           one JSON document for other tools
{more}"""
_LAUNCH_EXAMPLES = """  masked launch samba --hosts 1                        all owners in one process
  masked offline plan samba -o plan.json               material for N - K steps, dealt beforehand:
  masked offline deal plan.json --steps 990 --out material
  masked launch samba --material material
"""


class Played(NamedTuple):
    """A run's document and text, and what its reference pulled, where one was played."""

    facts: dict[str, Any]
    text: str
    pulled: Sequence[int] | None


Player = Callable[[argparse.Namespace, BernoulliArms, "Path | None"], Played]
"""Plays a run in one mode; the folder is for its checkpoints."""


def register(run: Any, launch: Any) -> None:
    """Add `samba` to `run` and `launch`."""
    for programs, how, more in (
        (run, "run", "all roles in this process"),
        (launch, "launch", "a process for each role"),
    ):
        parser = programs.add_parser(
            SAMBA, help="a bandit whose arms belong to owners, federated", description=_ABOUT.format(more=more),
            epilog=_EXAMPLES.format(how=how, more=_LAUNCH_EXAMPLES if how == "launch" else ""),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        _options(parser, processes=how == "launch")


def add_game(parser: argparse.ArgumentParser) -> None:
    """The options that settings are made of."""
    game = parser.add_argument_group("the bandit")
    game.add_argument("--policy", default="ucb", metavar="NAME", help=f"{', '.join(NAMES)} (ucb)")
    game.add_argument("--arms-file", type=Path, metavar="FILE", help="the number of arms, then their means")
    game.add_argument("--budget", type=int, default=1000, metavar="N", help="how many pulls DC pays for (1000)")
    game.add_argument("--eps", type=float, default=0.1, help="how often epsilon-greedy explores (0.1)")
    game.add_argument("--tau", type=float, default=0.06, help="softmax's temperature, from 0.001 (0.06)")
    game.add_argument("--beta", type=float, default=0.1, help="pursuit's pace (0.1)")
    game.add_argument("--parties", type=int, default=2, help="computing parties of mode mpc, 2 or 3 as a rule (2)")


def planned(options: argparse.Namespace) -> Plan:
    """What a step on shares draws: N - K of them make a run."""
    return plan_of(_settings(options, arms_of(options)), options.parties)


def arms_of(options: argparse.Namespace) -> BernoulliArms:
    """Those of the file, or ten that come along."""
    if options.arms_file is None:
        return DEFAULT_ARMS
    try:
        return load_arms(options.arms_file)
    except SambaError as error:
        raise ConfigError(str(error)) from error


def _options(parser: argparse.ArgumentParser, *, processes: bool) -> None:
    add_game(parser)
    run = parser.add_argument_group("the run")
    run.add_argument("--mode", choices=[CLASSIC, MPC], default=MPC, help="as published, or on shares (mpc)")
    run.add_argument(
        "--seed", type=natural, default=1,
        help="of what the arms pay, and in mode classic of all coins" if processes else "of everything (1)",
    )  # fmt: skip
    run.add_argument("--bits", type=int, default=2048, help="of DC's Paillier key in mode classic (2048)")
    kept = parser.add_argument_group("what is kept")
    kept.add_argument("--out", type=Path, help=f"folder of results and checkpoints (runs/{SAMBA}; none with --json)")
    kept.add_argument("--checkpoint-every", type=int, default=1000, metavar="N", help="pulls between two (1000)")
    kept.add_argument(
        "--resume",
        action="store_true",
        help="go on from the last checkpoint in --out; without it a new run discards what is there",
    )
    kept.add_argument("--plot", type=Path, help="write the reference's reward curve to this PNG as well")
    kept.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    if processes:
        where = parser.add_argument_group("processes")
        where.add_argument(
            "--hosts", type=int, help=f"processes that play the owners of mode mpc, in blocks (K, at most {_HOSTS})"
        )
        where.add_argument("--timeout", type=float, default=60.0, help="seconds until a silent peer is lost (60)")
        where.add_argument("--material", type=Path, help="draw from the stores below this directory; no dealer then")
        where.add_argument("--session", default="local", help="the session the stores were dealt for (local)")
    players: dict[str, Player] = {
        CLASSIC: _classic_launched if processes else _classic_simulated,
        MPC: _launched if processes else _simulated,
    }
    parser.set_defaults(run=lambda options: _run(players, options))


def _run(players: dict[str, Player], options: argparse.Namespace) -> None:
    out: Path | None = options.out or (None if options.json else Path("runs") / SAMBA)
    _check(options, out)
    arms = arms_of(options)
    checkpoints = None if out is None else out / "checkpoints"
    lock = nullcontext() if checkpoints is None else reserved(checkpoints)  # of both modes: they share result.json
    with said_when_stopped(options.budget, out), lock:
        played = players[options.mode](options, arms, None if checkpoints is None else checkpoints / options.mode)
    facts = {"program": SAMBA, **played.facts}
    files = save_result(facts, options, out)
    if options.plot is not None and played.pulled is not None:
        from .plots import reward_curve

        title = f"{options.policy}, {len(arms)} arms, mode {options.mode}"
        reward_curve(arms, played.pulled, Seeds.of(options.seed).rewards, title, options.plot)
        files.append(options.plot)
    show(facts, played.text, files, options)


def _check(options: argparse.Namespace, out: Path | None) -> None:
    """What argparse does not know."""
    if options.seed >> 128:
        raise ConfigError("a seed lies between 0 and 2^128 - 1")
    if options.mode == MPC and options.parties < 2:
        raise ConfigError(f"secret sharing needs at least 2 parties, not {options.parties}")
    if options.resume and out is None:
        raise ConfigError("--resume needs the folder of the run's checkpoints: name it with --out")
    if options.checkpoint_every < 1:
        raise ConfigError(f"at least 1 pull between checkpoints, not {options.checkpoint_every}")
    if options.plot is not None and options.plot.suffix != ".png":
        raise ConfigError(f"a plot is written as PNG: name a file that ends in .png, not {options.plot.name!r}")
    if options.mode == CLASSIC and (getattr(options, "hosts", None) or getattr(options, "material", None)):
        raise ConfigError("--hosts and --material are of --mode mpc: in the published protocol each owner is alone")
    if options.plot is not None and getattr(options, "material", None) is not None:
        raise ConfigError("--plot draws the reference, whose coins are the dealer's alone with --material: drop one")


def _settings(options: argparse.Namespace, arms: BernoulliArms, hosts: int = 1) -> Settings:
    return Settings(
        options.policy, len(arms), options.budget, hosts, eps=options.eps, tau=options.tau, beta=options.beta
    )


def _keep(options: argparse.Namespace, folder: Path | None) -> Keep | None:
    return None if folder is None else Keep(folder, options.checkpoint_every, options.resume)


def _simulated(options: argparse.Namespace, arms: BernoulliArms, folder: Path | None) -> Played:
    settings = _settings(options, arms)
    progress, beside = Progress(options.budget, "pull"), _Beside(options.budget)
    with Interrupt() as interrupt:

        def report(done: int) -> bool:
            progress(done)
            if interrupt.asked or done == options.budget:
                progress.end()
            return not interrupt.asked

        run = simulate(
            arms, settings, parties=options.parties, seed=options.seed, keep=_keep(options, folder), progress=report,
            reference=beside,
        )  # fmt: skip
    beside.end()
    return _told(options, run)


def _launched(options: argparse.Namespace, arms: BernoulliArms, folder: Path | None) -> Played:
    settings = _settings(options, arms, min(len(arms), _HOSTS) if options.hosts is None else options.hosts)
    how = Launch(
        options.parties, options.seed, _keep(options, folder), options.timeout, options.material, options.session
    )
    beside = _Beside(options.budget)
    with tempfile.TemporaryDirectory(prefix="masked-") as scratch:
        run = launched(arms, settings, how, Path(scratch), beside)
    beside.end()
    return _told(options, run)


class _Beside:
    """Progress of the reference, which begins when the run is over."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._progress: Progress | None = None

    def __call__(self, done: int) -> None:
        self._progress = self._progress or Progress(self._budget, "pull of the reference")
        self._progress(done)

    def end(self) -> None:
        if self._progress is not None:
            self._progress.end()


def _told(options: argparse.Namespace, run: Run) -> Played:
    pulled = None if run.reference is None else run.reference.pulled.tolist()
    return Played(document(run, seed=options.seed), text(run), pulled)


def _classic_simulated(options: argparse.Namespace, arms: BernoulliArms, folder: Path | None) -> Played:
    with Interrupt() as interrupt:
        return _classic(options, arms, folder, stop=lambda: bool(interrupt.asked))


def _classic_launched(options: argparse.Namespace, arms: BernoulliArms, folder: Path | None) -> Played:
    return _classic(options, arms, folder, stop=None)


def _classic(
    options: argparse.Namespace, arms: BernoulliArms, folder: Path | None, *, stop: Callable[[], bool] | None
) -> Played:
    """stop: asked before each step of a run in this process."""
    progress = Progress(options.budget, "pull")
    try:
        run = play_classic(
            Spec(options.policy, options.eps, options.tau, options.beta), arms, options.budget, seed=options.seed,
            processes=stop is None, watch=progress, stop=stop, bits=options.bits, folder=folder,
            every=options.checkpoint_every, resume=options.resume,
            timeout=options.timeout if stop is None else 60.0,
        )  # fmt: skip
    except KeyboardInterrupt:
        with suppress(ConfigError):  # nothing was kept
            if folder is not None:
                raise Stopped(last_common(folder, [range(owner, owner + 1) for owner in range(len(arms))])) from None
        raise
    progress.end()
    if run.finished and folder is not None:  # what owners hold is for a run that goes on
        forget(folder)
    if not run.finished:
        raise Stopped(run.done)
    pulled = None if run.reference is None else run.reference.arms.tolist()
    return Played(classic_document(run, seed=options.seed), classic_text(run), pulled)
