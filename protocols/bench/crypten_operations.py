"""A party of CrypTen that times its operations, with its default configuration and provider, one thread.

The provider, TrustedFirstParty, has party 0 deal the correlated randomness inside the measured call, almost free of
communication: the figures are CrypTen's online phase and a cheap stand-in for its offline phase.

size: number of values; arms for argmax; side of the matrices for matmul.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import numpy as np

from mpc import ring
from mpc.interop.crypten import opened

from ..run.crypten_parties import Said, Watched, crypten_party
from ..run.program import Arrays

WARM_UPS = 2
TRANSPORT = "gloo-all-gather"
_EXCHANGES = 2000
_SEED = 2024


@dataclass(frozen=True)
class Operation:
    """One operation: its inputs, its call on CrypTensors, and the plaintext call it must agree with."""

    name: str
    shape: tuple[int, ...]
    interval: tuple[float, float]  # both inputs are uniform on (low, high]
    private: Callable[[Any, Any], Any]
    plain: Callable[[np.ndarray, np.ndarray], np.ndarray]
    tolerance: float = 0.01
    config: dict[str, Any] = field(default_factory=dict)


def _argmax(name: str, arms: int, config: dict[str, Any]) -> Operation:
    """The one-hot argmax of one vector."""
    return Operation(
        name, (arms,), (-6, 6), lambda x, _: x.argmax(one_hot=True), lambda x, _: x == x.max(), config=config
    )


def _reciprocal(name: str, config: dict[str, Any]) -> Operation:
    """1 / x; by default CrypTen first finds the sign of x, which Newton's iteration needs to be positive."""
    return Operation(name, (100,), (1, 2), lambda x, _: x.reciprocal(), lambda x, _: 1 / x, config=config)


def _rescale(x: Any, _: Any) -> Any:
    """The truncation that ends every product, alone: values at twice the fixed-point precision return to the usual."""
    return x._tensor.div(x.encoder.scale)


OPERATIONS = [
    Operation("addition", (100,), (-6, 6), lambda x, y: x + y, np.add),
    Operation("product", (100,), (-6, 6), lambda x, y: x * y, np.multiply),
    Operation("product", (1000,), (-6, 6), lambda x, y: x * y, np.multiply),
    Operation("square", (1000,), (-6, 6), lambda x, _: x.square(), lambda x, _: x * x),
    Operation("matmul", (64, 64), (-1, 1), lambda x, y: x.matmul(y), np.matmul),
    Operation("truncate", (1000,), (-6 * 2**16, 6 * 2**16), _rescale, lambda x, _: x / 2**16),
    Operation("comparison", (1000,), (-6, 6), lambda x, _: x < 0, lambda x, _: x < 0),
    _argmax("argmax", 10, {}),
    _argmax("argmax", 100, {}),
    _argmax("argmax-pairwise", 10, {"functions.max_method": "pairwise"}),
    _argmax("argmax-pairwise", 100, {"functions.max_method": "pairwise"}),
    _reciprocal("reciprocal", {}),
    _reciprocal("reciprocal-newton", {"functions.reciprocal_all_pos": True}),
    Operation("sqrt", (100,), (0, 10), lambda x, _: x.sqrt(), lambda x, _: np.sqrt(x), tolerance=0.1),
    Operation("exp", (100,), (-1, 1), lambda x, _: x.exp(), lambda x, _: np.exp(x), tolerance=0.05),
]


def play(crypten: ModuleType, given: Said, own: Arrays) -> Iterator[dict[str, Any]]:
    """Each operation that is wanted, and what an exchange of 8 bytes takes."""
    for operation in OPERATIONS:
        if not given["only"] or operation.name in given["only"]:
            labels = {"labels": {"op": operation.name, "size": operation.shape[0]}}
            try:
                yield labels | _timed(crypten, operation, given["repeats"])
            except (ArithmeticError, RuntimeError) as error:
                yield labels | {"error": f"{type(error).__name__}: {error}"}
    if not given["only"] or TRANSPORT in given["only"]:
        yield {"labels": {"op": TRANSPORT, "size": 1}} | _exchanged(crypten)


def _timed(crypten: ModuleType, operation: Operation, repeats: int) -> dict[str, Any]:
    """The time of each repeat, then the communication of one more run."""
    among, rng, (low, high) = crypten.communicator.get(), np.random.default_rng(_SEED), operation.interval
    x, y = (high - (high - low) * rng.random(operation.shape) for _ in range(2))  # all parties know it, to check
    private_x, private_y = (crypten.cryptensor(ring.as_torch(values), src=0) for values in (x, y))
    expected = operation.plain(x, y)
    times, errors = [], []
    with crypten.cfg.temp_override(operation.config):
        for _ in range(WARM_UPS + repeats):
            among.barrier()
            started = time.perf_counter_ns()
            result = operation.private(private_x, private_y)
            times.append((time.perf_counter_ns() - started) / 1000)
            errors.append(float(np.abs(opened(result) - expected).max()))
        with Watched(crypten) as seen:
            operation.private(private_x, private_y)
            counted = {"rounds": seen.rounds, "bytes": seen.bytes}
    if not max(errors) <= operation.tolerance:
        raise ArithmeticError(f"the result is off by {max(errors):g}, more than {operation.tolerance:g}")
    return {"times": times[WARM_UPS:], "max_error": max(errors), **counted}


def _exchanged(crypten: ModuleType) -> dict[str, Any]:
    """An all-gather of 8 bytes, back to back: the floor of a round."""
    among = crypten.communicator.get()
    mine, times = ring.as_torch(np.array([among.get_rank()])), []
    for _ in range(WARM_UPS + _EXCHANGES):
        started = time.perf_counter_ns()
        everyone = among.all_gather(mine)
        times.append((time.perf_counter_ns() - started) / 1000)
    wrong = max(abs(int(received) - sender) for sender, received in enumerate(everyone))
    return {"times": times[WARM_UPS:], "rounds": 1, "bytes": 2 * 8 * (among.get_world_size() - 1), "max_error": wrong}


if __name__ == "__main__":
    crypten_party(play)
