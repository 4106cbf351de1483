"""What the search field finds in `accounts`: accounts, clients, keys and requests."""

from collections.abc import Iterable

from django.db.models import QuerySet

from accounts.keys import PREFIX_PATTERN, prefix_of
from accounts.models import Account, ApiClient, RequestRecord
from accounts.request_records import find_records
from config.finders import MAX_FOUND, Finder, named, newest_first


def _of_key(key: str) -> Iterable[ApiClient]:
    """The client of a whole key. Only its prefix is looked up, whether the key works or not."""
    prefix = prefix_of(key)
    return _of_prefix(prefix) if prefix else []


def _of_prefix(prefix: str) -> QuerySet[ApiClient]:
    return ApiClient.objects.filter(keys__prefix=prefix).select_related("account")


def _clients(text: str) -> Iterable[ApiClient]:
    prefix = text.lower().removeprefix("vk_").rstrip("_…")
    if PREFIX_PATTERN.fullmatch(prefix):
        return _of_prefix(prefix)
    return named(ApiClient.objects.select_related("account"), text)


def _requests(text: str) -> Iterable[RequestRecord]:
    found = find_records(RequestRecord.objects.select_related("client"), text)
    return found.order_by(newest_first())[:MAX_FOUND]


def _describe_client(client: ApiClient) -> tuple[str, str]:
    state = "" if client.enabled else ", switched off"
    return client.name, f"{client.account or 'no account'}{state}"


def _describe_request(record: RequestRecord) -> tuple[str, str]:
    answer = " ".join(str(part) for part in (record.status, record.code, record.reason) if part)
    when = f"{record.at:%Y-%m-%d %H:%M:%S}"
    return f"{record.method} {record.path}", f"{answer}, {record.client}, {when}"


FINDERS = [
    Finder("Client", ApiClient, _of_key, _describe_client, secret=True),
    Finder("Account", Account, lambda text: named(Account.objects.all(), text)),
    Finder("Client", ApiClient, _clients, _describe_client),
    Finder("Request", RequestRecord, _requests, _describe_request),
]
