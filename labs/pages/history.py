"""A database with a long history, in the state that its purchases would have left."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from django.core.management import call_command

from accounts.models import Account, ApiClient
from figures.margin_counting import count_margins
from figures.stock_counting import count_stock
from labs.bench.data import load_merchants_and_catalogue, register_keys
from labs.pages.filling import built_later, fill
from tests.database import another_database, connect, kept_database
from tests.factories import Merchant, make_product
from tests.live import owner_url
from tests.merchants.people import make_member
from tests.operators.back_office import World, make_staff
from wallets.evidence.closes import close_days
from wallets.evidence.roots import sign_ledger

ACCOUNTS = 200
MORE_ACCOUNTS = int(os.environ.get("PAGES_ACCOUNTS", "0"))
KEPT = bool(os.environ.get("PAGES_KEEP") or os.environ.get("PAGES_REPORT"))
# Each of the newest five million orders has a request record; older records are deleted after
# their time. Every tenth request was refused instead.
REQUESTS = """
    INSERT INTO accounts_requestrecord
        (at, request_id, client_id, account_id, method, path, status, code, reason,
         order_reference, idempotency_key, milliseconds)
    SELECT bought, gen_random_uuid(), client, client, 'POST', '/api/v1/orders',
           CASE WHEN refused THEN 409 ELSE 201 END,
           CASE WHEN refused THEN 'order_refused' ELSE '' END,
           CASE WHEN refused THEN 'insufficient_balance' ELSE '' END,
           CASE WHEN NOT refused THEN reference END, 'past-' || n, 4
      FROM history(%(first)s, %(last)s), LATERAL (SELECT n %% 10 = 9 AS refused) AS outcome
     WHERE n > %(total)s - 5000000
"""
# The last fifth of the orders, or a million, in six days. Every thousandth response was lost.
KEYS = """
    INSERT INTO idempotency_idempotencyrecord
        (client_id, key, fingerprint, attempt, created_at, started_at, order_reference, bought_at,
         response)
    SELECT client, 'past-' || n, sha256('history'), 1, claimed, claimed, reference, claimed,
           CASE WHEN n %% 1000 > 0 THEN decode(repeat('5e', 440), 'hex') END
      FROM history(%(first)s, %(last)s),
           LATERAL (SELECT least(%(total)s / 5, 1000000) AS keys) AS kept,
           LATERAL (SELECT now() - interval '6 days' * (%(total)s - n) / keys AS claimed) AS times
     WHERE n > %(total)s - keys
"""
# One entry for five orders, by three members of staff and, sometimes, by a command.
TRAIL = """
    INSERT INTO audit_auditentry
        (actor_id, actor_name, action, object_type, object_id, reference, request_id, address,
         changes, created_at)
    SELECT CASE WHEN n %% 50 > 0 THEN (SELECT min(id) FROM auth_user) + n / 5 %% 3 END,
           CASE WHEN n %% 50 = 0 THEN 'shell:anna' ELSE '' END,
           CASE n / 5 %% 4 WHEN 0 THEN 'price_changed' WHEN 1 THEN 'account_changed'
                           ELSE 'code_revealed' END,
           CASE n / 5 %% 4 WHEN 0 THEN 'catalogue.shelf' WHEN 1 THEN 'accounts.account'
                           ELSE 'catalogue.vouchercode' END,
           CASE n / 5 %% 4 WHEN 0 THEN goods WHEN 1 THEN client ELSE n END::text,
           CASE WHEN n / 5 %% 4 > 1 THEN reference ELSE '' END, gen_random_uuid()::text,
           '192.0.2.1', '{}', bought
      FROM history(%(first)s, %(last)s) WHERE n %% 5 = 0
"""
ANNOUNCEMENTS = """
    INSERT INTO telegram_announcement
        (fulfilment_id, state, chat_id, message_id, attempts, lost_answers, asks, repeats,
         repeat_requested, last_error, announced_at, created_at)
    SELECT n, CASE WHEN status = 'pending' THEN 'announced' ELSE 'ended' END, -1001, n, 1, 0, '', 0,
           false, '', bought, bought
      FROM history(%(first)s, %(last)s) WHERE topup
"""
EMAILS = """
    INSERT INTO merchants_email (kind, "to", facts, attempts, created_at, sent_at)
    SELECT 'low_balance', 'finance' || client || '@merchant.example', '{}', 1, bought, bought
      FROM history(%(first)s, %(last)s) WHERE n %% 50 = 0
