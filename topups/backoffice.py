"""The declarations of `topups` for the back office (core/backoffice/)."""

from django.conf import settings
from django.db.models import Q
from django.utils.translation import gettext_noop

from catalogue.backoffice import newest_entries
from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Check,
    Component,
    Expiring,
    Gauges,
    MenuEntry,
    Personal,
    Rights,
    Sealed,
    Section,
    Severity,
    StaffRight,
    Unit,
    Watch,
    Whose,
    full_access,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context
from core.files.uploads import row_of_file
from core.texts import lazy
from topups.fulfilment.transitions import DECIDE_REVIEW, FULFIL
from topups.models import (
    DELETED_PLAYER_ID,
    DeliveryFile,
    Fulfilment,
    TopUpField,
    TopUpFieldOption,
    TopUpProduct,
)
from topups.search import FINDERS

# The fulfilments that were made, moved or paid back in a period. Only for SQL of a period.
TOUCHED = """(
            SELECT made.id FROM topups_fulfilment AS made WHERE made.id IN_IDS topups_fulfilment
             UNION
            SELECT fulfilment_id FROM topups_fulfilmentevent AS event
             WHERE event.id IN_IDS topups_fulfilmentevent
             UNION
            SELECT paid.id FROM topups_fulfilment AS paid
              JOIN wallets_ledgerentry AS entry ON entry.order_reference = paid.order_reference
             WHERE entry.kind IN ('refund', 'credit') AND entry.id IN_IDS wallets_ledgerentry)"""

