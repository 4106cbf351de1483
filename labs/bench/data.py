"""Loads the benchmark databases: merchants, a catalogue, codes and past orders.

SQL writes all rows but the codes: Python seals each for its row. Codes are loaded with triggers off
(`session_replication_role`), so `available_stock` is set here too.
"""

import hashlib
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.db import connection as django_connection

from catalogue.stock.codes import Code, code_digester, code_sealer
from core.database.key_ring import key_ring
from orders.codes import order_secret

MERCHANTS = 100
SHELVES = 50
BALANCE = 1_000_000_000
PRICE = "0.07"
# Dead rows of a CALL stay until it ends, and each of its purchases scans them: keep calls short.
SALES_PER_CALL = 10_000
MAX_IDLE_WAIT = 30.0  # seconds
NO_LIMIT = 2_000_000_000  # requests per minute, which are still counted
# Ids start at 1 in a new database. This client owns the many orders that are listed; no load
# generator buys with it.
COLLECTOR = MERCHANTS + 1
WITH_PRICE_LIST = range(COLLECTOR + 1, COLLECTOR + MERCHANTS + 1)  # the clients with a price list


@dataclass(frozen=True)
class Keys:
    """The API keys by client id."""

    by_client: dict[int, str]


def register_keys(url: str) -> None:
    """Registers the encryption keys in a new database. From then on this process seals codes for
    this database and for all copies of it."""
    settings = django_connection.settings_dict
    own_name, settings["NAME"] = settings["NAME"], urlsplit(url).path.removeprefix("/")
    try:
        key_ring()
    finally:
        django_connection.close()
        settings["NAME"] = own_name


def key_ids() -> str:
    """The ids of the encryption keys in hexadecimal, as a purchase names them."""
    return key_ring().ids.hex()


def load_merchants_and_catalogue(url: str, *, merchants: int = MERCHANTS) -> Keys:
    """Loads merchants and one more, each with a full wallet, one client and one key.

    Loads 50 products per kind, too. Each top-up product has one field, a dropdown. Returns the
    keys.
    """
    keys = {client: _new_key() for client in range(1, merchants + 2)}
    with psycopg.connect(url) as connection:
        run = connection.execute
        last = len(keys)
        run(
            "INSERT INTO accounts_account (name, currency, enabled)"
            " SELECT 'Merchant ' || n, 'USD', true FROM generate_series(1, %s) n",
            [last],
        )
        run("INSERT INTO wallets_wallet (account_id, balance) SELECT id, 0 FROM accounts_account")
        run(
            "INSERT INTO wallets_ledgerentry"
            " (wallet_id, kind, counterpart, amount, balance_after, actor, booking_reference)"
            " SELECT account_id, 'deposit', 'bank', %s, 0, 'bench', account_id FROM wallets_wallet",
            [BALANCE],
        )
        run(
            "INSERT INTO accounts_apiclient"
            " (account_id, name, enabled, rate_limit_per_minute, allowed_networks)"
            " SELECT id, name, true, %s, '{}' FROM accounts_account ORDER BY id",
            [NO_LIMIT],
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO accounts_apikey (client_id, prefix, digest) VALUES (%s, %s, %s)",
                [
                    (client, key.split("_")[1], hashlib.sha256(key.encode()).hexdigest())
                    for client, key in keys.items()
                ],
            )
        run(
            "INSERT INTO catalogue_product (name, type, currency, active)"
            " SELECT 'Product ' || n, 'voucher', 'USD', true FROM generate_series(1, %s) n",
            [SHELVES],
        )
        run("UPDATE catalogue_shelf SET price = %s", [PRICE])
        run(
            "INSERT INTO topups_topupproduct"
            " (name, currency, price, available_stock, active, published, announce)"
            " SELECT 'Gems ' || n, 'USD', %s, 100000000, true, true, false"
            "   FROM generate_series(1, %s) n",
            [PRICE, SHELVES],
        )
        run(
            "INSERT INTO topups_topupfield"
            " (product_id, number, name, label, type, required, position)"
            " SELECT id, 1, 'server', 'Server', 'dropdown', true, 0 FROM topups_topupproduct"
        )
        run(
            "INSERT INTO topups_topupfieldoption (field_id, value, label, position)"
            " SELECT id, value, upper(value), 0"
            "   FROM topups_topupfield, unnest(ARRAY['eu', 'us']) AS value"
        )
    return Keys(keys)


def add_price_list(url: str) -> None:
    """Gives the accounts of WITH_PRICE_LIST a price list with 15 % off each product."""
    with psycopg.connect(url) as connection:
        connection.execute("""
            INSERT INTO catalogue_pricelist (name, currency) VALUES ('Wholesale', 'USD')
        """)
        connection.execute("""
            INSERT INTO catalogue_pricelistentry
                   (price_list_id, product_id, for_sale, percent_off, added_by, ended_by)
            SELECT list.id, product.id, true, 15, 'bench', ''
              FROM catalogue_pricelist AS list, catalogue_product AS product
        """)
        connection.execute(
            "UPDATE accounts_account SET price_list_id = (SELECT id FROM catalogue_pricelist)"
            " WHERE id BETWEEN %s AND %s",
            [WITH_PRICE_LIST[0], WITH_PRICE_LIST[-1]],
        )


