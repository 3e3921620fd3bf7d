"""Keys, boxes and hashes used by SMP."""
from __future__ import annotations

import hashlib
import hmac
import os
import struct
from collections.abc import Callable, Iterable

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ed448, ed25519, x25519
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_der_public_key
from nacl import bindings as nacl
from nacl.exceptions import CryptoError

from .wire import Reader, WireError, pad, unpad

NONCE_SIZE = 24
KEY_TYPES = ("ed25519", "ed448", "x25519")

_MASK = 0xFFFFFFFF
_QUARTERS = ((0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11),
             (0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14))
_STEPS = ((1, 0, 3, 7), (2, 1, 0, 9), (3, 2, 1, 13), (0, 3, 2, 18))


def hsalsa20(key: bytes, block: bytes = bytes(16)) -> bytes:
    """HSalsa20 of 16 bytes (PyNaCl does not export it)."""
    constant, words, inputs = (struct.unpack(f"<{n}I", data) for n, data in
                               ((4, b"expand 32-byte k"), (8, key), (4, block)))
    state = [constant[0], *words[:4], constant[1], *inputs, constant[2], *words[4:], constant[3]]
    for _ in range(10):
        for quarter in _QUARTERS:
            for target, left, right, turn in _STEPS:
                total = (state[quarter[left]] + state[quarter[right]]) & _MASK
                state[quarter[target]] ^= (total << turn | total >> (32 - turn)) & _MASK
    return struct.pack("<8I", *(state[i] for i in (0, 5, 10, 15, 6, 7, 8, 9)))


def nonce_of(corr_id: bytes) -> bytes:
    """Correlation ID as a nonce: cut or filled with zeros."""
    return corr_id[:NONCE_SIZE].ljust(NONCE_SIZE, b"\0")


def box(secret: bytes, nonce: bytes, data: bytes) -> bytes:
    """crypto_box with a raw X25519 secret (or a symmetric key: SMP treats both alike)."""
    return bytes(nacl.crypto_secretbox(data, nonce, hsalsa20(secret)))


def unbox(secret: bytes, nonce: bytes, data: bytes) -> bytes:
    """Reverse of `box`."""
    try:
        return bytes(nacl.crypto_secretbox_open(data, nonce, hsalsa20(secret)))
    except (CryptoError, ValueError) as error:
        raise WireError(f"box of {len(data)} bytes does not open: {error}") from None


def box_padded(secret: bytes, nonce: bytes, data: bytes, size: int) -> bytes:
    """Box of the data padded to `size` bytes."""
    return box(secret, nonce, pad(data, size))


def unbox_padded(secret: bytes, nonce: bytes, data: bytes) -> bytes:
    """Reverse of `box_padded`."""
    return unpad(unbox(secret, nonce, data))


def hkdf(salt: bytes, secret: bytes, info: bytes, size: int) -> bytes:
    """HKDF-SHA512."""
    prk = hmac.new(salt or bytes(64), secret, hashlib.sha512).digest()
    out, last = b"", b""
    for counter in range(1, 256):
        last = hmac.new(prk, last + info + bytes([counter]), hashlib.sha512).digest()
        out += last
        if len(out) >= size:
            break
    return out[:size]


class BlockChain:
    """Keys of one direction of the encrypted blocks; every block takes the next key."""

    def __init__(self, chain_key: bytes) -> None:
        self.chain_key = chain_key

    @staticmethod
    def pair(session_id: bytes, secret: bytes) -> tuple[BlockChain, BlockChain]:
        """Chains for (blocks of the server, blocks of the client)."""
        keys = hkdf(session_id, secret, b"SimpleXSbChainInit", 64)
        return BlockChain(keys[:32]), BlockChain(keys[32:])

    def next(self) -> tuple[bytes, bytes]:
        """Key and nonce of the next block."""
        keys = hkdf(b"", self.chain_key, b"SimpleXSbChain", 88)
        self.chain_key = keys[:32]
        return keys[32:64], keys[64:]


PublicKey = ed25519.Ed25519PublicKey | ed448.Ed448PublicKey | x25519.X25519PublicKey
PrivateKey = ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey | x25519.X25519PrivateKey


def der_of(key: PublicKey) -> bytes:
    """SubjectPublicKeyInfo."""
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


class DhKey:
    """X25519 key pair for Diffie-Hellman."""

    def __init__(self) -> None:
        self.private = x25519.X25519PrivateKey.generate()
        self.der = der_of(self.private.public_key())

    def secret(self, peer: x25519.X25519PublicKey) -> bytes:
        """Raw shared secret."""
        return self.private.exchange(peer)


def load_dh(der: bytes) -> x25519.X25519PublicKey:
    """X25519 public key from its DER, strict."""
    try:
        key = load_der_public_key(der)
    except ValueError as error:
        raise WireError(f"not a public key: {error}") from None
    if not isinstance(key, x25519.X25519PublicKey) or der_of(key) != der:
        raise WireError(f"not the DER of an X25519 key: {der.hex()}")
    return key


_GENERATORS: dict[str, Callable[[], PrivateKey]] = {
    "ed25519": ed25519.Ed25519PrivateKey.generate, "ed448": ed448.Ed448PrivateKey.generate,
    "x25519": x25519.X25519PrivateKey.generate}


