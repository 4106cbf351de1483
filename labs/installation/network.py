"""Hosts in a network of their own, which a test can kill or cut off.

All of them live in one private network, process and mount namespace. Nothing of it is visible
outside, and when its first process ends, the kernel ends all others. Requires root.
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from embedded.processes import Process
from tests.programs import UNSHARE
from tests.tasks.running import wait_until

CLONE_NEWNET = 0x40000000
WEB_HOST = "10.0.0.11"  # where HAProxy runs
# All hosts share the processors of this machine with the suite. Real hosts have their own.
PRIORITY = ("nice", "-n", "-10")
# The shell adopts processes whose parents were killed, and collects them when they end.
FIRST_PROCESS = """set -e
ip link set lo up
ip link add lan type bridge
ip link set lan up
ip address add {address}/24 dev lan
touch {ready}
sleep infinity & wait"""
HOST_PROCESS = """set -e
hostname {name}
{mounts}
ip link set lo up
touch {ready}
exec sleep infinity"""


class Host:
    """A host with a network address, and with folders that replace those of this machine.

    `folders` maps a path on the host to the folder that it shows.
    """

    def __init__(
        self, network: "Network", name: str, address: str, folders: Mapping[str, Path]
    ) -> None:
        self.name, self.address = name, address
        self._network = network
        ready = network.folder / f"{name}-ready"
        mounts = "\n".join(f"mount --bind {own} {path}" for path, own in folders.items())
        script = HOST_PROCESS.format(name=name, mounts=mounts, ready=ready)
        unshare = ("unshare", "--net", "--mount", "--uts")
        started = network.start(name, [*unshare, "sh", "-c", script])
        wait_until(ready.exists, f"host {name} runs")
        self.first = _child(started.pid)
        self._link = f"to-{name}"
        network.run("ip", "link", "add", self._link, "type", "veth", "peer", "name", "eth0")
        network.run("ip", "link", "set", "eth0", "netns", f"/proc/{self._pid_inside()}/ns/net")
        self.connect()
        self.run("ip", "address", "add", f"{address}/24", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")

    def start(
        self, name: str, command: Sequence[str | Path], *, user: str, environment: Mapping[str, str]
    ) -> Process:
        """Starts a process of this user here. From the main thread only."""
        return self._network.start(
            f"{self.name}-{name}", [*_as_user(user), *command], environment=environment, inside=self
        )

    def run(self, *command: str | Path, user: str = "root") -> str:
        """Runs a command here; returns what it printed. Raises CalledProcessError."""
        return _run([*_enter(self.first), *_as_user(user), *command])

    @contextmanager
    def cut_off(self) -> Iterator[None]:
        """The host has no network inside the block. Its processes do not notice at once."""
        self.disconnect()
        try:
            yield
        finally:
            self.connect()

    def disconnect(self) -> None:
        """Cuts the host off from the network."""
        self._network.run("ip", "link", "set", self._link, "nomaster")

    def connect(self) -> None:
        """Connects the host to the network."""
        self._network.run("ip", "link", "set", self._link, "master", "lan", "up")

    def everything(self) -> dict[int, str]:
        """The names of the processes that run here, by the ids that this process sees. Without the
        one that keeps the host's namespaces."""
        here = self._namespace("net").stat().st_ino
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # ended meanwhile
                if (folder / "ns/net").stat().st_ino == here and int(folder.name) != self.first:
                    found[int(folder.name)] = (folder / "comm").read_text().strip()
        return found

    def processes(self, *names: str) -> list[int]:
        """The processes of these names that run here."""
        return [pid for pid, name in self.everything().items() if name in names]

    def kill(self, *names: str) -> None:
        """kill -9 of all processes of these names here, at once."""
        self._signal(names, signal.SIGSTOP)  # none may start another one
        self._signal(names, signal.SIGKILL)

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """The processes of these names here stand still inside the block."""
        self._signal(names, signal.SIGSTOP)
        try:
            yield
        finally:
            self._signal(names, signal.SIGCONT)

    def _signal(self, names: Sequence[str], number: signal.Signals) -> None:
        for pid in self.processes(*names):
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def enter_network(self) -> None:
        """Sockets that this thread opens from now on are this host's. There is no way back."""
        with self._namespace("net").open() as namespace:
            if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")

    def _namespace(self, kind: str) -> Path:
        return Path(f"/proc/{self.first}/ns/{kind}")

    def _pid_inside(self) -> str:
        """The host's first process as the network's own processes see it."""
        status = Path(f"/proc/{self.first}/status").read_text()
        (line,) = (line for line in status.splitlines() if line.startswith("NSpid:"))
        return line.split()[-1]


class Network:
    """The private namespaces, with a bridge to which hosts are connected."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ready = folder / "network-ready"
        script = FIRST_PROCESS.format(address=WEB_HOST, ready=ready)
        self._started = [
            Process(
                "network",
                [*UNSHARE, "--kill-child=KILL", "sh", "-c", script],
                stop_signal=signal.SIGKILL,  # `unshare` ignores SIGTERM
            )
        ]
        wait_until(ready.exists, "the network exists")
        self.first = _child(self._started[0].pid)

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str] | None = None,
        keep_open: Sequence[int] = (),
        inside: Host | None = None,
    ) -> Process:
        """Starts a process on a host, or on the bridge. From the main thread only."""
        with (self.folder / f"{name}.log").open("ab") as output:
            process = Process(
                name,
                [*PRIORITY, *_enter((inside or self).first), *command],
                environment={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **(environment or {})},
                output=output,
                stop_signal=signal.SIGKILL,
                keep_open=keep_open,
            )
        self._started.append(process)
        return process

    def run(self, *command: str | Path) -> str:
        """Runs a command on the bridge; returns what it printed. Raises CalledProcessError."""
        return _run([*_enter(self.first), *command])

    def stop(self) -> None:
        """Ends every process of the network, and with the last one its namespaces."""
        for process in self._started:
            process.stop()


@contextmanager
def private_network(folder: Path) -> Iterator[Network]:
    network = Network(folder)
    try:
        yield network
    finally:
        network.stop()


def _enter(first: int) -> list[str]:
    """A command prefix that enters the namespaces of this process."""
    return ["nsenter", f"--target={first}", "--net", "--pid", "--mount", "--uts"]


def _as_user(user: str) -> list[str]:
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]


def _run(command: Sequence[str | Path]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _child(parent: int) -> int:
    """The only child of a process."""
    (child,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(child)
