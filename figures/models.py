"""Figures: sums and counts of sales, margins and stock, stock limits and exchange rates."""

from __future__ import annotations

from decimal import Decimal

from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from accounts.models import Account, ApiClient
from catalogue.models import Batch, PriceList, Shelf
from core.database.columns import (
    CURRENCY_CODE,
    CURRENCY_LENGTH,
    MONEY_DECIMALS,
    MONEY_DIGITS,
    validate_currency,
)
from core.texts import lazy, local_figure
from topups.models import TopUpProduct
from wallets.models import Wallet


class DailySales(models.Model):
    """Purchases of one thing by an account on one day (UTC), in the account's currency.

    Counted from orders after they were made, off the purchase path (figures/sales_counting.py).
    Refunds and credits are not subtracted. `quantity` counts codes.
    """

    day = models.DateField()
    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, db_index=False, related_name="daily_sales"
    )
    shelf = models.ForeignKey(
        Shelf, on_delete=models.PROTECT, null=True, related_name="daily_sales"
    )
    topup_product = models.ForeignKey(
        TopUpProduct, on_delete=models.PROTECT, db_index=False, null=True, related_name="+"
    )
    orders = models.PositiveIntegerField()
    quantity = models.PositiveBigIntegerField()
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)

    class Meta:
        verbose_name_plural = "daily sales"
        indexes = [models.Index(name="figures_daily_sales_account", fields=["account", "day"])]
        constraints = [
            models.UniqueConstraint(
                name="figures_daily_sales_once",
                fields=["day", "account", "shelf", "topup_product"],
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="figures_daily_sales_of_one_thing",
                condition=Q(shelf__isnull=False, topup_product=None)
                | Q(shelf=None, topup_product__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"sales of {self.day}"


class DailyTotal(models.Model):
    """The purchases of one account, of one thing in one currency, or of all in one currency, on one
    day (UTC): sums of DailySales, which a trigger keeps (figures/sql/sums.sql)."""

    day = models.DateField()
    currency = models.CharField(max_length=CURRENCY_LENGTH)
    account = models.ForeignKey(
        Account, on_delete=models.PROTECT, null=True, db_index=False, related_name="+"
    )
    shelf = models.ForeignKey(
        Shelf, on_delete=models.PROTECT, null=True, db_index=False, related_name="+"
    )
    topup_product = models.ForeignKey(
        TopUpProduct, on_delete=models.PROTECT, null=True, db_index=False, related_name="+"
    )
    orders = models.PositiveBigIntegerField()
    quantity = models.PositiveBigIntegerField()
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)

    class Meta:
        indexes = [
            models.Index(name="figures_daily_total_account", fields=["account", "day"]),
            models.Index(
                name="figures_daily_total_of_all",
                fields=["day"],
                condition=Q(account=None, shelf=None, topup_product=None),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                name="figures_daily_total_once",
                fields=["day", "currency", "account", "shelf", "topup_product"],
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="figures_daily_total_of_one_thing",
                condition=Q(account=None, shelf=None)
                | Q(account=None, topup_product=None)
                | Q(shelf=None, topup_product=None),
            ),
        ]

    def __str__(self) -> str:
        return f"total of {self.day}"


class CountedSales(models.Model):
    """The number of orders of a client in DailySales: those numbered 1 to `orders`."""

    client = models.OneToOneField(ApiClient, on_delete=models.PROTECT, primary_key=True)
    orders = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"counted orders of client {self.pk}"


class MarginFigures(models.Model):
    """Sales of one thing to an account in a time, in the account's currency.

    A voucher order counts to the batches of its codes: each has its codes, and its part of the
    price. `quantity` counts codes, or top-ups. `paid_back` is what was refunded and credited in
    this time, for orders of any time. The cost is computed when figures are read, so a corrected
    cost of a batch counts at once (figures/margins.py).
    """

    day = models.DateField()
    account = models.ForeignKey(Account, on_delete=models.PROTECT, db_index=False, related_name="+")
    shelf = models.ForeignKey(
        Shelf, on_delete=models.PROTECT, db_index=False, null=True, related_name="+"
    )
    topup_product = models.ForeignKey(
        TopUpProduct, on_delete=models.PROTECT, db_index=False, null=True, related_name="+"
    )
    batch = models.ForeignKey(
        Batch, on_delete=models.PROTECT, db_index=False, null=True, related_name="+"
    )
    quantity = models.PositiveBigIntegerField()
    sold = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)
    paid_back = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)

    class Meta:
        abstract = True
        constraints = [
            models.UniqueConstraint(
                name="%(app_label)s_%(class)s_once",
                fields=["day", "account", "shelf", "topup_product", "batch"],
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="%(app_label)s_%(class)s_of_one_thing",
                condition=Q(shelf__isnull=False, topup_product=None)
                | Q(shelf=None, topup_product__isnull=False, batch=None),
            ),
        ]

    def __str__(self) -> str:
        return f"margin of {self.day}"


