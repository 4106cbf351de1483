"""Two sites in a network of their own, set up and moved by the commands of docs/operate.

Each site has folders of its own in place of /etc, /run and PostgreSQL's. `systemctl` is a script
that starts and stops PostgreSQL; the site starts its web process itself, if `may-sell` allows it.
Between the databases is a link that delays all data. Both have the folder of the repository.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.core.management import call_command

from embedded.environment import FOR_TESTED_SERVICE, PROJECT, SERVICE
from labs.installation.hosts import Front, Machine, ServiceHost
from labs.installation.machine import commands
from labs.installation.network import WEB_HOST, Host, Network, private_network
from labs.recovery.pages import BACKUPS
from labs.recovery.test_ship_purchase_log import Shipping
from tests.database import django_uses
from tests.live import HOST
from tests.proxies.running import make_certificate
from tests.tasks.running import wait_until

PAGE = "second-site.md"
SERVICE_PASSWORD = urlsplit(os.environ[FOR_TESTED_SERVICE]).password
DELAY = 0.05  # seconds that the link needs in each direction
ADDRESSES = {"site1": "10.0.0.1", "site2": "10.0.0.2"}
SEEN_AS = {"site1": "10.0.0.8", "site2": "10.0.0.9"}  # by the other site, beyond the link
SYSTEMCTL = """#!/bin/sh
case "$*" in *postgresql@15-main) ;; *) exit 0;; esac
pg_ctlcluster --skip-systemctl-redirect 15 main "$1" -m fast || [ "$1 $?" = "stop 2" ]
"""
RELAY = """
import asyncio, sys
delay, sites = float(sys.argv[1]), [each.split(",") for each in sys.argv[2:]]
async def pass_on(reader, writer):
    later = asyncio.get_running_loop().call_later
    while data := await reader.read(65536):
        later(delay, writer.write, data)
    later(delay, writer.close)
async def listen(seen_as, address, other):
    async def connect(reader, writer):
        from_site, to_site = await asyncio.open_connection(address, 5432, local_addr=(other, 0))
        await asyncio.gather(pass_on(reader, to_site), pass_on(from_site, writer))
    await asyncio.start_server(connect, seen_as, 5432)
async def main():
    for site in sites:
        await listen(*site)
    await asyncio.Event().wait()
