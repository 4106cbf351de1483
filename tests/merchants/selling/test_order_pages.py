"""The order pages show all orders of the account, no other account's, and never a code."""

import csv
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils.html import strip_tags
from pytest_django import Settings

from accounts.models import Account
from catalogue.models import VoucherCode
from catalogue.stock.codes import open_code
from orders.account_orders import list_account_orders
from orders.models import Order, OrderStatus
from orders.search import find_orders
from tests.answers import without_random_values
from tests.concurrency.racing import execute
from tests.factories import (
    Merchant,
    buy_topup,
    link,
    make_account,
    make_client,
    make_field,
    make_operator,
    make_product,
    make_topup_product,
    make_variation,
    move_now,
    own_shelf,
)
from tests.merchants.people import browser_of, make_member, viewer_of
from tests.neighbour import ours
from topups.fulfilment.fulfilments import failure_reason
from topups.fulfilment.refunds import carry_out_refund
from topups.fulfilment.transitions import Move
from topups.models import Channel, Fulfilment, RejectReason

pytestmark = pytest.mark.django_db

ORDERS = "/merchant/orders/"


def two_clients(balance: str = "1000.00") -> tuple[Account, Merchant, Merchant]:
    account = make_account(balance=balance)
    return account, Merchant(make_client(account)), Merchant(make_client(account))


def buy(merchant: Merchant, product: Any, **body: Any) -> str:
    answer = merchant.buy(product_id=product.pk, **{"quantity": 1, **body})
    assert answer.status_code == 201, answer.content
    reference: str = answer.json()["data"]["reference"]
    return reference


def shown(answer: Any) -> list[str]:
    return [order.reference for order in answer.context["orders"]]


def listed(account: Account, **filters: Any) -> list[str]:
    found = list_account_orders(account, **filters)
    return [order.reference for order in found.orders(found.rows.order_by(f"-{found.key}"))]


