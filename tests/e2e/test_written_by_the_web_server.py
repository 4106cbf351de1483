"""What a running web server writes beside its answers: the use of keys, and request records."""

import time
from collections.abc import Iterator

import pytest
from django.utils import timezone

from accounts.models import ApiKey, ClientUse, RequestRecord
from accounts.request_records import WRITTEN_EVERY_SECONDS
from tests.factories import Merchant, make_client
from tests.live import API, LiveServer, live_server
from tests.tasks.running import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def server(django_db_setup: None) -> Iterator[LiveServer]:
    """Two processes, which count and record for themselves."""
    with live_server({**API, "USE_WRITTEN_EVERY_SECONDS": "1"}) as server:
        yield server


def test_it_writes_the_requests_it_answered(server: LiveServer) -> None:
    merchant = Merchant(make_client(), http=server.http)
    begun = timezone.now()
    for _ in range(5):
        assert merchant.get("/ping").status_code == 200
    wait_until(
        lambda: ClientUse.objects.filter(client=merchant.client, requests=5).exists(),
        "five requests are counted",
    )
    key = ApiKey.objects.get(client=merchant.client)
    assert key.last_used_at is not None
    assert begun <= key.last_used_at <= timezone.now()


def test_it_writes_its_records(server: LiveServer) -> None:
    merchant = Merchant(make_client(), http=server.http)
    merchant.get("/orders/UNKNOWN")
    wait_until(RequestRecord.objects.filter(client=merchant.client).exists, "the record is written")


def test_records_can_be_switched_off() -> None:
    with live_server({**API, "REQUEST_RECORDS": "0"}, workers=1) as server:
        merchant = Merchant(make_client(), http=server.http)
        merchant.get("/orders/UNKNOWN")
        time.sleep(1.5 * WRITTEN_EVERY_SECONDS)
    assert not RequestRecord.objects.filter(client=merchant.client).exists()
