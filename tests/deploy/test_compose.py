"""The image and compose.yaml, run for real: a code is bought through the proxy over TLS."""

import json
import os
import re
import shutil
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from embedded.environment import PROJECT
from tests.deploy import engine
from tests.deploy.stack import Stack, documented_script, running_stack, start_service
from tests.old_version import extract

pytestmark = [
    pytest.mark.containers,
    pytest.mark.skipif(
        not engine.user_namespaces(), reason="this machine does not allow user namespaces"
    ),
]
SERVICES = ["api", "api-2", "pages", "pages-2", "worker", "imports", "beat", "metrics"]
SECONDS = 3.0  # of load after each change
AGE = """
    UPDATE idempotency_idempotencyrecord SET created_at = created_at - interval '5 minutes',
    started_at = started_at - interval '5 minutes', bought_at = bought_at - interval '5 minutes'
"""
AS_OWNER = (
    "PGPASSWORD=$(cat /run/secrets/postgres_password) exec psql --quiet --host=127.0.0.1"
    f' --username=postgres --dbname=voucher --command="{AGE}"'
)
PURCHASES = "/var/lib/voucher/purchases"
MANAGE = 'manage() { docker compose exec -T api start manage "$@"; }\n'
PAUSE = 0.05  # seconds between two purchases
LONGEST_PURCHASE = 8.0  # seconds, while other tests use the machine; alone, less than 3


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("deploy")) as stack:
        yield stack


@pytest.fixture(scope="module")
def bought(stack: Stack) -> str:
    """What the documented commands printed last: the response to the purchase."""
    return stack.script(documented_script("Buy a first code")).stdout.splitlines()[-1]


def test_a_newcomer_buys_a_code(bought: str) -> None:
    response = json.loads(bought)
    assert response["success"] is True
    assert response["data"]["codes"] == [{"code": "STEAM-AAAA-0001", "pin_code": "1234"}]
    assert response["data"]["total_price"] == 9.99


def test_the_purchase_log_is_in_a_volume(stack: Stack, bought: str) -> None:
    logged = stack.inside("api", "sh", "-c", "cat /var/lib/voucher/purchases/*.log")
    lines = [json.loads(line) for line in logged.splitlines()]  # and a sign of life each minute
    references = [line["reference"] for line in lines if line["event"] == "order_created"]
    assert references == [json.loads(bought)["data"]["reference"]]
    assert purchases_of(stack).is_dir()


def purchases_of(stack: Stack) -> Path:
    """The folder of the volume with the purchase log, on this host."""
    mounts = engine.podman("inspect", "--format={{json .Mounts}}", stack.container("api"))
    (volume,) = (each for each in json.loads(mounts) if each["Destination"] == PURCHASES)
    assert volume["Type"] == "volume"
    return Path(volume["Source"])


def test_the_purchase_log_is_copied_from_its_volume(
    stack: Stack, bought: str, tmp_path: Path
) -> None:
    shutil.copy(PROJECT / "deploy/purchase-log/ship-purchases.service", tmp_path)
    stack.script(documented_script("Back up", 1).replace("/etc/systemd/system", str(tmp_path)))
    unit = (tmp_path / "ship-purchases.service").read_text()
    assert "User=" not in unit
    (source,) = re.findall(r"^  (/.*/) purchases@", unit, re.MULTILINE)
    assert "order_created" in "".join(file.read_text() for file in Path(source).glob("*.log"))


@pytest.mark.parametrize("service", SERVICES)
def test_a_process_is_healthy(stack: Stack, service: str) -> None:
    stack.wait(f"{service} is not healthy", lambda: stack.healthy(service))


def test_a_health_check_notices_a_process_that_does_not_work(stack: Stack) -> None:
    """A container that never wrote a heartbeat, or whose server does not listen."""
    for service, process in (("metrics", "worker"), ("worker", "api")):
        changed = f"import probe; probe.PROCESS.write_text('{process}')"
        folder = "/app/deploy"
        stack.inside(service, "sh", "-c", f'cd {folder} && python3 -c "{changed}"')
        assert not stack.healthy(service)
        stack.inside(service, "sh", "-c", f"echo {service} >/tmp/process")


def test_requests_reach_the_kind_of_process_that_serves_them(stack: Stack) -> None:
    assert stack.get("/api/v1/ping")[0] == 401
    assert "<html" in stack.get("/merchant/sign-in/")[1]
    status, page = stack.get("/admin/login/")
    assert status == 200
    hashed = page.partition("/static/")[2].partition('"')[0]
    assert stack.get(f"/static/{hashed}")[0] == 200


