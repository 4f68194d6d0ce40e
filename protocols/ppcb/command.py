"""`masked run ppcb` and `masked launch ppcb`: the private contextual bandit, with its plaintext twin beside it."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path
from typing import Any, TypeVar

from bandits.environments import DATA_SETS, Environment
from mpc.errors import ConfigError
from mpc.launch import Place, place
from mpc.meter import Cost

from ..commands.operation import natural
from ..run.checkpoint import checkpoints
from ..run.folder import PICTURES, check_picture, reserved
from ..run.interrupt import Interrupt
from ..run.progress import Progress
from .launched import Launch, launched
from .report import document, save, text
from .run import Run
from .settings import Argmax, Division, Policy, Settings, Truncation, Variant
from .simulate import Simulation, simulate
from .torchrun import check_place, one_voice, reported, scratch_folder, torchrun

_EXAMPLES = """examples:
  masked {how} ppcb --steps 500                                    digits, 10 arms, 3 parties
  masked {how} ppcb --data mnist --data-dir DIR --steps 5000        MNIST, from a folder with its files
  masked {how} ppcb --steps 2000 --out runs/a                       Ctrl-C, then the same with --resume
  masked {how} ppcb --policy linucb --alpha 0.5 --eps 0             private LinUCB
  masked {how} ppcb --json                                          one JSON document for other tools
