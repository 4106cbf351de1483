"""Connections to the test server that bypass Django, whose connections the forks must not share."""

from typing import Any

import psycopg
from django.db import connection


def connect(database: str, **options: Any) -> psycopg.Connection:
    """A connection to a database of the test server."""
    parameters = connection.get_connection_params()
    wanted = {
        name: parameters[name]
        for name in ("host", "port", "user", "password")
        if name in parameters
    }
    return psycopg.connect(**wanted, dbname=database, **options)
