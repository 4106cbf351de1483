"""An upgrade of a host with systemd, and the way back, while merchants buy through a proxy.

The commands are those of docs/operate/install-systemd.md.
"""

import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPMessage
from pathlib import Path

import pytest

from embedded.environment import PROJECT
from labs.installation.buyers import PAUSE, Buyers, assert_no_purchase_failed_or_doubled
from labs.installation.machine import (
    Machine,
    can_boot,
    commands,
    copy_release,
    from_copies,
    running_machine,
    timed,
)
from labs.upgrade.test_upgrade import stock
from labs.upgrade.versions import Version, empty_database
from tests.concurrency.books import assert_books_balance
from tests.concurrency.racing import age_records
from tests.database import django_uses
from tests.live import Answer, as_service
from tests.old_version import extract, install
from tests.proxies.running import CALLER, NAME, PROXIES, Proxy, running_proxy
from tests.tasks.running import running_broker, wait_until

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.history,
    pytest.mark.nginx,
    pytest.mark.skipif(not can_boot(), reason="needs root, mmdebstrap and namespaces"),
]

OLD, NEW = "1.2.0", "1.3.0"
COMMANDS = "commands"  # the old release, with packages for this computer
API, PAGES = (8001, 8003), (8002, 8004)
SERVICE_HOST = "api.example.com"
GO_BACK = f"/opt/voucher/releases/{OLD}/deploy/systemd/switch"
SECONDS = 3.0  # of load after each change
PATIENCE = 35  # seconds that the proxies wait for a response, as shipped
CODES = 20_000  # on each shelf: `prepare` takes minutes on a busy machine
RARELY = 1.0  # seconds between two purchases of a buyer during `prepare`, which changes nothing
# Seconds, with all tries. `make upgrade-test` runs alone; the suite shares the machine.
LONGEST_PURCHASE = 3.0 if "UPGRADE_SECONDS" in os.environ else 8.0
MOST_TRIES = 2
IN_PROGRESS_SECONDS = 300.0
LOST = ("502", "503", "504")


class Http2:
    """The HTTP client of `Buyers`: curl, over HTTP/2 and TLS."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    def post(
        self, path: str, data: str, *, content_type: str, headers: Mapping[str, str]
    ) -> Answer:
        """Raises OSError if the proxy reaches no process: nobody knows what happened."""
        sent = {"Content-Type": content_type, **headers}
        return self._ask(path, sent, "--data-binary", "@-", body=data)

    def get(self, path: str, *, headers: Mapping[str, str]) -> Answer:
        """Raises OSError like `post`."""
        return self._ask(path, headers)

    def _ask(self, path: str, headers: Mapping[str, str], *words: str, body: str = "") -> Answer:
        options = {
            "--max-time": "30",
            "--interface": CALLER,
            "--cacert": f"{self._proxy.folder}/certificate.pem",
            "--write-out": "\\n%{http_version} %{http_code} %header{idempotent-replay}",
        }
        command = [*words, *(word for option in options.items() for word in option)]
        for name, value in headers.items():
            command += ["--header", f"{name}: {value}"]
        done = subprocess.run(
            ["curl", "--silent", "--http2", *command, f"https://{NAME}:{self._proxy.port}{path}"],
            input=body,
            capture_output=True,
            text=True,
            check=False,
        )
        received, _, last = done.stdout.rpartition("\n")
        version, status, *replayed = last.split()
        if done.returncode or status in LOST:
            raise OSError(f"curl {done.returncode}, status {status}")
        assert version == "2"
        message = HTTPMessage()
        if replayed:
            message["Idempotent-Replay"] = replayed[0]
        return Answer(int(status), message, received.encode())


class Shop:
    """The service behind a proxy."""

    def __init__(self, proxy: Proxy) -> None:
        self.http = Http2(proxy)


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files of both releases, and of the old one to run commands here."""
    folder = tmp_path_factory.mktemp("releases")
    for name in (COMMANDS, OLD):
        (folder / name).mkdir()
    install(folder / COMMANDS)
    extract(folder / OLD)
    copy_release(folder / NEW)
    return {name: folder / name for name in (COMMANDS, OLD, NEW)}


