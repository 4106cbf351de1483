"""The declarations of `audit` for the back office (core/backoffice/)."""

from audit.models import EXPIRING_ACTIONS, REQUESTS, AuditEntry
from core.backoffice.declarations import (
    BackOffice,
    Expiring,
    MenuEntry,
    Personal,
    Rights,
    Section,
    StaffRight,
    Watch,
    Whose,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.texts import gettext_noop, lazy

WATCHES = [
    Watch(
        "revealed_codes",
        lazy("Revealed codes"),
        """
        SELECT entry.actor_id,
               format('%%s revealed %%s codes within an hour', username, count(*)), NULL
          FROM audit_auditentry AS entry
          JOIN auth_user AS person ON person.id = entry.actor_id
         WHERE action = 'code_revealed' AND entry.created_at > now() - interval '1 hour'
         GROUP BY entry.actor_id, username
        HAVING count(*) >= %(limit)s
        """,
        limit=10,
        unit=lazy("codes of one person in an hour"),
        advice=lazy("Ask the person why. At 20 codes an hour, no more are shown to them."),
        model=AuditEntry,
        sentences=[gettext_noop("%(person)s revealed %(codes)s codes within an hour")],
    ),
]

BACK_OFFICE = BackOffice(
    watches=WATCHES,
    staff_rights=[
        StaffRight(
            Section.SYSTEM,
            lazy("Download the lists that they see as files"),
            ["audit.export_lists"],
            [
                StaffRole.ADMINISTRATOR,
                StaffRole.MERCHANT_MANAGER,
                StaffRole.STOCK_KEEPER,
                StaffRole.FINANCE,
                StaffRole.AUDITOR,
            ],
        ),
        StaffRight(
            Section.SYSTEM,
            lazy("Read the audit trail"),
            read_access(AuditEntry),
            [StaffRole.ADMINISTRATOR],
        ),
    ],
    triggers=["audit_entry_has_its_time", "audit_entry_is_append_only", "audit_entry_is_kept"],
    expiring=[
        # Revealed codes and sign-ins. The trigger refuses every other entry.
        Expiring(
            kind="read_audit_entries",
            table="audit_auditentry",
            old=f"created_at < %(before)s AND action IN {EXPIRING_ACTIONS}",
            days="read_audit",
        ),
    ],
    personal=[
        Personal(
            "audit_auditentry",
            Whose.BOTH,
            "who did what, and from where",
            columns=["address"],
            withheld=["actor_name", "reference", "note", "changes"],
            context=["created_at", "action", "object_type", "object_id"],
            find="actor_id = ANY(%(users)s)"
            " OR object_type = 'auth.user' AND object_id = ANY(%(users)s::text[])"
            " OR reference = ANY(%(emails)s) AND reference <> ''",
            kept="everything: the database refuses changes, and copies of the trail lie in a store"
            " that cannot be rewritten",
        ),
    ],
    rights={
        "audit_auditentry": Rights.APPEND_AND_EXPIRE,
    },
    # A request names all prices that it is about, and costs.
    seen_with=dict.fromkeys(REQUESTS, AuditEntry),
    menu=[MenuEntry(Section.SYSTEM, lazy("Audit trail"), AuditEntry, "policy", page="audit_trail")],
)