def date_back(reference: str, moment: datetime) -> None:
    """Changes the time of an order and its entries. The triggers forbid it, so they are off."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, column in (
            ("orders_order", "reference"),
            ("wallets_ledgerentry", "order_reference"),
            ("topups_fulfilment", "order_reference"),
        ):
            cursor.execute(
                f"UPDATE {table} SET created_at = %s WHERE {column} = %s",
                [moment, reference],
            )
        cursor.execute("SET LOCAL session_replication_role = origin")


def test_the_list_shows_all_orders_of_the_account_newest_first() -> None:
    account, one, two = two_clients()
    product = make_product(price="1.00", codes=9)
    bought = [buy(merchant, product) for merchant in (one, two, one, two)]
    bought.append(buy_topup(one))
    stranger = Merchant(make_client(make_account()))
    buy(stranger, product)

    answer = viewer_of(account).get(ORDERS)

    assert shown(answer) == bought[::-1]


def test_orders_are_filtered_by_client_status_and_day() -> None:
    account, one, two = two_clients()
    product = make_product(price="1.00", codes=9)
    voucher, old, other = buy(one, product), buy(one, product), buy(two, product)
    waiting, delivered, failed = buy_topup(one), buy_topup(two), buy_topup(two)
    operator = make_operator()
    for reference in (delivered, failed):
        move_now(reference=reference, move=Move.CLAIM, operator=operator)
    move_now(reference=delivered, move=Move.COMPLETE, operator=operator)
    move_now(reference=failed, move=Move.REJECT, operator=operator)
    browser = viewer_of(account)
    client = str(two.client.pk)

    assert shown(browser.get(ORDERS, {"client": client})) == [failed, delivered, other]
    assert shown(browser.get(ORDERS, {"status": "pending"})) == [waiting]
    assert shown(browser.get(ORDERS, {"status": "failed"})) == [failed]
    assert shown(browser.get(ORDERS, {"status": "completed"})) == [delivered, other, old, voucher]
    assert shown(browser.get(ORDERS, {"status": "completed", "client": client})) == [
        delivered,
        other,
    ]
    assert shown(browser.get(ORDERS, {"status": "pending", "client": client})) == []
    today = datetime.now(UTC).date().isoformat()
    assert len(shown(browser.get(ORDERS, {"since": today, "until": today}))) == 6
    assert shown(browser.get(ORDERS, {"until": "2026-01-01"})) == []


def test_a_day_filter_works_with_every_other_filter() -> None:
    account, one, two = two_clients()
    product = make_product(price="1.00", codes=9)
    start = datetime(2026, 1, 1, 12, tzinfo=UTC)
    bought = []
    for day in range(8):
        reference = buy(one, product) if day % 2 else buy_topup(one)
        date_back(reference, start + timedelta(days=day))
        bought.append(reference)
    buy(two, product)
    period = {
        "since": datetime(2026, 1, 3, tzinfo=UTC),
        "until": datetime(2026, 1, 7, tzinfo=UTC),
    }

    assert listed(account, **period) == bought[2:6][::-1]
    assert listed(account, client=one.client, **period) == bought[2:6][::-1]
    assert listed(account, status=OrderStatus.PENDING, **period) == [bought[4], bought[2]]
    assert listed(account, client=two.client, **period) == []
    assert listed(account, client=two.client, until=period["until"]) == []
    assert listed(account, client=make_client(account), **period) == []


def test_orders_are_filtered_by_product(monkeypatch: pytest.MonkeyPatch) -> None:
    account, one, two = two_clients()
    steam, xbox = (make_product(name=name, price="1.00", codes=9) for name in ("Steam", "Xbox"))
    europe = make_variation(xbox, name="Steam of Europe", price="1.00", codes=2)
    old, _ = buy(one, steam), buy(one, xbox)
    new, other = buy(two, steam), buy(one, xbox, variation_id=europe.pk)
    topup = buy_topup(one, make_topup_product(name="Gems for Steam"), player_id="0077")
    buy_topup(one, make_topup_product(name="Gems"), player_id="0077")
    browser = viewer_of(account)

    def found(**query: str) -> list[str]:
        return shown(browser.get(ORDERS, {"product": "steam", **query}))

    assert found() == [topup, other, new, old]
    assert found(client=str(two.client.pk)) == [new]
    assert found(status="pending") == [topup]
    assert found(status="completed") == [other, new, old]
    assert found(since="2199-01-01") == found(until="2001-01-01") == found(product="%") == []
    assert shown(browser.post(ORDERS, {"q": "0077", "product": "Steam"}, follow=True)) == [topup]
    kept = browser.post(ORDERS, {"product": "Steam"})
    assert kept["Location"] == f"{ORDERS}?product=Steam"

    monkeypatch.setattr("orders.search.NEWEST_OF_ACCOUNT", 4)  # two of each client
    answer = browser.get(ORDERS, {"product": "steam"})
    assert shown(answer) == [topup, new]
    assert "among the newest" in answer.content.decode()
    file = b"".join(browser.get(f"{ORDERS}orders.csv?product=steam")).decode()
    for reference in (topup, other, new, old):
        assert reference in file
    assert file.count("\r\n") == 5


def test_pages_have_no_gaps_or_repetitions() -> None:
    account, one, two = two_clients()
    product = make_product(price="1.00", codes=100)
    bought = [buy((one, two)[n % 2], product) for n in range(55)]
    browser = viewer_of(account)

    first = browser.get(ORDERS)
    second = browser.get(f"{ORDERS}?{first.context['page'].older}")
    back = browser.get(f"{ORDERS}?{second.context['page'].newer}")

    assert shown(first) + shown(second) == bought[::-1]
    assert shown(back) == shown(first)


@pytest.mark.parametrize(
    "query",
    ["client=0", "client=" + "9" * 30, "client=x", "client=%00", "status=lost", "since=x"],
)
def test_a_bad_filter_is_explained(query: str) -> None:
    answer = viewer_of(make_account()).get(f"{ORDERS}?{query}")

    assert answer.status_code == 200
    assert 'aria-invalid="true"' in answer.content.decode()


def test_another_accounts_client_cannot_be_chosen() -> None:
    _, one, _ = two_clients()
    browser = viewer_of(make_account())

    foreign = browser.get(ORDERS, {"client": one.client.pk})
    unknown = browser.get(ORDERS, {"client": 999_999})

    assert one.client.name not in foreign.content.decode()
    assert foreign.context["filters"].errors == unknown.context["filters"].errors != {}


def test_no_page_shows_or_reads_a_code() -> None:
    account, one, _ = two_clients()
    product = make_product(price="1.00", codes=3)
    reference = buy(one, product, quantity=3)
    browser = viewer_of(account)

    with CaptureQueriesContext(connection) as queries:
        pages = [
            browser.get(path).content.decode()
            for path in (ORDERS, f"{ORDERS}{reference}/", "/merchant/wallet/", "/merchant/")
        ]

    assert not any("catalogue_vouchercode" in query["sql"] for query in queries)
    codes = [
        open_code(row.sealed, row.digest)
        for row in VoucherCode.objects.filter(shelf__product=product)
    ]
    assert len(codes) == 3
    for page in pages:
        for code in codes:
            assert code.code not in page
            assert str(code.serial_number) not in page
    assert reference in pages[1]


def test_a_voucher_order_is_shown() -> None:
    account, one, _ = two_clients()
    variation = make_variation(make_product(), price="9.00", codes=6, quantity_step=3)
    link(account, "my-own-name", variation.shelf)
    reference = buy(one, variation.product, variation_id=variation.pk, quantity=6)

    page = viewer_of(account).get(f"{ORDERS}{reference}/").content.decode()

    for part in (
        reference,
        one.client.name,
        variation.name,
        variation.product.name,
        "my-own-name",
        "9.00 USD",
        "18.00 USD",
        "-18.00",
        "982.00",
        "2 units of 3",
        "Completed",
    ):
        assert part in page, part


def test_a_top_up_order_is_shown_with_fulfilment_and_refund() -> None:
    account, one, _ = two_clients()
    reference = buy_topup(one, make_topup_product(price="4.99"), player_id="0012345")
    browser = viewer_of(account)
    waiting = browser.get(f"{ORDERS}{reference}/").content.decode()
    operator = make_operator(username="anna-the-operator")
    move_now(reference=reference, move=Move.CLAIM, operator=operator)
    move_now(reference=reference, move=Move.REJECT, operator=operator, note="internal remark")
    from_topups = Fulfilment.objects.get(order_reference=reference)
    assert from_topups.refund_due_at is not None

    failed = browser.get(f"{ORDERS}{reference}/").content.decode()

    assert "Pending" in waiting
    assert "0012345" in waiting
    assert "fulfilment_failed" in failed.replace("<wbr>", "")
    assert "on its way" in failed
    assert "Refunded" not in waiting
    assert "/docs/top-ups/#ends" in failed
    assert "Refund on its way" in browser.get(ORDERS).content.decode()
    assert "Processing" in failed
    assert "anna-the-operator" not in failed
    assert "internal remark" not in failed


def test_a_top_up_order_is_shown_with_the_fields_of_its_player() -> None:
    account, one, _ = two_clients()
    product = make_topup_product()
    field = make_field(product, "dropdown", label="Server", options=["eu", "us"])
    field.options.filter(value="eu").update(label="Europe")
    reference = buy_topup(one, product, fields={str(field.number): "eu"})
    browser = viewer_of(account)

    page = browser.get(f"{ORDERS}{reference}/").content.decode()
    answer: Any = browser.get(f"{ORDERS}orders.csv")
    (row,) = csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig")))

    assert "<dt>Server</dt><dd>Europe</dd>" in page
    assert row["fields"] == "Server: Europe"


@pytest.mark.parametrize("odd", ["A" * 26, "a" * 26, "x", "%00" * 26, "0" * 500, "%F0%9F%92%A9"])
def test_another_accounts_order_is_a_404_like_an_unknown_one(odd: str) -> None:
    _, one, _ = two_clients()
    reference = buy(one, make_product(price="1.00", codes=1))
    browser = viewer_of(make_account())

    foreign = browser.get(f"{ORDERS}{reference}/")
    unknown = browser.get(f"{ORDERS}{odd}/")

    assert foreign.status_code == unknown.status_code == 404
    assert without_random_values(foreign) == without_random_values(unknown)


def test_many_orders_take_no_more_queries_than_one() -> None:
    account, one, two = two_clients()
    product = make_product(price="1.00", codes=30)
    variation = make_variation(product, price="1.00", codes=30)
    browser = viewer_of(account)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            browser.get(ORDERS)
        return len(captured)

    def buy_some(number: int) -> None:
        for _ in range(number):
            buy(one, product)
            buy(two, product, variation_id=variation.pk)
            buy_topup(two)

    buy_some(1)
    browser.get(ORDERS)
    few = queries()
    buy_some(9)

    assert queries() == few
    assert ours(Order).count() == 30


def test_the_selector_refuses_another_accounts_client() -> None:
    account, _, _ = two_clients()

    with pytest.raises(ValueError, match="another account"):
        list_account_orders(account, client=make_client(make_account()))


def test_an_order_from_a_products_own_shelf_names_the_product() -> None:
    account, one, _ = two_clients()
    product = make_product(price="1.00", codes=1)
    assert own_shelf(product).variation is None

    buy(one, product)

    assert product.name in viewer_of(account).get(ORDERS).content.decode()


def test_orders_are_found_by_reference_player_and_key() -> None:
    account, one, other = two_clients()
    product = make_product(codes=5)
    bought = one.buy("key-1", product_id=product.pk, quantity=1).json()["data"]["reference"]
    topups = [buy_topup(each, player_id="0077") for each in (one, other)]
    stranger = Merchant(make_client(make_account()))
    foreign = stranger.buy("key-1", product_id=product.pk, quantity=1).json()["data"]["reference"]
    buy_topup(stranger, player_id="0077")
    viewer = viewer_of(account)

    def found(**query: str) -> list[str]:
        return shown(viewer.post(ORDERS, query, follow=True))

    for text in (bought, bought.lower(), bought[:20], bought[-8:], "key-1", " key-1 "):
        assert found(q=text) == [bought], text
    assert found(q="0077") == topups[::-1]
    assert found(q="0077", client=str(other.client.pk)) == topups[1:]
    assert found(q="0077", status="completed") == []
    assert found(q="0077", since="2199-01-01") == []
    assert found(q=foreign) == found(q="nothing") == found(q="\x00") == []


def test_the_end_of_a_reference_is_looked_for_among_the_accounts_own_newest_orders(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    account, one, other = two_clients()
    product = make_product(codes=4)
    old, new, third = (buy(client, product) for client in (one, one, other))
    buy(Merchant(make_client(make_account())), product)
    monkeypatch.setattr("orders.search.NEWEST", 0)  # other accounts bought so much since

    for reference in (old, new, third):
        assert [o.reference for o in find_orders(reference[-8:], account=account)] == [reference]
    monkeypatch.setattr("orders.search.NEWEST_OF_ACCOUNT", 2)  # one of each client
    for reference, wanted in ((old, []), (new, [new]), (third, [third])):
        assert [o.reference for o in find_orders(reference[-8:], account=account)] == wanted
    assert [o.reference for o in find_orders(old[:20], account=account)] == [old]
    assert find_orders(old[-8:], account=make_account()) == []


def test_an_old_order_is_found_by_its_key_and_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing else keeps its key, and other orders of the account are newer."""
    monkeypatch.setattr("orders.search.NEWEST_OF_ACCOUNT", 2)  # one of each client
    account, one, other = two_clients()
    product = make_product(codes=6)
    old = one.buy("key-1", product_id=product.pk, quantity=1).json()["data"]["reference"]
    stranger = Merchant(make_client(make_account()))
    foreign = stranger.buy("key-1", product_id=product.pk, quantity=1).json()["data"]["reference"]
    day = (datetime.now(UTC) - timedelta(days=40)).replace(hour=12)
    for reference in (old, foreign):
        date_back(reference, day)
    execute("DELETE FROM idempotency_idempotencyrecord")
    for client in (one, one, other):
        buy(client, product)
    viewer = viewer_of(account)

    def found(**query: str) -> list[str]:
        return shown(viewer.post(ORDERS, {"q": "key-1", **query}, follow=True))

    that_day, day_before = f"{day:%Y-%m-%d}", f"{day - timedelta(days=1):%Y-%m-%d}"
    assert found() == found(since=that_day) == found(until=day_before) == []
    assert found(since=that_day, until=that_day) == found(until=that_day) == [old]
    assert found(until=that_day, client=str(one.client.pk)) == [old]
    assert found(until=that_day, client=str(other.client.pk)) == []
    page = viewer.post(ORDERS, {"q": "key-1"}, follow=True).content.decode()
    assert "also choose its day and client: the newest 9,000 orders" in page


