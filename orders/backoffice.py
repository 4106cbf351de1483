"""The declarations of `orders` for the back office (core/backoffice/)."""

from django.utils.translation import gettext_noop

from accounts.models import ApiClient
from catalogue.models import Batch, Shelf, VoucherCode
from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Check,
    Component,
    Gauges,
    MenuEntry,
    Proof,
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
from core.database import sealing
from core.database.ids import first_id_since
from core.texts import lazy
from orders.codes import has_codes
from orders.models import DailyMargin, DailySales, ExchangeRate, LostPurchase, Order, StockThreshold
from orders.search import FINDERS

# Half of what one key may seal. The other half covers what the check does not count: imports that
# rolled back, and interrupted runs of `reseal`.
VALUES_OF_A_KEY = sealing.VALUES_PER_KEY // 2

CHECKS = [
    Check(
        gettext_noop("what is sealed has a key that seals"),
        """
        SELECT 'core_encryptionkey has no key that seals: restore it from a backup'
         WHERE orders_is_sealed(NULL)
           AND NOT EXISTS (SELECT FROM core_encryptionkey WHERE sealing_since IS NOT NULL)
        """,
    ),
    Check(
        # The debit is zero if the order names the case whose outcome it is.
        gettext_noop("each order has its one debit"),
        """
        SELECT format('order %s of %s has a debit of %s on wallet %s by %s', sale.reference,
                      sale.total_price, entry.amount, entry.wallet_id, entry.actor)
          FROM orders_order AS sale
          JOIN accounts_apiclient AS client ON client.id = sale.client_id
          LEFT JOIN wallets_ledgerentry AS entry
                 ON entry.order_reference = sale.reference
                AND entry.kind IN ('purchase', 'replacement')
         WHERE ((entry.kind, entry.amount, entry.wallet_id)
                IS DISTINCT FROM (CASE WHEN sale.case_id IS NULL THEN 'purchase'
                                       ELSE 'replacement' END,
                                  -sale.total_price, client.account_id)
                OR (entry.kind = 'purchase' AND entry.actor <> 'client:' || sale.client_id)
                OR (entry.kind = 'replacement'
                    AND entry.booking_reference <> 'replacement-of-case:' || sale.case_id))
           /*period AND sale.id IN_IDS orders_order*/
        """,
    ),
    Check(
        gettext_noop("an order is in the currency of its wallet"),
        """
        SELECT format('order %s is in %s, the wallet of account %s in %s',
                      reference, sale.currency, account.id, account.currency)
          FROM orders_order AS sale
          JOIN accounts_apiclient AS client ON client.id = sale.client_id
          JOIN accounts_account AS account ON account.id = client.account_id
         WHERE sale.currency <> account.currency
           /*period AND sale.id IN_IDS orders_order*/
        """,
    ),
    Check(
        gettext_noop("each debit, refund and credit has its order"),
        """
        SELECT format('entry %s names the order %s, which does not exist', id, order_reference)
          FROM wallets_ledgerentry AS entry
         WHERE order_reference IS NOT NULL
           AND NOT EXISTS (SELECT FROM orders_order WHERE reference = entry.order_reference)
           /*period AND entry.id IN_IDS wallets_ledgerentry*/
        """,
    ),
    Check(
        gettext_noop("each voucher order has exactly its codes, from its shelf"),
        """
        SELECT format('order %s of %s codes has %s, %s of them from its shelf',
                      reference, quantity, count(code.id),
                      count(code.id) FILTER (WHERE code.shelf_id = sale.shelf_id))
          FROM orders_order AS sale
          LEFT JOIN catalogue_vouchercode AS code ON code.order_id = sale.id
         /*period WHERE sale.id IN_IDS orders_order*/
         GROUP BY sale.id
        HAVING count(code.id) FILTER (WHERE code.shelf_id = sale.shelf_id)
               <> CASE WHEN sale.shelf_id IS NULL THEN 0 ELSE quantity END
            OR count(code.id) <> CASE WHEN sale.shelf_id IS NULL THEN 0 ELSE quantity END
        """,
    ),
    Check(
        gettext_noop("no code was sold after it expired"),
        """
        SELECT format('code %s expired on %s and was sold by order %s', code.id, expires_on,
                      reference)
          FROM catalogue_vouchercode AS code
          JOIN orders_order AS sale ON sale.id = code.order_id
         WHERE expires_on < (sale.created_at AT TIME ZONE 'UTC')::date
           /*period AND sale.id IN_IDS orders_order*/
        """,
    ),
    Check(
        gettext_noop("each sold code has its order"),
        """
        SELECT format('code %s is sold to order %s, which does not exist', id, order_id)
          FROM catalogue_vouchercode AS code
         WHERE order_id IS NOT NULL
           AND NOT EXISTS (SELECT FROM orders_order WHERE id = code.order_id)
           /*period AND code.order_id IN_IDS orders_order*/
        """,
    ),
    Check(
        gettext_noop("a client's orders are numbered without gaps"),
        """
        SELECT format('client %s has %s orders, the last is number %s, its counter says %s',
                      client_id, count, last, counter)
          FROM (SELECT coalesce(sale.client_id, counter.client_id) AS client_id,
                       count(sale.id) AS count, coalesce(max(number), 0) AS last,
                       coalesce(max(counter.orders), 0) AS counter
                  FROM orders_order AS sale
                  FULL JOIN orders_clientcounter AS counter ON counter.client_id = sale.client_id
                 GROUP BY 1) AS numbered
         WHERE count <> last OR count <> counter
        """,
        # A client's numbers and ids may disagree by the length of a purchase.
        of_period="""
        SELECT format('client %s has %s orders from number %s to %s', client_id, count, first, last)
          FROM (SELECT client_id, min(number) AS first, max(number) AS last
                  FROM orders_order AS sale WHERE sale.id IN_IDS orders_order GROUP BY client_id)
               AS numbered,
               LATERAL (SELECT count(*) FROM orders_order AS item
                         WHERE item.client_id = numbered.client_id
                           AND number BETWEEN greatest(first - 1, 1) AND last) AS counted
         WHERE count <> last - greatest(first - 1, 1) + 1
        UNION ALL
        SELECT format('the last order of client %s is number %s, its counter says %s', client.id,
                      coalesce(last, 0), coalesce(orders, 0))
          FROM accounts_apiclient AS client
          LEFT JOIN orders_clientcounter AS counter ON counter.client_id = client.id
          LEFT JOIN LATERAL (SELECT number AS last FROM orders_order AS sale
                              WHERE sale.client_id = client.id
                              ORDER BY client_id DESC, number DESC LIMIT 1) AS newest ON true
         WHERE coalesce(last, 0) <> coalesce(orders, 0)
        """,
    ),
    Check(
        gettext_noop("a spending limit has counted the orders of its day and month"),
        """
        SELECT format('client %s spent %s on %s and %s in its month, not %s and %s',
                      spending.client_id, today, day, this_month, spent_today, spent_this_month)
          FROM (SELECT spending.client_id, day, spent_today, spent_this_month,
                       coalesce(sum(total_price) FILTER (
                           WHERE (created_at AT TIME ZONE 'UTC')::date = day), 0) AS today,
                       coalesce(sum(total_price) FILTER (
                           WHERE date_trunc('month', created_at AT TIME ZONE 'UTC') = month), 0)
                           AS this_month
                  FROM orders_spendinglimit AS spending
                  LEFT JOIN orders_order AS sale ON sale.client_id = spending.client_id
                                                AND number > counted_after
                 GROUP BY spending.client_id) AS spending
         WHERE (spent_today, spent_this_month) <> (today, this_month)
        UNION ALL
        SELECT format('client %s is marked as limited: %s, and has %s spending limits',
                      coalesce(counter.client_id, spending.client_id), coalesce(limited, false),
                      count(spending.client_id))
          FROM orders_clientcounter AS counter
          FULL JOIN orders_spendinglimit AS spending ON spending.client_id = counter.client_id
         GROUP BY counter.client_id, spending.client_id, limited
        HAVING coalesce(limited, false) <> (count(spending.client_id) = 1)
        """,
    ),
    Check(
        gettext_noop("the totals of a day are the sums of its sales"),
        """
        WITH sums AS (
            SELECT day, currency, account_id, shelf_id, topup_product_id, sum(orders) AS orders,
                   sum(amount) AS amount
              FROM orders_dailysales AS sales
              JOIN accounts_account AS account ON account.id = account_id
             /*period WHERE day IN_DAYS*/
             GROUP BY day, currency,
                      GROUPING SETS ((account_id), (shelf_id, topup_product_id))
        ), stored AS (
            SELECT day, currency, account_id, shelf_id, topup_product_id, orders, amount
              FROM orders_dailytotal /*period WHERE day IN_DAYS*/
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
                 /*period WHERE day IN_DAYS*/
                 GROUP BY day, currency,
                          GROUPING SETS ((account_id), (shelf_id, topup_product_id, batch_id))
            ), stored AS (
                SELECT day, currency, account_id, shelf_id, topup_product_id, batch_id, quantity,
                       sold, paid_back
                  FROM {table}sum /*period WHERE day IN_DAYS*/
            )
            SELECT DISTINCT format('the margin sums of %s in %s differ from the rows of {table}',
                                   day, currency)
              FROM ((TABLE sums EXCEPT TABLE stored) UNION ALL (TABLE stored EXCEPT TABLE sums))
                   AS different
            """,  # noqa: S608  names of ours
        )
        for table, title in (
            (
                "orders_dailymargin",
                gettext_noop("the margin sums of a day are those of its accounts"),
            ),
            (
                "orders_monthlymargin",
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
                  FROM orders_countedsales AS counted
                  JOIN orders_order AS sale ON sale.client_id = counted.client_id
                                           AND sale.number <= counted.orders
                  JOIN accounts_apiclient AS client ON client.id = counted.client_id
                 GROUP BY client.account_id) AS counted
          FULL JOIN (SELECT account_id, sum(orders) AS orders, sum(quantity) AS quantity,
                            sum(amount) AS amount
                       FROM orders_dailysales GROUP BY account_id) AS sales USING (account_id)
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
                  JOIN orders_countedsales AS counted ON counted.client_id = sale.client_id
                                                     AND sale.number <= counted.orders
                  JOIN accounts_apiclient AS client ON client.id = sale.client_id
                 WHERE sale.id IN_IDS orders_order AND sale.created_at IN_TIMES
                 GROUP BY 1, 2) AS counted
          FULL JOIN (SELECT account_id, day, sum(orders) AS orders, sum(quantity) AS quantity,
                            sum(amount) AS amount
                       FROM orders_dailysales WHERE day IN_DAYS GROUP BY account_id, day) AS sales
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
          FROM orders_countedsales AS counted
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
                          FROM orders_countedmargin AS counted
                          JOIN orders_order AS sale ON sale.client_id = counted.client_id
                                                   AND sale.number <= counted.orders
                          JOIN accounts_apiclient AS client ON client.id = counted.client_id
                         UNION ALL
                        SELECT entry.wallet_id, 0, 0, amount
                          FROM orders_countedpayback AS counted
                          JOIN wallets_ledgerentry AS entry ON entry.wallet_id = counted.wallet_id
                           AND entry.kind = counted.kind AND entry.id <= last_entry) AS part
                 GROUP BY account_id) AS counted
          FULL JOIN (SELECT account_id, sum(quantity) AS quantity, sum(sold) AS sold,
                            sum(paid_back) AS paid_back
                       FROM orders_dailymargin GROUP BY account_id) AS figures USING (account_id)
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
                  FROM orders_dailymargin
                 UNION ALL
                SELECT day, account_id, shelf_id, topup_product_id, batch_id, -quantity, -sold,
                       -paid_back
                  FROM orders_monthlymargin) AS difference
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
                  FROM orders_dailymargin
                 /*period WHERE day IN_DAYS*/
                 GROUP BY 1, 2) AS figures
          FULL JOIN (SELECT client.account_id, day, sum(amount) AS amount
                       FROM orders_dailyspending AS spent
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
          FROM orders_countedmargin AS counted
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
                  JOIN (SELECT batch_id, sum(quantity) AS quantity FROM orders_dailymargin
                         GROUP BY batch_id) AS figures ON figures.batch_id = batch.id) AS batches
         WHERE quantity > sold
        """,
    ),
    Check(
        gettext_noop("a stamped record names an order of its client"),
        """
        SELECT format('record %s names the order %s, which its client did not buy',
                      record.id, record.order_reference)
          FROM idempotency_idempotencyrecord AS record
         WHERE order_reference IS NOT NULL
           AND NOT EXISTS (SELECT FROM orders_order AS sale
                            WHERE sale.reference = record.order_reference
                              AND sale.client_id = record.client_id)
           AND NOT EXISTS (SELECT FROM orders_lostpurchase AS lost
                            WHERE lost.reference = record.order_reference
                              AND lost.client_id = record.client_id)
           /*period AND record.id IN_IDS idempotency_idempotencyrecord*/
        """,
    ),
    Check(
        gettext_noop("a lost purchase is not an order"),
        """
        SELECT format('order %s exists and is recorded as a lost purchase', reference)
          FROM orders_lostpurchase JOIN orders_order USING (reference)
        """,
    ),
    Check(
        gettext_noop("the debit of a lost purchase is its price, on the account that bought it"),
        """
        SELECT format('lost purchase %s of %s was settled with the entry %s of %s', lost.reference,
                      lost.total_price, entry.id, entry.amount)
          FROM orders_settlement AS settlement
          JOIN orders_lostpurchase AS lost ON lost.id = settlement.lost_purchase_id
          JOIN accounts_apiclient AS client ON client.id = lost.client_id
          JOIN wallets_ledgerentry AS entry ON entry.id = settlement.debit_id
         WHERE (entry.kind, entry.amount, entry.wallet_id, entry.booking_reference)
               IS DISTINCT FROM
               ('adjustment', -lost.total_price, client.account_id, 'lost:' || lost.reference)
        """,
    ),
    Check(
        gettext_noop("each top-up order agrees with its fulfilment"),
        """
        SELECT format('order %s and fulfilment %s disagree', sale.reference,
                      fulfilment.order_reference)
          FROM orders_order AS sale
          JOIN accounts_apiclient AS client ON client.id = sale.client_id
          FULL JOIN topups_fulfilment AS fulfilment ON fulfilment.id = sale.fulfilment_id
         WHERE (sale.id IS NULL OR sale.shelf_id IS NULL)
           AND (sale.reference, sale.total_price, sale.currency, client.account_id)
               IS DISTINCT FROM (fulfilment.order_reference, fulfilment.amount,
                                 fulfilment.currency, fulfilment.account_id)
        """,
        of_period="""
        SELECT format('order %s and fulfilment %s disagree', sale.reference,
                      fulfilment.order_reference)
          FROM orders_order AS sale
          JOIN accounts_apiclient AS client ON client.id = sale.client_id
          LEFT JOIN topups_fulfilment AS fulfilment ON fulfilment.id = sale.fulfilment_id
         WHERE sale.shelf_id IS NULL AND sale.id IN_IDS orders_order
           AND (sale.reference, sale.total_price, sale.currency, client.account_id)
               IS DISTINCT FROM (fulfilment.order_reference, fulfilment.amount,
                                 fulfilment.currency, fulfilment.account_id)
        UNION ALL
        SELECT format('fulfilment %s has no order', order_reference)
          FROM topups_fulfilment AS fulfilment
         WHERE fulfilment.id IN_IDS topups_fulfilment
           AND NOT EXISTS (SELECT FROM orders_order WHERE fulfilment_id = fulfilment.id)
        """,
    ),
    Check(
        gettext_noop("no encryption key has sealed too many values"),
        """
        SELECT format('key %%s may have sealed %%s values; rotate the encryption keys',
                      key_id, values)
          FROM (SELECT key.key_id,
                       coalesce(codes.count, 0)
                       -- Each order seals one response, which is deleted after a week, and the
                       -- request in its line of the purchase log.
                       + 2 * ((SELECT last_value FROM orders_order_id_seq)
                              - coalesce((SELECT max(id) FROM orders_order
                                           WHERE created_at < key.sealing_since), 0)) AS values
                  FROM core_encryptionkey AS key
                  LEFT JOIN (SELECT get_byte(sealed, 0) AS key_id, count(*)
                               FROM catalogue_vouchercode GROUP BY 1) AS codes USING (key_id)
                 WHERE key.sealing_since IS NOT NULL) AS sealed
         WHERE values > %(limit)s
        """,
        lambda: {"limit": VALUES_OF_A_KEY},
        weekly=True,
    ),
]

PROOFS = [
    Proof(
        gettext_noop("each voucher order has the codes that it was sold with"),
        """
        SELECT format('order %s', reference), client_id, reference, codes_mac,
               coalesce(string_agg(code.digest, '' ORDER BY code.position), '')
          FROM orders_order AS sale
          LEFT JOIN catalogue_vouchercode AS code ON code.order_id = sale.id
         WHERE sale.shelf_id IS NOT NULL
         GROUP BY sale.id
        """,
        has_codes,
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
              FROM orders_dailysales WHERE day >= (SELECT first FROM week)
        ), sold AS (
            SELECT shelf_id, sum(quantity) / (SELECT days FROM period) AS a_day
              FROM orders_dailysales
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
          LEFT JOIN orders_countedsales AS sales ON sales.client_id = counter.client_id
          LEFT JOIN orders_countedmargin AS margins ON margins.client_id = counter.client_id
          JOIN LATERAL (SELECT least(coalesce(sales.orders, 0), coalesce(margins.orders, 0))
                               AS orders) AS counted ON counter.orders > counted.orders
          JOIN LATERAL (SELECT created_at FROM orders_order AS item
                         WHERE item.client_id = counter.client_id
                           AND item.number = counted.orders + 1
                        OFFSET 0) AS next ON true
        """,
        seconds=60,
    ),
    Gauges(
        {"voucher_key_sealed_values": "Upper bound of the values that were sealed with this key."},
        # Two values of every order since the key seals, and every code that was ever imported or
        # resealed.
        f"""
        SELECT key.key_id,
               coalesce(pg_sequence_last_value('catalogue_vouchercode_id_seq'), 0)
               + 2 * coalesce(pg_sequence_last_value('orders_order_id_seq') + 1
                              - {first_id_since("orders_order", "key.sealing_since")}, 0)
          FROM core_encryptionkey AS key
         WHERE sealing_since IS NOT NULL
        """,  # noqa: S608  expressions of ours
        labels=["key_id"],
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
    Component(
        title=lazy("Values sealed with one encryption key"),
        gauge="voucher_key_sealed_values",
        unit=Unit.COUNT,
        amber=VALUES_OF_A_KEY // 2,
        red=VALUES_OF_A_KEY,
        advice=lazy("Rotate the encryption keys (docs/operate/rotate-keys.md)."),
        alert=Alert(
            "VoucherKeyWornOut",
            Severity.WARNING,
            "1h",
            "Encryption key {{ $labels.key_id }} may have sealed {{ $value | humanize }} values.",
        ),
        model=VoucherCode,
        leads_to_list=False,
    ),
]
BUYING = 'route="api/v1/orders",method="POST"'


