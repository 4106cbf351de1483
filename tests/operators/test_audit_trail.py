"""One audit trail shows what everybody did, whichever table keeps it."""

import csv
import io
import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.keys import issue_key, prefix_of
from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from catalogue.models import Shelf
from operators.admin.trail_lines import Row
from tests.concurrency.racing import execute, rows, scalar
from tests.factories import (
    Merchant,
    buy_topup,
    deposit,
    link,
    make_account,
    make_client,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
    own_shelf,
)
from tests.operators.back_office import form_of, list_url, make_staff, signed_in, url
from topups.models import Fulfilment, TopUpProduct
from topups.transitions import Move

pytestmark = pytest.mark.django_db

PATH = "/admin/trail/"


@pytest.fixture
def browser() -> Client:
    return signed_in()


def shown(browser: Client, **query: Any) -> list[Row]:
    answer = browser.get(PATH, query)
    assert answer.status_code == 200
    found: list[Row] = answer.context["rows"]
    return found


def facts(browser: Client, **query: Any) -> set[tuple[str, str]]:
    """What was done, and to what."""
    return {(row.what, row.on) for row in shown(browser, **query)}


def test_a_deposit_a_price_a_move_and_a_key_are_in_one_list(
    browser: Client, merchant: Merchant
) -> None:
    account = merchant.client.account
    assert account is not None
    deposit(account=account, amount=Decimal(50), actor="admin:anna")
    shelf, topup = own_shelf(make_product()), make_topup_product()
    Shelf.objects.filter(pk=shelf.pk).update(price=Decimal("8.50"))
    TopUpProduct.objects.filter(pk=topup.pk).update(price=Decimal("3.50"))
    reference = buy_topup(merchant)
    move_now(reference=reference, move=Move.CLAIM, operator=make_operator())
    key = issue_key(client=merchant.client, actor=make_staff())

    assert facts(browser) >= {
        ("Deposit", f"ledger entry {account.name}"),
        ("Price changed", f"shelf {shelf}"),
        ("Price changed", f"top-up product {topup}"),
        ("Top-up claimed", f"top-up {reference}"),
        ("Key issued", f"client {prefix_of(key)}"),
    }
    assert "Purchase" not in {row.what for row in shown(browser)}
    assert ("Top-up ordered", f"top-up {reference}") not in facts(browser)


def test_switches_sign_ins_and_permissions_are_in_the_list(browser: Client) -> None:
    account, clerk = make_account(), make_staff()
    client = make_client(account)
    assert browser.post(url(account, "switch_off"), {"reason": "x"}).status_code == 302
    assert browser.post(url(client, "switch_off"), {"reason": "x"}).status_code == 302
    clerk.groups.add(Group.objects.create(name="Night shift"))

    # One transaction for the whole test: nothing was read before.
    switches = [row for row in shown(browser) if row.changes == [("enabled", "yes", "no")]]
    assert {row.on for row in switches} == {f"account {account}", f"client {client}"}
    assert {row.where for row in switches} == {"127.0.0.1"}
    assert facts(browser) >= {
        ("Signed in", f"person {browser_user(browser)}"),
        ("Groups or permissions changed", f"person {clerk.username}"),
    }


def browser_user(browser: Client) -> str:
    return str(browser.get(PATH).wsgi_request.user)


def test_a_price_that_a_form_changed_is_shown_once(browser: Client) -> None:
    shelf = own_shelf(make_product(price="1.50"))
    browser.post(url(shelf), {**form_of(browser, url(shelf)), "price": "1.60"})

    changed, first = shown(browser, about=f"shelf:{shelf.pk}")
    assert (changed.what, changed.changes) == ("Changed", [("price", "1.5000", "1.60")])
    assert (first.what, first.changes) == ("Price set", [("price", "-", "1.50")])
    assert shelf.price_changes.exists()