def test_what_is_searched_is_in_no_address() -> None:
    account, one, _ = two_clients()
    topup = buy_topup(one, player_id="0077")
    viewer = viewer_of(account)

    assert '<form method="post" action="/merchant/orders/"' in viewer.get(ORDERS).content.decode()
    listed = viewer.post(ORDERS, {"q": " ", "status": "pending", "since": ""})
    assert (listed.status_code, listed["Location"]) == (302, f"{ORDERS}?status=pending")
    assert shown(viewer.get(listed["Location"])) == [topup]
    assert viewer.post(ORDERS, {"q": "0077", "since": "x"}).context["filters"].errors
    old_address = viewer.get(ORDERS, {"q": "nothing", "status": "pending"})
    assert shown(old_address) == [topup]
    assert "nothing" not in old_address.content.decode()


@pytest.mark.parametrize(("records", "days"), [(30, 30), (6, 7)])
def test_a_search_without_result_says_how_long_a_key_is_kept(
    records: int, days: int, settings: Settings
) -> None:
    settings.RETENTION_DAYS = {**settings.RETENTION_DAYS, "requests": records}
    browser = browser_of(make_member())

    nothing_found = browser.post(ORDERS, {"q": "shop-4711"}, follow=True).content.decode()
    assert f"An idempotency key finds an order for {days} days." in nothing_found
    assert "idempotency key, an order" not in browser.get(ORDERS).content.decode()


