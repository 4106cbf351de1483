"""A shop with stock, prices and sales, for a browser that looks at the pages about them."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import uuid4

import orjson
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from accounts.models import Account
from catalogue.imports.take_back import take_import_back
from catalogue.models import Batch, CodeHold, PriceList, PriceListEntry, Shelf, VoucherCode
from catalogue.price_lists import (
    Target,
    Terms,
    add_price_entry,
    assign_price_list,
    end_price_entry,
)
from catalogue.prices import set_prices
from catalogue.stock.batches import BatchDetails
from catalogue.stock.holds import hold_codes, void_hold
from catalogue.stock.traces import trace_codes
from figures.margin_counting import count_margins
from figures.models import DailyMargin, DailySales, ExchangeRate, MonthlyMargin, StockThreshold
from figures.sales_counting import count_sales
from figures.stock_counting import count_stock
from operators.imports import jobs
from operators.imports.models import FileImport, ImportKind, ImportState
from operators.warnings.models import StaffWarning
from operators.warnings.raising import sweep_warnings
from orders.remedies.credits import credit_order
from tests.factories import (
    Merchant,
    add_codes,
    buy_topup,
    make_account,
    make_batch,
    make_category,
    make_client,
    make_merchant,
    make_product,
    make_topup_product,
    make_variation,
    own_shelf,
)
from tests.operators.back_office import list_url, make_staff, url
from topups.models import Channel, TopUpProduct

# Names as long as those of real shops. The one of the file has no space at which it could wrap.
LONG = "A gift card with a long name for a shop of games in Central and Eastern Europe"
COMPANY = "Northern Lights Entertainment and Digital Distribution Limited"
FILE = "delivery_of_the_wholesaler_2026_11_27_with_all_codes_final_corrected.csv"
REASON = "The supplier asks for them back: they were printed twice, and another shop sold some."
PIN = "4711-0815"  # of each code of the first batch
COST = BatchDetails(unit_cost=Decimal("8.4567"), cost_currency="USD", supplier=COMPANY)


class StockedShop:
    """Something to show on each page of stock and prices. `pages` are their names and addresses."""

    def __init__(self) -> None:
        self.staff = make_staff(superuser=True)
        category = make_category()
        products = [
            make_product(name=f"Game card {price}", price=f"{price}", category=category)
            for price in range(10, 22)
        ]
        self.shelves = [own_shelf(product) for product in products]
        self.shelves.append(
            make_variation(products[-1], name=LONG, price="123456.7891", codes=3).shelf
        )
        self.topup = make_topup_product(announce=True)
        self.merchants = [make_merchant(balance="900000") for _ in range(3)]
        Account.objects.filter(pk=self.merchants[0].account.pk).update(name=COMPANY)
        self.pages = {
            "overview": "/admin/",
            **self._imports(),
            **self._batches(),
            **self._prices(),
            **self._sales(),
            **self._warnings(),
        }

    def _imports(self) -> dict[str, str]:
        """An import in each state."""
        shelf, stock = self.shelves[:2]
        codes = codes_file(*(f"FIRST-{number};{PIN}" for number in range(9)))
        last_day = datetime.now(UTC).date() + timedelta(days=20)
        details = replace(COST, invoice="INV-4711/11", expires_on=last_day)
        whole = self._imported(codes, shelf, details)
        self.batch = Batch.objects.get(pk=whole.result["batch"])
        back = self._imported(codes_file("BACK-1;1", "BACK-2;2"), stock, COST)
        self.taken_back = Batch.objects.get(pk=back.result["batch"])
        take_import_back(
            batch_id=self.taken_back.pk, reason=REASON, held_by="admin:test", actor=self.staff
        )

        wrong = self._checked(codes_file("FIRST-1;1", *["only a code"] * 30), shelf)
        ready = self._checked(codes_file("NEW-1;1", "1.23457E+15;2"), shelf, COST)
        checking = self._uploaded(codes_file("NEW-3;3"), shelf)
        importing = self._confirmed(codes_file("NEW-4;4"), shelf)
        stopped = self._uploaded(codes_file("NEW-5;5"), shelf)
        discarded = self._checked(codes_file("NEW-6;6"), shelf)
        jobs.discard_import(pk=discarded.pk, actor=self.staff)
        catalogue = self._imported(self._catalogue(times=1.1))
        prices = self._checked(self._catalogue(times=3))
        change(checking, done=checking.size // 2)
        change(importing, done=importing.size // 2)
        change(stopped, state=ImportState.STOPPED, problems=[jobs.UNFINISHED])
        change(prices, result={**prices.result, "moved": True})
        return {
            "imports": list_url(FileImport),
            "import with mistakes": url(wrong),
            "import to confirm": url(ready),
            "import being checked": url(checking),
            "import under way": url(importing),
            "import that is done": url(whole),
            "import taken back": url(back),
            "import that stopped": url(stopped),
            "import discarded": url(discarded),
            "catalogue to confirm": url(prices),
            "catalogue imported": url(catalogue),
        }

    def _batches(self) -> dict[str, str]:
        """A batch of which some codes are sold, held and void."""
        ours = VoucherCode.objects.filter(self.batch.its_codes).order_by("position")
        for merchant, quantity in zip(self.merchants, (2, 1, 1), strict=True):
            buy(merchant, self.shelves[0], quantity)
        *held, void = ours.filter(order_id=None)[:3]
        self._hold(*held)
        void_hold(self._hold(void).pk, actor=self.staff)
        trace_codes()
        hold = CodeHold.objects.filter(voided_at=None).latest("pk")
        return {
            "batches": list_url(Batch),
            "batch": url(self.batch),
            "who bought": url(self.batch, "recall"),
            "release a batch": url(self.batch, "release"),
            "batch taken back": url(self.taken_back),
            "codes": list_url(VoucherCode),
            "held codes": list_url(VoucherCode, state="held"),
            "held code": url(held[0]),
            "holds": list_url(CodeHold),
            "hold": url(hold),
        }

    def _prices(self) -> dict[str, str]:
        """A list with prices that hold, begin later and have ended; and a planned price."""
        shelf, other, *_ = self.shelves
        price_list = PriceList.objects.create(name=f"Gold partners of {COMPANY}", currency="USD")
        everything = Target()
        category = Target(category_id=shelf.product.category_id)
        later = timezone.now() + timedelta(days=30)

        def add(target: Target, terms: Terms, **times: datetime) -> PriceListEntry:
            return add_price_entry(
                price_list_id=price_list.pk,
                target=target,
                terms=terms,
                actor=self.staff,
                **times,
            )

        add(everything, Terms(percent_off=Decimal("2.5")))
        add(category, Terms(percent_off=Decimal(5)))
        add(Target(shelf_id=self.shelves[-1].pk), Terms(price=Decimal("123000.1234")))
        add(Target(product_id=other.product_id), Terms(for_sale=False))
        add(Target(topup_product_id=self.topup.pk), Terms())
        ended = add(Target(shelf_id=shelf.pk), Terms(price=Decimal(9)))
        end_price_entry(entry_id=ended.pk, actor=self.staff)
        until = later + timedelta(days=30)
        planned = add(category, Terms(percent_off=Decimal(7)), valid_from=later, valid_until=until)
        account = self.merchants[0].account
        assign_price_list(account_id=account.pk, price_list_id=price_list.pk, actor=self.staff)

        self._set_price(shelf, "11.5")
        self._set_price(shelf, "123456.7891", starts_at=later)
        set_prices(
            rows=TopUpProduct.objects.all(),
            prices={self.topup.pk: (self.topup.price, Decimal("5.49"))},
            starts_at=later,
            actor=self.staff,
        )
        query = "&".join(f"row={one.pk}" for one in self.shelves)
        self.prices = f"/admin/catalogue/shelf/prices/?{query}"
        return {
            "price lists": list_url(PriceList),
            "price list": url(price_list),
            "add a price": url(price_list, "add_price"),
            "prices of a list": list_url(PriceListEntry, price_list__id__exact=price_list.pk),
            "price that begins later": url(planned),
            "shelves": list_url(Shelf),
            "planned price": url(shelf),
            "withdraw a price": url(shelf, "withdraw_price"),
            "prices of shelves": self.prices,
            "account": url(account),
            "prices of an account": url(account, "prices"),
        }

    def _sales(self) -> dict[str, str]:
        """Sales of many days in two currencies, some without a known cost, with a credit."""
        merchant = self.merchants[0]
        add_codes(self.shelves[2], 5)
        unknown = buy(merchant, self.shelves[2], 2)
        credit_order(
            reference=unknown,
            amount=Decimal("1.5"),
            note="came late",
            actor="admin:test",
            channel=Channel.ADMIN,
            booking_reference="credit of the shop",
        )
        buy(self.merchants[1], self.shelves[-1], 1)
        buy_topup(merchant, self.topup)
        in_euros = Merchant(make_client(make_account(balance="900", currency="EUR")))
        shelf = own_shelf(make_product(name=LONG, price="20", currency="EUR"))
        bought = make_batch(shelf, 9)
        Batch.objects.filter(pk=bought.pk).update(unit_cost=Decimal(17), cost_currency="CHF")
        today = datetime.now(UTC).date()
        ExchangeRate.objects.create(currency="CHF", into="EUR", day=today, rate=Decimal("1.0625"))
        buy(in_euros, shelf, 3)
        for count in (count_sales, count_margins, count_stock):
            count()
        repeat_sales(today)
        queries: dict[str, dict[str, Any]] = {
            "margins": {},
            "margins by day": {"by": "day", "since": today - timedelta(days=7)},
            "margins of 92 days": {"since": today - timedelta(days=91)},
            "margins by month": {"by": "month", "since": today - timedelta(days=300)},
            "margins of a supplier": {"by": "batch", "supplier": COMPANY},
            "margins of a wrong period": {"since": "2026-02-02", "until": "2026-02-01"},
        }
        return {name: reverse("margins", query=query) for name, query in queries.items()}

    def _warnings(self) -> dict[str, str]:
        """Warnings about stock and about a batch that expires, and one that is over."""
        StockThreshold.objects.create(shelf=self.shelves[0], stock=50)
        StockThreshold.objects.create(shelf=self.shelves[-1], stock=9, days=Decimal("7.5"))
        sweep_warnings()
        StaffWarning.objects.create(
            kind="low_stock", subject="shelf 0", text=f"{LONG}: sold out", ended_at=timezone.now()
        )
        return {
            "warnings": list_url(StaffWarning),
            "stock limits": list_url(StockThreshold),
        }

    def _uploaded(
        self, content: bytes, shelf: Shelf | None = None, details: BatchDetails | None = None
    ) -> FileImport:
        return jobs.upload_file(
            kind=ImportKind.CODES if shelf else ImportKind.CATALOGUE,
            content=content,
            file_name=FILE if shelf else "catalogue.json",
            shelf=shelf,
            actor=self.staff,
            token=uuid4(),
            details=details,
        )

    def _checked(self, *file: Any) -> FileImport:
        return run(self._uploaded(*file))

    def _confirmed(self, *file: Any) -> FileImport:
        row = self._checked(*file)
        assert jobs.confirm_import(pk=row.pk, actor=self.staff, seen=row.version)
        return row

    def _imported(self, *file: Any) -> FileImport:
        row = run(self._confirmed(*file))
        assert row.state == ImportState.IMPORTED
        return row

    def _catalogue(self, *, times: float) -> bytes:
        """The catalogue with other prices of some products."""
        rows = [
            {
                "id": shelf.product_id,
                "name": shelf.product.name,
                "currency": "USD",
                "price": f"{float(shelf.price or 0) * times:.2f}",
            }
            for shelf in self.shelves[3:9]
        ]
        return orjson.dumps({"products": rows})

    def _hold(self, *codes: VoucherCode) -> CodeHold:
        chosen = Q(pk__in=[code.pk for code in codes])
        hold, _ = hold_codes(codes=chosen, reason=REASON, held_by="admin:test", actor=self.staff)
        assert hold is not None
        return hold

    def _set_price(self, shelf: Shelf, price: str, starts_at: datetime | None = None) -> None:
        before = Shelf.objects.get(pk=shelf.pk).price
        set_prices(
            rows=Shelf.objects.select_related("product", "variation__product"),
            prices={shelf.pk: (before, Decimal(price))},
            starts_at=starts_at,
            actor=self.staff,
        )


def codes_file(*lines: str) -> bytes:
    return "\n".join(["code;pin_code", *lines, ""]).encode()


def change(row: FileImport, **values: Any) -> None:
    FileImport.objects.filter(pk=row.pk).update(**values)


def run(row: FileImport) -> FileImport:
    """The import after a worker took its next step."""
    jobs.run_import(pk=row.pk)
    return FileImport.objects.get(pk=row.pk)


def buy(merchant: Merchant, shelf: Shelf, quantity: int) -> str:
    """Buys codes, and returns the reference of the order."""
    where: dict[str, Any] = {"variation_id": shelf.variation_id} if shelf.variation_id else {}
    answer = merchant.buy(product_id=shelf.product_id, quantity=quantity, **where)
    assert answer.status_code == 201, answer.content
    return str(answer.json()["data"]["reference"])


def repeat_sales(today: date) -> None:
    """Has the 40 days before today, and the 12 months before this one, sell the same or more."""
    month = today.replace(day=1)
    days = [today - timedelta(days=ago) for ago in range(1, 41)]
    months = [(month - timedelta(days=30 * ago)).replace(day=1) for ago in range(1, 13)]
    tables: list[Any] = [(DailySales, days), (DailyMargin, days), (MonthlyMargin, months)]
    for model, times in tables:
        rows: list[dict[str, Any]] = list(model._default_manager.values())
        model._default_manager.bulk_create(
            (
                model(**more_of(row, factor=1 + place % 4), day=day)
                for row in rows
                for place, day in enumerate(dict.fromkeys(times))
            ),
            ignore_conflicts=True,  # the shop bought around midnight, and has sales of yesterday
        )


def more_of(row: dict[str, Any], *, factor: int) -> dict[str, Any]:
    """The sales of a row, so many times."""
    sums = ("orders", "quantity", "amount", "sold")
    return {
        name: value * factor if name in sums else value
        for name, value in row.items()
        if name not in ("id", "day")
    }
