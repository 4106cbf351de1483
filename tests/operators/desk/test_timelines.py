"""Each page of an order, account, client or product shows all that happened to it, in one list."""

import html
import re
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.db.models import Model, Q
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.api_access.keys import issue_key, prefix_of
from accounts.models import RequestRecord
from audit.models import AuditAction, AuditEntry
from catalogue.imports.take_back import take_import_back
from catalogue.models import PriceList
from catalogue.price_lists import Target, Terms, add_price_entry
from catalogue.stock.holds import hold_codes, release_hold, void_hold
from core.backoffice.staff_roles import StaffRole
from idempotency.models import IdempotencyRecord
from merchants.models import Role
from merchants.money.balance_alerts import set_balance_alert
from merchants.people.invitations import invite_person
from operators.history.order_timeline import Purchase
from operators.history.timeline import Timeline
from operators.imports.models import FileImport, ImportKind, ImportState
from orders.models import Order
from orders.remedies.credits import credit_order
from tests.concurrency.racing import execute
from tests.factories import (
    Merchant,
    buy_topup,
    deposit,
    link,
    make_account,
    make_batch,
    make_client,
    make_field,
    make_operator,
    make_product,
    make_record,
    make_topup_product,
    move_now,
    new_booking_reference,
    own_shelf,
)
from tests.merchants.people import make_member
from tests.operators.back_office import (
    World,
    browser_with,
    make_approval,
    make_staff,
    signed_in,
    url,
)
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from topups.models import Channel, Fulfilment, RejectReason

ADDRESS = "203.0.113.9"
# What the timeline of an account shows nobody in these roles: email addresses, and what is of
# clients, reference links and wallets.
ACCOUNT_READERS = {
    StaffRole.FINANCE: ("@", "Member", "Reference linked", "sku-51", "By file"),
    StaffRole.MERCHANT_MANAGER: ("alert", "31.25"),
    StaffRole.SUPPORT: ("alert", "31.25"),
}

pytestmark = pytest.mark.django_db


def of_role(role: StaffRole) -> Client:
    person = make_staff()
    person.groups.add(Group.objects.get(name=role.value))
    return signed_in(person)


def timeline(browser: Client, row: object) -> Timeline:
    answer = browser.get(url(row))  # type: ignore[arg-type]
    assert answer.status_code == 200
    times = re.findall(r'<time datetime="([^"]*)"', answer.content.decode())
    assert all(re.fullmatch(r"[0-9-]{10}T[0-9:]{8}[+-][0-9]{4}", time) for time in times), times
    found: Timeline = answer.context["timeline"]
    assert len(times) >= len(found.rows)
    return found


def test_a_voucher_order_shows_its_debit_codes_reveals_and_credits(
    browser: Client, merchant: Merchant
) -> None:
    product = make_product(price="9.99", codes=2)
    bought = merchant.buy("key-9", product_id=product.pk, quantity=2).json()["data"]
    order = Order.objects.get(reference=bought["reference"])
    make_record(merchant.client, order_reference=order.reference, status=201, code="", reason="")
    browser.post(url(order, "reveal"), {"note": "asked by mail"})
    credit_order(
        reference=order.reference,
        amount=Decimal(5),
        note="one did not work",
        actor="admin:anna",
        channel=Channel.ADMIN,
        booking_reference=new_booking_reference(),
    )

    page = browser.get(url(order))

    shown = page.context["timeline"]
    assert [row.what for row in shown.rows if row.what != "Code revealed"] == [
        *("Credit", "Request answered", "Codes handed out", "Purchase", "Order placed")
    ]
    assert [row.note for row in shown.rows if row.what == "Code revealed"] == ["asked by mail"] * 2
    assert {kind: name for kind, name, _ in shown.links} == {
        "Account": str(merchant.client.account),
        "Client": str(merchant.client),
        "Product": str(product),
        "Idempotency key": "key-9",
        "Requests": "Requests of this order",
        "Ledger entries": "Ledger entries of this order",
    }
    for code in bought["codes"]:
        assert code["code"] not in page.content.decode()
    RequestRecord.objects.all().delete()
    assert "Requests of this order" not in browser.get(url(order)).content.decode()
    for _, _, address in shown.links:
        assert browser.get(address).status_code == 200


