"""The copy of the purchase log on another host gets every line, although each run may be
killed, and its unit may do nothing else."""

import random
import re
import shlex
import shutil
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from labs.installation.machine import Machine, can_boot, commands, running_machine
from labs.recovery.pages import COPY, packages
from tests.tasks.running import wait_until

pytestmark = pytest.mark.skipif(not shutil.which("rrsync"), reason="needs rsync")

UNIT = PROJECT / "deploy/purchase-log/ship-purchases.service"
KILLED_RUNS = 25
# `ssh` of the test: the other host is this one, and its key allows one command.
SSH = """#!/bin/sh
test "$1 $2 $3" = "-l purchases logs.example.com" || exit 1
shift 3
SSH_ORIGINAL_COMMAND="$*" exec rrsync -wo -no-del {kept}
"""


class Shipping:
    """The unit's command, with the folder of the log and the other host in a folder of the test."""

    def __init__(self, folder: Path, kept: Path | None = None) -> None:
        self.purchases, self.kept = folder / "purchases", kept or folder / "kept"
        for each in (self.purchases, self.kept):
            each.mkdir(parents=True, exist_ok=True)
        shell = folder / "ssh"
        shell.write_text(SSH.format(kept=self.kept))
        shell.chmod(0o755)
        line = UNIT.read_text().replace("\\\n", "").partition("ExecStart=")[2].splitlines()[0]
        self.command = [
            f"--rsh={shell}"
            if word.startswith("--rsh=")
            else word.replace("/var/lib/voucher/purchases", str(self.purchases))
            for word in shlex.split(line)
        ]

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command, stdin=subprocess.DEVNULL)

    def write(self, over: threading.Event) -> None:
        """Writes lines until the event, and begins a new day now and then."""
        number = 0
        while not over.is_set():
            day = f"purchases-2026-11-{1 + number // 4000:02}.log"
            with (self.purchases / day).open("a") as file:
                for _ in range(20):
                    number += 1
                    file.write(f"{number} {'x' * random.randrange(4000)}\n")
            time.sleep(0.002)

    def copies(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.kept.iterdir()}


@pytest.fixture
def shipping(tmp_path: Path) -> Shipping:
    return Shipping(tmp_path)


def test_the_copy_has_every_line(shipping: Shipping) -> None:
    over = threading.Event()
    killed = 0
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(shipping.write, over)
        while killed < KILLED_RUNS:
            run = shipping.start()
            time.sleep(random.random() * 0.3)
            killed += run.poll() is None
            run.kill()
            run.wait()
        over.set()
    writing.result()

    # The other end of the run that was killed last may still hold its lock: the timer tries again.
    wait_until(lambda: shipping.start().wait() == 0, "a run that ends")

    written = {path.name: path.read_bytes() for path in shipping.purchases.iterdir()}
    assert len(written) > 1
    assert shipping.copies() == written


def test_the_copy_outlives_the_file(shipping: Shipping) -> None:
    file = shipping.purchases / "purchases-2026-11-01.log"
    file.write_text("{}\n")
    assert shipping.start().wait() == 0
    file.unlink()

    assert shipping.start().wait() == 0

    assert shipping.copies() == {file.name: b"{}\n"}


LOG, KEPT = "/var/lib/voucher/purchases", "/srv/purchases/web1"
VOLUME = "/var/lib/containers/purchases"


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    """A machine that is both hosts of the page."""
    shown = {PROJECT / "deploy": "/opt/voucher/current/deploy"}
    with running_machine(tmp_path, shown, packages=packages(), alone=True) as machine:
        yield machine


@pytest.mark.skipif(not can_boot(), reason="needs root, mmdebstrap and namespaces")
def test_the_unit_copies_what_the_page_says(machine: Machine) -> None:
    machine.shell(
        "useradd --system voucher; echo 127.0.0.1 logs.example.com >>/etc/hosts\n"
        f"install -d -o voucher -m 750 {LOG}; install -d -m 700 /etc/voucher/secrets"
    )
    making_a_key, keeping, sending = (commands("backup.md", COPY, number) for number in range(3))
    key = machine.shell(without_packages(making_a_key)).strip()
    machine.shell(re.sub(r"^KEY=.*$", f"KEY='{key}'", without_packages(keeping), flags=re.M))
    machine.shell(sending)
    program = machine.run("head", "--lines=1", "/usr/bin/rrsync").split("/")[-1].split()[-1]
    assert f" {program} " in keeping, "the page installs what rrsync needs"

    machine.shell(f"runuser -u voucher -- sh -c 'echo one >{LOG}/1.log'")
    wait_until(lambda: copy(machine, "1.log") == "one\n", "the copy")

    # Where containers run, the log belongs to a user of theirs, and the unit runs as root.
    machine.shell(
        f"install -d -o 10001 -m 700 {VOLUME}; echo two >{VOLUME}/2.log\n"
        f"chown 10001 {VOLUME}/2.log; chmod 600 {VOLUME}/2.log\n"
        f"sed -i '/^User=voucher/d; s|{LOG}|{VOLUME}|' /etc/systemd/system/ship-purchases.service\n"
        "systemctl daemon-reload; systemctl start ship-purchases"
    )
    # A run of the old unit may be under way. Then `start` waits only for that run.
    wait_until(lambda: copy(machine, "2.log") == "two\n", "the copy of the container's log")


def without_packages(script: str) -> str:
    return re.sub(r"^apt-get .*$", "", script, flags=re.M)


def copy(machine: Machine, name: str) -> str:
    return machine.run("cat", f"{KEPT}/{name}", check=False)