CHECKS = [
    Check(
        gettext_noop(
            "each fulfilment marked refunded was paid back in full, and each refund is marked"
        ),
        """
        SELECT format('fulfilment %s (%s, refunded %s) of %s has %s refunds, and got back %s on'
                      ' wallet %s', fulfilment.order_reference, fulfilment.status,
                      fulfilment.refunded_at IS NOT NULL, fulfilment.amount, refunds, back,
                      wallet_id)
          FROM topups_fulfilment AS fulfilment
          FULL JOIN (SELECT order_reference, wallet_id, sum(amount) AS back,
                            count(*) FILTER (WHERE kind = 'refund') AS refunds
                       FROM wallets_ledgerentry WHERE kind IN ('refund', 'credit')
                      GROUP BY order_reference, wallet_id) AS entries
                 ON entries.order_reference = fulfilment.order_reference
         WHERE ((refunded_at IS NOT NULL OR refunds > 0)
                AND (fulfilment.status, fulfilment.amount, fulfilment.account_id)
                    IS DISTINCT FROM ('failed', back, wallet_id))
            OR (refunds > 0 AND (refunded_at IS NULL OR refund_due_at IS NULL))
        """,
        of_period=f"""
        SELECT format('fulfilment %s (%s, refunded %s) of %s has %s refunds, and got back %s on'
                      ' wallet %s', fulfilment.order_reference, fulfilment.status,
                      fulfilment.refunded_at IS NOT NULL, fulfilment.amount, refunds, back,
                      wallet_id)
          FROM topups_fulfilment AS fulfilment
          LEFT JOIN LATERAL (SELECT wallet_id, sum(entry.amount) AS back,
                                    count(*) FILTER (WHERE kind = 'refund') AS refunds
                               FROM wallets_ledgerentry AS entry
                              WHERE entry.order_reference = fulfilment.order_reference
                                AND kind IN ('refund', 'credit')
                              GROUP BY wallet_id) AS entries ON true
         WHERE fulfilment.id IN {TOUCHED}
           AND (((refunded_at IS NOT NULL OR refunds > 0)
                 AND (fulfilment.status, fulfilment.amount, fulfilment.account_id)
                     IS DISTINCT FROM ('failed', back, wallet_id))
                OR (refunds > 0 AND (refunded_at IS NULL OR refund_due_at IS NULL)))
        UNION ALL
        SELECT format('entry %s refunds the order %s, which is no top-up', entry.id,
                      entry.order_reference)
          FROM wallets_ledgerentry AS entry
         WHERE kind = 'refund' AND entry.id IN_IDS wallets_ledgerentry
           AND NOT EXISTS (SELECT FROM topups_fulfilment AS fulfilment
                            WHERE fulfilment.order_reference = entry.order_reference)
        """,  # noqa: S608  SQL of ours
    ),
    Check(
        gettext_noop("each failed fulfilment that was paid back in full is marked refunded"),
        f"""
        SELECT format('fulfilment %s failed and got back %s, but is not refunded',
                      fulfilment.order_reference, back)
          FROM topups_fulfilment AS fulfilment
          JOIN (SELECT order_reference, sum(amount) AS back
                  FROM wallets_ledgerentry WHERE kind IN ('refund', 'credit')
                   /*period AND order_reference IN (SELECT order_reference FROM topups_fulfilment
                                                     WHERE id IN {TOUCHED})*/
                 GROUP BY order_reference) AS entries
            ON entries.order_reference = fulfilment.order_reference
         WHERE status = 'failed' AND back >= amount
           AND refunded_at IS NULL AND refund_due_at IS NULL
        """,  # noqa: S608  SQL of ours
    ),
    Check(
        gettext_noop(
            "each due refund has one rejection, and each refund one event, in the history"
        ),
        f"""
        SELECT format('fulfilment %s (refund due %s, refunded %s) has %s rejections and %s refunds'
                      ' in its history', order_reference, refund_due_at IS NOT NULL,
                      refunded_at IS NOT NULL, coalesce(rejections, 0), coalesce(refunds, 0))
          FROM topups_fulfilment AS fulfilment
          LEFT JOIN (SELECT fulfilment_id, count(*) FILTER (WHERE move = 'reject') AS rejections,
                            count(*) FILTER (WHERE move = 'refund') AS refunds
                       FROM topups_fulfilmentevent
                      /*period WHERE fulfilment_id IN {TOUCHED}*/
                      GROUP BY fulfilment_id) AS history
                 ON fulfilment_id = fulfilment.id
         WHERE (coalesce(rejections, 0) <> (refund_due_at IS NOT NULL)::int
                OR coalesce(refunds, 0) <> (refunded_at IS NOT NULL)::int)
           /*period AND fulfilment.id IN {TOUCHED}*/
        """,  # noqa: S608  SQL of ours
    ),
    Check(
        gettext_noop("the history of a fulfilment leads to its status"),
        f"""
        SELECT format('fulfilment %s is %s, but its history leads to another status',
                      order_reference, status)
          FROM topups_fulfilment AS fulfilment
          LEFT JOIN (SELECT fulfilment_id,
                            bool_and(from_status IS NOT DISTINCT FROM came_to) AS joined,
                            max(to_status) FILTER (WHERE from_last = 1) AS came_to
                       FROM (SELECT fulfilment_id, from_status, to_status,
                                    lag(to_status) OVER history AS came_to,
                                    row_number() OVER (PARTITION BY fulfilment_id ORDER BY id DESC)
                                        AS from_last
                               FROM topups_fulfilmentevent
                              /*period WHERE fulfilment_id IN {TOUCHED}*/
                             WINDOW history AS (PARTITION BY fulfilment_id ORDER BY id)) AS steps
                      GROUP BY fulfilment_id) AS history
                 ON fulfilment_id = fulfilment.id
         WHERE (joined IS NOT TRUE OR came_to IS DISTINCT FROM status)
           /*period AND fulfilment.id IN {TOUCHED}*/
        """,  # noqa: S608  SQL of ours
    ),
    Check(
        gettext_noop(
            "each field of a top-up product has its own id, and no product has more than 30 fields"
        ),
        """
        SELECT format('field %s (%s) of top-up product %s has the id of another field',
                      field.number, field.name, field.product_id)
          FROM topups_topupfield AS field
         WHERE NOT EXISTS (SELECT FROM topups_fieldid AS known
                            WHERE (known.product_id, known.number, known.name)
                                = (field.product_id, field.number, field.name))
         UNION ALL
        SELECT format('top-up product %s has %s fields', product_id, count(*))
          FROM topups_topupfield GROUP BY product_id HAVING count(*) > 30
        """,
    ),
]

WARNINGS = [
    Check(
        gettext_noop("a due refund is carried out within minutes"),
        """
        SELECT format('the refund of %%s (%%s %%s) is due since %%s',
                      order_reference, amount, currency, refund_due_at)
          FROM topups_fulfilment
         WHERE refund_due_at < now() - make_interval(mins => %(minutes)s) AND refunded_at IS NULL
         ORDER BY refund_due_at
        """,
        lambda: {"minutes": settings.REFUND_OVERDUE_MINUTES},
    ),
]

