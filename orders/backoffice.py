"""The declarations of `orders` for the back office (core/backoffice/)."""

from django.utils.translation import gettext_noop

from catalogue.models import VoucherCode
from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Check,
    Component,
    DecryptCheck,
    Gauges,
    MenuEntry,
    Personal,
    Rights,
    Section,
    Severity,
    StaffRight,
    Unit,
    Whose,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.database import sealing
from core.database.ids import first_id_since
from core.texts import lazy
from orders.codes import has_codes
from orders.models import LostPurchase, Order
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

DECRYPT_CHECKS = [
    DecryptCheck(
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

GAUGES = [
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
        technical=True,
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

BACK_OFFICE = BackOffice(
    gauges=GAUGES,
    components=COMPONENTS,
    alerts=ALERTS,
    checks=CHECKS,
    decrypt_checks=DECRYPT_CHECKS,
    triggers=[
        "orders_key_in_use_stays",
        "orders_order_is_a_record",
        "orders_root_is_made_once",
    ],
    constraints=["catalogue_vouchercode_order_fk"],
    counted={"orders": "orders_order"},
    personal=[
        Personal(
            "orders_settlement",
            Whose.STAFF,
            "who settled a purchase that a restore lost, and why",
            withheld=["settled_by", "note"],
            kept="everything: it explains a booking",
        ),
    ],
    rights={
        "orders_clientcounter": Rights.KEEP,
        "orders_lostpurchase": Rights.APPEND,
        "orders_order": Rights.APPEND,
        "orders_settlement": Rights.APPEND,
        "orders_spendinglimit": Rights.CHANGE,
    },
    staff_rights=[
        StaffRight(
            Section.ORDERS,
            lazy("See orders"),
            read_access(Order),
            [StaffRole.FINANCE, StaffRole.SUPPORT, StaffRole.MERCHANT_MANAGER],
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
        MenuEntry(Section.RECORDS, lazy("Lost purchases"), LostPurchase, "history_off"),
    ],
)
