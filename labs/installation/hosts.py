"""The set-up of docs/operate/several-hosts.md, each host with a network address of its own.

Three database hosts (cluster.py), three queue hosts with RabbitMQ, Valkey and Sentinel, web
hosts and worker hosts, and a proxy. The files are those of `deploy/`. Only passwords, names,
certificates and listening sockets differ, and a web host runs one unit of one process.
"""

import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from embedded.commands import services
from embedded.environment import PROJECT
from embedded.processes import Process
from labs.installation.cluster import Cluster, Node, running_cluster
from labs.installation.network import WEB_HOST, Host, Network
from labs.installation.postgres import children_of
from tests.live import HOST, Answer, as_service, with_settings
from tests.programs import RABBITMQ
from tests.proxies.running import NAME
from tests.tasks.running import wait_until

FILES = PROJECT / "deploy/several-hosts"
API_PORT = 8001
IN_PROGRESS_SECONDS = 2
READ_PATIENCE = 60.0
SERVERS_OF_THE_FILE = """\
    server api-8001 127.0.0.1:8001 tcp-ut 5s
    server api-8003 127.0.0.1:8003 tcp-ut 5s
"""
LOST = (502, 503, 504, 500)  # a status that leaves the outcome unknown
RESTART = """trap 'kill -TERM $! && wait $!; exit' TERM
while :; do "$0" "$@" & wait $!; sleep 1; done"""