def load_codes(url: str, number: int, *, hot: int = 0) -> None:
    """Puts `number` codes in stock, spread over all shelves, and `hot` more on the first shelf."""
    digest, seal = code_digester(), code_sealer()
    with psycopg.connect(url) as connection:
        run = connection.execute
        run("SET LOCAL session_replication_role = replica")
        with connection.cursor().copy(
            "COPY catalogue_vouchercode (shelf_id, sealed, digest) FROM STDIN"
        ) as copy:
            for n in range(number + hot):
                code = Code(f"BENCH-{n:012d}", f"SN{n:010d}", "1234")
                key = digest(code.code)
                shelf = 1 + n % SHELVES if n < number else 1
                copy.write_row((shelf, seal(code, key), key))
        run(
            "INSERT INTO catalogue_codedigest (digest, code_id)"
            " SELECT catalogue_half_digest(digest), id FROM catalogue_vouchercode ORDER BY 1"
        )
        run(
            "UPDATE catalogue_shelf shelf SET available_stock = ("
            "SELECT count(*) FROM catalogue_vouchercode code"
            " WHERE code.shelf_id = shelf.id AND order_id IS NULL AND hold_id IS NULL)"
        )


@dataclass
class FreshCodes:
    """New codes; the numbers continue from file to file."""

    next_code: int = field(default=0)

    def write(self, path: Path, number: int) -> None:
        """A file for `import_codes`."""
        with path.open("w") as file:
            file.write("code,serial_number,pin_code\n")
            file.writelines(
                f"{code.code},{code.serial_number},{code.pin_code}\n" for code in self._take(number)
            )

    def write_sealed(self, path: Path, number: int) -> None:
        """A file for COPY with the same kind of codes, sealed for the first shelf."""
        digest, seal = code_digester(), code_sealer()
        with path.open("w") as file:
            for code in self._take(number):
                key = digest(code.code)
                file.write(f"1\t\\\\x{seal(code, key).hex()}\t\\\\x{key.hex()}\n")

    def _take(self, number: int) -> Iterator[Code]:
        first, self.next_code = self.next_code, self.next_code + number
        for n in range(first, first + number):
            yield Code(f"FRESH-{n:012d}", f"SN{n:010d}", f"{n % 10_000:04d}")


def sell(url: str, number: int, *, quantity: int = 1) -> None:
    """Makes this many purchases for COLLECTOR with the SQL functions of the service.

    Each transaction holds a thousand purchases; one commit per purchase would take most of an hour.
    The stored responses have a realistic size.
    """
    procedure = f"""
        CREATE OR REPLACE PROCEDURE bench_sell(order_references text[], secrets bytea[], keys bytea)
        LANGUAGE plpgsql AS $$
        DECLARE
            claim record;
        BEGIN
            FOR sale IN 1..cardinality(order_references) LOOP
                claim := idempotency_claim(
                    {COLLECTOR}, gen_random_uuid()::text, sha256(sale::text::bytea), 300);
                PERFORM orders_purchase_vouchers(
                    claim.record_id, claim.attempt, order_references[sale],
                    {COLLECTOR}, {COLLECTOR}, 1 + sale % {SHELVES}, NULL, NULL, {quantity},
                    keys, secrets[sale]);
                PERFORM idempotency_store_response(
                    claim.record_id, claim.attempt, decode(repeat('5e', 440), 'hex'));
                IF sale % 1000 = 0 THEN
                    COMMIT;
                END IF;
            END LOOP;
        END $$
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(procedure)
        for done in range(0, number, SALES_PER_CALL):
            references = [f"{n:026d}" for n in range(done, min(done + SALES_PER_CALL, number))]
            order_secrets = [
                order_secret(client_id=COLLECTOR, reference=each) for each in references
            ]
            connection.execute(
                "CALL bench_sell(%s, %s, %s)", [references, order_secrets, key_ring().ids]
            )
        connection.execute("DROP PROCEDURE bench_sell")


def vacuum(url: str) -> None:
    """Does the work of autovacuum now, so it does not run during a measurement."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")
        connection.execute("CHECKPOINT")


def wait_until_idle(url: str) -> None:
    """Writes a checkpoint and waits until autovacuum is idle, for at most MAX_IDLE_WAIT seconds.

    This work of one run would otherwise slow down the next run.
    """
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CHECKPOINT")
        deadline = time.monotonic() + MAX_IDLE_WAIT
        while time.monotonic() < deadline:
            busy = connection.execute(
                "SELECT FROM pg_stat_activity WHERE backend_type = 'autovacuum worker'"
            ).fetchone()
            if busy is None:
                return
            time.sleep(0.2)


def _new_key() -> str:
    return f"vk_{secrets.token_hex(6)}_{secrets.token_hex(32)}"