def test_metrics_are_collected_from_all_containers_and_are_not_public(
    stack: Stack, bought: str
) -> None:
    def read(path: str) -> str:
        url = f"http://127.0.0.1:{stack.ports['METRICS_PORT']}{path}"
        with urllib.request.urlopen(url, timeout=30) as response:
            return str(response.read().decode())

    assert "voucher_database_up 1.0" in read("/metrics/service")
    wanted = 'voucher_requests_total{method="POST",route="api/v1/orders",status="201"}'
    stack.wait("the purchase was not counted", lambda: wanted in read("/metrics"))
    assert stack.get("/metrics")[0] == 404


def test_without_a_mail_server_emails_are_files(stack: Stack) -> None:
    """A newcomer reads the link of an invitation there."""
    send = "from django.core.mail import send_mail; send_mail('Hello', 'x', None, ['a@b.example'])"
    stack.inside("worker", "python3", "/app/manage.py", "shell", f"--command={send}")
    assert "To: a@b.example" in stack.script(documented_script("Read emails")).stdout


def test_callers_over_ipv6_are_told_apart(stack: Stack) -> None:
    """The service believes the proxy alone, and the proxy sees who calls: here this machine, from
    the gateways of the network."""
    token, page = "a" * 32, f"{stack.url}/merchant/sign-in/"
    form = f"csrfmiddlewaretoken={token}&username=nobody@b.example&password=wrong"
    headers = ("--header", f"Cookie: csrftoken={token}", "--header", f"Origin: {stack.url}")
    for address in ("127.0.0.1", "[fd8a:4c1e:6b02:239::1]"):
        place = f"localhost:{stack.ports['HTTPS_PORT']}:{address}"
        sent = ("--insecure", "--resolve", place, *headers, "--data", form)
        engine.run("curl", "--silent", "--fail", *sent, page)

    rows = "AccessAttempt.objects.values_list('ip_address', flat=True)"
    program = f"from axes.models import AccessAttempt; print(*{rows})"
    shell = ("python3", "/app/manage.py", "shell", "--verbosity=0", f"--command={program}")
    counted = set(stack.inside("api", *shell).split())
    assert counted == {"172.30.239.1", "fd8a:4c1e:6b02:239::"}


def test_a_container_can_change_nothing(stack: Stack) -> None:
    assert stack.inside("api", "id", "-u") == "10001"
    lines = stack.inside("api", "cat", "/proc/1/status").splitlines()
    status = {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}
    assert {int(value, 16) for name, value in status.items() if name.startswith("Cap")} == {0}
    assert status["NoNewPrivs"] == "1"
    tried = stack.inside("api", "sh", "-c", "echo x >/app/x; echo x >/etc/x; echo $?", check=False)
    assert tried == "2"


def test_the_image_has_no_compiler_no_installer_and_no_files_of_developers(stack: Stack) -> None:
    program = "for name in cc gcc g++ make pip pip3; do command -v $name || true; done"
    assert stack.inside("api", "sh", "-c", program) == ""
    assert not {"tests", "labs", "embedded", "var", ".git", ".venv"} & set(
        stack.inside("api", "ls", "-A", "/app").split()
    )


def test_no_secret_is_in_the_environment_the_image_or_a_log(stack: Stack) -> None:
    shown = engine.run("podman", "inspect", stack.container("api")).stdout + stack.logs()
    shown += engine.run("podman", "history", "--no-trunc", "localhost/voucher").stdout
    shown += stack.inside("api", "env")
    for path in (stack.folder / "secrets").iterdir():
        secret = path.read_text().strip()  # of valkey_config only the password is secret
        assert not secret or path.name == "valkey_config" or secret not in shown, path.name


def test_a_wrong_word_and_a_missing_secret_stop_a_container(stack: Stack) -> None:
    def start(*arguments: str) -> tuple[int, str]:
        command = ("podman", "run", "--rm", "--tmpfs=/tmp", "--read-only")
        ended = engine.run(*command, *arguments, check=False)
        return ended.returncode, ended.stderr

    assert start("localhost/voucher", "serve")[0] == 64
    missing = "--env=DATABASE_URL_FILE=/run/secrets/missing"
    code, said = start(missing, "localhost/voucher", "api")
    assert code != 0
    assert "voucher.E009: DATABASE_URL_FILE names a file that cannot be read" in said


