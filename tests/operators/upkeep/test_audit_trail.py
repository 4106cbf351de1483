"""The audit trail shows what everybody did, and reads one table."""

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
from django.urls import reverse
from django.utils import timezone

from accounts.api_access.keys import issue_key, prefix_of
from accounts.models import Account
from audit.models import AuditAction, AuditEntry
from audit.services import record_action
from catalogue.models import Category, PriceList, Shelf, VoucherCode
from catalogue.price_lists import Target, Terms, add_price_entry
from operators.history.entries import Row
from orders.remedies.credits import credit_order
from tests.concurrency.racing import execute, rows, scalar, without_triggers
from tests.factories import (
    Merchant,
    buy_topup,
    deposit,
    link,
    make_account,
    make_batch,
    make_client,
    make_merchant,
    make_operator,
    make_product,
    make_topup_product,
    move_now,
    new_booking_reference,
    own_shelf,
)
from tests.operators.back_office import form_of, list_url, make_staff, signed_in, url
from topups.fulfilment.transitions import Move
from topups.models import Channel, Fulfilment, RejectReason, TopUpProduct
from wallets.booking_commands import book_deposit
from wallets.services import reverse as reverse_entry

pytestmark = pytest.mark.django_db

PATH = "/admin/trail/"


def shown(browser: Client, **query: Any) -> list[Row]:
    answer = browser.get(PATH, query)
    assert answer.status_code == 200
    found: list[Row] = answer.context["rows"]
    return found


def facts(browser: Client, **query: Any) -> set[tuple[str, str]]:
    """What was done, and to what."""
    return {(row.what, row.on) for row in shown(browser, **query)}


def test_a_deposit_a_price_and_a_key_are_in_one_list(browser: Client, merchant: Merchant) -> None:
    account = merchant.account
    booked = deposit(account=account, amount=Decimal(50), actor="admin:anna")
    shelf, topup = own_shelf(make_product()), make_topup_product()
    Shelf.objects.filter(pk=shelf.pk).update(price=Decimal("8.50"))
    TopUpProduct.objects.filter(pk=topup.pk).update(price=Decimal("3.50"))
    reference = buy_topup(merchant)
    move_now(reference=reference, move=Move.CLAIM, operator=make_operator())
    key = issue_key(client=merchant.client, actor=make_staff())

    assert facts(browser) >= {
        ("Deposit booked", f"account {account}"),
        ("Price changed", f"shelf {shelf}"),
        ("Price changed", f"top-up product {topup}"),
        ("Key issued", f"client {prefix_of(key)}"),
    }
    assert "Purchase" not in {row.what for row in shown(browser)}
    assert reference not in str(shown(browser))  # its claim is on its own timeline
    (line,) = shown(browser, kind="deposit_booked", who="anna")
    assert (line.who, line.where, line.url) == ("anna", "Back office", url(account))
    assert line.changes == [
        ("amount", "-", "50.00 USD"),
        ("account", "-", account.name),
        ("balance", "100.00 USD", "150.00 USD"),
        ("booking reference", "-", booked.booking_reference),
    ]


def test_the_ends_of_topups_are_in_the_list(browser: Client, merchant: Merchant) -> None:
    anna, sofia = make_operator(username="anna"), make_operator(username="sofia", senior=True)
    delivered, rejected, kept = (buy_topup(merchant, player_id="4711") for _ in range(3))
    for reference in (delivered, rejected, kept):
        move_now(reference=reference, move=Move.CLAIM, operator=anna)
    move_now(reference=delivered, move=Move.COMPLETE, operator=anna, note="by voucher")
    move_now(
        reference=rejected,
        move=Move.REJECT,
        operator=anna,
        reason=RejectReason.WRONG_ID,
        note="asked twice",
        message="There is no 4711",
    )
    for move in (Move.REVIEW, Move.REJECT_UNREFUNDED):
        move_now(reference=kept, move=move, operator=sofia)

    assert facts(browser, who="anna") == {
        ("Top-up delivered", f"top-up {delivered}"),
        ("Top-up rejected", f"top-up {rejected}"),
    }
    (line,) = shown(browser, kind="topup_unrefunded")
    fulfilment = Fulfilment.objects.get(order_reference=kept)
    assert (line.what, line.who) == ("Top-up failed without refund", "sofia")
    assert (line.url, line.note) == (url(fulfilment), "")
    assert line.changes == [
        ("status", "Pending review", "Failed"),
        ("reject reason", "-", "Other reason"),
    ]
    (found,) = shown(browser, about=rejected.lower())
    assert (found.note, found.changes[1][2]) == ("asked twice", "Wrong player ID")
    assert "4711" not in str(shown(browser))


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
        ("Roles or permissions changed", f"person {clerk.username}"),
    }


