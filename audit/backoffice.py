"""The declarations of `audit` for the back office (core/backoffice/)."""

from audit.models import AuditEntry
from core.backoffice.declarations import (
    BackOffice,
    Expiring,
    MenuEntry,
    Rights,
    Section,
    StaffRight,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.texts import lazy

BACK_OFFICE = BackOffice(
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
            old="created_at < %(before)s AND action IN ('code_revealed', 'second_factor_refused',"
            " 'sign_in_refused', 'signed_in', 'signed_out', 'telegram_refused')",
            days="read_audit",
        ),
    ],
    rights={
        "audit_auditentry": Rights.APPEND_AND_EXPIRE,
    },
    menu=[MenuEntry(Section.SYSTEM, lazy("Audit trail"), AuditEntry, "policy", page="audit_trail")],
)
