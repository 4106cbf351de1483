"""Records of purchase attempts, and of other requests that were refused.

It answers "why was this refused?". Only pages for people show it, so it costs a request no round
trip: each web process collects records in memory, and a thread writes them every five seconds. A
process that stops loses the records of its last seconds; the order and the log lines remain. A
record holds no body, no code and no key.
"""

import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple
from uuid import UUID

import structlog
from django.conf import settings
from django.db import close_old_connections, connection, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from accounts.models import IDEMPOTENCY_KEY_LENGTH, METHOD_LENGTH, PATH_LENGTH, RequestRecord
from core.api.errors import ErrorCode
from core.api.outcome import Outcome
from core.database.columns import ORDER_REFERENCE_LENGTH
from core.database.pauses import pause_afterwards
from core.texts import lazy

logger = structlog.get_logger(__name__)

WRITTEN_EVERY_SECONDS = 5.0
# A caller that never pauses must not fill the disk. Purchases are limited by their cost.
MAX_REFUSALS = 250  # of one key, until the next time they are written
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")  # characters that no page can show
MAX_WAITING = 20_000  # of one process, while the database is away
MOST_FOUND = 10_000  # clients may share a key, such as 1
WINDOW = 50  # rows looked at in one statement of the deletion: few, so that purchases wait briefly


class Record(NamedTuple):
    """One row, in the order of its columns. `key_prefix` is not stored.

    `at` is in seconds of time.monotonic(), because the clock of a host may be wrong. It becomes a
    time of the database when the row is written.
    """

    at: float
    request_id: str
    client_id: int | None
    account_id: int | None
    method: str
    path: str
    status: int
    code: str
    reason: str
    order_reference: str | None
    idempotency_key: str | None
    milliseconds: int
    problems: str = "{}"  # JSON
    key_prefix: str = ""


MAX_PROBLEMS = 10  # of one request
FIELD_NAME = re.compile(r"[a-z_]{1,32}(\.[0-9]{1,9})?")
UNKNOWN_NAME = "unknown name"
COLUMNS = Record._fields[:-1]
# Deletes the old rows of the next window. Returns its last id, how many rows were old, and how many
# have a time in the future.
DELETE_WINDOW = """
    WITH looked_at AS (
        SELECT id, at FROM accounts_requestrecord WHERE id > %(after)s ORDER BY id LIMIT %(rows)s),
    deleted AS (
        DELETE FROM accounts_requestrecord WHERE id = ANY (ARRAY(
            SELECT id FROM looked_at WHERE at < now() - make_interval(days => %(days)s)))
        RETURNING id)
    SELECT max(id), (SELECT count(*) FROM deleted), count(*) FILTER (WHERE at > now()),
           set_config('synchronous_commit', 'off', true)
      FROM looked_at
"""
# The responses by which both sites filter, with their labels.
REFUSED = "refused"
RESPONSES = [(REFUSED, lazy("Refused")), *((code.value, code.value) for code in ErrorCode)]

_lock = threading.Lock()
_waiting: list[Record] = []
_refusals: Counter[str] = Counter()  # by the prefix of a key


