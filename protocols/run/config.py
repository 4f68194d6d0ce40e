"""A party's file, from TOML: what it says, and all that is wrong with it at once.  Knows names and types; no program.

role, session, program, mode, parties  who this is, in what; parties of mode mpc alone
[own]       key, certificate, listen   paths are seen from the file's own folder
[peers.ROLE]                           certificate, fingerprint, address of one that listens
[options]                              those of the program, as `masked run PROGRAM` has them
[data]      file, columns, id          what this role alone has
[world]     tell, hear                 MODULE:FUNCTION, in place of lines on stdout and stdin
[material]  from, store, session       from: the same at all roles; the others of a computing party
[output]    folder, checkpoint_every
[timeouts]  start, round, back, link   seconds
[watch]     log, listen                form of the log; where /healthz and /metrics are, on this machine
[serve]     listen, tokens, beat       where `masked serve` is asked; its tokens' folder, "none" without; seconds
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mpc.errors import ConfigError
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE

from .exits import say
from .log import Form
from .program import party_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

STORE, DEALER = "store", "dealer"
"""Where material is from: dealt beforehand, or by a role of that name while the run is at work."""
ON_SHARES = "mpc"
"""The mode of a `Program`; any other is of a published protocol."""
LISTEN_MISSING = 'own.listen is missing: {} is called, so it listens, for example at "0.0.0.0:7700"'
PLACE = 'HOST:PORT, such as "clinic-b.example:7700"'
ADDRESS_MISSING = 'peers."{}".address is missing: {} calls it'
_START, _ROUND, _BACK, _LINK = 600.0, 60.0, 300.0, 30.0
_SESSION = 200  # letters; a session's name is in every hello
_PORT = 5  # digits
_SHOWN = 80  # letters of a value in a message


@dataclass(frozen=True)
class PeerConfig:
    """Another role.  address: (host, port) of one that listens."""

    certificate: Path
    fingerprint: str
    address: tuple[str, int] | None


@dataclass(frozen=True)
class Config:
    """A party's file.  wrong: its mistakes.  unread: keys whose values stand in for what was missing or wrong."""

    path: Path
    role: str
    session: str
    program: str
    mode: str
    parties: int
    key: Path = field(repr=False)
    certificate: Path
    listen: tuple[str, int] | None
    peers: Mapping[str, PeerConfig]
    options: Mapping[str, Any]
    data: Path | None
    columns: tuple[str, ...]
    id: str
    tell: str
    hear: str
    store: Path | None
    material: str
    dealt: str
    folder: Path
    every: int
    start: float
    round: float
    back: float
    link: float
    log: Form
    watch: tuple[str, int] | None
    serve: tuple[str, int] | None = None
    tokens: Path | None = None
    beat: float = 2.0
    wrong: tuple[str, ...] = ()
    unread: frozenset[str] = frozenset()

    @property
    def computes(self) -> bool:
        """Whether this is a computing party."""
        return self.role in party_names(self.parties)

    def knows(self, *keys: str) -> bool:
        """Whether none of these, and no table that they are in, was missing or wrong."""
        places = {".".join(key.split(".")[:many]) for key in keys for many in range(1, key.count(".") + 2)}
        return not places & self.unread

    def unplaced(self, peer: str) -> bool:
        """Whether the address of a peer was left out."""
        return self.peers[peer].address is None and self.knows(f"peers.{peer}.address")

    @property
    def home(self) -> Path:
        """The folder of the file, from which its paths are seen."""
        return self.path.absolute().parent


def party_names(parties: int) -> list[str]:
    """What the computing parties are called."""
    return [party_name(party) for party in range(parties)]


def load(path: Path) -> Config:
    """Read and judge a file; ConfigError with every mistake in it, each with its cure."""
    config = read(path)
    if config.wrong:
        raise misfit(path, config.wrong)
    return config


def read(path: Path) -> Config:
    """The same with mistakes in it, for who looks for more of them; ConfigError where it is no TOML."""
    try:
        given = tomllib.loads(path.read_text("utf-8-sig"))  # some editors begin a file with a mark of its encoding
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): make it with 'masked config new'") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is no TOML: {error}") from error
    reader = _Reader(path.absolute().parent)
    config = _read(path, reader.table(given, ""), reader)
    reader.check_all_used()
    return replace(config, wrong=tuple(reader.wrong))


class Mistake(str):
    """A line with a value of the file's owner.  told: without it."""

    told: str

    @classmethod
    def of(cls, whole: str, told: str) -> Mistake:
        """Both."""
        made = cls(whole)
        made.told = told
        return made


