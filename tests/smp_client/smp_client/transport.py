"""TLS connection that carries blocks of 16384 bytes."""
from __future__ import annotations

import base64
import datetime
import os
import socket
import ssl
import tempfile
import time
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from .wire import BLOCK_SIZE, WireError

ALPN = "smp/1"
CIPHER = "TLS_CHACHA20_POLY1305_SHA256"


class ConnectionClosed(Exception):
    """The server closed the connection."""


class Timeout(Exception):
    """What was waited for did not come."""


@dataclass(frozen=True)
class Address:
    """Server address: ``smp://KEYHASH[:PASSWORD]@HOST[,HOST...][:PORT]``."""
    key_hash: bytes
    hosts: tuple[str, ...]
    port: int
    password: bytes | None = None

    @staticmethod
    def parse(text: str) -> Address:
        """Address from its text."""
        scheme, _, rest = text.strip().partition("://")
        identity, _, place = rest.partition("@")
        if scheme != "smp" or not place:
            raise ValueError(f"not an SMP address: {text}")
        encoded, _, password = identity.partition(":")
        hosts, colon, port = place.rstrip("/").rpartition(":")
        if not colon:
            hosts, port = port, "5223"
        key_hash = base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))
        return Address(key_hash, tuple(hosts.split(",")), int(port), password.encode() or None)


class Service:
    """Certificate of a client service: a CA and a certificate signed by it (both Ed25519)."""

    def __init__(self, role: str = "M") -> None:
        self.role = role
        ca_key = ed25519.Ed25519PrivateKey.generate()
        self.key = ed25519.Ed25519PrivateKey.generate()
        ca = self._certificate("Test service CA", ca_key, None, ca_key, is_ca=True)
        leaf = self._certificate("Test service", self.key, ca, ca_key, is_ca=False)
        self.chain = [leaf.public_bytes(Encoding.DER), ca.public_bytes(Encoding.DER)]
        self.identity = self.chain[1]
        self._pem = leaf.public_bytes(Encoding.PEM) + ca.public_bytes(Encoding.PEM) + self.key.private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())

    @staticmethod
    def _certificate(name: str, key: ed25519.Ed25519PrivateKey, issuer: x509.Certificate | None,
                     issuer_key: ed25519.Ed25519PrivateKey, is_ca: bool) -> x509.Certificate:
        """Certificate valid from yesterday for ten years."""
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        start = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(days=1)
        builder = (x509.CertificateBuilder().subject_name(subject)
                   .issuer_name(issuer.subject if issuer else subject).public_key(key.public_key())
                   .serial_number(x509.random_serial_number())
                   .not_valid_before(start).not_valid_after(start + datetime.timedelta(days=3650))
                   .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True))
        if is_ca:
            usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
            builder = builder.add_extension(usage, critical=True)
        return builder.sign(issuer_key, None)

    def load(self, context: ssl.SSLContext) -> None:
        """Puts chain and key into the context (which reads them from files only)."""
        descriptor, path = tempfile.mkstemp(suffix=".pem")
        try:
            os.write(descriptor, self._pem)
            os.close(descriptor)
            context.load_cert_chain(path)
        finally:
            os.unlink(path)


class Transport:
    """Blocks over TLS 1.3. Every operation has a deadline."""

    def __init__(self, address: Address, service: Service | None, alpn: str | None, timeout: float) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE  # the chain is verified against the address, see verify_chain
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
        try:
            context.set_ecdh_curve("X25519")  # the only group offered, with OpenSSL 3
        except ssl.SSLError:
            pass  # not every build of Python can: OpenSSL's own list then begins with X25519
        if alpn is not None:
            context.set_alpn_protocols([alpn])
        if service is not None:
            service.load(context)
        raw = socket.create_connection((address.hosts[0], address.port), timeout)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            self.tls = context.wrap_socket(raw, server_hostname=None)
        except BaseException:
            raw.close()
            raise
        self._received = bytearray()
        self.chain = self._peer_chain()
        finished = self.tls.get_channel_binding("tls-unique")
        cipher = self.tls.cipher()
        if finished is None or cipher is None:
            raise WireError("no TLS Finished message")
        self.finished: bytes = finished
        if cipher[0] != CIPHER:
            raise WireError(f"cipher suite {cipher[0]}")
        self.alpn = self.tls.selected_alpn_protocol()

    def _peer_chain(self) -> list[bytes]:
        """Certificates of the server; public in Python 3.13, before that a method of the inner object."""
        if hasattr(self.tls, "get_unverified_chain"):
            return [bytes(der) for der in self.tls.get_unverified_chain()]
        import _ssl  # pylint: disable=import-outside-toplevel
        chain = self.tls._sslobj.get_unverified_chain()  # type: ignore[attr-defined]  # pylint: disable=protected-access
        return [certificate.public_bytes(_ssl.ENCODING_DER) for certificate in chain]

    def send(self, data: bytes, timeout: float) -> None:
        """Sends the bytes."""
        self.tls.settimeout(timeout)
        try:
            self.tls.sendall(data)
        except TimeoutError:
            raise Timeout(f"sending did not finish in {timeout} s") from None
        except (OSError, ssl.SSLError) as error:
            raise ConnectionClosed(f"while sending: {error}") from None

    def receive_block(self, deadline: float) -> bytes:
        """The next block, by the deadline (of time.monotonic)."""
        while len(self._received) < BLOCK_SIZE:
            left = deadline - time.monotonic()
            if left <= 0:
                raise Timeout("no block in time")
            self.tls.settimeout(left)
            try:
                part = self.tls.recv(BLOCK_SIZE)
            except TimeoutError:
                raise Timeout("no block in time") from None
            except (OSError, ssl.SSLError) as error:
                raise ConnectionClosed(str(error)) from None
            if not part:
                raise ConnectionClosed(f"closed by the server after {len(self._received)} bytes of a block")
            self._received += part
        block = bytes(self._received[:BLOCK_SIZE])
        del self._received[:BLOCK_SIZE]
        return block

    def close(self) -> None:
        """Closes the connection."""
        self.tls.close()
