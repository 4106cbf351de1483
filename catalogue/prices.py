"""Changing the regular prices of shelves, now or from a time."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import transaction

from audit.actor import on_behalf_of
from audit.services import Changes, record_changes
from catalogue.models import Shelf
from core.database.functions import database_now, name_actor
from core.inputs import InputProblem, raise_problems

Price = Decimal | None


def set_prices(
    *, prices: Mapping[int, tuple[Price, Price]], actor: User, starts_at: datetime | None = None
) -> int:
    """Sets the regular prices of shelves, all or none; returns how many it changed.

    `prices` maps ids of shelves to the price that the person saw, and the new one. A change at once
    withdraws a planned price. Raises InputProblem if a price is not the one seen, if the time has
    passed, or if a planned price is missing.
    """
    rows: list[tuple[Shelf, Changes]] = []
    with transaction.atomic():
        name_actor(f"admin:{actor.get_username()}")
        if starts_at is not None and starts_at <= database_now():
            raise InputProblem("The new prices cannot begin in the past.")
        shelves = list(
            Shelf.objects.select_for_update(of=("self",), no_key=True)
            .filter(pk__in=prices)
            .select_related("product", "variation__product")
            .order_by("pk")
        )
        raise_problems(_find_problems(shelves, prices, starts_at))
        for shelf in shelves:
            new = prices[shelf.pk][1]
            before = (shelf.price, shelf.next_price, shelf.next_price_from)
            if starts_at is None:
                shelf.price, shelf.next_price, shelf.next_price_from = new, None, None
            else:
                shelf.next_price, shelf.next_price_from = new, starts_at
            if before == (shelf.price, shelf.next_price, shelf.next_price_from):
                continue
            shelf.save(update_fields=["price", "next_price", "next_price_from"])
            rows.append((shelf, _changes(shelf, before)))
        with on_behalf_of(actor):
            record_changes(rows)
    return len(rows)


def _find_problems(
    shelves: list[Shelf], prices: Mapping[int, tuple[Price, Price]], starts_at: datetime | None
) -> list[str]:
    problems = [
        f"The price of {shelf} has changed meanwhile: it is {shelf.price or 'not set'} now"
        for shelf in shelves
        if shelf.price != prices[shelf.pk][0]
    ]
    if starts_at is not None:
        problems += [
            f"{shelf} needs a price to plan" for shelf in shelves if prices[shelf.pk][1] is None
        ]
    if len(shelves) < len(prices):
        problems.append("A shelf does not exist any more")
    return problems


def _changes(shelf: Shelf, before: tuple[Price, Price, datetime | None]) -> Changes:
    price, next_price, since = before
    planned = None if shelf.next_price_from is None else shelf.next_price_from.isoformat()
    changes = {
        "price": (price, shelf.price),
        "next_price": (next_price, shelf.next_price),
        "next_price_from": (None if since is None else since.isoformat(), planned),
    }
    return {name: pair for name, pair in changes.items() if pair[0] != pair[1]}
