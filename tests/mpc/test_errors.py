"""Every misuse is an error that names the bound and the cure, and shows no value."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mpc import ConfigError, Input, MaskedError, OutOfMaterial, RangeError, Reveal, Session, ops
from mpc.client import Receive, Send
from mpc.curves import Reciprocal, Table, indicator
from mpc.net.memory import Memory
from mpc.ops import Keys, Lines
from offline import InProcessDealer, InsecureSeededDealer
from tests.parties.threads import over_tcp

Fixture = Callable[..., Any]
SECRET = 12345.0


@pytest.fixture
def session(simulate: Fixture) -> Session:
    return simulate(3)


def refused(kind: type[Exception], action: Callable[[], Any], *words: str) -> None:
    """`action` raises exactly `kind`, and the message holds each of `words` but not the secret."""
    with pytest.raises(kind) as error:
        action()
    assert error.type is kind
    text = str(error.value)
    assert all(word in text for word in words), text
    assert "12345" not in text


@pytest.mark.parametrize(
    ("values", "kind", "words"),
    [
        ([2.0**42], RangeError, ("2^42", "20 fraction bits", "fewer fraction bits")),
        ([-(2.0**42)], RangeError, ("2^42", "use smaller values")),
        ([1 << 42], RangeError, ("2^42",)),
        (np.array([(1 << 64) - 1], np.uint64), RangeError, ("2^42",)),
        ([1.0, np.nan, np.nan], RangeError, ("NaN", "clean")),
        ([np.inf], RangeError, ("infinite", "clean")),
        (np.array([1.0, -np.inf], np.float32), RangeError, ("infinite", "clean")),
        (["12345"], TypeError, ("real numbers", "convert")),
        ([1j], TypeError, ("complex", "convert")),
        ([None], TypeError, ("object", "convert")),
        ([1 << 70], TypeError, ("object", "convert")),
    ],
)
def test_inputs(values: Any, kind: type[Exception], words: tuple[str, ...], session: Session) -> None:
    refused(kind, lambda: session.share(values), *words)
    refused(kind, lambda: session.share([0.0]) + np.asarray(values), *words)
    refused(kind, lambda: session.constant(values), *words)


def test_declared_bounds_and_shapes(session: Session) -> None:
    refused(RangeError, lambda: session.share([1.0, SECRET], bound=100.0), "|v| <= 100", "larger bound")
    refused(RangeError, lambda: session.share([-12345], bound=100), "|v| <= 100", "clip")
    assert session.share([100.0, -100.0], bound=100).shape == (2,)
    refused(RangeError, lambda: session.share([SECRET], shape=(2,)), "(2,)", "(1,)")
    refused(RangeError, lambda: session.share([1.0], scale=62), "[0, 61]", "62")
    refused(RangeError, lambda: session.share([1.0], scale=-1), "[0, 61]")
    refused(ConfigError, lambda: session.share([SECRET], owner=3), "0..2", "3")
    refused(ConfigError, lambda: session.share(owner=1, shape=(2,)), "party 1", "give the values")
    refused(RangeError, lambda: session.share_bits([12345], width=8), "2^8", "wider")
    refused(RangeError, lambda: session.share_bits([-1], width=8), "2^8")
    refused(TypeError, lambda: session.share_bits([0.5]), "integers", "encode")
    refused(RangeError, lambda: session.share_bits([1], width=65), "[1, 64]")


MISUSES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "bool": (bool, "ops.less"),
    "float": (float, "Reveal"),
    "int": (int, "Reveal"),
    "index": (lambda x: [1, 2][x], "one-hot"),
    "==": (lambda x: x == x, "ops.equal"),
    "!=": (lambda x: x != 0, "ops.equal"),
    "<": (lambda x: x < 1, "ops.less"),
    ">": (lambda x: x > 1, "ops.less"),
    ">=": (lambda x: x >= x, "ops.less"),
    "<=": (lambda x: x <= x, "ops.less"),
    "asarray": (np.asarray, "Reveal"),
    "numpy function": (np.mean, ""),
    "ufunc": (np.exp, ""),
    "hash": (lambda x: {x}, ""),
    "pickle": (pickle.dumps, "never pickled"),
}


@pytest.mark.parametrize("name", MISUSES)
@pytest.mark.parametrize("binary", [False, True], ids=["sum", "xor"])
def test_a_share_is_not_misused_quietly(name: str, binary: bool, session: Session) -> None:
    action, cure = MISUSES[name]
    x = session.share_bits([12345]) if binary else session.share([SECRET])
    refused(TypeError, lambda: action(x), cure)


def test_operators(session: Session, simulate: Fixture) -> None:
    x, y, bits = session.share([SECRET]), session.share([1.0], scale=30), session.share_bits([1], width=8)
    refused(TypeError, lambda: x * x, "ops.product")
    refused(TypeError, lambda: x * bits, "ops.product")
    refused(TypeError, lambda: bits & bits, "ops.conjunction")
    refused(TypeError, lambda: x / 2, "ops.truncate", "reciprocal")
    refused(RangeError, lambda: x + y, "20 and 30", "truncate", "rescale")
    refused(RangeError, lambda: y - x, "30 and 20", "truncate")
    refused(TypeError, lambda: x + bits, "ops.to_arithmetic")
    refused(TypeError, lambda: bits ^ x, "ops.to_binary")
    refused(TypeError, lambda: bits ^ session.share_bits([1], width=9), "8 bits", "9")
    refused(RangeError, lambda: bits ^ 256, "2^8")
    refused(TypeError, lambda: x + simulate(3).share([1.0]), "different sessions")
    refused(RangeError, lambda: x.rescale(10), "20 to 10", "ops.truncate")
    refused(RangeError, lambda: x.rescale(63), "63", "62")
    refused(RangeError, lambda: x * 0.5 * 0.5 * 0.5, "80 fraction bits of 62", "truncate")
    refused(RangeError, lambda: x * np.inf, "infinite", "clean")
    refused(TypeError, lambda: len(session.share(1.0)), "no length")
    refused(TypeError, lambda: x.sum(axis=1), "axis 1", "1 axes")
    with pytest.raises(ValueError, match="broadcast"):
        session.share([1.0, 2.0]) + session.share([1.0, 2.0, 3.0])


def test_protocols_name_their_bounds(session: Session) -> None:
    x, wide = session.share([[SECRET, 1.0]]), session.share([1.0], scale=43)
    run = session.run
    refused(TypeError, lambda: run(ops.matmul(session, x, x)), "(1, 2)", "matrix product")
    refused(TypeError, lambda: run(ops.product(session, x, session.share(np.zeros(3)))), "(1, 2)", "(3,)")
    refused(TypeError, lambda: run(ops.product(session, x, 2.0)), "two arithmetic shares", "'*'")
    refused(RangeError, lambda: run(ops.product(session, x, wide)), "63 fraction bits of 62", "truncate")
    refused(RangeError, lambda: run(ops.square(session, wide)), "86 fraction bits of 62")
    refused(RangeError, lambda: run(ops.truncate(session, x, 0)), "1 to 62", "0")
    refused(RangeError, lambda: run(ops.round_off(session, x, 63)), "1 to 62", "63")
    refused(RangeError, lambda: run(ops.truncate_published(session, x, 63)), "1 to 62", "63")
    refused(RangeError, lambda: run(ops.is_negative(session, x, width=1)), "[2, 64]")
    refused(RangeError, lambda: run(ops.sign_by_circuit(session, x, width=65)), "[2, 64]")
    refused(RangeError, lambda: run(ops.is_zero(session, x, width=65)), "[1, 64]")
    refused(RangeError, lambda: run(ops.argmax(session, x, score_bits=63)), "65 bits of 64", "fewer fraction bits")
    refused(RangeError, lambda: Keys(4, 20, eps=1.5), "[0, 1]")
    refused(RangeError, lambda: Keys(4, 20, eps=float("nan")), "[0, 1]")
    refused(RangeError, lambda: Keys(4, 20, blur=20), "0 to 19 bits of a score, not 20")
    refused(RangeError, lambda: Keys(4, 20, blur=-1), "0 to 19 bits of a score, not -1")
    refused(RangeError, lambda: Keys(0, 20), "at least one arm")
    refused(RangeError, lambda: Keys((1 << 16) + 1, 20), "at most 65536 arms", "groups")
    refused(TypeError, lambda: run(ops.argmax(session, session.share(1.0))), "last axis")
    refused(TypeError, lambda: run(ops.draw(session, session.share(1.0))), "last axis")
    refused(RangeError, lambda: run(ops.draw(session, x, weight_bits=40)), "71 bits of 63", "lower one")
    refused(RangeError, lambda: run(ops.curve(session, wide, Lines.over(Reciprocal(), 2.0, 20, 9))), "20", "43")
    refused(RangeError, lambda: Lines.over(Reciprocal(), 1.0, 20, 9), "lower end")
    refused(RangeError, lambda: Lines.over(Reciprocal(), 2.0**45, 20, 9), "fewer fraction bits")
    refused(RangeError, lambda: Reciprocal(0.0), "positive")
    refused(RangeError, lambda: Table(np.arange(3)), "2^k", "pad")
    refused(RangeError, lambda: indicator(4, 2), "2-bit")
    refused(TypeError, lambda: run(ops.inverse(session, x, least=1.0, bound=1.0)), "square")
    refused(RangeError, lambda: run(ops.exponential(session, session.share([1.0], scale=25))), "fewer fraction bits")
    bits, wider = session.share_bits([1], width=8), session.share_bits([1], width=9)
    refused(TypeError, lambda: run(ops.conjunction(session, bits, wider)), "8 and 9")


def test_a_narrow_share_meets_no_wide_one(session: Session) -> None:
    """Each operation that would read its words as words mod 2^64 refuses them and names the cure."""
    wide = session.share([1.0, 2.0], scale=0)
    narrow, other = wide.mod(8), wide.mod(16)
    assert (narrow.ring, other.ring, wide.ring) == (8, 16, 64) and repr(narrow) == "Share(shape=(2,), scale=0, ring=8)"
    run, cure = session.run, "ops.lift"
    for x, y in ((narrow, wide), (wide, narrow), (narrow, other)):
        refused(TypeError, lambda x=x, y=y: x + y, "2^8", cure)
        refused(TypeError, lambda x=x, y=y: x - y, "2^8", cure)
        refused(TypeError, lambda x=x, y=y: ops.concat([x, y]), "2^8", cure)
        refused(TypeError, lambda x=x, y=y: run(ops.product(session, x, y)), cure)
    refused(TypeError, lambda: narrow.mod(16), "2^8", cure)
    for public in (256, -129, 0.5, 1.0):
        refused(RangeError, lambda public=public: narrow * public, "2^8", cure)
    refused(RangeError, lambda: narrow + 300, "2^8", cure)
    refused(RangeError, lambda: narrow.mapped([[1, 1000]], bits=0), "2^8", cure)
    assert (narrow + 255).ring == (narrow * -128).ring == 8
    refused(TypeError, lambda: narrow.rescale(3), "2^8", cure)
    for op in (
        ops.square, ops.wraps, ops.is_negative, ops.sign_by_circuit, ops.is_zero, ops.to_binary, ops.argmax, ops.draw
    ):  # fmt: skip
        refused(TypeError, lambda op=op: run(op(session, narrow)), "2^8", cure)
    for op in (ops.truncate, ops.round_off, ops.truncate_published):
        refused(TypeError, lambda op=op: run(op(session, narrow, 3)), "2^8", cure)
    lines = Lines.over(Reciprocal(), 2.0, 0, 9)
    refused(TypeError, lambda: run(ops.curve(session, narrow, lines)), "2^8", cure)
    refused(TypeError, lambda: run(ops.lookup(session, narrow, indicator(1, 9))), "2^8", cure)
    refused(TypeError, lambda: run(ops.matmul(session, narrow, narrow)), "2^8", cure)
    refused(RangeError, lambda: run(ops.is_negative(session, wide, ring=32)), "2^16 or 2^64", "2^32")


def test_a_narrow_share_goes_to_no_client(simulate: Fixture) -> None:
    def client() -> Any:
        yield Receive((1,), 0)

    session = simulate(2, clients={"shop": client()})

    def program() -> Any:
        yield Reveal(session.share([1], scale=0).mod(8), to="shop")

    refused(TypeError, lambda: session.run(program()), "2^8", "ops.lift")


@pytest.mark.parametrize("width", [1, 64])
def test_an_xor_share_goes_to_no_client(width: int, simulate: Fixture) -> None:
    """A client adds up what it gets: over a network it took the sum of 64-bit shares for the number."""

    def client() -> Any:
        yield Receive((), 0)

    def program(session: Session) -> Any:
        bits = session.share_bits(1 if 0 in session.hosted else None, owner=0, shape=(), width=width)
        yield Reveal(bits, to="shop")

    session, cure = simulate(2, clients={"shop": client()}), "ops.to_arithmetic"
    refused(TypeError, lambda: session.run(program(session)), "XOR", cure)
    outcomes = over_tcp(2, lambda session: session.run(program(session)), clients={"shop": client})
    assert [type(each.error) for each in outcomes[:2]] == [TypeError] * 2 and cure in str(outcomes[0].error)
    assert isinstance(outcomes[2].error, MaskedError) and outcomes[2].value is None


def test_roles(simulate: Fixture) -> None:
    def client() -> Any:
        yield Receive((1,), 20)

    session = simulate(2, clients={"owner": client()})
    x = session.share([SECRET])

    def ask(request: Any) -> Callable[[], Any]:
        def program() -> Any:
            yield request

        return lambda: session.run(program())

    refused(ConfigError, ask(Reveal(x, "nobody")), "'nobody'", "everyone", "party 0", "party 1", "owner")
    refused(ConfigError, ask(Reveal(x, "party 2")), "'party 2'", "party 1")
    refused(ConfigError, ask(Input("party 0", (1,))), "session.share")
    refused(ConfigError, ask(Input("owner", (1,))), "waits for a reveal")
    refused(ConfigError, ask(Reveal(x.rescale(30), "owner")), "scale 20", "30")
    refused(ConfigError, ask(Reveal(session.share([[1.0]]), "owner")), "(1,)", "(1, 1)")


def test_clients_at_their_edge(simulate: Fixture) -> None:
    def client(value: Any, **rest: Any) -> Any:
        yield Send(value, **rest)

    def take(session: Session, shape: tuple[int, ...], scale: int) -> None:
        def program() -> Any:
            yield Input("c", shape, scale)

        session.run(program())

    refused(RangeError, lambda: take(simulate(2, clients={"c": client([SECRET])}), (2,), 0), "(2,)", "(1,)")
    refused(RangeError, lambda: take(simulate(2, clients={"c": client([1.0], scale=3)}), (1,), 20), "3", "20")
    refused(RangeError, lambda: take(simulate(2, clients={"c": client([SECRET], bound=9.0)}), (1,), 0), "|v| <= 9")
    assert "12345" not in repr(Send(SECRET))


def test_set_up() -> None:
    refused(ConfigError, lambda: Memory(1), "at least 2", "1")
    refused(ConfigError, lambda: InsecureSeededDealer(1, 1), "at least 2")
    source = InsecureSeededDealer(2, 1)
    refused(ConfigError, lambda: Session.simulate(2, source, pair_keys={(0, 1): b"short"}), "16 bytes", "(0, 1)")
    assert issubclass(RangeError, ValueError) and issubclass(OutOfMaterial, MaskedError)


def test_a_yield_that_is_no_request_tells_the_cure(session: Session) -> None:
    x = session.share([1.0])

    def forgot_from() -> Any:
        yield ops.product(session, x, x)

    def yields_a_share() -> Any:
        yield x

    refused(TypeError, lambda: session.run(forgot_from()), "yield from")
    refused(TypeError, lambda: session.run(yields_a_share()), "Share", "yield Open, Reveal or Input")
    refused(TypeError, lambda: session.run(x), "generator", "Share")


def test_roles_and_owners_are_named_as_they_must_be(session: Session) -> None:
    def to_a_number() -> Any:
        yield Reveal(session.share([1.0]), to=1)

    refused(ConfigError, lambda: session.run(to_a_number()), "'party 1'")
    refused(ConfigError, lambda: session.share([1.0], owner="party 0"), "0..")


def test_a_dealer_for_other_parties_is_refused() -> None:
    refused(ConfigError, lambda: Session.simulate(3, InProcessDealer(2)), "2 parties", "session of 3")
