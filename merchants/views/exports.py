"""The audit entries of downloads."""

from urllib.parse import urlencode

from django import forms
from django.http import HttpRequest

from audit.models import AuditAction
from audit.services import record_action
from core.database.columns import NOTE_LENGTH
from merchants.people.access import Member


def record_export(request: HttpRequest, member: Member, *, name: str, filters: forms.Form) -> None:
    """Records that the member downloads this file, and the filter of its rows.

    A text to search for is left out: it may be a code or a player id.
    """
    used = {field: request.GET[field] for field in filters.fields if request.GET.get(field)}
    used.pop("q", None)
    record_action(
        actor=member.user,
        action=AuditAction.EXPORTED,
        on=member.account,
        reference=name,
        note=urlencode(used)[:NOTE_LENGTH],
    )
