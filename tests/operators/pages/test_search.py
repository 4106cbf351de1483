"""One search field finds everything that a person may see, and keeps what is typed to itself."""

import json
from decimal import Decimal
from time import process_time
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from accounts.api_access.keys import prefix_of
from cases.services import credit_case, propose_replacement
from catalogue import backoffice as catalogue
from catalogue.imports.code_import import add_codes
from catalogue.models import Batch, CodeHold, PriceList
from catalogue.stock.codes import Code
from catalogue.stock.traces import trace_codes
from core.backoffice import search
from core.backoffice.declarations import Finder
from core.backoffice.search import find_for_staff, kinds_out_of_reach
from core.backoffice.staff_roles import StaffRole
from operators.admin.menu import navigation
from operators.admin.search import WORDS
from orders import search as order_search
from orders.models import Order
from tests.cases.complaints import make_complaint
from tests.concurrency.racing import execute, rows
from tests.factories import (
    Merchant,
    buy_topup,
    make_account,
    make_batch,
    make_merchant,
    make_product,
    make_record,
    make_topup_product,
    own_shelf,
)
from tests.merchants.people import make_member
from tests.operators.back_office import (
    browser_with,
    make_approval,
    make_import,
    make_staff,
    signed_in,
    staff_with,
    text_of,
    url,
)
from topups.fulfilment.transitions import FULFIL
from topups.models import Fulfilment
from wallets import services
from wallets.models import AnnouncedTransfer

pytestmark = pytest.mark.django_db

PATH = "/admin/search/"


