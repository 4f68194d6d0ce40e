"""A party's material on its way: encrypted for that party's certificate, signed by the dealer's.  Knows files and keys.

    header      whom it is from and for, a key E drawn for this file, names and sizes; signed by the dealer (ECDSA)
    chunks      AES-256-GCM under HKDF(ECDH(E, the party's key), the header's hash), numbered, the last one marked

So it may travel by any means: nobody else can read it, change, shorten or extend it, or pass off material of its own.
Certificates are those of `masked keys`, P-256 all.  A courier may keep a file and bring it again in place of a later
one: each store is opened once under a key (`opened`), which sees no opening with a copy of the key elsewhere, and none
that was forgotten since with the file that notes them.  Both ends are told the store's id, to compare.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from cryptography import x509
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from mpc.errors import ConfigError, StoreRefused
from mpc.files import flush_folder, new_file
from mpc.net.certificates import Certificate

from .directory import Directory
from .opened import note_opened

_MAGIC = b"masked-bandits sealed 1\n"
_SIZES = struct.Struct("<IH")  # of the header and of its signature
_NONCE = struct.Struct("<QI")  # a chunk's number, and whether it is the last
_CHUNK, _TAG = 1 << 20, 16
_LONGEST = 1 << 16  # bytes of a header
_FILES = ("plan.json", "key", "corrections", "cursor", "manifest.json")
_CURVE = ec.SECP256R1()


def seal(home: Path, to: Certificate, own: Certificate, key_file: Path, out: Path) -> int:
    """Write a store that was never in use into a file for the owner of `to`; gives its bytes."""
    directory = Directory(home)
    if directory.read_claims()[0] or (home / "home").exists():
        raise StoreRefused(f"{home} was in use: material is sealed before its first use; deal new one")
    sizes = [(name, (home / name).stat().st_size) for name in _FILES if (home / name).exists()]
    drawn = ec.generate_private_key(_CURVE)
    point = drawn.public_key().public_bytes(
        serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
    )  # fmt: skip
    names = {"from": own.fingerprint, "to": to.fingerprint, "key": point.hex(), "files": sizes}
    header = json.dumps(names).encode()
    signature = _private(key_file).sign(header, ec.ECDSA(hashes.SHA256()))
    cipher = _cipher(drawn.exchange(ec.ECDH(), _public(to)), header)
    with _written(out) as file:
        file.write(_MAGIC + _SIZES.pack(len(header), len(signature)) + header + signature)
        left = sum(size for _, size in sizes)
        for number, chunk in enumerate(_chunks(home, [name for name, _ in sizes])):
            left -= len(chunk)
            file.write(cipher.encrypt(_NONCE.pack(number, not left), chunk, None))
    return out.stat().st_size


def unseal(sealed: Path, own: Certificate, key_file: Path, dealer: Certificate, home: Path) -> None:
    """The store in a sealed file, in a folder that is not there yet: as a whole, or not at all, and once."""
    if os.path.lexists(home):
        raise ConfigError(f"{home} exists: material is never written over; name another folder")
    fresh = home.with_name(f"{home.name}.new")
    if os.path.lexists(fresh):
        raise ConfigError(f"{fresh} exists, where the store is put together: delete it if an opening that died left it")
    try:
        with sealed.open("rb") as file:
            raw, files = _header(file, sealed, own, dealer)
            point = ec.EllipticCurvePublicKey.from_encoded_point(_CURVE, bytes.fromhex(json.loads(raw)["key"]))
            cipher = _cipher(_private(key_file).exchange(ec.ECDH(), point), raw)
            fresh.mkdir(mode=0o700, parents=True)
            try:
                _spread(_opened(file, cipher, sealed, sum(size for _, size in files)), files, fresh)
                note_opened(key_file, sealed, Directory(fresh).manifest)
                fresh.rename(home)
            except BaseException:  # what another opening puts together there is not this one's to remove
                shutil.rmtree(fresh, ignore_errors=True)
                raise
        flush_folder(home.parent)
    except OSError as error:
        where = error.filename or home
        raise ConfigError(f"{where}: {error.strerror}: name a file that is there, and a place with room") from error


def _header(
    file: BinaryIO, path: Path, own: Certificate, dealer: Certificate
) -> tuple[bytes, list[tuple[str, int]]]:  # fmt: skip
    """Of a file that the dealer signed for this party; what it says is believed only then."""
    start = file.read(len(_MAGIC) + _SIZES.size)
    if not start.startswith(_MAGIC) or len(start) < len(_MAGIC) + _SIZES.size:
        raise StoreRefused(f"{path} is no sealed material: name the file that the dealer sent")
    length, signed = _SIZES.unpack(start[len(_MAGIC) :])
    raw, signature = file.read(min(length, _LONGEST)), file.read(signed)
    try:
        _public(dealer).verify(signature, raw, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise StoreRefused(
            f"{path} is not signed by {dealer.name!r}, or was changed on its way: ask the dealer for it again"
        ) from None
    header: dict[str, Any] = json.loads(raw)
    if (header["from"], header["to"]) != (dealer.fingerprint, own.fingerprint):
        raise StoreRefused(f"{path} is for another party than {own.name!r}: take the one that was sealed for it")
    files = [(str(name), int(size)) for name, size in header["files"]]
    if any(name not in _FILES for name, _ in files):
        raise StoreRefused(f"{path} holds files that no store has: run the same release as the dealer")
    return raw, files


def _chunks(home: Path, names: list[str]) -> Iterator[bytes]:
    """All files behind each other."""
    left = b""
    for name in names:
        with (home / name).open("rb") as file:
            while more := file.read(_CHUNK - len(left)):
                left += more
                if len(left) == _CHUNK:
                    yield left
                    left = b""
    if left:
        yield left


def _opened(file: BinaryIO, cipher: AESGCM, path: Path, total: int) -> Iterator[bytes]:
    number, left = 0, total
    while left:
        size = min(_CHUNK, left)
        left -= size
        try:
            yield cipher.decrypt(_NONCE.pack(number, not left), file.read(size + _TAG), None)
        except InvalidTag:
            raise StoreRefused(f"{path} is damaged or cut short: ask the dealer for it again") from None
        number += 1
    if file.read(1):
        raise StoreRefused(f"{path} is longer than it says: ask the dealer for it again")


def _spread(chunks: Iterator[bytes], files: list[tuple[str, int]], into: Path) -> None:
    left = b""
    for name, size in files:
        with new_file(into / name) as file:
            while file.tell() < size:
                left = left or next(chunks)
                wanted = size - file.tell()
                file.write(left[:wanted])
                left = left[wanted:]
            file.flush()
            os.fsync(file.fileno())
    for _ in chunks:  # to its end, which is checked there
        pass


@contextlib.contextmanager
def _written(out: Path) -> Iterator[BinaryIO]:
    """A file that was not there; none is left where it is not whole."""
    try:
        file = new_file(out, 0o644)
    except FileExistsError as error:
        raise ConfigError(f"{out} exists: it is not written over; choose another name") from error
    except OSError as error:
        raise ConfigError(f"{out} cannot be written ({error.strerror}): choose another place") from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        out.unlink(missing_ok=True)
        raise ConfigError(f"{out} cannot be written ({error.strerror}): make room, or choose another place") from error
    except BaseException:
        out.unlink(missing_ok=True)
        raise


def _cipher(shared: bytes, header: bytes) -> AESGCM:
    salt = hashlib.sha256(header).digest()
    return AESGCM(HKDF(hashes.SHA256(), 32, salt, _MAGIC).derive(shared))


def _public(certificate: Certificate) -> ec.EllipticCurvePublicKey:
    key = x509.load_der_x509_certificate(certificate.der).public_key()
    if not isinstance(key, ec.EllipticCurvePublicKey) or key.curve.name != _CURVE.name:
        raise ConfigError(f"the certificate of {certificate.name!r} has no P-256 key: make it with 'masked keys init'")
    return key


def _private(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey), "check_key has compared it with its certificate"
    return key