def test_a_price_of_another_object_is_no_repeat(browser: Client) -> None:
    first, second = (own_shelf(make_product(price=price)) for price in ("1.50", "1.70"))
    who = browser_user(browser)
    execute("SELECT set_config('voucher.actor', %s, true)", f"admin:{who}")
    Shelf.objects.filter(pk=second.pk).update(price=Decimal("1.60"))
    browser.post(url(first), {**form_of(browser, url(first)), "price": "1.60"})
    page = url(second.product)
    browser.post(page, {**form_of(browser, page), "shelves-0-price": "1.80"})

    changes = [(row.what, row.on, row.changes[0][2]) for row in shown(browser, who=who)[:3]]
    assert sorted(changes) == [
        ("Changed", f"product {second.product}", "1.80"),
        ("Changed", f"shelf {first}", "1.60"),
        ("Price changed", f"shelf {second}", "1.60"),
    ]


def test_the_list_is_filtered_by_person(browser: Client, merchant: Merchant) -> None:
    account, anna = merchant.client.account, make_staff()
    assert account is not None
    deposit(account=account, amount=Decimal(1), actor=f"admin:{anna.username}")
    deposit(account=account, amount=Decimal(2), actor="shell:ben")
    issue_key(client=merchant.client, actor=anna)
    operator = make_operator()
    move_now(reference=buy_topup(merchant), move=Move.CLAIM, operator=operator)

    def done_by(name: str) -> list[str]:
        return sorted(row.what for row in shown(browser, who=name))

    assert done_by(anna.username) == ["Deposit", "Key issued"]
    assert done_by("shell:ben") == ["Deposit"]
    assert done_by(operator.user.username) == ["Top-up claimed"]
    assert done_by("nobody") == []
    of_anna = browser.get(url(anna)).context["did"]
    assert sorted(row.what for row in of_anna) == ["Deposit", "Key issued"]


def test_only_readers_of_the_audit_trail_see_what_a_colleague_did() -> None:
    reader = signed_in(make_staff("auth.view_user"))
    assert b"What " not in reader.get(url(make_staff())).content


def test_the_list_is_filtered_by_object_and_what_belongs_to_it(browser: Client) -> None:
    merchant, other = make_merchant(), make_merchant()
    account = merchant.client.account
    assert account is not None
    deposit(account=account, amount=Decimal(1), actor="admin:anna")
    key = issue_key(client=merchant.client, actor=make_staff())
    issue_key(client=other.client, actor=make_staff())
    product = make_product()
    shelf = own_shelf(product)
    Shelf.objects.filter(pk=shelf.pk).update(price=Decimal(7))
    chosen = link(account, "theirs", shelf)
    record_action(actor=None, action=AuditAction.REFERENCE_LINKED, on=chosen)

    assert {row.what for row in shown(browser, about=f"account:{account.pk}")} >= {
        "Deposit",
        "Key issued",
        "Reference linked",
    }
    clients = shown(browser, about=f"client:{merchant.client.pk}", kind="key_issued")
    assert {row.on for row in clients} >= {f"client {prefix_of(key)}"}
    assert all(row.url.endswith(f"/{merchant.client.pk}/change/") for row in clients)
    assert [row.what for row in shown(browser, about=prefix_of(key))] == ["Key issued"]
    assert {row.what for row in shown(browser, about=f"product:{product.pk}")} == {
        "Price set",
        "Price changed",
    }


def test_an_order_is_found_by_its_reference(browser: Client, merchant: Merchant) -> None:
    reference = buy_topup(merchant)
    move_now(reference=reference, move=Move.CLAIM, operator=make_operator())

    assert facts(browser, about=reference.lower()) == {("Top-up claimed", f"top-up {reference}")}


def test_the_list_is_filtered_by_kind_and_day(browser: Client, merchant: Merchant) -> None:
    account = merchant.client.account
    assert account is not None
    deposit(account=account, amount=Decimal(1), actor="admin:anna")
    issue_key(client=merchant.client, actor=make_staff())
    today = timezone.now().date()

    assert {row.what for row in shown(browser, kind="Money booked", who="anna")} == {"Deposit"}
    assert {row.what for row in shown(browser, kind="key_issued")} == {"Key issued"}
    assert "Deposit" in {row.what for row in shown(browser, since=today, until=today)}
    assert shown(browser, until=today - timedelta(days=1)) == []
    assert shown(browser, since=today + timedelta(days=1)) == []
    backwards = browser.get(PATH, {"since": str(today), "until": str(today - timedelta(days=1))})
    assert backwards.context["filters"].errors
    assert browser.get(PATH, {"until": "9999-12-31"}).context["filters"].errors


