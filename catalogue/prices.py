"""Changing the regular prices of shelves or top-up products, now or from a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from audit.actor import on_behalf_of
from audit.services import Changes, record_changes
from catalogue.models import PRICE_LIMIT
from core.database.functions import database_now, name_actor
from core.formats import local_amount
from core.inputs import InputProblem, raise_problems

Price = Decimal | None
Prices = Mapping[int, tuple[Price, Price]]  # the price before, and the new one, by id


def set_prices(
    *, rows: QuerySet[Any], prices: Prices, actor: User, starts_at: datetime | None = None
) -> int:
    """Sets the regular prices of these rows, all or none; returns how many it changed.

    `rows` are shelves or top-up products, and `prices` names the price that the person saw. A
    change at once withdraws a next price. Raises InputProblem if a price is not the one seen, if
    the time has passed, or if a new price is missing or beyond the limits.
    """
    changed: list[tuple[Any, Changes]] = []
    with transaction.atomic():
        name_actor(f"admin:{actor.get_username()}")
        if starts_at is not None and starts_at <= database_now():
            raise InputProblem(_("The new prices cannot begin in the past."))
        locked = rows.select_for_update(of=("self",), no_key=True)
        found = list(locked.filter(pk__in=prices).order_by("pk"))
        raise_problems(_find_problems(found, prices, starts_at))
        for row in found:
            new = prices[row.pk][1]
            before = (row.price, row.next_price, row.next_price_from)
            if starts_at is None:
                row.price, row.next_price, row.next_price_from = new, None, None
            else:
                row.next_price, row.next_price_from = new, starts_at
            if before == (row.price, row.next_price, row.next_price_from):
                continue
            row.save(update_fields=["price", "next_price", "next_price_from"])
            changed.append((row, _changes(row, before)))
        with on_behalf_of(actor):
            record_changes(changed)
    return len(changed)


def _find_problems(rows: list[Any], prices: Prices, starts_at: datetime | None) -> list[str]:
    problems = [
        _("The price of %(row)s has changed meanwhile: it is %(price)s now")
        % {"row": row, "price": local_amount(row.price) if row.price else _("not set")}
        for row in rows
        if row.price != prices[row.pk][0]
    ]
    problems += [
        _("%(row)s needs a price") % {"row": row}
        for row in rows
        if prices[row.pk][1] is None
        and (starts_at is not None or not row._meta.get_field("price").null)
    ]
    problems += [
        _("The price of %(row)s must be above 0 and below %(limit)s")
        % {"row": row, "limit": f"{PRICE_LIMIT:,}"}
        for row in rows
        if (new := prices[row.pk][1]) is not None and not 0 < new < PRICE_LIMIT
    ]
    if len(rows) < len(prices):
        problems.append(_("A row does not exist any more"))
    return problems


def _changes(row: Any, before: tuple[Price, Price, datetime | None]) -> Changes:
    price, next_price, since = before
    planned = None if row.next_price_from is None else row.next_price_from.isoformat()
    changes = {
        "price": (price, row.price),
        "next_price": (next_price, row.next_price),
        "next_price_from": (None if since is None else since.isoformat(), planned),
    }
    return {name: pair for name, pair in changes.items() if pair[0] != pair[1]}
