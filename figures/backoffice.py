"""The declarations of `figures` for the back office (core/backoffice/)."""

from django.utils.translation import gettext_noop

from accounts.models import ApiClient
from catalogue.models import Batch, Product, Shelf
from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Check,
    Component,
    Gauges,
    MenuEntry,
    Rights,
    Section,
    Severity,
    StaffRight,
    Unit,
    Watch,
    full_access,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.texts import lazy
from figures.models import DailyMargin, DailySales, ExchangeRate, StockThreshold

CHECKS = [
    Check(
        gettext_noop("the totals of a day are the sums of its sales"),
        """
        WITH sums AS (
            SELECT day, currency, account_id, shelf_id, topup_product_id, sum(orders) AS orders,
                   sum(quantity) AS quantity, sum(amount) AS amount
              FROM figures_dailysales AS sales
              JOIN accounts_account AS account ON account.id = account_id
             /*period WHERE day IN_DAYS*/
             GROUP BY day, currency,
                      GROUPING SETS ((account_id), (shelf_id, topup_product_id), ())
        ), stored AS (
            SELECT day, currency, account_id, shelf_id, topup_product_id, orders, quantity, amount
              FROM figures_dailytotal /*period WHERE day IN_DAYS*/
        )
        SELECT DISTINCT format('the totals of %s in %s differ from the sums of its sales', day,
                               currency)
          FROM ((TABLE sums EXCEPT TABLE stored) UNION ALL (TABLE stored EXCEPT TABLE sums))
               AS different
        """,
    ),
    *(
        Check(
            title,
            f"""
            WITH sums AS (
                SELECT day, currency, account_id, shelf_id, topup_product_id, batch_id,
                       sum(quantity) AS quantity, sum(sold) AS sold, sum(paid_back) AS paid_back
                  FROM {table} AS margin
                  JOIN accounts_account AS account ON account.id = account_id
                 /*period WHERE day {of_period}*/
                 GROUP BY day, currency,
                          GROUPING SETS ((account_id), (shelf_id, topup_product_id, batch_id))
            ), stored AS (
                SELECT day, currency, account_id, shelf_id, topup_product_id, batch_id, quantity,
                       sold, paid_back
                  FROM {table}sum /*period WHERE day {of_period}*/
            )
            SELECT DISTINCT format('the margin sums of %s in %s differ from the rows of {table}',
                                   day, currency)
              FROM ((TABLE sums EXCEPT TABLE stored) UNION ALL (TABLE stored EXCEPT TABLE sums))
                   AS different
            """,  # noqa: S608  names of ours
        )
        for table, of_period, title in (
            (
                "figures_dailymargin",
                "IN_DAYS",
                gettext_noop("the margin sums of a day are those of its accounts"),
            ),
            (
                "figures_monthlymargin",
                "IN_MONTHS",
                gettext_noop("the margin sums of a month are those of its accounts"),
            ),
        )
    ),
    Check(
        gettext_noop("the daily sales add up to the counted orders"),
        # The rows are compared by account: those that were counted wrongly rarely cancel out.
        """
        SELECT format('account %s has %s counted orders of %s things for %s, its daily sales are'
                      ' %s of %s for %s', account_id, counted.orders, counted.quantity,
                      counted.amount, sales.orders, sales.quantity, sales.amount)
          FROM (SELECT client.account_id, count(*) AS orders, sum(quantity) AS quantity,
                       sum(total_price) AS amount
                  FROM figures_countedsales AS counted
                  JOIN orders_order AS sale ON sale.client_id = counted.client_id
                                           AND sale.number <= counted.orders
                  JOIN accounts_apiclient AS client ON client.id = counted.client_id
                 GROUP BY client.account_id) AS counted
          FULL JOIN (SELECT account_id, sum(orders) AS orders, sum(quantity) AS quantity,
                            sum(amount) AS amount
                       FROM figures_dailysales GROUP BY account_id) AS sales USING (account_id)
         WHERE (counted.orders, counted.quantity, counted.amount)
               IS DISTINCT FROM (sales.orders, sales.quantity, sales.amount)
        """,
        of_period="""
        SELECT format('account %s has %s counted orders of %s things for %s on %s, its daily sales'
                      ' are %s of %s for %s', account_id, counted.orders, counted.quantity,
                      counted.amount, day, sales.orders, sales.quantity, sales.amount)
          FROM (SELECT client.account_id, (sale.created_at AT TIME ZONE 'UTC')::date AS day,
                       count(*) AS orders, sum(quantity) AS quantity, sum(total_price) AS amount
                  FROM orders_order AS sale
                  JOIN figures_countedsales AS counted ON counted.client_id = sale.client_id
                                                     AND sale.number <= counted.orders
                  JOIN accounts_apiclient AS client ON client.id = sale.client_id
                 WHERE sale.id IN_IDS orders_order AND sale.created_at IN_TIMES
                 GROUP BY 1, 2) AS counted
          FULL JOIN (SELECT account_id, day, sum(orders) AS orders, sum(quantity) AS quantity,
                            sum(amount) AS amount
                       FROM figures_dailysales WHERE day IN_DAYS GROUP BY account_id, day) AS sales
               USING (account_id, day)
         WHERE (counted.orders, counted.quantity, counted.amount)
               IS DISTINCT FROM (sales.orders, sales.quantity, sales.amount)
        """,
    ),
    Check(
        gettext_noop("no client has more counted orders than orders"),
        """
        SELECT format('client %s has %s orders, of which %s are counted as sales',
                      client_id, coalesce(counter.orders, 0), counted.orders)
          FROM figures_countedsales AS counted
          LEFT JOIN orders_clientcounter AS counter USING (client_id)
         WHERE counted.orders > coalesce(counter.orders, 0)
        """,
    ),
    Check(
        gettext_noop("the margin figures add up to the counted orders, refunds and credits"),
        """
        SELECT format('account %s has counted orders of %s codes for %s, of which %s is paid back;'
                      ' its margin figures are %s codes, %s and %s', account_id, counted.quantity,
                      counted.sold, counted.paid_back, figures.quantity, figures.sold,
                      figures.paid_back)
          FROM (SELECT account_id, sum(quantity) AS quantity, sum(sold) AS sold,
                       sum(paid_back) AS paid_back
                  FROM (SELECT client.account_id, sale.quantity, total_price AS sold,
                               0 AS paid_back
                          FROM figures_countedmargin AS counted
                          JOIN orders_order AS sale ON sale.client_id = counted.client_id
                                                   AND sale.number <= counted.orders
                          JOIN accounts_apiclient AS client ON client.id = counted.client_id
                         UNION ALL
                        SELECT entry.wallet_id, 0, 0, amount
                          FROM figures_countedpayback AS counted
                          JOIN wallets_ledgerentry AS entry ON entry.wallet_id = counted.wallet_id
                           AND entry.kind = counted.kind AND entry.id <= last_entry) AS part
                 GROUP BY account_id) AS counted
          FULL JOIN (SELECT account_id, sum(quantity) AS quantity, sum(sold) AS sold,
                            sum(paid_back) AS paid_back
                       FROM figures_dailymargin GROUP BY account_id) AS figures USING (account_id)
         WHERE (counted.quantity, counted.sold, counted.paid_back)
               IS DISTINCT FROM (figures.quantity, figures.sold, figures.paid_back)
        """,
        of_period="""
        SELECT format('account %s has counted orders of %s codes for %s on %s, and %s paid back;'
                      ' its margin figures are %s codes, %s and %s', account_id, counted.quantity,
                      counted.sold, day, counted.paid_back, figures.quantity, figures.sold,
                      figures.paid_back)
          FROM (SELECT account_id, day, sum(quantity) AS quantity, sum(sold) AS sold,
                       sum(paid_back) AS paid_back
                  FROM (SELECT client.account_id, (sale.created_at AT TIME ZONE 'UTC')::date AS day,
                               sale.quantity, total_price AS sold, 0 AS paid_back
                          FROM orders_order AS sale
                          JOIN figures_countedmargin AS counted
                            ON counted.client_id = sale.client_id
                           AND sale.number <= counted.orders
                          JOIN accounts_apiclient AS client ON client.id = sale.client_id
                         WHERE sale.id IN_IDS orders_order AND sale.created_at IN_TIMES
                         UNION ALL
                        SELECT entry.wallet_id, (entry.created_at AT TIME ZONE 'UTC')::date, 0, 0,
                               amount
                          FROM wallets_ledgerentry AS entry
                          JOIN figures_countedpayback AS counted
                            ON counted.wallet_id = entry.wallet_id AND counted.kind = entry.kind
                           AND entry.id <= last_entry
                         WHERE entry.id IN_IDS wallets_ledgerentry
                           AND entry.created_at IN_TIMES) AS part
                 GROUP BY account_id, day) AS counted
          FULL JOIN (SELECT account_id, day, sum(quantity) AS quantity, sum(sold) AS sold,
                            sum(paid_back) AS paid_back
                       FROM figures_dailymargin WHERE day IN_DAYS
                      GROUP BY account_id, day) AS figures USING (account_id, day)
         WHERE (counted.quantity, counted.sold, counted.paid_back)
               IS DISTINCT FROM (figures.quantity, figures.sold, figures.paid_back)
        """,
    ),
    Check(
        gettext_noop("the margin figures of a month are those of its days"),
        """
        SELECT format('account %s in the month of %s: its days have %s codes and %s more',
                      account_id, month, sum(quantity), sum(sold))
          FROM (SELECT date_trunc('month', day)::date AS month, account_id, shelf_id,
                       topup_product_id, batch_id, quantity, sold, paid_back
                  FROM figures_dailymargin /*period WHERE day IN_MONTHS*/
                 UNION ALL
                SELECT day, account_id, shelf_id, topup_product_id, batch_id, -quantity, -sold,
                       -paid_back
                  FROM figures_monthlymargin /*period WHERE day IN_MONTHS*/) AS difference
         GROUP BY month, account_id, shelf_id, topup_product_id, batch_id
        HAVING sum(quantity) <> 0 OR sum(sold) <> 0 OR sum(paid_back) <> 0
        """,
    ),
    Check(
        gettext_noop("the daily spending of clients is what the margin figures say"),
        """
        SELECT format('account %s bought for %s on %s, its clients spent %s',
                      account_id, coalesce(figures.sold, 0), day, coalesce(spending.amount, 0))
          FROM (SELECT account_id, day, sum(sold) AS sold
                  FROM figures_dailymargin
                 /*period WHERE day IN_DAYS*/
                 GROUP BY 1, 2) AS figures
          FULL JOIN (SELECT client.account_id, day, sum(amount) AS amount
                       FROM figures_dailyspending AS spent
                       JOIN accounts_apiclient AS client ON client.id = spent.client_id
                      /*period WHERE day IN_DAYS*/
                      GROUP BY 1, 2) AS spending USING (account_id, day)
         WHERE coalesce(figures.sold, 0) <> coalesce(spending.amount, 0)
        """,
    ),
    Check(
        gettext_noop("no client has more orders in the margin figures than orders"),
        """
        SELECT format('client %s has %s orders, of which %s are in the margin figures',
                      client_id, coalesce(counter.orders, 0), counted.orders)
          FROM figures_countedmargin AS counted
          LEFT JOIN orders_clientcounter AS counter USING (client_id)
         WHERE counted.orders > coalesce(counter.orders, 0)
        """,
    ),
    Check(
        gettext_noop("the margin figures of a batch are its sold codes"),
        # While orders wait to be counted, a batch has sold more than its figures say.
        """
        SELECT format('batch %s sold %s codes, its margin figures say %s', id, sold, quantity)
          FROM (SELECT batch.id, figures.quantity,
                       (SELECT count(*) FROM catalogue_vouchercode AS code
                         WHERE code.id BETWEEN first_code AND last_code AND order_id IS NOT NULL)
                       AS sold
                  FROM catalogue_batch AS batch
                  JOIN (SELECT batch_id, sum(quantity) AS quantity FROM figures_dailymargin
                         GROUP BY batch_id) AS figures ON figures.batch_id = batch.id) AS batches
         WHERE quantity > sold
        """,
        weekly=True,
    ),
]