def _burn_rate(ratio: str, *, budget: float) -> str:
    """When the bad share of the purchases uses up the budget of a month too fast.

    At this pace, the budget of 30 days is gone in two days (seen within minutes), or in five (seen
    within an hour). The long window shows that it matters, the short one that it goes on.
    """

    def exceeds(window: str, pace: float) -> str:
        return f"({ratio.format(window=window)}) > {pace * budget:g}"

    fast = f"{exceeds('5m', 14.4)} and {exceeds('1h', 14.4)}"
    slow = f"{exceeds('30m', 6)} and {exceeds('6h', 6)}"
    return f"({fast}) or ({slow})"


ALERTS = [
    Alert(
        "VoucherPurchasesFail",
        Severity.CRITICAL,
        "2m",
        "{{ $value | humanizePercentage }} of the purchases end in server_error.",
        _burn_rate(
            'sum(rate(voucher_purchases_total{{outcome="server_error"}}[{window}]))'
            " / sum(rate(voucher_purchases_total[{window}]))",
            budget=0.001,
        ),
    ),
    Alert(
        "VoucherPurchasesSlow",
        Severity.WARNING,
        "2m",
        "{{ $value | humanizePercentage }} of the purchases take longer than a second.",
        _burn_rate(
            f'1 - sum(rate(voucher_request_seconds_bucket{{{{{BUYING},le="1.0"}}}}[{{window}}]))'
            f" / sum(rate(voucher_request_seconds_count{{{{{BUYING}}}}}[{{window}}]))",
            budget=0.01,
        ),
    ),
    Alert(
        "VoucherPurchaseLogIncomplete",
        Severity.CRITICAL,
        "0m",
        "{{ $value }} purchases of the last hour have no line in the purchase log.",
        "sum(voucher_purchase_lines_lost_total)"
        " - (sum(voucher_purchase_lines_lost_total offset 1h) or vector(0)) > 0",
    ),
]