GAUGES = [
    Gauges(
        {
            "voucher_desk_orders": "Open top-up orders, by fulfilment status.",
            "voucher_desk_oldest_seconds": "Age of the oldest of them; 0 if there is none.",
        },
        """
        SELECT status, coalesce(orders, 0), coalesce(extract(epoch FROM now() - oldest), 0)
          FROM unnest(ARRAY['pending', 'processing', 'pending_review']) AS known (status)
          LEFT JOIN (SELECT status, count(*) AS orders, min(created_at) AS oldest
                       FROM topups_fulfilment
                      WHERE status IN ('pending', 'processing', 'pending_review')
                      GROUP BY status) AS open USING (status)
        """,
        labels=["status"],
    ),
    Gauges(
        {
            "voucher_refunds_due": "Refunds that are due and not carried out.",
            "voucher_refunds_oldest_seconds": "Time since the oldest of them became due; 0 if there"
            " is none.",
        },
        """
        SELECT count(*), coalesce(extract(epoch FROM now() - min(refund_due_at)), 0)
          FROM topups_fulfilment WHERE refund_due_at IS NOT NULL AND refunded_at IS NULL
        """,
    ),
    Gauges(
        {
            "voucher_topups_late_percent": "Percent of top-ups that took longer than promised, of"
            " those delivered in the last day (at most the newest 10,000) and those still open"
            " beyond their time. No value if there is none.",
            "voucher_refunds_late_percent": "Percent of refunds that were not booked within a"
            " minute, of the top-ups that failed in the last day. No value if there is none.",
        },
        """
        WITH ended AS MATERIALIZED (
             SELECT product_id, created_at, closed_at, status, refund_due_at, refunded_at
               FROM topups_fulfilment WHERE closed_at > now() - interval '1 day'
              ORDER BY closed_at DESC LIMIT 10000),
             waiting AS MATERIALIZED (
             SELECT product_id, created_at, now() AS closed_at FROM topups_fulfilment
              WHERE status IN ('pending', 'processing', 'pending_review')),
             timed AS (
             SELECT closed_at - created_at > make_interval(mins => promised_minutes) AS late, open
               FROM (SELECT product_id, created_at, closed_at, false AS open FROM ended
                      WHERE status = 'completed'
                      UNION ALL SELECT product_id, created_at, closed_at, true FROM waiting) AS one
               JOIN topups_topupproduct AS product ON product.id = product_id
              WHERE promised_minutes IS NOT NULL)
        SELECT (SELECT 100.0 * count(*) FILTER (WHERE late)
                       / nullif(count(*) FILTER (WHERE late OR NOT open), 0) FROM timed),
               100.0 * count(*) FILTER (
                   WHERE coalesce(refunded_at, now()) > refund_due_at + interval '1 minute')
               / nullif(count(refund_due_at), 0)
          FROM ended
        """,
        seconds=60,
    ),
]
COMPONENTS = [
    Component(
        title=lazy("Oldest top-up that nobody has claimed"),
        gauge="voucher_desk_oldest_seconds",
        labels={"status": "pending"},
        unit=Unit.SECONDS,
        amber=settings.DESK_WAITING_MINUTES * 60,
        red=settings.DESK_LATE_MINUTES * 60,
        advice=lazy("Claim orders at the desk, the oldest first, or ask more operators to help."),
        alert=Alert(
            "VoucherDeskLate",
            Severity.WARNING,
            "2m",
            "Nobody has claimed a top-up for {{ $value | humanizeDuration }}.",
        ),
        model=Fulfilment,
    ),
    Component(
        title=lazy("Oldest refund that is due"),
        gauge="voucher_refunds_oldest_seconds",
        unit=Unit.SECONDS,
        amber=60,
        red=settings.REFUND_OVERDUE_MINUTES * 60,
        advice=lazy(
            "A worker carries refunds out within seconds. Check that one is running, and look"
            " for refund_failed in its log."
        ),
        alert=Alert(
            "VoucherRefundOverdue",
            Severity.CRITICAL,
            "1m",
            "A refund has been due for {{ $value | humanizeDuration }}.",
        ),
        model=Fulfilment,
    ),
    Component(
        title=lazy("Late top-ups of the last day, in percent"),
        gauge="voucher_topups_late_percent",
        unit=Unit.COUNT,
        amber=0,
        red=5,
        advice=lazy(
            "The shift report shows the late ones. Put more operators on those hours, or change the"
            " promised time of the product."
        ),
        alert=Alert(
            "VoucherTopupsLate",
            Severity.WARNING,
            "15m",
            "{{ $value | humanize }} % of the top-ups of a day took longer than promised.",
        ),
        model=Fulfilment,
    ),
    Component(
        title=lazy("Late refunds of the last day, in percent"),
        gauge="voucher_refunds_late_percent",
        unit=Unit.COUNT,
        amber=0,
        red=1,
        advice=lazy(
            "A refund is late after a minute. Check whether the worker or the broker was down, or"
            " both processes of the worker were busy."
        ),
        alert=Alert(
            "VoucherRefundsLate",
            Severity.WARNING,
            "15m",
            "{{ $value | humanize }} % of the refunds of a day took longer than a minute.",
        ),
        model=Fulfilment,
    ),
]

