"""The declarations of `idempotency` for the back office (core/backoffice/)."""

from django.conf import settings
from django.utils.translation import gettext_noop

from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Component,
    Gauges,
    MenuEntry,
    Personal,
    Rights,
    Sealed,
    Section,
    Severity,
    StaffRight,
    Unit,
    Whose,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context
from core.texts import lazy
from idempotency.models import BLOCKED, IdempotencyRecord
from idempotency.services import open_response, response_row

GAUGES = [
    Gauges(
        {
            "voucher_keys_in_progress": "Keys in progress whose attempt may still run.",
            "voucher_keys_abandoned": "Keys whose purchase was made but whose response was lost.",
            "voucher_keys_unfinished": "Keys whose purchase ended without a result; a retry buys.",
        },
        # An index of unfinished records would cost each purchase two more index entries, so this
        # looks at the newest records of the last day, which are kept that long.
        """
        SELECT count(*) FILTER (WHERE runs),
               count(*) FILTER (WHERE NOT runs AND order_reference IS NOT NULL
                                  AND started_at <> %(blocked)s),
               count(*) FILTER (WHERE NOT runs AND order_reference IS NULL)
          FROM (SELECT started_at > now() - make_interval(secs => %(window)s) AS runs,
                       started_at, order_reference, response IS NULL AS open
                  FROM idempotency_idempotencyrecord
                 WHERE created_at > now() - interval '1 day'
                 ORDER BY created_at DESC LIMIT 10000) AS newest
         WHERE open
        """,
        lambda: {"window": settings.IDEMPOTENCY_IN_PROGRESS_SECONDS, "blocked": BLOCKED},
        seconds=15,
    )
]
COMPONENTS = [
    Component(
        title=lazy("Purchases whose response was lost"),
        gauge="voucher_keys_abandoned",
        unit=Unit.COUNT,
        amber=0,
        red=10,
        advice=lazy(
            "The merchants get request_abandoned with the order when they retry. Find out why"
            " web processes ended, or why responses were not stored."
        ),
        alert=Alert(
            "VoucherKeysAbandoned",
            Severity.WARNING,
            "5m",
            "{{ $value }} purchases were made but their responses were lost.",
        ),
        model=IdempotencyRecord,
    )
]

BACK_OFFICE = BackOffice(
    staff_rights=[
        StaffRight(
            Section.ORDERS,
            lazy("See idempotency records"),
            read_access(IdempotencyRecord),
            [StaffRole.SUPPORT],
        ),
    ],
    gauges=GAUGES,
    components=COMPONENTS,
    counted={"idempotency_records": "idempotency_idempotencyrecord"},
    sealed=[
        Sealed(
            kind="replays",
            table="idempotency_idempotencyrecord",
            column="response",
            context=Context.REPLAY_BODY,
            identity=["client_id", "key"],
            row=response_row,
            check=gettext_noop("every stored replay opens"),
            read=open_response,
        )
    ],
    personal=[
        Personal(
            "idempotency_idempotencyrecord",
            Whose.PLAYERS,
            "repeats the response of a purchase, sealed",
            withheld=["response"],
            kept="everything: the contract promises the same response for seven days",
        ),
    ],
    rights={
        "idempotency_idempotencyrecord": Rights.CHANGE,
    },
    menu=[MenuEntry(Section.RECORDS, lazy("Idempotency records"), IdempotencyRecord, "repeat_one")],
)