# Whether a shelf has a price, of its own or in any price list, even in one without accounts. Use it
# in a CASE: for a shelf without a price, it looks up an entry of every list.
HAS_PRICE = """
    (catalogue_regular_price(price, next_price, next_price_from, statement_timestamp()) IS NOT NULL
     OR EXISTS (SELECT FROM catalogue_pricelist AS list
                 WHERE catalogue_price(
                           list.currency, list.id, shelf.id, product.id, product.category_id,
                           product.currency, price, next_price, next_price_from,
                           statement_timestamp()
                       ) IS NOT NULL))
"""

GAUGES = [
    Gauges(
        {
            "voucher_shelf_days_left": "Days until the shelf is sold out, at the pace of the last"
            " seven days; for shelves on sale that sold something."
        },
        # The pace of a service that is younger than a day counts as a day's.
        f"""
        WITH week AS (
            SELECT (now() AT TIME ZONE 'UTC')::date - 7 AS first
        ), period AS (
            SELECT greatest(1, extract(epoch FROM now() - min(day)::timestamp AT TIME ZONE 'UTC')
                               / 86400) AS days
              FROM figures_dailytotal WHERE day >= (SELECT first FROM week)
        ), sold AS (
            SELECT shelf_id, sum(quantity) / (SELECT days FROM period) AS a_day
              FROM figures_dailytotal
             WHERE day >= (SELECT first FROM week) AND shelf_id IS NOT NULL GROUP BY shelf_id
        )
        SELECT shelf.id, product.name || coalesce(' / ' || variation.name, ''),
               available_stock / a_day
          FROM sold
          JOIN catalogue_shelf AS shelf ON shelf.id = sold.shelf_id
          JOIN catalogue_product AS product ON product.id = shelf.product_id
          LEFT JOIN catalogue_category AS category ON category.id = product.category_id
          LEFT JOIN catalogue_variation AS variation ON variation.id = shelf.variation_id
         WHERE CASE WHEN a_day > 0 THEN {HAS_PRICE} END
           AND catalogue_is_on_sale(product.active, category.active, variation.active)
         ORDER BY 3
         LIMIT 1000
        """,  # noqa: S608  expressions of ours
        labels=["shelf", "product"],
        seconds=60,
    ),
    Gauges(
        {
            "voucher_figures_late_seconds": "Age of the oldest order that is not counted in the"
            " figures of sales or margins; 0 if there is none."
        },
        """
        SELECT greatest(0, max(extract(epoch FROM now() - next.created_at)))
          FROM orders_clientcounter AS counter
          LEFT JOIN figures_countedsales AS sales ON sales.client_id = counter.client_id
          LEFT JOIN figures_countedmargin AS margins ON margins.client_id = counter.client_id
          JOIN LATERAL (SELECT least(coalesce(sales.orders, 0), coalesce(margins.orders, 0))
                               AS orders) AS counted ON counter.orders > counted.orders
          JOIN LATERAL (SELECT created_at FROM orders_order AS item
                         WHERE item.client_id = counter.client_id
                           AND item.number = counted.orders + 1
                        OFFSET 0) AS next ON true
        """,
        seconds=60,
    ),
]
COMPONENTS = [
    Component(
        title=lazy("Days until the first shelf is sold out"),
        gauge="voucher_shelf_days_left",
        unit=Unit.DAYS,
        amber=3,
        red=1,
        low_is_bad=True,
        advice=lazy("Buy codes for the shelves with the lowest stock, and import them."),
        alert=Alert(
            "VoucherShelfRunsOut",
            Severity.WARNING,
            "15m",
            "Shelf {{ $labels.shelf }} ({{ $labels.product }}) will be sold out in"
            " {{ $value | printf `%.1f` }} days.",
        ),
        model=Shelf,
    ),
    Component(
        title=lazy("Oldest order that is missing in sales or margins"),
        gauge="voucher_figures_late_seconds",
        unit=Unit.SECONDS,
        amber=300,
        red=1_800,
        advice=lazy(
            "Look for count_sales and count_margins in the worker's log. If neither fails, wait:"
            " after a rush or an upgrade, the figures catch up."
        ),
        alert=Alert(
            "VoucherFiguresLate",
            Severity.WARNING,
            "30m",
            "The figures of sales or margins lack an order that is"
            " {{ $value | humanizeDuration }} old.",
        ),
        model=DailySales,
        leads_to_list=False,
    ),
]

