"""The declarations of `wallets` for the back office (core/backoffice/)."""

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Check,
    Component,
    DecryptCheck,
    Finder,
    Gauges,
    MenuEntry,
    Personal,
    Rights,
    Section,
    Severity,
    StaffRight,
    Unit,
    Watch,
    Whose,
    full_access,
    read_access,
)
from core.backoffice.search import MAX_HITS, SHORTEST_NAME, by_number, newest_first
from core.backoffice.staff_roles import StaffRole
from core.formats import local_amount
from core.texts import inside_sentence, lazy
from wallets.evidence.closes import COLUMNS, SUMS
from wallets.evidence.roots import row_is_signed
from wallets.models import (
    AnnouncedTransfer,
    BankDetails,
    BookingApproval,
    BookingLimit,
    DailyClose,
    LedgerEntry,
    Wallet,
    WalletClose,
)
from wallets.selectors import find_booking, find_bookings, reference_of
from wallets.services import BOOKING_ACTIONS

NAMES = tuple(COLUMNS.values())
CLOSES = [
    Check(
        gettext_noop("a close of a wallet agrees with the entries of its day"),
        f"""
        SELECT format('wallet %s on %s: the close says %s, the ledger %s', wallet_id, day,
                      to_jsonb(stored), to_jsonb(booked))
          FROM (SELECT wallet_id, day, {", ".join(NAMES)} FROM wallets_walletclose
                 WHERE true /*period AND day IN_DAYS*/) AS stored
          FULL JOIN (SELECT wallet_id, (created_at AT TIME ZONE 'UTC')::date AS day, {SUMS}
                       FROM wallets_ledgerentry AS entry
                      WHERE true /*period AND entry.id IN_IDS wallets_ledgerentry
                                      AND entry.created_at IN_TIMES*/
                      GROUP BY 1, 2) AS booked USING (wallet_id, day)
         WHERE day <= (SELECT max(day) FROM wallets_dailyclose)
           AND ({", ".join(f"stored.{name}" for name in NAMES)})
               IS DISTINCT FROM ({", ".join(f"booked.{name}" for name in NAMES)})
        """,  # noqa: S608  names of ours
    ),
    Check(
        gettext_noop("a close of a wallet begins with the balance of the one before"),
        """
        SELECT format('wallet %s on %s begins with %s, not %s', wallet_id, day, opening,
                      coalesce(before.closing, 0))
          FROM wallets_walletclose AS stored
          LEFT JOIN LATERAL (SELECT closing FROM wallets_walletclose AS earlier
                              WHERE earlier.wallet_id = stored.wallet_id
                                AND earlier.day < stored.day
                              ORDER BY earlier.wallet_id DESC, earlier.day DESC LIMIT 1)
                 AS before ON true
         WHERE opening <> coalesce(before.closing, 0) /*period AND stored.day IN_DAYS*/
        """,
    ),
    Check(
        gettext_noop(
            "the close of a day is the sum of its wallets, and follows that of the day before"
        ),
        f"""
        SELECT format('the close of %s in %s differs from its wallets or the day before',
                      stored.day, stored.currency)
          FROM wallets_dailyclose AS stored
          LEFT JOIN (SELECT day, currency, count(*) AS wallets,
                            {", ".join(f"sum({name}) AS {name}" for name in NAMES)}
                       FROM wallets_walletclose JOIN accounts_account
                            ON accounts_account.id = wallet_id
                      WHERE true /*period AND day IN_DAYS*/
                      GROUP BY day, currency) AS summed USING (day, currency)
          LEFT JOIN wallets_dailyclose AS before
                 ON before.currency = stored.currency AND before.day = stored.day - 1
         WHERE (stored.opening <> coalesce(before.closing, 0)
                OR (stored.wallets, {", ".join(f"stored.{name}" for name in NAMES)})
                   IS DISTINCT FROM (coalesce(summed.wallets, 0),
                   {", ".join(f"coalesce(summed.{name}, 0)" for name in NAMES)}))
           /*period AND stored.day IN_DAYS*/
        """,  # noqa: S608  names of ours
    ),
]
WARNINGS = [
    Check(
        gettext_noop("each day is closed within a day of its end"),
        """
        SELECT format('the last closed day is %s', coalesce(last::text, 'none'))
          FROM (SELECT max(day) AS last FROM wallets_dailyclose) AS closes,
               (SELECT ((now() - interval '26 hours') AT TIME ZONE 'UTC')::date - 1 AS due) AS late,
               (SELECT created_at FROM wallets_ledgerentry ORDER BY id LIMIT 1) AS first
         WHERE coalesce(last, '-infinity') < due
           AND (first.created_at AT TIME ZONE 'UTC')::date <= due
        """,
    ),
]

