"""Changes of price lists: what each thing costs before and after, and whether one person may."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cached_property
from hashlib import sha256
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model
from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from accounts.models import Account
from catalogue.models import PriceList, PriceListEntry
from catalogue.price_lists import (
    Target,
    Terms,
    add_price_entry,
    assign_price_list,
    end_price_entry,
)
from core.inputs import InputProblem
from core.texts import lazy
from figures.low_prices import describe_entry, find_low_prices
from figures.price_lines import (
    Key,
    PriceChange,
    list_names,
    stock_costs,
    watch_prices,
)
from operators.catalogue.price_list_prices import (
    CHANGE,
    cost_text,
    difference,
    margin_change,
    price_text,
)
from operators.frame.base import page, time_cell, url_of
from operators.frame.reader import reader_has
from operators.imports.low_prices import (
    ASSIGN,
    LowPrices,
    another_must_agree,
    changing_prices,
    foresee_choice,
    keep_page,
    two_people_choose_a_list,
    two_people_set_low_prices,
    who_must_agree,
)
from operators.imports.pages import SEES_COST
from operators.sign_in.asked_changes import show_other_requests

SHOWN = 100  # prices on one page
MOVED = lazy("A price has changed meanwhile. Look at the new preview.")
SENT_BY_FORM = ("csrfmiddlewaretoken", "confirmed", "seen", "edit")


@dataclass(frozen=True)
class Changes:
    """The prices that would change, each with the time from which it differs."""

    changes: Sequence[PriceChange]
    must_agree: str = ""  # who_must_agree

    @property
    def button(self) -> str:
        """The words of the button that makes the changes."""
        return _("Ask for approval") if self.must_agree else _("Change these prices")

    @property
    def more(self) -> int:
        return max(0, len(self.changes) - SHOWN)

    @cached_property
    def costs(self) -> dict[Key, Decimal]:
        """The costs of one code, for people who may see them."""
        keys = {one.key for one in self.changes[:SHOWN] if one.key[0] == "shelf"}
        return stock_costs(sorted(keys)) if any(map(reader_has, SEES_COST)) else {}

    @cached_property
    def rows(self) -> list[dict[str, str]]:
        names = list_names(self.changes[:SHOWN])
        return [
            {
                "name": one.becomes.name,
                "list": names.get(one.price_list or 0, _("Regular prices")),
                "from": time_cell(one.start, never=_("now")),
                "old": price_text(one.old, one.was.currency),
                "new": price_text(one.new, one.becomes.currency),
                "difference": self._difference(one),
                "cost": self._cost(one),
                "margin": margin_change(one.old_of_code, one.new_of_code, self.costs.get(one.key)),
            }
            for one in self.changes[:SHOWN]
        ]

    def _difference(self, one: PriceChange) -> str:
        no_percent = one.was.currency != one.becomes.currency or one.old == one.new
        return "" if no_percent or None in (one.old, one.new) else difference(one.old, one.new)

    def _cost(self, one: PriceChange) -> str:
        cost = self.costs.get(one.key)
        return "" if cost is None else cost_text(cost * one.becomes.step)

    @property
    def digest(self) -> str:
        """Differs if any change does, also one that is not shown."""
        lines = [
            f"{one.key} {one.price_list} {one.start} {one.old} {one.new}" for one in self.changes
        ]
        return sha256("\n".join(lines).encode()).hexdigest()


class Change(ABC):
    """A change of a list, or of the choice of one, by a person."""

    def __init__(self, actor: User) -> None:
        self.actor = actor

    @abstractmethod
    def preview(self) -> Changes:
        """The changes that would follow. Raises InputProblem if that is not possible."""

    @abstractmethod
    def make(self) -> Any:
        """Makes the change. Raises LowPrices if it needs a second person."""


class ListChange(Change):
    """A change of the entries of one list."""

    price_list_id: int
    terms: dict[str, Any] = {}  # of new entries
    foreseen: tuple[str, Sequence[PriceChange]] = ("", ())  # words and low prices of the preview
    rows: Sequence[Key] = ()  # of the form, in its order

    @abstractmethod
    def make_alone(self) -> tuple[str, Any]:
        """Makes the change. Returns its words for a request, and what it made."""

    def preview(self) -> Changes:
        with changing_prices():
            watched = watch_prices(lists=[self.price_list_id])
            words, _made = self.make_alone()
            # Regular prices do not change.
            changes = [one for one in watched.changes() if one.price_list is not None]
            low = find_low_prices(changes, watched.since)
            self.foreseen = words, low
            transaction.set_rollback(True)
        must_agree = who_must_agree(low, words=words, right=CHANGE, actor=self.actor)
        order = {one: place for place, one in enumerate(self.rows)}
        changes.sort(key=lambda one: order.get(one.key, len(order)))
        return Changes(changes, must_agree)

    def make(self) -> Any:
        lists = [self.price_list_id]
        with two_people_set_low_prices(lists=lists, actor=self.actor) as about:
            about.words, low = self.foreseen
            about.name_asker(low)
            about.words, made = self.make_alone()
            about.terms = self.terms
        return made


class NewEntries(ListChange):
    """New entries of a list, each with its target and terms, from one time until another."""

    def __init__(
        self,
        price_list: PriceList,
        entries: Sequence[tuple[Target, Terms]],
        period: tuple[datetime | None, datetime | None],
        actor: User,
    ) -> None:
        super().__init__(actor)
        self.price_list_id, self.entries, self.period = price_list.pk, entries, period
        self.rows = [
            ("shelf", one.shelf_id) if one.shelf_id else ("topupproduct", one.topup_product_id or 0)
            for one, _terms in entries
        ]

    def make_alone(self) -> tuple[str, list[PriceListEntry]]:
        start, end = self.period
        made = [
            add_price_entry(
                price_list_id=self.price_list_id,
                target=target,
                terms=terms,
                valid_from=start,
                valid_until=end,
                actor=self.actor,
            )
            for target, terms in self.entries
        ]
        for entry in made:
            entry.refresh_from_db()
        percents = {one.percent_off for one in made}
        self.terms = {
            "percents": [str(one) for one in percents if one and len(percents) == 1],
            "others": [
                ["shelf" if one.shelf_id else "topupproduct", key, str(one.percent_off)]
                for one in made
                if one.percent_off and len(percents) > 1
                for key in [one.shelf_id or one.topup_product_id]
                if key
            ],
            "start": start.isoformat() if start else "",
            "end": end.isoformat() if end else "",
        }
        return "; ".join(describe_entry(entry, start) for entry in made), made


class EndChange(ListChange):
    """The end of an entry."""

    def __init__(self, entry: PriceListEntry, actor: User) -> None:
        super().__init__(actor)
        self.entry, self.price_list_id = entry, entry.price_list_id

    def make_alone(self) -> tuple[str, None]:
        end_price_entry(entry_id=self.entry.pk, actor=self.actor)
        return f"the end of price list entry {self.entry.pk}", None


class ListChoice(Change):
    """The choice of a list for an account, or of none."""

    def __init__(self, account: Account, price_list: PriceList | None, actor: User) -> None:
        super().__init__(actor)
        self.account = account
        self.price_list_id = None if price_list is None else price_list.pk

    def preview(self) -> Changes:
        account, new = self.account, self.price_list_id
        with changing_prices():
            changes, low, words = foresee_choice(account, new)
        must_agree = who_must_agree(low, words=words, right=ASSIGN, actor=self.actor)
        return Changes(changes, must_agree)

    def make(self) -> None:
        account, new = self.account, self.price_list_id
        with two_people_choose_a_list(account, new, actor=self.actor):
            assign_price_list(account_id=account.pk, price_list_id=new, actor=self.actor)


def confirms(request: HttpRequest, changes: Changes) -> bool:
    """Whether the person has seen these changes, and confirms them."""
    return "confirmed" in request.POST and request.POST.get("seen") == changes.digest


def goes_back(request: HttpRequest) -> bool:
    """Whether the person goes back from the changes to the form, which keeps what was typed."""
    return "edit" in request.POST


def ask(
    model_admin: Any,
    request: HttpRequest,
    obj: Model,
    changes: Changes,
    *,
    title: str,
    form: Form | None = None,
    waits: LowPrices | None = None,
) -> HttpResponse:
    """Shows what would change, and asks; or says that it `waits` for a second person."""
    if waits:
        show_other_requests(request, waits.low)
        keep_page(request, waits, form)
    elif changes.must_agree:
        messages.warning(request, changes.must_agree)
    data: Any = form.data if form else request.POST
    typed = [
        (name, value)
        for name, values in data.lists()
        for value in values
        if name not in SENT_BY_FORM
    ]
    return page(
        model_admin,
        request,
        "admin/price_list_changes.html",
        obj=obj,
        title=title,
        hidden=[*typed, ("confirmed", "1"), ("seen", changes.digest)],
        changes=changes,
        question=another_must_agree() if waits else _("Change these prices?"),
        facts=[MOVED] if "confirmed" in request.POST and not waits else [],
        button="" if waits else changes.button,
        can_edit=form is not None,
        back=url_of(obj),
    )


def show_problem(request: HttpRequest, problem: InputProblem) -> None:
    """Shows why a change was not made. It is no error if it waits for a second person."""
    level = messages.WARNING if isinstance(problem, LowPrices) else messages.ERROR
    messages.add_message(request, level, str(problem))
    if isinstance(problem, LowPrices):
        show_other_requests(request, problem.low)
        keep_page(request, problem)
