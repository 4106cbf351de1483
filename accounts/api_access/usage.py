"""The last use of each key, and the number of requests of each client today.

Only pages for people show these numbers, so they cost requests no round trip: each web process
counts in memory and writes the counts of all clients every few seconds. A process that ends loses
its last few seconds.
"""

import threading
from collections import Counter
from datetime import datetime

import structlog
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import ApiClient

logger = structlog.get_logger(__name__)

_lock = threading.Lock()
_requests: Counter[int] = Counter()  # by client
_last_use: dict[str, datetime] = {}  # by the prefix of a key

# Both statements lock rows in id order, so two processes cannot deadlock. Counts of clients that no
# longer exist are dropped.
_ADD_REQUESTS = """
    INSERT INTO accounts_clientuse AS used (client_id, day, requests)
    SELECT client.id, %s, counted.requests
      FROM unnest(%s::bigint[], %s::bigint[]) AS counted (client_id, requests)
      JOIN accounts_apiclient client ON client.id = counted.client_id
     ORDER BY client.id
    ON CONFLICT (client_id) DO UPDATE
       SET day = greatest(used.day, excluded.day),
           requests = excluded.requests + CASE WHEN used.day < excluded.day THEN 0
                                               ELSE used.requests END
"""
_SET_LAST_USE = """
    UPDATE accounts_apikey
       SET last_used_at = latest.used_at
      FROM (SELECT key.id, lately.used_at
              FROM unnest(%s::text[], %s::timestamptz[]) AS lately (prefix, used_at)
              JOIN accounts_apikey key ON key.prefix = lately.prefix
             ORDER BY key.id
               FOR NO KEY UPDATE OF key) AS latest
     WHERE accounts_apikey.id = latest.id
       AND (last_used_at IS NULL OR last_used_at < latest.used_at)
"""


def note_use(client: ApiClient) -> None:
    """Counts one request of the client, made with the key `client.key_prefix`."""
    with _lock:
        _requests[client.pk] += 1
        _last_use[client.key_prefix] = timezone.now()


def write_use() -> None:
    """Writes the counts since the last call. If the database fails, these counts are lost."""
    with _lock:
        requests, last_use = dict(_requests), dict(_last_use)
        _requests.clear()
        _last_use.clear()
    if not requests:
        return
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL synchronous_commit = off")
            cursor.execute(
                _ADD_REQUESTS, [timezone.now().date(), list(requests), list(requests.values())]
            )
            cursor.execute(_SET_LAST_USE, [list(last_use), list(last_use.values())])
    except Exception as error:  # of any kind: it would end the writing thread
        logger.error("use_not_written", cause=type(error).__name__)
    finally:
        connection.close()  # needed only every few seconds