class RequestRecordMiddleware:
    """Collects the record of each request whose key is known.

    It comes before RequestLogMiddleware, which sets X-Request-Id of the response.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        since = time.perf_counter()
        response = self.get_response(request)
        outcome = vars(request).get("outcome")
        if outcome is not None:
            is_purchase = request.method == "POST"
            if is_purchase or outcome.error is not None:
                _collect(_record(request, response, outcome, time.perf_counter() - since))
        return response


def _record(
    request: HttpRequest, response: HttpResponse, outcome: Outcome, seconds: float
) -> Record:
    error = outcome.error
    extra: dict[str, Any] = error.extra if error else {}
    key = request.META.get("HTTP_IDEMPOTENCY_KEY", "")
    return Record(
        at=time.monotonic(),
        request_id=response["X-Request-Id"],
        client_id=outcome.client_id,
        account_id=outcome.account_id,
        method=_text(request.method or "", METHOD_LENGTH),
        path=_text(request.path, PATH_LENGTH),
        status=response.status_code,
        code=error.code.value if error else "",
        reason=extra.get("reason", ""),
        order_reference=outcome.order_reference or extra.get("reference"),
        idempotency_key=_text(key, IDEMPOTENCY_KEY_LENGTH) or None,
        milliseconds=round(seconds * 1000),
        problems=_problems(extra.get("fields", {})),
        key_prefix=outcome.key_prefix,
    )


def _problems(fields: dict[str, list[str]]) -> str:
    """The first wrong fields with their messages, as JSON. The messages of the API have no values.

    A name that no field of the API can have came from the caller, and may be anything.
    """
    problems = {
        name if FIELD_NAME.fullmatch(name) else UNKNOWN_NAME: messages
        for name, messages in list(fields.items())[:MAX_PROBLEMS]
    }
    return json.dumps(problems)


def _text(value: str, length: int) -> str:
    """The value as PostgreSQL can store it and pages can show it, no longer than its column."""
    if len(value) <= length and value.isascii() and value.isprintable():
        return value
    return CONTROL.sub("\ufffd", value[:length]).encode("utf-8", "replace").decode()


def _collect(record: Record) -> None:
    with _lock:
        if record.code:
            _refusals[record.key_prefix] += 1
        too_many = bool(record.code) and _refusals[record.key_prefix] > MAX_REFUSALS
        if not too_many and len(_waiting) < MAX_WAITING:
            _waiting.append(record)


def write_records() -> None:
    """Writes the records since the last call. If the database fails, they wait for the next.

    The thread keeps its connection: a new one costs more processor time than the records.
    """
    with _lock:
        records = _waiting.copy()
        _waiting.clear()
        left_out = sum(max(0, times - MAX_REFUSALS) for times in _refusals.values())
        _refusals.clear()
    if left_out:
        logger.warning("request_records_left_out", refusals=left_out)
    if not records:
        return
    try:
        close_old_connections()
        _insert(records)
    except Exception as error:  # of any kind: it would end the writing thread
        logger.error("request_records_not_written", cause=type(error).__name__)
        with _lock:
            _waiting[:0] = records[: MAX_WAITING - len(_waiting)]


def _insert(records: list[Record]) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp(), set_config('synchronous_commit', 'off', true)")
        start = cursor.fetchone()[0] - timedelta(seconds=time.monotonic())
        refused = [record.key_prefix for record in records if record.client_id is None]
        owners = _owners_of(cursor, refused) if refused else {}
        columns = ", ".join(COLUMNS)
        with cursor.copy(f"COPY accounts_requestrecord ({columns}) FROM STDIN") as copy:
            for record in records:
                owner = (record.client_id, record.account_id)
                if record.client_id is None:  # a key that does not work, or that nobody has
                    owner = owners.get(record.key_prefix, owner)
                if owner[0] is not None:
                    known = record._replace(client_id=owner[0], account_id=owner[1])
                    copy.write_row((start + timedelta(seconds=record.at), *known[1:-1]))


def _owners_of(cursor: Any, prefixes: list[str]) -> dict[str, tuple[int | None, int | None]]:
    """The client and the account of each of these keys that exists, whether it works or not."""
    cursor.execute(
        "SELECT key.prefix, client.id, client.account_id FROM accounts_apikey key"
        " JOIN accounts_apiclient client ON client.id = key.client_id"
        " WHERE key.prefix = ANY (%s)",
        [prefixes],
    )
    return {prefix: (client, account) for prefix, client, account in cursor.fetchall()}


def find_records(rows: QuerySet[RequestRecord], text: str) -> QuerySet[RequestRecord]:
    """The records with this request id, order reference or idempotency key, as it is written.

    Reads once, and nothing for a text that can be none of them.
    """
    is_reference = len(text) == ORDER_REFERENCE_LENGTH and text.isalnum()
    return find_requests(
        rows,
        request_id=_as_uuid(text),
        order_reference=text.upper() if is_reference else None,
        idempotency_key=text if text == _text(text, IDEMPOTENCY_KEY_LENGTH) else None,
    )


def find_requests(
    rows: QuerySet[RequestRecord],
    *,
    request_id: UUID | None = None,
    order_reference: str | None = None,
    idempotency_key: str | None = None,
) -> QuerySet[RequestRecord]:
    """The records with one of these values, of the newest MOST_FOUND of all accounts."""
    values = (request_id, order_reference, idempotency_key)
    if not any(values):
        return rows.none()
    with connection.cursor() as cursor:
        cursor.execute("SELECT accounts_find_requests(%s, %s, %s, %s)", [*values, MOST_FOUND])
        ids = [pk for (pk,) in cursor.fetchall()]
    return rows.filter(pk__in=ids)


def _as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def with_response(rows: QuerySet[RequestRecord], response: str) -> QuerySet[RequestRecord]:
    """The records with this response, which is one of RESPONSES."""
    return rows.exclude(code="") if response == REFUSED else rows.filter(code=response)


def delete_old_records(*, seconds: float) -> int:
    """Deletes the records that are older than RETENTION_REQUEST_DAYS; returns how many.

    After `seconds` it starts no new window. The oldest records have the lowest ids, so it stops at
    the first window of young records. It passes records of the future, which a wrong clock has left
    among the lowest ids.
    """
    days = settings.RETENTION_DAYS["requests"]
    end = time.monotonic() + seconds
    total = after = 0
    while time.monotonic() < end:
        with pause_afterwards(), connection.cursor() as cursor:
            cursor.execute(DELETE_WINDOW, {"after": after, "rows": WINDOW, "days": days})
            after, deleted, of_the_future, _ = cursor.fetchone()
        total += deleted
        if not deleted and not of_the_future:
            break
    return total
