"""One body limit for every path. Only the import of references accepts more, after sign-in."""

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client

from tests.api.raw import Wire, head
from tests.live import LiveServer, live_server
from tests.merchants.people import browser_of, make_member

pytestmark = pytest.mark.django_db(transaction=True)

LIMIT = settings.MAX_BODY_BYTES
IMPORT = "/merchant/references/import/"
PATHS = [
    "/api/v1/orders",
    "/api/v1/ping",
    "/api/v1/openapi.json",
    "/api/nothing",
    "/docs/",
    "/healthz",
    "/readyz",
    "/readyz/bot",
    "/readyz/worker",
    "/nothing",
    "/",
    "/static/none.css",
    "/merchant/",
    "/merchant/sign-in/",
    "/merchant/password/forgotten/",
    "/merchant/nothing",
    IMPORT,
    "/admin/",
    "/admin/login/",
    "/admin/nothing",
]
MULTIPART = {
    "Content-Type": "multipart/form-data; boundary=x",
    "Cookie": "csrftoken=" + "a" * 32,
}
PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'


@pytest.mark.parametrize("length", [LIMIT + 1, 10**9, 10**30])
def test_a_body_over_the_limit_is_refused_on_every_path(length: int) -> None:
    for path in PATHS:
        answer = Client().generic("POST", path, b"x", "text/plain", CONTENT_LENGTH=str(length))
        assert answer.status_code == 413, path
        assert set(answer.json()) == {"message"}, path


def test_a_body_within_the_limit_is_not_refused_for_its_size() -> None:
    for path in PATHS:
        answer = Client().generic("POST", path, b"x" * LIMIT, "text/plain")
        assert answer.status_code != 413, path


def test_a_signed_in_member_imports_a_larger_file() -> None:
    file = b"product_id,variation_id,merchant_reference\n".ljust(10 * LIMIT, b"\n")
    body = PART + file + b"\r\n--x--\r\n"
    kind = MULTIPART["Content-Type"]
    member = make_member()
    assert browser_of(member).generic("POST", IMPORT, body, kind).status_code in {200, 302}
    assert browser_of(member).generic("POST", IMPORT, body * 4, kind).status_code == 413
    assert (
        browser_of(member).generic("POST", "/merchant/people/invite/", body, kind).status_code
        == 413
    )
    assert Client().generic("POST", IMPORT, body, kind).status_code == 413


@pytest.mark.parametrize("path", ["/admin/login/", "/merchant/sign-in/", IMPORT, "/healthz"])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_endless_upload_leaves_nothing_on_the_disk(
    temporary_files: tuple[LiveServer, Path], path: str, chunked: bool
) -> None:
    server, folder = temporary_files
    size = {"Transfer-Encoding": "chunked"} if chunked else {"Content-Length": str(10**9)}
    data = b"x" * 65_536
    packet = b"%x\r\n%s\r\n" % (len(data), data) if chunked else data
    with Wire(server) as wire:
        wire.send(head("POST", path, {**MULTIPART, **size}))
        with suppress(OSError):  # refused before everything was sent
            wire.send(b"%x\r\n%s\r\n" % (len(PART), PART) if chunked else PART, *[packet] * 100)
        time.sleep(0.2)
        assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def temporary_files(
    django_db_setup: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LiveServer, Path]]:
    """A server, and the folder where it writes temporary files."""
    folder = tmp_path_factory.mktemp("temporary")
    with live_server({"TMPDIR": str(folder)}, workers=1) as server:
        yield server, folder
