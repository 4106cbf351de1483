"""A machine that runs systemd: Debian 12's packages, and namespaces of its own on this computer.

It shares the network of this computer, so it reaches the servers of the tests, and its ports are
ours, unless it is alone in a network of its own. Its control groups are its own: a systemd cannot
kill a service in whose group it finds processes of another machine. Requires root.
"""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from embedded.environment import PROJECT
from tests.deploy.engine import FOLDER, SUITE, locked, wheels
from tests.tasks.running import wait_until

PACKAGES = "systemd,systemd-sysv,dbus,python3,python3-venv,tzdata,curl"
BOOT_SECONDS = 180.0  # on a busy machine
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
{disable}
mkdir old
pivot_root . old
umount -l /old
mount --make-rshared /
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin /lib/systemd/systemd --show-status=0
"""
ALONE = "ip link set lo up\n"
GROUPS = "mount -t cgroup2 cgroup2 {folder}\n"
ENTER_GROUP = """set -e
mkdir {folder}/{group}
echo $$ >{folder}/{group}/cgroup.procs
umount {folder}
exec "$@"
"""
REMOVE_GROUP = "find {folder}/{group} -depth -type d -exec rmdir {{}} + 2>/dev/null"
UNSHARE = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc")
IN_GROUP = ("unshare", "--cgroup")


@dataclass(frozen=True)
class Machine:
    """A machine whose systemd has this process id here."""

    pid: int

    def run(self, *command: str, check: bool = True, input_: str = "") -> str:
        """The output of a command on the machine, as root. Fails unless it ends with 0."""
        enter = (f"--target={self.pid}", "--mount", "--pid", "--uts", "--ipc", "--cgroup", "--net")
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
def running_machine(
    folder: Path,
    shown: dict[Path, str],
    *,
    packages: str = "",
    image: str = "machine-and-engines",
    disabled: Sequence[str] = (),
    alone: bool = False,
) -> Iterator[Machine]:
    """A machine that has booted, and shows folders and files of this computer, read-only.

    `folder` is empty. `packages` are Debian's, besides PACKAGES, and `image` names their set. The
    `disabled` services do not start at boot.
    """
    with locked():
        packed = [volume.split(":")[:2] for volume in wheels()]
    shown = {**{Path(here): path for here, path in packed}, **shown}
    script = BOOT.format(
        folder=folder,
        packages=_packages(packages, image),
        mounts="\n".join(map(_mount, shown.items())),
        disable="".join(f"rm etc/systemd/system/*.wants/{each}.service\n" for each in disabled),
    )
    unshare = [*UNSHARE, "--net"] if alone else UNSHARE
    groups = {"folder": folder, "group": f"voucher-{uuid4()}"}
    enter = ("sh", "-c", (GROUPS + ENTER_GROUP).format(**groups), "sh", *IN_GROUP)
    with (folder / "boot.log").open("wb") as log:
        first = subprocess.Popen(
            [*unshare, *enter, "sh", "-c", f"{ALONE if alone else ''}{script}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        machine = Machine(_child(first.pid))
        wait_until(lambda: _has_booted(machine), "systemd", BOOT_SECONDS)
        yield machine
    finally:
        with suppress(ProcessLookupError):
            os.kill(first.pid, signal.SIGKILL)  # the kernel ends the others
        first.wait()
        remove = ["unshare", "--mount", "sh", "-c", (GROUPS + REMOVE_GROUP).format(**groups)]
        wait_until(
            lambda: not subprocess.run(remove, check=False).returncode,
            "the end of the last process",
        )


def _packages(more: str, image: str) -> Path:
    """The folder with the packages, which the first run unpacks."""
    name = image if more else "machine"
    wanted = f"{PACKAGES},{more}" if more else PACKAGES
    folder, made_of = FOLDER / name, FOLDER / f"{name}.packages"
    with locked():
        if not made_of.is_file() or made_of.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(
                ["mmdebstrap", "--quiet", "--variant=essential", f"--include={wanted}",
                 "--dpkgopt=force-unsafe-io", SUITE, str(folder)], check=True,
            )  # fmt: skip
            made_of.write_text(wanted)
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
    attempt = [*UNSHARE, *IN_GROUP, "true"]
    return subprocess.run(attempt, capture_output=True, check=False).returncode == 0


def commands(page: str, heading: str, number: int = 0) -> str:
    """The commands of a block below a heading of a page of docs/operate."""
    text = (PROJECT / "docs/operate" / page).read_text()
    part = re.split(rf"^##+ {heading}\n", text, maxsplit=1, flags=re.MULTILINE)[1]
    part = re.split(r"^## ", part, maxsplit=1, flags=re.MULTILINE)[0]
    blocks = re.findall(r"^( *)```(?:sh|ini|sql)\n(.*?)^ *```$", part, re.MULTILINE | re.DOTALL)
    indent, block = blocks[number]
    return re.sub(rf"^{indent}", "", block, flags=re.MULTILINE)


def copy_release(folder: Path) -> None:
    """Writes the files of this version into this folder, as a checkout has them."""
    folder.mkdir(parents=True)
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached"], cwd=PROJECT, capture_output=True, check=True
    ).stdout
    subprocess.run(
        f"tar --null --files-from=- --create | tar --extract --directory={folder}",
        shell=True, input=files, cwd=PROJECT, check=True,
    )  # fmt: skip


def from_copies(commands: str) -> str:
    """The commands, with the files of a release from /src instead of a repository."""
    copy = "mkdir -p /opt/voucher/releases && cp -r /src/$VERSION /opt/voucher/releases/"
    commands = re.sub(r"^REPOSITORY=.*\n", "", commands, flags=re.MULTILINE)
    return re.sub(r"^git clone .*$", copy, commands, flags=re.MULTILINE)


@contextmanager
def timed(step: str) -> Iterator[None]:
    """Prints how long the commands of the page took."""
    began = time.monotonic()
    yield
    print(f"{step}: {time.monotonic() - began:.0f} s", flush=True)  # noqa: T201
