"""The changes that wait for a second person (operators/sign_in/second_person.py), in words with
links, and the pages where people agree to them.

A request stores its change as English text with ids (figures/low_prices.py). Pages show the names
of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal

from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.form_fields import posted
from accounts.models import Account, ApiClient
from catalogue.models import Batch, PriceList, Shelf
from operators.frame.base import (
    ConfirmForm,
    amount,
    link_to,
    site_page,
    staff_of,
    time_cell,
)
from operators.frame.row_names import row_name
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.second_person import end_change, find_waiting_change, waiting_changes
from topups.models import TopUpProduct

OWN_COMPANY = "own company: "  # the beginning of its changes
REGULAR = "prices: "  # the beginning of changes of regular prices, which may be low only in a list
SHOWN = 3  # prices of one request
MOST = 50  # requests on one page
ASKED = "asked"  # in the address of a form: the id of the request with which it is filled
ROWS: dict[str, type[Model]] = {
    "shelf": Shelf,
    "topupproduct": TopUpProduct,
    "client": ApiClient,
    "role": Group,
}
PRICE = re.compile(
    r"\((?P<kind>shelf|topupproduct) (?P<pk>\d+)(?:, price list (?P<list>\d+))?\): "
    r"(?P<new>[\d.]+|no price) (?P<currency>[A-Z]{3})(?: for (?P<step>\d+))?"
    r"(?: instead of (?P<old>[\d.]+|no price)(?: (?P<was>[A-Z]{3}))?"
    r"(?: from (?P<start>[\d-]{10} [\d:]{8}) UTC)?|, and a code costs (?P<cost>[\d.]+))"
)
TERMS = re.compile(
    r"target \w+ of price list \d+: (?:True|False) \S+ (?P<percent>\S+),"
    r" from (?P<start>now|\S+ \S+) until (?P<end>its end|\S+ \S+?)(?=[;:] )"
)
CHOICE = r"price list (?P<new>\d+|None) in place of \S+ for account (?P<pk>\d+): "
END = r"the end of price list entry (?P<pk>\d+): "
COST = r"cost of batch (?P<pk>\d+): (?P<new>.+), not (?P<old>.+)"
OF_ROW = re.compile(r"(?P<kind>client|role) (?P<pk>\d+): (?P<change>.+)")
OF_IMPORT = re.compile(r"\A[\w ]+ of (?:import|file) ")  # its import waits for a decision
MORE = re.compile(r"; and (?P<number>\d+) more, [0-9a-f]{32}\Z")
# The permission to agree and the page, by the beginning of a change. `pk` is the row of the page.
PLACES = {
    CHOICE: ("catalogue.assign_pricelist", "accounts_account_choose_list"),
    END: ("catalogue.change_pricelistentry", "catalogue_pricelistentry_end"),
    COST: ("catalogue.change_batch", "catalogue_batch_change"),
    r"client (?P<pk>\d+): ": ("accounts.add_apikey", "accounts_apiclient_change"),
    r"role (?P<pk>\d+): ": ("sign_in.manage_staff", "auth_group_change"),
    "exchange rates: ": ("figures.change_exchangerate", "figures_exchangerate_changelist"),
    "limit ": ("wallets.change_bookinglimit", "wallets_bookinglimit_changelist"),
    OWN_COMPANY: ("accounts.change_owncompany", "accounts_owncompany_changelist"),
    "bank details for ": ("wallets.change_bankdetails", "wallets_bankdetails_changelist"),
}
TYPED = ("exchange rates: ", "limit ", OWN_COMPANY, "bank details for ")  # without ids

Name = Callable[[Model | None], str]


@dataclass(frozen=True)
class Place:
    """The page where a person with the permission agrees to a change."""

    permission: str
    url: str


WaitingChange = tuple[TwoPersonChange, Place]


def name_of(row: Model | None) -> str:
    """The name of a row without a link, for a text that is a link itself."""
    return "-" if row is None else row_name(type(row), str(row))


def describe(what: str, name: Name = link_to) -> SafeString:
    """A change that waits, in words and with links to its rows. A text without ids is unchanged."""
    if what.startswith(TYPED):  # people type parts of it: they are no prices
        return escape(what)
    if other := OF_ROW.match(what):
        return format_html("{}: {}", name(_find(ROWS[other["kind"]], other["pk"])), other["change"])
    found = list(PRICE.finditer(what))
    prices = [_price(one, name) for one in found[:SHOWN]]
    others = MORE.search(what)
    if more := len(found[SHOWN:]) + (int(others["number"]) if others else 0):
        prices.append(_("%(number)s more") % {"number": more})
    words = format_html_join("; ", "{}", ((one,) for one in prices))
    if choice := re.match(CHOICE, what):
        chosen = _find(PriceList, choice["new"])
        head = format_html(
            _("{account} gets {prices}"),
            account=name(_find(Account, choice["pk"])),
            prices=name(chosen) if chosen else _("the regular prices"),
        )
        return format_html("{}: {}", head, words)
    if cost := re.match(COST, what):
        return format_html(
            _("the cost of {batch}: {new} instead of {old}"),
            batch=name(_find(Batch, cost["pk"])),
            new=_("none") if cost["new"] == "none" else _money(*cost["new"].split()),
            old=_money(*cost["old"].split()),
        )
    if not prices:
        return escape(what)
    terms = dict.fromkeys(filter(None, map(_terms, TERMS.finditer(what))))
    return format_html_join(", ", "{}", ((one,) for one in [words, *terms]))


def place_of(what: str) -> Place | None:
    """The place to agree to a change; None for a change of an import, which has its own line."""
    if OF_IMPORT.match(what):
        return None
    for beginning, (permission, page) in PLACES.items():
        if found := re.match(beginning, what):
            args = [found["pk"]] if "pk" in found.groupdict() else []
            return Place(permission, reverse(f"admin:{page}", args=args))
    prices = list(PRICE.finditer(what))
    if not prices:
        return None
    kind, price_list = prices[0]["kind"], prices[0]["list"]
    is_whole = not MORE.search(what)  # otherwise, the request has no ids of the further rows
    if price_list and not what.startswith(REGULAR):
        rows = [f"{one['kind']}-{one['pk']}" for one in prices if one["list"] == price_list]
        page = "set_prices" if is_whole else "change"
        query = {"row": rows} if is_whole else {}
        url = reverse(f"admin:catalogue_pricelist_{page}", args=[price_list], query=query)
        return Place("catalogue.change_pricelistentry", url)
    meta = ROWS[kind]._meta
    ids = list(dict.fromkeys(one["pk"] for one in prices if one["kind"] == kind))
    page = f"admin:{meta.app_label}_{meta.model_name}_{'new_prices' if is_whole else 'changelist'}"
    permission = f"{meta.app_label}.change_{meta.model_name}"
    return Place(permission, reverse(page, query={"row": ids} if is_whole else {}))


def _place(change: TwoPersonChange) -> Place | None:
    """The place to agree to a change: the form that asked for it, filled, if it is kept."""
    place = place_of(change.what)
    if place and change.form:
        return replace(place, url=f"{change.form['url']}&{ASKED}={change.pk}")
    return place


def keep_form(request: HttpRequest, what: str, form: Form) -> None:
    """Keeps the form of prices that asked for a change, for the person who agrees to it."""
    query = request.GET.copy()
    query.pop(ASKED, None)
    typed = {
        name: value
        for name, value in form.data.items()
        if name in form.fields or name.startswith("initial-")
    }
    # A time that was typed is in the time zone of the person.
    times = {
        name: value.isoformat()
        for name, value in form.cleaned_data.items()
        if isinstance(value, datetime)
    }
    kept = {"url": f"{request.path}?{query.urlencode()}", "typed": typed | times}
    own = waiting_changes(what).filter(what=what, asked_by=staff_of(request))
    own.update(form=kept)


def data_of_form(request: HttpRequest) -> QueryDict | None:
    """The data that was posted to a form of prices, or the data of the request for a second person
    that the address names."""
    if request.method == "POST" or ASKED not in request.GET:
        return posted(request)
    address, found = request.get_full_path(), read_waiting_changes(staff_of(request))
    for change, place in (*found[0], *found[1]):
        if place.url == address:
            data = QueryDict(mutable=True)
            data.update(change.form["typed"])
            return data
    return None


def read_waiting_changes(user: User) -> tuple[list[WaitingChange], list[WaitingChange]]:
    """The changes about no person that wait: those that this one may agree to, and their own."""
    places = ((change, _place(change)) for change in waiting_changes("")[:MOST])
    found = [(change, one) for change, one in places if one and user.has_perm(one.permission)]
    own = [(change, one) for change, one in found if change.asked_by == user]
    return [one for one in found if one not in own], own


def show_waiting_changes(request: HttpRequest) -> None:
    """Shows the changes to which a person agrees on this page, as messages."""
    if request.method != "GET":
        return
    address = request.get_full_path()
    to_agree, own = read_waiting_changes(staff_of(request))
    for change, place in (*to_agree, *own):
        if place.url != address:
            continue
        if (change, place) in own:
            words = _("You asked a second person for: {change}. {end}")
        elif change.form:  # the page shows all of it
            words = _("{staff} asked for these prices. They take effect when you confirm. {end}")
        else:
            words = _("{staff} asked for: {change}. It takes effect when you do the same. {end}")
        _show(request, words, change)


def show_other_requests(request: HttpRequest, low: Sequence[str]) -> None:
    """Tells a person who asked for low prices of the requests of colleagues for the same rows."""
    rows = _rows("; ".join(low))
    words = _("{staff} has already asked for: {change}. You asked for something else. {end}")
    for change, _place in read_waiting_changes(staff_of(request))[0]:
        if rows & _rows(change.what):
            _show(request, words, change)


def _rows(what: str) -> set[tuple[str, str]]:
    return {(one["kind"], one["pk"]) for one in PRICE.finditer(what)}


def _show(request: HttpRequest, words: str, change: TwoPersonChange) -> None:
    url, name = end_link(change, staff_of(request))
    end = format_html('<a href="{}" class="text-link">{}</a>', url, name)
    text = format_html(words, staff=change.asked_by, change=describe(change.what), end=end)
    messages.info(request, text)


def end_link(change: TwoPersonChange, reader: User) -> tuple[str, str]:
    """The page where this reader ends a change, and the words of a link to it."""
    words = _("Withdraw…") if change.asked_by == reader else _("Reject…")
    return reverse("end_request", args=[change.pk]), words


def end_request(request: HttpRequest, pk: int) -> HttpResponse:
    """The page where the asker withdraws a change that waits, and who may agree rejects it."""
    reader = staff_of(request)
    change = find_waiting_change(pk)
    place = place_of(change.what) if change else None
    if change is None or place is None:
        raise Http404
    own = change.asked_by == reader
    if not own and not reader.has_perm(place.permission):
        raise PermissionDenied
    form = ConfirmForm(posted(request))
    if form.is_valid():
        if not end_change(change, actor=reader, note=form.cleaned_data["note"]):
            messages.warning(request, _("This request no longer waits."))
        else:
            done = _("The request is withdrawn.") if own else _("The request is rejected.")
            messages.success(request, done)
        return HttpResponseRedirect(reverse("admin:index"))
    asked = _("{staff} asked at {time} for: {change}.")
    return site_page(
        request,
        "admin/confirm.html",
        title=_("Withdraw a request") if own else _("Reject a request"),
        form=form,
        question=_("Withdraw this request?") if own else _("Reject this request?"),
        facts=[
            format_html(
                asked,
                staff=change.asked_by,
                time=time_cell(change.asked_at),
                change=describe(change.what),
            ),
            _("Nothing will change."),
        ],
        button=_("Withdraw") if own else _("Reject"),
        danger=True,
        back=reverse("admin:index"),
    )


def _price(found: re.Match[str], name: Name) -> str:
    """A price before and after, in words."""
    row = name(_find(ROWS[found["kind"]], found["pk"]))
    if found["list"]:
        price_list = name(_find(PriceList, found["list"]))
        row = format_html(_("{row}, list {price_list}"), row=row, price_list=price_list)
    new = _money(found["new"], found["currency"])
    if found["step"]:
        new = _("%(price)s for %(number)s") % {"price": new, "number": found["step"]}
    if found["cost"]:
        return format_html(
            _("{row}: {new}, and a code costs {cost}"),
            row=row,
            new=new,
            cost=_money(found["cost"], ""),
        )
    old = _money(found["old"], found["was"] or found["currency"])
    words = format_html(_("{row}: {new} instead of {old}"), row=row, new=new, old=old)
    if found["start"]:
        start = datetime.fromisoformat(found["start"]).replace(tzinfo=UTC)
        words = format_html(_("{price} from {time}"), price=words, time=time_cell(start))
    return words


def _terms(found: re.Match[str]) -> str:
    """The terms of new entries of a list as far as their prices do not show them."""
    percent, start, end = found["percent"], found["start"], found["end"]
    words = []
    if percent != "None":
        words.append(_("%(percent)s %% off") % {"percent": amount(Decimal(percent))})
    if start != "now":
        words.append(_("from %(time)s") % {"time": time_cell(parse_datetime(start))})
    if end != "its end":
        words.append(_("until %(time)s") % {"time": time_cell(parse_datetime(end))})
    return ", ".join(words)


def _money(price: str, currency: str) -> str:
    return _("no price") if price == "no price" else amount(Decimal(price), currency)


def _find(model: type[Model], pk: str) -> Model | None:
    found: Model | None = model._default_manager.filter(pk=0 if pk == "None" else pk).first()
    return found