def found(browser: Client, text: str) -> set[tuple[str, Any]]:
    """The kinds and the rows that the search field shows."""
    answer = browser.post(PATH, {"text": text}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    return {(hit.kind, hit.row) for hit in answer.context["hits"]}


@pytest.fixture
def order(merchant: Merchant) -> Order:
    product = make_product(codes=3)
    answer = merchant.buy("shop-4712", product_id=product.pk, quantity=1)
    return Order.objects.get(reference=answer.json()["data"]["reference"])


def test_an_order_is_found_by_any_part_of_its_reference(browser: Client, order: Order) -> None:
    for part in (order.reference, order.reference.lower(), order.reference[:12]):
        assert ("Order", order) in found(browser, part), part
    for part in (order.reference[8:16], order.reference[-6:]):
        assert found(browser, f"  {part} ") == {("Order", order)}


def test_only_the_beginning_finds_an_old_order(
    browser: Client, order: Order, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(order_search, "NEWEST", 0)

    assert found(browser, order.reference[-6:]) == set()
    assert found(browser, order.reference[:20]) == {("Order", order)}


def test_an_order_is_found_by_its_idempotency_key_and_its_player(
    browser: Client, order: Order, merchant: Merchant
) -> None:
    topup = Order.objects.get(reference=buy_topup(merchant, player_id="0077123"))

    assert found(browser, "shop-4712") == {("Order", order)}
    assert found(browser, "0077123") == {("Order", topup)}  # and not also at the desk
    execute("SET LOCAL session_replication_role = replica")
    ours = Fulfilment.objects.filter(order_reference=topup.reference)
    ours.update(player_id="deleted")
    assert found(browser, "deleted") == {("Order", topup)}  # a possible player id
    ours.update(player_id="(deleted)")
    assert found(browser, "(deleted)") == set()


def test_requests_are_found_by_their_id_and_key(browser: Client, merchant: Merchant) -> None:
    record = make_record(merchant.client, idempotency_key="refused-1")

    assert found(browser, str(record.request_id)) == {("Request", record)}
    assert found(browser, "refused-1") == {("Request", record)}


def test_a_kept_request_leads_to_an_order_whose_key_is_gone(browser: Client, order: Order) -> None:
    execute("DELETE FROM idempotency_idempotencyrecord")
    make_record(
        order.client, order_reference=order.reference, idempotency_key="shop-4712", status=201
    )
    refused = make_record(order.client, idempotency_key="shop-4712")

    assert found(browser, "shop-4712") == {("Order", order), ("Request", refused)}


def test_people_accounts_clients_and_products_are_found(
    browser: Client, merchant: Merchant
) -> None:
    account = merchant.account
    member = make_member(account, email="kim@shop.example")
    clerk = make_staff()
    product, topup = make_product(name="Moon card"), make_topup_product(name="Moon gems")

    assert found(browser, "KIM@shop") == {("Member", member)}
    assert ("Staff", clerk) in found(browser, clerk.username)
    assert ("Account", account) in found(browser, account.name)
    assert ("Client", merchant.client) in found(browser, merchant.client.name)
    prefix = prefix_of(merchant.key)
    assert found(browser, prefix) == {("Client", merchant.client)}
    assert found(browser, f"vk_{prefix}_") == {("Client", merchant.client)}
    assert found(browser, "moon") == {("Product", product), ("Top-up product", topup)}


def test_rows_without_a_name_are_found_by_their_number(browser: Client) -> None:
    case = make_complaint().open()
    batch = make_batch(own_shelf(make_product()))
    hold = CodeHold.objects.create(reason="Recalled", held_by="anna")
    upload = make_import()
    approval = make_approval(make_account())
    for kind, word, german, row in (
        ("Case", "Case", "Fall", case),
        ("Batch", "batch", "Charge", batch),
        ("Hold", "hold", "Sperre", hold),
        ("Imported file", "import", "Import", upload),
        ("Approval", "approval", "Freigabe", approval),
    ):
        assert (kind, row) in found(browser, str(row.pk))
        for text in (f"{word} {row.pk}", f"{word.upper()} #{row.pk}"):
            assert found(browser, text) == {(kind, row)}, text
        assert browser.post(PATH, {"text": f"{word} {row.pk}"})["Location"] == url(row)
        browser.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
        for text in (f"{word} {row.pk}", f"{german} {row.pk}"):
            answer = browser.post(PATH, {"text": text}, headers={"HX-Request": "true"})
            assert [hit.row for hit in answer.context["hits"]] == [row], text
            assert answer.context["results"][0].url == url(row), text
        del browser.defaults["HTTP_ACCEPT_LANGUAGE"]
        assert found(signed_in(make_staff(FULFIL)), f"{word} {row.pk}") == set()


def test_price_lists_and_batches_are_found_by_name(
    browser: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    gold = PriceList.objects.create(name="Gold partners", currency="USD")
    batch = make_batch(own_shelf(make_product()))
    Batch.objects.filter(pk=batch.pk).update(supplier="Card house", invoice="R-2026-9")

    assert found(browser, "gold") == {("Price list", gold)}
    assert found(browser, "card HOUSE") == {("Batch", batch)}
    assert found(browser, "r-2026") == {("Batch", batch)}
    monkeypatch.setattr(catalogue, "NEWEST_BATCHES", 0)
    assert found(browser, "card house") == set()


def test_a_booking_is_found_with_its_reversal_and_announcement(browser: Client) -> None:
    account = make_account()
    entry = services.deposit(
        account=account, amount=Decimal(5), booking_reference="INV-7", actor="admin:anna"
    )
    reversal = services.reverse(entry=entry, actor="admin:ben", note="Twice")
    transfer = AnnouncedTransfer.objects.create(
        account=account, amount=5, reference="INV 7", announced_by=make_member(account).user
    )

    assert found(browser, "inv 7") == {
        ("Booking", entry),
        ("Booking", reversal),
        ("Announced transfer", transfer),
    }


def test_the_beginning_of_a_bank_reference_finds_the_newest_bookings(browser: Client) -> None:
    account = make_account()
    first, *others = [
        services.deposit(
            account=account, amount=Decimal(5), booking_reference=reference, actor="admin:anna"
        )
        for reference in ("SEPA 2026-11 0", *(f"SEPA 2026-11 0 part {n}" for n in range(9)))
    ]
    finance = browser_with(StaffRole.FINANCE)

    assert found(finance, "sepa") == {("Booking", one) for one in [first, *others][-5:]}
    assert found(finance, "SEPA-2026-11-0") == {("Booking", one) for one in [first, *others[-4:]]}
    assert found(browser_with(StaffRole.SUPPORT), "sepa") == set()
    for text in ("s", "-"):
        assert found(finance, text) == set()
    short = services.deposit(
        account=account, amount=Decimal(5), booking_reference="S", actor="admin:anna"
    )
    assert found(finance, "s") == {("Booking", short)}  # the whole reference
    page = text_of(finance.post(PATH, {"text": "no such thing"}))
    assert "the beginning of a bank reference" in page.partition("Nothing")[2]
    assert "bank reference or its beginning" in page


def test_a_reversal_is_named_by_what_it_reverses(browser: Client) -> None:
    entry = services.deposit(
        account=make_account(), amount=Decimal(5), booking_reference="INV-7", actor="admin:anna"
    )
    services.reverse(entry=entry, actor="admin:ben", note="Twice")

    for language, reversal in (
        ("en", "Reversal of deposit INV-7"),
        ("de", "Umkehrung von Einzahlung INV-7"),
    ):
        browser.defaults["HTTP_ACCEPT_LANGUAGE"] = language
        names = [name for _, name in offered(browser, "INV-7")]
        assert reversal in names
        assert "reversal-of-entry" not in str(names)


def test_a_result_has_the_state_in_the_words_of_its_page(browser: Client, order: Order) -> None:
    complaint = make_complaint()
    first, second = complaint.open(0), complaint.open(1)
    support = staff_with(StaffRole.SUPPORT)
    propose_replacement(case=first, version=1, actor=support)
    credit_case(
        case=second, version=1, actor=support, amount=Decimal(1), note="Sorry", may_book=False
    )

    def about(text: str, language: str) -> str:
        browser.defaults["HTTP_ACCEPT_LANGUAGE"] = language
        answer = browser.post(PATH, {"text": text}, headers={"HX-Request": "true"})
        return str(answer.context["hits"][0].about)

    assert about(order.reference, "en").endswith(", Completed")
    assert about(order.reference, "de").endswith(", Abgeschlossen")
    for case, english, german in (
        (first, "Replacement proposed", "Ersatz vorgeschlagen"),
        (second, "Waits for approval of a credit", "Wartet auf die Freigabe einer Gutschrift"),
    ):
        for language, state in (("en", english), ("de", german)):
            assert about(f"case {case.pk}", language).endswith(f", {state}")
            assert state in text_of(browser.get(url(case)))
            assert state in text_of(browser.get(url(case.order)))


def test_a_code_is_found_by_its_digest_alone(browser: Client, merchant: Merchant) -> None:
    product = make_product(codes=1)
    row = product.shelves.get().codes.get()
    code = merchant.buy(product_id=product.pk, quantity=1).json()["data"]["codes"][0]["code"]
    typed = f" {code[:3]}-{code[3:]} "  # dashes and spaces do not matter

    for text in (code, typed):
        with CaptureQueriesContext(connection) as queries:
            assert found(browser, text) == {("Voucher code", row)}
        sent = " ".join(query["sql"] for query in queries)
        assert code not in sent
        assert text.strip() not in sent


def test_codes_of_one_serial_number_say_what_tells_them_apart(
    browser: Client, merchant: Merchant
) -> None:
    shelf = own_shelf(make_product(name="Steam 10"))
    codes = [Code(f"AB-{number}", serial_number="SN-00074") for number in range(3)]
    add_codes(shelf=shelf, rows=list(enumerate(codes)))
    trace_codes()
    reference = merchant.buy(product_id=shelf.product.pk, quantity=1).json()["data"]["reference"]

    for text in ("SN-00074", "sn-00074"):
        answer = browser.post(PATH, {"text": text})
        assert answer.status_code == 200  # not to the first of them
        abouts = [hit.about for hit in answer.context["hits"]]
        assert abouts[:2] == ["Steam 10, in stock"] * 2
        assert abouts[2] == f"Steam 10, sold, {reference}, {merchant.account}"
        order = Order.objects.get(reference=reference)
        assert [one.url for one in answer.context["results"]].count(url(order)) == 1
        answer = browser.post(PATH, {"text": text}, headers={"HX-Request": "true"})
        assert "data-unclear" in answer.content.decode()
    assert browser.post(PATH, {"text": "ab-1"}).status_code == 302
    assert "data-unclear" not in browser.post(PATH, {"text": "orders"}).content.decode()


def test_the_secret_of_a_key_is_in_no_statement(browser: Client, merchant: Merchant) -> None:
    with CaptureQueriesContext(connection) as queries:
        assert found(browser, merchant.key) == {("Client", merchant.client)}

    assert merchant.key not in " ".join(query["sql"] for query in queries)


def test_what_is_typed_is_in_no_log_or_address(
    browser: Client, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    answer = browser.post(PATH, {"text": "MY-SECRET-CODE"})

    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    assert "MY-SECRET-CODE" not in answer.content.decode()
    assert "MY-SECRET-CODE" not in caplog.text + "".join(capsys.readouterr())
    assert browser.get(PATH, {"text": "staff"}).context["hits"] == []


def test_the_field_keeps_what_was_typed_unless_it_is_a_secret(browser: Client) -> None:
    add_codes(shelf=own_shelf(make_product(name="Moon A")), rows=[(0, Code("AB-1"))])
    make_product(name="Moon B")

    assert 'value="moon"' in browser.post(PATH, {"text": "moon"}).content.decode()
    page = browser.post(PATH, {"text": "AB-1"}, follow=True).content.decode()
    assert 'value="AB-1"' not in page


def test_a_reference_leads_straight_to_its_order(browser: Client, order: Order) -> None:
    make_record(order.client, order_reference=order.reference)  # the order's page shows it

    answer = browser.post(PATH, {"text": order.reference})

    assert (answer.status_code, answer["Location"]) == (302, url(order))


def test_a_reference_without_an_order_leads_to_its_request(
    browser: Client, merchant: Merchant
) -> None:
    """A purchase that a restore has lost, for example."""
    record = make_record(merchant.client, order_reference="01M8DFG8Q0ATEG2AYBV664S2N0")

    assert found(browser, "01m8dfg8q0ateg2aybv664s2n0") == {("Request", record)}


@pytest.mark.parametrize("text", ["", " ", "\x00", "%_'; --\\", "9" * 40, "x" * 3000, "🙂", "--1"])
def test_odd_texts_find_nothing_and_break_nothing(text: str, browser: Client) -> None:
    assert found(browser, text) == set()


# What each role finds of what the world below has.
ROLES = {
    StaffRole.OPERATOR: {"Top-up"},
    StaffRole.SENIOR_OPERATOR: {"Top-up"},
    StaffRole.FINANCE: {"Order", "Account", "Client", "Request", "Booking", "Product"},
    StaffRole.STOCK_KEEPER: {"Product", "Top-up product", "Voucher code"},
    StaffRole.ADMINISTRATOR: {"Account", "Product", "Top-up product", "Staff"},
    StaffRole.MERCHANT_MANAGER: {
        *("Account", "Client", "Request", "Member", "Order", "Product", "Top-up product"),
    },
    StaffRole.SUPPORT: {
        *("Account", "Client", "Request", "Member", "Order", "Product", "Top-up product"),
        "Voucher code",
    },
    StaffRole.AUDITOR: {
        *("Account", "Booking", "Client", "Member", "Order", "Product", "Request", "Staff"),
        *("Top-up product", "Voucher code"),
    },
}


def test_the_table_names_every_role() -> None:
    assert set(ROLES) == set(StaffRole)


def test_a_role_finds_only_what_it_may_see(merchant: Merchant) -> None:
    account = merchant.account
    member = make_member(account, email="kim@shop.example")
    product, topup = make_product(codes=1), make_topup_product()
    code = merchant.buy("k-1", product_id=product.pk, quantity=1).json()["data"]
    reference = buy_topup(merchant, topup)
    record = make_record(merchant.client)
    booking = rows("SELECT booking_reference FROM wallets_ledgerentry WHERE wallet_id = %s"
                   " AND kind = 'deposit'", account.pk)[0][0]  # fmt: skip
    texts = [reference, code["reference"], code["codes"][0]["code"], merchant.key, account.name,
             product.name, topup.name, member.user.email, str(record.request_id), booking, "k-1",
             make_staff().username]  # fmt: skip
    for role, kinds in ROLES.items():
        browser = browser_with(role)
        assert {kind for text in texts for kind, _ in found(browser, text)} == kinds, role


def test_a_code_that_one_may_not_see_is_not_passed_on(merchant: Merchant) -> None:
    product = make_product(codes=1)
    code = merchant.buy(product_id=product.pk, quantity=1).json()["data"]["codes"][0]["code"]
    make_product(name=f"Not {code}")
    browser = signed_in(make_staff("catalogue.view_product"))

    with CaptureQueriesContext(connection) as queries:
        assert found(browser, code) == set()
    assert code not in " ".join(query["sql"] for query in queries)


def test_a_search_says_what_the_role_may_not_see(merchant: Merchant) -> None:
    operator = make_staff(FULFIL)
    text = merchant.account.name
    for browser, words in (
        (signed_in(operator), "were not searched: account, "),
        (signed_in(), "Nothing was found"),
    ):
        page = browser.post(PATH, {"text": "no such thing"}).content.decode()
        assert words in page
        assert ("not searched" in page) == ("Nothing was found" not in page)
        assert "Type a whole" in page
    assert "account" not in kinds_out_of_reach(sees=lambda model: model is type(merchant.account))
    assert found(signed_in(operator), text) == set()


def test_results_of_other_kinds_do_not_hide_what_was_not_searched() -> None:
    make_product(name="Card A")
    make_product(name="Card B")
    note = "were not searched: "
    for rights, is_told in ((("catalogue.view_product",), True), ((), False)):
        person = signed_in(make_staff(*rights)) if rights else signed_in()
        page = person.post(PATH, {"text": "Card"}).content.decode()
        assert "Card B" in page
        assert (note in page) == is_told
        assert ("voucher code" in page.partition(note)[2]) == is_told
        assert "Type a whole" not in page


def test_nobody_else_can_search(merchant: Merchant) -> None:
    account = merchant.account
    member = Client()
    member.force_login(make_member(account).user, backend="accounts.sign_in.limits.PasswordBackend")
    for browser in (Client(), member):
        assert browser.post(PATH, {"text": account.name}).status_code == 302
    assert signed_in(csrf=True).post(PATH, {"text": "x"}).status_code == 403


# Tables that grow with orders. No search may read one from its beginning to its end.
LARGE = {"orders_order", "topups_fulfilment", "idempotency_idempotencyrecord",
         "accounts_requestrecord", "catalogue_vouchercode", "wallets_ledgerentry"}  # fmt: skip


def test_every_search_of_a_large_table_uses_an_index(merchant: Merchant, order: Order) -> None:
    shelf = order.shelf_id
    fulfilment = Fulfilment.objects.get(order_reference=buy_topup(merchant))
    execute("SET LOCAL session_replication_role = replica")
    execute(
        "INSERT INTO orders_order (reference, client_id, number, shelf_id, quantity,"
        " units_per_sale, unit_price, total_price, currency, codes_mac)"
        " SELECT '01AAAAAA' || lpad(n::text, 18, '0'), %s, n + 100, %s, 1, 1, 1, 1, 'USD', ''"
        " FROM generate_series(1, 150000) n",
        order.client_id, shelf,
    )  # fmt: skip
    execute(
        "INSERT INTO topups_fulfilment SELECT (jsonb_populate_record(one, jsonb_build_object("
        "'id', one.id + n, 'order_reference', 'F' || n, 'player_id', 'p' || n))).*"
        " FROM topups_fulfilment one, generate_series(1, 40000) n WHERE one.id = %s",
        fulfilment.pk,
    )
    execute(
        "INSERT INTO idempotency_idempotencyrecord (client_id, key, fingerprint, attempt,"
        " created_at, started_at) SELECT %s, 'idem-' || n, '', 1, now(), now()"
        " FROM generate_series(1, 40000) n",
        order.client_id,
    )
    make_record(merchant.client)
    execute(
        "INSERT INTO accounts_requestrecord (at, request_id, client_id, account_id, method, path,"
        " status, code, reason, idempotency_key, milliseconds) SELECT now(), gen_random_uuid(),"
        " %s, %s, 'POST', '/x', 409, 'x', '', 'old-' || n, 1 FROM generate_series(1, 40000) n",
        order.client_id, merchant.client.account_id,
    )  # fmt: skip
    execute("SELECT brin_summarize_new_values('accounts_request_by_value')")
    execute("SELECT brin_summarize_new_values('topups_fulfilment_by_player')")
    execute("ANALYZE")
    account = merchant.client.account
    texts = [order.reference, order.reference[:12], order.reference[-6:], "idem-77", "p77",
             "7f7c5f4e-6a0e-4f0c-9d9a-0123456789ab", merchant.key, "CODE-123"]  # fmt: skip
    with CaptureQueriesContext(connection) as queries:
        for text in texts:
            assert find_for_staff(text, sees=lambda model: True)[1] == []
            order_search.find_orders(text, account=account)
            order_search.find_orders(
                text, account=account, since=order.created_at, until=order.created_at
            )

    for each in queries:
        if not each["sql"].startswith("SELECT"):
            continue
        plan = rows(f"EXPLAIN (FORMAT JSON) {each['sql']}".replace("%", "%%"))[0][0]
        assert scanned(plan[0]["Plan"]) == set(), json.dumps(plan)


def scanned(plan: dict[str, Any]) -> set[str]:
    found = {scan for child in plan.get("Plans", ()) for scan in scanned(child)}
    if plan["Node Type"] == "Seq Scan":
        found |= {plan["Relation Name"]} & LARGE
    return found


def offered(browser: Client, text: str = "") -> list[tuple[str, str]]:
    """The kinds and the names of what the palette shows."""
    answer = browser.post(PATH, {"text": text}, headers={"HX-Request": "true"})
    return [(result.kind, result.name) for result in answer.context["results"]]


def test_the_palette_offers_what_the_reader_may_begin(browser: Client) -> None:
    auditor = signed_in(staff_with(StaffRole.AUDITOR))
    for words, name in (
        ("book mon", "Book money"),
        ("codes HOLD", "Hold codes"),
        ("invite", "Invite staff"),
        ("new product", "New product"),
        ("import codes", "Import codes…"),
    ):
        assert ("Action", name) in offered(browser, words), words
        assert ("Action", name) not in offered(auditor, words), words
        assert [one for one in offered(auditor, words) if one[0] == "Action"] == [], words


# What people type, and the first result.
MEANT = {
    "refund": "Pay back an order",
    "refunds": "Pay back an order",
    "deposit": "Book money",
    "top up": "Top-up products",
    "topup": "Top-up products",
    "top up balance": "Book money",
    "price": "Price lists",
    "change price": "Change prices",
    "discount": "Price lists",
    "user": "Staff",
    "add user": "Invite staff",
    "password": "Change password",
    "reset password": "Staff",
    "stock": "Stock levels",
    "add stock": "Imports",
    "merchant": "Accounts",
    "customer": "Accounts",
    "profit": "Sales and margins",
    "ticket": "Cases",
    "2fa": "Second factor",
    "who saw": "Who saw codes",
}
MEANT_IN_GERMAN = {
    "erstattung": "Bestellung zurückzahlen",
    "einzahlung": "Geld buchen",
    "guthaben aufladen": "Geld buchen",
    "preis": "Preise ändern",
    "rabatt": "Preislisten",
    "benutzer": "Team",
    "passwort": "Passwort ändern",
    "bestand": "Bestände",
    "händler": "Konten",
    "kunde": "Konten",
    "gewinn": "Verkäufe und Margen",
}


@pytest.mark.parametrize(("language", "meant"), [("en", MEANT), ("de", MEANT_IN_GERMAN)])
def test_the_first_result_is_what_people_mean(language: str, meant: dict[str, str]) -> None:
    make_product(name="Deposit card")
    staff = make_staff(superuser=True)
    staff.set_password("x")
    staff.save()
    browser = signed_in(staff)
    browser.defaults["HTTP_ACCEPT_LANGUAGE"] = language
    assert {text: offered(browser, text)[0][1] for text in meant} == meant


def test_a_row_of_this_name_comes_before_pages(browser: Client) -> None:
    product = make_product(name="Price lists")
    make_product(name="Price lists, old")
    names = [name for _, name in offered(browser, "price LISTS")]
    assert names[:2] == [product.name, "Price lists"]
    assert "Price lists, old" in names[2:]


def test_the_words_of_pages_name_pages_of_the_menu(browser: Client) -> None:
    sections = navigation(browser.get(PATH).wsgi_request)
    named = {item["key"] for section in sections for item in section["items"] if "key" in item}
    assert set(WORDS) - named == set()


def test_a_slow_kind_is_named_and_hides_no_result(
    browser: Client, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = make_product(name="Moon card")
    slow = Finder("Player", Order, lambda text: Order.objects.extra(where=["pg_sleep(9) IS NULL"]))
    finders = search._finders
    monkeypatch.setattr(search, "SECONDS", 1)
    monkeypatch.setattr(search, "_finders", lambda: [slow, *finders()])
    merchant.buy(product_id=make_product(codes=1).pk, quantity=1)

    page = browser.post(PATH, {"text": "moon card"}, headers={"HX-Request": "true"})

    assert [hit.row for hit in page.context["hits"]] == [product]
    assert "so they were not searched: player." in page.text
    page = browser.post(PATH, {"text": "moon card"})  # does not lead to the only result
    assert "so they were not searched: player." in page.text


def test_a_text_without_words_names_no_page(browser: Client) -> None:
    page = browser.post(PATH, {"text": "--"}, headers={"HX-Request": "true"})
    assert "Page" not in {result.kind for result in page.context["results"]}


def test_an_action_leads_to_its_form(browser: Client) -> None:
    shelf = own_shelf(make_product())
    batch, account = make_batch(shelf), make_account()
    order = Order.objects.get(reference=buy_topup(make_merchant()))
    auditor = signed_in(staff_with(StaffRole.AUDITOR))
    asked = {
        "booking": (account.pk, url(account, "book")),
        "credit": (f" {order.reference.lower()}", url(order, "credit")),
        "hold": (batch.pk, url(batch, "hold")),
        "price": (shelf.pk, f"/admin/catalogue/shelf/prices/?row={shelf.pk}"),
    }
    for name, (row, form) in asked.items():
        address = reverse("begin", args=[name])
        assert address in offered_addresses(browser), name
        assert auditor.get(address).status_code == 403
        assert 'name="row"' in browser.get(address).text
        assert browser.post(address, {"row": "x"}).context["form"].errors
        answer = browser.post(address, {"row": row})
        assert answer["Location"] == form
        assert "<form" in browser.get(form).text
    assert browser.get(reverse("begin", args=["nothing"])).status_code == 404


def test_the_form_that_holds_codes_finds_each_batch(browser: Client) -> None:
    batches = [make_batch(own_shelf(make_product(name=name))) for name in ("Moon", "Star")]
    path = reverse("find_batches")
    assert path in browser.get(reverse("begin", args=["hold"])).text
    found = {
        text: [int(one["id"]) for one in browser.get(path, {"term": text}).json()["results"]]
        for text in ("", "moon", "nothing of this name")
    }
    assert found[""][:2] == [batches[1].pk, batches[0].pk]
    assert found["moon"] == [batches[0].pk]
    assert found["nothing of this name"] == []
    assert signed_in(staff_with(StaffRole.AUDITOR)).get(path).status_code == 403


def test_each_action_of_the_palette_opens(browser: Client) -> None:
    words = ("in", "new", "import", "co", "re", "se", "ru", "…")
    found = {one for word in words for one in offered_addresses(browser, word)}
    answers = {one: browser.get(one).status_code for one in found}
    assert len(answers) > 20
    assert {one: code for one, code in answers.items() if code not in (200, 302)} == {}


def offered_addresses(browser: Client, text: str = "") -> list[str]:
    """The addresses of the actions that the palette shows."""
    answer = browser.post(PATH, {"text": text}, headers={"HX-Request": "true"})
    return [one.url for one in answer.context["results"] if one.kind == "Action"]


def test_what_was_found_offers_its_buttons(browser: Client, order: Order) -> None:
    answer = browser.post(PATH, {"text": order.reference}, headers={"HX-Request": "true"})
    results = answer.context["results"]
    buttons = {result.name: result.url for result in results if result.kind == "Action"}

    assert results[0].url == url(order)
    assert "Open a case…" in buttons
    assert {browser.get(address).status_code for address in buttons.values()} <= {200, 302, 405}
    assert url(order) not in buttons.values()


def test_the_palette_begins_with_what_was_opened_last(order: Order) -> None:
    staff = staff_with(StaffRole.SUPPORT)
    browser, product = signed_in(staff), order.shelf and order.shelf.product
    rows: list[Any] = [product, order, order.client.account, order]
    for row in rows:
        assert browser.get(url(row)).status_code == 200

    account = order.client.account
    names = [name for kind, name in offered(browser) if kind == "Recent"]
    assert names == [f"{product} · {account}", str(account), str(product)]
    staff.groups.clear()
    assert [one for one in offered(signed_in(staff)) if one[0] == "Recent"] == []


def test_the_palette_keeps_no_words_that_are_a_secret(browser: Client, merchant: Merchant) -> None:
    product = make_product(codes=1, name="Moon card")
    answer = merchant.buy(product_id=product.pk, quantity=1).json()["data"]
    texts = ("Moon card", answer["reference"], answer["codes"][0]["code"], merchant.key)
    pages = [browser.post(PATH, {"text": text}, headers={"HX-Request": "true"}) for text in texts]
    assert ["data-secret" in page.text for page in pages] == [False, False, True, True]


def test_the_palette_costs_few_statements(browser: Client, order: Order) -> None:
    rows: list[Any] = [order, order.client, order.client.account]
    for row in rows:
        browser.get(url(row))
    for text in ("", "new", order.reference):
        with CaptureQueriesContext(connection) as queries:
            offered(browser, text)
        assert len(queries) <= 40, text


def test_a_long_text_is_compared_with_pages_by_its_beginning_only(browser: Client) -> None:
    begin = process_time()
    assert not found(browser, "zz " * 20_000)
    assert process_time() - begin < 2  # a comparison of each word with each page: 5 seconds