VIEW_FULFILMENT = "topups.view_fulfilment"
WATCHES = [
    Watch(
        "late_topups",
        lazy("Top-ups older than promised"),
        """
        SELECT product_id, format('Orders of %%s that have waited longer than %%s minutes: %%s',
                                  product.name, coalesce(promised_minutes, round(%(limit)s)),
                                  count(*)), NULL
          FROM topups_fulfilment AS fulfilment
          JOIN topups_topupproduct AS product ON product.id = product_id
         WHERE fulfilment.status IN ('pending', 'processing', 'pending_review')
           AND fulfilment.created_at < now() - make_interval(
                   mins => coalesce(promised_minutes, round(%(limit)s)::int))
         GROUP BY product_id, product.name, promised_minutes
        """,
        limit=60,
        unit=lazy("minutes since the purchase, of products without a promised time"),
        advice=lazy("Claim the oldest orders at the desk."),
        model=Fulfilment,
        sentences=[
            gettext_noop(
                "Orders of %(product)s that have waited longer than %(minutes)s minutes: %(count)s"
            ),
        ],
    ),
    Watch(
        "overdue_refunds",
        lazy("Overdue refunds"),
        """
        SELECT 'refunds', format('Refunds due for longer than %%s minutes: %%s',
                                 round(%(limit)s), count(*)), NULL
          FROM topups_fulfilment
         WHERE refund_due_at IS NOT NULL AND refunded_at IS NULL
           AND refund_due_at < now() - make_interval(mins => round(%(limit)s)::int)
        HAVING count(*) > 0
        """,
        limit=5,
        unit=lazy("minutes since the rejection"),
        advice=lazy("Check that a worker runs, and look for refund_failed in its log."),
        model=Fulfilment,
        sentences=[
            gettext_noop("Refunds due for longer than %(minutes)s minutes: %(count)s"),
        ],
    ),
]

OF_PLAYER = (
    "SELECT id FROM topups_fulfilment WHERE player_id = ANY(%(player_ids)s)"
    " AND (cardinality(%(products)s::bigint[]) = 0 OR product_id = ANY(%(products)s))"
)
# From then on the database allows it (topups/sql/guards.sql).
ENDED = (
    "closed_at < now() - interval '30 days' AND (refund_due_at IS NULL OR refunded_at IS NOT NULL)"
)

