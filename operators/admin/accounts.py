"""Merchants: their accounts, API clients and keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html
from unfold.admin import TabularInline
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action, display
from unfold.enums import ActionVariant
from unfold.widgets import (
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminTextareaWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.form_fields import FormIdField, NetworksField, posted
from accounts.keys import MAX_OVERLAP_HOURS, AlreadyIssued, issue_key, revoke_key, rotate_key
from accounts.models import Account, ApiClient, ApiClientQuerySet, ApiKey, KeyState
from audit.models import AuditAction
from operators.admin.base import (
    ConfirmForm,
    KeptAdmin,
    amount,
    link_to_list,
    page,
    staff_of,
    url_of,
)
from operators.admin.timeline import TimelinePage
from orders.models import Order
from wallets.models import LedgerEntry
from wallets.services import open_wallet

ISSUE = "accounts.add_apikey"
REVOKE = "accounts.change_apikey"
STATE_COLOURS = {
    KeyState.LIVE: "success",
    KeyState.ENDING: "warning",
    KeyState.EXPIRED: "danger",
    KeyState.REVOKED: "danger",
}


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]
    open_wallet = forms.BooleanField(
        required=False,
        initial=True,
        label="Open a wallet",
        widget=UnfoldBooleanSwitchWidget,
        help_text="An account without a wallet cannot buy. A new wallet is empty.",
    )

    class Meta:
        model = Account
        fields = ["name", "currency", "enabled"]


@admin.register(Account)
class AccountAdmin(TimelinePage, KeptAdmin):
    added_action = AuditAction.ACCOUNT_CREATED
    changed_action = AuditAction.ACCOUNT_CHANGED
    form = AccountForm
    list_display = ("name", "id", "currency", "balance", "clients", "enabled", "created_at")
    list_filter = ("enabled", "currency")
    search_fields = ("name",)
    ordering = ("name",)
    readonly_fields = ("balance", "clients", "movements", "created_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Account]:
        accounts: QuerySet[Account] = super().get_queryset(request)
        return accounts.select_related("wallet").annotate(client_count=Count("clients"))

    def get_readonly_fields(
        self, request: HttpRequest, obj: Account | None = None
    ) -> tuple[str, ...]:
        # The wallet's balance is in this currency. The database refuses a change.
        return (*self.readonly_fields, "currency") if obj else self.readonly_fields

    def get_fieldsets(self, request: HttpRequest, obj: Account | None = None) -> Any:
        main = ["name", "currency", "enabled"]
        if _may_open_wallet(request, obj):
            main.append("open_wallet")
        if obj is None:
            return [(None, {"fields": main})]
        facts = ["balance", "movements", "clients", "created_at"]
        return [(None, {"fields": main}), ("Related", {"fields": facts})]

    def save_model(self, request: HttpRequest, obj: Account, form: Any, change: Any) -> None:
        super().save_model(request, obj, form, change)
        if form.cleaned_data.get("open_wallet") and _may_open_wallet(request, obj):
            open_wallet(account=obj)

    @admin.display(description="balance")
    def balance(self, account: Account) -> str:
        wallet = getattr(account, "wallet", None)
        return amount(wallet.balance, account.currency) if wallet else "no wallet"

    @admin.display(description="clients")
    def clients(self, account: Account) -> str:
        count = getattr(account, "client_count", 0)
        return link_to_list(ApiClient, f"{count} clients", account__id__exact=account.pk)

    @admin.display(description="ledger")
    def movements(self, account: Account) -> str:
        return link_to_list(LedgerEntry, "Ledger entries", wallet__account__exact=account.pk)


def _may_open_wallet(request: HttpRequest, account: Account | None) -> bool:
    return not hasattr(account, "wallet") and staff_of(request).has_perm("wallets.add_wallet")


class KeyInline(TabularInline):
    """The keys of a client. The secret is not stored, and the digest is not loaded."""

    model = ApiKey
    verbose_name_plural = "keys"
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

    @display(description="state", label=STATE_COLOURS)
    def state(self, key: ApiKey) -> str:
        return key.state

    @admin.display(description="")
    def end(self, key: ApiKey) -> str:
        if not self.may_revoke or not key.is_live:
            return ""
        url = reverse("admin:accounts_apiclient_revoke_key", args=[key.client_id, key.pk])
        return format_html('<a href="{}" class="text-link">Revoke…</a>', url)


class ClientForm(forms.ModelForm):  # type: ignore[type-arg]
    allowed_networks = NetworksField(
        label="Allowed networks", widget=UnfoldAdminTextareaWidget(attrs={"rows": 4})
    )

    class Meta:
        model = ApiClient
        fields = ["name", "account", "enabled", "rate_limit_per_minute", "allowed_networks"]


class IssueForm(ConfirmForm):
    form = FormIdField()


class RotateForm(IssueForm):
    overlap_hours = forms.IntegerField(
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        initial=24,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="How long the other keys keep working. 0 ends them at once.",
    )
    field_order = ["overlap_hours", "note"]


@admin.register(ApiClient)
class ApiClientAdmin(TimelinePage, KeptAdmin):
    added_action = AuditAction.CLIENT_CREATED
    changed_action = AuditAction.CLIENT_CHANGED
    form = ClientForm
    inlines = (KeyInline,)
    list_display = ("name", "id", "account", "enabled", "live", "limit", "networks", "created_at")
    list_filter = ("enabled", ("account", AutocompleteSelectFilter))
    list_select_related = ("account",)
    search_fields = ("name", "account__name", "keys__prefix")
    search_help_text = "Name of the client or the account, or the prefix of a key"
    ordering = ("name",)
    autocomplete_fields = ("account",)
    readonly_fields = ("created_at", "purchases")
    fieldsets = (
        (None, {"fields": ("name", "account", "enabled")}),
        ("Limits", {"fields": ("rate_limit_per_minute", "allowed_networks")}),
        ("Related", {"fields": ("purchases", "created_at")}),
    )
    actions_detail = ("issue", "rotate")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiClient]:
        clients: ApiClientQuerySet = super().get_queryset(request)
        return clients.with_live_keys()

    def get_readonly_fields(
        self, request: HttpRequest, obj: ApiClient | None = None
    ) -> tuple[str, ...]:
        # Once set, the account that pays cannot change under a running program.
        fixed = ("account",) if obj and obj.account_id else ()
        return (*self.readonly_fields, *fixed)

    def get_fieldsets(self, request: HttpRequest, obj: ApiClient | None = None) -> Any:
        return self.fieldsets if obj else self.fieldsets[:2]

    @admin.display(description="live keys", ordering="live_keys")
    def live(self, client: ApiClient) -> int:
        return int(getattr(client, "live_keys", 0))

    @admin.display(description="requests / min", ordering="rate_limit_per_minute")
    def limit(self, client: ApiClient) -> str:
        return f"{client.rate_limit_per_minute:,}"

    @admin.display(description="from")
    def networks(self, client: ApiClient) -> str:
        first, *others = client.allowed_networks or ["anywhere"]
        return f"{first} and {len(others)} more" if others else first

    @admin.display(description="orders")
    def purchases(self, client: ApiClient) -> str:
        return link_to_list(Order, "Orders of this client", client__id__exact=client.pk)

    def has_issue_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(ISSUE)

    def has_revoke_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(REVOKE)

    def get_urls(self) -> list[Any]:
        revoke = path(
            "<int:client_id>/keys/<int:key_id>/revoke/",
            self.admin_site.admin_view(self.revoke),
            name="accounts_apiclient_revoke_key",
        )
        return [revoke, *super().get_urls()]

    @action(description="Issue key", icon="add", permissions=["issue"], url_path="issue-key")
    def issue(self, request: HttpRequest, object_id: str) -> HttpResponse:
        client = self._client(request, object_id)
        form = IssueForm(posted(request))
        if form.is_valid():
            return self._issue(request, client, issue_key, **form.cleaned_data)
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=client,
            title="Issue a key",
            form=form,
            question=f"Issue a new key for {client}? It is shown once, on the next page.",
            facts=[f"Keys that work now and keep working: {client.keys.live().count()}."],
            button="Issue key",
            back=url_of(client),
        )

    @action(
        description="Rotate keys",
        icon="autorenew",
        permissions=["issue", "revoke"],
        url_path="rotate-key",
        variant=ActionVariant.WARNING,
    )
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        client = self._client(request, object_id)
        form = RotateForm(posted(request))
        if form.is_valid():
            return self._issue(request, client, rotate_key, **form.cleaned_data)
        prefixes = ", ".join(client.keys.live().order_by("id").values_list("prefix", flat=True))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=client,
            title="Rotate keys",
            form=form,
            question=f"Issue a new key for {client} and end its other keys?",
            facts=[f"These keys end after the overlap: {prefixes or 'none is live'}."],
            button="Rotate keys",
            back=url_of(client),
        )

    def revoke(self, request: HttpRequest, client_id: int, key_id: int) -> HttpResponse:
        client = self._client(request, str(client_id))
        if not self.has_revoke_permission(request):
            raise PermissionDenied
        key = client.keys.filter(pk=key_id).first()
        if key is None:
            raise Http404
        form = ConfirmForm(posted(request))
        if form.is_valid():
            note = form.cleaned_data["note"]
            if revoke_key(key=key, actor=staff_of(request), note=note):
                messages.success(request, f"Key {key.prefix} is revoked.")
            else:
                messages.warning(request, f"Key {key.prefix} was already revoked.")
            return HttpResponseRedirect(url_of(client))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=client,
            title="Revoke a key",
            form=form,
            question=f"Revoke key {key.prefix} of {client}? It stops working at once.",
            facts=[f"Created {key.created_at:%Y-%m-%d %H:%M} UTC, {key.state}."],
            button="Revoke key",
            danger=True,
            back=url_of(client),
        )

    def _client(self, request: HttpRequest, object_id: str) -> ApiClient:
        client = self.get_object(request, unquote(object_id))
        if not isinstance(client, ApiClient):
            raise Http404
        if not self.has_view_permission(request, client):
            raise PermissionDenied
        return client

    def _issue(
        self, request: HttpRequest, client: ApiClient, service: Callable[..., str], **asked: Any
    ) -> HttpResponse:
        """Calls `issue_key` or `rotate_key`, and shows the key once."""
        try:
            with transaction.atomic(durable=True):  # committed before anybody sees the key
                key = service(client=client, actor=staff_of(request), **asked)
        except AlreadyIssued as repeated:
            messages.warning(request, str(repeated))
            return HttpResponseRedirect(url_of(client))
        return page(
            self,
            request,
            "admin/secret.html",
            obj=client,
            title=f"New key of {client}",
            warning="This is the only time the key is shown. Send it safely, then leave this page.",
            groups=[{"title": "", "parts": {"API key": key}}],
            back=url_of(client),
        )
