"""The keys of a client: how its page lists them, and the forms that start them.

No member of staff alone holds a key. A member of the account creates the key that staff start. If
no active member may, a second member of staff asks for the same, and receives it.
"""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from unfold.admin import TabularInline
from unfold.decorators import display
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from accounts.api_access.keys import MAX_OVERLAP_HOURS, AlreadyIssued, issue_key, rotate_key
from accounts.form_fields import FormIdField, WholeNumberField
from accounts.models import ApiClient, ApiKey, KeyState
from core.texts import gettext_noop, lazy
from merchants.api_access.clients import may_take_keys, start_key
from operators.frame.base import Colours, ConfirmAgainForm, page, staff_of, url_of
from operators.sign_in.second_person import ask_or_agree

REVOKE = "accounts.change_apikey"
STATE_COLOURS = Colours(
    {
        lazy(KeyState.LIVE): "success",
        lazy(KeyState.ENDING): "warning",
        lazy(KeyState.EXPIRED): "danger",
        lazy(KeyState.REVOKED): "danger",
    }
)


class KeyInline(TabularInline):
    """The keys of a client. The secret is not stored, and the digest is not loaded."""

    model = ApiKey
    verbose_name_plural = lazy("keys")
    fields = readonly_fields = ("prefix", "state", "created_at", "expires_at", "revoked_at", "end")
    ordering = ("-id",)
    extra = max_num = 0
    per_page = 20
    can_delete = False
    hide_title = True

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiKey]:
        self.may_revoke = staff_of(request).has_perm(REVOKE)
        keys: QuerySet[ApiKey] = super().get_queryset(request)
        return keys.defer("digest")

    @display(description=lazy("state"), label=STATE_COLOURS)
    def state(self, key: ApiKey) -> str:
        return _(key.state)

    @admin.display(description="")
    def end(self, key: ApiKey) -> str:
        if not self.may_revoke or not key.is_live:
            return ""
        url = reverse("admin:accounts_apiclient_revoke_key", args=[key.client_id, key.pk])
        return format_html('<a href="{}" class="text-link">{}</a>', url, _("Revoke…"))


class IssueForm(ConfirmAgainForm):
    form = FormIdField()


class RotateForm(IssueForm):
    overlap_hours = WholeNumberField(
        label=lazy("Overlap hours"),
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        initial=24,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=lazy("How long the other keys keep working. 0 ends them at once."),
    )
    field_order = ["overlap_hours", "note"]


def start_or_issue(
    model_admin: Any, request: HttpRequest, client: ApiClient, form: IssueForm
) -> HttpResponse:
    """Starts a key for the members. Without one who may take it, waits for a second member of
    staff, who then gets the key on the page."""
    actor, options = staff_of(request), dict(form.cleaned_data)
    overlap, note = options.get("overlap_hours"), options["note"]
    if _members_take(client):
        start_key(client=client, overlap_hours=overlap, actor=actor, note=note)
        messages.success(
            request,
            _("Started. The members received an email: an owner or a developer creates the key."),
        )
        return HttpResponseRedirect(url_of(client))
    try:
        with transaction.atomic(durable=True):  # committed before the key is shown
            message, values = _request(overlap)
            if not ask_or_agree(
                # Of this account: a client without live keys can get another one.
                what=f"client {client.pk} of account {client.account_id}: {message % values}",
                about=None,
                actor=actor,
                right="accounts.add_apikey",
                data={
                    "url": request.path,
                    "row": ["client", client.pk],
                    "words": [[message, values]],
                },
            ):
                start_key(client=client, overlap_hours=overlap, actor=actor, note=note)
                key = ""
            elif overlap is None:
                key = issue_key(client=client, actor=actor, note=note, form=options["form"])
            else:
                key = rotate_key(client=client, actor=actor, **options)
    except AlreadyIssued as repeated:
        messages.warning(request, str(repeated))
        return HttpResponseRedirect(url_of(client))
    if not key:
        messages.warning(
            request,
            _("Not created yet. Ask another member of staff to do the same here within a day."),
        )
        return HttpResponseRedirect(url_of(client))
    return page(
        model_admin,
        request,
        "admin/secret.html",
        obj=client,
        title=_("New key of %(client)s") % {"client": client},
        warning=_("This is the only time the key is shown. Send it safely, then leave this page."),
        groups=[{"title": "", "parts": {_("API key"): key}}],
        back=url_of(client),
    )


def explain_key(client: ApiClient) -> list[str]:
    """The receiver of the key."""
    if _members_take(client):
        return [
            _(
                "The members receive an email. An owner or a developer creates the key on the page"
                " of the client, where it is shown once. Staff do not see it."
            )
        ]
    return [
        _(
            "No active owner or developer can take the key. So two members of staff must do the"
            " same within a day, and the second one receives it."
        )
    ]


def _members_take(client: ApiClient) -> bool:
    return client.account is not None and may_take_keys(client.account)


def _request(overlap: int | None) -> tuple[str, dict[str, int]]:
    """The values that two members of staff must ask for alike."""
    if overlap is None:
        return gettext_noop("create a key"), {}
    return gettext_noop("rotate the keys with %(hours)s h overlap"), {"hours": overlap}