def test_an_order_shows_why_earlier_attempts_with_its_key_were_refused(
    browser: Client, merchant: Merchant
) -> None:
    order, other = Order.objects.get(reference=buy_topup(merchant)), make_client(make_account())
    key = IdempotencyRecord.objects.get(order_reference=order.reference).key
    refusal = {"order_reference": None, "status": 409, "code": "order_refused"}
    for client in (merchant.client, other):
        make_record(client, idempotency_key=key, reason="insufficient_balance", **refusal)
    bought = {"status": 201, "code": "", "reason": ""}
    make_record(merchant.client, idempotency_key=key, order_reference=order.reference, **bought)

    lines = timeline(browser, order).rows

    requests = [(row.what, row.colour, row.note) for row in lines if row.what.startswith("Request")]
    answered, refused = requests  # the newest first
    assert refused[:2] == ("Request refused", "warning")
    assert f"409 order_refused insufficient_balance, idempotency key {key}" in refused[2]
    assert answered[:2] == ("Request answered", "info")


@pytest.mark.parametrize(("days", "reads"), [(0, 1), (8, 2)], ids=["new", "without its key"])
def test_the_page_of_an_order_reads_the_request_records_once_for_each_value(
    browser: Client, merchant: Merchant, days: int, reads: int
) -> None:
    order = Order.objects.get(reference=buy_topup(merchant))
    record = IdempotencyRecord.objects.get(order_reference=order.reference)
    bought = {"idempotency_key": record.key, "order_reference": order.reference}
    make_record(merchant.client, status=201, code="", reason="", **bought)
    if days:
        record.delete()
    with CaptureQueriesContext(connection) as queries:
        lines = timeline(browser, order).rows

    assert record.key in "".join(row.note for row in lines)
    searches = [one["sql"] for one in queries if "accounts_find_requests" in one["sql"]]
    assert len(searches) == reads
    assert sum("accounts_requestrecord" in one["sql"] for one in queries) == reads


def test_a_request_that_failed_after_the_purchase_is_not_shown_as_refused(
    browser: Client, merchant: Merchant
) -> None:
    order = Order.objects.get(reference=buy_topup(merchant))
    make_record(
        merchant.client, order_reference=order.reference, status=500, code="server_error", reason=""
    )

    lines = timeline(browser, order).rows

    assert ("Request failed", "danger") in {(row.what, row.colour) for row in lines}
    assert "Request refused" not in {row.what for row in lines}


def test_a_topup_shows_moves_announcement_refund_and_notes_on_both_pages(
    browser: Client,
) -> None:
    World().grow(1)
    fulfilment = Fulfilment.objects.latest("pk")
    order = Order.objects.get(fulfilment=fulfilment)
    operator = make_operator(senior=True)
    for move in (Move.CLAIM, Move.REJECT):
        move_now(reference=order.reference, move=move, operator=operator)
    carry_out_refund(fulfilment.pk)
    for row, note in ((order, "called the merchant"), (fulfilment, "wrong id")):
        answer = browser.post(timeline(browser, row).note_url, {"note": note})
        assert (answer.status_code, answer["Location"]) == (302, url(row))

    expected = {
        *("Order placed", "Purchase", "Announced in Telegram", "Top-up claimed", "Top-up rejected"),
        *("Top-up refunded", "Refund", "Note added"),
    }
    for row in (order, fulfilment):
        lines = timeline(browser, row).rows
        assert {line.what for line in lines} == expected
        assert [line.what for line in lines].count("Top-up rejected") == 1
        assert lines[-1].what == "Order placed"
        notes = [line.note for line in lines if line.what == "Note added"]
        assert notes == ["wrong id", "called the merchant"]
        claim = next(line for line in lines if line.what == "Top-up claimed")
        assert (claim.who, claim.where) == (operator.user.username, "Back office")


def test_the_page_of_a_topup_order_offers_the_moves_of_the_desk(merchant: Merchant) -> None:
    order = Order.objects.get(reference=buy_topup(merchant))
    claim = f"/admin/topups/fulfilment/{order.fulfilment_id}/move/claim/"

    allowed = signed_in(make_staff("orders.view_order", "topups.fulfil"))
    assert claim in allowed.get(url(order)).content.decode()
    reader = signed_in(make_staff("orders.view_order"))
    assert claim not in reader.get(url(order)).content.decode()


def test_an_account_shows_its_clients_keys_and_money(browser: Client, merchant: Merchant) -> None:
    account = merchant.account
    deposit(account=account, amount=Decimal(7), actor="admin:anna")
    key = issue_key(client=merchant.client, actor=make_staff())
    buy_topup(merchant)

    lines = timeline(browser, account).rows
    assert {"Deposit booked", "Key issued"} <= {line.what for line in lines}
    assert "Purchase" not in {line.what for line in lines}
    issued = next(line for line in lines if line.on == f"client {prefix_of(key)}")
    assert issued.url == url(merchant.client)
    assert {line.what for line in timeline(browser, merchant.client).rows} == {"Key issued"}