CHECKS = [
    Check(
        gettext_noop("a balance is the sum of its entries"),
        """
        SELECT format('wallet %s holds %s, its entries add up to %s',
                      account_id, balance, coalesce(total, 0))
          FROM wallets_wallet
          LEFT JOIN (SELECT wallet_id, sum(amount) AS total
                       FROM wallets_ledgerentry GROUP BY wallet_id) AS entries
                 ON wallet_id = account_id
         WHERE balance <> coalesce(total, 0) OR balance < 0
        """,
        # The next check proves that each entry has the right balance.
        of_period="""
        SELECT format('wallet %s holds %s, its last entry leaves %s',
                      account_id, balance, coalesce(balance_after, 0))
          FROM wallets_wallet
          LEFT JOIN LATERAL (SELECT balance_after FROM wallets_ledgerentry
                              WHERE wallet_id = account_id
                              ORDER BY wallet_id DESC, id DESC LIMIT 1) AS entry ON true
         WHERE balance <> coalesce(balance_after, 0) OR balance < 0
        """,
    ),
    Check(
        gettext_noop("each entry continues from the balance of the one before"),
        """
        SELECT format('entry %s of wallet %s says %s, not %s', id, wallet_id, balance_after, due)
          FROM (SELECT id, wallet_id, balance_after,
                       sum(amount) OVER (PARTITION BY wallet_id ORDER BY id) AS due
                  FROM wallets_ledgerentry) AS replayed
         WHERE balance_after <> due
        """,
        of_period="""
        SELECT format('entry %s of wallet %s says %s, not %s', id, wallet_id, entry.balance_after,
                      coalesce(left_before, before.balance_after, 0) + amount)
          FROM (SELECT id, wallet_id, amount, balance_after,
                       lag(balance_after) OVER (PARTITION BY wallet_id ORDER BY id) AS left_before
                  FROM wallets_ledgerentry AS item WHERE item.id IN_IDS wallets_ledgerentry)
               AS entry
          -- Of the first entry of a wallet in the period.
          LEFT JOIN LATERAL (SELECT balance_after FROM wallets_ledgerentry AS earlier
                              WHERE left_before IS NULL
                                AND earlier.wallet_id = entry.wallet_id AND earlier.id < entry.id
                              ORDER BY earlier.wallet_id DESC, earlier.id DESC LIMIT 1)
                 AS before ON true
         WHERE entry.balance_after <> coalesce(left_before, before.balance_after, 0) + amount
        """,
    ),
    Check(
        gettext_noop("each booking by staff or a command has one audit entry"),
        """
        SELECT format('booking %s has %s entries in the audit trail', booking_reference,
                      coalesce(entries, 0))
          FROM wallets_ledgerentry
          LEFT JOIN (SELECT changes->'booking_reference'->>1 AS booking, action, object_id,
                            count(*) AS entries
                       FROM audit_auditentry
                      WHERE action LIKE '%booked' OR action = 'booking_reversed'
                      GROUP BY booking, action, object_id) AS trail
                 ON booking = booking_reference AND object_id = wallet_id::text
                    AND action = CASE WHEN booking_reference LIKE 'reversal-of-entry:%'
                                      THEN 'booking_reversed' ELSE kind || '_booked' END
         WHERE kind IN ('deposit', 'payout', 'adjustment', 'credit') AND actor ~ '^(admin|shell):'
           AND coalesce(entries, 0) <> 1
           /*period AND wallets_ledgerentry.id IN_IDS wallets_ledgerentry*/
        """,
    ),
    Check(
        gettext_noop("each audit entry of a booking has its booking"),
        """
        SELECT format('audit entry %s names booking %s, which is not in the ledger', entry.id,
                      changes->'booking_reference'->>1)
          FROM audit_auditentry AS entry
          LEFT JOIN wallets_ledgerentry
                 ON booking_reference = changes->'booking_reference'->>1
         WHERE (action LIKE '%booked' OR action = 'booking_reversed')
           AND wallets_ledgerentry.id IS NULL
           /*period AND entry.id IN_IDS audit_auditentry*/
        """,
    ),
    Check(
        gettext_noop("no order is debited or refunded twice"),
        """
        SELECT format('order %s has %s entries of kind %s', order_reference, count(*), kind)
          FROM wallets_ledgerentry WHERE order_reference IS NOT NULL AND kind <> 'credit'
           /*period AND order_reference IN (
                SELECT order_reference FROM wallets_ledgerentry AS entry
                 WHERE entry.id IN_IDS wallets_ledgerentry)*/
         GROUP BY order_reference, kind HAVING count(*) > 1
        """,
    ),
    Check(
        gettext_noop("refunds and credits of an order are at most what its wallet paid for it"),
        """
        SELECT format('order %s got back more than it cost, or on another wallet: %s on %s wallets',
                      order_reference, sum(amount), count(DISTINCT wallet_id))
          FROM wallets_ledgerentry WHERE order_reference IS NOT NULL
           /*period AND order_reference IN (
                SELECT order_reference FROM wallets_ledgerentry AS entry
                 WHERE entry.id IN_IDS wallets_ledgerentry)*/
         GROUP BY order_reference HAVING sum(amount) > 0 OR count(DISTINCT wallet_id) > 1
        """,
    ),
    Check(
        gettext_noop(
            "each booking reference belongs to one booking, compared without case and punctuation"
        ),
        """
        SELECT format('the reference of ledger entry %s belongs to entry %s', entry.id,
                      coalesce(first.entry_id::text, 'none'))
          FROM wallets_ledgerentry AS entry
          LEFT JOIN wallets_bookingkey AS first ON key = wallets_booking_key(booking_reference)
         WHERE booking_reference IS NOT NULL
           AND (first.entry_id IS NULL OR first.entry_id > entry.id)
        UNION ALL
        SELECT format('the key of ledger entry %s is not that of its reference', entry.id)
          FROM wallets_bookingkey
          JOIN wallets_ledgerentry AS entry ON entry.id = entry_id
         WHERE key IS DISTINCT FROM wallets_booking_key(booking_reference)
        """,
    ),
    Check(
        gettext_noop("each approved booking is in the ledger as it was asked for"),
        """
        SELECT format('approval %s is not what ledger entry %s booked', approval.id, entry.id)
          FROM wallets_bookingapproval AS approval
          JOIN wallets_ledgerentry AS entry ON entry.id = entry_id
         WHERE (approval.wallet_id, approval.kind, approval.amount, approval.order_reference,
                approval.booking_reference)
               IS DISTINCT FROM
               (entry.wallet_id, entry.kind, entry.amount, entry.order_reference,
                entry.booking_reference)
        """,
    ),
    Check(
        gettext_noop("each reversal is the opposite of a booking that is no reversal"),
        """
        SELECT format('entry %s does not reverse a booking', reversal.id)
          FROM wallets_ledgerentry AS reversal
          LEFT JOIN wallets_ledgerentry AS entry
                 ON reversal.booking_reference = 'reversal-of-entry:' || entry.id
                AND entry.booking_reference NOT LIKE 'reversal-of-entry:%'
                AND (reversal.wallet_id, reversal.kind, reversal.amount,
                     coalesce(reversal.order_reference, ''))
                    = (entry.wallet_id, entry.kind, -entry.amount,
                       coalesce(entry.order_reference, ''))
         WHERE reversal.booking_reference LIKE 'reversal-of-entry:%' AND entry.id IS NULL
        """,
    ),
    # In the order of the index, so nothing is sorted and memory stays bounded.
    Check(
        gettext_noop("each entry continues the hash chain of its wallet"),
        """
        SELECT format('entry %s of wallet %s was changed, or one before it was', id, wallet_id)
          FROM (SELECT *, lag(chain) OVER wallet AS before
                  FROM wallets_ledgerentry
                WINDOW wallet AS (PARTITION BY wallet_id ORDER BY id)) AS entry
         WHERE chain IS DISTINCT FROM
               wallets_chained(
                   before, wallet_id,
                   wallets_shown_fields(wallet_id, kind, counterpart, amount, created_at,
                                        order_reference, note),
                   balance_after,
                   wallets_hidden_hash(salt, actor, booking_reference, note, reason))
        """,
        of_period="""
        SELECT format('entry %s of wallet %s was changed, or one before it was', id, wallet_id)
          FROM (SELECT *, lag(chain) OVER (PARTITION BY wallet_id ORDER BY id) AS chain_before
                  FROM wallets_ledgerentry AS item WHERE item.id IN_IDS wallets_ledgerentry)
               AS entry
          LEFT JOIN LATERAL (SELECT chain FROM wallets_ledgerentry AS earlier
                              WHERE chain_before IS NULL
                                AND earlier.wallet_id = entry.wallet_id AND earlier.id < entry.id
                              ORDER BY earlier.wallet_id DESC, earlier.id DESC LIMIT 1)
                 AS before ON true
         WHERE entry.chain IS DISTINCT FROM
               wallets_chained(
                   coalesce(chain_before, before.chain), wallet_id,
                   wallets_shown_fields(wallet_id, kind, counterpart, amount, created_at,
                                        order_reference, note),
                   balance_after,
                   wallets_hidden_hash(salt, actor, booking_reference, note, reason))
        """,
    ),
    Check(
        gettext_noop("each wallet holds the hash of its last entry"),
        """
        SELECT format('wallet %s does not hold the hash of its last entry', account_id)
          FROM wallets_wallet
         WHERE chain IS DISTINCT FROM
               (SELECT chain FROM wallets_ledgerentry WHERE wallet_id = account_id
                 ORDER BY wallet_id DESC, id DESC LIMIT 1)
        """,
    ),
    Check(
        gettext_noop(
            "the signed roots are numbered without gaps, and each leaf is an entry of its wallet"
        ),
        """
        SELECT format('root %s follows root %s', number, before)
          FROM (SELECT number, lag(number, 1, 0) OVER (ORDER BY number) AS before
                  FROM wallets_signedroot) AS root
         WHERE number <> before + 1
        UNION ALL
        SELECT format('root %s names entry %s of wallet %s, which does not exist',
                      root_id, last_entry, leaf.wallet_id)
          FROM wallets_rootleaf AS leaf
          LEFT JOIN wallets_ledgerentry AS entry
                 ON entry.id = last_entry AND entry.wallet_id = leaf.wallet_id
         WHERE entry.id IS NULL
        """,
    ),
]