def test_pages_show_each_line_once_also_if_all_have_one_time(
    browser: Client, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.admin.audit_trail.PER_PAGE", 3)
    account = merchant.client.account
    assert account is not None
    for number in range(4):
        deposit(account=account, amount=Decimal(1), actor="admin:anna")
        record_action(actor=None, action=AuditAction.NOTE_ADDED, on=account, note=f"note {number}")

    seen: list[str] = []
    query = f"?about=account:{account.pk}"
    while query:
        answer = browser.get(PATH + query)
        assert len(answer.context["rows"]) <= 3
        seen += [f"{row.what} {row.note}" for row in answer.context["rows"]]
        query = answer.context["older"]
    assert len(seen) == len(set(seen))
    assert len([one for one in seen if one.startswith("Deposit")]) >= 4
    assert len([one for one in seen if one.startswith("Note added")]) == 4


@pytest.mark.parametrize("before", ["", "x", "1.2", "9" * 30 + ".1.1", "9" * 18 + ".1.1", "1.99.1"])
def test_a_bad_place_is_no_error(before: str, browser: Client) -> None:
    assert browser.get(PATH, {"before": before}).status_code == 200


def test_the_list_of_entries_is_the_audit_trail(browser: Client) -> None:
    assert browser.get(list_url(AuditEntry))["Location"] == PATH


def test_changes_have_the_words_of_the_forms(browser: Client, merchant: Merchant) -> None:
    record_action(
        actor=None,
        action=AuditAction.USER_CHANGED,
        on=make_staff(),
        changes={"is_staff": (None, True), "no_such_column": (1, 2)},
    )

    (line,) = [row for row in shown(browser) if row.what == "Staff account changed"]

    assert line.changes == [("staff status", "-", "yes"), ("no such column", "1", "2")]


def test_the_list_is_exported_as_csv(browser: Client, merchant: Merchant) -> None:
    account = merchant.client.account
    assert account is not None
    record_action(
        actor=None,
        action=AuditAction.CLIENT_CHANGED,
        on=account,
        reference="=1+1",
        changes={"enabled": (True, False)},
    )

    answer = browser.get(f"{PATH}file/", {"about": f"account:{account.pk}"})

    assert answer["Content-Type"].startswith("text/csv")
    text = answer.content.decode("utf-8-sig")
    found = list(csv.DictReader(io.StringIO(text)))
    (line,) = [one for one in found if one["action"] == "Client changed"]
    assert (line["object"], line["name"]) == (f"account {account.pk}", "'=1+1")
    assert line["changes"] == "enabled: yes → no"
    assert browser.get(f"{PATH}file/", {"since": "x"}).status_code == 400


def test_staff_see_only_the_tables_that_they_may_read(merchant: Merchant) -> None:
    account = merchant.client.account
    assert account is not None
    deposit(account=account, amount=Decimal(1), actor="admin:anna")
    auditor = make_staff("audit.view_auditentry")
    kinds = {row.what for row in shown(signed_in(auditor))}

    assert "Deposit" not in kinds
    assert "Signed in" in kinds
    treasurer = signed_in(make_staff("audit.view_auditentry", "wallets.view_ledgerentry"))
    assert "Deposit" in {row.what for row in shown(treasurer)}
    for path in (PATH, f"{PATH}file/"):
        assert signed_in(make_staff("wallets.view_ledgerentry")).get(path).status_code == 403


def test_an_entry_keeps_the_address_of_its_request(browser: Client) -> None:
    account = make_account()
    form = {**form_of(browser, url(account)), "name": "Renamed"}

    browser.post(url(account), form, REMOTE_ADDR="203.0.113.9")

    entry = AuditEntry.objects.latest("pk")
    assert (entry.object_id, entry.address) == (str(account.pk), "203.0.113.9")
    record_action(actor=None, action=AuditAction.NOTE_ADDED, on=account)
    assert AuditEntry.objects.latest("pk").address is None


# What is filtered, and the index that each table is read by.
INDEXES = {
    "": {
        "audit_auditentry": "audit_entry_by_time",
        "wallets_ledgerentry": "wallets_booking_by_time",
        "topups_fulfilmentevent": "topups_move_by_time",
        "catalogue_pricechange": "catalogue_price_by_time",
        "topups_pricechange": "topups_price_by_time",
    },
    "who=anna": {
        "audit_auditentry": "audit_entry_by_actor_name",
        "wallets_ledgerentry": "wallets_booking_by_actor",
        "topups_fulfilmentevent": "topups_move_by_actor",
        "catalogue_pricechange": "catalogue_price_by_actor",
        "topups_pricechange": "topups_price_by_actor",
    },
    "kind=key_issued": {"audit_auditentry": "audit_entry_by_action"},
    "about=0123456789ab": {
        "audit_auditentry": "audit_entry_by_re",  # by_reference, and by_request
        "wallets_ledgerentry": "wallets_entry_once_per_",  # order, and booking
    },
}


def test_every_table_is_read_by_a_range_of_an_index(browser: Client) -> None:
    make_long_tables()
    for query, indexes in INDEXES.items():
        with CaptureQueriesContext(connection) as queries:
            assert browser.get(f"{PATH}?{query}").status_code == 200

        used: dict[str, bool] = {}
        for each in queries:
            table = next((name for name in INDEXES[""] if f'FROM "{name}"' in each["sql"]), "")
            if table:
                plan = json.dumps(rows(f"EXPLAIN (FORMAT JSON) {each['sql']}"))
                assert f'"Relation Name": "{table}"' in plan
                assert indexes.get(table, "nothing") in plan, plan
                used[table] = True
        assert used.keys() == indexes.keys(), query


def make_long_tables() -> None:
    """20,000 rows in every table that the list reads."""
    merchant, shelf, product = make_merchant(), own_shelf(make_product()), make_topup_product()
    buy_topup(merchant, product)
    execute("SET LOCAL session_replication_role = replica")
    execute(
        "INSERT INTO wallets_ledgerentry (wallet_id, kind, counterpart, amount, balance_after,"
        " actor, booking_reference, created_at)"
        " SELECT %s, 'deposit', 'bank', 1, 1, 'admin:' || n %% 900, 'b' || n,"
        " now() - n * interval '1 min' FROM generate_series(1, 20000) n",
        merchant.client.account_id,
    )
    execute(
        "INSERT INTO audit_auditentry (action, object_type, object_id, actor_name, reference,"
        " request_id, changes, created_at)"
        " SELECT CASE n % 900 WHEN 1 THEN 'key_issued' ELSE 'changed' END, 'x.x', n,"
        " 'shell:' || n % 900, 'r' || n, 'q' || n, '{}', now() - n * interval '1 min'"
        " FROM generate_series(1, 20000) n"
    )
    execute(
        "INSERT INTO topups_fulfilmentevent (fulfilment_id, move, from_status, to_status, actor,"
        " channel, note, created_at)"
        " SELECT %s, 'claim', 'pending', 'processing', 'op' || n %% 900, 'admin', '',"
        " now() - n * interval '1 min' FROM generate_series(1, 20000) n",
        Fulfilment.objects.latest("pk").pk,
    )
    for table, column, row in (("catalogue", "shelf", shelf), ("topups", "product", product)):
        execute(
            f"INSERT INTO {table}_pricechange ({column}_id, before, after, changed_by, changed_at)"
            " SELECT %s, 1, 2, 'by' || n %% 900, now() - n * interval '1 min'"
            " FROM generate_series(1, 20000) n",
            row.pk,
        )
    execute("ANALYZE")


def test_the_indexes_hold_no_purchase(merchant: Merchant) -> None:
    product = make_product(codes=3)
    names = ["wallets_booking_by_time", "topups_move_by_time"]

    def entries() -> list[int]:
        for name in names:
            execute(f"REINDEX INDEX {name}")
        return [scalar("SELECT reltuples FROM pg_class WHERE relname = %s", name) for name in names]

    before = entries()
    merchant.buy(product_id=product.pk, quantity=1)
    buy_topup(merchant)
    assert entries() == before