class DailyMargin(MarginFigures):
    """The figures of one day (UTC)."""

    class Meta(MarginFigures.Meta):
        default_permissions = ("view",)


class MonthlyMargin(MarginFigures):
    """The same figures, added up by month. `day` is the first of the month."""

    class Meta(MarginFigures.Meta):
        default_permissions = ()


class MarginSum(MarginFigures):
    """The same figures, added up for one account, or over all accounts for one thing and batch.

    A trigger keeps them (figures/sql/sums.sql). Reports of all accounts read these rows
    instead of those of each account."""

    account = models.ForeignKey(  # type: ignore[assignment]  # it may be null here
        Account, on_delete=models.PROTECT, db_index=False, null=True, related_name="+"
    )
    currency = models.CharField(max_length=CURRENCY_LENGTH)

    class Meta:
        abstract = True
        default_permissions = ()
        constraints = [
            # The account comes first: a period of one account, or of none, is one range.
            models.UniqueConstraint(
                name="%(app_label)s_%(class)s_once",
                fields=["account", "day", "currency", "shelf", "topup_product", "batch"],
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="%(app_label)s_%(class)s_of_one_thing",
                condition=Q(account__isnull=False, shelf=None, topup_product=None, batch=None)
                | Q(account=None, shelf__isnull=False, topup_product=None)
                | Q(account=None, shelf=None, topup_product__isnull=False, batch=None),
            ),
        ]


class DailyMarginSum(MarginSum):
    """The sums of DailyMargin. Few rows have something paid back; the overview reads only those."""

    class Meta(MarginSum.Meta):
        indexes = [
            models.Index(name="figures_daily_paid_back", fields=["day"], condition=~Q(paid_back=0))
        ]


class MonthlyMarginSum(MarginSum):
    """The sums of MonthlyMargin."""

    class Meta(MarginSum.Meta):
        pass


class DailySpending(models.Model):
    """The purchases of a client on one day (UTC), before refunds and credits."""

    day = models.DateField()
    client = models.ForeignKey(
        ApiClient, on_delete=models.PROTECT, db_index=False, related_name="+"
    )
    amount = models.DecimalField(max_digits=MONEY_DIGITS, decimal_places=MONEY_DECIMALS)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="figures_daily_spending_once", fields=["client", "day"])
        ]
        indexes = [models.Index(name="figures_daily_spending_day", fields=["day"])]

    def __str__(self) -> str:
        return f"spending of {self.day}"


class CountedMargin(models.Model):
    """The number of orders of a client in the margin figures: those numbered 1 to `orders`."""

    client = models.OneToOneField(ApiClient, on_delete=models.PROTECT, primary_key=True)
    orders = models.PositiveBigIntegerField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"counted orders of client {self.pk}"


class CountedPayback(models.Model):
    """The last refund or credit of a wallet in the margin figures: all before it are, too."""

    wallet = models.ForeignKey(Wallet, on_delete=models.PROTECT, related_name="+", db_index=False)
    kind = models.CharField(max_length=16)
    last_entry = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="figures_counted_payback_once", fields=["wallet", "kind"])
        ]

    def __str__(self) -> str:
        return f"counted entries of wallet {self.wallet_id}"


class DailyStock(models.Model):
    """How many codes of a batch were in stock when they were last counted on a day (UTC). Codes
    without a batch are one row for each shelf."""

    day = models.DateField()
    shelf = models.ForeignKey(Shelf, on_delete=models.PROTECT, db_index=False, related_name="+")
    batch = models.ForeignKey(
        Batch, on_delete=models.PROTECT, db_index=False, null=True, related_name="+"
    )
    codes = models.PositiveBigIntegerField()
    counted_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="figures_daily_stock_once",
                fields=["day", "shelf", "batch"],
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"stock of {self.day}"