def misfit(path: Path, wrong: Sequence[str]) -> ConfigError:
    """All that is wrong with a file, and with what it names."""
    head = f"{path} has {len(wrong)} mistake{'s' * (len(wrong) > 1)}:"
    error = ConfigError("".join([head, *(f"\n  {line}" for line in wrong)]))
    told = (line.told if isinstance(line, Mistake) else line for line in wrong)
    error.told = error.logged = "".join([head, *(f"\n  {line}" for line in told)])
    return error


def _read(path: Path, top: _Table, reader: _Reader) -> Config:
    mode = top.text("mode", ON_SHARES)
    parties = top.whole("parties", least=2) if mode == ON_SHARES else 0
    if mode != ON_SHARES and top.left.pop("parties", None) is not None:
        reader.wrong.append(f"parties is of mode {ON_SHARES!r} alone, and mode is {_shown(mode)}: leave one out")
    own, data, material = top.table("own"), top.table("data", {}), top.table("material", {})
    world, watch, serve = top.table("world", {}), top.table("watch", {}), top.table("serve", {})
    output, timeouts, peers = top.table("output"), top.table("timeouts", {}), top.table("peers")
    made = Config(
        path, top.text("role"), top.text("session", longest=_SESSION), top.text("program"), mode, parties,
        own.path("key", KEY_FILE), own.path("certificate", CERTIFICATE_FILE), own.address("listen", None),
        {role: _peer(peers.table(role)) for role in list(peers.left)}, top.table("options", {}).rest(),
        data.path("file", None), data.texts("columns"), data.text("id", ""), world.text("tell", ""),
        world.text("hear", ""), material.path("store", None),
        material.text("session", "local"), material.choice("from", STORE, (STORE, DEALER)),
        output.path("folder"), output.whole("checkpoint_every", 100, least=1),
        timeouts.seconds("start", _START), timeouts.seconds("round", _ROUND), timeouts.seconds("back", _BACK),
        timeouts.seconds("link", _LINK),
        Form(watch.one_of("log", [form.value for form in Form])), watch.address("listen", None),
        serve.address("listen", None), _tokens(serve), serve.seconds("beat", 2.0), unread=frozenset(reader.unread),
    )  # fmt: skip
    names = party_names(parties) if parties <= 1000 and made.knows("parties", "role", "peers") else []
    computes = made.role in names
    if not computes and made.role.startswith("party "):
        names = []  # there is no such role: what it would lack is no mistake of its own
    if computes and made.listen is None and made.knows("own.listen"):
        reader.wrong.append(LISTEN_MISSING.format(made.role))
    if computes and made.store is None and made.dealt == STORE and made.knows("material.store", "material.from"):
        reader.wrong.append("material.store is missing: name the folder that was dealt for this party")
    if made.store is not None and made.dealt == DEALER:
        reader.wrong.append("material.store is not used where material is from a dealer: leave it out")
    if made.material != "local" and made.dealt == DEALER:
        reader.wrong.append("material.session is of a store, and material is from a dealer: leave it out")
    if made.role in made.peers:
        reader.wrong.append(f"peers.{made.role!r} is this one itself: leave it out")
    for name in names:
        if name != made.role and name not in made.peers:
            reader.wrong.append(f'[peers."{name}"] is missing')
        elif name in made.peers and made.unplaced(name) and _calls(made.role, name, names):
            reader.wrong.append(ADDRESS_MISSING.format(name, made.role))
    for key, given in (("tell", made.tell), ("hear", made.hear)):
        module, _, name = given.partition(":")
        if given and not (name.isidentifier() and all(part.isidentifier() for part in module.split("."))):
            reader.wrong.append(f"world.{key} is MODULE:FUNCTION, not {given!r}")
    return made


def _tokens(serve: _Table) -> Path | None:
    """None where anybody on this machine may ask."""
    if serve.left.get("tokens") == "none":
        serve.left.pop("tokens")
        return None
    return Path(serve.path("tokens", "tokens"))


def _calls(role: str, other: str, names: list[str]) -> bool:
    """Clients call all parties, a party those before it."""
    return role not in names or names.index(other) < names.index(role)


def _peer(table: _Table) -> PeerConfig:
    return PeerConfig(table.path("certificate"), table.text("fingerprint"), table.address("address", None))


class _Reader:
    """Collects what is wrong, and of which keys.  Paths are seen from `home`."""

    def __init__(self, home: Path) -> None:
        self.home, self.wrong, self.unread = home, list[str](), set[str]()
        self._tables: list[_Table] = []

    def table(self, given: Any, name: str) -> _Table:
        """A table of the file."""
        if not isinstance(given, dict):
            self.wrong.append(f"{name} is a table, [{name}], not {given!r}")
            self.unread.add(name)
            given = {}
        table = _Table(self, name, dict(given))
        self._tables.append(table)
        return table

    def check_all_used(self) -> None:
        """What nobody asked for is a mistake: it may be misspelt."""
        for table in self._tables:
            self.wrong += [f"{table.of(key)} is unknown: leave it out, or mend its spelling" for key in table.left]


