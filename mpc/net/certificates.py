"""A party's key and self-signed certificate, and fingerprints of them.  Knows files and X.509; no sockets.

A certificate is of one party alone: it signs no other (CA:FALSE), and whoever trusts it trusts no more than it.  What
makes it a party's is that the others have it, and have compared its fingerprint with its owner over another way.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from ..errors import ConfigError
from ..files import write_new

KEY_FILE, CERTIFICATE_FILE = "key.pem", "certificate.pem"
_LASTS = dt.timedelta(days=3652)  # ten years
_SOON = dt.timedelta(days=60)  # before its end a certificate is warned of
_SPOKEN = 20  # letters of a fingerprint that is read out: 100 bits
_NAME = 64  # bytes that X.509 has room for


@dataclass(frozen=True)
class Certificate:
    """der: as it travels.  name: what its owner calls itself, which proves nothing.  start, end: of its time."""

    der: bytes
    name: str
    start: dt.datetime
    end: dt.datetime

    @property
    def fingerprint(self) -> str:
        """SHA-256 of it, in hexadecimal."""
        return fingerprint(self.der)

    @property
    def spoken(self) -> str:
        """The first 100 bits of that in five groups of four letters, to be read over the telephone."""
        letters = base64.b32encode(bytes.fromhex(self.fingerprint)).decode()[:_SPOKEN]
        return "-".join(letters[at : at + 4] for at in range(0, _SPOKEN, 4))

    @property
    def pem(self) -> str:
        """As text."""
        return x509.load_der_x509_certificate(self.der).public_bytes(serialization.Encoding.PEM).decode()

    def check_time(self, now: dt.datetime) -> str:
        """A warning where its end is near, else nothing; ConfigError where it is not valid at all."""
        if not self.start <= now <= self.end:
            raise ConfigError(
                f"the certificate of {self.name!r} is valid from {self.start:%Y-%m-%d} to {self.end:%Y-%m-%d}: set "
                "this machine's clock, or make a new one with 'masked keys init' and hand it to the others"
            )
        if self.end - now > _SOON:
            return ""
        return (
            f"the certificate of {self.name!r} ends on {self.end:%Y-%m-%d}: make a new one with 'masked keys init' and "
            "hand it to the others before"
        )

    def is_of(self, given: str) -> bool:
        """Whether that is its fingerprint, the whole in hexadecimal or the spoken letters, however they are grouped."""
        plain = "".join(letter for letter in given if letter.isalnum())
        return plain.lower() == self.fingerprint or plain.upper() == self.spoken.replace("-", "")


def fingerprint(der: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(der).hexdigest()


def make(folder: Path, name: str, now: dt.datetime) -> Certificate:
    """A fresh key and its certificate in a folder, where there must be none; the key's file is its owner's alone."""
    if not name.strip() or not name.isprintable() or len(name.encode()) > _NAME:
        raise ConfigError(
            f"a name has 1 to {_NAME} letters that can be printed, fewer where UTF-8 takes more bytes than one for a "
            f"letter, not {name[:80]!r}"
        )
    for path in (folder / KEY_FILE, folder / CERTIFICATE_FILE):
        if path.exists():
            raise ConfigError(f"{path} exists: the others know it, so it is not replaced; name another folder")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    own = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    usage = x509.KeyUsage(True, False, False, False, False, False, False, False, False)  # to sign, as TLS 1.3 does
    both = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + _LASTS)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    builder = builder.add_extension(usage, critical=True).add_extension(x509.ExtendedKeyUsage(both), critical=False)
    builder = builder.add_extension(own, critical=False).add_extension(
        x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own), critical=False
    )
    made = builder.sign(key, hashes.SHA256())
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_new(folder / KEY_FILE, secret)
    try:
        write_new(folder / CERTIFICATE_FILE, made.public_bytes(serialization.Encoding.PEM), 0o644)
    except BaseException:  # nobody has seen it, and the next try is to find none
        (folder / KEY_FILE).unlink()
        (folder / CERTIFICATE_FILE).unlink(missing_ok=True)
        raise
    return _certificate(made)


def read(path: Path, *, cure: str = "name the file that its owner sent") -> Certificate:
    """One certificate from a PEM file.  cure: said where there is none."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): {cure}") from error
    try:
        found = x509.load_pem_x509_certificates(raw)
    except ValueError as error:
        raise ConfigError(f"{path} is no certificate: name the {CERTIFICATE_FILE} that its owner sent") from error
    if len(found) != 1:
        raise ConfigError(f"{path} holds {len(found)} certificates: one file for each party")
    return _certificate(found[0])


def check_key(path: Path, certificate: Certificate) -> None:
    """ConfigError unless the file is the key of that certificate, and its owner's alone."""
    try:
        raw, mode = path.read_bytes(), path.stat().st_mode & 0o077
    except OSError as error:
        raise ConfigError(f"{path} cannot be read ({error.strerror}): make one with 'masked keys init'") from error
    if mode:
        raise ConfigError(f"others than its owner may use {path}: chmod 600 {path}")
    try:
        key = serialization.load_pem_private_key(raw, None)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"{path} is no key without a password: make one with 'masked keys init'") from error
    if key.public_key() != x509.load_der_x509_certificate(certificate.der).public_key():
        raise ConfigError(f"{path} is not the key of the certificate beside it: name the two of one 'masked keys init'")


def _certificate(found: x509.Certificate) -> Certificate:
    names = found.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    name = "".join(letter for letter in str(names[0].value) if letter.isprintable()) if names else "without a name"
    start, end = (
        when.replace(tzinfo=dt.timezone.utc) for when in (found.not_valid_before_utc, found.not_valid_after_utc)
    )
    return Certificate(found.public_bytes(serialization.Encoding.DER), name, start, end)
