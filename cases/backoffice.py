"""The declarations of `cases` for the back office (core/backoffice/)."""

from django.db.models import QuerySet
from django.utils.translation import gettext_noop

from cases.models import Case, CaseFile
from core.backoffice.declarations import (
    BackOffice,
    Check,
    Expiring,
    Finder,
    MenuEntry,
    Personal,
    Rights,
    Sealed,
    Section,
    StaffRight,
    Watch,
    Whose,
    read_access,
)
from core.backoffice.search import by_number
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context
from core.files.uploads import row_of_file
from core.texts import lazy
from topups.backoffice import OF_PLAYER

CHECKS = [
    Check(
        gettext_noop("each case has the outcome that it says, and no other"),
        """
        SELECT format('case %s is %s; it has %s replacements and %s credits', item.id, item.state,
                      count(DISTINCT sale.id), count(DISTINCT entry.id))
          FROM cases_case AS item
          LEFT JOIN orders_order AS sale ON sale.case_id = item.id
          LEFT JOIN wallets_ledgerentry AS entry
                 ON entry.booking_reference = 'credit-of-case:' || item.id
         GROUP BY item.id
        HAVING (count(DISTINCT sale.id), count(DISTINCT entry.id))
               <> ((item.state = 'replaced')::int, (item.state = 'credited')::int)
        """,
    ),
    Check(
        gettext_noop(
            "each replacement is a code of the same shelf, for the client that bought the first one"
        ),
        """
        SELECT format('order %s does not replace the code of case %s', sale.reference, item.id)
          FROM orders_order AS sale
          LEFT JOIN cases_case AS item ON item.id = sale.case_id
          LEFT JOIN orders_order AS first ON first.id = item.order_id
         WHERE sale.case_id IS NOT NULL
           AND (sale.client_id, sale.shelf_id, sale.currency)
               IS DISTINCT FROM (first.client_id, first.shelf_id, first.currency)
        """,
    ),
    Check(
        gettext_noop("each credit of a case is of the order that was paid"),
        """
        SELECT format('entry %s credits another order than case %s', entry.id, item.id)
          FROM cases_case AS item
          JOIN orders_order AS paid ON paid.id = item.paid_order_id
          JOIN wallets_ledgerentry AS entry
            ON entry.booking_reference = 'credit-of-case:' || item.id
         WHERE (entry.kind, entry.wallet_id, entry.order_reference)
               IS DISTINCT FROM ('credit', item.account_id, paid.reference)
        """,
    ),
    Check(
        gettext_noop("no order gave back more than it cost, in money and in codes together"),
        """
        SELECT format('order %s gave back %s of %s', paid.reference, cases_given_back(paid.id),
                      paid.total_price)
          FROM orders_order AS paid
         WHERE paid.id IN (SELECT paid_order_id FROM cases_case WHERE state = 'replaced')
           AND cases_given_back(paid.id) > paid.total_price
        """,
    ),
    Check(
        gettext_noop("each case that waits for approval has a credit that waits"),
        """
        SELECT format('case %s waits for a credit that nobody can approve', item.id)
          FROM cases_case AS item
         WHERE item.state = 'crediting'
           AND NOT EXISTS (SELECT FROM wallets_bookingapproval
                            WHERE booking_reference = 'credit-of-case:' || item.id
                              AND state = 'waiting')
        """,
    ),
    Check(
        gettext_noop("each outcome of a case has one entry in the audit trail"),
        """
        SELECT format('case %s is %s, with %s entries in the audit trail', item.id, item.state,
                      count(entry.id))
          FROM cases_case AS item
          LEFT JOIN audit_auditentry AS entry
                 ON entry.object_type = 'cases.case' AND entry.object_id = item.id::text
                AND entry.action = 'case_' || item.state
         WHERE item.state IN ('rejected', 'replaced', 'credited')
         GROUP BY item.id
        HAVING count(entry.id) = 0 OR (count(entry.id) > 1 AND item.state <> 'credited')
        """,
    ),
]

WATCHES = [
    Watch(
        "waiting_cases",
        lazy("Cases that wait for staff"),
        """
        SELECT item.id, format('Case %%s of %%s has waited for longer than %%s hours', item.id,
                               account.name, round(%(limit)s)), item.id
          FROM cases_case AS item JOIN accounts_account AS account ON account.id = account_id
         WHERE waits_since < now() - make_interval(hours => round(%(limit)s)::int)
        """,
        limit=24,
        unit=lazy("hours since the merchant's message"),
        advice=lazy("Answer the merchant, or decide the case."),
        model=Case,
        sentences=[
            gettext_noop("Case %(case)s of %(account)s has waited for longer than %(hours)s hours"),
        ],
    ),
]


