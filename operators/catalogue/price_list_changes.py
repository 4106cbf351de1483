"""Changes of price lists: what each thing costs before and after, and whether one person may."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Model
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
from core.database.functions import database_now
from core.inputs import InputProblem
from figures.low_prices import (
    Key,
    ListPrice,
    describe_entry,
    find_low_list_prices,
    read_list_prices,
)
from operators.frame.base import amount, page, url_of
from operators.imports.low_prices import agree, undoing

SHOWN = 100  # prices on one page
SENT_BY_FORM = ("csrfmiddlewaretoken", "confirmed", "seen")

Prices = dict[Key, ListPrice]


@dataclass(frozen=True)
class Changes:
    """The prices of a list before and after a change."""

    before: Prices
    after: Prices

    @property
    def changed(self) -> list[Key]:
        before = self.before
        return [
            key
            for key, new in self.after.items()
            if key in before and before[key].price != new.price
        ]

    @property
    def more(self) -> int:
        return max(0, len(self.changed) - SHOWN)

    @property
    def rows(self) -> list[dict[str, str]]:
        return [
            {
                "name": self.after[key].name,
                "old": _price(self.before[key]),
                "new": _price(self.after[key]),
            }
            for key in self.changed[:SHOWN]
        ]

    @property
    def digest(self) -> str:
        """Differs if any change does, also one that is not shown."""
        lines = [f"{key} {self.before[key].price} {self.after[key].price}" for key in self.changed]
        return sha256("\n".join(lines).encode()).hexdigest()


def _price(one: ListPrice) -> str:
    return _("not for sale") if one.price is None else amount(one.price, one.currency)


class Change(ABC):
    """A change of a list, or of the choice of one, by a person."""

    def __init__(self, actor: User) -> None:
        self.actor = actor

    @abstractmethod
    def make_alone(self) -> tuple[str, Changes, Any]:
        """Makes the change. Returns its words for a request, the prices, and what it made."""

    def preview(self) -> Changes:
        """The changes that would follow. Raises InputProblem if that is not possible."""
        with transaction.atomic():
            _words, changes, _made = self.make_alone()
            transaction.set_rollback(True)
        return changes

    def preview_or_nothing(self) -> Changes | None:
        """The changes that would follow; None if that is not possible."""
        try:
            return self.preview()
        except InputProblem:
            return None

    def make(self) -> Any:
        """Makes the change. Raises LowPrices if it needs a second person."""
        with undoing(actor=self.actor):
            words, changes, made = self.make_alone()
            low = find_low_list_prices(changes.before, changes.after)
            agree(low, actor=self.actor, about=words)
        return made


class EntryChange(Change):
    """A new entry of a list, from the values of its form."""

    def __init__(self, price_list: PriceList, values: dict[str, Any], actor: User) -> None:
        super().__init__(actor)
        self.price_list, self.values = price_list, values

    def make_alone(self) -> tuple[str, Changes, PriceListEntry]:
        values, start = self.values, self.values["valid_from"]
        names = ("category", "product", "shelf", "topup_product")
        before = _prices(self.price_list, start or database_now())
        entry = add_price_entry(
            price_list_id=self.price_list.pk,
            target=Target(**{f"{one}_id": values[one] and values[one].pk for one in names}),
            terms=Terms(
                for_sale=values["terms"] != "none",
                price=values["price"],
                percent_off=values["percent_off"],
            ),
            valid_from=start,
            valid_until=values["valid_until"],
            actor=self.actor,
        )
        entry.refresh_from_db()
        changes = Changes(before, _prices(self.price_list, entry.valid_from))
        return describe_entry(entry, start), changes, entry


class EndChange(Change):
    """The end of an entry."""

    def __init__(self, entry: PriceListEntry, actor: User) -> None:
        super().__init__(actor)
        self.entry = entry

    def make_alone(self) -> tuple[str, Changes, None]:
        entry = self.entry
        at = max(entry.valid_from, database_now())
        before = _prices(entry.price_list, at)
        end_price_entry(entry_id=entry.pk, actor=self.actor)
        changes = Changes(before, _prices(entry.price_list, max(at, database_now())))
        return f"the end of price list entry {entry.pk}", changes, None


class ListChoice(Change):
    """The choice of a list for an account, or of none."""

    def __init__(self, account: Account, price_list: PriceList | None, actor: User) -> None:
        super().__init__(actor)
        self.account, self.price_list = account, price_list

    def make_alone(self) -> tuple[str, Changes, None]:
        account, now = self.account, database_now()
        new = None if self.price_list is None else self.price_list.pk
        lists = [
            read_list_prices(price_list_id=one, currency=account.currency, at=now)
            for one in (account.price_list_id, new)
        ]
        assign_price_list(account_id=account.pk, price_list_id=new, actor=self.actor)
        words = f"price list {new} in place of {account.price_list_id} for account {account.pk}"
        return words, Changes(*lists), None


def _prices(price_list: PriceList, at: datetime) -> Prices:
    return read_list_prices(price_list_id=price_list.pk, currency=price_list.currency, at=at)


def confirms(request: HttpRequest, changes: Changes) -> bool:
    """Whether the person has seen these changes, and confirms them."""
    return "confirmed" in request.POST and request.POST.get("seen") == changes.digest


def ask(
    model_admin: Any, request: HttpRequest, obj: Model, changes: Changes, *, title: str
) -> HttpResponse:
    """Shows what would change, and asks."""
    moved = ["confirmed"] if "confirmed" in request.POST else []
    typed: Sequence[tuple[str, Any]] = [
        (name, value) for name, value in request.POST.items() if name not in SENT_BY_FORM
    ]
    return page(
        model_admin,
        request,
        "admin/price_list_changes.html",
        obj=obj,
        title=title,
        hidden=[*typed, ("confirmed", "1"), ("seen", changes.digest)],
        changes=changes,
        question=_("Change these prices?"),
        facts=[_("A price has changed meanwhile. Look at the new preview.") for _one in moved],
        button=_("Change these prices"),
        back=url_of(obj),
    )
