"""The purchase log names every purchase, and nothing secret; `hold_codes` reads it back."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from catalogue.models import VoucherCode
from idempotency.models import IdempotencyRecord
from orders import purchase_log
from orders.lost_purchases import hold_lost_purchases
from orders.models import LostPurchase
from orders.purchase_log import LoggedPurchase, read_purchases
from tests.commands import refusal, run
from tests.factories import Merchant, buy_topup, make_merchant, make_product

pytestmark = pytest.mark.django_db

EARLY = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def log(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    """Returns a file with what was logged since the last call."""
    purchase_log._log.cache_clear()

    def written() -> Path:
        file = tmp_path / "web.log"
        file.write_text(capsys.readouterr().err)
        return file

    yield written
    purchase_log._log.cache_clear()


@pytest.fixture
def merchant() -> Merchant:
    return make_merchant(balance="100.00")


def lines(file: Path) -> list[dict[str, Any]]:
    events = [json.loads(line) for line in file.read_text().splitlines()]
    return [event for event in events if event["event"] == "order_created"]


def lost(file: Path) -> list[LoggedPurchase]:
    """The purchases of a log, under other references: as if the database did not have them."""
    purchases = read_purchases([file], since=EARLY)
    return [
        LoggedPurchase(**{**vars(purchase), "reference": f"LOST{purchase.reference[4:]}"})
        for purchase in purchases
    ]


def test_a_purchase_leaves_one_line_that_opens_nothing(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    order = merchant.buy("my-key", product_id=product.pk, quantity=2).json()["data"]
    file = log()
    (line,) = lines(file)
    digests = VoucherCode.objects.filter(shelf__product=product).values_list("digest", flat=True)
    assert line["reference"] == order["reference"]
    assert "my-key" not in file.read_text()
    (read,) = read_purchases([file], since=EARLY)
    assert read.key == "my-key"
    assert line["price"] == "4.0000"
    assert sorted(line["codes"]) == sorted(bytes(digest).hex() for digest in digests)
    assert line["request_id"]
    for code in order["codes"]:
        assert code["code"] not in file.read_text()
    assert merchant.key not in file.read_text()


@pytest.mark.django_db(transaction=True)
def test_a_replay_and_a_refusal_leave_no_line(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=1)
    merchant.buy("my-key", product_id=product.pk, quantity=1)
    log()
    assert merchant.buy("my-key", product_id=product.pk, quantity=1).status_code == 201
    assert merchant.buy("other", product_id=product.pk, quantity=1).status_code == 409
    assert lines(log()) == []


def test_a_topup_leaves_a_line_without_codes(log: Any, merchant: Merchant) -> None:
    reference = buy_topup(merchant)
    (line,) = lines(log())
    assert (line["reference"], line["codes"], line["price"]) == (reference, [], "4.9900")


def test_a_log_that_cannot_be_written_fails_no_purchase(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    product = make_product(price="2.00", codes=1)
    with Path("/dev/full").open("w") as full:
        monkeypatch.setattr("sys.stderr", full)
        purchase_log._log.cache_clear()
        assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
        purchase_log._log.cache_clear()
        with suppress(OSError):
            full.close()


def test_what_the_database_has_is_left_alone(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    merchant.buy(product_id=product.pk, quantity=1)
    answer = run("hold_codes", "--log", log(), "--since", "2020-01-01T00:00Z")
    assert (answer["hold"], answer["codes_held"], answer["purchases_lost"]) == (None, 0, 0)
    assert not LostPurchase.objects.exists()


def test_a_key_that_was_claimed_but_did_not_buy_is_blocked(log: Any, merchant: Merchant) -> None:
    """The restore may keep the claim of a lost purchase, because the claim came first."""
    product = make_product(price="2.00", codes=2)
    merchant.buy("my-key", product_id=product.pk, quantity=1)
    purchases = lost(log())
    IdempotencyRecord.objects.filter(key="my-key").update(
        order_reference=None, bought_at=None, response=None
    )
    assert hold_lost_purchases(purchases, reason="test", held_by="x")["purchases_lost"] == 1
    retried = merchant.buy("my-key", product_id=product.pk, quantity=1)
    assert retried.json()["error"]["code"] == "request_abandoned"
    assert retried.json()["error"]["reference"] == purchases[0].reference


def test_a_sale_of_a_lost_client_holds_its_codes(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    merchant.buy(product_id=product.pk, quantity=1)
    purchases = [
        LoggedPurchase(**{**vars(purchase), "client_id": 987_654_321}) for purchase in lost(log())
    ]
    answer = hold_lost_purchases(purchases, reason="test", held_by="x")
    assert (answer["purchases_lost"], answer["purchases_of_unknown_clients"]) == (1, 1)


def test_only_sales_since_the_given_time_are_read(log: Any, merchant: Merchant) -> None:
    product = make_product(price="2.00", codes=2)
    merchant.buy(product_id=product.pk, quantity=1)
    file = log()
    assert len(list(read_purchases([file], since=EARLY))) == 1
    assert list(read_purchases([file], since=datetime(2100, 1, 1, tzinfo=UTC))) == []


def test_what_a_collector_puts_in_front_of_a_line_is_skipped(
    log: Any, merchant: Merchant, tmp_path: Path
) -> None:
    buy_topup(merchant)
    file = tmp_path / "collected.log"
    file.write_text(
        "".join(
            f"Nov 22 host web[7]: {line}\n" for line in log().read_text().splitlines(keepends=True)
        )
    )
    assert len(list(read_purchases([file], since=EARLY))) == 1


@pytest.mark.parametrize(
    "line",
    [
        '{"event": "order_created"}',
        '{"event": "order_created", "reference": ',
        '"order_created"',
    ],
)
def test_a_damaged_line_is_refused_with_its_place(line: str, tmp_path: Path) -> None:
    file = tmp_path / "web.log"
    file.write_text(f"other\n{line}\n")
    refused = refusal("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert f"{file}:2" in refused


def test_wrong_arguments_are_explained(tmp_path: Path) -> None:
    file = tmp_path / "missing.log"
    assert "No such file" in refusal("hold_codes", "--log", file, "--since", "2020-01-01T00:00Z")
    assert "--since" in refusal("hold_codes", "--log", file)
    for time in ("yesterday", "2026-02-31T00:00Z", "2026-11-22T10:00"):
        assert "is not a time" in refusal("hold_codes", "--log", file, "--since", time)