@pytest.fixture
def proxy_folders(tmp_path: Path) -> dict[str, Path]:
    folders = {name: tmp_path / name for name in PROXIES}
    for folder in folders.values():
        folder.mkdir()
    return folders


@pytest.fixture
def machine(
    tmp_path: Path, releases: dict[str, Path], proxy_folders: dict[str, Path]
) -> Iterator[Machine]:
    """A machine with the files of both releases, and neither installed."""
    shown = {releases[version]: f"/src/{version}" for version in (OLD, NEW)}
    shown |= {folder: f"/{name}" for name, folder in proxy_folders.items()}
    folder = tmp_path / "machine"
    folder.mkdir()
    with running_machine(folder, shown) as machine:
        yield machine
        journal = ("journalctl", "--no-pager", "--unit=voucher-*", "--lines=100")
        print(machine.run(*journal, check=False))  # noqa: T201


def steps(heading: str, number: int = 0) -> str:
    """The commands of a block of the page."""
    found = from_copies(commands("install-systemd.md", heading, number))
    return found.replace(SERVICE_HOST, NAME)


def release(heading: str, version: str) -> str:
    """The commands of the first block, for this version."""
    return re.sub(r"^VERSION=.*$", f"VERSION={version}", steps(heading), flags=re.MULTILINE)


def set_up(machine: Machine, url: str, broker: str) -> None:
    """Installs the old release as a newcomer does, up to the first code."""
    machine.shell(release("Steps", OLD))
    machine.run("sed", "-i", f"s/{SERVICE_HOST}/{NAME}/", "/etc/voucher/voucher.env")
    machine.shell(steps("Steps", 1))
    secrets = {
        "database_url": as_service(url),
        "migration_database_url": url,
        "redis_url": broker,
        "email_url": "smtp://127.0.0.1:9",
    }
    for name, value in secrets.items():
        machine.write(f"/etc/voucher/secrets/{name}", value)
    machine.shell(f"VERSION={OLD}\n{steps('Steps', 2)}")


def buy_a_first_code(machine: Machine, proxy: Proxy) -> str:
    """The response to the last command of the page."""
    manage = steps("Run a command").replace("manage createsuperuser", "#")
    buy = steps("Buy a first code").replace(f"https://{NAME}", f"https://{NAME}:{proxy.port}")
    trust = f"export CURL_CA_BUNDLE=/{proxy.name}/certificate.pem\n"
    return machine.shell(trust + manage + steps("Run a command", 1) + buy).splitlines()[-1]


def environment_of(machine: Machine, url: str, broker: str) -> dict[str, str]:
    """For commands of this checkout, with the keys of the machine."""
    keys = ("DJANGO_SECRET_KEY", "CODE_ENCRYPTION_KEYS")
    secrets = {
        key: machine.run("cat", f"/etc/voucher/secrets/{key.lower()}").strip() for key in keys
    }
    return {"DATABASE_URL": as_service(url), "REDIS_URL": broker, **secrets}


def versions_that_run(machine: Machine) -> set[str]:
    """The versions of all processes of the service, from their working directories."""
    found = machine.shell(
        "for process in /proc/[0-9]*; do\n"
        '  [ "$(stat --format=%U $process)" != voucher ] || readlink "$process/cwd"\n'
        "done"
    )
    return {Path(line).name for line in found.splitlines()}