DECRYPT_CHECKS = [
    DecryptCheck(
        gettext_noop("each root of the ledger carries our signature"),
        """
        SELECT 'root ' || number, number, signed_at, previous, wallets, root, public_key, signature
          FROM wallets_signedroot
        """,
        row_is_signed,
    ),
]

ROOT_AGE = "voucher_ledger_root_age_seconds"
GAUGES = [
    Gauges(
        {
            ROOT_AGE: "Time since the newest root of the ledger was signed, or since the last"
            " migration if there is none. A time in the future counts like one in the past.",
        },
        """
        SELECT abs(extract(epoch FROM now() - coalesce(signed_at, max(applied))))
          FROM django_migrations
          LEFT JOIN (SELECT signed_at FROM wallets_signedroot
                      ORDER BY number DESC LIMIT 1) AS newest ON true
         GROUP BY signed_at
        """,
        seconds=30,
    ),
]
COMPONENTS = [
    Component(
        title=lazy("Ledger last signed"),
        gauge=ROOT_AGE,
        unit=Unit.SECONDS,
        amber=26 * 3600,
        red=28 * 3600,
        advice=lazy(
            "What was booked since then could be changed without a trace. Check that the"
            " scheduler and a worker run, or run manage.py sign_ledger."
        ),
        alert=Alert(
            "VoucherLedgerUnsigned",
            Severity.WARNING,
            "10m",
            "The ledger has not been signed for {{ $value | humanizeDuration }}.",
        ),
        model=LedgerEntry,
        leads_to_list=False,
    ),
]


