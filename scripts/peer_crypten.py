#!/usr/bin/env python3
"""Measures CrypTen, a peer framework, on operations comparable with ours: time, rounds, bytes and error of each.

Run it with the environment that scripts/setup_crypten makes. For each operation it starts one process per party; they
talk over torch.distributed (gloo) on the loopback interface, one thread each, with CrypTen's default configuration and
provider. TrustedFirstParty, that provider, has party 0 deal the correlated randomness inside the measured call, almost
free of communication: the figures are CrypTen's online phase plus a cheap stand-in for its offline phase.

  microseconds     median over the repeats, after two warm-ups; a barrier precedes each run, and the time of a run is
                   that of its slowest party
  rounds           collective calls, as CrypTen's communicator counts them, in a run of its own, not timed
  bytes_per_party  from the same run: bytes sent plus bytes received, mean over the parties
  max_error        greatest distance from the plaintext result over all runs; beyond the tolerance the row is an error
  size             number of values; arms for argmax; side of the matrices for matmul
"""

import argparse
import contextlib
import functools
import importlib
import importlib.util
import json
import multiprocessing
import os
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

WARM_UPS = 2
EXCHANGES = 2000
PLAINTEXT_SEED = 2024
TRANSPORT = "gloo-all-gather"

Report = dict[str, Any]  # what one party measured
Measure = Callable[[int], Report]  # one party's part in a measurement, given its rank


@dataclass(frozen=True)
class Operation:
    """One measured operation: its inputs, its call on CrypTen tensors, and the plaintext call it must agree with."""

    name: str
    shape: tuple[int, ...]
    interval: tuple[float, float]  # both inputs are uniform on (low, high]
    private: Callable[[Any, Any], Any]
    plain: Callable[[Any, Any], Any]
    tolerance: float = 0.01
    config: dict[str, Any] = field(default_factory=dict)


def argmax(name: str, arms: int, config: dict[str, Any]) -> Operation:
    """The one-hot argmax of one vector."""
    one_hot = lambda x, _: (x == x.max()).float()  # noqa: E731
    return Operation(name, (arms,), (-6, 6), lambda x, _: x.argmax(one_hot=True), one_hot, config=config)


def reciprocal(name: str, config: dict[str, Any]) -> Operation:
    """1/x; by default CrypTen first finds the sign of x, which Newton's iteration needs to be positive."""
    return Operation(name, (100,), (1, 2), lambda x, _: x.reciprocal(), lambda x, _: 1 / x, config=config)


def rescale(x: Any, _: Any) -> Any:
    """The truncation that ends every product, alone: values at twice the fixed-point precision return to the usual."""
    return x._tensor.div(x.encoder.scale)


OPERATIONS = [
    Operation("addition", (100,), (-6, 6), lambda x, y: x + y, lambda x, y: x + y),
    Operation("product", (100,), (-6, 6), lambda x, y: x * y, lambda x, y: x * y),
    Operation("product", (1000,), (-6, 6), lambda x, y: x * y, lambda x, y: x * y),
    Operation("square", (1000,), (-6, 6), lambda x, _: x.square(), lambda x, _: x * x),
    Operation("matmul", (64, 64), (-1, 1), lambda x, y: x.matmul(y), lambda x, y: x @ y),
    Operation("truncate", (1000,), (-6 * 2**16, 6 * 2**16), rescale, lambda x, _: x / 2**16),
    Operation("comparison", (1000,), (-6, 6), lambda x, _: x < 0, lambda x, _: (x < 0).float()),
    argmax("argmax", 10, {}),
    argmax("argmax", 100, {}),
    argmax("argmax-pairwise", 10, {"functions.max_method": "pairwise"}),
    argmax("argmax-pairwise", 100, {"functions.max_method": "pairwise"}),
    reciprocal("reciprocal", {}),
    reciprocal("reciprocal-newton", {"functions.reciprocal_all_pos": True}),
    Operation("sqrt", (100,), (0, 10), lambda x, _: x.sqrt(), lambda x, _: x.sqrt(), tolerance=0.1),
    Operation("exp", (100,), (-1, 1), lambda x, _: x.exp(), lambda x, _: x.exp(), tolerance=0.05),
]


def import_crypten() -> tuple[ModuleType, ModuleType]:
    """Imports CrypTen and torch, single-threaded, with a stand-in for a name that today's torch no longer has."""
    os.environ["OMP_NUM_THREADS"] = "1"
    registration = ModuleType("torch.onnx._internal.registration")
    vars(registration)["registry"] = None  # CrypTen's ONNX converter imports it and never uses it
    sys.modules[registration.__name__] = registration
    with contextlib.redirect_stdout(sys.stderr):
        crypten, torch = importlib.import_module("crypten"), importlib.import_module("torch")
    torch.set_num_threads(1)
    return crypten, torch


