"""Prices that one person does not set alone: large falls, and prices below the cost of the codes.

A price of one code is compared with the one that the same merchants would pay at that moment
without the change, and with their highest of the last week. So small falls add up, whether a
regular price, a price list, the choice of a list, a category or a quantity step makes them. What
two people agreed on starts a new week. A price after none is compared with the regular one, and
with the last one that there was (docs/decisions/0110-low-prices.md).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import Max, QuerySet

from accounts.models import Account
from catalogue.models import PriceListEntry, Shelf
from core.database.functions import database_now
from core.json_output import money_text
from figures.models import AgreedFall, EarlierList, ExchangeRate
from figures.price_lines import (
    PERIOD,
    Key,
    ListId,
    PriceChange,
    PriceWatch,
    Terms,
    last_prices,
    lists_in_use,
    past_prices,
    read_lines,
    read_terms,
    stock_costs,
)

COLUMNS = {"shelf": "shelf_id", "topupproduct": "topup_product_id"}
# Also of batches without codes for sale: codes that are held now may be sold later.
DAYS_OF_COSTS = """
    SELECT DISTINCT batch.cost_currency, product.currency,
           (batch.imported_at AT TIME ZONE 'UTC')::date
      FROM catalogue_batch AS batch
      JOIN catalogue_shelf AS shelf ON shelf.id = batch.shelf_id
      JOIN catalogue_product AS product ON product.id = shelf.product_id
     WHERE batch.taken_back_at IS NULL AND batch.unit_cost IS NOT NULL
       AND batch.cost_currency <> product.currency