@pytest.mark.history
def test_merchants_buy_during_the_way_back_and_an_upgrade(
    stack: Stack, bought: str, tmp_path: Path
) -> None:
    """Every container is replaced by one of the old version, and again by one of this version. Each
    time a process of `api-2` is killed while `api` is down. The request of a lost response is sent
    again at once.
    """
    new = stack.variables["VOUCHER_IMAGE"]
    extract(tmp_path)
    old = engine.service_image(tmp_path, tag="localhost/voucher-test-old")
    codes = "code\\n" + "\\n".join(f"UPGRADE-{number}" for number in range(8_000))
    printed = stack.script(
        f"{MANAGE}manage deposit 1 90000 --reference upgrade\n"
        f"docker compose exec -T api sh -c 'printf \"{codes}\" >/tmp/codes.csv'\n"
        "manage import_codes 10 /tmp/codes.csv\n"
        "manage create_client Upgrade --account 1 --rate-limit 10000"
    ).stdout
    buyer = Buyer(stack, key=json.loads(printed.splitlines()[-1])["api_key"])
    with buyer.buying():
        for image in (old, new):
            before = container_ids(stack)
            stack.variables["VOUCHER_IMAGE"] = image
            upgrade_and_kill_a_process(stack)
            assert not before & container_ids(stack)
            time.sleep(SECONDS)

    assert len(buyer.seconds) > 10
    assert buyer.most_tries <= 2
    assert max(buyer.seconds) < LONGEST_PURCHASE
    assert len(set(buyer.codes)) == len(buyer.codes) == len(buyer.seconds)
    report = json.loads(stack.script(f"{MANAGE}manage reconcile").stdout)
    assert report["findings"] == []
    assert report["checked"]["orders"] == 1 + len(buyer.codes)
    print(f"{len(buyer.seconds)} purchases, slowest {max(buyer.seconds):.2f} s")  # noqa: T201


def upgrade_and_kill_a_process(stack: Stack) -> None:
    """Kills a process of `api-2` while `api` starts. Its retries wait for five minutes, or until
    their records are as old. The kill comes from outside the container: entering it takes longer
    than `api` does to start, on a busy machine."""
    before = engine.podman("inspect", "--format={{.Id}}", stack.container("api"))
    main = engine.podman("inspect", "--format={{.State.Pid}}", stack.container("api-2"))
    worker = int(Path(f"/proc/{main}/task/{main}/children").read_text().split()[0])
    ready = ("exec", stack.container("api"), "python3", "/app/deploy/probe.py")

    def is_new() -> bool:
        shown = engine.podman("inspect", "--format={{.Id}}", stack.container("api"), check=False)
        return bool(shown) and shown != before

    with ThreadPoolExecutor(1) as pool:
        # It waits a minute for each of seven services.
        upgraded = pool.submit(stack.script, "./upgrade", patience=600.0)
        stack.wait("api is not replaced", is_new)
        os.kill(worker, signal.SIGKILL)
        assert engine.run("podman", *ready, check=False).returncode, "too late to be in the middle"
        stack.inside("postgres", "sh", "-c", AS_OWNER)
        upgraded.result()


def container_ids(stack: Stack) -> set[str]:
    names = [stack.container(service) for service in SERVICES]
    return set(engine.podman("inspect", "--format={{.Id}}", *names).split())


