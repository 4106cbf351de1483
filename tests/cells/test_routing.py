"""HAProxy sends each request to the cell that has its key (deploy/cells/haproxy.cfg)."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from django.test import override_settings

from accounts.keys import issue_key, prefix_of
from tests.api.raw import RawAnswer
from tests.cells.conftest import Service
from tests.cells.haproxy import FILES, find_haproxy
from tests.cells.two_cells import Cell
from tests.commands import run
from tests.factories import make_account, make_client, make_key
from tests.proxies.running import CALLER, make_certificate
from tests.tasks.running import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.haproxy]


def ping(service: Service, key: str, **headers: str) -> RawAnswer:
    return service.proxy.front.ask(
        "GET", "/api/v1/ping", {"Authorization": f"Bearer {key}", **headers}
    )


def new_key(cell: Cell, *options: object) -> str:
    """A key of a new client, whose name is that of the cell."""
    with cell.entered():
        key: str = run("create_client", cell.name, *options)["api_key"]
        return key


def test_a_key_leads_to_its_cell(service: Service) -> None:
    for cell in (service.a, service.b):
        key = new_key(cell)
        assert key.startswith(f"vk_{cell.name}_")
        answer = ping(service, key)
        assert answer.status == 200, answer
        assert answer.json()["data"]["client"] == cell.name


def test_a_key_without_a_cell_leads_to_the_first(service: Service) -> None:
    with service.a.entered():
        client = make_client(make_account())
        key = make_key(client)

    assert ping(service, key).json()["data"]["client"] == client.name


@pytest.mark.parametrize(
    "key", ["", "vk_", "vk_c_000000000000_0", "vk_b", "___", "b_b", "x" * 4000]
)
def test_a_malformed_key_gets_invalid_token(service: Service, key: str) -> None:
    answer = ping(service, key)

    assert (answer.status, answer.json()["error"]["code"]) == (401, "invalid_token")


def test_a_request_without_a_key_gets_missing_token(service: Service) -> None:
    answer = service.proxy.front.ask("GET", "/api/v1/ping")

    assert (answer.status, answer.json()["error"]["code"]) == (401, "missing_token")


def test_a_moved_key_leads_to_its_new_cell(service: Service) -> None:
    """The line wins over the cell in the key. One key is from before there were cells."""
    with service.b.entered():
        keys = {make_key(client): client.name for client in (make_client(), make_client())}
        client = make_client()
        with override_settings(CELL="a"):
            keys[issue_key(client=client, actor=None)] = client.name
    first = next(iter(keys))
    assert ping(service, first).status == 401

    service.proxy.move([f"{prefix_of(key)} b" for key in keys])

    wait_until(lambda: ping(service, first).status == 200, "HAProxy has the new map")
    for key, name in keys.items():
        assert ping(service, key).json()["data"]["client"] == name


def test_a_cell_sees_the_address_of_the_caller(service: Service) -> None:
    key = new_key(service.b, "--allow", CALLER)
    forged: dict[str, Any] = {"X-Forwarded-For": "10.1.1.1", "X_Forwarded_For": "10.1.1.1"}

    assert ping(service, key, **forged).status == 200
    assert ping(service, new_key(service.b, "--allow", "10.1.1.1"), **forged).status == 403


def test_what_haproxy_answers_itself_is_json(service: Service, tmp_path: Path) -> None:
    front = service.proxy.front
    assert front.ask("GET", "/admin/").json() == {"message": "Not found."}
    assert "https" in front.ask("GET", "/api/v1/ping", plain=True).json()["message"]
    key = new_key(service.b)
    service.servers["b"].stop()
    try:
        wait_until(lambda: ping(service, key).status == 503, "cell b is down")
        assert "same request again" in ping(service, key).json()["message"]
        assert ping(service, new_key(service.a)).status == 200  # the other cell sells on
    finally:
        service.servers["b"].start()
        wait_until(lambda: ping(service, key).status == 200, "cell b is back")


def test_haproxy_accepts_the_files_as_shipped(tmp_path: Path) -> None:
    """Only the certificate and the folder are replaced."""
    make_certificate(tmp_path)
    pem = (tmp_path / "certificate.pem").read_text() + (tmp_path / "key.pem").read_text()
    (tmp_path / "voucher.pem").write_text(pem)
    for file in FILES.iterdir():
        shutil.copy(file, tmp_path)
    text = (tmp_path / "haproxy.cfg").read_text().replace("/etc/haproxy", str(tmp_path))
    (tmp_path / "haproxy.cfg").write_text(text)

    checked = subprocess.run(
        [find_haproxy() or "haproxy", "-c", "-f", tmp_path / "haproxy.cfg"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stderr
    assert "WARNING" not in checked.stderr + checked.stdout