def browser_user(browser: Client) -> str:
    return str(browser.get(PATH).wsgi_request.user)


def test_a_price_that_a_form_changed_is_shown_once(browser: Client) -> None:
    shelf = own_shelf(make_product(price="1.50"))
    browser.post(url(shelf), {**form_of(browser, url(shelf)), "price": "1.60"})

    changed, first = shown(browser, about=f"shelf:{shelf.pk}")
    assert (changed.what, changed.changes) == ("Price changed", [("price", "1.50", "1.60")])
    assert (first.what, first.changes) == ("Price changed", [("price", "-", "1.50")])
    assert shelf.price_changes.exists()


def test_a_price_that_sql_changed_names_the_database_user(browser: Client) -> None:
    shelf, topup = own_shelf(make_product(price="1.50")), make_topup_product(price="4.00")
    for table, row in (("catalogue_shelf", shelf), ("topups_topupproduct", topup)):
        execute(f"UPDATE {table} SET price = 1.6 WHERE id = %s", row.pk)

        (line, *_) = shown(browser, kind="price_changed")
        assert line.on.endswith(f" {row}")
        assert line.changes[0][2] == "1.60"
        assert (line.who, line.where) == (scalar("SELECT session_user"), "Database")


def test_a_price_set_on_the_page_of_a_product_is_about_its_shelf(browser: Client) -> None:
    product = make_product(price="1.70")
    shelf, page = own_shelf(product), url(product)
    browser.post(page, {**form_of(browser, page), "shelves-0-price": "1.80", "name": "Renamed"})

    (line, *_) = shown(browser, kind="price_changed", who=browser_user(browser))
    assert (line.on, line.url) == (f"shelf {own_shelf(product)}", url(shelf))
    assert line.changes == [("price", "1.70", "1.80")]
    (line, *_) = shown(browser, about=f"product:{product.pk}")
    assert (line.what, [name for name, _, _ in line.changes]) == ("Changed", ["name"])


def test_the_list_is_filtered_by_person(browser: Client, merchant: Merchant) -> None:
    account, anna = merchant.client.account, make_staff()
    assert account is not None
    deposit(account=account, amount=Decimal(1), actor=f"admin:{anna.username}")
    deposit(account=account, amount=Decimal(2), actor="shell:ben")
    issue_key(client=merchant.client, actor=anna)

    def done_by(name: str) -> list[str]:
        return sorted(row.what for row in shown(browser, who=name))

    assert done_by(anna.username) == ["Deposit booked", "Key issued"]
    assert done_by("shell:ben") == ["Deposit booked"]
    assert done_by("nobody") == []
    of_anna = browser.get(url(anna)).context["latest"]
    assert sorted(row.what for row in of_anna) == ["Deposit booked", "Key issued"]


def test_only_readers_of_the_audit_trail_see_what_a_colleague_did() -> None:
    reader = signed_in(make_staff("auth.view_user"))
    assert b"What " not in reader.get(url(make_staff())).content


def test_the_list_is_filtered_by_object_and_what_belongs_to_it(browser: Client) -> None:
    merchant, other = make_merchant(), make_merchant()
    account = merchant.account
    deposit(account=account, amount=Decimal(1), actor="admin:anna")
    key = issue_key(client=merchant.client, actor=make_staff())
    issue_key(client=other.client, actor=make_staff())
    product = make_product()
    shelf = own_shelf(product)
    Shelf.objects.filter(pk=shelf.pk).update(price=Decimal(7))
    chosen = link(account, "theirs", shelf)
    record_action(actor=None, action=AuditAction.REFERENCE_LINKED, on=chosen)

    assert {row.what for row in shown(browser, about=f"account:{account.pk}")} >= {
        "Deposit booked",
        "Key issued",
        "Reference linked",
    }
    clients = shown(browser, about=f"client:{merchant.client.pk}", kind="key_issued")
    assert {row.on for row in clients} >= {f"client {prefix_of(key)}"}
    assert all(row.url.endswith(f"/{merchant.client.pk}/change/") for row in clients)
    assert [row.what for row in shown(browser, about=prefix_of(key))] == ["Key issued"]
    prices = [row.changes for row in shown(browser, about=f"product:{product.pk}")]
    assert prices == [[("price", "9.99", "7.00")], [("price", "-", "9.99")]]