def _find_entries(reference: str) -> list[LedgerEntry]:
    """The booking and its reversal, then the newest whose reference begins with the text."""
    entries = LedgerEntry.objects.select_related("wallet__account")
    whole = find_booking(reference)
    references = [whole.booking_reference, whole.reversal_reference] if whole else []
    named = list(entries.filter(booking_reference__in=references).order_by("pk"))
    begun = find_bookings(reference) if len(reference) >= SHORTEST_NAME else []
    others = set(begun) - {entry.pk for entry in named}
    newest = entries.filter(pk__in=others).order_by("-pk")
    return [*named, *newest[: MAX_HITS - len(named)]]


def _describe(entry: LedgerEntry) -> tuple[str, str]:
    account, kind = entry.wallet.account, entry.get_kind_display()
    reference = reference_of(entry)
    name = f"{kind} {reference}"
    if entry.reversed_entry is not None:
        name = _("Reversal of %(booking)s") % {"booking": f"{inside_sentence(kind)} {reference}"}
    sign = "+" if entry.amount > 0 else ""
    return name, f"{sign}{local_amount(entry.amount, account.currency)}, {account}"


def _find_transfers(reference: str) -> QuerySet[AnnouncedTransfer]:
    rows = AnnouncedTransfer.objects.select_related("account")
    newest = AnnouncedTransfer.objects.order_by("-pk").values("pk")[:NEWEST_TRANSFERS]
    found = rows.filter(reference__iexact=reference, pk__in=newest)
    return found.order_by(newest_first())[:MAX_HITS]