# The pace of today and the seven days before it. That of a service younger than a day is a day's.
PACE = """
    WITH period AS (
        SELECT greatest(1, extract(epoch FROM now() - min(day)::timestamp AT TIME ZONE 'UTC')
                           / 86400) AS days
          FROM figures_dailytotal WHERE day >= (now() AT TIME ZONE 'UTC')::date - 7
    ), pace AS (
        SELECT shelf_id, topup_product_id, sum(quantity) / (SELECT days FROM period) AS a_day
          FROM figures_dailytotal
         WHERE day >= (now() AT TIME ZONE 'UTC')::date - 7
           AND (shelf_id IS NOT NULL OR topup_product_id IS NOT NULL)
         GROUP BY shelf_id, topup_product_id
    )
"""
# A thing's own limit replaces that of the rule. What is sold out is always beyond it.
IS_LOW = """
    available_stock = 0
    OR CASE WHEN threshold.id IS NULL THEN available_stock / a_day < %(limit)s
            ELSE available_stock < coalesce(threshold.stock, 0)
                 OR coalesce(available_stock / a_day < threshold.days, false) END
"""
LEFT = """
    CASE WHEN available_stock = 0 THEN 'sold out'
         ELSE format('%%s left', available_stock)
              || coalesce(', enough for ' || round(available_stock / a_day, 1) || ' days', '')
    END
"""


