"""Three database hosts and HAProxy, with the files of `deploy/failover/`, on hosts of their own.

Each host has its own address and folders, so the files are used as they are shipped. Only the
passwords, the listening socket of HAProxy, and the name and address of each host differ.
"""

import json
import os
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from django.core.management import call_command

from embedded.environment import FOR_TESTED_SERVICE, PROJECT, SERVICE
from labs.installation.network import Host, Network, private_network
from tests.database import django_uses
from tests.live import HOST
from tests.proxies.running import make_certificate
from tests.tasks.running import wait_until

FILES = PROJECT / "deploy/failover"
PATRONI_CONFIG = "/etc/patroni/config.yml"


class Node:
    """A database host: etcd, Patroni, and the PostgreSQL that Patroni runs."""

    def __init__(self, network: Network, number: int, folder: Path, password: str) -> None:
        self.name, self.address = f"db{number}", f"10.0.0.{number}"
        self._folder = folder / self.name
        self._password = password
        for part in ("patroni", "postgresql", "etcd", "run/postgresql"):
            (self._folder / part).mkdir(parents=True)
        self._settle()
        self.host = Host(
            network,
            self.name,
            self.address,
            {
                "/etc/patroni": self._folder / "patroni",
                "/var/lib/postgresql": self._folder / "postgresql",
                "/var/lib/etcd": self._folder / "etcd",
                "/run": self._folder / "run",
            },
        )
        for line in (FILES / "neighbours.conf").read_text().splitlines():
            if line and not line.startswith("#"):
                self.host.run("sysctl", "--quiet", "--write", line.replace(".default.", ".eth0."))

    def _settle(self) -> None:
        """Copies the shipped files to where the guide says."""
        etc = self._folder / "patroni"
        shutil.copy(FILES / "patroni.yml", etc / "config.yml")
        # One certificate for all hosts, which signs itself.
        certificate = {"key.pem": "server.key", "certificate.pem": "server.crt"}
        for source, copy in [*certificate.items(), ("certificate.pem", "ca.crt")]:
            shutil.copy(self._folder.parent / source, etc / copy)
        (etc / "server.key").chmod(0o600)
        for owned in (etc, etc / "server.key", self._folder / "postgresql"):
            shutil.chown(owned, "postgres", "postgres")
        shutil.chown(self._folder / "run/postgresql", "postgres", "postgres")
        shutil.chown(self._folder / "etcd", "etcd", "etcd")

    def start_etcd(self) -> None:
        self.host.start("etcd", ["etcd"], user="etcd", environment=self._environment("etcd.env"))

    def start_patroni(self) -> None:
        """Starts Patroni, as systemd does; it starts PostgreSQL."""
        self.host.start(
            "patroni",
            ["patroni", PATRONI_CONFIG],
            user="postgres",
            environment=self._environment("patroni.env"),
        )

    def kill_database(self) -> None:
        """kill -9 of Patroni and of PostgreSQL, at once."""
        self.host.kill("patroni", "postgres")

    def patronictl(self, *arguments: str) -> str:
        environment = [f"{k}={v}" for k, v in self._environment("patroni.env").items()]
        return self.host.run(
            "env", *environment, "patronictl", "-c", PATRONI_CONFIG, *arguments, user="postgres"
        )

    def query(self, statement: str, database: str = "postgres") -> str | None:
        """The result of a query, asked on the host itself, even while it is cut off. None if
        PostgreSQL does not answer."""
        try:
            return self.host.run(
                "psql", "-XAtq", f"--dbname={database}", f"--command={statement}", user="postgres"
            ).strip()
        except subprocess.CalledProcessError:
            return None

    @property
    def is_primary(self) -> bool:
        return self.query("SELECT pg_is_in_recovery()") == "f"

    @property
    def streaming(self) -> dict[str, str]:
        """The standbys that receive from this host, and whether they are `sync` or `async`."""
        rows = self.query(
            "SELECT json_object_agg(application_name, sync_state) FROM pg_stat_replication"
            " WHERE state = 'streaming'"
        )
        return json.loads(rows or "null") or {}

    def _environment(self, file: str) -> dict[str, str]:
        """The variables of a shipped file, with this host's name and address, and the passwords."""
        lines = (FILES / file).read_text().splitlines()
        values = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
        assert any("db1" in value for value in values.values())
        everybodys = {"ETCD_INITIAL_CLUSTER"}
        return {
            name: value
            if name in everybodys
            else value.replace("db1", self.name)
            .replace("10.0.0.1:", f"{self.address}:")
            .replace("change-me", self._password)
            for name, value in values.items()
        }


class Cluster:
    """The nodes, and HAProxy in front of them."""

    def __init__(self, network: Network, folder: Path) -> None:
        self.network = network
        self._folder = folder
        make_certificate(folder)
        secret = secrets.token_hex(8)
        self.password = secrets.token_hex(8)
        self.nodes = [Node(network, number, folder, secret) for number in (1, 2, 3)]
        self._listener = socket.create_server((HOST, 0), backlog=128)

    @property
    def url(self) -> str:
        """HAProxy's address, for the test itself, as the owner."""
        port = self._listener.getsockname()[1]
        address = (
            f"{HOST}:{port}/voucher?sslmode=verify-ca&sslrootcert={self._folder}/certificate.pem"
        )
        return f"postgresql://voucher:{self.password}@{address}"

    def start(self) -> None:
        for node in self.nodes:
            node.start_etcd()
        for node in self.nodes:
            node.start_patroni()
        self._start_haproxy()
        wait_until(self.is_complete, "three database hosts run", 120)

    def _start_haproxy(self) -> None:
        text = (FILES / "haproxy.cfg").read_text()
        shipped, ours = "bind 127.0.0.1:5432", f"bind fd@{self._listener.fileno()}"
        assert shipped in text
        file = self._folder / "haproxy.cfg"
        file.write_text(text.replace(shipped, ours))
        self._listener.set_inheritable(True)
        self.network.start(
            "haproxy", ["haproxy", "-W", "-f", file], keep_open=[self._listener.fileno()]
        )

    def stop(self) -> None:
        self._listener.close()

    @property
    def leader(self) -> Node:
        """The node whose writes a standby confirms. Raises ValueError unless there is one."""
        (leader,) = (node for node in self.nodes if "sync" in node.streaming.values())
        return leader

    def is_complete(self) -> bool:
        """Whether there is a leader with a synchronous standby and another standby."""
        followers = [node.streaming for node in self.nodes if node.is_primary]
        return len(followers) == 1 and sorted(followers[0].values()) == ["async", "sync"]


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Runs the cluster with an empty, migrated database, which Django uses inside the block."""
    with private_network(folder) as network:
        cluster = Cluster(network, folder)
        try:
            cluster.start()
            leader = cluster.leader
            leader.query(f"CREATE ROLE voucher LOGIN PASSWORD '{cluster.password}'")
            password = urlsplit(os.environ[FOR_TESTED_SERVICE]).password
            leader.query(f"CREATE ROLE {SERVICE} LOGIN PASSWORD '{password}'")
            leader.query("CREATE DATABASE voucher OWNER voucher")
            with django_uses(cluster.url):
                call_command("migrate", interactive=False, verbosity=0)
                yield cluster
        finally:
            cluster.stop()