"""
# Codes in stock for seven orders in twenty, in batches of 10,000 codes. Every hundredth is held.
# The sold codes of a shelf that follow each other are a batch, too. A fifth of the batches were
# bought in another currency. The holds with an odd id are void.
STOCK = """
    INSERT INTO catalogue_codehold (reason, held_by, held_at, voided_at)
    SELECT 'recalled', 'admin:anna', now() - interval '1 day' * (200 - n),
           CASE WHEN n %% 2 = 1 THEN now() END
      FROM generate_series(1, 200) AS n;
    INSERT INTO catalogue_vouchercode (id, shelf_id, position, sealed, digest, hold_id, imported_at)
    SELECT {total} + k, 1 + (k - 1) / 10000 %% 50, {total} + k, decode(repeat('01', 75), 'hex'),
           sha256(({total} + k)::text::bytea),
           CASE WHEN k %% 100 = 0
                THEN (SELECT min(id) FROM catalogue_codehold) + k / 100 %% 200 END,
           now() - interval '1 day'
      FROM generate_series(1, {total} * 7 / 20) AS k;
    INSERT INTO catalogue_codedigest (digest, code_id)
    SELECT catalogue_half_digest(digest), id FROM catalogue_vouchercode WHERE id > {total}
     ORDER BY 1;
    INSERT INTO catalogue_batch
        (shelf_id, first_code, last_code, supplier, invoice, unit_cost, cost_currency, file_digest,
         imported_by, imported_at)
    SELECT shelf_id, min(id), max(id), 'Supplier ' || 1 + shelf_id %% 5, 'INV-' || min(id), 0.05,
           CASE WHEN shelf_id %% 5 = 0 THEN 'GBP' ELSE 'USD' END, sha256(min(id)::text::bytea),
           'admin:anna', min(imported_at)
      FROM (SELECT id, shelf_id, imported_at, CASE WHEN id > {total} THEN (id - {total} - 1) / 10000
                   ELSE row_number() OVER (PARTITION BY shelf_id ORDER BY id) - id END AS part
              FROM catalogue_vouchercode) AS code
     GROUP BY shelf_id, id > {total}, part;
    UPDATE catalogue_shelf AS shelf SET available_stock = in_stock
      FROM (SELECT shelf_id, count(*) AS in_stock FROM catalogue_vouchercode
             WHERE order_id IS NULL AND hold_id IS NULL GROUP BY shelf_id) AS codes
     WHERE shelf_id = shelf.id;
    SELECT setval('catalogue_vouchercode_id_seq', (SELECT max(id) FROM catalogue_vouchercode)),
           setval('catalogue_code_position', (SELECT max(position) FROM catalogue_vouchercode));
    INSERT INTO catalogue_referencelink (account_id, shelf_id, reference)
    SELECT account.id, shelf.id, 'sku-' || shelf.id
      FROM accounts_account AS account, catalogue_shelf AS shelf
"""
SALES = """
    INSERT INTO figures_dailysales
        (day, account_id, shelf_id, topup_product_id, orders, quantity, amount)
    SELECT (sale.created_at AT TIME ZONE 'UTC')::date, client_id, shelf_id, product_id, count(*),
           sum(quantity), sum(total_price)
      FROM orders_order AS sale
      LEFT JOIN topups_fulfilment AS fulfilment ON fulfilment.id = fulfilment_id
     GROUP BY 1, 2, 3, 4;
    INSERT INTO figures_dailytotal
        (day, currency, account_id, shelf_id, topup_product_id, orders, quantity, amount)
    SELECT day, 'USD', account_id, shelf_id, topup_product_id, sum(orders), sum(quantity),
           sum(amount)
      FROM figures_dailysales
     GROUP BY day, GROUPING SETS ((account_id), (shelf_id, topup_product_id), ());
    INSERT INTO figures_countedsales (client_id, orders)
    SELECT client_id, orders FROM orders_clientcounter
"""
# The stock of each day before was that of today.
STOCK_BEFORE = """
    INSERT INTO figures_dailystock (day, shelf_id, batch_id, codes)
    SELECT day - age, shelf_id, batch_id, codes
      FROM figures_dailystock, generate_series(1, 730) AS age
