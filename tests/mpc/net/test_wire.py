"""What is on a wire: no pickle, headers counted once, and nothing secret in a text."""

from __future__ import annotations

import ast
import pickle

import pytest

from mpc.launch import Place
from mpc.net.frames import HEADER_BYTES
from mpc.nursery import OFF
from mpc.session import Session
from tests.parties.processes import ROOT, Launched, script
from tests.parties.programs import rounds
from tests.parties.threads import KEYS, over_tcp, values

_PICKLES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib", "multiprocessing"}
_AT_HOME = {"protocols/experiments/grid.py": {"joblib"}}
"""Between the processes of one user, who sees all of an experiment."""
_PICKLING = {
    "send_object_list", "recv_object_list", "broadcast_object_list", "all_gather_object", "gather_object",
    "scatter_object_list", "allow_pickle",
}  # fmt: skip


@pytest.mark.parametrize("room", ["mpc", "offline", "protocols"])
def test_no_pickle(room: str) -> None:
    files = list((ROOT / room).rglob("*.py"))
    assert files
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            used: set[str] = set()
            if isinstance(node, ast.Import):
                used = {alias.name.split(".")[0] for alias in node.names} & _PICKLES
            elif isinstance(node, ast.ImportFrom):
                used = {(node.module or "").split(".")[0]} & _PICKLES
            elif isinstance(node, ast.Attribute):
                used = {node.attr} & _PICKLING
            elif isinstance(node, ast.keyword) and isinstance(node.value, ast.Constant) and node.value.value:
                used = {node.arg or ""} & _PICKLING
            used -= _AT_HOME.get(file.relative_to(ROOT).as_posix(), set())
            assert not used, f"{file.relative_to(ROOT)}: {used}"


@pytest.mark.parametrize("shape", [(16,), (100_000,), (0,)])
def test_each_message_has_one_header(shape: tuple[int, ...]) -> None:
    """16 words are 128 bytes, as many as a header has."""

    def program(session: Session) -> tuple[int, int]:
        before = session.transport.frame_bytes
        session.run(rounds(session, 5, shape))
        return session.transport.frame_bytes - before, session.meter.total.frame_bytes - before

    assert values(over_tcp(3, program)) == [(5 * 2 * HEADER_BYTES,) * 2] * 3


def test_a_key_is_in_no_repr_and_no_pickle() -> None:
    own = {0: list(KEYS[0].as_json().values()), 1: list(KEYS[1].as_json().values())}
    words = repr(Place(0, 2, "tcp", KEYS[0]))
    assert "hidden" in words and not any(key in words for key in own[0])
    with pytest.raises(TypeError, match="never pickled"):
        pickle.dumps(KEYS[0])

    def describes(session: Session) -> str:
        return repr(session) + repr(session.transport) + repr(session.source) + str(session.transport.__dict__)

    for text in values(over_tcp(2, describes)):
        assert not any(key in text or repr(bytes.fromhex(key)) in text for key in own[0] + own[1])


def test_tcp_parties_start_without_torch() -> None:
    """A party that needs no torch starts in a fraction of a second."""
    text = "import sys; from mpc.launch import join; t = join(); print('torch' in sys.modules); t.close()"
    anew = {party: {OFF: "no"} for party in range(2)}
    launched = Launched(script(text), 2, own_environments=anew)
    assert launched.error is None
    assert launched.said == {"party 0": ["False"], "party 1": ["False"]}


def test_headers_are_counted_on_top_of_those_of_an_earlier_session() -> None:
    def counts(session: Session) -> int:
        session.resume({"frame_bytes": 1000}, [])
        session.run(rounds(session, 3))
        return session.meter.total.frame_bytes - session.transport.frame_bytes

    assert values(over_tcp(2, counts)) == [1000, 1000]
