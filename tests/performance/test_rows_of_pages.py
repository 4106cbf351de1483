"""Pages of the back office read few rows of long tables, also for what is rare or old."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiClient
from accounts.preferences.languages import language_of
from cases.models import Case
from operators.sign_in.models import TwoPersonChange
from tests.concurrency.racing import execute
from tests.factories import (
    make_batch,
    make_merchant,
    make_product,
    own_shelf,
)
from tests.operators.back_office import list_url, make_staff, signed_in, url
from tests.performance.plans import recorded_plans, rows_read
from wallets.models import AnnouncedTransfer, WalletClose
from wallets.transfers import newly_received

pytestmark = pytest.mark.django_db

ROWS = 12_000
MOST_ROWS = 10_000  # that a statement of a page reads
# Orders of one code, all of one batch. A close of each day. Transfers that nobody received. Users,
# of whom few are staff. Accounts, each with a client and a key. Codes that were revealed.
LONG_TABLES = """
    SET LOCAL session_replication_role = replica;
    INSERT INTO orders_order
        (reference, client_id, number, shelf_id, quantity, units_per_sale, unit_price, total_price,
         currency, codes_mac)
    SELECT 'OLD' || lpad(n::text, 23, '0'), {client}, n, {shelf}, 1, 1, 1, 1, 'USD', sha256('')
      FROM generate_series(1, {rows}) AS n;
    INSERT INTO catalogue_vouchercode (shelf_id, sealed, digest, order_id)
    SELECT {shelf}, decode(repeat('01', 75), 'hex'), sha256(reference::bytea), id
      FROM orders_order WHERE reference LIKE 'OLD%' ORDER BY id;
    UPDATE catalogue_batch
       SET first_code = ends.first, last_code = ends.last
      FROM (SELECT min(id), max(id) FROM catalogue_vouchercode) AS ends(first, last)
     WHERE catalogue_batch.id = {batch};
    INSERT INTO wallets_walletclose
        (wallet_id, day, opening, deposits, payouts, adjustments, purchases, refunds, credits,
         closing)
    SELECT {account}, DATE '1980-01-01' + n, 0, 0, 0, 0, 0, 0, 0, 0
      FROM generate_series(1, {rows}) AS n;
    INSERT INTO wallets_announcedtransfer (account_id, amount, reference, announced_by_id)
    SELECT {account}, 1, 'transfer ' || n, {user} FROM generate_series(1, {rows}) AS n;
    INSERT INTO auth_user
        (password, is_superuser, username, first_name, last_name, email, is_staff, is_active,
         date_joined)
    SELECT '', false, 'member ' || n, '', '', '', false, true, now()
      FROM generate_series(1, {rows}) AS n;
    INSERT INTO accounts_account (name, currency, enabled)
    SELECT 'Account ' || n, 'USD', true FROM generate_series(1, {accounts}) AS n;
    INSERT INTO accounts_apiclient
        (account_id, name, enabled, rate_limit_per_minute, allowed_networks)
    SELECT id, name, true, 60, '{{}}' FROM accounts_account WHERE name LIKE 'Account %';
    INSERT INTO accounts_apikey (client_id, prefix, digest)
    SELECT id, lpad(to_hex(id), 12, '0'), '' FROM accounts_apiclient WHERE name LIKE 'Account %';
    INSERT INTO audit_auditentry
        (actor_name, action, object_type, object_id, reference, request_id, changes)
    SELECT 'shell:anna', 'code_revealed', 'catalogue.vouchercode', id, '', '', '{{}}'
      FROM catalogue_vouchercode WHERE order_id % 12 = 0;
    SET LOCAL session_replication_role = origin;
    ANALYZE
"""

# Orders of one batch, of 200 clients. Staff saw the codes.
OF_MANY_CLIENTS = """
    SET LOCAL session_replication_role = replica;
    INSERT INTO accounts_apiclient
        (account_id, name, enabled, rate_limit_per_minute, allowed_networks)
    SELECT {account}, 'Shop ' || n, true, 60, '{{}}' FROM generate_series(1, 200) AS n;
    INSERT INTO orders_order
        (reference, client_id, number, shelf_id, quantity, units_per_sale, unit_price, total_price,
         currency, codes_mac)
    SELECT 'OLD' || lpad((10 * client.id + n)::text, 23, '0'), client.id, n, {shelf}, 1, 1, 1, 1,
           'USD', sha256('')
      FROM accounts_apiclient AS client, generate_series(1, 10) AS n WHERE name LIKE 'Shop %';
    UPDATE catalogue_vouchercode AS code SET order_id = sale.id
      FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM orders_order) AS sale
     WHERE code.id = {first} + place - 1;
    INSERT INTO audit_auditentry
        (actor_name, action, object_type, object_id, reference, request_id, changes)
    SELECT 'shell:anna', 'code_revealed', 'catalogue.vouchercode', id, '', '', '{{}}'
      FROM catalogue_vouchercode;
    SET LOCAL session_replication_role = origin;
    ANALYZE
