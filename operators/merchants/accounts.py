"""Merchants: their accounts, API clients and keys."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import action
from unfold.enums import ActionVariant
from unfold.widgets import (
    UnfoldAdminTextareaWidget,
    UnfoldBooleanSwitchWidget,
)

from accounts.api_access.keys import revoke_key
from accounts.form_fields import NetworksField, posted
from accounts.models import Account, ApiClient, ApiKey, RequestRecord
from accounts.services import change_account, change_client, report_client_change
from audit.models import AuditAction
from core.formats import local_number
from core.texts import lazy
from merchants.people.company import PROPOSES
from operators.catalogue.price_lists import choose_list
from operators.frame.base import (
    CURRENCY_HELP,
    EMPTY,
    ConditionFilter,
    ConfirmForm,
    KeptAdmin,
    amount,
    link_to_list,
    page,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.reader import may_view
from operators.history.timeline import TimelinePage
from operators.imports.low_prices import ASSIGN
from operators.merchants.account_hub import show_hub, show_prices
from operators.merchants.client_keys import (
    REVOKE,
    IssueForm,
    KeyInline,
    RotateForm,
    explain_key,
    start_or_issue,
)
from operators.merchants.companies import decide_company, edit_company
from operators.merchants.switching import SwitchPage
from operators.money.booking import MOVE_MONEY, book
from operators.sign_in.asked_changes import show_waiting_changes
from orders.account_orders import count_open_topups
from orders.models import Order
from wallets.models import Wallet
from wallets.services import open_wallet

ISSUE = "accounts.add_apikey"


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]
    open_wallet = forms.BooleanField(
        required=False,
        initial=True,
        label=lazy("Open a wallet"),
        widget=UnfoldBooleanSwitchWidget,
        help_text=lazy("An account without a wallet cannot buy. A new wallet is empty."),
    )

    class Meta:
        model = Account
        fields = ["name", "currency", "enabled"]
        help_texts = {
            "enabled": lazy(
                "If off, the API refuses its clients. Its people can still sign in and read."
            )
        }


class CompanyFilter(ConditionFilter):
    title = lazy("company data")
    parameter_name = "company"
    conditions = {
        "proposes": PROPOSES,
        "missing": Q(company=None),
    }
    names = {"proposes": lazy("Change proposed"), "missing": lazy("Not entered")}


@admin.register(Account)
class AccountAdmin(SwitchPage, TimelinePage, KeptAdmin):
    added_action = AuditAction.ACCOUNT_CREATED
    changed_action = AuditAction.ACCOUNT_CHANGED
    form = AccountForm
    list_display = ("name", "currency", "balance", "clients", "enabled", "created_at")
    list_filter = ("enabled", "currency", CompanyFilter)
    search_fields = ("name",)
    search_help_text = lazy("Name of the account")
    opens_new_rows = True
    help_texts = {"currency": CURRENCY_HELP}
    ordering = ("name",)
    readonly_fields = ("created_at",)
    change_form_outer_before_template = "admin/account_hub.html"
    actions_detail = ("book", "choose_list", "company", *SwitchPage.actions_detail)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Account]:
        accounts: QuerySet[Account] = super().get_queryset(request)
        return accounts.select_related("wallet").prefetch_related("clients")

    def get_readonly_fields(
        self, request: HttpRequest, obj: Account | None = None
    ) -> tuple[str, ...]:
        fields = super().get_readonly_fields(request, obj)
        # The wallet's balance is in this currency: the database refuses a change.
        return (*fields, "currency") if obj else fields

    def get_fieldsets(self, request: HttpRequest, obj: Account | None = None) -> Any:
        main = ["name", "currency", "enabled"]
        if _may_open_wallet(request, obj):
            main.append("open_wallet")
        if obj is None:
            return [(None, {"fields": main})]
        return [(_("Account"), {"fields": [*main, "created_at"]})]

    def get_urls(self) -> list[Any]:
        pages = [
            path(
                f"<int:account_id>/{address}/",
                self.admin_site.admin_view(view),
                name=f"accounts_account_{name}",
            )
            for address, view, name in (
                ("prices", self.prices, "prices"),
                ("proposal", self.decide_company, "decide_company"),
            )
        ]
        return [*pages, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        account = self.get_object(request, unquote(object_id))
        hub = show_hub(request, account) if isinstance(account, Account) else None
        context = {"hub": hub, **(extra_context or {})}
        answer: HttpResponse = super().change_view(request, object_id, form_url, context)
        return answer

    def has_book_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(MOVE_MONEY)

    @action(description=lazy("Book money…"), icon="payments", permissions=["book"], url_path="book")
    def book(self, request: HttpRequest, object_id: str) -> HttpResponse:
        wallet = Wallet.objects.filter(pk=self._account(request, object_id).pk).first()
        if wallet is None:
            raise Http404
        return book(self, request, wallet, about=wallet.account)

    def has_list_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        return staff_of(request).has_perm(ASSIGN)

    @action(
        description=lazy("Choose a price list…"),
        icon="payments",
        permissions=["list"],
        url_path="price-list",
    )
    def choose_list(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return choose_list(self, request, self._account(request, object_id))

    @action(
        description=lazy("Company data…"),
        icon="storefront",
        permissions=["change"],
        url_path="company",
    )
    def company(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return edit_company(self, request, self._account(request, object_id))

    def decide_company(self, request: HttpRequest, account_id: int) -> HttpResponse:
        """Decides on the company data that the merchant proposes."""
        account = self._account(request, str(account_id))
        if not self.has_change_permission(request, account):
            raise PermissionDenied
        return decide_company(self, request, account)

    def get_actions_detail(self, request: HttpRequest, object_id: Any) -> list[Any]:
        """Leaves out `book` without a wallet."""
        account = self.get_object(request, unquote(str(object_id)))
        actions = super().get_actions_detail(request, object_id)
        if hasattr(account, "wallet"):
            return actions
        return [one for one in actions if one.method.original_function_name != "book"]

    def switch(self, obj: Account, *, on: bool, request: HttpRequest, reason: str) -> None:
        change_account(account_id=obj.pk, enabled=on, actor=staff_of(request), note=reason)

    def effects_of_switch(self, obj: Account, *, on: bool) -> list[str]:
        clients = obj.clients.filter(enabled=True).count()
        if on:
            return [_("Clients that work again at once: %(clients)s.") % {"clients": clients}]
        return [
            _("Clients that stop at once: %(clients)s. Their requests get client_disabled.")
            % {"clients": clients},
            _(
                "Open top-ups: %(number)s. They stay on the desk, and are delivered or"
                " refunded as usual."
            )
            % {"number": count_open_topups(obj)},
            _("Members can still sign in and read."),
        ]

    def prices(self, request: HttpRequest, account_id: int) -> HttpResponse:
        """Shows the prices of the account."""
        return show_prices(request, self._account(request, str(account_id)))

    def _account(self, request: HttpRequest, object_id: str) -> Account:
        account = self.get_object(request, unquote(object_id))
        if not isinstance(account, Account):
            raise Http404
        return account

    def save_model(self, request: HttpRequest, obj: Account, form: Any, change: Any) -> None:
        super().save_model(request, obj, form, change)
        if form.cleaned_data.get("open_wallet") and _may_open_wallet(request, obj):
            open_wallet(account=obj)

    @admin.display(description=lazy("balance"))
    def balance(self, account: Account) -> str:
        wallet = getattr(account, "wallet", None)
        return amount(wallet.balance, account.currency) if wallet else _("no wallet")

    @admin.display(description=lazy("clients"))
    def clients(self, account: Account) -> str:
        count = len(account.clients.all())
        words = ngettext("%(number)s client", "%(number)s clients", count) % {"number": count}
        return link_to_list(ApiClient, words, account__id__exact=account.pk)


def _may_open_wallet(request: HttpRequest, account: Account | None) -> bool:
    return not hasattr(account, "wallet") and staff_of(request).has_perm("wallets.add_wallet")


class ClientForm(forms.ModelForm):  # type: ignore[type-arg]
    allowed_networks = NetworksField(
        label=lazy("Allowed networks"), widget=UnfoldAdminTextareaWidget(attrs={"rows": 4})
    )

    class Meta:
        model = ApiClient
        fields = ["name", "account", "enabled", "rate_limit_per_minute", "allowed_networks"]
        help_texts = {
            "account": lazy("A client without an account reads the catalogue and cannot buy."),
            "enabled": lazy("If off, the API refuses all its requests."),
        }
        labels = {"rate_limit_per_minute": lazy("Requests per minute")}

    def clean_account(self) -> Account | None:
        """The account that pays. Whoever holds a key from before would spend its money."""
        account: Account | None = self.cleaned_data["account"]
        if account and self.instance.pk and self.instance.keys.live().exists():
            raise ValidationError(_("This client has keys that work. Revoke them first."))
        return account


@admin.register(ApiClient)
class ApiClientAdmin(SwitchPage, TimelinePage, KeptAdmin):
    added_action = AuditAction.CLIENT_CREATED
    changed_action = AuditAction.CLIENT_CHANGED
    form = ClientForm
    inlines = (KeyInline,)
    list_display = ("name", "account", "enabled", "live", "limit", "networks", "created_at")
    list_filter = ("enabled", ("account", AutocompleteSelectFilter))
    list_select_related = ("account",)
    search_fields = ("name", "account__name", "keys__prefix")
    search_help_text = lazy("Client, account or key prefix")
    opens_new_rows = True
    ordering = ("name",)
    autocomplete_fields = ("account",)
    readonly_fields = ("id", "created_at", "purchases", "requests")
    fieldsets = (
        (None, {"fields": ("name", "account", "enabled")}),
        (lazy("Limits"), {"fields": ("rate_limit_per_minute", "allowed_networks")}),
        (lazy("Record"), {"fields": ("id", "created_at", "purchases")}),
        (lazy("Requests"), {"fields": ("requests",)}),
    )
    actions_detail = ("issue", "rotate", *SwitchPage.actions_detail)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ApiClient]:
        live = Prefetch("keys", ApiKey.objects.live(), to_attr="live_keys")
        clients: QuerySet[ApiClient] = super().get_queryset(request)
        return clients.prefetch_related(live)

    def search(
        self, queryset: QuerySet[ApiClient], term: str, request: HttpRequest
    ) -> tuple[QuerySet[ApiClient], bool]:
        """Looks through the names once; joined with the keys, it would read all of these, too."""
        if not term:
            return queryset, False
        accounts = Account.objects.filter(name__icontains=term).values("pk")
        keys = ApiKey.objects.filter(prefix__startswith=term.lower())
        named = Q(name__icontains=term) | Q(account__in=accounts)
        return queryset.filter(named | Q(pk__in=keys.values("client"))), False

    def get_readonly_fields(
        self, request: HttpRequest, obj: ApiClient | None = None
    ) -> tuple[str, ...]:
        # Once set, the account that pays cannot change under a running program.
        fixed = ("account",) if obj and obj.account_id else ()
        return (*super().get_readonly_fields(request, obj), *fixed)

    def get_fieldsets(self, request: HttpRequest, obj: ApiClient | None = None) -> Any:
        if obj is None:
            return self.fieldsets[:2]
        return self.fieldsets if may_view(request, RequestRecord) else self.fieldsets[:3]

    def get_inlines(self, request: HttpRequest, obj: ApiClient | None) -> Any:
        return self.inlines if obj else ()  # a new client has no keys yet

    def switch(self, obj: ApiClient, *, on: bool, request: HttpRequest, reason: str) -> None:
        change_client(client_id=obj.pk, enabled=on, actor=staff_of(request), note=reason)

    def effects_of_switch(self, obj: ApiClient, *, on: bool) -> list[str]:
        keys = obj.keys.live().count()
        if on:
            return [_("Keys that work again at once: %(keys)s.") % {"keys": keys}]
        return [
            _("Keys that stop working at once: %(keys)s. Requests with them get client_disabled.")
            % {"keys": keys},
            _("Open top-ups stay on the desk, and are delivered or refunded as usual."),
            _("Other clients of the account go on."),
        ]

    def save_model(self, request: HttpRequest, obj: ApiClient, form: Any, change: Any) -> None:
        super().save_model(request, obj, form, change)
        if change:
            report_client_change(obj, form.changed_data, actor=staff_of(request))

    @admin.display(description=lazy("live keys"))
    def live(self, client: ApiClient) -> int:
        return len(client.live_keys)  # type: ignore[attr-defined]  # prefetched

    @admin.display(description=lazy("limit per minute"), ordering="rate_limit_per_minute")
    def limit(self, client: ApiClient) -> str:
        return local_number(client.rate_limit_per_minute)

    @admin.display(description=lazy("allowed networks"))
    def networks(self, client: ApiClient) -> str:
        first, *others = client.allowed_networks or [_("anywhere")]
        return (
            _("%(network)s and %(number)s more") % {"network": first, "number": len(others)}
            if others
            else first
        )

    @admin.display(description=lazy("orders"))
    def purchases(self, client: ApiClient) -> str:
        return link_to_list(Order, _("Orders of this client"), client__id__exact=client.pk)

    @admin.display(description=lazy("requests"))
    def requests(self, client: ApiClient) -> str:
        if client.account is None:
            return EMPTY
        name, account = _("Requests of its account"), client.account_id
        return link_to_list(RequestRecord, name, account__id__exact=account)

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

    @action(
        description=lazy("Create an API key…"),
        icon="add",
        permissions=["issue"],
        url_path="issue-key",
    )
    def issue(self, request: HttpRequest, object_id: str) -> HttpResponse:
        client = self._client(request, object_id)
        show_waiting_changes(request)
        form = IssueForm(request)
        if form.is_valid():
            return start_or_issue(self, request, client, form)
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=client,
            title=_("Create an API key"),
            form=form,
            question=_("Create an API key for %(client)s?") % {"client": client},
            facts=[
                _("Keys that work now and keep working: %(number)s.")
                % {"number": client.keys.live().count()},
                *explain_key(client),
            ],
            button=_("Create an API key"),
            back=url_of(client),
        )

    @action(
        description=lazy("Rotate keys…"),
        icon="autorenew",
        permissions=["issue", "revoke"],
        url_path="rotate-key",
        variant=ActionVariant.WARNING,
    )
    def rotate(self, request: HttpRequest, object_id: str) -> HttpResponse:
        client = self._client(request, object_id)
        show_waiting_changes(request)
        form = RotateForm(request)
        if form.is_valid():
            return start_or_issue(self, request, client, form)
        prefixes = ", ".join(client.keys.live().order_by("id").values_list("prefix", flat=True))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=client,
            title=_("Rotate keys"),
            form=form,
            question=_("Create an API key for %(client)s and end its other keys?")
            % {"client": client},
            facts=[
                _("These keys end after the overlap: %(keys)s.")
                % {"keys": prefixes or _("none is live")},
                *explain_key(client),
            ],
            button=_("Rotate keys"),
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
                messages.success(request, _("Key %(prefix)s is revoked.") % {"prefix": key.prefix})
            else:
                messages.warning(
                    request, _("Key %(prefix)s was already revoked.") % {"prefix": key.prefix}
                )
            return HttpResponseRedirect(url_of(client))
        return page(
            self,
            request,
            "admin/confirm.html",
            obj=client,
            title=_("Revoke a key"),
            form=form,
            question=_("Revoke key %(prefix)s of %(client)s? It stops working at once.")
            % {"prefix": key.prefix, "client": client},
            facts=[
                _("Created %(time)s, %(state)s.")
                % {"time": time_cell(key.created_at), "state": _(key.state)}
            ],
            button=_("Revoke key"),
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