"""
_E = TypeVar("_E", bound=Enum)
_LONG = 2.0  # seconds of loading after which it is said
Player = Callable[[argparse.Namespace, Settings, Environment, Path], Run]


def register(run: Any, launch: Any) -> None:
    """Add `ppcb` to the programs of `run` and `launch`."""
    help_ = "the private contextual bandit, on a data set"
    simulated = _parser(run, "run", help_)
    _options(simulated, _simulated)
    processes = _parser(launch, "launch", f"{help_}: a process for each owner, the puller, the payer and the dealer")
    _options(processes, _launched)
    for parser, title in ((processes, "processes"), (simulated, "processes, where torchrun starts them")):
        where = parser.add_argument_group(title)
        where.add_argument("--timeout", type=float, help="seconds until a silent peer is lost (60)")
        where.add_argument("--material", type=Path, help="draw from the stores below this directory; no dealer then")
        where.add_argument("--session", help="the session the stores were dealt for (local)")


def _parser(programs: Any, how: str, help_: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = programs.add_parser(
        "ppcb", help=help_, description=help_, epilog=_EXAMPLES.format(how=how),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    return made


def _options(parser: argparse.ArgumentParser, player: Player) -> None:
    run = parser.add_argument_group("the run")
    run.add_argument("--data", default="digits", help=f"{', '.join(DATA_SETS)} (digits)")
    run.add_argument("--data-dir", type=Path, help="the folder with the files of a data set that is not embedded")
    add_steps(run)
    run.add_argument("--seed", type=natural, default=1, help="of contexts and rewards; in 'run' of everything (1)")
    add_settings(parser)
    kept = parser.add_argument_group("what is kept")
    kept.add_argument("--out", type=Path, help="folder of the results and checkpoints (runs/ppcb; none with --json)")
    kept.add_argument("--checkpoint-every", type=int, default=100, metavar="N", help="decisions between two (100)")
    kept.add_argument(
        "--resume",
        action="store_true",
        help="go on from the last checkpoint in --out; without it a new run discards what is there",
    )
    kept.add_argument("--plot", type=Path, help=f"write the reward curve to this file as well: {', '.join(PICTURES)}")
    kept.add_argument("--json", action="store_true", help="print one JSON document instead of text")
    parser.set_defaults(run=_run, player=player)


def add_steps(parser: Any) -> None:
    """The length of a run, on which its state bits and refreshes depend."""
    parser.add_argument("--steps", type=int, default=500, help="contexts to decide on, in each replica (500)")


def add_settings(parser: argparse.ArgumentParser) -> None:
    """The options that settings are made of, the length of the run aside."""
    bandit = parser.add_argument_group("the bandit")
    bandit.add_argument("--arms", type=int, default=10, help="how many arms (10)")
    bandit.add_argument("--dim", type=int, default=20, help="dimensions of a context (20)")
    bandit.add_argument("--parties", type=int, default=3, help="computing parties, who own the features (3)")
    bandit.add_argument("--eps", type=float, default=0.1, help="how often to explore (0.1)")
    bandit.add_argument("--policy", default=Policy.EPSILON_GREEDY.value, help=f"{_values(Policy)} (epsilon-greedy)")
    bandit.add_argument("--alpha", type=float, default=1.0, help="optimism of linucb, spread of thompson (1)")
    bandit.add_argument("--ridge", type=float, default=1.0, help="the regulariser (1)")
    bandit.add_argument("--bound", type=float, default=1.0, help="the largest norm of an owner's block (1)")
    bandit.add_argument("--batch", type=int, default=1, help="contexts decided on, and learned from, together (1)")
    bandit.add_argument("--delay", type=int, default=0, help="decisions by which rewards are late (0)")
    bandit.add_argument("--replicas", type=int, default=1, help="independent bandits in one run (1)")
    how = parser.add_argument_group("the protocol")
    how.add_argument("--variant", default=Variant.RECAST.value, help=f"{_values(Variant)} (recast)")
    how.add_argument("--reciprocal", help=f"{_values(Division)} (table)")
    how.add_argument("--newton", type=int, help="iterations of it (1 behind a table, 10 for newton)")
    how.add_argument("--argmax", help=f"{_values(Argmax)} (pairs)")
    how.add_argument("--truncation", default=Truncation.EXACT.value, help=f"{_values(Truncation)} (exact)")
    how.add_argument("--fraction-bits", type=int, default=20, help="of contexts, rewards and scores (20)")
    how.add_argument(
        "--state-bits", type=int, help="of the regressions, at least (as --fraction-bits; more for long runs)"
    )
    refresh = "decisions after which the regressions are brought back to the exact sums (as it takes; 0: never)"
    how.add_argument("--refresh", type=int, metavar="N", help=refresh)


def settings_of(options: argparse.Namespace) -> Settings:
    """Settings from `add_settings` and `add_steps`."""
    if options.steps < 1:
        raise ConfigError(f"at least 1 step, not {options.steps}")
    if options.parties < 2:
        raise ConfigError(f"secret sharing needs at least 2 parties, not {options.parties}")
    if options.parties > options.dim:
        raise ConfigError(f"{options.parties} owners of {options.dim} features: each owns at least one")
    variant = _chosen(Variant, options.variant, "--variant")
    if variant is Variant.PUBLISHED and (options.argmax is not None or options.reciprocal is not None):
        raise ConfigError(
            "--argmax and --reciprocal are of the recast: Algorithm 1 as published has its own argmax, in two passes, "
            "and its own reciprocal, of --newton iterations; leave them out"
        )
    division = _chosen(Division, _or(options.reciprocal, Division.TABLE.value), "--reciprocal")
    if division is Division.TABLE and options.newton:
        division = Division.TABLE_NEWTON
    settings = Settings(
        arms=options.arms, dim=options.dim, eps=options.eps, replicas=options.replicas, batch=options.batch,
        delay=options.delay, policy=_chosen(Policy, options.policy, "--policy"), alpha=options.alpha,
        ridge=options.ridge, bound=options.bound, owners=options.parties, fraction_bits=options.fraction_bits,
        state_bits=_or(options.state_bits, options.fraction_bits), division=division, newton=options.newton,
        argmax=_chosen(Argmax, _or(options.argmax, Argmax.PAIRS.value), "--argmax"),
        truncation=_chosen(Truncation, options.truncation, "--truncation"), variant=variant, refresh=options.refresh,
        steps=max(options.steps, 1 << 16),
    )  # fmt: skip
    decisions = -(-options.steps // settings.batch)
    if settings.delay >= decisions:
        raise ConfigError(
            f"rewards that are {settings.delay} decisions late never come in a run of {decisions}: more --steps, or a "
            "smaller --delay"
        )
    return settings


def options_of(options: argparse.Namespace) -> str:
    """Those of `add_settings` that are not as they are by default, as a command has them."""
    parser = argparse.ArgumentParser()
    add_settings(parser)
    given = ((name, getattr(options, name), usual) for name, usual in vars(parser.parse_args([])).items())
    return " ".join(f"--{name.replace('_', '-')} {value}" for name, value, usual in given if value != usual)


def _or(given: Any, usual: Any) -> Any:
    return usual if given is None else given


def _values(kind: type[Enum]) -> str:
    return ", ".join(member.value for member in kind)


def _chosen(kind: type[_E], name: str, flag: str) -> _E:
    try:
        return kind(name)
    except ValueError:
        raise ConfigError(f"{flag} is one of {_values(kind)}, not {name!r}") from None


def _run(options: argparse.Namespace) -> None:
    here = place()
    with contextlib.nullcontext() if here is None else reported():
        with one_voice(here):
            settings, out = _checked(options, here)
            environment = _environment(options, speaks=here is None or not here.node)
        if here is not None:
            run = _ranked(options, settings, environment, out, here)
            if run is not None:
                _report(options, run, environment.name, out)
            return
        with _keep(out) as keep:
            _report(options, options.player(options, settings, environment, keep), environment.name, out)


def _checked(options: argparse.Namespace, here: Place | None) -> tuple[Settings, Path | None]:
    """Settings, and the folder of what is kept, if anything is."""
    if options.resume and options.json and options.out is None:
        raise ConfigError("--resume needs the folder of the run's checkpoints: name it with --out")
    if options.checkpoint_every < 1:
        raise ConfigError(f"at least 1 decision between checkpoints, not {options.checkpoint_every}")
    if here is None and options.player is _simulated:
        for name in ("material", "session", "timeout"):
            if getattr(options, name) is not None:
                raise ConfigError(f"--{name} is for parties in processes of their own: use 'masked launch ppcb'")
    settings = settings_of(options)
    if here is not None:
        check_place(here, options.parties)
    if options.plot is not None and (here is None or not here.node):
        check_picture(options.plot)
    return settings, options.out or (None if options.json else Path("runs/ppcb"))


def _environment(options: argparse.Namespace, *, speaks: bool) -> Environment:
    """The data set; says so where it takes a while."""
    from bandits.data import DataError, load  # scikit-learn takes a second to import, and no other command needs it

    note = threading.Timer(_LONG, _say, [f"loading {options.data}: PCA and K-means"])
    note.daemon = True
    if speaks:
        note.start()
    try:
        return load(options.data, arms=options.arms, dim=options.dim, data=options.data_dir)
    except DataError as error:
        raise ConfigError(str(error)) from error
    finally:
        note.cancel()


@contextlib.contextmanager
def _keep(out: Path | None) -> Iterator[Path]:
    """Where a run keeps its checkpoints: below `out`, or for its own time only."""
    if out is None:
        with tempfile.TemporaryDirectory(prefix="masked-") as scratch:
            yield Path(scratch) / "keep"
        return
    with reserved(out / "checkpoints"):
        yield out / "checkpoints"


def _report(options: argparse.Namespace, run: Run, data: str, out: Path | None) -> None:
    """Print and write what there is; exit code 130 if the run was stopped."""
    print(json.dumps(document(run, options.seed), indent=1) if options.json else text(run), flush=True)
    files = save(run, options.seed, data, out) if out is not None else []
    if options.plot is not None:
        from .plots import reward_curve

        reward_curve(run, options.plot)
        files = [options.plot, *files]
    for path in [] if options.json else files:
        print(f"{'reward curve' if path.suffix in PICTURES else 'written'}: {path}")
    if run.steps < options.steps:
        sys.stdout.flush()
        cure = f": go on with --resume and --out {out}" if out is not None else ", and nothing is kept without --out"
        print(f"stopped at step {run.steps:,} of {options.steps:,}{cure}", file=sys.stderr)
        raise SystemExit(130)


def _simulated(options: argparse.Namespace, settings: Settings, environment: Environment, keep: Path) -> Run:
    progress = Progress(options.steps // settings.batch, batch=settings.batch)
    with Interrupt() as interrupt:

        def report(simulation: Simulation) -> bool:
            cost = simulation.session.meter.total
            progress(simulation.done, _running(simulation.world.average_reward, cost, simulation.done))
            return not interrupt.asked

        try:
            run = simulate(
                environment, settings, parties=options.parties, steps=options.steps, seed=options.seed,
                progress=report, folder=keep, every=options.checkpoint_every, resume=options.resume,
            )  # fmt: skip
        except KeyboardInterrupt:
            last = [path.stem for path in checkpoints(keep)[-1:]]
            _say(f"stopped within a decision; {f'the last {last[0]} is kept' if last else 'nothing was kept yet'}")
            raise
    progress.end()
    return run


def _launched(options: argparse.Namespace, settings: Settings, environment: Environment, keep: Path) -> Run:
    progress = Progress(options.steps // settings.batch, batch=settings.batch)
    with tempfile.TemporaryDirectory(prefix="masked-") as scratch:
        run = launched(
            environment, settings, _how(options, keep), Path(scratch), say=_say,
            watch=lambda done, reward, cost: progress(done, _running(reward, cost, 1)),
        )  # fmt: skip
    progress.end()
    return run


def _ranked(
    options: argparse.Namespace, settings: Settings, environment: Environment, out: Path | None, here: Place
) -> Run | None:
    """As one of the ranks that torchrun started; without a folder, only the end is kept, and only for the result."""
    if out is not None:
        return torchrun(environment, settings, _how(options, out / "checkpoints"), here, scratch=False)
    how = replace(_how(options, scratch_folder()), every=options.steps)
    return torchrun(environment, settings, how, here, scratch=True)


def _how(options: argparse.Namespace, keep: Path) -> Launch:
    return Launch(
        options.parties, options.steps, options.seed, keep, options.checkpoint_every, options.resume,
        _or(options.timeout, 60.0), options.material, _or(options.session, "local"), options_of(options),
    )  # fmt: skip


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _running(reward: float, cost: Cost, decisions: int) -> str:
    return f"  reward {reward:.4f}  {cost.rounds / decisions:g} rounds  {cost.opened_bytes / decisions / 1e3:,.1f} kB"