"""
# Each account has one of 40 price lists, whose prices changed every month. The price of each
# product that is bought changed a thousand times. Each shelf and top-up product has a stock limit
# of its own; each shelf was below it every fifth day of a year. There is a rate for each day.
TERMS = """
    INSERT INTO catalogue_pricelist (name, currency)
    SELECT 'Terms ' || n, 'USD' FROM generate_series(1, 40) AS n;
    UPDATE accounts_account SET price_list_id = list.id
      FROM catalogue_pricelist AS list WHERE list.name = 'Terms ' || 1 + accounts_account.id %% 40;
    INSERT INTO catalogue_pricelistentry
        (price_list_id, shelf_id, topup_product_id, for_sale, price, valid_from, valid_until,
         added_by, ended_by)
    SELECT list.id, shelf_id, topup_id, true, 0.07, now() - interval '30 days' * age,
           CASE WHEN age > 1 THEN now() - interval '30 days' * (age - 1) END, 'admin:anna', ''
      FROM catalogue_pricelist AS list, generate_series(24, 1, -1) AS age,
           (SELECT id, NULL FROM catalogue_shelf UNION ALL SELECT NULL, id FROM topups_topupproduct)
           AS thing(shelf_id, topup_id);
    INSERT INTO catalogue_shelfpricechange (shelf_id, before, after, changed_at, changed_by)
    SELECT 1 + n %% 50, 0.08, 0.07, now() - interval '20 minutes' * (50001 - n), 'admin:anna'
      FROM generate_series(1, 50000) AS n;
    INSERT INTO topups_topuppricechange (product_id, before, after, changed_at, changed_by)
    SELECT shelf_id, before, after, changed_at, changed_by FROM catalogue_shelfpricechange
     WHERE before IS NOT NULL;
    INSERT INTO figures_stockthreshold (shelf_id, topup_product_id, stock, days)
    SELECT id, NULL::bigint, 10, 3 FROM catalogue_shelf
     UNION ALL SELECT NULL, id, 10, 3 FROM topups_topupproduct;
    INSERT INTO warnings_staffwarning (kind, subject, text, path, raised_at, ended_at)
    SELECT 'low_stock', 'shelf ' || id, 'Product ' || id || ': 9 left', '',
           now() - interval '5 days' * age, now() - interval '5 days' * age + interval '1 day'
      FROM generate_series(73, 1, -1) AS age, catalogue_shelf;
    INSERT INTO figures_exchangerate (currency, "into", day, rate)
    SELECT 'GBP', 'USD', (now() AT TIME ZONE 'UTC')::date - age, 1.25
      FROM generate_series(731, 0, -1) AS age
"""
# Accounts that bought nothing. Each has three clients and six keys, and two accounts have five
# members. A fifth of the members are signed in. Each hundred accounts have a member of staff.
PEOPLE = """
    INSERT INTO accounts_account (name, currency, enabled, price_list_id)
    SELECT 'Small ' || n, 'USD', n %% 50 > 0, list.first + n %% 40
      FROM generate_series(1, {accounts}) AS n,
           (SELECT min(id) FROM catalogue_pricelist) AS list(first);
    INSERT INTO wallets_wallet (account_id, balance)
    SELECT id, 0 FROM accounts_account WHERE name LIKE 'Small %%';
    INSERT INTO merchants_balancealert (account_id, level, below)
    SELECT id, 1, true FROM accounts_account WHERE name LIKE 'Small %%';
    INSERT INTO accounts_apiclient
        (account_id, name, enabled, rate_limit_per_minute, allowed_networks)
    SELECT id, name || ' shop ' || n, true, 60, '{{}}'
      FROM accounts_account, generate_series(1, 3) AS n WHERE name LIKE 'Small %%';
    INSERT INTO accounts_apikey (client_id, prefix, digest, revoked_at)
    SELECT id, lpad(to_hex(2 * id + n), 12, '0'), encode(sha256((2 * id + n)::text::bytea), 'hex'),
           CASE WHEN n = 0 THEN now() END
      FROM accounts_apiclient, generate_series(0, 1) AS n WHERE name LIKE 'Small %%';
    INSERT INTO catalogue_referencelink (account_id, shelf_id, reference)
    SELECT id, n, 'sku-' || n FROM accounts_account, generate_series(1, 5) AS n
     WHERE name LIKE 'Small %%';
    INSERT INTO auth_user
        (password, is_superuser, username, first_name, last_name, email, is_staff, is_active,
         date_joined)
    SELECT '!', false, 'small-' || n || '@merchant.example', '', '',
           'small-' || n || '@merchant.example', n > {accounts} * 5 / 2, true, now()
      FROM generate_series(1, {accounts} * 5 / 2 + {accounts} / 100) AS n;
    INSERT INTO auth_user_groups (user_id, group_id)
    SELECT id, staff_groups.first + id %% 4
      FROM auth_user, (SELECT min(id) FROM auth_group) AS staff_groups(first)
     WHERE username LIKE 'small-%%' AND is_staff;
    INSERT INTO merchants_membership (role, account_id, user_id)
    SELECT CASE WHEN number %% 5 < 2 THEN 'owner' ELSE 'viewer' END,
           (SELECT min(id) FROM accounts_account WHERE name LIKE 'Small %%') + number * 2 / 5, id
      FROM (SELECT id, row_number() OVER (ORDER BY id) - 1 AS number FROM auth_user
             WHERE username LIKE 'small-%%' AND NOT is_staff) AS member;
    INSERT INTO django_session (session_key, session_data, expire_date)
    SELECT 'small-' || user_id, '', now() + interval '1 day' * (user_id %% 9 - 1)
      FROM merchants_membership WHERE user_id %% 5 = 0;
    INSERT INTO merchants_membersession (address, device, session_id, user_id)
    SELECT '192.0.2.1', 'Firefox', 'small-' || user_id, user_id
      FROM merchants_membership WHERE user_id %% 5 = 0
