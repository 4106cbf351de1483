"""The connections of the service to PostgreSQL."""

from collections.abc import Mapping
from typing import Any

TIMEOUTS = (
    # A statement or an idle transaction ends long before a retry may take over its idempotency key,
    # after five minutes.
    "-c statement_timeout=20s -c lock_timeout=10s -c idle_in_transaction_session_timeout=20s"
)


def database_settings(url: Mapping[str, Any]) -> dict[str, Any]:
    """Django's settings of a connection; `url` has the parts of a PostgreSQL URL."""
    return {
        **url,
        "ENGINE": "core.database.backend",  # does not keep connections to a read-only server
        "ATOMIC_REQUESTS": False,
        "CONN_MAX_AGE": 600,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {
            "connect_timeout": 5,
            # These end the connection within 30 seconds when the database host stops responding.
            "tcp_user_timeout": 30_000,
            "keepalives_idle": 15,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            **url.get("OPTIONS", {}),  # options of the URL, such as sslmode
            "options": TIMEOUTS,
        },
    }