asyncio.run(main())
"""


class Link(Machine):
    """Leads each site to the database of the other one, later by DELAY."""

    def __init__(self, network: Network) -> None:
        here, there = SEEN_AS.values()
        super().__init__("link", Host(network, "link", here, {}))
        self.host.run("ip", "address", "add", f"{there}/24", "dev", "eth0")

    def start(self) -> None:
        (one, two), addresses = SEEN_AS.values(), ADDRESSES.values()
        ends = [",".join(each) for each in zip((one, two), addresses, (two, one), strict=True)]
        relay = [sys.executable, "-c", RELAY, str(DELAY), *ends]
        self.host.start("relay", relay, user="root", environment={})

    def is_ready(self) -> bool:
        return self.host.run("ss", "-ltn").count(":5432 ") == len(ADDRESSES)


class Site(ServiceHost):
    """PostgreSQL, the web process, and a shell for the commands of the pages."""

    def __init__(self, network: Network, name: str, folder: Path) -> None:
        own = folder / name
        self._url = f"postgresql://{SERVICE}:{SERVICE_PASSWORD}@127.0.0.1:5432/voucher"
        shared = {"/var/lib/pgbackrest": folder / "repository"}
        folders = {
            "/run": own / "run", "/srv": own / "srv",
            "/var/lib/postgresql": own / "postgresql", "/var/log/postgresql": own / "log",
        }  # fmt: skip
        for each in (*folders.values(), *shared.values(), own / "bin"):
            each.mkdir(parents=True, exist_ok=True)
        for each in (own / "postgresql", own / "log", *shared.values()):
            shutil.chown(each, "postgres", "postgres")
        subprocess.run(["cp", "-a", "/etc", own / "etc"], check=True)
        shutil.rmtree(own / "etc/postgresql/15", ignore_errors=True)
        with (own / "etc/group").open("a") as groups:
            groups.write("voucher:x:9999:\n")
        (own / "bin/systemctl").write_text(SYSTEMCTL)
        (own / "bin/systemctl").chmod(0o755)
        host = Host(network, name, ADDRESSES[name], {**folders, **shared, "/etc": own / "etc"})
        super().__init__(name, host, folder, {"DATABASE_URL": self._url})
        (other,) = (seen for site, seen in SEEN_AS.items() if site != name)
        self._shell = (
            f"PATH={own}/bin:$PATH; OTHER={other}; cd {PROJECT}\n"
            f'manage() {{ DATABASE_URL={self._url} {sys.executable} manage.py "$@"; }}\n'
        )

    def run(self, script: str) -> str:
        """The output of lines of a page."""
        for shipped, ours in {
            "/opt/voucher/current": str(PROJECT),
            "/var/lib/voucher/purchases": str(self.purchases),
        }.items():
            script = script.replace(shipped, ours)
        script = "\n".join(line for line in script.splitlines() if not line.startswith("apt-get"))
        try:
            return self.host.run("bash", "-euc", f"exec 2>&1\n{self._shell}{script}")
        except subprocess.CalledProcessError as error:
            raise RuntimeError(error.stdout) from error

    def page(self, heading: str, number: int, page: str = PAGE) -> str:
        return self.run(commands(page, heading, number))

    def query(self, statement: str, database: str = "voucher") -> str:
        psql = ("psql", "-XAtq", f"--dbname={database}", f"--command={statement}")
        return self.host.run("sh", "-c", 'cd / && exec "$@"', "sh", *psql, user="postgres").strip()

    def create(self, password: str) -> None:
        """PostgreSQL with an empty cluster, and the secrets of the service."""
        self._shell += f"PASSWORD={password}\n"
        rights = f"host all all {WEB_HOST}/32 scram-sha-256"
        self.run(
            "pg_createcluster --start-conf=manual 15 main >/dev/null\n"
            f"echo '{rights}' >>/etc/postgresql/15/main/pg_hba.conf\n"
            "install -d -m 700 /etc/voucher"
        )
        self.page("Set up", 0)

    def may_sell(self) -> bool:
        """Asks as systemd does before it starts a unit that sells."""
        return self.run("timeout 90 deploy/second-site/may-sell && echo yes || echo no").endswith(
            "yes\n"
        )

    def sell(self) -> None:
        assert self.may_sell()
        super().sell()
        wait_until(self.sells, f"{self.name} sells", 120)

    def start_copies_of_the_log(self, kept: Path) -> None:
        """ship-purchases.timer."""
        loop = 'while :; do "$@"; sleep 10; done'
        self._shipping = Shipping(self._folder, kept)
        command = ["sh", "-c", loop, "sh", *self._shipping.command]
        self.host.start("ship", command, user="root", environment={})

    def copy_log(self) -> None:
        """systemctl start ship-purchases."""
        assert self._shipping.start().wait() == 0

    def follow(self) -> None:
        """Becomes the standby of the other site."""
        self.page("Set up", 4)
        wait_until(lambda: self.page("Set up", 5) == "streaming\n", f"{self.name} follows", 180)

    def boot(self) -> None:
        """The power is back: PostgreSQL starts, and what should sell asks whether it may."""
        (self._folder / "run/voucher-may-sell").unlink(missing_ok=True)
        self.host.connect()
        self.run("systemctl start postgresql@15-main")


class Sites:
    def __init__(self, network: Network, folder: Path) -> None:
        make_certificate(folder)
        self._folder, self._network = folder, network
        self.password = secrets.token_hex(8)
        self.one, self.two = (Site(network, name, folder) for name in ADDRESSES)
        self.link = Link(network)
        self.front = Front(network, folder)
        self.kept = folder / "site2/srv/purchases/web1"  # copies of the purchase log
        self._listeners = {each: socket.create_server((HOST, 0)) for each in (self.one, self.two)}

    def url(self, site: Site) -> str:
        """The database of a site, for the test itself, as the owner."""
        port = self._listeners[site].getsockname()[1]
        return f"postgresql://voucher:{self.password}@{HOST}:{port}/voucher"

    def set_up(self) -> None:
        one, two = self.one, self.two
        self._lead_the_test_there()
        self.link.start()
        for site in (one, two):
            site.create(self.password)
        for site, other in ((one, two), (two, one)):
            certificate = other.run("cat /etc/postgresql/15/main/server.crt")
            site.run(f"cat >/etc/postgresql/15/main/other-site.crt <<'END'\n{certificate}END")
            site.page("Set up", 2)
        settings, _, _ = commands("backup.md", BACKUPS, 2).partition("systemctl")
        for site in (one, two):
            site.run(settings)
        self._back_up(one)
        one.page("Set up", 3)
        for role, password in (("voucher", self.password), (SERVICE, SERVICE_PASSWORD)):
            one.query(f"CREATE ROLE {role} LOGIN PASSWORD '{password}'", "postgres")
        one.query("CREATE DATABASE voucher OWNER voucher TEMPLATE template0", "postgres")
        configuration = one.run("cat /etc/pgbackrest.conf")
        two.run(f"cat >/etc/pgbackrest.conf <<'END'\n{configuration}END")
        two.follow()
        assert one.page("Set up", 6).endswith("yes\n")

    def start(self) -> None:
        """The first site sells."""
        self.one.sell()
        self.one.start_copies_of_the_log(self.kept)
        self.front.start([self.one])

    def _back_up(self, site: Site) -> None:
        first, check = (commands("backup.md", BACKUPS, number) for number in (0, 3))
        site.run(first)
        # The hosts share /tmp here.
        site.run("sed -i '/^.global/a lock-path=/run/postgresql' /etc/pgbackrest.conf")
        site.run("systemctl start postgresql@15-main")
        site.run(check.replace("systemctl start database-backup@full", BACKUP))

    def _lead_the_test_there(self) -> None:
        """HAProxy on the bridge, from the sockets of the test to the databases."""
        text = (
            "defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n"
        )
        for site, listener in self._listeners.items():
            listener.set_inheritable(True)
            text += f"listen {site.name}\n  bind fd@{listener.fileno()}\n"
            text += f"  server {site.name} {site.host.address}:5432\n"
        (self._folder / "databases.cfg").write_text(text)
        self._network.start(
            "databases", ["haproxy", "-W", "-f", self._folder / "databases.cfg"],
            keep_open=[each.fileno() for each in self._listeners.values()],
        )  # fmt: skip

    def lose_the_first(self) -> None:
        """Everything there is gone at once, with what is on its way."""
        self.link.lose()
        self.one.lose()

    def close(self) -> None:
        self.front.http.close()
        self.front.close()
        for each in self._listeners.values():
            each.close()


BACKUP = "runuser -u postgres -- pgbackrest --stanza=voucher --type=full backup"


def results_of(output: str) -> list[Any]:
    """The JSON objects that commands of `manage.py` printed as their results."""
    found = []
    for line in output.splitlines():
        with suppress(ValueError):
            found.append(json.loads(line))
    return [each for each in found if isinstance(each, dict) and "logger" not in each]


@contextmanager
def running_sites(folder: Path) -> Iterator[Sites]:
    """The first site sells and the second one follows. Django uses the database of the first."""
    with private_network(folder) as network:
        sites = Sites(network, folder)
        try:
            sites.set_up()
            with django_uses(sites.url(sites.one)):
                call_command("migrate", interactive=False, verbosity=0)
                sites.start()
                yield sites
        finally:
            sites.close()
