"""The finders of `accounts` for the search fields: accounts, clients, keys, requests and staff."""

from collections.abc import Iterable

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from accounts.api_access.keys import PREFIX_PATTERN, prefix_of
from accounts.api_access.request_records import find_records
from accounts.models import Account, ApiClient, RequestRecord
from core.backoffice.declarations import Finder
from core.backoffice.search import MAX_HITS, SHORTEST_NAME, by_name, newest_first
from core.texts import lazy


def _find_by_key(key: str) -> Iterable[ApiClient]:
    """The client of a whole key. Only its prefix is looked up, whether the key works or not."""
    prefix = prefix_of(key)
    return _find_by_prefix(prefix) if prefix else []


def _find_by_prefix(prefix: str) -> QuerySet[ApiClient]:
    return ApiClient.objects.filter(keys__prefix=prefix).select_related("account")


def _clients(text: str) -> Iterable[ApiClient]:
    prefix = text.lower().removeprefix("vk_").rstrip("_…")
    if PREFIX_PATTERN.fullmatch(prefix):
        return _find_by_prefix(prefix)
    return by_name(ApiClient.objects.select_related("account"), text)


def _requests(
    text: str, *, account: Account | None = None, limit: int = MAX_HITS
) -> QuerySet[RequestRecord]:
    """The newest requests that match, of all accounts or of one."""
    records = RequestRecord.objects.select_related("client")
    if account is not None:
        records = records.filter(account=account)
    return find_records(records, text).order_by(newest_first())[:limit]


def _staff(text: str) -> QuerySet[User]:
    if len(text) < SHORTEST_NAME:
        return User.objects.none()
    matches = Q(username__icontains=text) | Q(email__icontains=text)
    return User.objects.filter(matches, is_staff=True).order_by("username")[:MAX_HITS]


def _describe_client(client: ApiClient) -> tuple[str, str]:
    state = "" if client.enabled else f", {_('switched off')}"
    return client.name, f"{client.account or _('no account')}{state}"


def _describe_request(record: RequestRecord) -> tuple[str, str]:
    answer = " ".join(str(part) for part in (record.status, record.code, record.reason) if part)
    when = f"{record.at:%Y-%m-%d %H:%M:%S}"
    return f"{record.method} {record.path}", f"{answer}, {record.client}, {when}"


FINDERS = [
    Finder(lazy("Client"), ApiClient, _find_by_key, _describe_client, secret=True),
    Finder(lazy("Account"), Account, lambda text: by_name(Account.objects.all(), text)),
    Finder(lazy("Client"), ApiClient, _clients, _describe_client),
    Finder(lazy("Request"), RequestRecord, _requests, _describe_request, of_account=_requests),
    Finder(lazy("Staff"), User, _staff, lambda user: (user.get_username(), user.email)),
]
