"""Keys and certificates: what is made, what is read, and whose it is."""

from __future__ import annotations

import datetime as dt
import errno
import shutil
from pathlib import Path

import pytest
from cryptography import x509

from mpc import files
from mpc.errors import ConfigError
from mpc.net import certificates
from mpc.net.certificates import CERTIFICATE_FILE, KEY_FILE, check_key, make, read
from tests.parties.members import identity

NOW = dt.datetime(2028, 2, 29, 12, tzinfo=dt.timezone.utc)


def test_a_certificate_is_of_one_party_alone_for_ten_years(tmp_path: Path) -> None:
    made = make(tmp_path / "keys", "Clinic A", NOW)
    assert read(tmp_path / "keys" / CERTIFICATE_FILE) == made
    check_key(tmp_path / "keys" / KEY_FILE, made)
    assert (tmp_path / "keys" / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert (made.start, made.end.year) == (NOW - dt.timedelta(days=1), 2038)
    found = x509.load_pem_x509_certificate((tmp_path / "keys" / CERTIFICATE_FILE).read_bytes())
    basic = found.extensions.get_extension_for_class(x509.BasicConstraints)
    assert basic.critical and not basic.value.ca
    usage = found.extensions.get_extension_for_class(x509.KeyUsage)
    assert usage.critical and usage.value.digital_signature
    assert not any([
        usage.value.content_commitment, usage.value.key_encipherment, usage.value.data_encipherment,
        usage.value.key_agreement, usage.value.key_cert_sign, usage.value.crl_sign,
    ])  # fmt: skip
    own = found.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    issuer = found.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    assert own == issuer
    assert b"PRIVATE" not in (tmp_path / "keys" / CERTIFICATE_FILE).read_bytes()


def test_a_key_is_never_made_over_another(tmp_path: Path) -> None:
    make(tmp_path, "A", NOW)
    before = (tmp_path / KEY_FILE).read_bytes()
    with pytest.raises(ConfigError, match="exists: the others know it"):
        make(tmp_path, "A", NOW)
    assert (tmp_path / KEY_FILE).read_bytes() == before
    for name in ("A\n", "a" * 65, "ü" * 33, "Городская клиническая больница имени Пирогова", " "):
        with pytest.raises(ConfigError, match="a name has 1 to 64 letters"):
            make(tmp_path / "other", name, NOW)
    assert make(tmp_path / "other", "ü" * 32, NOW).name == "ü" * 32


def test_no_key_is_left_without_its_certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has seen it: the next try makes another, where there is room."""

    def full(path: Path, content: bytes, mode: int = 0o600) -> None:
        files.write_new(path, content[:10], mode)
        if path.name == CERTIFICATE_FILE:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(certificates, "write_new", full)
        with pytest.raises(OSError, match="No space left"):
            make(tmp_path, "A", NOW)
    assert not list(tmp_path.iterdir())
    make(tmp_path, "A", NOW)


def test_a_fingerprint_is_read_out_in_groups_or_whole() -> None:
    _, one = identity(0)
    _, other = identity(1)
    assert [len(group) for group in one.spoken.split("-")] == [4] * 5
    for given in (one.spoken, one.spoken.lower().replace("-", " "), one.fingerprint, one.fingerprint.upper()):
        assert one.is_of(given) and not other.is_of(given)
    for given in ("", one.spoken[:-1], one.spoken + "A", one.fingerprint[:40]):
        assert not one.is_of(given)


def test_its_time_is_warned_of_and_then_over(tmp_path: Path) -> None:
    made = make(tmp_path, "A", NOW)
    assert made.check_time(NOW) == ""
    assert "ends on 2038-02-" in made.check_time(made.end - dt.timedelta(days=59))
    for when in (made.end + dt.timedelta(seconds=1), made.start - dt.timedelta(seconds=1)):
        with pytest.raises(ConfigError, match="set this machine's clock"):
            made.check_time(when)


def test_files_that_do_not_fit_are_named_with_the_cure(tmp_path: Path) -> None:
    made, other = make(tmp_path / "a", "A", NOW), make(tmp_path / "b", "B", NOW)
    with pytest.raises(ConfigError, match="is not the key of the certificate beside it"):
        check_key(tmp_path / "b" / KEY_FILE, made)
    (tmp_path / "b" / KEY_FILE).chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        check_key(tmp_path / "b" / KEY_FILE, other)
    with pytest.raises(ConfigError, match="cannot be read"):
        read(tmp_path / "none.pem")
    with pytest.raises(ConfigError, match="is no certificate"):
        read(tmp_path / "a" / KEY_FILE)
    both = tmp_path / "both.pem"
    shutil.copy(tmp_path / "a" / CERTIFICATE_FILE, both)
    with both.open("ab") as file:
        file.write((tmp_path / "b" / CERTIFICATE_FILE).read_bytes())
    with pytest.raises(ConfigError, match="holds 2 certificates"):
        read(both)
    broken = tmp_path / "key.pem"
    broken.write_text("no key")
    broken.chmod(0o600)
    with pytest.raises(ConfigError, match="is no key without a password"):
        check_key(broken, made)