def _describe_transfer(row: AnnouncedTransfer) -> tuple[str, str]:
    amount = local_amount(row.amount, row.account.currency)
    return row.reference, f"{amount}, {row.account}"


NEWEST_TRANSFERS = 10_000  # that are searched
APPROVAL = gettext_noop("Approval %(name)s")


def _find_approvals(text: str) -> QuerySet[BookingApproval]:
    return by_number(BookingApproval.objects.select_related("wallet__account"), text, APPROVAL)


def _describe_approval(row: BookingApproval) -> tuple[str, str]:
    amount = local_amount(row.amount, row.wallet.account.currency)
    about = (row.get_kind_display(), amount, row.wallet.account, row.get_state_display())
    return _(APPROVAL) % {"name": row.pk}, ", ".join(map(str, about))


WATCHES = [
    Watch(
        "waiting_approvals",
        lazy("Bookings that wait for approval"),
        """
        SELECT approval.id,
               format('%%s of %%s %%s for %%s has waited for approval for longer than %%s hours',
                      CASE kind WHEN 'adjustment' THEN 'An adjustment' ELSE 'A ' || kind END,
                      to_char(abs(amount), 'FM999,999,999,990.00'), currency, account.name,
                      round(%(limit)s)), approval.id
          FROM wallets_bookingapproval AS approval
          JOIN accounts_account AS account ON account.id = wallet_id
         WHERE state = 'waiting' AND expires_at > now()
           AND asked_at < now() - make_interval(hours => round(%(limit)s)::int)
        """,
        limit=4,
        unit=lazy("hours since the request"),
        advice=lazy("Another person must approve or reject it before it expires."),
        model=BookingApproval,
        sentences=[
            gettext_noop(
                "A deposit of %(amount)s for %(account)s has waited for approval for longer than"
                " %(hours)s hours"
            ),
            gettext_noop(
                "A payout of %(amount)s for %(account)s has waited for approval for longer than"
                " %(hours)s hours"
            ),
            gettext_noop(
                "An adjustment of %(amount)s for %(account)s has waited for approval for longer"
                " than %(hours)s hours"
            ),
            gettext_noop(
                "A credit of %(amount)s for %(account)s has waited for approval for longer than"
                " %(hours)s hours"
            ),
        ],
    ),
]

