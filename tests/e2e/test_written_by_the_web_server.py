"""What a running web server writes beside its answers: the use of keys, and request records."""

from collections.abc import Iterator

import pytest
from django.utils import timezone

from accounts.models import ApiKey, ClientUse, RequestRecord
from tests.factories import Merchant, make_client
from tests.live import LiveServer, live_server, with_settings
from tests.tasks.running import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module")
def server(django_db_setup: None) -> Iterator[LiveServer]:
    """Two processes, which count and record for themselves."""
    with live_server(with_settings("config.settings_api", USE_WRITTEN_EVERY_SECONDS=1)) as server:
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
