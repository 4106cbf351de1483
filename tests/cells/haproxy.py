"""Runs HAProxy with the files of `deploy/cells/`. The tests replace addresses and paths only."""

import shutil
import signal
import ssl
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from embedded.environment import PROJECT
from embedded.processes import Process
from tests.live import HOST
from tests.proxies.running import Proxy, make_certificate
from tests.tasks.running import wait_until

FILES = PROJECT / "deploy" / "cells"
AS_ROOT = "    user haproxy\n    group haproxy\n    chroot /var/lib/haproxy\n"


def find_haproxy() -> str | None:
    """The program; Debian has it where only root looks."""
    return shutil.which("haproxy") or shutil.which("haproxy", path="/usr/sbin")


class Haproxy:
    """A running HAProxy in front of cells `a` and `b`."""

    def __init__(self, folder: Path, *, a: int, b: int) -> None:
        self.front = Proxy("haproxy", folder)
        self._folder = folder
        make_certificate(folder)
        pem = (folder / "certificate.pem").read_text() + (folder / "key.pem").read_text()
        (folder / "voucher.pem").write_text(pem)
        for name in ("cells.map", "moved.map"):
            shutil.copy(FILES / name, folder)
        self.file = folder / "haproxy.cfg"
        self.file.write_text(self._configuration(a, b))
        self._check()
        program = find_haproxy()
        assert program
        with (folder / "output.log").open("ab") as output:
            self.process = Process("haproxy", [program, "-W", "-f", self.file], output=output)

    def move(self, lines: Sequence[str]) -> None:
        """What an operator does: adds lines to moved.map, checks the files, and reloads."""
        with (self._folder / "moved.map").open("a") as file:
            file.write("".join(f"{line}\n" for line in lines))
        self._check()
        self.process.popen.send_signal(signal.SIGUSR2)  # as `systemctl reload haproxy` does

    def _configuration(self, a: int, b: int) -> str:
        text = (FILES / "haproxy.cfg").read_text()
        for shipped, ours in {
            AS_ROOT: "",
            "maxconn 5000": "maxconn 200",
            "bind :80\n": f"bind {HOST}:{self.front.plain_port}\n",
            "bind :443 ": f"bind {HOST}:{self.front.port} ",
            "/etc/haproxy/": f"{self._folder}/",
            "hdr Host api.example.com": "hdr Host localhost",
            "inter 2s": "inter 300ms",
            "server a1 10.0.1.1:8001": f"server a1 {HOST}:{a}",
            "    server a2 10.0.1.2:8001\n": "",
            "server b1 10.0.2.1:8001": f"server b1 {HOST}:{b}",
            "    server b2 10.0.2.2:8001\n": "",
        }.items():
            assert shipped in text, shipped
            text = text.replace(shipped, ours)
        return text

    def _check(self) -> None:
        program = find_haproxy()
        assert program
        subprocess.run([program, "-c", "-f", self.file], check=True, capture_output=True)

    def responds(self) -> bool:
        """Whether both cells answer through it."""
        keys = [{"Authorization": f"Bearer vk_{cell}_0_0"} for cell in ("a", "b")]
        with suppress(OSError, ssl.SSLError):
            return all(self.front.ask("GET", "/api/v1/ping", key).status == 401 for key in keys)
        return False


@contextmanager
def haproxy(folder: Path, *, a: int, b: int) -> Iterator[Haproxy]:
    """HAProxy in front of web processes on these ports."""
    folder.mkdir()
    running = Haproxy(folder, a=a, b=b)
    try:
        wait_until(running.responds, "HAProxy responds", timeout=20)
        yield running
    finally:
        running.process.stop()
        print(running.front.log)  # noqa: T201