class Https:
    """The HTTP client of `Buyers`: each thread keeps a connection to the proxy."""

    def __init__(self, port: int, certificate: Path) -> None:
        self._port = port
        self._trust = ssl.create_default_context(cafile=str(certificate))
        self._own = threading.local()
        self._all: list[http.client.HTTPSConnection] = []

    def close(self) -> None:
        """Ends the connections of all threads, which must have finished."""
        while self._all:
            self._all.pop().close()

    def post(
        self, path: str, data: str, *, content_type: str, headers: Mapping[str, str]
    ) -> Answer:
        """Raises OSError if the outcome is unknown."""
        return self._ask("POST", path, {"Content-Type": content_type, **headers}, data.encode())

    def get(self, path: str, *, headers: Mapping[str, str]) -> Answer:
        """Asks until there is a response."""
        deadline = time.monotonic() + READ_PATIENCE
        while True:
            try:
                return self._ask("GET", path, headers)
            except (OSError, http.client.HTTPException):
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.2)

    def _ask(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> Answer:
        if not hasattr(self._own, "connection"):
            self._own.connection = http.client.HTTPSConnection(
                NAME, self._port, timeout=60, context=self._trust
            )
            self._all.append(self._own.connection)
        connection: http.client.HTTPSConnection = self._own.connection
        try:
            connection.request(method, path, body=body, headers=dict(headers))
            response = connection.getresponse()
            answer = Answer(response.status, response.headers, response.read())
        except (OSError, http.client.HTTPException):
            connection.close()
            raise
        if answer.status_code in LOST:
            raise OSError(f"status {answer.status_code}")
        return answer


class Machine:
    """A host that can be lost, as by a power cut, and started again."""

    def __init__(self, name: str, host: Host) -> None:
        self.name, self.host = name, host

    def start(self) -> None:
        raise NotImplementedError

    def is_ready(self) -> bool:
        raise NotImplementedError

    def lose(self) -> None:
        """Cuts the host off, so that nobody hears of its end, and kills everything on it."""
        self.host.disconnect()
        everything = self.host.everything()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in everything:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def come_back(self) -> None:
        self.host.connect()
        self.start()
        wait_until(self.is_ready, f"{self.name} works again", 120)


class DatabaseHost(Machine):
    """etcd, Patroni and PostgreSQL (cluster.py)."""

    def __init__(self, cluster: Cluster, node: Node) -> None:
        super().__init__(node.name, node.host)
        self._cluster, self._node = cluster, node

    def start(self) -> None:
        self._node.start_etcd()
        self._node.start_patroni()

    def is_ready(self) -> bool:
        return self._cluster.is_complete()


class QueueHost(Machine):
    """RabbitMQ, Valkey (here Debian's Redis) and Sentinel."""

    def __init__(self, cluster: Cluster, number: int, folder: Path, password: str) -> None:
        name = f"queue{number}"
        self._folder, self._password = folder / name, password
        for part in ("rabbitmq/data", "rabbitmq/log", "redis"):
            (self._folder / part).mkdir(parents=True)
        hosts = self._folder / "hosts"
        hosts.write_text(
            "127.0.0.1 localhost\n" + "".join(f"10.0.0.2{n} queue{n}\n" for n in (1, 2, 3))
        )
        super().__init__(
            name, Host(cluster.network, name, f"10.0.0.2{number}", {"/etc/hosts": hosts})
        )
        for file in ("valkey.conf", "sentinel.conf", "rabbitmq.conf"):
            text = (FILES / file).read_text().replace("change-me", password)
            if number == 1:
                text = text.replace("replicaof 10.0.0.21 6379\n", "")
            (self._folder / file).write_text(text)
        (self._folder / "rabbitmq/.erlang.cookie").write_text(password)
        (self._folder / "rabbitmq/.erlang.cookie").chmod(0o400)
        settings = (FILES / "rabbitmq-env.conf").read_text().replace("queue1", name)
        (self._folder / "rabbitmq-env.conf").write_text(settings)

    def start(self) -> None:
        folder = self._folder
        path = {"PATH": os.environ["PATH"]}
        server = shutil.which("redis-server")
        assert server
        self.host.start(
            "valkey", [server, folder / "valkey.conf", "--dir", folder / "redis"],
            user="root", environment=path,
        )  # fmt: skip
        self.host.start(
            "sentinel", [server, folder / "sentinel.conf", "--sentinel", "--dir", folder / "redis"],
            user="root", environment=path,
        )  # fmt: skip
        self.host.start("rabbitmq", [RABBITMQ], user="root", environment=self._environment())

    def is_ready(self) -> bool:
        return self.listens(5672) and self.listens(6379) and self.listens(26379)

    def listens(self, port: int) -> bool:
        try:
            self.host.run("bash", "-c", f"</dev/tcp/127.0.0.1/{port}")
        except subprocess.CalledProcessError:
            return False
        return True

    def members(self) -> int:
        """How many hosts of RabbitMQ run, as this one sees it."""
        environment = [f"{name}={value}" for name, value in self._environment().items()]
        program = RABBITMQ.with_name("rabbitmqctl")
        status = self.host.run("env", *environment, program, "cluster_status", "--formatter=json")
        return len(json.loads(status)["running_nodes"])

    def is_master(self) -> bool:
        try:
            return "role:master" in self.host.run(
                "redis-cli", "--no-auth-warning", "-a", self._password, "info", "replication"
            )
        except subprocess.CalledProcessError:
            return False

    def _environment(self) -> dict[str, str]:
        home = self._folder / "rabbitmq"
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "RABBITMQ_CONF_ENV_FILE": str(self._folder / "rabbitmq-env.conf"),
            "RABBITMQ_CONFIG_FILE": str(self._folder / "rabbitmq.conf"),
            "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
        }


