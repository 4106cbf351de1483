"""Servers in front of the service, for tests of the client libraries."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from django.utils import timezone

from tests.merchants.bad_network import BadNetwork


class SlowNetwork(BadNetwork):
    """Holds each request for a moment, so that requests that may overlap do."""

    def __init__(self, port: int, plan: list[str]) -> None:
        super().__init__(port, plan)
        self.user_agents: set[str] = set()
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()

    def pass_on(self, handler: BaseHTTPRequestHandler, port: int) -> None:
        with self._lock:
            self.user_agents.add(handler.headers["User-Agent"])
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
        time.sleep(0.3)
        with self._lock:  # before the answer, after which the client sends its next request
            self._now -= 1
        super().pass_on(handler, port)


class _Counted(ThreadingHTTPServer):
    """Counts connections. A client that refuses the certificate makes one, and sends nothing."""

    connections = 0
    requests = 0

    def verify_request(self, request: object, client_address: object) -> bool:
        self.connections += 1
        return True

    def handle_error(self, request: object, client_address: object) -> None:
        """The client ends the handshake."""


class _Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.server.requests += 1  # type: ignore[attr-defined]

    def log_message(self, format: str, *args: object) -> None:
        """Logs nothing."""


@contextmanager
def untrusted_server(folder: Path) -> Iterator[_Counted]:
    """A server of 127.0.0.1 with a certificate that it signed itself."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(folder / "server.pem"))
    with _Counted(("127.0.0.1", 0), _Answering) as server:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def _certificate(path: Path) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(timezone.now() - timedelta(days=1))
        .not_valid_after(timezone.now() + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    text = serialization.Encoding.PEM
    private = key.private_bytes(
        text, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + certificate.public_bytes(text))
    return path