def test_a_search_says_when_it_shows_only_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("merchants.frame.paging.MOST_FOUND", 2)
    account, one, other = two_clients()
    older = buy_topup(other, player_id="0077")
    topups = [buy_topup(one, player_id="0077") for _ in range(3)]
    viewer = viewer_of(account)

    answer = viewer.post(ORDERS, {"q": "0077"}, follow=True)

    assert shown(answer) == topups[:0:-1]
    assert "Only the newest 2 matching orders are shown" in answer.content.decode()
    narrow = viewer.post(ORDERS, {"q": "0077", "client": str(other.client.pk)}, follow=True)
    assert shown(narrow) == [older]
    assert "Only the newest" not in narrow.content.decode()


def test_an_order_shows_only_its_own_entries_and_moves() -> None:
    account, merchant, _ = two_clients()
    product = make_topup_product()
    one, other = (buy_topup(merchant, product) for _ in range(2))
    operator = make_operator()
    for reference in (one, other):
        move_now(reference=reference, move=Move.CLAIM, operator=operator)
    page = viewer_of(account).get(f"{ORDERS}{one}/").context
    assert [entry.order_reference for entry in page["entries"]] == [one]
    assert [event.to_status for event in page["moves"]] == ["pending", "processing"]


def test_a_refund_is_no_second_failure() -> None:
    account, merchant, _ = two_clients()
    reference = buy_topup(merchant, make_topup_product())
    move_now(reference=reference, move=Move.REJECT, operator=make_operator())
    assert carry_out_refund(Fulfilment.objects.get(order_reference=reference).pk)

    page = viewer_of(account).get(f"{ORDERS}{reference}/").context

    assert [event.to_status for event in page["moves"]] == ["pending", "failed"]


