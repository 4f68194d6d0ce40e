"""A party in CrypTen's Python: takes values from CrypTen to a session and back, and prints what it found, as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import torch

from mpc import ops, ring
from mpc.interop.crypten import join, opened, share_of, tensor_of
from mpc.launch import join as join_parties
from mpc.launch import party_main
from mpc.rounds import Open
from mpc.session import Session
from offline import InsecureSeededDealer

from .programs import seeded

EDGES = np.array([[0, 1, -1, 1 << 40], [2**63 - 1, -(2**63), 12345678901234567, -(2**62)]])
REALS = np.array([1.5, -2.25, 0.0, 3.0])


def opened_here(share: Any) -> np.ndarray:
    """The signed word behind a share."""

    def program() -> Any:
        return (yield Open(share.words))

    return share.session.run(program()).view(np.int64)


def refusal(what: Any) -> str:
    try:
        what()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def there_and_back(session: Session, crypten: Any) -> dict[str, Any]:
    """Words at the edges of the ring, and what it cost to carry them over."""
    tensor = crypten.cryptensor(torch.from_numpy(EDGES), src=1, precision=0)
    before = session.round, session.meter.total.sent_bytes
    share = share_of(session, tensor)
    back = tensor_of(share)
    cost = [session.round - before[0], session.meter.total.sent_bytes - before[1]]
    return {
        "here": opened_here(share).tolist(), "back": back.reveal().tolist(), "cost": cost,
        "same words": int((share.words[0].view(np.int64) == tensor.share.numpy()).sum()),
        "same words back": int((share.words[0].view(np.int64) == back.share.numpy()).sum()),
    }  # fmt: skip


def together(session: Session, crypten: Any) -> dict[str, Any]:
    """A number of CrypTen's times one of ours, computed on either side."""
    crypten.cfg.encoder.precision_bits = ring.FRACTION_BITS
    theirs = crypten.cryptensor(torch.from_numpy(REALS), src=0)
    ours = session.share(REALS if session.hosted[0] == 1 else None, owner=1, shape=REALS.shape)
    mine = share_of(session, theirs)
    product = session.run(ops.product(session, mine, ours))
    return {
        "scale": mine.scale,
        "here": (opened_here(product) * 2.0**-product.scale).tolist(),
        "there": opened(theirs * tensor_of(ours)).tolist(),
    }


def refusals(session: Session, crypten: Any) -> list[str]:
    tensor, share = crypten.cryptensor(torch.zeros(2), src=0), session.constant(np.zeros(2), 8)
    others = Session.simulate(2, InsecureSeededDealer(2, 7))
    return [
        refusal(lambda: share_of(session, tensor.to(crypten.mpc.binary))),
        refusal(lambda: tensor_of(share)),
        refusal(lambda: tensor_of(share.integers().mod(8))),
        refusal(lambda: share_of(others, tensor)),
        refusal(lambda: join(others.transport)),
    ]


def drawn(seed: int) -> list[int]:
    """Masks that CrypTen makes from a seed."""
    from crypten.common.rng import generate_random_ring_element

    return generate_random_ring_element((8,), generator=torch.Generator().manual_seed(seed)).tolist()


def main() -> None:
    transport = join_parties()
    with seeded(transport) as session:
        crypten = join(transport)
        said = {
            "there and back": there_and_back(session, crypten), "together": together(session, crypten),
            "decoded": opened(crypten.cryptensor(torch.tensor([-131071 / 65536]), src=0)).tolist(),
        "refusals": refusals(session, crypten), "one seed": drawn(5) == drawn(5 + (1 << 32)) != drawn(6),
        }  # fmt: skip
    print(json.dumps(said), flush=True)


if __name__ == "__main__":
    party_main(main)
