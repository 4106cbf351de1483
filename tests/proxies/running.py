"""Runs nginx, Caddy and HAProxy with the files of `deploy/`, and talks to them over TLS.

The tests replace addresses, names and files, and nothing else.
"""

import datetime
import http.client
import ipaddress
import os
import re
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from embedded.environment import PROJECT
from embedded.processes import Process, free_port
from tests.api.raw import TIMEOUT, RawAnswer
from tests.live import HOST
from tests.programs import find_program

NAME = "localhost"
CALLER = "127.0.0.9"  # the address from which tests call; the proxy itself uses 127.0.0.1
CADDY = Path(sys.executable).with_name("caddy")


@dataclass
class Proxy:
    """A running proxy: its port for TLS and for plain HTTP, and what it logged.

    `patience` is how many seconds it waits for a response; the files of `deploy/` have 35.
    """

    name: str
    folder: Path
    patience: int = 3
    port: int = field(default_factory=free_port)
    plain_port: int = field(default_factory=free_port)

    @property
    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        caller: str = CALLER,
        plain: bool = False,
    ) -> RawAnswer:
        """The response to one request, over TLS unless `plain`."""
        connection = self._connection(caller, plain=plain)
        try:
            connection.request(method, path, body=body, headers=dict(headers or {}))
            response = connection.getresponse()
            named = {name.title(): value for name, value in response.getheaders()}
            return RawAnswer(response.status, named, response.read())
        finally:
            connection.close()

    def wire(self) -> ssl.SSLSocket:
        """An open connection."""
        plain = socket.create_connection((HOST, self.port), TIMEOUT, (CALLER, 0))
        return self._trust().wrap_socket(plain, server_hostname=NAME)

    def _connection(self, caller: str, *, plain: bool) -> http.client.HTTPConnection:
        if plain:
            return http.client.HTTPConnection(
                NAME, self.plain_port, timeout=TIMEOUT, source_address=(caller, 0)
            )
        return http.client.HTTPSConnection(
            NAME, self.port, timeout=TIMEOUT, source_address=(caller, 0), context=self._trust()
        )

    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "certificate.pem"))


Start = Callable[[Proxy, Sequence[int], Sequence[int]], Process]


