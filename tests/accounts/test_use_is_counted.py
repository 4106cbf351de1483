"""Last use of a key and today's requests are written by the web server, some seconds later."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from accounts import usage
from accounts.keys import issue_key
from accounts.models import ApiClient, ApiKey, ClientUse
from tests.concurrency.racing import race
from tests.factories import Merchant, make_client, make_merchant
from tests.live import live_server
from tests.tasks.running import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_web_server_writes_what_it_has_seen() -> None:
    with live_server({"USE_WRITTEN_EVERY_SECONDS": "1"}) as server:
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


def use(client: ApiClient, times: int = 1) -> None:
    client.key_prefix = client.keys.get().prefix
    for _ in range(times):
        usage.note_use(client)
    usage.write_use()


def make_caller() -> ApiClient:
    client = make_merchant().client
    client.keys.all().delete()
    issue_key(client=client)
    return client


def test_another_day_begins_at_one() -> None:
    client = make_caller()
    use(client, 3)
    yesterday = timezone.now().date() - timedelta(days=1)
    ClientUse.objects.update(day=yesterday)
    use(client, 2)
    row = ClientUse.objects.get(client=client)
    assert (row.requests, row.day) == (2, timezone.now().date())


def test_a_client_that_is_gone_is_left_out() -> None:
    gone, client = ApiClient(pk=10**9), make_caller()
    usage.note_use(gone)
    use(client)
    assert list(ClientUse.objects.values_list("client_id", "requests")) == [(client.pk, 1)]


def test_processes_that_write_at_once_add_up() -> None:
    clients = [make_caller() for _ in range(3)]

    def write(place: int) -> None:
        for client in clients if place % 2 else reversed(clients):
            client.key_prefix = ""
            usage.note_use(client)
        usage.write_use()

    race([partial(write, place) for place in range(8)])
    usage.write_use()
    assert {one.requests for one in ClientUse.objects.all()} == {8}


def test_a_lost_database_costs_some_seconds_of_counting(monkeypatch: pytest.MonkeyPatch) -> None:
    client = make_caller()
    with monkeypatch.context() as broken:
        broken.setattr(usage, "_ADD_REQUESTS", "SELECT 1 / 0, %s, %s, %s")
        use(client)
    use(client)
    assert ClientUse.objects.get(client=client).requests == 1
