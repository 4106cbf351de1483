"""The keys of a client: how its page lists them, and the forms that issue them."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext as _
from unfold.admin import TabularInline
from unfold.decorators import display
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from accounts.api_access.keys import MAX_OVERLAP_HOURS
from accounts.form_fields import FormIdField
from accounts.models import ApiKey, KeyState
from core.texts import lazy
from operators.frame.base import Colours, ConfirmAgainForm, staff_of

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
    overlap_hours = forms.IntegerField(
        label=lazy("Overlap hours"),
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        initial=24,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=lazy("How long the other keys keep working. 0 ends them at once."),
    )
    field_order = ["overlap_hours", "note"]
