"""Changes that a colleague asked for (operators/sign_in/second_person.py): in words with links, and
where to agree.

A request keeps its change as English text with ids, such as figures/low_prices.py. Pages name the
rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from django.contrib import messages
from django.contrib.auth.models import Group, User
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.html import conditional_escape, escape, format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from accounts.models import Account, ApiClient, OwnCompany
from catalogue.models import Batch, PriceList, Shelf
from figures.models import ExchangeRate
from operators.frame.base import amount, link_to, list_url, staff_of, time_cell, url_of
from operators.frame.row_names import row_name
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.second_person import waiting_changes
from topups.models import TopUpProduct
from wallets.models import BookingLimit

OWN_COMPANY = "own company: "  # how its changes begin
REGULAR = "prices: "  # and those of regular prices, which may be low in a list only
SHOWN = 3  # prices of one request
MOST = 50  # requests on one page
ROWS: dict[str, type[Model]] = {
    "shelf": Shelf,
    "topupproduct": TopUpProduct,
    "client": ApiClient,
    "role": Group,
}
RIGHTS = {"client": "accounts.add_apikey", "role": "sign_in.manage_staff"}
LISTS: dict[str, tuple[str, type[Model]]] = {
    "exchange rates: ": ("figures.change_exchangerate", ExchangeRate),
    "limit ": ("wallets.change_bookinglimit", BookingLimit),
    OWN_COMPANY: ("accounts.change_owncompany", OwnCompany),
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
CHOICE = re.compile(r"price list (?P<new>\d+|None) in place of \S+ for account (?P<account>\d+): ")
END = re.compile(r"the end of price list entry (?P<entry>\d+): ")
COST = re.compile(r"cost of batch (?P<batch>\d+): (?P<new>.+), not (?P<old>.+)")
OF_ROW = re.compile(r"(?P<kind>client|role) (?P<pk>\d+): (?P<change>.+)")
OF_IMPORT = re.compile(r"\A[\w ]+ of (?:import|file) ")  # its import waits for a decision
MORE = re.compile(r"; and (?P<number>\d+) more")

Name = Callable[[Model | None], str]


@dataclass(frozen=True)
class Place:
    """Where a person with the permission agrees to a change."""

    permission: str
    url: str


Asked = tuple[TwoPersonChange, Place]


def name_of(row: Model | None) -> str:
    """The name of a row without a link, for a text that is a link itself."""
    return "-" if row is None else row_name(type(row), str(row))


def describe(what: str, name: Name = link_to) -> SafeString:
    """A change that waits, in words, with links to its rows. Texts without ids stay as they are."""
    found = list(PRICE.finditer(what))
    prices = [_price(one, name) for one in found[:SHOWN]]
    more = len(found[SHOWN:]) + sum(int(one["number"]) for one in MORE.finditer(what))
    if more:
        prices.append(_("%(number)s more") % {"number": more})
    words = _joined("; ", prices)
    if choice := CHOICE.match(what):
        chosen = _find(PriceList, choice["new"])
        head = format_html(
            _("{account} gets {prices}"),
            account=name(_find(Account, choice["account"])),
            prices=name(chosen) if chosen else _("the regular prices"),
        )
        return format_html("{}: {}", head, words)
    if cost := COST.match(what):
        return format_html(
            _("the cost of {batch}: {new} instead of {old}"),
            batch=name(_find(Batch, cost["batch"])),
            new=_("none") if cost["new"] == "none" else _money(*cost["new"].split()),
            old=_money(*cost["old"].split()),
        )
    if other := OF_ROW.match(what):
        return format_html("{}: {}", name(_find(ROWS[other["kind"]], other["pk"])), other["change"])
    if not prices:
        return SafeString(escape(what))
    terms = dict.fromkeys(filter(None, map(_terms, TERMS.finditer(what))))
    return _joined(", ", [words, *terms])


def place_of(what: str) -> Place | None:
    """Where somebody agrees to this change; None if the line for its import leads there."""
    if OF_IMPORT.match(what):
        return None
    if choice := CHOICE.match(what):
        url = reverse("admin:accounts_account_choose_list", args=[choice["account"]])
        return Place("catalogue.assign_pricelist", url)
    if end := END.match(what):
        url = reverse("admin:catalogue_pricelistentry_end", args=[end["entry"]])
        return Place("catalogue.change_pricelistentry", url)
    if cost := COST.match(what):
        return Place("catalogue.change_batch", url_of(Batch(pk=cost["batch"])))
    if other := OF_ROW.match(what):
        row = ROWS[other["kind"]](pk=other["pk"])
        return Place(RIGHTS[other["kind"]], url_of(row))
    for start, (permission, model) in LISTS.items():
        if what.startswith(start):
            return Place(permission, list_url(model))
    found = list(PRICE.finditer(what))
    if not found:
        return None
    price_list = found[0]["list"]
    if price_list and not what.startswith(REGULAR):
        rows = [f"{one['kind']}-{one['pk']}" for one in found if one["list"] == price_list]
        page = reverse(
            "admin:catalogue_pricelist_set_prices", args=[price_list], query={"row": rows}
        )
        return Place("catalogue.change_pricelistentry", page)
    meta = ROWS[found[0]["kind"]]._meta
    ids = [one["pk"] for one in found if one["kind"] == found[0]["kind"]]
    label = f"{meta.app_label}_{meta.model_name}"
    page = reverse(f"admin:{label}_new_prices", query={"row": list(dict.fromkeys(ids))})
    return Place(f"{meta.app_label}.change_{meta.model_name}", page)


def waiting_for_two(user: User) -> tuple[list[Asked], list[Asked]]:
    """The changes about no person that wait: those that this one may agree to, and their own."""
    waiting = waiting_changes("")[:MOST]
    places = ((change, place_of(change.what)) for change in waiting)
    found = [(change, one) for change, one in places if one and user.has_perm(one.permission)]
    own = [(change, one) for change, one in found if change.asked_by == user]
    return [one for one in found if one not in own], own


def tell_what_was_asked(request: HttpRequest) -> None:
    """Says on the page to which the overview leads what a colleague asked for there."""
    address = request.get_full_path()
    for change, place in waiting_for_two(staff_of(request))[0] if request.method == "GET" else ():
        if place.url == address:
            words = _("{staff} asked for: {change}. It takes effect when you do the same.")
            change_in_words = describe(change.what)
            messages.info(
                request, format_html(words, staff=change.asked_by, change=change_in_words)
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


def _joined(between: str, parts: list[str]) -> SafeString:
    return SafeString(between.join(map(conditional_escape, parts)))
