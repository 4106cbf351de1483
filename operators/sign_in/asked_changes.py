"""The changes that wait for a second person (second_person.py), in words with links, and the pages
where people agree to them.

The data of a change has what pages need of this:

- url: the page where a person asked for it, and where another one does the same
- typed: what they typed into the form of that page, a list of values by the name of each field
- prices, number: the first prices that need a second person, and how many they are
  (figures/low_prices.py)
- account, list: the account that gets the price list, and the list
- terms: those of new entries of a price list; `others` names entries with different percents
- rejected: who rejected the request, and their note
- row, words: the row that changes; messages about the change, each with its values
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib import messages
from django.contrib.auth import get_permission_codename
from django.contrib.auth.models import Group, User
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Now
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.dateparse import parse_datetime
from django.utils.encoding import escape_uri_path
from django.utils.html import escape, format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.form_fields import posted
from accounts.models import Account
from catalogue.models import PriceList
from core.backoffice.staff import names_of_staff_who_may
from core.inputs import is_id
from core.texts import translate_stored
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
from operators.sign_in.second_person import (
    REJECTED,
    ROWS,
    WAITS_FOR,
    end_change,
    waiting_changes,
    without_digest,
)

# Changes without data for pages, and lower rates, as their forms name them.
SENTENCES = (
    gettext_noop("bank details for %(currency)s: %(details)s"),
    gettext_noop("own company: %(changes)s"),
    gettext_noop("limit %(id)s: %(new)s instead of %(old)s"),
    gettext_noop(
        "%(currency)s to %(into)s for codes of %(day)s to %(last)s: %(new)s instead of %(old)s"
    ),
)
SHOWN = 3  # prices of one request
MOST = 50  # requests on one page
ASKED = "asked"  # in the address of a form: the id of the request with which it is filled

Name = Callable[[Model | None], str]
Price = Mapping[str, Any]  # as_data and prices_below (figures/low_prices.py)


def name_of(row: Model | None) -> str:
    """The name of a row without a link, for a text that is a link itself."""
    return "-" if row is None else row_name(type(row), str(row))


def describe(change: TwoPersonChange, name: Name = link_to) -> SafeString:
    """A change that waits, in words and with links to its rows."""
    data = change.data
    if "row" in data:
        words = ", ".join(_in_words(*one) for one in data["words"])
        return format_html("{}: {}", name(_find(*data["row"])), words)
    if "prices" not in data:
        return escape(translate_stored(without_digest(change.what), *SENTENCES))
    prices: list[str] = [describe_price(one, name) for one in data["prices"][:SHOWN]]
    if (more := data["number"] - SHOWN) > 0:
        prices.append(_("%(number)s more") % {"number": more})
    shown = {(one.get("kind"), one.get("pk")) for one in data["prices"]}
    for kind, pk, percent in data.get("terms", {}).get("others", ()):
        if (kind, pk) not in shown:
            prices.append(format_html("{}: {}", name(_find(kind, pk)), _percent_off(percent)))
    words = _join("; ", prices)
    if "account" in data:
        chosen = PriceList.objects.filter(pk=data["list"]).first()
        head = format_html(
            _("{account} gets {prices}"),
            account=name(Account.objects.filter(pk=data["account"]).first()),
            prices=name(chosen) if chosen else _("the regular prices"),
        )
        return format_html("{}: {}", head, words)
    return _join(", ", [words, *_terms(**data.get("terms", {}))])


def describe_price(price: Price, name: Name = link_to) -> SafeString:
    """A price before and after, in words; an exchange rate as it is."""
    if "pk" not in price:
        return escape(translate_stored(price["words"], *SENTENCES))
    row = name(_find(price["kind"], price["pk"]))
    if price["kind"] == "batch":
        return format_html(
            _("the cost of {batch}: {new} instead of {old}"),
            batch=row,
            new=_money(price["new"], price["currency"], _("none")),
            old=_money(price["old"], price["was"]),
        )
    if price["list"]:
        price_list = name(PriceList.objects.filter(pk=price["list"]).first())
        row = format_html(_("{row}, list {price_list}"), row=row, price_list=price_list)
    new = _money(price["new"], price["currency"])
    if price["step"] > 1:
        new = _("%(price)s for %(number)s") % {"price": new, "number": price["step"]}
    if "cost" in price:
        words, cost = _("{row}: {new}, and a code costs {cost}"), _money(price["cost"])
        return format_html(words, row=row, new=new, cost=cost)
    old = _money(price["old"], price["was"])
    words = format_html(_("{row}: {new} instead of {old}"), row=row, new=new, old=old)
    if price["start"]:
        start = time_cell(parse_datetime(price["start"]))
        words = format_html(_("{price} from {time}"), price=words, time=start)
    return words


def page_data(request: HttpRequest, form: Form | None = None) -> dict[str, Any]:
    """The page where a person asks for a change, and what they typed there, for the data of the
    request. `form` knows the times."""
    typed = {
        name: values
        for name, values in request.POST.lists()
        if name != "csrfmiddlewaretoken"
        and not name.endswith("confirmed")
        and "\0" not in "".join([name, *values])  # no field has it, and PostgreSQL refuses it
    }
    # A time that was typed is in the time zone of the person.
    times = {
        name: [value.isoformat()]
        for name, value in (form.cleaned_data if form else {}).items()
        if isinstance(value, datetime)
    }
    return {"url": address_of(request), "typed": typed | times}


def data_of_form(request: HttpRequest) -> QueryDict | None:
    """The data that was posted to a form, or those of the request for a second person that the
    address names."""
    change = _named(request).first() if request.method == "GET" and ASKED in request.GET else None
    if change is None:
        return posted(request)
    data = QueryDict(mutable=True)
    for name, values in change.data.get("typed", {}).items():
        data.setlist(name, values)
    return data


def right_to_change(model: type[Model]) -> str:
    """The permission to change rows of this kind."""
    return f"{model._meta.app_label}.{get_permission_codename('change', model._meta)}"


def link_to_page(change: TwoPersonChange) -> str:
    """The page where another person agrees to a change, with what was typed there."""
    url: str = change.data["url"]
    is_filled = "typed" in change.data
    return f"{url}{'&' if '?' in url else '?'}{ASKED}={change.pk}" if is_filled else url


def read_waiting_changes(user: User) -> tuple[list[TwoPersonChange], list[TwoPersonChange]]:
    """The changes that wait: the oldest that this person may agree to, and the oldest of their
    own."""
    found = _visible(user)
    return list(found.exclude(asked_by=user)[:MOST]), list(found.filter(asked_by=user)[:MOST])


def read_rejected_changes(user: User) -> list[tuple[TwoPersonChange, str]]:
    """The own changes that others rejected within the last day, each in words."""
    own = TwoPersonChange.objects.filter(asked_by=user, approved_at=None, data__has_key=REJECTED)
    lately = own.filter(asked_at__gt=Now() - 2 * WAITS_FOR, ended_at__gt=Now() - WAITS_FOR)
    rejected = lately.order_by("-ended_at")[:MOST]
    words = _("{staff} rejected your request: {change}")
    lines: list[tuple[TwoPersonChange, str]] = []
    for change in rejected:
        staff, note = change.data[REJECTED]
        line = format_html(words, staff=staff, change=describe(change, name_of))
        lines.append((change, format_html("{}. {}", line, note) if note else line))
    return lines


def _visible(user: User) -> QuerySet[TwoPersonChange]:
    """The changes that wait, and for whose page this person has the permission."""
    found = _without_own(user).exclude(right="")
    return found if user.is_superuser else found.filter(right__in=user.get_all_permissions())


def _without_own(user: User) -> QuerySet[TwoPersonChange]:
    """The changes that wait, without those of this person that another one asked for."""
    return waiting_changes().exclude(~Q(asked_by=user), about=user)


def _named(request: HttpRequest) -> QuerySet[TwoPersonChange]:
    """The changes to which a person agrees on this page: all, or the one that the address names."""
    found = _visible(staff_of(request)).filter(data__url=address_of(request))
    asked = request.GET.get(ASKED, "")
    return found.filter(pk=asked) if is_id(asked) else found


def address_of(request: HttpRequest) -> str:
    """The address of a page without the request that fills its form."""
    query = request.GET.copy()
    query.pop(ASKED, None)
    path = escape_uri_path(request.path)  # PostgreSQL refuses a NUL in JSON
    return f"{path}?{query.urlencode()}" if query else path


def show_waiting_changes(request: HttpRequest) -> bool:
    """Shows the changes to which a person agrees on this page, as messages. Returns whether the
    form is filled with one of them, so that saving it agrees."""
    is_filled = False
    if request.method != "GET":
        return is_filled
    for change in _named(request)[:MOST]:
        agrees = ASKED in request.GET and change.asked_by != staff_of(request)
        if change.asked_by == staff_of(request):
            words = _(
                "You asked a second person for: {change}. It needs a second person, so nothing has"
                " changed yet. These may agree: {people}. {end}"
            )
        elif agrees and "prices" in change.data:  # the page shows all of them
            words = _("{staff} asked for these prices. They take effect when you confirm. {end}")
        elif agrees and "typed" in change.data:
            words = _("{staff} asked for: {change}. The form has it: save it to agree. {end}")
        else:
            words = _("{staff} asked for: {change}. It takes effect when you do the same. {end}")
        is_filled |= agrees
        _show(request, words, change)
    return is_filled


def show_other_requests(request: HttpRequest, low: Sequence[Price]) -> None:
    """Tells a person who asked for low prices of the requests of colleagues for the same rows."""
    rows = _rows(low)
    words = _("{staff} has already asked for: {change}. You asked for something else. {end}")
    for change in read_waiting_changes(staff_of(request))[0]:
        if rows & _rows(change.data.get("prices", ())):
            _show(request, words, change)


def _rows(prices: Sequence[Price]) -> set[tuple[str, int]]:
    return {(one["kind"], one["pk"]) for one in prices if "pk" in one}


def _show(request: HttpRequest, words: str, change: TwoPersonChange) -> None:
    url, name = end_link(change, staff_of(request))
    end = format_html('<a href="{}" class="text-link">{}</a>', url, name)
    values = {"staff": change.asked_by, "change": describe(change), "end": end}
    if change.asked_by == staff_of(request):
        others = names_of_staff_who_may(change.right, change.asked_by.username)
        values["people"] = others or _("nobody yet")
    text = format_html(words, **values)
    messages.info(request, text)


def end_link(change: TwoPersonChange, reader: User) -> tuple[str, str]:
    """The page where this reader ends a change, and the words of a link to it."""
    words = _("Withdraw…") if change.asked_by == reader else _("Reject…")
    return reverse("end_request", args=[change.pk]), words


def end_request(request: HttpRequest, pk: int) -> HttpResponse:
    """The page where the asker withdraws a change that waits, and who may agree rejects it."""
    reader = staff_of(request)
    change = _without_own(reader).filter(pk=pk).exclude(right="").first()
    if change is None:
        raise Http404
    own = change.asked_by == reader
    if not own and not reader.has_perm(change.right):
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
                change=describe(change),
            ),
            _("Nothing will change."),
        ],
        button=_("Withdraw") if own else _("Reject"),
        danger=True,
        back=reverse("admin:index"),
    )


def _terms(
    percents: Sequence[str] = (), start: str = "", end: str = "", others: object = ()
) -> list[str]:
    """The terms of new entries of a list as far as their prices do not show them."""
    words = [_percent_off(one) for one in percents]
    if start:
        words.append(_("from %(time)s") % {"time": time_cell(parse_datetime(start))})
    if end:
        words.append(_("until %(time)s") % {"time": time_cell(parse_datetime(end))})
    return words


def _percent_off(percent: str) -> str:
    return _("%(percent)s %% off") % {"percent": amount(Decimal(percent))}


def _in_words(message: str, values: dict[str, str]) -> str:
    if "role" in values:  # the name of a built-in role is translated
        values = values | {"role": str(Group(name=values["role"]))}
    return _(message) % values


def _join(separator: str, words: Sequence[str]) -> SafeString:
    return format_html_join(separator, "{}", ((one,) for one in words))


def _money(price: str | None, currency: str = "", none: str = "") -> str:
    return none or _("no price") if price is None else amount(Decimal(price), currency)


def _find(kind: str, pk: int) -> Model | None:
    found: Model | None = ROWS[kind]._default_manager.filter(pk=pk).first()
    return found