def test_prices_of_lists_are_found_by_what_is_sold(browser: Client) -> None:
    gold = PriceList.objects.create(name="Gold", currency="USD")
    product, topup, other = make_product(), make_topup_product(), make_product()
    shelf, boss = own_shelf(product), make_staff()
    for target, price in (
        (Target(shelf_id=shelf.pk), "8"),
        (Target(product_id=product.pk), "7"),
        (Target(topup_product_id=topup.pk), "6"),
        (Target(shelf_id=own_shelf(other).pk), "5"),
    ):
        terms = Terms(price=Decimal(price))
        add_price_entry(price_list_id=gold.pk, target=target, terms=terms, actor=boss)

    def prices(about: str) -> list[str]:
        lines = shown(browser, about=about, who=boss.username)
        return [after for row in lines for name, _, after in row.changes if name == "price"]

    assert prices(f"shelf:{shelf.pk}") == ["7.00", "8.00"]
    assert prices(f"product:{product.pk}") == ["7.00", "8.00"]
    assert prices(f"topupproduct:{topup.pk}") == ["6.00"]


def test_bookings_are_found_by_their_references(browser: Client, merchant: Merchant) -> None:
    reference, booking = buy_topup(merchant), "bank " + "4711" * 20
    credit_order(
        reference=reference,
        amount=Decimal(1),
        note="late",
        actor="admin:anna",
        channel=Channel.ADMIN,
        booking_reference=new_booking_reference(),
    )
    account = merchant.client.account
    assert account is not None
    book_deposit(
        account_id=account.pk, amount=Decimal(1), booking_reference=booking, actor="shell:ben"
    )

    (credited,) = shown(browser, about=reference.lower())
    assert (credited.what, credited.on) == ("Credit booked", f"account {account}")
    assert ("order", "-", reference) in credited.changes
    assert credited.note == "late"
    (deposited,) = shown(browser, about=booking)
    assert (deposited.what, deposited.who) == ("Deposit booked", "ben")


def test_a_reversal_names_the_entry_that_it_reverses(browser: Client, merchant: Merchant) -> None:
    account = merchant.account
    booked = deposit(account=account, amount=Decimal(1), actor="admin:anna")
    reverse_entry(entry=booked, actor="admin:anna", note="typed twice")

    (line,) = shown(browser, kind="booking_reversed")
    assert line.what == "Booking reversed"
    both = shown(browser, about=booked.booking_reference)
    assert [row.what for row in both] == ["Booking reversed", "Deposit booked"]
    assert line.on == f"account {account}"
    (entry,) = [new for name, _old, new in line.changes if name == ""]  # the link names it
    assert f">Ledger entry {booked.pk}<" in entry
    assert url(booked) in entry


def test_a_downloaded_file_is_called_a_file(browser: Client) -> None:
    browser.get(reverse("margins_file"))

    ((what, on),) = facts(browser, kind="exported", who=browser_user(browser))
    assert what == "File downloaded"
    assert on.startswith("file margins-by-product-")


def test_the_list_is_filtered_by_kind_and_day(browser: Client, merchant: Merchant) -> None:
    account = merchant.account
    deposit(account=account, amount=Decimal(1), actor="admin:anna")
    issue_key(client=merchant.client, actor=make_staff())
    today = timezone.now().date()

    assert [row.what for row in shown(browser, kind="deposit_booked", who="anna")] == [
        "Deposit booked"
    ]
    assert {row.what for row in shown(browser, kind="key_issued")} == {"Key issued"}
    assert "Deposit booked" in {row.what for row in shown(browser, since=today, until=today)}
    # The database of the tests may have been made yesterday, with entries of the roles.
    yesterday = today - timedelta(days=1)
    assert shown(browser, kind="deposit_booked", until=yesterday) == []
    assert shown(browser, kind="deposit_booked", since=today) != []
    assert shown(browser, since=today + timedelta(days=1)) == []
    backwards = browser.get(PATH, {"since": str(today), "until": str(today - timedelta(days=1))})
    assert backwards.context["filters"].errors
    assert browser.get(PATH, {"until": "9999-12-31"}).context["filters"].errors


