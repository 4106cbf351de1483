"""A large statement over real HTTP arrives whole, and a broken download leaves nothing locked."""

import http.client
import json
import socket
from datetime import timedelta

import pytest
from django.conf import settings

from tests.factories import make_account
from tests.live import HOST, LiveServer
from tests.merchants.ledger import book_many
from tests.merchants.people import browser_of, make_member
from tests.tasks.running import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

NUMBER = 100_000
PATH = "/merchant/wallet/statement.json"


@pytest.fixture
def cookie() -> str:
    """The session cookie of a member whose account has a long history."""
    account = make_account(balance="0")
    book_many(account, NUMBER, apart=timedelta(seconds=1))
    session = browser_of(make_member(account)).cookies[settings.SESSION_COOKIE_NAME].value
    return f"{settings.SESSION_COOKIE_NAME}={session}"


def ask(live: LiveServer, cookie: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(HOST, live.port, timeout=60)
    connection.request("GET", PATH, headers={"Cookie": cookie})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    return response.status, content


def test_a_large_statement_arrives_whole(live: LiveServer, cookie: str) -> None:
    status, content = ask(live, cookie)

    assert status == 200
    entries = json.loads(content)["entries"]
    assert len(entries) == NUMBER
    assert [entry["id"] for entry in entries] == sorted(entry["id"] for entry in entries)


def test_a_broken_download_can_be_repeated(live: LiveServer, cookie: str) -> None:
    with socket.create_connection((HOST, live.port)) as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        request = f"GET {PATH} HTTP/1.1\r\nHost: {HOST}\r\nCookie: {cookie}\r\n\r\n"
        reader.sendall(request.encode())
        assert reader.recv(100).startswith(b"HTTP/1.1 200")

    wait_until(lambda: ask(live, cookie)[0] == 200, "it is sent again")
