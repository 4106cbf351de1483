"""What the lists of records find and show, and that the audit trail never changes."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone

from accounts.models import Account
from catalogue.models import VoucherCode
from idempotency.models import BLOCKED, IdempotencyRecord
from orders.models import Order
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_merchant,
    make_operator,
    make_product,
    move_now,
)
from tests.neighbour import ours
from tests.operators.back_office import World, list_url, signed_in, url
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment
from wallets.models import LedgerEntry
from wallets.selectors import FIND_BOOKINGS, MOST_BOOKINGS
from wallets.services import credit, deposit, reverse


@pytest.fixture
def browser(db: None) -> Client:
    World().grow(1)
    return signed_in()


@pytest.mark.parametrize(
    "sql", ["UPDATE audit_auditentry SET note = 'x'", "DELETE FROM audit_auditentry"]
)
def test_the_database_refuses_to_change_the_audit_trail(sql: str, browser: Client) -> None:
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)


def test_an_order_is_found_by_reference_and_by_name(browser: Client) -> None:
    World().grow(2)
    order = Order.objects.select_related("client__account").latest("pk")
    assert order.client.account is not None

    by_reference = browser.get(list_url(Order, q=order.reference.lower()))
    by_name = browser.get(list_url(Order, q=order.client.account.name))

    assert [row.pk for row in by_reference.context["cl"].result_list] == [order.pk]
    assert {row.client for row in by_name.context["cl"].result_list} == {order.client}


def test_an_order_counts_codes_and_units(db: None) -> None:
    merchant, browser = make_merchant(balance="1000"), signed_in()
    single, triple = make_product(codes=1), make_product(codes=6, quantity_step=3)
    merchant.buy("one", product_id=single.pk, quantity=1)
    merchant.buy("six", product_id=triple.pk, quantity=6)
    buy_topup(merchant)

    for order, said in zip(
        Order.objects.filter(client=merchant.client).order_by("pk"),
        ("1 code<", "6 codes, 2 units of 3", "1 top-up"),
        strict=True,
    ):
        assert said in browser.get(url(order)).content.decode()


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(("kind", "delivered"), [("voucher", "Code "), ("top_up", "Top-up for")])
def test_orders_are_filtered_by_kind(browser: Client, kind: str, delivered: str) -> None:
    (order,) = browser.get(list_url(Order, kind=kind)).context["cl"].result_list

    page = browser.get(url(order)).content.decode()

    assert delivered in page
    assert ("/reveal/" in page) == (kind == "voucher")


def test_the_list_tells_orders_apart_that_wait_for_a_second_look(browser: Client) -> None:
    operator, merchant = make_operator(), make_merchant()
    fresh, in_review = buy_topup(merchant), buy_topup(merchant)
    for step in (Move.CLAIM, Move.REVIEW):
        move_now(reference=in_review, move=step, operator=operator)

    page = browser.get(list_url(Order, q=merchant.client.name)).content.decode()

    rows = page.partition("<tbody")[2].split("<tr")
    told_apart = {
        reference: any(reference in row and "Pending review" in row for row in rows)
        for reference in (fresh, in_review)
    }
    assert told_apart == {fresh: False, in_review: True}


def test_a_failed_order_says_what_became_of_the_money(browser: Client) -> None:
    operator, merchant = make_operator(senior=True), make_merchant()
    paid, due, kept = (buy_topup(merchant) for _ in range(3))
    for reference in (paid, due):
        for move in (Move.CLAIM, Move.REJECT):
            move_now(reference=reference, move=move, operator=operator)
    assert carry_out_refund(Fulfilment.objects.get(order_reference=paid).pk)
    for move in (Move.CLAIM, Move.REVIEW, Move.REJECT_UNREFUNDED):
        move_now(reference=kept, move=move, operator=operator)

    for reference, said in (
        (paid, "refunded"),
        (due, "refund due"),
        (kept, "without a refund"),
    ):
        page = browser.get(url(Order.objects.get(reference=reference))).content.decode()
        assert f"Failed, {said}<" in re.sub(r"\s*<", "<", page)
        assert ("4.99 USD refunded. Nothing is left." in page) == (reference == paid)


def buy_code(merchant: Merchant) -> str:
    product = make_product(price="9.99", codes=1)
    reference: str = merchant.buy(product_id=product.pk, quantity=1).json()["data"]["reference"]
    return reference


def test_the_list_of_orders_has_tabs_by_what_happened(browser: Client) -> None:
    operator, merchant = make_operator(senior=True), make_merchant()
    pending, failed, refunded = (buy_topup(merchant) for _ in range(3))
    for reference in (failed, refunded):
        move_now(reference=reference, move=Move.CLAIM, operator=operator)
        move_now(reference=reference, move=Move.REJECT, operator=operator, message="Try again")
    assert carry_out_refund(Fulfilment.objects.get(order_reference=refunded).pk)
    credited, sold = (buy_code(merchant) for _ in range(2))
    credit(
        order_reference=credited,
        amount=Decimal("5.00"),
        actor="shell:anna",
        booking_reference="five",
        note="Sorry",
    )

    def shown(**query: str) -> set[str]:
        text = browser.get(list_url(Order, **query)).content.decode()
        everything = {pending, failed, refunded, credited, sold}
        return {one for one in everything if one in text}

    assert shown() == {pending, failed, refunded, credited, sold}
    assert shown(state="pending") == {pending}
    assert shown(state="failed") == {failed, refunded}
    assert shown(state="kept") == {failed}
    assert shown(state="paid-back") == {refunded, credited}
    page = browser.get(list_url(Order, state="paid-back")).content.decode()
    assert "Completed, 5.00 USD credited" in page
    assert "Failed, refunded" in page
    page = browser.get(url(Order.objects.get(reference=credited))).content.decode()
    assert "9.99 USD was paid: 5.00 USD credited. 4.99 USD is left." in page
    assert ">Cases<" not in page
    page = browser.get(url(Order.objects.get(reference=failed))).content.decode()
    assert "Message for the merchant: “Try again”" in page
    assert "Reason: Other reason" in page
    assert ">Claim next<" not in page
    assert "The merchant reads: It could not be delivered. Try again" in page
    page = browser.get(url(Order.objects.get(reference=pending))).content.decode()
    assert "4.99 USD was paid. Nothing was refunded or credited." in page


def test_a_key_whose_purchase_is_still_being_answered_is_in_progress(browser: Client) -> None:
    client = make_merchant().client
    now = timezone.now()
    fresh, lost, blocked = (
        IdempotencyRecord.objects.create(
            client=client,
            key=key,
            fingerprint=b"",
            order_reference=key,
            bought_at=at,
            started_at=at,
        )
        for key, at in (
            ("FRESH", now),
            ("LOST", now - timedelta(minutes=6)),
            ("BLOCKED", BLOCKED),
        )
    )

    def found(outcome: str) -> list[IdempotencyRecord]:
        page = browser.get(
            list_url(IdempotencyRecord, outcome=outcome, client__id__exact=client.pk)
        )
        return list(page.context["cl"].result_list)

    assert (found("open"), found("ordered")) == ([fresh], [lost])
    assert found("restored") == [blocked]
    for record, outcome in (
        (fresh, "in progress"),
        (lost, "ordered, response lost"),
        (blocked, "order lost by a restore"),
    ):
        assert outcome in browser.get(url(record)).content.decode()


def test_a_code_is_found_by_its_order(browser: Client) -> None:
    order = ours(Order).latest("pk")

    found = browser.get(list_url(VoucherCode, q=order.reference)).context["cl"].result_list

    assert {row.order_id for row in found} == {order.pk}
    assert len(found) == 2


def test_a_ledger_entry_is_found_by_its_order(browser: Client) -> None:
    World().grow(1)
    order = ours(Order).latest("pk")

    found = browser.get(list_url(LedgerEntry, q=order.reference)).context["cl"].result_list

    assert [row.amount for row in found] == [-order.total_price]


def test_bookings_are_found_by_the_beginning_of_their_reference(browser: Client) -> None:
    account, other = make_account(), make_account()
    Account.objects.filter(pk=other.pk).update(name="Big fish")
    named = {
        reference: deposit(
            account=account, amount=Decimal(5), booking_reference=reference, actor="a"
        )
        for reference in ("BIG-1", "BIG-1 again", "BIG-12", "big 1/b", "Bigger", "form:big")
    }
    named["opening"] = LedgerEntry.objects.get(wallet=other.pk)
    named["other"] = deposit(account=other, amount=Decimal(5), booking_reference="7", actor="a")
    for name in ("BIG-1", "BIG-12"):
        named[f"reversal of {name}"] = reverse(entry=named[name], actor="admin:anna", note="x")
    names = {entry.pk: name for name, entry in named.items()}

    def search(words: str) -> set[str]:
        rows = browser.get(list_url(LedgerEntry, q=words)).context["cl"].result_list
        return {names[row.pk] for row in rows}

    twelfth = {"BIG-12", "reversal of BIG-12"}
    first = {"BIG-1", "BIG-1 again", "big 1/b", "reversal of BIG-1", *twelfth}
    assert search("BIG-1") == search("big1") == first
    assert search("BIG-1 ag") == {"BIG-1 again"}
    assert search("BIG-12") == twelfth
    assert search("big") == first | {"Bigger", "opening", "other"}
    assert search("form:big") == {"form:big"}


@pytest.mark.django_db
def test_the_beginning_of_a_reference_is_a_range_of_an_index() -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")  # the table is small
        words: dict[str, str | int] = {"words": "BIG-1", "most": MOST_BOOKINGS}
        cursor.execute(f"EXPLAIN {FIND_BOOKINGS}", words)
        plan = "\n".join(line for (line,) in cursor)
    condition = r"_like on wallets_bookingkey.*\n +Index Cond: .*~>~.*~<~"
    assert re.search(condition, plan), plan
    assert "Sort" not in plan, plan


def test_a_ledger_entry_leads_to_the_client_that_bought(browser: Client) -> None:
    entry = LedgerEntry.objects.filter(actor__startswith="client:").latest("pk")
    client = Order.objects.get(reference=entry.order_reference).client

    page = browser.get(url(entry)).content.decode()

    assert f'href="{url(client)}"' in page
    assert f">{client.name}</a>" in page


def test_a_record_leads_back_to_its_list(browser: Client) -> None:
    kept = {"_changelist_filters": "kind=deposit"}
    page = browser.get(url(LedgerEntry.objects.latest("pk")), kept).content.decode()

    assert f'<a href="{list_url(LedgerEntry, kind="deposit")}"' in page
    line = page.partition('id="submit-row"')[2]
    assert re.search(r"mr-auto[^>]*>\s*</div>", line), "an empty line, which is not shown"