def _find_cases(text: str) -> QuerySet[Case]:
    return by_number(Case.objects.select_related("account", "order"), text, "Case %(name)s")


def _describe(case: Case) -> tuple[str, str]:
    return case.title, f"{case.account}, {case.order}, {case.state_in_words}"


BACK_OFFICE = BackOffice(
    checks=CHECKS,
    finders=[Finder(lazy("Case"), Case, _find_cases, _describe)],
    watches=WATCHES,
    triggers=[
        "cases_case_is_about_its_order",
        "cases_case_is_kept",
        "cases_case_is_not_deleted",
        "cases_entry_closes_its_case",
        "cases_gives_back_at_most_what_was_paid",
        "cases_message_is_kept",
        "cases_outcome_is_in_the_ledger",
        "cases_refused_credit_reopens_its_case",
    ],
    constraints=["orders_order_case_fk"],
    expiring=[
        Expiring(
            kind="case_files",
            table="cases_casefile",
            old="EXISTS (SELECT FROM cases_casemessage AS message"
            " JOIN cases_case AS its_case ON its_case.id = message.case_id"
            " WHERE message.id = message_id AND its_case.closed_at < %(before)s)",
            days="case_files",
        ),
    ],
    sealed=[
        Sealed(
            kind="case_files",
            table="cases_casefile",
            column="sealed",
            context=Context.CASE_FILE,
            identity=["token"],
            row=row_of_file,
            check=gettext_noop("every file of a case opens"),
            read=CaseFile.open,
            at_once=10,
        ),
    ],
    personal=[
        Personal(
            "cases_casefile",
            Whose.MEMBERS,
            "pictures of a complaint; they may show a player's account",
            columns=["name"],
            withheld=["content_type", "sealed"],
            context=["message_id"],
            find="message_id IN (SELECT id FROM cases_casemessage"  # noqa: S608  # constants
            " WHERE author_id = ANY(%(users)s))"
            " OR message_id IN (SELECT message.id FROM cases_casemessage AS message"
            " JOIN cases_case AS its_case ON its_case.id = case_id"
            " JOIN orders_order AS sale ON sale.id = order_id"
            f" WHERE fulfilment_id IN ({OF_PLAYER}))",
            delete="DELETE",
            when="message_id IN (SELECT message.id FROM cases_casemessage AS message"
            " JOIN cases_case AS its_case ON its_case.id = case_id WHERE closed_at IS NOT NULL)",
            kept="files of cases that are open",
        ),
        Personal(
            "cases_casemessage",
            Whose.MEMBERS,
            "what a member wrote in a case",
            columns=["text"],
            context=["case_id", "created_at"],
            find="author_id = ANY(%(users)s) AND NOT from_staff",
            kept="everything: the other side acted on it. It names its author by the key of a row"
            " that is empty after the deletion",
        ),
        Personal(
            "cases_casemessage",
            Whose.STAFF,
            "what staff wrote in a case, about a merchant",
            withheld=["text"],
            context=["case_id", "created_at"],
            find="author_id = ANY(%(users)s) AND from_staff",
            kept="everything: the other side acted on it. It names its author by the key of a row"
            " that is empty after the deletion",
        ),
    ],
    rights={
        "cases_case": Rights.KEEP,
        "cases_casefile": Rights.CHANGE,
        "cases_casemessage": Rights.APPEND,
    },
    staff_rights=[
        StaffRight(
            Section.ORDERS,
            lazy("See cases"),
            read_access(Case),
            [StaffRole.SUPPORT, StaffRole.FINANCE],
        ),
        StaffRight(
            Section.ORDERS,
            lazy("Open, answer and close cases, and propose a credit or a replacement"),
            ["cases.answer_case"],
            [StaffRole.SUPPORT],
        ),
        StaffRight(
            Section.ORDERS,
            lazy("Replace the code of a case with another one"),
            ["cases.replace_code"],
            [StaffRole.FINANCE],
        ),
    ],
    menu=[
        MenuEntry(Section.ORDERS, lazy("Cases"), Case, "support_agent", query="state=waits-for-us")
    ],
)
