"""Lines for people on a terminal, and JSON elsewhere; an error's value stays out of what is kept."""

from __future__ import annotations

import io
import json

import pytest

from mpc.errors import ConfigError, RangeError
from protocols.run.log import Form, Log


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_reads_decides_the_form() -> None:
    for stream, form, as_json in (
        (Terminal(), Form.AUTO, False), (io.StringIO(), Form.AUTO, True), (Terminal(), Form.JSON, True),
        (io.StringIO(), Form.TEXT, False),
    ):  # fmt: skip
        log = Log("party 0", "trial", form, stream)
        log("all are there")
        log("warning: the certificate ends")
        lines = stream.getvalue().splitlines()
        if as_json:
            first, second = map(json.loads, lines)
            assert (first["level"], first["role"], first["session"]) == ("info", "party 0", "trial")
            assert first["message"] == "all are there" and first["time"].endswith("+00:00")
            assert (second["level"], second["message"]) == ("warning", "the certificate ends")
        else:
            assert lines == ["all are there", "warning: the certificate ends"]


def test_the_last_line_is_the_error_as_it_may_be_kept() -> None:
    kept, read = io.StringIO(), Terminal()
    with pytest.raises(SystemExit) as ended, Log("payer", "trial", stream=kept).ending():
        raise RangeError("a reward is {}, declared is 0 to 1", own="47.11")
    assert ended.value.code == 2
    said = json.loads(kept.getvalue())
    assert (said["level"], said["message"]) == ("error", "a reward is ..., declared is 0 to 1")
    kept = io.StringIO()
    with pytest.raises(SystemExit) as ended, Log("payer", "trial", Form.TEXT, kept).ending():
        raise RangeError("a reward is {}, declared is 0 to 1", own="47.11")
    assert ended.value.code == 2 and kept.getvalue() == "error: a reward is ..., declared is 0 to 1\n"
    with pytest.raises(RangeError, match=r"47\.11"), Log("payer", "trial", stream=read).ending():
        raise RangeError("a reward is {}, declared is 0 to 1", own="47.11")


@pytest.mark.parametrize(
    ("error", "code", "level", "message"),
    [
        (ConfigError("/a/b cannot be written: make room"), 2, "error", "/a/b cannot be written: make room"),
        (OSError(28, "No space left on device", "/a/b"), 2, "error", "/a/b: No space left on device: choose a place"),
        (MemoryError(), 2, "error", "there is not the memory for this: choose smaller sizes"),
        (KeyboardInterrupt(), 130, "info", "stopped"),
    ],
)
def test_whatever_ends_a_role_is_a_line_of_its_log(error: BaseException, code: int, level: str, message: str) -> None:
    """Its own log names its files, which nobody else hears of."""
    kept = io.StringIO()
    with pytest.raises(SystemExit) as ended, Log("payer", "trial", stream=kept).ending():
        raise error
    said = json.loads(kept.getvalue())
    assert (ended.value.code, said["level"]) == (code, level) and said["message"].startswith(message)