class Buyer:
    """Buys one code after the other, and sends each request again until it is answered."""

    def __init__(self, stack: Stack, *, key: str) -> None:
        self.stack, self.key = stack, key
        self.codes: list[str] = []
        self.seconds: list[float] = []
        self.most_tries = 0

    @contextmanager
    def buying(self) -> Iterator[None]:
        over = threading.Event()
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(self._buy_until, over)
            try:
                yield
            finally:
                over.set()
            running.result()

    def buy(self, key: str) -> Any:
        """The response to one purchase."""
        return json.loads(self._post(key)[1])

    def _buy_until(self, over: threading.Event) -> None:
        while not over.is_set():
            key, began, tries = str(uuid4()), time.monotonic(), 1
            while (status := self._buy(key)) != HTTPStatus.CREATED:
                assert status in (0, HTTPStatus.CONFLICT, 502, 503, 504), status
                tries += status != HTTPStatus.CONFLICT  # a process was killed; another may begin
            self.seconds.append(time.monotonic() - began)
            self.most_tries = max(self.most_tries, tries)
            time.sleep(PAUSE)

    def _post(self, key: str) -> tuple[int, str]:
        body = b'{"product_id": 10, "quantity": 1}'
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        return self._fetch("/api/v1/orders", data=body, headers=headers)

    def _fetch(
        self, path: str, *, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        authorization = {"Authorization": f"Bearer {self.key}"}
        return self.stack.fetch(path, data=data, headers={**authorization, **(headers or {})})

    def _buy(self, key: str) -> int:
        status, text = self._post(key)
        if "request_abandoned" in text:  # it was bought, and its response was lost
            reference = json.loads(text)["error"]["reference"]
            status, text = self._fetch(f"/api/v1/orders/{reference}")
            assert status == HTTPStatus.OK
            status = HTTPStatus.CREATED
        assert "order_refused" not in text, text
        if status == HTTPStatus.CREATED:
            self.codes += [code["code"] for code in json.loads(text)["data"]["codes"]]
        return status


def test_a_restore_sells_no_code_twice(stack: Stack, bought: str) -> None:
    """The database is lost with its volume, and so is the end of the log, which a copy has."""
    codes = "code\\n" + "\\n".join(f"RESTORE-{number}" for number in range(5))
    printed = stack.script(
        f"{MANAGE}manage deposit 1 90 --reference restore\n"
        f"docker compose exec -T api sh -c 'printf \"{codes}\" >/tmp/codes.csv'\n"
        "manage import_codes 10 /tmp/codes.csv\n"
        "manage create_client Restore --account 1 --rate-limit 10000"
    ).stdout
    buyer = Buyer(stack, key=json.loads(printed.splitlines()[-1])["api_key"])
    buyer.buy("kept")
    stack.script(documented_script("Back up"))
    lost = [buyer.buy(key)["data"] for key in ("logged", "in the copy")]

    folder = purchases_of(stack)
    engine.podman("kill", stack.container("postgres"))
    stop, restore = documented_script("Restore").split("\n", 1)
    stack.script(stop)
    inside = "docker compose run --rm -T --no-deps --entrypoint sh api -c"
    stack.script(f"mkdir logs\n{inside} 'cat {PURCHASES}/*.log' >logs/api.log")
    for file in folder.glob("*.log"):
        lines = file.read_text().splitlines(keepends=True)
        lost_from = [lost[1]["reference"] in line for line in lines].index(True)
        file.write_text("".join(lines[:lost_from]))
    stack.script(restore)
    assert (
        "it did not stop then"
        in stack.script(f"{documented_script('Restore', 1).rstrip()} 2>&1 || true").stdout
    )
    with_copy = documented_script("Restore", 2)
    # The test of upgrades leaves logs of killed processes behind, if it ran: one of each version.
    printed = stack.script(f"{with_copy.rstrip()} 2>&1 || true").stdout
    one = r"/logs/api.log: [^;]* did not stop then[^;]* add (--killed \w+)"
    killed = re.findall(one, printed)
    assert len(killed) <= 2
    if killed:
        with_copy = with_copy.replace("--since", " ".join([*killed, "--since"]))
        printed = stack.script(with_copy).stdout
    held = json.loads(printed.splitlines()[-1])
    assert {each["reference"] for each in held["purchases"]} == {each["reference"] for each in lost}
    reconcile, _, dump = documented_script("Restore", 3).splitlines()
    assert '"findings":[]' in stack.script(reconcile).stdout
    start_service(stack)
    stack.script(dump)

    assert buyer.buy("logged")["error"]["code"] == "request_abandoned"
    more = buyer.buy("more")["data"]["codes"]
    assert more[0]["code"] not in {code["code"] for order in lost for code in order["codes"]}
    settle = "manage lost_purchases settle --account 1 --debit --note Lost"
    assert '"settled":2' in stack.script(f"{MANAGE}{settle}").stdout
    assert '"findings":[]' in stack.script(f"{MANAGE}manage reconcile").stdout


def test_each_process_ends_when_it_is_asked_to(stack: Stack) -> None:
    """Last, because it stops them. SIGTERM reaches the process itself, and ends it in time."""
    names = [stack.container(service) for service in SERVICES]
    began = time.monotonic()
    engine.podman("stop", "--time=35", *names, timeout=200)
    took = time.monotonic() - began
    codes = engine.podman("inspect", "--format={{.State.ExitCode}}", *names).split()
    assert dict(zip(SERVICES, codes, strict=True)) == dict.fromkeys(SERVICES, "0"), stack.logs()
    assert took < 35 * len(SERVICES)
