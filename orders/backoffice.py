"""What `orders` declares for the back office (config/backoffice.py)."""

from config.backoffice import BackOffice, Check, MenuEntry, Proof, Section, StaffRole
from config.database import sealing
from orders.codes import has_codes
from orders.models import Order

# Half of what one key may seal. The other half covers what the check does not count: imports that
# rolled back, and interrupted runs of `reseal`.
VALUES_OF_A_KEY = sealing.VALUES_PER_KEY // 2

CHECKS = [
    Check(
        "each order has its one debit",
        """
        SELECT format('order %s of %s has a debit of %s on wallet %s by %s', sale.reference,
                      sale.total_price, entry.amount, entry.wallet_id, entry.actor)
          FROM orders_order AS sale
          JOIN accounts_apiclient AS client ON client.id = sale.client_id
          LEFT JOIN wallets_ledgerentry AS entry
                 ON entry.order_reference = sale.reference AND entry.kind = 'purchase'
         WHERE (entry.amount, entry.actor)
               IS DISTINCT FROM (-sale.total_price, 'client:' || sale.client_id)
            OR entry.wallet_id IS DISTINCT FROM client.account_id
        """,
    ),
    Check(
        "an order is in the currency of its wallet",
        """
        SELECT format('order %s is in %s, the wallet of account %s in %s',
                      reference, sale.currency, account.id, account.currency)
          FROM orders_order AS sale
          JOIN accounts_apiclient AS client ON client.id = sale.client_id
          JOIN accounts_account AS account ON account.id = client.account_id
         WHERE sale.currency <> account.currency
        """,
    ),
    Check(
        "each debit, refund and credit has its order",
        """
        SELECT format('entry %s names the order %s, which does not exist', id, order_reference)
          FROM wallets_ledgerentry AS entry
         WHERE order_reference IS NOT NULL
           AND NOT EXISTS (SELECT FROM orders_order WHERE reference = entry.order_reference)
        """,
    ),
    Check(
        "each voucher order has exactly its codes, from its shelf",
        """
        SELECT format('order %s of %s codes has %s, %s of them from its shelf',
                      reference, quantity, count(code.id),
                      count(code.id) FILTER (WHERE code.shelf_id = sale.shelf_id))
          FROM orders_order AS sale
          LEFT JOIN catalogue_vouchercode AS code ON code.order_id = sale.id
         GROUP BY sale.id
        HAVING count(code.id) FILTER (WHERE code.shelf_id = sale.shelf_id)
               <> CASE WHEN sale.shelf_id IS NULL THEN 0 ELSE quantity END
            OR count(code.id) <> CASE WHEN sale.shelf_id IS NULL THEN 0 ELSE quantity END
        """,
    ),
    Check(
        "each sold code has its order",
        """
        SELECT format('code %s is sold to order %s, which does not exist', id, order_id)
          FROM catalogue_vouchercode AS code
         WHERE order_id IS NOT NULL
           AND NOT EXISTS (SELECT FROM orders_order WHERE id = code.order_id)
        """,
    ),
    Check(
        "a client's orders are numbered without gaps",
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
    ),
    Check(
        "a stamped record names an order of its client",
        """
        SELECT format('record %s names the order %s, which its client did not buy',
                      record.id, record.order_reference)
          FROM idempotency_idempotencyrecord AS record
         WHERE order_reference IS NOT NULL
           AND NOT EXISTS (SELECT FROM orders_order AS sale
                            WHERE sale.reference = record.order_reference
                              AND sale.client_id = record.client_id)
        """,
    ),
    Check(
        "each top-up order agrees with its fulfilment",
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
    ),
    Check(
        "no encryption key has sealed too many values",
        """
        SELECT format('key %%s may have sealed %%s values; rotate the encryption keys',
                      key_id, values)
          FROM (SELECT key.key_id,
                       coalesce(codes.count, 0)
                       -- Each order seals one response, which is deleted after a week.
                       + (SELECT last_value FROM orders_order_id_seq)
                       - coalesce((SELECT max(id) FROM orders_order
                                    WHERE created_at < key.sealing_since), 0) AS values
                  FROM config_encryptionkey AS key
                  LEFT JOIN (SELECT get_byte(sealed, 0) AS key_id, count(*)
                               FROM catalogue_vouchercode GROUP BY 1) AS codes USING (key_id)
                 WHERE key.sealing_since IS NOT NULL) AS sealed
         WHERE values > %(limit)s
        """,
        lambda: {"limit": VALUES_OF_A_KEY},
    ),
]

PROOFS = [
    Proof(
        "each voucher order has the codes that it was sold with",
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

BACK_OFFICE = BackOffice(
    checks=CHECKS,
    proofs=PROOFS,
    triggers=["orders_order_is_a_record"],
    constraints=["catalogue_vouchercode_order_fk"],
    counted={"orders": "orders_order"},
    permissions={StaffRole.FINANCE: ["orders.view_order"]},
    menu=[MenuEntry(Section.ORDERS, "Orders", Order, "shopping_cart")],
)
