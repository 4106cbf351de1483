"""API access: clients, keys, and the allowlist. Keys for the account's books."""

from datetime import datetime

from django.contrib import messages
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_safe

from accounts.addresses import Address, client_address, is_within
from accounts.form_fields import posted
from accounts.models import ApiClient, ApiKey
from core.files.table_files import Word
from core.inputs import InputProblem
from core.texts import gettext_noop
from merchants.api_access import clients
from merchants.api_access.spending_limits import change_spending_limits
from merchants.frame.exports import send_table
from merchants.frame.forms import (
    AllowlistForm,
    IssueForm,
    NameForm,
    RotateForm,
    SpendingLimitForm,
)
from merchants.frame.pages import confirm, show
from merchants.models import Role
from merchants.money.book_keys import issue_book_key, revoke_book_key
from merchants.people.access import Member, member_page
from orders.spending_limits import Limits, spending_of

ENDED_KEYS_SHOWN = 20
# Prefix lengths that make an allowlist almost useless.
HUGE_NETWORKS = ("/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7")


@require_safe
@member_page(protects=True)
def client_list(request: HttpRequest, member: Member) -> HttpResponse:
    """All clients of the account, each with its live keys."""
    live = Prefetch("keys", ApiKey.objects.live().defer("digest").order_by("-pk"), "usable_keys")
    rows = [
        {"client": client, "today": clients.requests_today(client)}
        for client in clients.clients_of(member.account).prefetch_related(live)
    ]
    book_keys = member.account.book_keys.filter(revoked_at=None).defer("digest").order_by("-pk")
    return show(
        request,
        member,
        "merchants/clients.html",
        title=_("API access"),
        rows=rows,
        book_keys=clients.with_makers(book_keys),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
@member_page(Role.OWNER)
def issue_books(request: HttpRequest, member: Member) -> HttpResponse:
    """Issues a key for books and shows it once."""
    form = IssueForm(request)
    back = reverse("merchants:clients")
    if form.is_valid():
        try:
            key = issue_book_key(account=member.account, actor=member.user, **form.cleaned_data)
        except InputProblem as problem:
            messages.error(request, str(problem))
            return HttpResponseRedirect(back)
        return show(
            request, member, "merchants/secret.html", title=_("New key for books"),
            whose=_("your books"), key=key, back=back,
        )  # fmt: skip
    return confirm(
        request,
        member,
        title=_("Create a key for books"),
        question=_("Let a program download your books?"),
        facts=[
            _(
                "The program reads statements, announced transfers, all orders without codes, and"
                " the prices. It can buy nothing and change nothing."
            ),
            _("The key is shown once, on the next page. Have a safe place for it ready."),
        ],
        form=form,
        button=_("Create the key"),
        back=back,
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER, protects=True)
def revoke_books(request: HttpRequest, member: Member, book_key_id: int) -> HttpResponse:
    """Ends a key for books at once."""
    key = get_object_or_404(member.account.book_keys.defer("digest"), pk=book_key_id)
    back = reverse("merchants:clients")
    if request.method == "POST":
        if revoke_book_key(key=key, actor=member.user):
            messages.success(request, _("Key %(key)s is revoked.") % {"key": key})
        else:
            messages.warning(request, _("Key %(key)s was already revoked.") % {"key": key})
        return HttpResponseRedirect(back)
    return confirm(
        request,
        member,
        title=_("Revoke a key for books"),
        question=_("Revoke key %(key)s?") % {"key": key},
        facts=[_("The key stops working at once and cannot be restored.")],
        button=_("Revoke key"),
        danger=True,
        back=back,
    )


@require_safe
@member_page()
def export(request: HttpRequest, member: Member, format: str) -> HttpResponseBase:
    """The clients as a file."""
    return send_table(
        request,
        member,
        name="clients",
        format=format,
        columns=("client", "state", "live_keys", "requests_today", "limit_per_minute", "networks"),
        rows=(
            [
                client.name,
                Word(gettext_noop("on") if client.enabled else gettext_noop("switched off")),
                client.live_keys,  # type: ignore[attr-defined]  # clients_of
                *(clients.requests_today(client), client.rate_limit_per_minute),
                " ".join(map(str, client.allowed_networks)),
            ]
            for client in clients.clients_of(member.account)
        ),
        back="merchants:clients",
    )


@require_safe
@member_page(protects=True)
def client_page(request: HttpRequest, member: Member, client_id: int) -> HttpResponse:
    """One client: its limits, its live keys, and the newest of the keys that ended."""
    client = _client(member, client_id)
    keys = client.keys.defer("digest").order_by("-pk")
    live = keys.live()
    ended = keys.exclude(pk__in=live)[:ENDED_KEYS_SHOWN]
    return show(
        request,
        member,
        "merchants/client.html",
        title=client.name,
        client=client,
        keys=clients.with_makers([*live, *ended]),
        today=clients.requests_today(client),
        spending=spending_of(client),
        may_limit=member.may(Role.OWNER),
        own_address=client_address(request),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.DEVELOPER)
def add_client(request: HttpRequest, member: Member) -> HttpResponse:
    """Creates a client. Its first key is issued on the client's page."""
    form = NameForm(posted(request))
    if form.is_valid():
        try:
            client = clients.add_client(
                account=member.account, name=form.cleaned_data["name"], actor=member.user
            )
        except InputProblem as problem:
            form.add_error("name", str(problem))
        else:
            messages.success(
                request,
                _("%(client)s was created. Create an API key for it now.") % {"client": client},
            )
            return _redirect_to_client(client)
    return confirm(
        request,
        member,
        title=_("Create a client"),
        question=_("What is the name of the client?"),
        facts=[
            _(
                "A client is one of your programs, such as a shop. It has its own orders, allowlist"
                " and rate limit. Other clients cannot see its orders."
            )
        ],
        form=form,
        button=_("Create the client"),
        back=reverse("merchants:clients"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.DEVELOPER)
def rename(request: HttpRequest, member: Member, client_id: int) -> HttpResponse:
    """Renames the client. `GET /ping` returns the new name."""
    client = _client(member, client_id)
    form = NameForm(posted(request), initial={"name": client.name})
    if form.is_valid():
        try:
            clients.rename_client(client=client, name=form.cleaned_data["name"], actor=member.user)
        except InputProblem as problem:
            form.add_error("name", str(problem))
        else:
            messages.success(
                request, _("The client is now called %(client)s.") % {"client": client}
            )
            return _redirect_to_client(client)
    return confirm(
        request,
        member,
        title=_("Rename the client"),
        question=_("What is the new name of %(client)s?") % {"client": client.name},
        facts=[_("Keys and orders do not change. GET /ping returns the new name.")],
        form=form,
        button=_("Rename"),
        back=_url(client),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.DEVELOPER, protects=True)
def switch(request: HttpRequest, member: Member, client_id: int) -> HttpResponse:
    """Switches the client off or on."""
    client = _client(member, client_id)
    switch_to = request.POST.get("enabled")
    if switch_to in ("on", "off"):  # a form without a value must not switch a shop off
        if clients.switch_client(client=client, enabled=switch_to == "on", actor=member.user):
            words = (
                _("%(client)s is switched on.")
                if switch_to == "on"
                else _("%(client)s is switched off.")
            )
            messages.success(request, words % {"client": client})
        return _redirect_to_client(client)
    return show(
        request,
        member,
        "merchants/switch.html",
        title=_("Switch the client off") if client.enabled else _("Switch the client on"),
        client=client,
        back=_url(client),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.OWNER)
def spending_limit(request: HttpRequest, member: Member, client_id: int) -> HttpResponse:
    """Sets the most that the client may spend in a day and in a month."""
    client = _client(member, client_id)
    spending = spending_of(client)
    limits = spending.limits if spending else Limits()
    form = SpendingLimitForm(
        posted(request),
        currency=member.account.currency,
        initial={"per_day": limits.per_day, "per_month": limits.per_month},
    )
    if form.is_valid():
        changed = change_spending_limits(
            client=client, limits=Limits(**form.cleaned_data), actor=member.user
        )
        words = _("The spending limit was changed.") if changed else _("The limit is unchanged.")
        messages.success(request, words)
        return _redirect_to_client(client)
    return confirm(
        request,
        member,
        title=_("Spending limit"),
        question=_("How much may %(client)s spend?") % {"client": client},
        facts=[
            _(
                "A purchase beyond the limit is refused as insufficient_balance, and the owners"
                " receive one email a day."
            ),
            _(
                "A limit counts purchases from the moment you first set it. Days and months begin"
                " at"
                " midnight UTC. A refund or credit gives no room back."
            ),
        ],
        form=form,
        button=_("Save"),
        back=_url(client),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
@member_page(Role.DEVELOPER)
def issue(request: HttpRequest, member: Member, client_id: int) -> HttpResponse:
    """Issues a key and shows it once."""
    client = _client(member, client_id)
    form = IssueForm(request)
    if form.is_valid():
        try:
            key = clients.issue_key(client=client, actor=member.user, **form.cleaned_data)
        except InputProblem as problem:
            messages.error(request, str(problem))
            return _redirect_to_client(client)
        return _secret(request, member, client, key)
    live = client.keys.live().count()
    return confirm(
        request,
        member,
        title=_("Create an API key"),
        question=_("Give %(client)s a new key?") % {"client": client},
        facts=[
            _("The key is shown once, on the next page. Have a safe place for it ready."),
            ngettext(
                "The client's other keys keep working. It has %(live)s live key now.",
                "The client's other keys keep working. It has %(live)s live keys now.",
                live,
            )
            % {"live": live},
        ],
        form=form,
        button=_("Create an API key"),
        back=_url(client),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@sensitive_post_parameters()
@member_page(Role.DEVELOPER)
def rotate(request: HttpRequest, member: Member, client_id: int) -> HttpResponse:
    """Issues a key, shows it once, and ends the other keys after an overlap."""
    client = _client(member, client_id)
    form = RotateForm(request)
    if form.is_valid():
        try:
            key = clients.rotate_key(client=client, actor=member.user, **form.cleaned_data)
        except InputProblem as problem:
            messages.error(request, str(problem))
            return _redirect_to_client(client)
        return _secret(request, member, client, key)
    prefixes = ", ".join(client.keys.live().order_by("pk").values_list("prefix", flat=True))
    return confirm(
        request,
        member,
        title=_("Rotate keys"),
        question=_("Give %(client)s a new key and end its other keys?") % {"client": client},
        facts=[
            _("Keys that end after the overlap: %(prefixes)s.")
            % {"prefixes": prefixes or _("none")},
            _("The new key is shown once, on the next page."),
            _("Orders, product references and limits do not change."),
        ],
        form=form,
        button=_("Rotate keys"),
        back=_url(client),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.DEVELOPER, protects=True)
def revoke(request: HttpRequest, member: Member, client_id: int, key_id: int) -> HttpResponse:
    """Ends a key at once."""
    client = _client(member, client_id)
    key = get_object_or_404(client.keys.defer("digest"), pk=key_id)
    if request.method == "POST":
        if clients.revoke_key(key=key, actor=member.user):
            messages.success(request, _("Key %(prefix)s is revoked.") % {"prefix": key.prefix})
        else:
            messages.warning(
                request, _("Key %(prefix)s was already revoked.") % {"prefix": key.prefix}
            )
        return _redirect_to_client(client)
    last_use = _time(key.last_used_at)
    return confirm(
        request,
        member,
        title=_("Revoke a key"),
        question=_("Revoke key %(prefix)s of %(client)s?")
        % {"prefix": key.prefix, "client": client},
        facts=[
            _(
                "The key stops working at once and cannot be restored. Purchases that have already"
                " started will finish."
            ),
            _("Last used: %(last_use)s.") % {"last_use": last_use},
            *_warn_of_last_key(client, key),
        ],
        button=_("Revoke key"),
        danger=True,
        back=_url(client),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@member_page(Role.DEVELOPER)
def allowlist(request: HttpRequest, member: Member, client_id: int) -> HttpResponse:
    """Changes the addresses that the client may call from.

    Asks for confirmation if the member's own address is missing, if the list becomes empty, and if
    a network is huge.
    """
    client = _client(member, client_id)
    before = client.allowed_networks
    if request.method != "POST":
        form = AllowlistForm(initial={"networks": before})
        return _show_allowlist(request, member, client, form)
    form = AllowlistForm(request.POST)
    if not form.is_valid():
        return _show_allowlist(request, member, client, form)
    networks = form.cleaned_data["networks"]
    own = client_address(request)
    if "add_own" in request.POST and own is not None:
        together = list(dict.fromkeys([*networks, str(own)]))
        form = AllowlistForm(initial={"networks": together})
        return _show_allowlist(request, member, client, form)
    if request.POST.get("before", _one_line(before)) != _one_line(before):
        return _show_allowlist(request, member, client, form, _warn_of_change(before))
    warning = _warn(networks, own, before=before)
    if warning and form.cleaned_data["sure"] != warning:
        return _show_allowlist(request, member, client, form, warning)
    if not clients.change_allowlist(
        client=client, networks=networks, before=before, actor=member.user
    ):
        client = _client(member, client_id)
        warning = _warn_of_change(client.allowed_networks)
        return _show_allowlist(request, member, client, form, warning)
    messages.success(request, _("The allowlist is changed. It applies from the next call."))
    return _redirect_to_client(client)


def _show_allowlist(
    request: HttpRequest, member: Member, client: ApiClient, form: AllowlistForm, warning: str = ""
) -> HttpResponse:
    return show(
        request,
        member,
        "merchants/allowlist.html",
        title=_("Allowlist"),
        client=client,
        form=form,
        own_address=client_address(request),
        warning=warning,
        before=_one_line(client.allowed_networks),
        back=_url(client),
    )


def _warn(networks: list[str], own: Address | None, *, before: list[str]) -> str:
    """A warning about these networks for the member; empty if there is none."""
    if before and not networks:
        return _("With an empty allowlist, calls with a key of this client may come from anywhere.")
    warnings = []
    huge = [network for network in networks if network.endswith(HUGE_NETWORKS)]
    if huge:
        warnings.append(
            _("%(huge)s allows very many addresses, so the allowlist protects little.")
            % {"huge": huge[0]}
        )
    if networks and (own is None or not is_within(own, networks)):
        address = _("Your own address %(own)s") % {"own": own} if own else _("Your own address")
        warnings.append(
            _(
                "%(address)s is not on the list: programs that call from it will get the error"
                " ip_not_allowed."
            )
            % {"address": address}
        )
    return " ".join(warnings)


def _warn_of_change(networks: list[str]) -> str:
    """For a member who would overwrite a change that was made while the form was open."""
    return _(
        "The allowlist was changed while this form was open. It now holds:"
        " %(shorten)s. Submit again to replace it."
    ) % {"shorten": clients.shorten(_one_line(networks)) or _("nothing")}


def _one_line(networks: list[str]) -> str:
    return " ".join(networks)


def _warn_of_last_key(client: ApiClient, key: ApiKey) -> list[str]:
    others = client.keys.live().exclude(pk=key.pk)
    return [] if others.exists() else [_("No other key of this client works: its calls will fail.")]


def _secret(request: HttpRequest, member: Member, client: ApiClient, key: str) -> HttpResponse:
    return show(
        request,
        member,
        "merchants/secret.html",
        title=_("New API key"),
        whose=client.name,
        key=key,
        back=_url(client),
    )


def _client(member: Member, client_id: int) -> ApiClient:
    return get_object_or_404(clients.clients_of(member.account), pk=client_id)


def _time(moment: datetime | None) -> str:
    if moment is None:
        return _("never")
    local = date_format(timezone.localtime(moment), "SHORT_DATETIME_FORMAT")
    return f"{local} {timezone.get_current_timezone_name()}"


def _url(client: ApiClient) -> str:
    return reverse("merchants:client", args=[client.pk])


def _redirect_to_client(client: ApiClient) -> HttpResponse:
    return HttpResponseRedirect(_url(client))