BACK_OFFICE = BackOffice(
    parts={
        "topups.topupproduct": lambda pk: {
            "catalogue.pricelistentry": newest_entries(Q(topup_product_id=pk)),
        },
    },
    gauges=GAUGES,
    components=COMPONENTS,
    watches=WATCHES,
    checks=CHECKS,
    warnings=WARNINGS,
    expiring=[
        # The order stays, without its player id (docs/decisions/0045-retention.md).
        Expiring(
            kind="player_ids",
            table="topups_fulfilment",
            old="closed_at < %(before)s AND (refund_due_at IS NULL OR refunded_at IS NOT NULL)"
            f" AND (player_id <> '{DELETED_PLAYER_ID}' OR fields <> '[]')",
            days="player_ids",
            emptied=f"player_id = '{DELETED_PLAYER_ID}', fields = '[]'",
        ),
        Expiring(
            kind="delivery_files",
            table="topups_deliveryfile",
            old="EXISTS (SELECT FROM topups_deliveryproof AS proof"
            " WHERE proof.id = proof_id AND proof.added_at < %(before)s)",
            days="delivery_files",
        ),
    ],
    sealed=[
        Sealed(
            kind="delivery_files",
            table="topups_deliveryfile",
            column="sealed",
            context=Context.DELIVERY_FILE,
            identity=["token"],
            row=row_of_file,
            check=gettext_noop("every file of a proof of delivery opens"),
            read=DeliveryFile.open,
            at_once=10,
        ),
    ],
    triggers=[
        "topups_begun_price_is_kept",
        "topups_ended_stays_ended",
        "topups_field_id_is_kept",
        "topups_field_ids_are_append_only",
        "topups_field_ids_are_kept",
        "topups_field_keeps_its_id",
        "topups_file_of_proof_is_kept",
        "topups_fulfilment_is_kept",
        "topups_history_is_append_only",
        "topups_price_history_is_append_only",
        "topups_price_history_is_kept",
        "topups_price_is_remembered",
        "topups_price_replaces_the_next",
        "topups_proof_is_kept",
        "topups_proof_is_of_a_delivery",
    ],
    constraints=["topups_product_of_price_entry"],
    counted={"fulfilments": "topups_fulfilment"},
    personal=[
        Personal(
            "topups_fulfilmentevent",
            Whose.PLAYERS,
            "who did what for the order",
            withheld=["actor", "note"],
            context=["fulfilment_id", "created_at", "move", "to_status"],
            find=f"fulfilment_id IN ({OF_PLAYER})",
            kept="everything: the history of an order is append-only",
        ),
        Personal(
            "topups_deliveryfile",
            Whose.PLAYERS,
            "shows that the order was delivered",
            columns=["name"],
            withheld=["content_type", "sealed"],
            context=["proof_id"],
            find="proof_id IN (SELECT id FROM topups_deliveryproof"  # noqa: S608  # constants
            f" WHERE fulfilment_id IN ({OF_PLAYER}))",
            delete="DELETE",
            when="proof_id IN (SELECT proof.id FROM topups_deliveryproof AS proof"  # noqa: S608
            f" JOIN topups_fulfilment ON topups_fulfilment.id = fulfilment_id WHERE {ENDED})",
            kept="files of orders that ended less than 30 days ago, or whose refund is owed",
        ),
        Personal(
            "topups_deliveryproof",
            Whose.PLAYERS,
            "the transaction number of the delivery",
            columns=["transaction_number"],
            context=["fulfilment_id", "added_at"],
            find=f"fulfilment_id IN ({OF_PLAYER})",
            kept="everything: proofs are append-only",
        ),
        Personal(
            "topups_fulfilment",
            Whose.PLAYERS,
            "where the top-up goes",
            columns=["player_id", "fields", "message"],
            context=["order_reference", "product_id", "created_at", "closed_at", "status"],
            find=OF_PLAYER.partition(" WHERE ")[2],
            delete=f"player_id = '{DELETED_PLAYER_ID}', fields = '[]'",
            when=ENDED,
            kept="the order, and the message to the merchant. The player id stays until 30 days"
            " after the order's end, when replays are over, and while a refund is owed",
        ),
        Personal(
            "topups_topuppricechange",
            Whose.STAFF,
            "who changed a price",
            withheld=["changed_by", "asked_by"],
            kept="everything: the history of prices is append-only",
        ),
    ],
    rights={
        "topups_deliveryfile": Rights.CHANGE,
        "topups_deliveryproof": Rights.APPEND,
        "topups_fieldid": Rights.APPEND,
        "topups_fulfilment": Rights.KEEP,
        "topups_fulfilmentevent": Rights.APPEND,
        "topups_topuppricechange": Rights.APPEND,
        "topups_topupfield": Rights.CHANGE,
        "topups_topupfieldoption": Rights.CHANGE,
        "topups_topupproduct": Rights.KEEP,
        "topups_topupproduct_id_seq": Rights.RENUMBER,
    },
    staff_rights=[
        StaffRight(
            Section.TOP_UPS,
            lazy("See top-up orders"),
            [VIEW_FULFILMENT],
            [
                StaffRole.OPERATOR,
                StaffRole.SENIOR_OPERATOR,
                StaffRole.FINANCE,
                StaffRole.SUPPORT,
            ],
        ),
        StaffRight(
            Section.TOP_UPS,
            lazy("Claim, deliver and reject top-up orders"),
            [FULFIL],
            [StaffRole.OPERATOR, StaffRole.SENIOR_OPERATOR],
        ),
        StaffRight(
            Section.TOP_UPS,
            lazy("Decide orders in review, and act on the claims of others"),
            [DECIDE_REVIEW],
            [StaffRole.SENIOR_OPERATOR],
        ),
        StaffRight(
            Section.TOP_UPS,
            lazy("See top-up products"),
            read_access(TopUpProduct),
            [StaffRole.ADMINISTRATOR, StaffRole.MERCHANT_MANAGER, StaffRole.SUPPORT],
        ),
        StaffRight(
            Section.TOP_UPS,
            lazy("Add, change and delete top-up products and their prices"),
            full_access(TopUpProduct, TopUpField, TopUpFieldOption),
            [StaffRole.STOCK_KEEPER],
        ),
    ],
    finders=FINDERS,
    menu=[
        MenuEntry(Section.TOP_UPS, lazy("Desk"), Fulfilment, "sports_esports"),
        MenuEntry(Section.TOP_UPS, lazy("Top-up products"), TopUpProduct, "diamond"),
    ],
)