def test_merchants_buy_while_a_host_is_upgraded_and_goes_back(
    machine: Machine,
    releases: dict[str, Path],
    proxy_folders: dict[str, Path],
    tmp_path: Path,
    worker_id: str,
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(empty_database(f"systemd_{worker_id}"))
        broker = stack.enter_context(running_broker())
        stack.enter_context(django_uses(url))
        with timed("install, up to a service that is ready"):
            set_up(machine, url, broker.url)
        proxies = [
            stack.enter_context(
                running_proxy(name, api=API, pages=PAGES, folder=folder, patience=PATIENCE)
            )
            for name, folder in proxy_folders.items()
        ]
        with timed("buy a first code"):
            first = json.loads(buy_a_first_code(machine, proxies[0]))["data"]
        assert first["codes"]
        environment = environment_of(machine, url, broker.url)
        old = Version("old", releases[COMMANDS], environment, tmp_path)
        keys = stock(old, tmp_path, codes=CODES)
        bodies = [{"product_id": shelf, "quantity": 1} for shelf in (1, 2)]
        buyers = {
            proxy.name: Buyers(keys, bodies, [Shop(proxy)], reads_abandoned=True)
            for proxy in proxies
        }

        with ExitStack() as load:
            for each in buyers.values():
                load.enter_context(each.running(threads=2))
            prepare, _, last = release("Upgrade", NEW).rstrip().rpartition("\n")
            with timed(f"prepare {NEW}"), buying_rarely(*buyers.values()):
                machine.shell(prepare)
            switch = last.replace("$VERSION", NEW)
            for command, version_now in ((switch, NEW), (GO_BACK, OLD), (switch, NEW)):
                with timed(f"switch to {version_now}"):
                    kill_a_process_during(machine, command)
                assert versions_that_run(machine) == {version_now}
                kill_a_process(machine, API[0])
                time.sleep(SECONDS)
                assert versions_that_run(machine) == {version_now}
                if version_now == OLD:
                    assert_pages_open(proxies)
                    assert old.ask("reconcile")["findings"] == []

        for name, each in buyers.items():
            slowest = max(one.seconds for one in each.bought)
            print(f"{name}: {len(each.bought)} purchases, slowest {slowest:.2f} s, {each.seen}")  # noqa: T201
            assert max(each.lost.values()) < MOST_TRIES
            assert slowest < LONGEST_PURCHASE
        assert_no_purchase_failed_or_doubled(*buyers.values(), earlier=[first["reference"]])
        assert_books_balance()
        new = Version("new", PROJECT, environment, tmp_path)
        assert new.ask("reconcile")["findings"] == []


@contextmanager
def buying_rarely(*buyers: Buyers) -> Iterator[None]:
    """Leaves the processors to the block, which takes longest."""
    for each in buyers:
        each.pause = RARELY
    yield
    for each in buyers:
        each.pause = PAUSE


def assert_pages_open(proxies: Sequence[Proxy]) -> None:
    for proxy in proxies:
        for path in ("/docs/", "/merchant/sign-in/"):
            assert Http2(proxy).get(path, headers={}).status_code == 200, (proxy.name, path)


def kill_a_process_during(machine: Machine, switch: str) -> None:
    """Runs the command. While the first unit of the API is down, kills a process of the other."""
    first, other = API
    show = ("systemctl", "show", "--property=ActiveState", "--value", f"voucher-api@{first}")

    def is_starting() -> bool:
        return machine.run(*show).strip() == "activating"

    with ThreadPoolExecutor(1) as pool:
        switched = pool.submit(machine.shell, switch)
        wait_until(is_starting, "the first unit starts again")
        kill_a_process(machine, other)
        assert is_starting(), "too late to be in the middle"
        switched.result()


def kill_a_process(machine: Machine, port: int) -> None:
    """Kills one web process of this unit of the API. Its master starts another.

    Nobody knows what became of its purchases: their retries wait for five minutes, or until their
    records are as old.
    """
    machine.shell(
        f"master=$(systemctl show --property=MainPID --value voucher-api@{port})\n"
        'kill -9 "$(cut -d" " -f1 /proc/$master/task/$master/children)"'
    )
    age_records(IN_PROGRESS_SECONDS)
