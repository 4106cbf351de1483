"""Lists as files, and the audit entries of downloads."""

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from audit.models import AuditAction
from audit.services import record_action
from core.database.columns import NOTE_LENGTH
from core.table_files import CONTENT_TYPES, write_table
from merchants.people.access import Member
from merchants.views.downloads import send_file

BUSY = "Another large file of this account is being downloaded. Wait until it is complete."


def send_table(
    request: HttpRequest,
    member: Member,
    *,
    name: str,
    format: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    back: str,
    filters: forms.Form | None = None,
    mark: bool = True,
) -> HttpResponseBase:
    """The rows as a file of the account. Leads to the page named `back` while another large file of
    the account is being sent."""
    file = f"{name}.{format}"
    answer = send_file(
        write_table(format, columns, rows, mark=mark),
        to=member.account,
        content_type=CONTENT_TYPES[format],
        name=file,
    )
    if answer is None:
        messages.error(request, BUSY)
        return HttpResponseRedirect(reverse(back))
    record_export(request, member, name=file, filters=filters)
    return answer


def record_export(
    request: HttpRequest, member: Member, *, name: str, filters: forms.Form | None = None
) -> None:
    """Records that the member downloads this file, and the filter of its rows.

    A text to search for is left out: it may be a code or a player id.
    """
    fields = filters.fields if filters else {}
    used = {field: request.GET[field] for field in fields if request.GET.get(field)}
    used.pop("q", None)
    record_action(
        actor=member.user,
        action=AuditAction.EXPORTED,
        on=member.account,
        reference=name,
        note=urlencode(used)[:NOTE_LENGTH],
    )
