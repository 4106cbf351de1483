"""The last use of a key and today's requests: the web server writes them a few seconds late."""

from datetime import timedelta
from functools import partial

import pytest
from django.utils import timezone

from accounts.api_access import usage
from accounts.models import ApiClient, ApiKey, ClientUse
from tests.concurrency.racing import race
from tests.factories import make_key, make_merchant
from tests.neighbour import ours

pytestmark = pytest.mark.django_db(transaction=True)


def use(client: ApiClient, times: int = 1) -> None:
    client.key_prefix = client.keys.get().prefix
    for _ in range(times):
        usage.note_use(client)
    usage.write_use()


def make_caller() -> ApiClient:
    client = make_merchant().client
    client.keys.all().delete()
    make_key(client)
    return client


def test_only_the_key_that_was_used_is_marked() -> None:
    client = make_caller()
    other = ApiKey.objects.get(prefix=make_key(client).split("_")[1])
    client.key_prefix = client.keys.exclude(pk=other.pk).get().prefix
    usage.note_use(client)
    usage.write_use()
    other.refresh_from_db()
    assert other.last_used_at is None
    assert client.keys.get(prefix=client.key_prefix).last_used_at is not None


def test_a_new_day_starts_counting_again() -> None:
    client = make_caller()
    use(client, 3)
    yesterday = timezone.now().date() - timedelta(days=1)
    ClientUse.objects.update(day=yesterday)
    use(client, 2)
    row = ClientUse.objects.get(client=client)
    assert (row.requests, row.day) == (2, timezone.now().date())


def test_counts_of_a_deleted_client_are_dropped() -> None:
    gone, client = ApiClient(pk=10**9), make_caller()
    usage.note_use(gone)
    use(client)
    assert list(ours(ClientUse).values_list("client_id", "requests")) == [(client.pk, 1)]


def test_counts_of_processes_that_write_at_once_add_up() -> None:
    clients = [make_caller() for _ in range(3)]

    def write(place: int) -> None:
        for client in clients if place % 2 else reversed(clients):
            client.key_prefix = ""
            usage.note_use(client)
        usage.write_use()

    race([partial(write, place) for place in range(8)])
    usage.write_use()
    assert {one.requests for one in ours(ClientUse).all()} == {8}


def test_a_database_error_loses_only_the_counts_being_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = make_caller()
    with monkeypatch.context() as broken:
        broken.setattr(usage, "_ADD_REQUESTS", "SELECT 1 / 0, %s, %s, %s")
        use(client)
    use(client)
    assert ClientUse.objects.get(client=client).requests == 1
