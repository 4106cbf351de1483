"""A machine that runs systemd: Debian 12's packages, and namespaces of its own on this computer.

It shares the network of this computer, so it reaches the servers of the tests, and its ports are
ours. Requires root.
"""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.engine import FOLDER, SUITE, locked
from tests.tasks.running import wait_until

PACKAGES = "systemd,systemd-sysv,dbus,python3,python3-venv,tzdata,curl"
BOOT_SECONDS = 60.0
# Writes go to `changes`: the packages are unpacked once. Of /dev, only what services need.
BOOT = """set -e
mount --make-rprivate /
mount -t tmpfs tmpfs {folder}
mkdir {folder}/changes {folder}/work {folder}/root
mount -t overlay -o lowerdir={packages},upperdir={folder}/changes,workdir={folder}/work \
  overlay {folder}/root
cd {folder}/root
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do
  touch dev/$name
  mount --bind /dev/$name dev/$name
done
mkdir dev/shm dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
{mounts}
mkdir old
pivot_root . old
umount -l /old
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=0
"""
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc", "--cgroup")


@dataclass(frozen=True)
class Machine:
    """A machine whose systemd has this process id here."""

    pid: int

    def run(self, *command: str, check: bool = True, input_: str = "") -> str:
        """The output of a command on the machine, as root. Fails unless it ends with 0."""
        enter = (f"--target={self.pid}", "--mount", "--pid", "--uts", "--ipc", "--cgroup")
        done = subprocess.run(
            ["nsenter", *enter, "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", *command],
            input=input_,
            capture_output=True,
            text=True,
            check=False,
        )
        assert not check or done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def shell(self, script: str, *, check: bool = True) -> str:
        """The output of lines of a page, in one shell that stops at the first failure."""
        return self.run("sh", "-euc", script, check=check)

    def write(self, path: str, text: str, mode: int = 0o600) -> None:
        self.run("install", "-D", f"--mode={mode:o}", "/dev/stdin", path, input_=text)


@contextmanager
def running_machine(folder: Path, shown: dict[Path, str]) -> Iterator[Machine]:
    """A machine that has booted, and shows folders and files of this computer, read-only.

    `folder` is empty.
    """
    script = BOOT.format(
        folder=folder, packages=_packages(), mounts="\n".join(map(_mount, shown.items()))
    )
    with (folder / "boot.log").open("wb") as log:
        first = subprocess.Popen(
            [*UNSHARE, "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        machine = Machine(_child(first.pid))
        wait_until(lambda: _has_booted(machine), "systemd", BOOT_SECONDS)
        yield machine
    finally:
        with suppress(ProcessLookupError):
            os.kill(first.pid, signal.SIGKILL)  # the kernel ends the others
        first.wait()


def _packages() -> Path:
    """The folder with the packages, which the first run unpacks."""
    folder, made_of = FOLDER / "machine", FOLDER / "machine.packages"
    with locked():
        if not made_of.is_file() or made_of.read_text() != PACKAGES:
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(
                ["mmdebstrap", "--quiet", "--variant=essential", f"--include={PACKAGES}",
                 "--dpkgopt=force-unsafe-io", SUITE, str(folder)], check=True,
            )  # fmt: skip
            made_of.write_text(PACKAGES)
    return folder


def _mount(shown: tuple[Path, str]) -> str:
    source, path = shown
    make = (
        f"mkdir -p .{path}" if source.is_dir() else f"mkdir -p .{Path(path).parent}; touch .{path}"
    )
    return f"{make}; mount --bind -o ro {source} .{path}"


def _child(pid: int) -> int:
    """The process that `unshare` started, which becomes systemd."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found: list[str] = []

    def has_child() -> bool:
        found[:] = children.read_text().split()
        return bool(found)

    wait_until(has_child, "the first process of the machine")
    return int(found[0])


def _has_booted(machine: Machine) -> bool:
    states: Sequence[str] = ("running", "degraded")
    return machine.run("systemctl", "is-system-running", check=False).strip() in states


def can_boot() -> bool:
    """Whether this process may create the namespaces."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("unshare", "nsenter", "mmdebstrap"))):
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True, check=False).returncode == 0