def _money(name: str) -> str:
    """SQL of an amount such as 1,988.31, with up to four decimals if it has them."""
    return f"to_char({name}, 'FM999,999,999,999,990.0099')"


# Falls of the last day, whoever made them and however: of regular prices, and of those of price
# lists where an entry began or ended. Those of other categories and quantity steps are by code.
FALLS = """
    fell AS (
        SELECT 'shelf change ' || change.id AS subject, shelf_id, NULL::bigint AS topup_id,
               before, after
          FROM catalogue_shelfpricechange AS change
         WHERE change.id > (SELECT max(id) - 50000 FROM catalogue_shelfpricechange)
           AND starts_at IS NULL AND changed_by <> 'next price'
           AND changed_at > now() - interval '1 day'
         UNION ALL
        SELECT format('next price of shelf %%s', id), id, NULL, price, next_price
          FROM catalogue_shelf
         WHERE next_price_from BETWEEN now() - interval '1 day' AND clock_timestamp()
         UNION ALL
        SELECT 'top-up change ' || change.id, NULL, product_id, before, after
          FROM topups_topuppricechange AS change
         WHERE change.id > (SELECT max(id) - 50000 FROM topups_topuppricechange)
           AND starts_at IS NULL AND changed_by <> 'next price'
           AND changed_at > now() - interval '1 day'
         UNION ALL
        SELECT format('next price of top-up %%s', id), NULL, id, price, next_price
          FROM topups_topupproduct
         WHERE next_price_from BETWEEN now() - interval '1 day' AND clock_timestamp()
         UNION ALL
        SELECT 'step before change ' || earlier.id, shelf_id, NULL,
               coalesce((SELECT before FROM catalogue_shelfpricechange AS change
                          WHERE change.shelf_id = shelf.id AND changed_at = until
                            AND starts_at IS NULL ORDER BY change.id LIMIT 1), regular) / step,
               regular / quantity_step
          FROM figures_earlierterms AS earlier
          JOIN catalogue_shelf AS shelf ON shelf.id = shelf_id
         CROSS JOIN LATERAL (SELECT catalogue_regular_price(
                                 price, next_price, next_price_from, until) AS regular) AS priced
         WHERE until > now() - interval '1 day' AND step < quantity_step
    ), recent AS (
        SELECT entry.*
          FROM catalogue_pricelist AS list
          JOIN catalogue_pricelistentry AS entry ON price_list_id = list.id
         WHERE valid_until IS NULL OR valid_until > now() - interval '1 day'
    ), moment AS (
        SELECT format('price list entry %%s at %%s', entry.id, at) AS subject, price_list_id,
               target, at
          FROM recent AS entry
         CROSS JOIN LATERAL (VALUES (valid_from), (valid_until)) AS moment (at)
         WHERE at BETWEEN now() - interval '1 day' AND clock_timestamp()
           AND (at = valid_until OR percent_off IS NULL OR percent_off <= %(limit)s)
    ), listed AS (
        SELECT subject, list.name AS list, concat_ws(' / ', product.name, variation.name) AS name,
               product.currency, at,
               coalesce(catalogue_price(
                   product.currency, list.id, shelf.id, product.id, category_id, product.currency,
                   shelf.price, next_price, next_price_from, at - interval '1 microsecond'),
                   catalogue_regular_price(shelf.price, next_price, next_price_from, at)) AS before,
               catalogue_price(
                   product.currency, list.id, shelf.id, product.id, category_id, product.currency,
                   shelf.price, next_price, next_price_from, at) AS after
          FROM moment
          JOIN catalogue_pricelist AS list ON list.id = price_list_id
          JOIN catalogue_product AS product ON product.currency = list.currency
          JOIN catalogue_shelf AS shelf ON shelf.product_id = product.id
          LEFT JOIN catalogue_variation AS variation ON variation.id = variation_id
         WHERE target = ANY (catalogue_targets(shelf.id, product.id, category_id))
         UNION ALL
        SELECT subject, list.name, topup.name, topup.currency, at,
               coalesce(topups_price(
                   topup.currency, list.id, topup.id, category_id, topup.currency, topup.price,
                   next_price, next_price_from, at - interval '1 microsecond'),
                   catalogue_regular_price(topup.price, next_price, next_price_from, at)),
               topups_price(topup.currency, list.id, topup.id, category_id, topup.currency,
                            topup.price, next_price, next_price_from, at)
          FROM moment
          JOIN catalogue_pricelist AS list ON list.id = price_list_id
          JOIN topups_topupproduct AS topup ON topup.currency = list.currency
         WHERE target = ANY (topups_targets(topup.id, category_id))
         UNION ALL
        SELECT format('category before change %%s in price list %%s', earlier.id, list.id),
               list.name, concat_ws(' / ', product.name, variation.name), product.currency, until,
               catalogue_price(
                   product.currency, list.id, shelf.id, product.id, earlier.category,
                   product.currency, shelf.price, next_price, next_price_from, until),
               catalogue_price(
                   product.currency, list.id, shelf.id, product.id, category_id,
                   product.currency, shelf.price, next_price, next_price_from, until)
          FROM figures_earlierterms AS earlier
          JOIN catalogue_shelf AS shelf ON shelf.id = earlier.shelf_id
          JOIN catalogue_product AS product ON product.id = shelf.product_id
          LEFT JOIN catalogue_variation AS variation ON variation.id = variation_id
          JOIN catalogue_pricelist AS list ON list.currency = product.currency
         WHERE until > now() - interval '1 day' AND category IS DISTINCT FROM category_id
         UNION ALL
        SELECT format('category before change %%s in price list %%s', earlier.id, list.id),
               list.name, topup.name, topup.currency, until,
               topups_price(
                   topup.currency, list.id, topup.id, earlier.category, topup.currency,
                   topup.price, next_price, next_price_from, until),
               topups_price(topup.currency, list.id, topup.id, category_id, topup.currency,
                            topup.price, next_price, next_price_from, until)
          FROM figures_earlierterms AS earlier
          JOIN topups_topupproduct AS topup ON topup.id = earlier.topup_product_id
          JOIN catalogue_pricelist AS list ON list.currency = topup.currency
         WHERE until > now() - interval '1 day' AND category IS DISTINCT FROM category_id
    )
"""
WATCHES = [
    Watch(
        "low_stock",
        lazy("Low stock"),
        f"""
        {PACE}
        SELECT 'shelf ' || shelf.id, format('%%s: %%s', product.name
                   || coalesce(' / ' || variation.name, ''), {LEFT}), shelf.id
          FROM catalogue_shelf AS shelf
          JOIN catalogue_product AS product ON product.id = shelf.product_id
          LEFT JOIN catalogue_category AS category ON category.id = product.category_id
          LEFT JOIN catalogue_variation AS variation ON variation.id = shelf.variation_id
          LEFT JOIN pace ON pace.shelf_id = shelf.id
          LEFT JOIN figures_stockthreshold AS threshold ON threshold.shelf_id = shelf.id
         WHERE CASE WHEN a_day IS NOT NULL OR threshold.id IS NOT NULL THEN {HAS_PRICE} END
           AND catalogue_is_on_sale(product.active, category.active, variation.active)
           AND ({IS_LOW})
         UNION ALL
        SELECT 'topup ' || topup.id, format('%%s: %%s', topup.name, {LEFT}), NULL
          FROM topups_topupproduct AS topup
          LEFT JOIN pace ON pace.topup_product_id = topup.id
          LEFT JOIN figures_stockthreshold AS threshold ON threshold.topup_product_id = topup.id
         WHERE available_stock IS NOT NULL AND active
           AND (a_day IS NOT NULL OR threshold.id IS NOT NULL)
           AND ({IS_LOW})
        """,  # noqa: S608  expressions of ours
        limit=3,
        unit=lazy(
            "days left at the pace of the last seven days; a shelf can have a limit of its own"
        ),
        advice=lazy("Buy codes and import them, or raise the stock of the top-up product."),
        model=Shelf,
        sentences=[
            gettext_noop("%(product)s: sold out"),
            gettext_noop("%(product)s: %(count)s left, enough for %(days)s days"),
            gettext_noop("%(product)s: %(count)s left"),
        ],
    ),
    Watch(
        "expiring_batch",
        lazy("Expiring batches"),
        # 30 days ahead, and again 7 days ahead.
        """
        SELECT format('batch %%s in %%s days', batch.id, ahead),
               format('Batch %%s of %%s: %%s codes expire on %%s', batch.id, product.name, codes,
                      batch.expires_on), batch.id
          FROM (SELECT batch_id, codes FROM figures_dailystock
                 WHERE day = (SELECT max(day) FROM figures_dailystock)) AS stock
          JOIN catalogue_batch AS batch ON batch.id = stock.batch_id
          JOIN catalogue_shelf AS shelf ON shelf.id = batch.shelf_id
          JOIN catalogue_product AS product ON product.id = shelf.product_id
          JOIN unnest(ARRAY[round(%(limit)s)::int, 7]) AS ahead
            ON batch.expires_on - (now() AT TIME ZONE 'UTC')::date <= ahead
        """,
        limit=30,
        unit=lazy("days before the last day of sale; a second warning comes 7 days before it"),
        advice=lazy("Sell them first, or ask the supplier to exchange them."),
        model=Batch,
        sentences=[
            gettext_noop("Batch %(batch)s of %(product)s: %(count)s codes expire on %(day)s"),
        ],
    ),
    Watch(
        "price_fell",
        lazy("Large falls of prices"),
        f"""
        WITH {FALLS}
        SELECT subject,
               format('%%s: the price fell from %%s to %%s %%s',
                      coalesce(topup.name, concat_ws(' / ', product.name, variation.name)),
                      {_money("before")}, {_money("after")},
                      coalesce(topup.currency, product.currency)), NULL
          FROM fell
          LEFT JOIN catalogue_shelf AS shelf ON shelf.id = shelf_id
          LEFT JOIN catalogue_product AS product ON product.id = shelf.product_id
          LEFT JOIN catalogue_variation AS variation ON variation.id = shelf.variation_id
          LEFT JOIN topups_topupproduct AS topup ON topup.id = topup_id
         WHERE after < before * (100 - %(limit)s) / 100
         UNION ALL
        SELECT 'price list entry ' || entry.id,
               format('Price list %%s: %%s percent off since %%s UTC', list.name,
                      trim_scale(percent_off),
                      to_char(valid_from AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')), NULL
          FROM recent AS entry
          JOIN catalogue_pricelist AS list ON list.id = price_list_id
         WHERE percent_off > %(limit)s
           AND valid_from BETWEEN now() - interval '1 day' AND clock_timestamp()
         UNION ALL
        SELECT subject,
               format('Price list %%s: %%s costs %%s instead of %%s %%s since %%s UTC', list, name,
                      {_money("after")}, {_money("before")}, currency,
                      to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI'))
               || CASE WHEN number > 1 THEN format(', and %%s more', number - 1) ELSE '' END, NULL
          FROM (SELECT *, count(*) OVER (PARTITION BY subject) AS number,
                       row_number() OVER (PARTITION BY subject ORDER BY after / before, name) AS n
                  FROM listed
                 WHERE after < catalogue_discounted(before, %(limit)s, currency)) AS far
         WHERE n = 1
         UNION ALL
        SELECT 'price list of account ' || earlier.id,
               format('%%s: %%s low prices of price list %%s since %%s UTC', account.name,
                      low_prices, coalesce(list.name, 'none'),
                      to_char(until AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI')), NULL
          FROM figures_earlierlist AS earlier
          JOIN accounts_account AS account ON account.id = earlier.account_id
          LEFT JOIN catalogue_pricelist AS list ON list.id = account.price_list_id
         WHERE low_prices > 0 AND until > now() - interval '1 day'
        """,  # noqa: S608  expressions of ours
        limit=30,
        unit=lazy("percent below the price before; a warning ends after a day"),
        advice=lazy(
            "Ask the two people who set it. The price history and the audit trail name them."
        ),
        model=DailyMargin,
        sentences=[
            gettext_noop("%(product)s: the price fell from %(before)s to %(after)s %(currency)s"),
            gettext_noop("Price list %(list)s: %(percent)s percent off since %(time)s UTC"),
            gettext_noop(
                "Price list %(list)s: %(product)s costs %(after)s instead of %(before)s"
                " %(currency)s since %(time)s UTC, and %(count)s more"
            ),
            gettext_noop(
                "Price list %(list)s: %(product)s costs %(after)s instead of %(before)s"
                " %(currency)s since %(time)s UTC"
            ),
            gettext_noop(
                "%(account)s: %(count)s low prices of price list %(list)s since %(time)s UTC"
            ),
        ],
    ),
    Watch(
        "sold_below_cost",
        lazy("Sales below cost"),
        f"""
        SELECT format('batch %%s on %%s for account %%s', batch.id, day, account.id),
               format('Batch %%s of %%s, codes sold on %%s: %%s, for %%s %%s. They cost %%s',
                      batch.id, product.name, day, paid, {_money("sold")}, account.currency,
                      {_money("paid * cost")}), NULL
          FROM figures_dailymargin AS margin
          JOIN accounts_account AS account ON account.id = margin.account_id
          JOIN catalogue_batch AS batch ON batch.id = batch_id
          JOIN catalogue_shelf AS shelf ON shelf.id = margin.shelf_id
          JOIN catalogue_product AS product ON product.id = shelf.product_id
          JOIN LATERAL (SELECT CASE WHEN batch.cost_currency = account.currency THEN unit_cost
                   ELSE unit_cost * (
                       SELECT rate FROM figures_exchangerate AS known
                        WHERE known.currency = batch.cost_currency
                          AND known.into = account.currency
                          AND known.day <= (batch.imported_at AT TIME ZONE 'UTC')::date
                        ORDER BY known.day DESC LIMIT 1) END AS cost) AS converted ON true
          -- Replacements cost the merchant nothing. Their cases are few.
          JOIN LATERAL (SELECT quantity - CASE WHEN sold < quantity * cost THEN (
                       SELECT count(*) FROM cases_case AS replaced
                         JOIN orders_order AS sale ON sale.id = replaced.order_id
                        WHERE replaced.account_id = account.id AND replaced.state = 'replaced'
                          AND (closed_at AT TIME ZONE 'UTC')::date = margin.day
                          AND sale.shelf_id = shelf.id) ELSE 0 END AS paid) AS counted ON true
         WHERE margin.day >= (now() AT TIME ZONE 'UTC')::date - 1 AND sold > 0
           AND sold < paid * cost * (100 - %(limit)s) / 100
        """,  # noqa: S608  expressions of ours
        limit=0,
        unit=lazy("percent below the cost of the codes that were sold on a day"),
        advice=lazy("Look at the price, the price lists and the cost of the batch."),
        model=DailyMargin,
        sentences=[
            gettext_noop(
                "Batch %(batch)s of %(product)s, codes sold on %(day)s: %(count)s, for %(amount)s"
                " %(currency)s. They cost %(cost)s"
            ),
        ],
    ),
    Watch(
        "unusual_spending",
        lazy("Unusual spending of a client"),
        # Only clients that bought on seven of the 28 days before: others have no past.
        f"""
        SELECT format('client %%s on %%s', client.id, today.day),
               format('%%s of %%s spent %%s %%s today; on its best day of the last 28 it spent %%s',
                      client.name, account.name, {_money("today.amount")}, account.currency,
                      {_money("past.most")}),
               client.id
          FROM figures_dailyspending AS today
          JOIN accounts_apiclient AS client ON client.id = today.client_id
          JOIN accounts_account AS account ON account.id = client.account_id
          JOIN LATERAL (SELECT max(amount) AS most, count(*) AS days
                          FROM figures_dailyspending AS before
                         WHERE before.client_id = today.client_id
                           AND before.day BETWEEN today.day - 28 AND today.day - 1) AS past
            ON past.days >= 7 AND today.amount > past.most * %(limit)s
         WHERE today.day = (now() AT TIME ZONE 'UTC')::date
        """,  # noqa: S608  expressions of ours
        limit=2,
        unit=lazy("times the most that it spent on a day of the last 28"),
        advice=lazy("Ask the merchant whether this is theirs. If not, revoke the key."),
        model=ApiClient,
        sentences=[
            gettext_noop(
                "%(client)s of %(account)s spent %(amount)s today; on its best day of the last 28"
                " it spent %(most)s"
            ),
        ],
    ),
]