def test_a_product_shows_its_prices_and_stock(browser: Client) -> None:
    product, topup = make_product(), make_topup_product()
    execute("UPDATE catalogue_shelf SET price = 3 WHERE id = %s", own_shelf(product).pk)
    execute("UPDATE topups_topupproduct SET price = 4 WHERE id = %s", topup.pk)

    assert timeline(browser, product).rows[0].changes == [("price", "9.99", "3.00")]
    assert timeline(browser, own_shelf(product)).rows[0].changes == [("price", "9.99", "3.00")]
    assert timeline(browser, topup).rows[0].changes == [("price", "4.99", "4.00")]


def test_a_batch_shows_the_holds_of_its_codes(browser: Client) -> None:
    shelf = own_shelf(make_product())
    batch = make_batch(shelf)
    make_batch(shelf)
    assert timeline(browser, batch).rows == []

    hold, _number = hold_codes(codes=batch.its_codes, reason="recalled", held_by="test")
    assert hold
    assert [row.note for row in timeline(browser, batch).rows] == ["Codes: 2. recalled"]

    release_hold(hold.pk)
    assert timeline(browser, batch).rows == []
    assert "No changes, and no code is held now." in browser.get(url(batch)).text


def test_a_shelf_shows_the_holds_releases_and_voids_of_its_codes(browser: Client) -> None:
    product, other = make_product(), make_product(codes=1)
    shelf = own_shelf(product)
    batch = make_batch(shelf, 70)

    hold, _number = hold_codes(
        codes=batch.its_codes | Q(shelf__product=other), reason="recalled", held_by="test"
    )
    assert hold
    release_hold(hold.pk, note="fine")
    voided, _number = hold_codes(codes=batch.its_codes, reason="used", held_by="test")
    assert voided
    void_hold(voided.pk, actor=make_staff(), note="bad")
    take_import_back(batch_id=make_batch(shelf, 3).pk, reason="twice", held_by="test")

    link = '<a href="{}" class="text-link">{}</a>'
    linked = {one: [("", "-", link.format(url(one), one))] for one in (hold, voided)}
    for row in (shelf, product):
        lines = [
            (one.what, one.note, one.changes)
            for one in timeline(browser, row).rows
            if one.what != "Codes imported"
        ]
        assert lines[0] == ("Import taken back", "Codes: 3. twice", [])
        assert lines[1][:2] == ("Codes held", "Codes: 3. twice")
        assert lines[2:6] == [
            ("Codes voided", "Codes: 70. bad", linked[voided]),
            ("Codes held", "Codes: 70. used", linked[voided]),
            ("Codes released", "Codes: 70. fine", linked[hold]),
            ("Codes held", "Codes: 70. recalled", linked[hold]),
        ]
    assert {one.note for one in timeline(browser, own_shelf(other)).rows} >= {"Codes: 1. fine"}
    reader = signed_in(make_staff("catalogue.view_shelf"))
    shown = texts(timeline(reader, shelf))
    assert [one for one in ("recalled", "twice") if one in shown] == [], "reasons of holds"


def test_a_batch_leads_to_its_codes_and_its_import(browser: Client) -> None:
    shelf = own_shelf(make_product())
    make_batch(shelf, 3)
    batch = make_batch(shelf, 2)
    make_batch(shelf, 3)
    row = FileImport.objects.create(
        kind=ImportKind.CODES,
        state=ImportState.IMPORTED,
        file_name="second.csv",
        size=1,
        shelf=shelf,
        result={"batch": batch.pk},
        created_by=make_staff(),
        confirmed_by=make_staff(),
        finished_at=timezone.now(),
    )

    page = browser.get(url(batch)).text

    assert f'<a href="{url(row)}" class="text-link">second.csv</a>' in page
    found = re.search(r'<a href="([^"]*)" class="text-link">2</a>', page)
    assert found is not None
    codes = browser.get(html.unescape(found[1])).context["cl"].result_list
    assert {code.pk for code in codes} == {batch.first_code, batch.last_code}