def measure_operation(operation: Operation, repeats: int, rank: int) -> Report:
    """One party's part in one operation: the time of each repeat, then the communication of one more run."""
    crypten, torch = import_crypten()
    communicator = crypten.communicator.get()
    torch.manual_seed(PLAINTEXT_SEED)  # every party knows the plaintext, to check the result; party 0 shares it out
    low, high = operation.interval
    x, y = (high - (high - low) * torch.rand(operation.shape) for _ in range(2))
    private_x, private_y = crypten.cryptensor(x, src=0), crypten.cryptensor(y, src=0)
    expected = operation.plain(x, y)
    times, errors = [], []
    with crypten.cfg.temp_override(operation.config):
        for _ in range(WARM_UPS + repeats):
            communicator.barrier()
            started = time.perf_counter_ns()
            result = operation.private(private_x, private_y)
            times.append((time.perf_counter_ns() - started) / 1000)
            errors.append(float((result.get_plain_text() - expected).abs().max()))
        with crypten.cfg.temp_override({"communicator.verbose": True}):
            communicator.reset_communication_stats()
            operation.private(private_x, private_y)
    if not max(errors) <= operation.tolerance:
        raise ArithmeticError(f"the result is off by {max(errors):g}, more than {operation.tolerance:g}")
    counts = communicator.get_communication_stats()
    return {"times": times[WARM_UPS:], "rounds": counts["rounds"], "bytes": counts["bytes"], "max_error": max(errors)}


def measure_transport(parties: int, rank: int) -> Report:
    """One party's part in the transport baseline: an all-gather of 8 bytes, back to back, without CrypTen."""
    _, torch = import_crypten()
    mine, everyone = torch.tensor([rank]), [torch.tensor([-1]) for _ in range(parties)]
    times = []
    for _ in range(WARM_UPS + EXCHANGES):
        started = time.perf_counter_ns()
        torch.distributed.all_gather(everyone, mine)
        times.append((time.perf_counter_ns() - started) / 1000)
    max_error = max(abs(int(received) - sender) for sender, received in enumerate(everyone))
    return {"times": times[WARM_UPS:], "rounds": 1, "bytes": 2 * 8 * (parties - 1), "max_error": max_error}


def run_party(rank: int, parties: int, timeout: int, directory: Path, measure: Measure) -> None:
    """The life of one party's process: it joins the group, measures, writes its report and leaves the group."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends its parties
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.alarm(timeout + 5)  # ends this process even if the parent is gone
    os.dup2(2, 1)  # stdout is for the document alone
    loopback = next(name for _, name in socket.if_nameindex() if name.startswith("lo"))
    os.environ.update(RENDEZVOUS=f"file://{directory}/rendezvous", DISTRIBUTED_BACKEND="gloo")
    os.environ.update(GLOO_SOCKET_IFNAME=loopback, WORLD_SIZE=str(parties), RANK=str(rank))
    crypten, _ = import_crypten()
    try:
        crypten.init()
        report = measure(rank)
    except Exception as error:
        report = {"error": f"{type(error).__name__}: {error}"}
    (directory / f"report-{rank}").write_text(json.dumps(report))
    if crypten.is_initialized():
        crypten.uninit()


def run_parties(parties: int, timeout: int, measure: Measure) -> list[Report]:
    """Runs one process per party and returns their reports; no process outlives this call, whatever happens."""
    fork = multiprocessing.get_context("fork")  # the parent has imported torch already, so a party starts at once
    deadline = time.monotonic() + timeout
    with tempfile.TemporaryDirectory() as name:
        arguments = (parties, timeout, Path(name), measure)
        processes = [fork.Process(target=run_party, args=(rank, *arguments)) for rank in range(parties)]
        try:
            for process in processes:
                process.start()
            for process in processes:
                process.join(max(0, deadline - time.monotonic()))
            if time.monotonic() >= deadline:
                raise TimeoutError(f"no result within {timeout} seconds")
            files = list(Path(name).glob("report-*"))
            if len(files) < parties:
                raise RuntimeError(f"{parties - len(files)} of {parties} parties ended without a report")
            reports = [json.loads(file.read_text()) for file in files]
        finally:
            for process in filter(lambda process: process.pid, processes):
                process.kill()
                process.join()
    if errors := {report["error"]: None for report in reports if "error" in report}:
        raise RuntimeError("; ".join(errors))
    return reports


def measure_row(labels: dict[str, Any], timeout: int, measure: Measure) -> dict[str, Any]:
    """Measures one thing among labels["parties"] parties; a row whose check fails has an error text and no figures."""
    row = labels | {"rounds": None, "bytes_per_party": None}
    row |= {"microseconds": None, "max_error": None, "version": import_crypten()[0].__version__}
    try:
        reports = run_parties(labels["parties"], timeout, measure)
        slowest = [max(times) for times in zip(*(report["times"] for report in reports), strict=True)]
        row["rounds"] = max(report["rounds"] for report in reports)
        row["bytes_per_party"] = round(statistics.mean(report["bytes"] for report in reports))
        row["microseconds"] = round(statistics.median(slowest), 1)
        row["max_error"] = max(report["max_error"] for report in reports)
    except (RuntimeError, TimeoutError) as error:
        row["error"] = str(error)
    print(f"{Path(sys.argv[0]).stem}: {json.dumps(row)}", file=sys.stderr)
    return row


def at_least(least: int) -> Callable[[str], int]:
    """A type for argparse: whole numbers from `least` on."""

    def parse(text: str) -> int:
        if not (text.isascii() and text.isdigit() and int(text) >= least):
            raise argparse.ArgumentTypeError(f"must be a whole number, at least {least}, not {text!r}")
        return int(text)

    return parse


def add_options(parser: argparse.ArgumentParser, timed: str) -> None:
    """The options that CrypTen's measurements have in common."""
    parties_help = "number of parties, at least 2 (default: %(default)s)"
    parser.add_argument("--parties", type=at_least(2), default=2, help=parties_help)
    timeout_help = f"seconds allowed per {timed} (default: %(default)s)"
    parser.add_argument("--timeout", type=at_least(1), default=120, help=timeout_help)
    parser.add_argument("--json", metavar="FILE", default="-", help="where the rows go; - is stdout (default)")


