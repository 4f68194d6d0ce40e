"""CrypTen's tensors as shares, and back.  The door to CrypTen, which is imported when it is asked for.

    CrypTen                                        here
    party p's CrypTensor: an int64 word            party p's row of a Share: a uint64 word
    x = sum_p x_p mod 2^64, x = v 2^bits           the same sum, the same fixed point

An arithmetic CrypTensor and a Share are the same words: no message turns one into the other, and the value is the same
to its last bit.  The words are not.  CrypTen's masks come from torch's generator for processors, a Mersenne twister
whose seed has 32 bits, so whoever holds some of them can find the rest by trying seeds.  What comes from CrypTen
therefore gets a sharing of 0 of ours added, and so does what goes there, since CrypTen opens words as they are.

That mends the words and nothing that CrypTen has sent: its own openings are masked by that twister.  Its default
provider, TrustedFirstParty, has party 0 deal all randomness, so party 0 could unmask what is opened while CrypTen
computes.  Parties that trust neither compute here.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .. import ring
from ..errors import ConfigError, RangeError
from ..net.transport import Transport
from ..session import Session
from ..share import Share

VERSION = "0.4.1"
PYTHON = "MASKED_CRYPTEN_PYTHON"
"""The environment variable that names a Python with CrypTen."""
_REGISTRATION = "torch.onnx._internal.registration"
_ONE_EACH = "CrypTen plays one party in each process: start them by torchrun, or launch(transport='gloo')"


def crypten_python() -> str:
    """The Python that has CrypTen: the one that is named, this one, or that of `scripts/setup_crypten`."""
    made = Path(__file__).resolve().parents[2] / ".venv-crypten" / "bin" / "python"
    if named := os.environ.get(PYTHON):
        if not os.access(named, os.X_OK):
            raise ConfigError(f"{PYTHON} names {named}, which cannot be run: name a Python that has CrypTen {VERSION}")
        return named
    if importlib.util.find_spec("crypten") is not None:
        return sys.executable
    if not os.access(made, os.X_OK):
        raise ConfigError(f"CrypTen is not here: run scripts/setup_crypten, or name a Python that has it by {PYTHON}")
    return str(made)


def load() -> ModuleType:
    """CrypTen; ConfigError where this Python has none, or another version."""
    if importlib.util.find_spec("crypten") is None:
        raise ConfigError(
            f"{sys.executable} has no CrypTen: run scripts/setup_crypten, and then this with .venv-crypten/bin/python"
        )
    if _REGISTRATION not in sys.modules and not _there(_REGISTRATION):
        stand_in = ModuleType(_REGISTRATION)  # CrypTen's ONNX converter imports a name that today's torch has no more
        vars(stand_in)["registry"] = None  # and never uses it
        sys.modules[_REGISTRATION] = stand_in
    with contextlib.redirect_stdout(sys.stderr):
        import crypten
    if crypten.__version__ != VERSION:
        raise ConfigError(f"CrypTen {VERSION} is known here, not {crypten.__version__}: run scripts/setup_crypten")
    return crypten


def join(transport: Transport) -> ModuleType:
    """CrypTen among the parties of this gloo transport, beside our own messages; clients stay outside.

    All parties call it at the same point.  `crypten.init()` would take a process group of its own, and every rank.

    Cost: CrypTen's seeds, one word from each party to the next and one from party 0 to all.
    """
    from ..net.gloo import Gloo

    if not isinstance(transport, Gloo):
        raise ConfigError(_ONE_EACH)
    crypten = load()
    kind = crypten.communicator.DistributedCommunicator
    made = kind.__new__(kind)
    made.world_size, made.rank, made._name = transport.parties, transport.node, f"rank{transport.node}"
    made.main_group = made.ttp_group = transport.group_of_parties()
    made.ttp_initialized = False
    made.reset_communication_stats()
    kind.instance = made
    crypten._setup_prng()
    return crypten


def share_of(session: Session, tensor: Any) -> Share:
    """[x] of an arithmetic CrypTensor of these parties, in fresh words.

    Needs: CrypTen has joined this session's parties.
    Error: none; the value is the same to its last bit, at CrypTen's scale.
    Cost:  no message; N - 1 words of pad for each number.
    Opens: nothing.
    """
    _check(session, load())
    if getattr(getattr(tensor, "ptype", None), "name", "") != "arithmetic":
        raise TypeError("an arithmetic CrypTensor is a share: convert a binary one with .to(crypten.mpc.arithmetic)")
    scale = int(tensor.encoder.scale).bit_length() - 1
    words = tensor.share.detach().cpu().numpy().view(np.uint64)
    return session.fresh(Share(session, words[None], scale))


def tensor_of(share: Share) -> Any:
    """The CrypTensor of a share, in fresh words.

    Needs: a share mod 2^64 without fraction bits, or with as many as CrypTen is configured for: CrypTen multiplies
           tensors of one scale only, and says nothing where they differ.
    Error, Cost, Opens: as `share_of`.
    """
    crypten = load()
    _check(share.session, crypten)
    bits = crypten.cfg.encoder.precision_bits
    if share.scale not in (0, bits):
        raise RangeError(
            f"a share with {share.scale} fraction bits, and CrypTen multiplies with {bits}: set "
            f"crypten.cfg.encoder.precision_bits = {share.scale}, or truncate"
        )
    words = share.session.fresh(share).wide()[0].view(np.int64)
    return crypten.mpc.MPCTensor.from_shares(ring.as_torch(words), precision=share.scale)


def opened(tensor: Any) -> np.ndarray:
    """The numbers behind a CrypTensor, which CrypTen opens to all parties.

    From its words: `get_plain_text` is off by one for some negative numbers, such as -131071 / 65536.
    """
    return np.asarray(tensor.reveal().numpy() / tensor.encoder.scale)


def opened_to(tensor: Any, party: int) -> np.ndarray | None:
    """The same for one party; None for the others."""
    words = tensor.reveal(dst=party)
    return None if words is None else np.asarray(words.numpy() / tensor.encoder.scale)


def _check(session: Session, crypten: ModuleType) -> None:
    """The same parties on both sides, of which this process is one."""
    if len(session.hosted) != 1:
        raise ConfigError(_ONE_EACH)
    if not crypten.is_initialized():
        raise ConfigError("CrypTen has not joined these parties: call mpc.interop.crypten.join(session.transport)")
    among = crypten.communicator.get()
    if (among.get_rank(), among.get_world_size()) != (session.hosted[0], session.parties):
        raise ConfigError(
            f"CrypTen plays party {among.get_rank()} of {among.get_world_size()} here, and this session party "
            f"{session.hosted[0]} of {session.parties}: join with its transport"
        )


def _there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        return False
