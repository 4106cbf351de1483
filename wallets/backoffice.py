"""What `wallets` declares for the back office (config/backoffice.py)."""

from config.backoffice import BackOffice, Check, MenuEntry, Rights, Section, StaffRole
from wallets.models import LedgerEntry, Wallet

CHECKS = [
    Check(
        "a balance is the sum of its entries",
        """
        SELECT format('wallet %s holds %s, its entries add up to %s',
                      account_id, balance, coalesce(total, 0))
          FROM wallets_wallet
          LEFT JOIN (SELECT wallet_id, sum(amount) AS total
                       FROM wallets_ledgerentry GROUP BY wallet_id) AS entries
                 ON wallet_id = account_id
         WHERE balance <> coalesce(total, 0) OR balance < 0
        """,
    ),
    Check(
        "each entry continues from the balance of the one before",
        """
        SELECT format('entry %s of wallet %s says %s, not %s', id, wallet_id, balance_after, due)
          FROM (SELECT id, wallet_id, balance_after,
                       sum(amount) OVER (PARTITION BY wallet_id ORDER BY id) AS due
                  FROM wallets_ledgerentry) AS replayed
         WHERE balance_after <> due
        """,
    ),
    Check(
        "no order is debited or refunded twice",
        """
        SELECT format('order %s has %s entries of kind %s', order_reference, count(*), kind)
          FROM wallets_ledgerentry WHERE order_reference IS NOT NULL AND kind <> 'credit'
         GROUP BY order_reference, kind HAVING count(*) > 1
        """,
    ),
    Check(
        "refunds and credits of an order are at most what its wallet paid for it",
        """
        SELECT format('order %s got back more than it cost, or on another wallet: %s on %s wallets',
                      order_reference, sum(amount), count(DISTINCT wallet_id))
          FROM wallets_ledgerentry WHERE order_reference IS NOT NULL
         GROUP BY order_reference HAVING sum(amount) > 0 OR count(DISTINCT wallet_id) > 1
        """,
    ),
]

BACK_OFFICE = BackOffice(
    checks=CHECKS,
    triggers=[
        "wallets_balance_moves_by_ledger",
        "wallets_ledger_is_append_only",
        "wallets_paid_back_at_most_once",
        "wallets_post_entry",
        "wallets_wallet_starts_empty",
    ],
    counted={"wallets": "wallets_wallet", "ledger_entries": "wallets_ledgerentry"},
    rights={
        "wallets_ledgerentry": Rights.APPEND,
        "wallets_wallet": Rights.KEEP,
    },
    permissions={
        StaffRole.FINANCE: [
            "wallets.move_money",
            "wallets.view_ledgerentry",
            "wallets.view_wallet",
        ],
    },
    menu=[
        MenuEntry(Section.MONEY, "Wallets", Wallet, "account_balance_wallet"),
        MenuEntry(Section.MONEY, "Ledger", LedgerEntry, "receipt_long"),
    ],
)
