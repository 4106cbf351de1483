"""What `audit` declares for the back office (config/backoffice.py)."""

from audit.models import AuditEntry
from config.backoffice import BackOffice, MenuEntry, Section

BACK_OFFICE = BackOffice(
    triggers=["audit_entry_is_append_only"],
    menu=[MenuEntry(Section.SYSTEM, "Audit trail", AuditEntry, "policy")],
)
