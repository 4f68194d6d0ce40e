"""The hello inside a channel of TLS: what two nodes tell each other before a link is up.  Knows bytes; no sockets.

    caller                                          answerer
    who it is, whom it calls, session,   ------>
    nonce, both certificates, what is public
                                         <------    the same of its own side, and the caller's nonce; or why not

A client of TLS 1.3 takes its handshake for done before its certificate was judged, so only the answer says that it was.
What is public travels whole beside its hash: where two nodes disagree, both can say on what, with both values.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..errors import ConfigError
from . import frames

MEETING = -1
LIMIT = 1 << 16  # bytes of a hello
_NONCE = 64  # letters: 32 bytes in hexadecimal
_WORDS = 80  # letters of a value that are shown
_SHOWN = 3  # differences that are told

Public = Mapping[str, "bool | int | float | str | None"]
"""What all nodes must agree on, by name."""


@dataclass(frozen=True)
class Hello:
    """One node's word to another.

    node, to: their numbers.  nonce: fresh.  echo: the nonce that it answers.  mine, yours: fingerprints of both
    certificates, as the sender sees them.  digest: of what is public.  life: the sender's name for its ends of links,
    drawn when all meet.  knows: the other's, in a link that is made again, of which it has received so many bytes;
    `MEETING` of one that still meets others.
    """

    version: int
    node: int
    to: int
    session: str
    nonce: str
    echo: str
    mine: str
    yours: str
    digest: str
    life: str
    knows: str
    received: int
    public: Public = field(repr=False)

    def pack(self) -> bytes:
        """As it travels."""
        raw = json.dumps(asdict(self), allow_nan=False).encode()
        if len(raw) > LIMIT:
            raise ConfigError(f"the public parameters take {len(raw):,} bytes, and a hello has {LIMIT:,}: shorten them")
        return raw

    @classmethod
    def unpack(cls, raw: bytes) -> Hello:
        """ConfigError for any bytes that are none."""
        try:
            given = json.loads(raw)
            kinds = {each.name: int if each.type == "int" else str for each in fields(cls) if each.name != "public"}
            fits = isinstance(given, dict) and given.keys() == {*kinds, "public"} and isinstance(given["public"], dict)
            if not fits or not all(type(given[name]) is kind for name, kind in kinds.items()):
                raise ValueError("other fields")
            made = cls(**given)
        except (ValueError, RecursionError) as error:
            raise ConfigError("it sends no hello of this release") from error
        if len(made.nonce) != _NONCE or not all(_plain(each) for each in made.public.values()):
            raise ConfigError("it sends no hello of this release")
        return made


def digest_of(public: Public) -> str:
    """SHA-256 over names and values, in the order of names."""
    return hashlib.sha256(json.dumps(dict(public), sort_keys=True, allow_nan=False).encode()).hexdigest()


def judge(own: Hello, theirs: Hello, name: str) -> str:
    """Why a hello does not fit this node's own, in words; nothing if it does.  name: of the other node."""
    if theirs.version != own.version:
        return f"{name} has version {theirs.version} of the hello, this one {own.version}: run the same release"
    if (theirs.node, theirs.to) != (own.to, own.node):
        return f"{name} calls itself node {theirs.node} and means node {theirs.to}: give each node a number of its own"
    if not hmac.compare_digest(_raw(theirs.mine), _raw(own.yours)):
        return f"{name} speaks of another certificate than it shows"
    if not hmac.compare_digest(_raw(theirs.yours), _raw(own.mine)):
        return f"{name} sees another certificate than this node's: somebody stands between the two"
    if theirs.session != own.session:
        return f"{name} is in session {shown(theirs.session)}, this one in {shown(own.session)}: name one session"
    return ""


def disagreement(own: Hello, theirs: Hello, name: str) -> str:
    """On what two nodes of one session disagree, which ends the session for both; nothing if they do not."""
    if theirs.digest == own.digest == digest_of(theirs.public):
        return ""
    return differences(own.public, theirs.public, name)


def differences(own: Public, theirs: Public, name: str) -> str:
    """On what two nodes disagree, with both values."""
    names = [each for each in dict.fromkeys([*own, *theirs]) if _of(own, each) != _of(theirs, each)]
    said = [f"{shown(each, quoted=False)} = {_of(theirs, each)} at {name}, {_of(own, each)} here" for each in names]
    more = f"; and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
    told = "; ".join(said[:_SHOWN]) or "their hash, and no value: is it the same release?"
    return f"{name} disagrees on what is public: {told}{more}"


def shown(text: str, *, quoted: bool = True) -> str:
    """What another node says, as it may stand in a line."""
    short = frames.shown(text[:_WORDS])
    return f"{short!r}" if quoted else short


def _of(public: Public, name: str) -> str:
    if name not in public:
        return "nothing"
    value: Any = public[name]
    return shown(value) if isinstance(value, str) else json.dumps(value)[:_WORDS]


def _raw(text: str) -> bytes:
    return text.encode(errors="replace")


def _plain(value: object) -> bool:
    return value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value))
