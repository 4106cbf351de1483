"""The audit entries of downloads."""

from django.http import HttpRequest

from audit.models import AuditAction
from audit.services import record_action
from core.database.columns import NOTE_LENGTH
from merchants.people.access import Member


def record_export(request: HttpRequest, member: Member, *, name: str) -> None:
    """Records that the member downloads this file, and the filter of its rows."""
    record_action(
        actor=member.user,
        action=AuditAction.EXPORTED,
        on=member.account,
        reference=name,
        note=request.GET.urlencode()[:NOTE_LENGTH],
    )