def test_pages_show_each_line_once_also_if_all_have_one_time(
    browser: Client, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.history.audit_trail_page.PER_PAGE", 3)
    account = merchant.account
    for number in range(4):
        deposit(account=account, amount=Decimal(1), actor="admin:anna")
        record_action(actor=None, action=AuditAction.NOTE_ADDED, on=account, note=f"note {number}")

    seen: list[str] = []
    query = f"?about=account:{account.pk}"
    while query:
        answer = browser.get(PATH + query)
        assert len(answer.context["rows"]) <= 3
        seen += [f"{row.what} {row.on} {row.note} {row.changes}" for row in answer.context["rows"]]
        query = answer.context["older"]
    assert len(seen) == len(set(seen))
    assert len([one for one in seen if one.startswith("Deposit booked")]) >= 4
    assert len([one for one in seen if one.startswith("Note added")]) == 4


def test_an_object_is_chosen_by_its_kind_and_its_name(browser: Client, merchant: Merchant) -> None:
    account = merchant.account
    Account.objects.filter(pk=account.pk).update(name="Corner Games")
    record_action(actor=None, action=AuditAction.NOTE_ADDED, on=account, note="one")

    def found(**query: Any) -> tuple[list[str], str]:
        answer = browser.get(PATH, query)
        errors = " ".join(answer.context["filters"].errors.get("about", []))
        return [row.note for row in answer.context["rows"] if row.note], errors

    for about in ("Corner Games", "corner", account.pk):
        assert found(of="account", about=about) == (["one"], ""), about
    assert "Corner Games" in browser.get(PATH, {"about": f"account:{account.pk}"}).content.decode()
    assert found(of="account")[1] == "Enter a name or an ID."
    assert found(of="account", about="no such name")[1] == "Nothing of this kind has this name."
    Account.objects.filter(pk=make_account().pk).update(name="Corner Shop")
    several = "Several objects have this name. Enter the ID of one."
    assert found(of="account", about="corner")[1] == several
    assert found(of="account", about="corner games")[0] == ["one"]


def test_an_object_and_a_period_lead_to_their_entries(browser: Client, merchant: Merchant) -> None:
    account = merchant.account
    record_action(actor=None, action=AuditAction.NOTE_ADDED, on=account, note="one")
    page = browser.get(url(account)).content.decode()
    address = f"{PATH}?about=account%3A{account.pk}"
    assert f'href="{address}"' in page
    ranges = {one["name"]: one for one in browser.get(address).context["ranges"]}
    assert list(ranges) == ["Today", "7 days", "30 days", "This month", "All"]
    assert ranges["All"]["chosen"]
    today = browser.get(f"{PATH}{ranges['Today']['url']}").context
    assert today["ranges"][0]["chosen"]
    assert "one" in {row.note for row in today["rows"]}


def test_a_page_without_a_timeline_leads_to_its_entries(browser: Client) -> None:
    category = Category.objects.create(name="Games")
    assert "about=category" not in browser.get(url(category)).content.decode()
    record_action(actor=None, action=AuditAction.NOTE_ADDED, on=category, note="one")
    assert f'href="{PATH}?about=category%3A{category.pk}"' in (
        browser.get(url(category)).content.decode()
    )
    assert [row.note for row in shown(browser, about=f"category:{category.pk}")] == ["one"]


def test_who_saw_the_codes_of_a_batch_an_order_and_a_merchant(merchant: Merchant) -> None:
    people, (first, second) = [make_staff(), make_staff()], [make_product(), make_product()]
    batches = [make_batch(own_shelf(product), 2) for product in (first, second)]
    order = merchant.buy(product_id=first.pk, quantity=1).json()["data"]["reference"]
    sold = VoucherCode.objects.get(shelf__product=first, order_id__isnull=False)
    unsold = VoucherCode.objects.filter(shelf__product=second).earliest("pk")
    for code, actor, reference in ((sold, people[0], order), (unsold, people[1], "")):
        action = AuditAction.CODE_REVEALED
        record_action(actor=actor, action=action, on=code, reference=reference)
    record_action(actor=people[0], action=AuditAction.NOTE_ADDED, on=batches[0])
    browser = signed_in(make_staff("audit.view_auditentry", "audit.export_lists"))
    page = reverse("who_saw_codes")

    def seen(**query: Any) -> list[str]:
        answer = browser.get(page, query)
        return [f"{row.who} {row.on}" for row in answer.context["rows"]]

    chosen = [one["name"] for one in browser.get(page).context["ranges"] if one["chosen"]]
    assert chosen[0] == "30 days"  # on the 30th of a month, "This month" is the same
    of_first = [f"{people[0]} code {sold.pk}, {own_shelf(first)}, {order}"]
    of_second = [f"{people[1]} code {unsold.pk}, {own_shelf(second)}"]
    assert seen()[:2] == of_second + of_first
    for about in (
        *(f"batch:{batches[0].pk}", f"product:{first.pk}", f"shelf:{own_shelf(first).pk}", order),
        *(f"account:{merchant.account.pk}", f"client:{merchant.client.pk}", f"code:{sold.pk}"),
    ):
        assert seen(about=about) == of_first, about
    assert seen(who=str(people[1])) == of_second
    assert seen(about=f"batch:{10**9}") == seen(about=f"account:{make_account().pk}") == []
    today = timezone.localdate()
    assert seen(about=f"batch:{batches[1].pk}", since=today, until=today) == of_second
    assert seen(until=today - timedelta(days=1)) == []
    later = make_merchant()
    bought = later.buy(product_id=second.pk, quantity=1).json()["data"]["reference"]
    for about in (f"account:{later.account.pk}", f"client:{later.client.pk}", bought.lower()):
        assert seen(about=about) == of_second, "it was seen before it was sold"

    without_triggers("UPDATE audit_auditentry SET created_at = now() - interval '31 days'")
    assert seen(about=order) == []
    assert "Nobody revealed a code in this period." in browser.get(page).content.decode()
    assert seen(about=order, since="") == of_first
    file = browser.get(browser.get(page, {"about": order, "since": ""}).context["export"])
    (line,) = csv.DictReader(io.StringIO(file.content.decode("utf-8-sig")))
    found = (line["by"], line["object"], line["name"])
    assert found == (str(people[0]), f"code {sold.pk}", order)
    assert signed_in(make_staff("catalogue.view_batch")).get(page).status_code == 403


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

    assert line.changes == [("member of staff", "-", "yes"), ("no such column", "1", "2")]


def test_the_list_is_exported_as_csv(browser: Client, merchant: Merchant) -> None:
    account = merchant.account
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


def test_bookings_are_for_staff_who_may_view_the_ledger(merchant: Merchant) -> None:
    account = merchant.account
    booked = deposit(account=account, amount=Decimal(1), actor="admin:anna")
    reverse_entry(entry=booked, actor="admin:anna", note="typed twice")
    booking = AuditEntry.objects.filter(action=AuditAction.DEPOSIT_BOOKED).latest("pk")
    auditor = signed_in(make_staff("audit.view_auditentry"))
    treasurer = signed_in(make_staff("audit.view_auditentry", "wallets.view_ledgerentry"))

    kinds = {row.what for row in shown(auditor)}
    assert not {"Deposit booked", "Booking reversed"} & kinds
    left_out = "Bookings are left out here and in the file"
    assert left_out in auditor.get(PATH).text
    assert left_out not in treasurer.get(PATH).text
    assert "Signed in" in kinds
    assert "Deposit booked" not in auditor.get(f"{PATH}file/").content.decode()
    assert auditor.get(PATH, {"kind": "deposit_booked"}).context["filters"].errors
    assert auditor.get(url(booking)).status_code == 302  # there is no such entry, for them

    assert {"Deposit booked", "Booking reversed"} <= {row.what for row in shown(treasurer)}
    assert "Deposit booked" in treasurer.get(f"{PATH}file/").content.decode()
    assert treasurer.get(url(booking)).status_code == 200
    for path in (PATH, f"{PATH}file/"):
        assert signed_in(make_staff("wallets.view_ledgerentry")).get(path).status_code == 403


def test_a_colleague_s_bookings_are_for_staff_who_may_view_the_ledger() -> None:
    anna = make_staff()
    deposit(account=make_account(), amount=Decimal(1), actor=f"admin:{anna.username}")
    read = ("audit.view_auditentry", "auth.view_user")

    for more, expected in (((), []), (("wallets.view_ledgerentry",), ["Deposit booked"])):
        did = signed_in(make_staff(*read, *more)).get(url(anna)).context["latest"]
        assert [row.what for row in did] == expected


def test_an_entry_keeps_the_address_of_its_request(browser: Client) -> None:
    account = make_account()
    form = {**form_of(browser, url(account)), "name": "Renamed"}

    browser.post(url(account), form, REMOTE_ADDR="203.0.113.9")

    entry = AuditEntry.objects.latest("pk")
    assert (entry.object_id, entry.address) == (str(account.pk), "203.0.113.9")
    record_action(actor=None, action=AuditAction.NOTE_ADDED, on=account)
    assert AuditEntry.objects.latest("pk").address is None


# A filter, and the start of the names of the indexes that it reads.
INDEXES = {
    "": "audit_entry_by_time",
    "who=shell:7": "audit_entry_by_actor_name",
    "who={user}": "audit_entry_by_actor",
    "kind=key_issued": "audit_entry_by_action",
    "about=0123456789ab": "audit_entry_by_re",  # by_reference, and by_request
    "about=account:1": "audit_entry_about",
    "who=shell:7&about=account:1": "audit_entry_",
    "since=2026-01-01&until=2026-01-02": "audit_entry_by_time",
}
OTHER_TABLES = (
    "wallets_ledgerentry",
    "topups_fulfilmentevent",
    "catalogue_shelfpricechange",
    "topups_topuppricechange",
)


def test_the_page_is_one_read_of_one_table_by_ranges_of_indexes(browser: Client) -> None:
    make_long_table()
    for query, index in INDEXES.items():
        with CaptureQueriesContext(connection) as queries:
            path = f"{PATH}?{query.format(user=browser_user(browser))}"
            queries.initial_queries = len(connection.queries_log)
            assert browser.get(path).status_code == 200

        read = [each["sql"] for each in queries if 'FROM "audit_auditentry"' in each["sql"]]
        assert len(read) == 1, query
        assert not any(table in each["sql"] for each in queries for table in OTHER_TABLES), query
        plan = json.dumps(rows(f"EXPLAIN (FORMAT JSON) {read[0]}"))
        assert index in plan, plan
        assert "Seq Scan" not in plan, plan
        assert index.endswith("by_time") or "by_time" not in plan, plan


def test_more_entries_need_no_more_queries(browser: Client) -> None:
    """Also if each is by another person and about another object."""

    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            shown(browser)
        return len(found)

    shown(browser)
    before = queries()
    for _ in range(20):
        issue_key(client=make_client(make_account(balance="1")), actor=make_staff())
    assert queries() == before


def make_long_table() -> None:
    """20,000 audit entries. Half are about one row, and an account has the id of that row: so the
    planner expects thousands about this account."""
    execute("SET LOCAL session_replication_role = replica")
    execute(
        "INSERT INTO audit_auditentry (action, object_type, object_id, actor_id, actor_name,"
        " reference, request_id, changes, created_at)"
        " SELECT CASE n %% 900 WHEN 1 THEN 'key_issued' ELSE 'changed' END,"
        " CASE n %% 2 WHEN 1 THEN 'accounts.account' ELSE 'x.x' END,"
        " CASE n %% 2 WHEN 1 THEN n ELSE 1 END,"
        " CASE n %% 3 WHEN 1 THEN %s END, CASE n %% 3 WHEN 2 THEN 'shell:' || n %% 900 ELSE '' END,"
        " 'r' || n, 'q' || n, '{}', now() - n * interval '1 min' FROM generate_series(1, 20000) n",
        make_staff().pk,
    )
    execute("ANALYZE")