class ServiceHost(Machine):
    """A host that runs processes of the service, with this environment."""

    def __init__(
        self, name: str, host: Host, folder: Path, environment: Mapping[str, str | Path]
    ) -> None:
        super().__init__(name, host)
        self._folder = folder / name
        self._folder.mkdir(exist_ok=True)
        self.purchases = self._folder / "purchases"
        self._service: list[Process] = []
        self.environment = {
            **os.environ,
            "DJANGO_HTTPS": "1",
            "DJANGO_ALLOWED_HOSTS": NAME,
            "PUBLIC_URL": f"https://{NAME}",
            "TRUSTED_PROXIES": f"{WEB_HOST}/32",
            "GRANIAN_WORKERS": "1",
            "METRICS_DIR": str(self._folder / "metrics"),
            "PURCHASE_LOG_DIR": str(self.purchases),
            **{name: str(value) for name, value in environment.items()},
        }

    def run_service(self, name: str, **environment: str) -> None:
        """Starts a process of the service by the command of `make run`. It is started again when it
        ends, as systemd does."""
        all_ = services(host="0.0.0.0", port=API_PORT, var=self._folder)
        command = next(one.command for one in all_ if one.name == name)
        restarting = ["env", f"--chdir={PROJECT}", "sh", "-c", RESTART, *map(str, command)]
        environment = {**self.environment, **environment}
        process = self.host.start(name, restarting, user="root", environment=environment)
        self._service.append(process)

    def sell(self) -> None:
        """Starts the web process."""
        changed = with_settings(
            "config.settings_api", IDEMPOTENCY_IN_PROGRESS_SECONDS=IN_PROGRESS_SECONDS
        )
        self.run_service("web", **changed)

    def sells(self) -> bool:
        """Whether the web process is ready."""
        ask = f"http://127.0.0.1:{API_PORT}/readyz"
        try:
            self.host.run("curl", "--fail", "--silent", "--header", f"Host: {NAME}", ask)
        except subprocess.CalledProcessError:
            return False
        return True

    def stop(self) -> None:
        """SIGTERM to each process of the service, as systemd sends it, and waits for their ends."""
        for process in self._service:
            for pid in self._shells(process):
                os.kill(pid, signal.SIGTERM)
        for process in self._service:
            process.wait()

    @staticmethod
    def _shells(process: Process) -> list[int]:
        """The shell below `nsenter`."""
        return children_of(process.pid)


class ClusterHost(ServiceHost):
    """A web host or a worker host: HAProxy to the engines, and processes of the service."""

    def __init__(self, cluster: Cluster, name: str, address: str, folder: Path, url: str) -> None:
        password = (folder / "password").read_text()
        inside = f"127.0.0.1:5432/voucher?sslmode=verify-ca&sslrootcert={folder}/certificate.pem"
        environment = {
            "DATABASE_URL": f"{url.rpartition('@')[0]}@{inside}",
            "REDIS_URL": f"redis://:{password}@127.0.0.1:6379/0",
            "CELERY_BROKER_URL": f"amqp://voucher:{password}@127.0.0.1:5672//",
            "CELERY_QUORUM_QUEUES": "1",
        }
        super().__init__(name, Host(cluster.network, name, address, {}), folder, environment)
        for file in (PROJECT / "deploy/failover/haproxy.cfg", FILES / "engines.cfg"):
            text = file.read_text().replace("change-me", password)
            (self._folder / file.name).write_text(text)

    def start(self) -> None:
        self._service = []
        files = [word for name in ("haproxy.cfg", "engines.cfg")
                 for word in ("-f", self._folder / name)]  # fmt: skip
        self.host.start(
            "haproxy", ["haproxy", "-W", *files], user="root",
            environment={"PATH": f"{os.environ['PATH']}:/usr/sbin"},
        )  # fmt: skip


class WebHost(ClusterHost):
    def start(self) -> None:
        super().start()
        self.sell()

    def has_sold(self) -> bool:
        """Whether the purchase log of this host has a line of a purchase."""
        files = self.purchases.glob("*.log")
        return any("order_created" in file.read_text() for file in files)

    def is_ready(self) -> bool:
        return self.sells()


class WorkerHost(ClusterHost):
    """A worker, and a scheduler: two of them queue each sweep twice, and nothing happens twice."""

    def start(self) -> None:
        super().start()
        self._log = self._folder.parent / f"{self.name}-worker.log"
        self._log_began = len(self._log.read_text()) if self._log.exists() else 0
        self.run_service("worker")
        self.run_service(
            "beat", **with_settings(CELERY_BEAT_SCHEDULE={"sweep-refunds": {"schedule": 1}})
        )

    def is_ready(self) -> bool:
        """Whether the worker has finished a task since it was started."""
        return "task_succeeded" in self._log.read_text()[self._log_began :]