"""
RATE_FALL_PERCENT = 10  # below the highest rate of the month before, that one person may enter
RECENT, MONTH = timedelta(days=7), timedelta(days=30)
Pair = tuple[str, str]  # of currencies
Rates = dict[Pair, list[tuple[date, Decimal]]]  # of each pair, in order of days
# Terms end when the price that was changed with them does: no price is divided by another step.
KEEP_TERMS = {
    kind: f"""
    INSERT INTO figures_earlierterms ({COLUMNS[kind]}, category, step, until)
    SELECT item.id, category, step, coalesce(
               (SELECT max(changed_at) FROM {history} AS change
                 WHERE change.{column} = item.id AND starts_at IS NULL AND changed_at >= %s),
               clock_timestamp())
      FROM unnest(%s::bigint[], %s::bigint[], %s::int[]) AS item (id, category, step)
    """  # noqa: S608  names of ours
    for kind, history, column in (
        ("shelf", "catalogue_shelfpricechange", "shelf_id"),
        ("topupproduct", "topups_topuppricechange", "product_id"),
    )
}


def find_low_prices(
    changes: Iterable[PriceChange],
    since: datetime,
    earlier: Collection[ListId] = (),
    *,
    made: bool = True,
) -> list[PriceChange]:
    """The changes that need a second person. Call it before the commit.

    `since`: a time just before the change, up to which past prices count.
    `earlier`: further lists whose past prices count, such as the earlier ones of an account.
    `made`: whether the rows have their new terms already.
    """
    falling = [one for one in changes if _falls(one)]
    if not falling:
        return []
    terms = {one.key: one.becomes if made else one.was for one in falling}
    lists = {one.old_list for one in falling} | set(earlier)
    before = _lists_before(lists)
    highest = _HighestPrices(terms, lists.union(*before.values()), since)
    costs = stock_costs(terms)
    last = last_prices(terms)
    low = []
    for one in falling:
        of_lists = {one.old_list, *before.get(one.old_list, ()), *earlier}
        known = [highest.of(one, each) for each in of_lists] + [one.old_of_code]
        if not any(known):
            known = [highest.of(one, None), last.get(one.key)]
        if _is_low(one, [price for price in known if price], costs.get(one.key)):
            low.append(one)
    return low


def _falls(change: PriceChange) -> bool:
    """Whether a merchant may pay less for a code, or another unit of money."""
    was, old, new = change.was, change.old_of_code, change.new_of_code
    if was.currency != change.becomes.currency:
        return True
    if new is None:
        return False
    return old is None or new < old or _larger_step(change)


def _larger_step(change: PriceChange) -> bool:
    """Whether a sale has more codes, and none of them costs more."""
    old, new = change.old_of_code, change.new_of_code
    if old is None or new is None:
        return False
    return change.becomes.step > change.was.step and new <= old


def _is_low(change: PriceChange, known: Sequence[Decimal], cost: Decimal | None) -> bool:
    was, new = change.was, change.new_of_code
    if was.currency != change.becomes.currency:
        return bool(known) or cost is not None
    if new is None:
        return False
    below_cost = cost is not None and new < cost
    return below_cost or _larger_step(change) or bool(known and is_large_fall(max(known), new))


def is_large_fall(before: Decimal, after: Decimal) -> bool:
    """Whether a price falls by more than one person may let it fall."""
    return bool(after < before * (100 - settings.PRICE_FALL_PERCENT) / 100)


class _HighestPrices:
    """The highest prices of codes of the last week, since two people last agreed on one."""

    def __init__(
        self, terms: Mapping[Key, Terms], lists: Collection[ListId], until: datetime
    ) -> None:
        self.prices: dict[tuple[Key, ListId], list[tuple[datetime, Decimal]]] = {}
        some = [one for one in lists if one is not None]
        for past in past_prices(terms, some, until - PERIOD, until):
            pair = (past.key, past.price_list)
            self.prices.setdefault(pair, []).append((past.until, past.of_code))
        self.agreed = _agreed(terms)

    def of(self, change: PriceChange, price_list: ListId) -> Decimal | None:
        """The highest price in this list that counts for the change."""
        agreed = self.agreed.get((change.key, change.old_list))
        prices = self.prices.get((change.key, price_list), ())
        known = [price for until, price in prices if agreed is None or until > agreed]
        return max(known, default=None)


def _agreed(terms: Mapping[Key, Terms]) -> dict[tuple[Key, ListId], datetime]:
    """When two people last agreed on a low price that has begun."""
    found: dict[tuple[Key, ListId], datetime] = {}
    rows = AgreedFall.objects.filter(since__lte=database_now()).order_by()
    for kind, column in COLUMNS.items():
        some = rows.filter(**{f"{column}__in": [pk for one, pk in terms if one == kind]})
        newest = some.values(column, "price_list_id").annotate(at=Max("since"))
        for pk, price_list, at in newest.values_list(column, "price_list_id", "at"):
            found[(kind, pk), price_list] = at
    return found


def _lists_before(lists: Collection[ListId]) -> dict[ListId, set[ListId]]:
    """The lists that accounts with these lists had within the last week."""
    pairs = _recent_choices().values_list("account__price_list_id", "price_list_id").distinct()
    found: dict[ListId, set[ListId]] = {}
    for now, before in pairs:
        if now in lists:
            found.setdefault(now, set()).add(before)
    return found


def earlier_lists(account: Account) -> set[ListId]:
    """The lists that the account had within the last week, as far as one person replaced them."""
    choices = _recent_choices().filter(account=account)
    return set(choices.values_list("price_list_id", flat=True))


def _recent_choices() -> QuerySet[EarlierList]:
    """The choices of the last week that one person made alone."""
    return EarlierList.objects.filter(low_prices=0, until__gt=database_now() - PERIOD)


def keep_earlier_list(account: Account, price_list: ListId, low_prices: int) -> None:
    """Remembers the list that an account had until now, and the number of new low prices."""
    now = database_now()
    EarlierList.objects.filter(until__lt=now - PERIOD).delete()
    EarlierList.objects.create(
        account=account, price_list_id=price_list, low_prices=low_prices, until=now
    )


def keep_earlier_terms(watched: PriceWatch) -> None:
    """Remembers the categories and steps that were replaced. Call it before `find_low_prices`."""
    earlier = [
        (key, was)
        for key, becomes in watched.moved.items()
        if (was := watched.terms.get(key))
        and (was.category, was.step) != (becomes.category, becomes.step)
    ]
    with connection.cursor() as cursor:
        for kind in COLUMNS:
            some = [(pk, was.category, was.step) for (one, pk), was in earlier if one == kind]
            if some:
                columns = map(list, zip(*some, strict=True))
                cursor.execute(KEEP_TERMS[kind], [watched.since, *columns])


def keep_agreement(low: Iterable[PriceChange]) -> None:
    """Remembers that two people agreed on these prices."""
    now = database_now()
    AgreedFall.objects.filter(since__lt=now - PERIOD).delete()
    AgreedFall.objects.bulk_create(
        AgreedFall(
            **{COLUMNS[one.key[0]]: one.key[1]},
            price_list_id=one.price_list,
            since=one.start or now,
        )
        for one in low
    )


def read_rates() -> Rates:
    """All exchange rates now."""
    found: Rates = {}
    rows = ExchangeRate.objects.order_by("currency", "into", "day")
    for currency, into, day, rate in rows.values_list("currency", "into", "day", "rate"):
        found.setdefault((currency, into), []).append((day, rate))
    return found


def lower_rates(before: Rates, after: Rates) -> list[str]:
    """The rates that one person may not lower alone, in words: codes would seem to cost less.

    Every fall counts on days on which codes were imported, and on days more than a week ago. A fall
    on a later day counts if it is more than RATE_FALL_PERCENT below the highest rate of the 30 days
    before that week, or if there was none. One person can change no rate of those 30 days.
    """
    with connection.cursor() as cursor:
        cursor.execute(DAYS_OF_COSTS)
        costs = {(currency, into, day) for currency, into, day in cursor}
    week = database_now().date() - RECENT
    low: dict[tuple[Pair, Decimal, Decimal | None], list[date]] = {}
    for pair, old in before.items():
        new = after.get(pair, [])
        if old == new:
            continue
        lowest = _lowest_rate(old, week)
        starts = {day for day, _rate in (*old, *new)}
        imports = {day for *some, day in costs if tuple(some) == pair}
        for day in sorted(starts | imports):
            was, becomes = _rate_on(old, day), _rate_on(new, day)
            if was is None or (becomes is not None and becomes >= was):
                continue
            is_within = becomes is not None and lowest is not None and becomes >= lowest
            if day in imports or day < week or not is_within:
                low.setdefault((pair, was, becomes), []).append(day)
    return [
        f"{pair[0]} to {pair[1]} for codes of {days[0]} to {days[-1]}:"
        f" {'no rate' if new is None else f'{new.normalize():f}'} instead of {old.normalize():f}"
        for (pair, old, new), days in low.items()
    ]


def _lowest_rate(rates: Sequence[tuple[date, Decimal]], week: date) -> Decimal | None:
    """The lowest rate that one person may enter for days from `week` on; None if any fall waits."""
    first = week - MONTH
    known = [rate for day, rate in rates if first < day < week]
    carried = _rate_on(rates, first)
    highest = max([*known, *([] if carried is None else [carried])], default=None)
    return None if highest is None else highest * (100 - RATE_FALL_PERCENT) / 100


def _rate_on(rates: Sequence[tuple[date, Decimal]], day: date) -> Decimal | None:
    place = bisect_right(rates, day, key=lambda one: one[0])
    return rates[place - 1][1] if place else None


def prices_below(shelf: Shelf, cost: Decimal | None, currency: str) -> list[dict[str, Any]]:
    """The prices of a shelf, now and later, at which codes of this cost would be sold below it, as
    `as_data` has prices. They are the regular ones and those in the lists that accounts have."""
    terms, now = read_terms(Shelf.objects.filter(pk=shelf.pk)), database_now()
    ((key, one),) = terms.items()
    if cost is not None and currency != one.currency:
        rate = _rate_on(read_rates().get((currency, one.currency), []), now.date())
        cost = None if rate is None else cost * rate
    if cost is None:
        return []
    lists = sorted(lists_in_use({one.currency}))
    lines = read_lines(terms, lists, now)
    below = []
    for price_list in (None, *lists):
        prices = [price for _at, price in lines.get((key, price_list), ()) if price is not None]
        if prices and (lowest := min(prices)) < cost * one.step:
            data = _data(key, price_list, one, lowest)
            words = f"{data['words']}, and a code costs {money_text(cost)}"
            below.append(data | {"words": words, "cost": money_text(cost)})
    return below


def describe_entry(entry: PriceListEntry, start: datetime | None) -> str:
    """An entry of a list as the request for a second person names it."""
    kinds = ("shelf", "topup_product", "product", "category")
    ids = {kind: getattr(entry, f"{kind}_id") for kind in kinds}
    target = next((f"{kind} {pk}" for kind, pk in ids.items() if pk), "everything")
    terms = "the regular price"
    if not entry.for_sale:
        terms = "not for sale"
    elif entry.price is not None:
        terms = money_text(entry.price)
    elif entry.percent_off is not None:
        terms = f"{entry.percent_off} % off"
    words = f"price list {entry.price_list_id}, {target.replace('_', ' ')}: {terms}, from "
    words += f"{start.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" if start else "now"
    if entry.valid_until:
        words += f" until {entry.valid_until.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return words


def as_data(change: PriceChange) -> dict[str, Any]:
    """A change as JSON, for the request for a second person: `words` for the request, and the rest
    for pages (operators/sign_in/asked_changes.py)."""
    new, old, start = change.becomes, change.was.currency, change.start
    data = _data(change.key, change.price_list, new, change.new)
    words = f"{data['words']} instead of {_price(change.old)}"
    if old != new.currency:
        words += f" {old}"
    if start:
        words += f" from {start:%Y-%m-%d %H:%M:%S} UTC"
    return data | {
        "words": words,
        "old": _amount(change.old),
        "was": old,
        "start": start and start.isoformat(),
    }


def _data(key: Key, price_list: ListId, terms: Terms, price: Decimal | None) -> dict[str, Any]:
    """A price of a row as JSON."""
    kind, pk = key
    place = f"{kind} {pk}" + ("" if price_list is None else f", price list {price_list}")
    step = f" for {terms.step}" if terms.step > 1 else ""
    return {
        "words": f"{_name(terms)} ({place}): {_price(price)} {terms.currency}{step}",
        "kind": kind,
        "pk": pk,
        "list": price_list,
        "new": _amount(price),
        "currency": terms.currency,
        "step": terms.step,
    }


def _name(terms: Terms) -> str:
    """The name of a row, which cannot be read as another part of the words: only they have a space
    after a colon or semicolon."""
    return re.sub(r"([:;])\s+", r"\1", terms.name)


def _price(price: Decimal | None) -> str:
    return _amount(price) or "no price"


def _amount(price: Decimal | None) -> str | None:
    return None if price is None else money_text(price)
