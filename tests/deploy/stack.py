"""The service as deploy/compose/compose.yaml runs it, with Podman and podman-compose.

Podman runs health checks by itself only where systemd runs. So the tests run them, and start the
services in the order that `depends_on` gives.
"""

import re
import shutil
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from embedded.environment import PROJECT
from embedded.processes import free_port
from tests.deploy import engine

NAME = "voucher-test"
PATIENCE = 240.0  # seconds; the machine may be busy
COMPOSE = (sys.executable, str(Path(__file__).with_name("quick_compose.py")))
FIRST = ["postgres", "valkey"]
REST = ["api", "api-2", "pages", "pages-2", "worker", "imports", "beat", "metrics", "proxy"]


class Stack:
    """The running service: `compose` and `podman` act on it, `port` gives a published port."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "compose"
        self.ports = {name: free_port() for name in ("HTTP_PORT", "HTTPS_PORT", "METRICS_PORT")}
        self.url = f"https://localhost:{self.ports['HTTPS_PORT']}"
        self.variables = {
            "COMPOSE_PROJECT_NAME": NAME,
            "FRONT_SUBNET": "172.30.239.0/24",
            "FRONT_SUBNET_IPV6": "fd8a:4c1e:6b02:239::/64",
            "PROXY_ADDRESS": "172.30.239.250",
            "PUBLIC_URL": self.url,
            **{name: str(port) for name, port in self.ports.items()},
        }
        self.certificate = ""

    def compose(self, *arguments: str, check: bool = True) -> str:
        """Runs podman-compose and returns what it printed."""
        ended = engine.run(
            *(*COMPOSE, "--file", str(self.folder / "compose.yaml"), *arguments),
            check=check,
            timeout=PATIENCE,
            variables=self.variables,
        )
        return ended.stdout

    def script(self, text: str, *, patience: float = PATIENCE) -> subprocess.CompletedProcess[str]:
        """Runs a documented script, in which `docker compose` is podman-compose."""
        docker = self.folder.parent / "bin/docker"
        docker.parent.mkdir(exist_ok=True)
        program = " ".join(COMPOSE)
        docker.write_text(
            f'#!/bin/sh\n[ "$1" = compose ] || exec podman "$@"\nshift\nexec {program} "$@"\n'
        )
        docker.chmod(0o755)
        head = f"set -eu\ncd {self.folder}\nPATH={docker.parent}:$PATH\n"
        text = text.replace("https://localhost/", f"{self.url}/")
        text = re.sub(r" voucher_(postgres|purchases)\b", rf" {NAME}_\1", text)
        return engine.run("sh", "-c", head + text, timeout=patience, variables=self.variables)

    def inside(self, service: str, *command: str, check: bool = True) -> str:
        """Runs a command in the container of a service."""
        return engine.podman(
            "exec", self.container(service), *command, check=check, timeout=PATIENCE
        )

    def container(self, service: str) -> str:
        return f"{NAME}_{service}_1"

    def healthy(self, service: str) -> bool:
        """Whether the health check that compose.yaml names for the service succeeds."""
        ended = engine.run(
            *("podman", "healthcheck", "run", self.container(service)),
            check=False,
            timeout=PATIENCE,
        )
        return ended.returncode == 0

    def wait(self, what: str, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not done():
            assert time.monotonic() < deadline, f"{what}:\n{self.logs()}"
            time.sleep(0.5)

    def logs(self) -> str:
        """The last lines of every container."""
        names = engine.podman("ps", "--all", "--format={{.Names}}").split()
        ended = [engine.run("podman", "logs", "--tail=8", name, check=False) for name in names]
        return "\n".join(
            f"{name}: {one.stdout}{one.stderr}" for name, one in zip(names, ended, strict=True)
        )

    def get(self, path: str) -> tuple[int, str]:
        return self.fetch(path)

    def fetch(
        self, path: str, *, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Status and body, through the proxy over TLS, whose certificate is verified. Status 0: no
        response. A request with `data` is a POST."""
        context = ssl.create_default_context(cadata=self.certificate)
        request = urllib.request.Request(self.url + path, data, dict(headers or {}))
        try:
            with urllib.request.urlopen(request, context=context, timeout=30) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)


@contextmanager
def running_stack(folder: Path) -> Iterator[Stack]:
    """Builds the images, starts every service, and removes them all afterwards."""
    images = {"VOUCHER_IMAGE": engine.service_image(), **engine.stand_ins()}
    shutil.copytree(PROJECT / "deploy", folder, dirs_exist_ok=True)
    stack = Stack(folder)
    stack.variables |= images
    _join_networks(stack.folder / "compose.yaml")
    engine.run(stack.folder / "make-secrets")
    stack.compose("down", "--volumes", check=False)  # what a killed run left
    try:
        _start(stack)
        yield stack
    finally:
        stack.compose("down", "--volumes", "--timeout=1", check=False)


def _join_networks(compose: Path) -> None:
    """Puts all services into one network: with Podman 4.3 and CNI, a container in two networks
    finds only the names of one of them."""
    one = compose.read_text().replace("networks: [front, data]", "networks: [front]")
    compose.write_text(one.replace("networks: [data]", "networks: [front]"))


def _start(stack: Stack) -> None:
    stack.compose("up", "--detach", *FIRST)
    for name in FIRST:
        stack.wait(f"{name} is not healthy", lambda name=name: stack.healthy(name))  # type: ignore[misc]
    stack.compose("up", "--detach", "--no-deps", "migrate")
    code = engine.podman("wait", stack.container("migrate"), timeout=PATIENCE)
    assert code == "0", stack.logs()
    start_service(stack)


def start_service(stack: Stack) -> None:
    """Starts what needs the migrated database, and waits for it."""
    stack.compose("up", "--detach", "--no-deps", *REST)
    authority = "/data/caddy/pki/authorities/local/root.crt"

    def has_certificate() -> bool:
        stack.certificate = stack.inside("proxy", "cat", authority, check=False)
        return bool(stack.certificate)

    stack.wait("Caddy has no certificate", has_certificate)
    stack.wait("the API is not ready", lambda: stack.get("/readyz")[0] == 200)
    stack.wait("no page is served", lambda: stack.get("/readyz/worker")[0] in (200, 503))


def documented_script(heading: str, number: int = 0) -> str:
    """A script below a heading of the page for containers."""
    page = (PROJECT / "docs" / "operate" / "install-containers.md").read_text()
    part = re.split(rf"^## {heading}\n", page, maxsplit=1, flags=re.MULTILINE)[1]
    part = re.split(r"^## ", part, maxsplit=1, flags=re.MULTILINE)[0]
    scripts: list[str] = re.findall(r"^```sh\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    return scripts[number]