@pytest.mark.parametrize(
    ("channel", "reason", "words"),
    [
        (Channel.ADMIN, RejectReason.WRONG_ID, "The player ID is wrong."),
        (Channel.TELEGRAM, RejectReason.NO_STOCK, "The package is out of stock."),
        (Channel.COMMAND, RejectReason.OTHER, "It could not be delivered."),
    ],
)
def test_the_page_says_why_a_topup_failed(
    channel: Channel, reason: RejectReason, words: str
) -> None:
    owner = make_member()
    merchant = Merchant(make_client(owner.account))
    reference = buy_topup(merchant)
    move_now(
        reference=reference,
        move=Move.REJECT,
        operator=make_operator(channel=channel),
        reason=reason,
        note="for staff only",
        message="Ask the player for the ID in the profile.",
    )

    page = browser_of(owner).get(f"{ORDERS}{reference}/").content.decode()

    assert words in page
    assert ("reports most failures with this reason" in page) == (channel == Channel.ADMIN)
    assert "Ask the player for the ID in the profile." in page
    assert "for staff only" not in page
    read = merchant.get(f"/orders/{reference}").json()["data"]["failure_reason"]
    assert read == failure_reason(reason, channel)


def test_the_list_says_once_that_a_topup_is_pending() -> None:
    account, one, _ = two_clients()
    reference = buy_topup(one, make_topup_product(price="4.99"))
    browser = viewer_of(account)

    def state() -> str:
        cell = browser.get(ORDERS).content.decode().partition('<td class="state end">')[2]
        return " ".join(strip_tags(cell.partition("</td>")[0]).split())

    assert state() == "Pending"
    move_now(reference=reference, move=Move.CLAIM, operator=make_operator())
    assert state() == "Pending Processing"


def test_an_order_that_failed_earlier_has_the_words_of_its_failure_reason() -> None:
    for failure, words in (("wrong_id", "player ID"), ("fulfilment_failed", "not be delivered")):
        assert words in Fulfilment(failure_reason=failure, reject_reason="").why_it_failed
    assert Fulfilment().why_it_failed == ""