"""
# Transfers that were received.
RECEIVED = """
    SET LOCAL session_replication_role = replica;
    INSERT INTO wallets_ledgerentry
        (wallet_id, kind, counterpart, amount, balance_after, booking_reference, actor, chain)
    SELECT {account}, 'deposit', 'bank', 1, n, 'tr' || n, 'test', ''
      FROM generate_series(1, {rows}) AS n;
    INSERT INTO wallets_bookingkey (key, entry_id)
    SELECT booking_reference, id FROM wallets_ledgerentry WHERE booking_reference LIKE 'tr%';
    INSERT INTO wallets_announcedtransfer (account_id, amount, reference, announced_by_id)
    SELECT {account}, 1, 'TR ' || n, {user} FROM generate_series(1, {rows} + 1) AS n;
    SET LOCAL session_replication_role = origin;
    ANALYZE
"""


def test_pages_read_few_rows() -> None:
    merchant, product = make_merchant(), make_product()
    shelf, browser = own_shelf(product), signed_in()
    batch = make_batch(shelf)
    ids: dict[str, Any] = {
        "account": merchant.account.pk,
        "client": merchant.client.pk,
        "shelf": shelf.pk,
        "batch": batch.pk,
        "user": make_staff().pk,
    }
    script = LONG_TABLES.format(rows=ROWS, accounts=ROWS // 3, **ids)
    for statement in script.split(";"):
        execute(statement)
    read = {}
    for page in (
        list_url(WalletClose, day_to="1984-06-30"),
        list_url(AnnouncedTransfer, state="received"),
        list_url(ApiClient, q="nothing-like-this"),
        list_url(Case),
        reverse("audit_trail"),
        reverse("who_saw_codes", query={"about": f"account:{merchant.account.pk}"}),
        url(batch, "recall"),
    ):
        with recorded_plans() as plans:
            assert browser.get(page).status_code == 200
        read[page] = max(rows_read(plan["Plan"]) for plan in plans)

    with recorded_plans() as plans:
        language_of("nobody@merchant.example")
    read["an email"] = max(rows_read(plan["Plan"]) for plan in plans)
    assert {page: rows for page, rows in read.items() if rows > MOST_ROWS} == {}


def test_pages_of_codes_read_the_clients_once() -> None:
    merchant, browser = make_merchant(), signed_in()
    shelf = own_shelf(make_product())
    batch = make_batch(shelf, 2_000)
    script = OF_MANY_CLIENTS.format(
        account=merchant.account.pk, shelf=shelf.pk, first=batch.first_code
    )
    for statement in script.split(";"):
        execute(statement)
    about = f"account:{merchant.account.pk}"
    for page, text in (
        (url(batch, "recall"), "OLD0"),
        (reverse("who_saw_codes", query={"about": about}), str(shelf)),
    ):
        with recorded_plans() as plans:
            assert text in browser.get(page).content.decode()
        assert max(rows_read(plan["Plan"]) for plan in plans) < 4_000, page


def test_transfers_that_were_received_are_not_read_again() -> None:
    merchant, browser = make_merchant(), signed_in()
    script = RECEIVED.format(rows=ROWS, account=merchant.account.pk, user=make_staff().pk)
    for statement in script.split(";"):
        execute(statement)
    newly_received().update(seen_received=True)  # as sweep_transfers does, one by one
    execute("ANALYZE")
    for page, text in (
        (reverse("admin:index"), "announced transfer to look for"),
        (reverse("month_end"), "Announced transfers on their way"),
    ):
        with recorded_plans() as plans:
            assert text in browser.get(page).content.decode()
        assert max(rows_read(plan["Plan"]) for plan in plans) < ROWS / 10


def test_old_requests_for_a_second_person_are_not_read_again() -> None:
    person, long_ago = make_staff(), timezone.now() - timedelta(days=30)
    TwoPersonChange.objects.bulk_create(
        TwoPersonChange(
            what=f"price {number}", asked_by=person, asked_at=long_ago, ended_at=long_ago
        )
        for number in range(3_000)
    )
    execute("ANALYZE")
    with recorded_plans() as plans:
        assert signed_in(person).get(reverse("admin:index")).status_code == 200
    assert max(rows_read(plan["Plan"]) for plan in plans) < 300
