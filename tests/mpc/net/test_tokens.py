"""A token for each role: made, read, told apart, and refused where others could have read it."""

from __future__ import annotations

import hmac
import pickle
from pathlib import Path

import pytest

from mpc.errors import ConfigError
from mpc.net.tokens import Tokens, make_tokens

ROLES = ("owner 0", "owner 1", "payer")


def letters(folder: Path, role: str) -> str:
    return (folder / f"{role.replace(' ', '-')}.token").read_text().strip()


def test_each_token_is_of_its_role_alone(tmp_path: Path) -> None:
    made = make_tokens(tmp_path / "t", ROLES)
    assert len(made) == 3 and all(path.stat().st_mode & 0o777 == 0o600 for path in made)
    assert (tmp_path / "t").stat().st_mode & 0o777 == 0o700
    tokens = Tokens.read(tmp_path / "t", ROLES)
    for role in ROLES:
        assert tokens.role_of(letters(tmp_path / "t", role)) == role
    own = letters(tmp_path / "t", "payer")
    for wrong in ("", own[:-1], own + "a", own.swapcase(), "é", "\udcff"):
        assert tokens.role_of(wrong) is None
    assert own not in repr(tokens)
    with pytest.raises(TypeError):
        pickle.dumps(tokens)


def test_as_many_digests_are_compared_whoever_asks_each_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long an answer takes, it tells nothing of where a token stands or how much of it was right."""
    tokens = Tokens({role: role * 9 for role in ROLES})
    compared, real = list[tuple[bytes, bytes]](), hmac.compare_digest

    def noted(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", noted)
    for given, role in (*((role * 9, role) for role in ROLES), ("nobody's", None), ("", None), (ROLES[0] * 8, None)):
        compared.clear()
        assert tokens.role_of(given) == role
        assert len({own for _, own in compared}) == len(compared) == len(ROLES)
        assert len({asked for asked, _ in compared}) == 1
        assert {len(digest) for pair in compared for digest in pair} == {32}, "of digests, which all are as long"


def test_those_that_are_there_stay(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # it may be for others too
    make_tokens(tmp_path, ROLES[:2])
    assert tmp_path.stat().st_mode & 0o777 == 0o755
    before = letters(tmp_path, "owner 0")
    assert [path.name for path in make_tokens(tmp_path, ROLES)] == ["payer.token"]
    assert letters(tmp_path, "owner 0") == before


def test_what_is_missing_open_short_or_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"payer.token is missing.*--make-tokens, or serve without any"):
        Tokens.read(tmp_path, ["payer"])
    make_tokens(tmp_path, ROLES)
    file = tmp_path / "payer.token"
    file.chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        Tokens.read(tmp_path, ROLES)
    file.chmod(0o600)
    file.write_text("short\n")
    with pytest.raises(ConfigError, match="holds no token"):
        Tokens.read(tmp_path, ROLES)
    file.write_text(letters(tmp_path, "owner 0"))
    with pytest.raises(ConfigError, match="have the same token"):
        Tokens.read(tmp_path, ROLES)
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="choose another place"):
        make_tokens(tmp_path / "file" / "below", ROLES)