def test_a_long_history_leads_to_the_audit_trail(
    browser: Client, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.history.timeline.SHOWN", 3)
    for _ in range(4):
        issue_key(client=merchant.client, actor=None)

    shown = timeline(browser, merchant.client)
    assert len(shown.rows) == 3
    assert len(browser.get(shown.more).context["rows"]) == 4
    reader = signed_in(make_staff("accounts.view_apiclient"))
    assert timeline(reader, merchant.client).more == ""


def test_each_role_sees_the_lines_that_it_may_see(merchant: Merchant) -> None:
    order = Order.objects.get(reference=buy_topup(merchant))
    make_record(merchant.client, order_reference=order.reference)
    assert order.fulfilment is not None
    operator = timeline(of_role(StaffRole.OPERATOR), order.fulfilment)
    finance = timeline(of_role(StaffRole.FINANCE), order)

    assert {row.what for row in operator.rows} == {"Order placed"}
    assert operator.links == []
    assert {row.what for row in finance.rows} == {"Order placed", "Purchase", "Request refused"}
    assert "Idempotency key" not in {kind for kind, _, _ in finance.links}


def note(
    on: Model, text: str, action: str = AuditAction.NOTE_ADDED, actor: User | None = None
) -> None:
    """An audit entry about this row, from a network address."""
    AuditEntry.objects.create(
        actor=actor or make_staff(),
        action=action,
        object_type=on._meta.label_lower,
        object_id=str(on.pk),
        reference=str(on)[:64],
        note=text,
        address=ADDRESS,
    )


def texts(page: Timeline) -> str:
    """All that the timeline says."""
    return "\n".join(str(row) for row in page.rows)


def test_an_account_hides_what_the_role_may_not_view() -> None:
    owner = make_member()
    account, client = owner.account, make_client(owner.account)
    anna = make_staff()
    invite_person(account=account, email="new@example.com", role=Role.VIEWER, invited_by=anna)
    set_balance_alert(account=account, level=Decimal("31.25"), actor=owner.user)
    prefix = prefix_of(issue_key(client=client, actor=owner.user))
    linked = link(account, "sku-51", own_shelf(make_product()))
    note(linked, "sku-51", AuditAction.REFERENCE_LINKED, owner.user)
    note(account, "By file: 3 set", AuditAction.REFERENCE_LINKED, owner.user)
    note(account, "joined@example.com", AuditAction.MEMBER_JOINED, owner.user)
    note(account, "late payer")

    said = {role: texts(timeline(of_role(role), account)) for role in ACCOUNT_READERS}
    for role, hidden in ACCOUNT_READERS.items():
        assert "late payer" in said[role], role
        for text in (*hidden, ADDRESS):
            assert text not in said[role], (role, text)
    assert {"Key issued", "Balance alert changed"} <= {
        row.what for row in timeline(of_role(StaffRole.FINANCE), account).rows
    }
    assert "new@example.com" in said[StaffRole.SUPPORT]
    everything = texts(timeline(signed_in(), account))
    for text in (
        "new@example.com",
        "joined@example.com",
        "31.25",
        prefix,
        "sku-51",
        ADDRESS,
        owner.user.username,
    ):
        assert text in everything, text


def test_bookings_and_credits_are_for_staff_who_may_view_the_ledger(merchant: Merchant) -> None:
    account, order = merchant.client.account, Order.objects.get(reference=buy_topup(merchant))
    assert account is not None
    deposit(account=account, amount=Decimal(7), actor="admin:anna")
    credit_order(
        reference=order.reference,
        amount=Decimal(1),
        note="late",
        actor="admin:anna",
        channel=Channel.ADMIN,
        booking_reference=new_booking_reference(),
    )
    pages = ("accounts.view_account", "orders.view_order", "wallets.view_wallet")

    for more, is_seen in (((), False), (("wallets.view_ledgerentry",), True)):
        reader = signed_in(make_staff(*pages, *more))
        on_account = [row.what for row in timeline(reader, account).rows]
        assert ("Deposit booked" in on_account, "Credit booked" in on_account) == (is_seen, is_seen)
        on_order = [row.what for row in timeline(reader, order).rows]
        assert on_order.count("Credit") == is_seen
        assert "Credit booked" not in on_order  # the ledger's line says it


def test_the_desk_hides_notes_on_orders_and_network_addresses(merchant: Merchant) -> None:
    order = Order.objects.get(reference=buy_topup(merchant))
    fulfilment = order.fulfilment
    assert fulfilment is not None
    note(order, "for finance")
    note(fulfilment, "wrong id")

    desk = texts(timeline(of_role(StaffRole.OPERATOR), fulfilment))
    assert "wrong id" in desk
    assert "for finance" not in desk
    assert ADDRESS not in desk
    finance = texts(timeline(of_role(StaffRole.FINANCE), order))
    assert "wrong id" in finance
    assert "for finance" in finance
    assert ADDRESS not in finance
    assert texts(timeline(signed_in(), order)).count(ADDRESS) == 2


def test_a_note_needs_the_page_and_a_text(merchant: Merchant) -> None:
    account = merchant.account
    path = f"/admin/notes/accounts.account/{account.pk}/"
    before = AuditEntry.objects.filter(action=AuditAction.NOTE_ADDED).count()
    chief = signed_in()

    stranger = signed_in(make_staff("orders.view_order"))
    assert stranger.post(path, {"note": "x"}).status_code == 403
    for other in ("accounts.account/0", "accounts.account/x", "auth.user/1", "x/1"):
        assert chief.post(f"/admin/notes/{other}/", {"note": "x"}).status_code == 404, other
    for note in ("", " ", "x" * 3000):
        assert chief.post(path, {"note": note}).status_code == 302
    assert chief.get(path).status_code == 405
    assert AuditEntry.objects.filter(action=AuditAction.NOTE_ADDED).count() == before


def test_a_note_that_looks_like_an_amount_is_shown_as_it_was_written(merchant: Merchant) -> None:
    """A note that no page can show would hide all entries around it, for ever."""
    account, browser = merchant.account, browser_with(StaffRole.SUPPORT)
    notes = [f"{'9' * 30}.99 USD", "1.99999 USD"]

    for note in notes:
        browser.post(f"/admin/notes/accounts.account/{account.pk}/", {"note": note})

    page = browser.get(url(account)).content.decode()
    assert [note for note in notes if note not in page] == []


def test_an_auditor_reads_notes_and_writes_none(merchant: Merchant) -> None:
    account = merchant.account
    path = f"/admin/notes/accounts.account/{account.pk}/"
    auditor = browser_with(StaffRole.AUDITOR)
    browser_with(StaffRole.SUPPORT).post(path, {"note": "called them"})

    refused = auditor.post(path, {"note": "x"})

    assert refused.status_code == 403
    notes = AuditEntry.objects.filter(action=AuditAction.NOTE_ADDED, object_id=str(account.pk))
    assert [one.note for one in notes] == ["called them"]
    page = auditor.get(url(account)).content.decode()
    assert "called them" in page
    assert path not in page


def test_the_record_of_a_taken_over_key_is_found(merchant: Merchant) -> None:
    product = make_product(codes=1)
    data = merchant.buy("late", product_id=product.pk, quantity=1).json()["data"]
    order = Order.objects.get(reference=data["reference"])
    record = IdempotencyRecord.objects.get(order_reference=order.reference)
    assert Purchase(order).record == record

    execute("UPDATE idempotency_idempotencyrecord SET created_at = created_at - interval '1 hour'")
    assert Purchase(order).record is None
    make_record(merchant.client, order_reference=order.reference, idempotency_key="late")
    assert Purchase(order).record == record


def test_the_page_of_a_topup_order_shows_its_delivery(browser: Client, merchant: Merchant) -> None:
    product = make_topup_product()
    field = make_field(product, label="Server")
    reference = buy_topup(merchant, product, player_id="0077", fields={str(field.number): "EU"})
    order = Order.objects.get(reference=reference)
    operator = make_operator(senior=True)
    move_now(reference=reference, move=Move.CLAIM, operator=operator)
    page = browser.get(url(order)).content.decode()
    for part in ("player 0077: Processing", "Server: EU", f"Claimed by {operator.user}"):
        assert part in page, part

    move_now(
        reference=reference,
        move=Move.REJECT,
        operator=operator,
        reason=RejectReason.WRONG_ID,
        note="no such player",
    )
    page = browser.get(url(order)).content.decode()
    assert "fulfilment_failed" in page
    assert "Wrong player ID: no such player" in page
    assert "A refund is due." in page


def test_changes_link_to_rows_and_name_choices_and_amounts(browser: Client) -> None:
    topup, prices = make_topup_product(), PriceList.objects.create(name="Gold", currency="USD")
    add_price_entry(
        price_list_id=prices.pk,
        target=Target(topup_product_id=topup.pk),
        terms=Terms(price=Decimal("4.50")),
        actor=make_staff(),
    )
    make_approval(make_account(), amount="25940.37")
    german = {"Accept-Language": "de"}

    shown = browser.get(url(prices), headers=german).context["timeline"].rows[0]
    price = {name: new for name, _old, new in shown.changes}
    entry = browser.get(url(AuditEntry.objects.latest("pk")), headers=german).text

    assert price["Aufladeprodukt"] == f'<a href="{url(topup)}" class="text-link">{topup}</a>'
    assert price["Preis"] == "4,50"
    assert "Art: Einzahlung" in entry
    assert "Betrag: 25.940,37 USD" in entry