# The pace of today and the seven days before it. That of a service younger than a day is a day's.
PACE = """
    WITH period AS (
        SELECT greatest(1, extract(epoch FROM now() - min(day)::timestamp AT TIME ZONE 'UTC')
                           / 86400) AS days
          FROM orders_dailysales WHERE day >= (now() AT TIME ZONE 'UTC')::date - 7
    ), pace AS (
        SELECT shelf_id, topup_product_id, sum(quantity) / (SELECT days FROM period) AS a_day
          FROM orders_dailysales
         WHERE day >= (now() AT TIME ZONE 'UTC')::date - 7
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
          LEFT JOIN orders_stockthreshold AS threshold ON threshold.shelf_id = shelf.id
         WHERE CASE WHEN a_day IS NOT NULL OR threshold.id IS NOT NULL THEN {HAS_PRICE} END
           AND catalogue_is_on_sale(product.active, category.active, variation.active)
           AND ({IS_LOW})
         UNION ALL
        SELECT 'topup ' || topup.id, format('%%s: %%s', topup.name, {LEFT}), NULL
          FROM topups_topupproduct AS topup
          LEFT JOIN pace ON pace.topup_product_id = topup.id
          LEFT JOIN orders_stockthreshold AS threshold ON threshold.topup_product_id = topup.id
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
          FROM (SELECT batch_id, codes FROM orders_dailystock
                 WHERE day = (SELECT max(day) FROM orders_dailystock)) AS stock
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
        "unusual_spending",
        lazy("Unusual spending of a client"),
        # Only clients that bought on seven of the 28 days before: others have no past.
        """
        SELECT format('client %%s on %%s', client.id, today.day),
               format('%%s of %%s spent %%s %%s today; on its best day of the last 28 it spent %%s',
                      client.name, account.name, today.amount, account.currency, past.most),
               client.id
          FROM orders_dailyspending AS today
          JOIN accounts_apiclient AS client ON client.id = today.client_id
          JOIN accounts_account AS account ON account.id = client.account_id
          JOIN LATERAL (SELECT max(amount) AS most, count(*) AS days
                          FROM orders_dailyspending AS before
                         WHERE before.client_id = today.client_id
                           AND before.day BETWEEN today.day - 28 AND today.day - 1) AS past
            ON past.days >= 7 AND today.amount > past.most * %(limit)s
         WHERE today.day = (now() AT TIME ZONE 'UTC')::date
        """,
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
    alerts=ALERTS,
    checks=CHECKS,
    proofs=PROOFS,
    triggers=[
        "orders_changed_sales_have_totals",
        "orders_key_in_use_stays",
        "orders_margins_of_days_added",
        "orders_margins_of_days_changed",
        "orders_margins_of_months_added",
        "orders_margins_of_months_changed",
        "orders_order_is_a_record",
        "orders_root_is_made_once",
        "orders_sales_have_totals",
    ],
    constraints=["catalogue_vouchercode_order_fk"],
    counted={"orders": "orders_order"},
    rights={
        "orders_clientcounter": Rights.KEEP,
        "orders_countedsales": Rights.KEEP,
        "orders_countedmargin": Rights.KEEP,
        "orders_countedpayback": Rights.KEEP,
        "orders_dailymargin": Rights.KEEP,
        "orders_dailymarginsum": Rights.KEEP,
        "orders_dailysales": Rights.KEEP,
        "orders_dailyspending": Rights.KEEP,
        "orders_dailystock": Rights.CHANGE,
        "orders_dailytotal": Rights.KEEP,
        "orders_exchangerate": Rights.CHANGE,
        "orders_monthlymargin": Rights.KEEP,
        "orders_monthlymarginsum": Rights.KEEP,
        "orders_lostpurchase": Rights.APPEND,
        "orders_order": Rights.APPEND,
        "orders_settlement": Rights.APPEND,
        "orders_spendinglimit": Rights.CHANGE,
        "orders_stockthreshold": Rights.CHANGE,
    },
    staff_rights=[
        StaffRight(
            Section.ORDERS,
            lazy("See orders"),
            read_access(Order),
            [StaffRole.FINANCE, StaffRole.SUPPORT, StaffRole.MERCHANT_MANAGER],
        ),
        StaffRight(
            Section.ORDERS,
            lazy("See the sales of each day"),
            read_access(DailySales),
            [StaffRole.FINANCE, StaffRole.MERCHANT_MANAGER],
        ),
        StaffRight(
            Section.MONEY,
            lazy("See sales with their cost and margin"),
            read_access(DailyMargin),
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
        StaffRight(
            Section.MONEY,
            lazy("See lost purchases"),
            read_access(LostPurchase),
            [StaffRole.FINANCE],
        ),
    ],
    finders=FINDERS,
    menu=[
        MenuEntry(Section.ORDERS, lazy("Orders"), Order, "shopping_cart"),
        MenuEntry(Section.CATALOGUE, lazy("Stock limits"), StockThreshold, "inventory_2"),
        MenuEntry(Section.MONEY, lazy("Exchange rates"), ExchangeRate, "payments"),
        MenuEntry(Section.MONEY, lazy("Lost purchases"), LostPurchase, "history_off"),
    ],
)