class AuthKey:
    """Key pair that authorizes commands: a signature, or an authenticator if it is X25519."""

    def __init__(self, kind: str = "ed25519") -> None:
        self.kind = kind
        self.private: PrivateKey = _GENERATORS[kind]()
        self.der = der_of(self.private.public_key())

    def authorize(self, data: bytes, corr_id: bytes, server_key: x25519.X25519PublicKey | None) -> bytes:
        """Authorization of the authorized part of a transmission."""
        if not isinstance(self.private, x25519.X25519PrivateKey):
            return self.private.sign(data)
        if server_key is None:
            raise ValueError("the server did not give the key that X25519 authenticators need")
        return box(self.private.exchange(server_key), nonce_of(corr_id), hashlib.sha512(data).digest())


def random_id() -> bytes:
    """24 random bytes: correlation ID or an ID that does not exist."""
    return os.urandom(NONCE_SIZE)


def sender_id_of(corr_id: bytes) -> bytes:
    """Sender ID that NEW with link data must have."""
    return hashlib.sha3_384(corr_id).digest()[:24]


def ids_hash(ids: Iterable[bytes]) -> bytes:
    """XOR of the MD5 hashes of queue IDs."""
    total = 0
    for queue_id in ids:
        total ^= int.from_bytes(hashlib.md5(queue_id).digest(), "big")
    return total.to_bytes(16, "big")


# certificates and keys signed by them

_DER_SEQUENCE = 0x30
_DER_BITS = 0x03


def _der_value(reader: Reader, tag: int) -> tuple[bytes, bytes]:
    """Next DER value with this tag: (all of it, its content)."""
    start = reader.pos
    if reader.byte() != tag:
        raise WireError(f"DER tag {tag:#x} expected in {reader.data[:40].hex()}")
    size = reader.byte()
    if size >= 0x80:
        size = int.from_bytes(reader.take(size & 0x7F), "big")
    content = reader.take(size)
    return reader.data[start:reader.pos], content


def _der(tag: int, content: bytes) -> bytes:
    """DER value, up to 65535 bytes."""
    size = len(content)
    if size < 0x80:
        header = bytes([size])
    else:
        header = bytes([0x81, size]) if size < 0x100 else b"\x82" + struct.pack(">H", size)
    return bytes([tag]) + header + content


def sign_key(private: ed25519.Ed25519PrivateKey | ed448.Ed448PrivateKey, key_der: bytes) -> bytes:
    """A public key signed with a certificate's key, as the handshake has it."""
    signed = _der(_DER_SEQUENCE, key_der)
    oid = b"\x2b\x65\x70" if isinstance(private, ed25519.Ed25519PrivateKey) else b"\x2b\x65\x71"
    algorithm = _der(_DER_SEQUENCE, _der(0x06, oid))
    return _der(_DER_SEQUENCE, signed + algorithm + _der(_DER_BITS, b"\0" + private.sign(signed)))


def verify_signed_key(signed_key: bytes, certificate: bytes) -> x25519.X25519PublicKey:
    """The X25519 key inside a key signed by the certificate (DER), the signature being right."""
    outer = Reader(signed_key)
    parts = Reader(_der_value(outer, _DER_SEQUENCE)[1])
    outer.end()
    signed, key_der = _der_value(parts, _DER_SEQUENCE)
    _der_value(parts, _DER_SEQUENCE)
    signature = _der_value(parts, _DER_BITS)[1]
    parts.end()
    verifier = x509.load_der_x509_certificate(certificate).public_key()
    if not isinstance(verifier, (ed25519.Ed25519PublicKey, ed448.Ed448PublicKey)):
        raise WireError(f"certificate with a key of type {type(verifier).__name__}")
    try:
        verifier.verify(signature[1:], signed)
    except InvalidSignature:
        raise WireError("signature of the session key is wrong") from None
    return load_dh(key_der)


def verify_issued_by(certificate: x509.Certificate, issuer: x509.Certificate) -> None:
    """Checks name and signature; `verify_directly_issued_by` would need a newer library than Debian 12 has."""
    if certificate.issuer != issuer.subject:
        raise ValueError("another issuer")
    verifier = issuer.public_key()
    if not isinstance(verifier, (ed25519.Ed25519PublicKey, ed448.Ed448PublicKey)):
        raise TypeError(f"issuer with a key of type {type(verifier).__name__}")
    verifier.verify(certificate.signature, certificate.tbs_certificate_bytes)


def verify_chain(chain: list[bytes], key_hash: bytes) -> None:
    """Chain of 2 to 4 certificates (DER), the 2nd being the identity with this SHA-256."""
    if not 2 <= len(chain) <= 4:
        raise WireError(f"chain of {len(chain)} certificates")
    if hashlib.sha256(chain[1]).digest() != key_hash:
        raise WireError("the identity certificate has another fingerprint than the address")
    certificates = [x509.load_der_x509_certificate(der) for der in chain]
    for certificate, issuer in zip(certificates, certificates[1:] + certificates[-1:]):
        try:
            verify_issued_by(certificate, issuer)
        except (InvalidSignature, ValueError, TypeError) as error:
            raise WireError(f"certificate {certificate.subject.rfc4514_string()} is not signed as it should be: "
                            f"{error}") from None