BACK_OFFICE = BackOffice(
    gauges=GAUGES,
    watches=WATCHES,
    components=COMPONENTS,
    checks=[*CHECKS, *CLOSES],
    warnings=WARNINGS,
    decrypt_checks=DECRYPT_CHECKS,
    triggers=[
        "wallets_approval_is_kept",
        "wallets_approval_keeps_reason",
        "wallets_balance_moves_by_ledger",
        "wallets_booking_has_its_key",
        "wallets_closes_of_days_are_kept",
        "wallets_closes_of_wallets_are_kept",
        "wallets_entry_has_its_time",
        "wallets_leaves_are_append_only",
        "wallets_statements_are_kept",
        "wallets_ledger_is_append_only",
        "wallets_paid_back_at_most_once",
        "wallets_post_entry",
        "wallets_reversal_is_opposite",
        "wallets_roots_are_append_only",
        "wallets_wallet_starts_empty",
    ],
    counted={"wallets": "wallets_wallet", "ledger_entries": "wallets_ledgerentry"},
    personal=[
        Personal(
            "wallets_ledgerentry",
            Whose.STAFF,
            "who booked what",
            withheld=["actor", "note", "reason"],
            kept="everything: the ledger is append-only, and signed roots cover each entry. The"
            " audit trail names the same bookings",
        ),
        Personal(
            "wallets_bookingapproval",
            Whose.STAFF,
            "who asked for and approved a large booking",
            withheld=["note", "reason"],
            context=["kind", "asked_at", "decided_at"],
            find="asked_by_id = ANY(%(users)s) OR decided_by_id = ANY(%(users)s)",
            kept="everything: the second person of a booking is its evidence",
        ),
        Personal(
            "wallets_announcedtransfer",
            Whose.MEMBERS,
            "who announced a transfer",
            columns=["reference"],
            context=["amount", "announced_at"],
            find="announced_by_id = ANY(%(users)s)",
            kept="everything: a booking of the ledger settles it",
        ),
        Personal(
            "wallets_monthlystatement",
            Whose.CONTACTS,
            "the companies of an issued statement",
            withheld=["issuer", "recipient"],
            kept="everything: an issued statement never changes",
        ),
    ],
    rights={
        "wallets_announcedtransfer": Rights.KEEP,
        "wallets_bankdetails": Rights.CHANGE,
        "wallets_bookedalone": Rights.KEEP,
        "wallets_bookingapproval": Rights.KEEP,
        "wallets_bookingkey": Rights.APPEND,
        "wallets_bookinglimit": Rights.CHANGE,
        "wallets_dailyclose": Rights.APPEND,
        "wallets_ledgerentry": Rights.APPEND,
        "wallets_monthlystatement": Rights.APPEND,
        "wallets_rootleaf": Rights.APPEND,
        "wallets_signedroot": Rights.APPEND,
        "wallets_wallet": Rights.KEEP,
        "wallets_walletclose": Rights.APPEND,
    },
    staff_rights=[
        StaffRight(
            Section.MONEY,
            lazy("See wallets, the ledger and the daily closes"),
            read_access(Wallet, LedgerEntry, DailyClose, WalletClose),
            [StaffRole.FINANCE],
        ),
        StaffRight(
            Section.MONEY,
            lazy("Book deposits, payouts, credits and adjustments, and settle lost purchases"),
            ["wallets.move_money"],
            [StaffRole.FINANCE],
        ),
        StaffRight(
            Section.MONEY,
            lazy("See announced transfers and the bank details of merchants' transfers"),
            read_access(AnnouncedTransfer, BankDetails),
            [StaffRole.FINANCE],
        ),
        StaffRight(
            Section.MONEY,
            lazy("Change the bank details that merchants send their money to"),
            full_access(BankDetails),
            [StaffRole.ADMINISTRATOR],
        ),
        StaffRight(
            Section.MONEY,
            lazy("Approve or reject the large bookings of others"),
            ["wallets.approve_booking", *read_access(BookingApproval, BookingLimit)],
            [StaffRole.FINANCE],
        ),
        StaffRight(
            Section.MONEY,
            lazy("Set above which amount a booking waits for a second person"),
            full_access(BookingLimit),
            [StaffRole.ADMINISTRATOR],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("Open the wallet of an account"),
            ["wallets.add_wallet"],
            [StaffRole.ADMINISTRATOR, StaffRole.MERCHANT_MANAGER],
        ),
    ],
    # They are on the account, and say an amount.
    seen_with=dict.fromkeys(BOOKING_ACTIONS, LedgerEntry),
    parts={"wallets.wallet": lambda pk: {"accounts.account": [str(pk)]}},
    finders=[
        Finder(lazy("Booking"), LedgerEntry, _find_entries, _describe),
        Finder(lazy("Announced transfer"), AnnouncedTransfer, _find_transfers, _describe_transfer),
        Finder(lazy("Approval"), BookingApproval, _find_approvals, _describe_approval),
    ],
    menu=[
        MenuEntry(Section.RECORDS, lazy("Wallets"), Wallet, "account_balance_wallet"),
        MenuEntry(Section.MONEY, lazy("Ledger"), LedgerEntry, "receipt_long"),
        MenuEntry(Section.RECORDS, lazy("Daily closes"), DailyClose, "event_available"),
        MenuEntry(Section.RECORDS, lazy("Closes of wallets"), WalletClose, "fact_check"),
        MenuEntry(Section.MONEY, lazy("Approvals"), BookingApproval, "done_all"),
        MenuEntry(Section.MONEY, lazy("Announced transfers"), AnnouncedTransfer, "input"),
        MenuEntry(Section.SETTINGS, lazy("Bank details"), BankDetails, "account_balance"),
        MenuEntry(Section.SETTINGS, lazy("Booking limits"), BookingLimit, "speed"),
    ],
)