class Front:
    """The proxy with the name of the service, in front of these hosts, with the shipped file."""

    def __init__(self, network: Network, folder: Path) -> None:
        self._network, self._folder = network, folder
        self._listener = socket.create_server((HOST, 0), backlog=128)
        self._listener.set_inheritable(True)
        self.http = Https(self._listener.getsockname()[1], folder / "certificate.pem")

    def start(self, hosts: Sequence[ServiceHost]) -> None:
        self._write(hosts)
        self._network.start(
            "front", ["haproxy", "-W", "-f", self._folder / "front.cfg"],
            keep_open=[self._listener.fileno()],
        )  # fmt: skip

    def serve_from(self, hosts: Sequence[ServiceHost]) -> None:
        """Changes the list of hosts, as an administrator does: edit, reload."""
        self._write(hosts)
        first = self._network.run("pgrep", "-o", "-f", "front.cfg").strip()
        self._network.run("kill", "-USR2", first)

    def _write(self, hosts: Sequence[ServiceHost]) -> None:
        text = (PROJECT / "deploy/haproxy/haproxy.cfg").read_text()
        servers = "".join(
            f"    server {each.name} {each.host.address}:{API_PORT} tcp-ut 5s\n" for each in hosts
        )
        pem = self._folder / "haproxy.pem"
        pem.write_text(
            "".join((self._folder / name).read_text() for name in ("certificate.pem", "key.pem"))
        )
        for shipped, ours in {
            SERVERS_OF_THE_FILE: servers,
            "    bind :::80 v4v6\n": f"    bind {WEB_HOST}:80\n",
            "bind :::443 v4v6": f"bind fd@{self._listener.fileno()}",
            "/etc/haproxy/voucher.pem": str(pem),
            "api.example.com": NAME,
            "    user haproxy\n    group haproxy\n": "",
        }.items():
            assert shipped in text
            text = text.replace(shipped, ours)
        (self._folder / "front.cfg").write_text(text)

    def close(self) -> None:
        self._listener.close()


class Installation:
    """All hosts, and the proxy in front of the web hosts."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster, self._folder = cluster, folder
        password = secrets.token_hex(8)
        (folder / "password").write_text(password)
        self.queues = [QueueHost(cluster, number, folder, password) for number in (1, 2, 3)]
        self.databases = [DatabaseHost(cluster, node) for node in cluster.nodes]
        self._url = as_service(cluster.url)
        self.webs = [self.make_web(number) for number in (1, 2)]
        self.workers = [self.make_worker(number) for number in (1, 2)]
        self._front = Front(cluster.network, folder)
        self.http = self._front.http

    def make_web(self, number: int) -> WebHost:
        return WebHost(self.cluster, f"web{number}", f"10.0.0.3{number}", self._folder, self._url)

    def make_worker(self, number: int) -> WorkerHost:
        name, address = f"worker{number}", f"10.0.0.4{number}"
        return WorkerHost(self.cluster, name, address, self._folder, self._url)

    def start(self) -> None:
        for queue in self.queues:
            queue.start()
        for queue in self.queues:
            wait_until(queue.is_ready, f"{queue.name} works", 120)
        wait_until(lambda: self.queues[0].members() == 3, "three hosts of RabbitMQ", 60)
        for host in (*self.webs, *self.workers):
            host.start()
        for host in (*self.webs, *self.workers):
            wait_until(host.is_ready, f"{host.name} works", 120)
        self._front.start(self.webs)

    def serve_from(self, webs: Sequence[WebHost]) -> None:
        """Changes the list of web hosts, as an administrator does: edit, reload."""
        self.webs = list(webs)
        self._front.serve_from(self.webs)

    def masters(self) -> list[QueueHost]:
        """The hosts whose Valkey is the master. After a failover, there may be two for a moment."""
        return [each for each in self.queues if each.is_master()]

    def close(self) -> None:
        self._front.close()


@contextmanager
def running_installation(folder: Path) -> Iterator[Installation]:
    with running_cluster(folder) as cluster:
        installation = Installation(cluster, folder)
        try:
            installation.start()
            yield installation
        finally:
            installation.close()