def start_nginx(proxy: Proxy, api: Sequence[int], pages: Sequence[int]) -> Process:
    """nginx with deploy/nginx/voucher.conf inside a minimal main file."""
    text = (PROJECT / "deploy/nginx/voucher.conf").read_text()
    for shipped, ours in {
        _servers((8001, 8003)): _servers(api),
        _servers((8002, 8004)): _servers(pages),
        "listen 80;": f"listen {HOST}:{proxy.plain_port};",
        "listen 443 ssl http2;": f"listen {HOST}:{proxy.port} ssl http2;",
        "api.example.com": NAME,
        "/etc/ssl/voucher/fullchain.pem": str(proxy.folder / "certificate.pem"),
        "/etc/ssl/voucher/privkey.pem": str(proxy.folder / "key.pem"),
        "/var/log/nginx/voucher.log": str(proxy.folder / "access.log"),
        "proxy_read_timeout 35s;": f"proxy_read_timeout {proxy.patience}s;",
        "send_timeout 30s;": "send_timeout 3s;",
    }.items():
        assert shipped in text
        text = text.replace(shipped, ours)
    text = re.sub(r"listen \[::\].*;", "", text)  # not every machine has IPv6
    (proxy.folder / "voucher.conf").write_text(text)
    temporary = "".join(
        f"{kind}_temp_path {proxy.folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    main = proxy.folder / "nginx.conf"
    main.write_text(
        f"user root; daemon off; worker_processes 1; pid {proxy.folder}/nginx.pid;"
        f" error_log {proxy.folder}/error.log warn; events {{}} http {{ {temporary}"
        f" include {proxy.folder}/voucher.conf; }}"
    )
    program = find_program("nginx")
    assert program
    return _start(proxy, [program, "-e", proxy.folder / "error.log", "-c", main], {})


def _servers(ports: Sequence[int]) -> str:
    """The lines of an upstream, as the file has them."""
    return "\n".join(f"    server {HOST}:{port} max_fails=0;" for port in ports)


def start_caddy(proxy: Proxy, api: Sequence[int], pages: Sequence[int]) -> Process:
    """Caddy with deploy/caddy/Caddyfile."""
    text = (PROJECT / "deploy/caddy/Caddyfile").read_text()
    certificate = f"tls {proxy.folder}/certificate.pem {proxy.folder}/key.pem"
    for shipped, ours in {
        "\thttp_port": "\tadmin off\n\tpersist_config off\n\thttp_port",
        "https://{$SERVICE_HOST:api.example.com} {": f"https://{{$SERVICE_HOST}} {{\n{certificate}",
        "response_header_timeout 35s": f"response_header_timeout {proxy.patience}s",
        "lb_try_duration 5s": "lb_try_duration 2s",
        "write_idle 30s": "write_idle 3s",
    }.items():
        assert shipped in text
        text = text.replace(shipped, ours)
    file = proxy.folder / "Caddyfile"
    file.write_text(text)
    environment = {
        "SERVICE_HOST": NAME,
        "HTTP_PORT": str(proxy.plain_port),
        "HTTPS_PORT": str(proxy.port),
        "API_PROCESSES": " ".join(f"{HOST}:{port}" for port in api),
        "PAGES_PROCESSES": " ".join(f"{HOST}:{port}" for port in pages),
        "HOME": str(proxy.folder),
    }
    command: list[str | Path] = [CADDY, "run", "--config", file, "--adapter", "caddyfile"]
    return _start(proxy, command, environment)


def start_haproxy(proxy: Proxy, api: Sequence[int], pages: Sequence[int]) -> Process:
    """HAProxy with deploy/haproxy/haproxy.cfg."""
    text = (PROJECT / "deploy/haproxy/haproxy.cfg").read_text()
    certificate = proxy.folder / "haproxy.pem"
    certificate.write_text(
        "".join((proxy.folder / name).read_text() for name in ("certificate.pem", "key.pem"))
    )
    for shipped, ours in {
        _lines("api", (8001, 8003)): _lines("api", api),
        _lines("pages", (8002, 8004)): _lines("pages", pages),
        "bind :::80 v4v6": f"bind {HOST}:{proxy.plain_port}",
        "bind :::443 v4v6": f"bind {HOST}:{proxy.port}",
        "api.example.com": NAME,
        "/etc/haproxy/voucher.pem": str(certificate),
        "    user haproxy\n    group haproxy\n": "",
        "timeout server 35s": f"timeout server {proxy.patience}s",
        "timeout client 30s": "timeout client 3s",
    }.items():
        assert shipped in text
        text = text.replace(shipped, ours)
    file = proxy.folder / "haproxy.cfg"
    file.write_text(text)
    program = find_program("haproxy")
    assert program
    return _start(proxy, [program, "-W", "-f", file], {})


def _lines(kind: str, ports: Sequence[int]) -> str:
    """The lines of a backend, as the file has them."""
    return "\n".join(f"    server {kind}-{port} {HOST}:{port} tcp-ut 5s" for port in ports)


PROXIES: dict[str, Start] = {"nginx": start_nginx, "caddy": start_caddy, "haproxy": start_haproxy}


@contextmanager
def running_proxy(
    name: str, *, api: Sequence[int], pages: Sequence[int], folder: Path, patience: int = 3
) -> Iterator[Proxy]:
    """The proxy of this name in front of processes on these ports. Prints its log at the end."""
    proxy = Proxy(name, folder, patience)
    make_certificate(folder)
    process = PROXIES[name](proxy, api, pages)
    try:
        _wait_for(proxy, process)
        yield proxy
    finally:
        process.stop()
        print(proxy.log)  # noqa: T201


def make_certificate(folder: Path) -> None:
    """Writes `key.pem` and a certificate for localhost that signs itself, `certificate.pem`."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)])
    now = datetime.datetime.now(datetime.UTC)
    names = x509.SubjectAlternativeName(
        [x509.DNSName(NAME), x509.IPAddress(ipaddress.ip_address(HOST))]
    )
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(names, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, none = serialization.Encoding.PEM, serialization.NoEncryption()
    (folder / "key.pem").write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, none)
    )
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(pem))


def _start(proxy: Proxy, command: list[str | Path], environment: Mapping[str, str]) -> Process:
    with (proxy.folder / "output.log").open("ab") as output:
        return Process(
            proxy.name, command, environment={**os.environ, **environment}, output=output
        )


def _wait_for(proxy: Proxy, process: Process) -> None:
    deadline = time.monotonic() + TIMEOUT
    while process.exit_code() is None and time.monotonic() < deadline:
        try:
            proxy.wire().close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError(f"{proxy.name} does not start:\n{proxy.log}")
