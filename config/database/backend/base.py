"""A connection to a read-only server counts as lost."""

from django.db.backends.postgresql import base
from psycopg import Error


class DatabaseWrapper(base.DatabaseWrapper):
    """Django's connection to PostgreSQL, which also checks that the server can be written.

    After a failover, a connection may still lead to the former primary, now a read-only replica.
    Django would keep it for CONN_MAX_AGE, because the server responds.
    """

    def is_usable(self) -> bool:
        """Whether the server responds and can be written. Costs one round trip, like Django's.

        Django asks before the first query of a request, and after an error. If the connection is
        not usable, Django closes it and opens another one.
        """
        if self.connection is None:
            return False
        try:
            row = self.connection.execute("SHOW transaction_read_only").fetchone()
        except Error:
            return False
        return bool(row == ("off",))
