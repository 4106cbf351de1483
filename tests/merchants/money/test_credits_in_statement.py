"""A credit shows its order and its note on the merchant site and in the statement's files."""

import csv
import html
import io
import json
from decimal import Decimal

import pytest

from orders.remedies.credits import credit_order
from tests.factories import Merchant, buy_topup
from tests.merchants.money.test_statement import CSV, JSON, WALLET, downloaded
from tests.merchants.people import viewer_of
from topups.models import Channel


@pytest.mark.parametrize(
    ("note", "cell"),
    [
        ("Sorry, wrong region <b>", "Sorry, wrong region <b>"),
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@sum", "'@sum"),
    ],
)
@pytest.mark.django_db(transaction=True)
def test_a_credit_shows_its_order_and_its_note(merchant: Merchant, note: str, cell: str) -> None:
    account = merchant.account
    reference = buy_topup(merchant)
    credit_order(
        reference=reference,
        amount=Decimal("1.50"),
        note=note,
        actor="admin:anna",
        channel=Channel.ADMIN,
        booking_reference="form:1",
    )
    browser = viewer_of(account)

    entry, *others = csv.DictReader(io.StringIO(downloaded(browser.get(CSV, {"kind": "credit"}))))
    document = json.loads(downloaded(browser.get(JSON)))
    pages = [
        browser.get(path).content.decode() for path in (WALLET, f"/merchant/orders/{reference}/")
    ]

    assert (entry["kind"], entry["order_reference"], entry["note"]) == ("credit", reference, cell)
    assert not others
    assert [row["note"] for row in document["entries"]] == ["", "", note]
    for page in pages:
        assert html.escape(note) in page
        assert "anna" not in page