_MISSING: Any = object()


class _Table:
    """One table: what is asked for is taken out; what is left is unknown."""

    def __init__(self, reader: _Reader, name: str, given: dict[str, Any]) -> None:
        self._reader, self._name, self.left = reader, name, given

    def of(self, key: str) -> str:
        """A key as it is called in messages."""
        return f"{self._name}.{key}" if self._name else key

    def table(self, key: str, usual: Any = _MISSING) -> _Table:
        """A table in this one."""
        given = self.left.pop(key, usual)
        if given is _MISSING:
            self._reader.wrong.append(f"[{self.of(key)}] is missing")
            self._reader.unread.add(self.of(key))
            given = {}
        return self._reader.table(given, self.of(key))

    def rest(self) -> dict[str, Any]:
        """All that is left, which somebody else judges."""
        rest, self.left = self.left, {}
        return rest

    def text(self, key: str, usual: Any = _MISSING, *, longest: int | None = None) -> str:
        """Text, on one line.  longest: so many letters."""
        there = key in self.left
        value = self._taken(key, usual, "")
        fits = isinstance(value, str) and value.isprintable() and (value != "" or not there)
        if fits and longest is not None and len(value) > longest:
            return str(self._judged(key, value, False, f"text of at most {longest:,} letters", ""))
        return str(self._judged(key, value, fits, "text on one line", ""))

    def choice(self, key: str, usual: str, known: tuple[str, ...]) -> str:
        """One of some words."""
        value = self._taken(key, usual, usual)
        return str(self._judged(key, value, value in known, " or ".join(map(repr, known)), usual))

    def texts(self, key: str) -> tuple[str, ...]:
        """Several of them."""
        value = self._taken(key, [], [])
        fits = isinstance(value, list) and all(isinstance(each, str) for each in value)
        return tuple(self._judged(key, value, fits, "a list of texts", []))

    def one_of(self, key: str, words: list[str]) -> str:
        """One of these, the first by default."""
        value = self._taken(key, words[0], words[0])
        return str(self._judged(key, value, value in words, f"one of {', '.join(words)}", words[0]))

    def whole(self, key: str, usual: Any = _MISSING, *, least: int) -> int:
        """A whole number."""
        value = self._taken(key, usual, least)
        fits = type(value) is int and value >= least
        return int(self._judged(key, value, fits, f"a whole number from {least}", least))

    def seconds(self, key: str, usual: float) -> float:
        """A time to wait."""
        value = self._taken(key, usual, usual)
        fits = type(value) in (int, float) and 0 < value < 1e7
        return float(self._judged(key, value, fits, "a positive number of seconds", usual))

    def path(self, key: str, usual: Any = _MISSING) -> Any:
        """A path, from the file's own folder on; None where none is given and none is wanted."""
        value = self._taken(key, usual, "missing")
        if value is None:
            return None
        fits = isinstance(value, str) and value != "" and "\0" not in value
        return self._reader.home / self._judged(key, value, fits, "a path", "wrong")

    def address(self, key: str, usual: Any = _MISSING) -> tuple[str, int] | None:
        """HOST:PORT."""
        value = self._taken(key, usual, None)
        if value is None:
            return None
        found = place_of(value) if isinstance(value, str) else None
        self._judged(key, value, found is not None, PLACE, None)
        return found

    def _taken(self, key: str, usual: Any, where_missing: Any) -> Any:
        value = self.left.pop(key, usual)
        if value is _MISSING:
            self._reader.wrong.append(f"{self.of(key)} is missing")
            self._reader.unread.add(self.of(key))
            return where_missing
        return value

    def _judged(self, key: str, value: Any, fits: bool, what: str, instead: Any) -> Any:
        if not fits:
            self._reader.wrong.append(f"{self.of(key)} is {what}, not {_shown(value)}")
            self._reader.unread.add(self.of(key))
            return instead
        return value


def place_of(text: str, *, least: int = 1) -> tuple[str, int] | None:
    """HOST:PORT; None where that cannot be one.  least: port, 0 where any free one will do."""
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not (port.isascii() and port.isdecimal() and len(port) <= _PORT and least <= int(port) < 1 << 16):
        return None
    if not host.isprintable() or any(letter.isspace() for letter in host):
        return None
    try:
        host.encode("idna")  # as a name is looked up: each part of it has 1 to 63 letters
    except UnicodeError:
        return None
    return (host, int(port)) if host else None


def _shown(value: Any) -> str:
    """A value in a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... of {len(text):,} letters"


def warn(lines: list[str]) -> None:
    """On stderr."""
    for line in lines:
        say(f"warning: {line}")
