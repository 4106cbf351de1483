"""A database with a long history, in the state that purchases would have left."""

from collections.abc import Iterator
from contextlib import contextmanager

from labs.bench.data import load_merchants_and_catalogue, register_keys
from labs.bench.history import fill
from tests.database import another_database, connect
from tests.live import owner_url
from tests.operators.back_office import World


@contextmanager
def database_with(orders: int) -> Iterator[None]:
    """A new database with this many past orders of 100 accounts, and some rows of every model.
    Django uses it inside the block."""
    name = f"pages_{orders}"
    with another_database(name):
        url = owner_url()
        register_keys(url)
        load_merchants_and_catalogue(url)
        with connect(name, autocommit=True) as database:
            # The rows of World take the ids after those of the history.
            for table in ("orders_order", "topups_fulfilment", "catalogue_vouchercode"):
                database.execute(f"SELECT setval('{table}_id_seq', %s)", [orders + 1])
            database.execute("SELECT setval('wallets_ledgerentry_id_seq', %s)", [orders + 10_000])
            fill(database, orders)
        World().grow(2)
        with connect(name, autocommit=True) as database:
            database.execute("VACUUM ANALYZE")
        yield