BACK_OFFICE = BackOffice(
    gauges=GAUGES,
    watches=WATCHES,
    components=COMPONENTS,
    checks=CHECKS,
    triggers=[
        "figures_sales_changed",
        "figures_margins_of_days_added",
        "figures_margins_of_days_changed",
        "figures_margins_of_months_added",
        "figures_margins_of_months_changed",
        "figures_sales_added",
    ],
    rights={
        "figures_agreedfall": Rights.APPEND_AND_EXPIRE,
        "figures_countedmargin": Rights.KEEP,
        "figures_countedpayback": Rights.KEEP,
        "figures_countedsales": Rights.KEEP,
        "figures_dailymargin": Rights.KEEP,
        "figures_dailymarginsum": Rights.KEEP,
        "figures_dailysales": Rights.KEEP,
        "figures_dailyspending": Rights.KEEP,
        "figures_dailystock": Rights.CHANGE,
        "figures_dailytotal": Rights.KEEP,
        "figures_earlierlist": Rights.APPEND_AND_EXPIRE,
        "figures_earlierterms": Rights.APPEND_AND_EXPIRE,
        "figures_exchangerate": Rights.CHANGE,
        "figures_monthlymargin": Rights.KEEP,
        "figures_monthlymarginsum": Rights.KEEP,
        "figures_stockthreshold": Rights.CHANGE,
    },
    staff_rights=[
        StaffRight(
            Section.ORDERS,
            lazy("See the sales of each day"),
            read_access(DailySales),
            [StaffRole.FINANCE, StaffRole.MERCHANT_MANAGER],
        ),
        StaffRight(
            Section.MONEY,
            lazy("See sales with their cost and margin, and the products"),
            read_access(DailyMargin, Product),  # lines are of one product
            [StaffRole.FINANCE],
        ),
        StaffRight(
            Section.CATALOGUE,
            lazy("Set the stock at which a warning is sent"),
            full_access(StockThreshold),
            [StaffRole.STOCK_KEEPER],
        ),
        StaffRight(
            Section.MONEY,
            lazy("Enter exchange rates"),
            full_access(ExchangeRate),
            [StaffRole.FINANCE],
        ),
    ],
    menu=[
        MenuEntry(Section.SETTINGS, lazy("Stock limits"), StockThreshold, "inventory_2"),
        MenuEntry(Section.SETTINGS, lazy("Exchange rates"), ExchangeRate, "payments"),
    ],
)