class ExchangeRate(models.Model):
    """The value of one unit of a currency in another one, from a day until the next rate.

    Staff enter it. The cost of a batch is converted with the rate of the day of its import (UTC).
    """

    currency = models.CharField(
        max_length=CURRENCY_LENGTH,
        validators=[validate_currency],
        help_text=lazy("What you pay with."),
    )
    into = models.CharField(
        max_length=CURRENCY_LENGTH,
        validators=[validate_currency],
        help_text=lazy("What you sell in."),
    )
    day = models.DateField(
        "from", help_text=lazy("The first day on which this rate counts, in UTC.")
    )
    rate = models.DecimalField(
        max_digits=20,
        decimal_places=10,
        validators=[MinValueValidator(Decimal("0.0000000001"))],
        help_text=lazy("How many units of the second currency one unit of the first one is worth."),
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="figures_exchange_rate_once", fields=["currency", "into", "day"]
            ),
            models.CheckConstraint(
                name="figures_exchange_rate_is_positive", condition=Q(rate__gt=0)
            ),
            models.CheckConstraint(
                name="figures_exchange_rate_is_of_two_currencies",
                condition=Q(currency__regex=CURRENCY_CODE, into__regex=CURRENCY_CODE)
                & ~Q(currency=F("into")),
                violation_error_message=lazy("Choose two different currencies."),
            ),
        ]

    def __str__(self) -> str:
        values = {"currency": self.currency, "into": self.into, "day": local_figure(str(self.day))}
        return _("%(currency)s to %(into)s from %(day)s") % values


class StockThreshold(models.Model):
    """The stock below which staff are warned about one shelf or top-up product, in place of the
    limit of the rule of such warnings."""

    shelf = models.OneToOneField(
        Shelf, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    topup_product = models.OneToOneField(
        TopUpProduct,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        verbose_name=lazy("top-up product"),
        help_text=lazy("One with counted stock."),
    )
    stock = models.PositiveIntegerField(
        "fewer than", null=True, blank=True, help_text=lazy("A number of codes or top-ups.")
    )
    days = models.DecimalField(
        "enough for fewer days than",
        max_digits=6,
        decimal_places=1,
        null=True,
        blank=True,
        validators=[MinValueValidator(Decimal(0))],
        help_text=lazy("At the pace of the last seven days."),
    )

    class Meta:
        verbose_name = "stock limit"
        constraints = [
            models.CheckConstraint(
                name="figures_stock_threshold_of_one_thing",
                condition=Q(shelf__isnull=False, topup_product=None)
                | Q(shelf=None, topup_product__isnull=False),
                violation_error_message=lazy("Choose a shelf or a top-up product, not both."),
            ),
            models.CheckConstraint(
                name="figures_stock_threshold_has_a_limit",
                # PostgreSQL accepts a row if a check is unknown: days >= 0 is, without days.
                condition=(Q(days=None) & Q(stock__isnull=False))
                | (Q(days__isnull=False) & Q(days__gte=0)),
                violation_error_message=lazy("Enter a number, or days, or both."),
            ),
        ]

    def __str__(self) -> str:
        return str(self.shelf or self.topup_product)


class PastOfPrice(models.Model):
    """A fact about the past of a shelf's or top-up product's prices (figures/low_prices.py)."""

    shelf = models.ForeignKey(Shelf, on_delete=models.CASCADE, null=True, related_name="+")
    topup_product = models.ForeignKey(
        TopUpProduct, on_delete=models.CASCADE, null=True, related_name="+"
    )

    class Meta:
        abstract = True
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                name="%(app_label)s_%(class)s_of_one_thing",
                condition=Q(shelf__isnull=False, topup_product=None)
                | Q(shelf=None, topup_product__isnull=False),
            ),
        ]


class EarlierTerms(PastOfPrice):
    """The category and quantity step that were replaced at a time."""

    category = models.BigIntegerField(null=True)  # also of a category that was deleted
    step = models.PositiveIntegerField()
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"earlier terms {self.pk}"


class AgreedFall(PastOfPrice):
    """A low price that two people agreed on, regular or in a list, and the time of its start.

    Rows whose time is older than a week are deleted with the next one.
    """

    price_list = models.ForeignKey(PriceList, on_delete=models.CASCADE, null=True, related_name="+")
    since = models.DateTimeField()

    def __str__(self) -> str:
        return f"agreed fall {self.pk}"


class EarlierList(models.Model):
    """The price list, or none, that an account had until a time.

    `low_prices` is the number of low prices of the new list, on which two people agreed; 0 if one
    person replaced the list alone. Rows that are older than a week are deleted with the next one.
    """

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="+")
    price_list = models.ForeignKey(PriceList, on_delete=models.CASCADE, null=True, related_name="+")
    low_prices = models.PositiveIntegerField(default=0)
    until = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"earlier price list of account {self.account_id}"