"""
# Nobody bought these, and their prices never changed.
QUIET = """
    INSERT INTO catalogue_product (name, type, currency, active)
    SELECT 'Quiet ' || n, 'voucher', 'USD', true FROM generate_series(1, 60) AS n;
    SET session_replication_role = replica;
    UPDATE catalogue_shelf SET price = 0.07 WHERE price IS NULL
"""
# Refunds that were carried out, all at once, so the triggers continue the chains of the wallets.
REFUNDS = """
    INSERT INTO wallets_ledgerentry
        (wallet_id, kind, counterpart, amount, order_reference, actor, balance_after)
    SELECT account_id, 'refund', 'sales', amount, order_reference, 'system', 0
      FROM topups_fulfilment WHERE refunded_at IS NOT NULL
"""
# The wallets were filled before the first order.
DEPOSITS = """
    UPDATE wallets_ledgerentry
       SET created_at = early,
           chain = wallets_chained(
               NULL, wallet_id,
               wallets_shown_fields(wallet_id, kind, counterpart, amount, early, NULL, note),
               balance_after, wallets_hidden_hash(salt, actor, booking_reference, note))
      FROM (SELECT now() - interval '731 days') AS time(early);
    UPDATE wallets_wallet SET chain = entry.chain
      FROM wallets_ledgerentry AS entry WHERE wallet_id = account_id
"""
NEW_PURCHASES = 60  # of account 1, whose codes can be opened, unlike those of the history


@contextmanager
def database_with(orders: int) -> Iterator[None]:
    """A database with this many past orders of 200 accounts, and rows of every model. Django uses
    it inside the block. With PAGES_KEEP, it stays for the next run."""
    name = f"pages_{orders}" + (f"_{MORE_ACCOUNTS}" if MORE_ACCOUNTS else "")
    with kept_database(name) if KEPT else another_database(name):
        if Account.objects.exists():
            call_command("migrate", verbosity=0)
        else:
            load(name, orders)
        yield


def load(name: str, orders: int) -> None:
    """Fills the new database of Django's connection, whose name is `name`."""
    url = owner_url()
    register_keys(url)
    load_merchants_and_catalogue(url, merchants=ACCOUNTS)
    for _ in range(3):
        make_staff()
    with connect(name, autocommit=True) as database, built_later(database):
        database.execute("SELECT setval('wallets_ledgerentry_id_seq', %s)", [orders + 10_000])
        run(database, QUIET)
        run(database, DEPOSITS)
        more = (REQUESTS, KEYS, TRAIL, ANNOUNCEMENTS, EMAILS)
        fill(database, orders, more=more)
        database.execute("SET session_replication_role = replica")
        for script in (STOCK, SALES, TERMS, PEOPLE):
            words = {"total": orders, "accounts": MORE_ACCOUNTS}
            run(database, script.format(**words).replace("%%", "%"))
    while count_margins():
        pass
    count_stock()
    with connect(name, autocommit=True) as database:
        run(database, STOCK_BEFORE)
        run(database, REFUNDS)
    World().grow(2)
    with connect(name, autocommit=True) as database:
        database.execute("SET session_replication_role = replica")
        run(database, "DELETE FROM wallets_walletclose; DELETE FROM wallets_dailyclose")
    product = make_product(codes=NEW_PURCHASES, price="0.07")
    merchant = Merchant(ApiClient.objects.get(pk=1))
    for _ in range(NEW_PURCHASES):
        response = merchant.buy(product_id=product.pk, quantity=1)
        assert response.status_code == 201, response.content
    make_staff(superuser=True)
    make_member(merchant.account)
    sign_ledger()
    close_days()
    with connect(name, autocommit=True) as database:
        database.execute("VACUUM ANALYZE")


def run(database: psycopg.Connection, script: str) -> None:
    """Runs the statements of the script one after the other."""
    for statement in script.split(";"):
        database.execute(statement)