def make_ready(parser: argparse.ArgumentParser, file: str) -> None:
    """Refuses what would fail only after the measurement, and makes a SIGTERM clean up."""
    if file != "-" and (Path(file).is_dir() or not Path(file).absolute().parent.is_dir()):
        parser.error(f"--json: cannot write {file}: name a file in a folder that exists, or - for stdout")
    if importlib.util.find_spec("crypten") is None:
        program = Path(sys.argv[0]).name
        parser.error(f"no CrypTen here: run scripts/setup_crypten, then .venv-crypten/bin/python scripts/{program}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # leave through the cleaning-up of run_parties


def write_rows(rows: list[dict[str, Any]], file: str) -> None:
    """The rows as one JSON document, into the file or, for -, to stdout."""
    document = json.dumps(rows, indent=2) + "\n"
    if file == "-":
        sys.stdout.write(document)
    else:
        Path(file).write_text(document)


def main() -> None:
    """Reads the command line, measures, and writes the rows as one JSON document."""
    names = list(dict.fromkeys(operation.name for operation in OPERATIONS))
    epilog = f"operations: {', '.join(names)}\nexample: {sys.argv[0]} --parties 2 --only product,argmax --json -"
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_options(parser, "operation")
    repeats_help = "timed runs of each operation (default: %(default)s)"
    parser.add_argument("--repeats", type=at_least(1), default=9, help=repeats_help)
    parser.add_argument("--only", metavar="OP,OP", default=",".join(names), help="operations to measure (default: all)")
    transport_help = f"add a row {TRANSPORT}: one all-gather of 8 bytes, median of {EXCHANGES}; the floor of a round"
    parser.add_argument("--transport-baseline", action="store_true", help=transport_help)
    options = parser.parse_args()
    chosen, parties, timeout = options.only.split(","), options.parties, options.timeout
    if unknown := [name for name in chosen if name not in names]:
        parser.error(f"--only: no operation is called {', '.join(unknown)}; choose from {', '.join(names)}")
    make_ready(parser, options.json)

    rows = []
    for operation in (operation for operation in OPERATIONS if operation.name in chosen):
        labels = {"op": operation.name, "parties": parties, "size": operation.shape[0]}
        rows.append(measure_row(labels, timeout, functools.partial(measure_operation, operation, options.repeats)))
    if options.transport_baseline:
        labels = {"op": TRANSPORT, "parties": parties, "size": 1}
        rows.append(measure_row(labels, timeout, functools.partial(measure_transport, parties)))
    write_rows(rows, options.json)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
