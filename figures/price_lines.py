"""The prices of shelves and top-up products over time, for each price list and without one.

`watch_prices` compares them before and after a change, at every later moment at which one of them
changes: an entry begins or ends, or a next price begins. The prices themselves come from the SQL
functions that the purchase calls.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db import connection
from django.db.models import F, IntegerField, Max, QuerySet, Value

from accounts.models import Account
from catalogue.models import PriceList, PriceListEntry, Shelf
from core.database.functions import database_now
from figures.models import EarlierTerms
from topups.models import TopUpProduct

Key = tuple[str, int]  # `shelf` or `topupproduct`, and an id
ListId = int | None  # None: the regular price
Line = list[tuple[datetime, Decimal | None]]  # the price of one unit from each moment on
Lines = dict[tuple[Key, ListId], Line]
PERIOD = timedelta(days=7)  # in which falls of prices add up
SHOWN = 200  # things of which a preview shows the prices in all lists

# The cost of the most expensive code that is in stock or held, in the currency of the shelf. Codes
# that have expired do not count. A cost without an exchange rate is left out. The codes of a batch
# follow each other, by id and by position. So `stock` and `held` read one code of each batch, and
# then the first one behind the batch. Codes without a batch are passed over together, as are those
# of other shelves.
COST = """
    WITH RECURSIVE stock (shelf_id, batch_id, last) AS (
        SELECT id, NULL::bigint, 0::bigint FROM unnest(%(shelves)s::bigint[]) AS shelf (id)
         UNION ALL
        SELECT code.shelf_id, batch.id, greatest(code.position, coalesce(
                   (SELECT position FROM catalogue_vouchercode WHERE id = batch.last_code),
                   (SELECT position - 1 FROM catalogue_vouchercode WHERE id = (
                       SELECT min(first_code) FROM catalogue_batch AS later
                        WHERE later.shelf_id = code.shelf_id AND first_code > code.id
                          AND taken_back_at IS NULL)),
                   9223372036854775807))
          FROM stock
         CROSS JOIN LATERAL (
               SELECT id, shelf_id, position FROM catalogue_vouchercode AS code
                WHERE code.shelf_id = stock.shelf_id AND order_id IS NULL AND hold_id IS NULL
                  AND position > stock.last
                ORDER BY position LIMIT 1) AS code
          LEFT JOIN LATERAL (
               SELECT id, last_code FROM catalogue_batch WHERE first_code <= code.id
                ORDER BY first_code DESC LIMIT 1) AS batch ON last_code >= code.id
    ), held (hold_id, shelf_id, batch_id, last) AS (
        SELECT id, 0::bigint, NULL::bigint, 0::bigint FROM catalogue_codehold
         WHERE voided_at IS NULL
         UNION ALL
        SELECT held.hold_id, code.shelf_id, batch.id, coalesce(
                   CASE WHEN code.shelf_id <> ALL(%(shelves)s::bigint[])
                        THEN 9223372036854775807 END,
                   batch.last_code,
                   (SELECT min(first_code) - 1 FROM catalogue_batch AS later
                     WHERE later.shelf_id = code.shelf_id AND first_code > code.id
                       AND taken_back_at IS NULL),
                   9223372036854775807)
          FROM held
         CROSS JOIN LATERAL (
               SELECT id, shelf_id FROM catalogue_vouchercode AS code
                WHERE code.hold_id = held.hold_id
                  AND (code.shelf_id, code.id) > (held.shelf_id, held.last)
                ORDER BY code.shelf_id, code.id LIMIT 1) AS code
          LEFT JOIN LATERAL (
               SELECT id, last_code FROM catalogue_batch WHERE first_code <= code.id
                ORDER BY first_code DESC LIMIT 1) AS batch ON last_code >= code.id
    )
    SELECT shelf.id, max(CASE WHEN batch.cost_currency = product.currency THEN batch.unit_cost
               ELSE batch.unit_cost * (
                   SELECT rate FROM figures_exchangerate AS known
                    WHERE known.currency = batch.cost_currency AND known.into = product.currency
                      AND day <= (batch.imported_at AT TIME ZONE 'UTC')::date
                    ORDER BY day DESC LIMIT 1) END)
      FROM (SELECT batch_id FROM stock UNION SELECT batch_id FROM held) AS left_over
      JOIN catalogue_batch AS batch ON batch.id = batch_id
      JOIN catalogue_shelf AS shelf ON shelf.id = batch.shelf_id
      JOIN catalogue_product AS product ON product.id = shelf.product_id
     WHERE shelf.id = ANY(%(shelves)s) AND unit_cost IS NOT NULL
       AND (expires_on IS NULL OR expires_on >= (now() AT TIME ZONE 'UTC')::date)
     GROUP BY shelf.id
"""
# The lists whose prices do not only follow the regular ones: an entry began or ended within the
# period, or will, or an account got the list within the period.
UNSTABLE = """
    SELECT price_list_id FROM catalogue_pricelistentry
     WHERE price_list_id = ANY(%(lists)s) AND (valid_from > %(since)s OR valid_until > %(since)s)
     UNION
    SELECT account.price_list_id FROM figures_earlierlist
      JOIN accounts_account AS account ON account.id = account_id
     WHERE until > %(since)s AND account.price_list_id = ANY(%(lists)s)
"""
# The price of each item at its start, and at each moment before its end at which it may change.
# Unless all are asked for, lists that say nothing about an item are left out: its price is the
# regular one.
LINES = """
    SELECT item.n, list.id, moment.at, CASE kind WHEN 'shelf'
           THEN catalogue_price(item.currency, list.id, item.id, product, category, item.currency,
                                price, next_price, next_price_from, moment.at)
           ELSE topups_price(item.currency, list.id, item.id, category, item.currency, price,
                             next_price, next_price_from, moment.at) END
      FROM unnest(%s::text[], %s::bigint[], %s::bigint[], %s::bigint[], %s::text[], %s::numeric[],
                  %s::numeric[], %s::timestamptz[], %s::timestamptz[], %s::timestamptz[])
           WITH ORDINALITY AS item (kind, id, product, category, currency, price, next_price,
                                    next_price_from, since, until, n)
     CROSS JOIN LATERAL (SELECT CASE kind WHEN 'shelf' THEN catalogue_targets(id, product, category)
                                ELSE topups_targets(id, category) END AS all_of OFFSET 0) AS target
      JOIN (SELECT NULL::bigint AS id, NULL::text AS currency UNION ALL
            SELECT id, currency FROM catalogue_pricelist WHERE id = ANY(%s)) AS list
        ON list.id IS NULL OR list.currency = item.currency AND (%s OR EXISTS (
               SELECT FROM catalogue_pricelistentry
                WHERE price_list_id = list.id AND target = ANY(all_of)
                  AND (valid_until IS NULL OR valid_until > since) AND valid_from < until))
     CROSS JOIN LATERAL (
           SELECT since AS at
            UNION SELECT next_price_from
            UNION SELECT unnest(ARRAY[valid_from, valid_until])
                    FROM catalogue_pricelistentry
                   WHERE price_list_id = list.id AND target = ANY(all_of)
                     AND (valid_until IS NULL OR valid_until > since)) AS moment
     WHERE moment.at >= since AND moment.at < until
     ORDER BY 1, 2, 3
"""
PAST = """
    SELECT 'shelf', shelf_id, changed_at, before, id FROM catalogue_shelfpricechange
     WHERE shelf_id = ANY(%(shelf)s) AND starts_at IS NULL AND changed_at > %(since)s
     UNION ALL
    SELECT 'topupproduct', product_id, changed_at, before, id FROM topups_topuppricechange
     WHERE product_id = ANY(%(topupproduct)s) AND starts_at IS NULL AND changed_at > %(since)s
     ORDER BY 3 DESC, 5 DESC
"""
# As `newest_changes` (catalogue/selectors.py).
LAST = """
    SELECT 'shelf', id, changed_at, before FROM unnest(%(shelf)s::bigint[]) AS row (id)
      JOIN LATERAL (SELECT changed_at, before FROM catalogue_shelfpricechange AS change
                     WHERE shelf_id BETWEEN row.id AND row.id AND before IS NOT NULL
                       AND starts_at IS NULL
                     ORDER BY shelf_id DESC, change.id DESC LIMIT 1) AS last ON true
     UNION ALL
    SELECT 'topupproduct', id, changed_at, before
      FROM unnest(%(topupproduct)s::bigint[]) AS row (id)
      JOIN LATERAL (SELECT changed_at, before FROM topups_topuppricechange AS change
                     WHERE product_id BETWEEN row.id AND row.id AND before IS NOT NULL
                       AND starts_at IS NULL
                     ORDER BY product_id DESC, change.id DESC LIMIT 1) AS last ON true
"""


@dataclass(frozen=True)
class Terms:
    """The terms of a price of a shelf or top-up product, besides price lists."""

    name: str = field(compare=False)
    product: int
    category: int | None
    currency: str
    step: int
    price: Decimal | None
    next_price: Decimal | None = None
    next_price_from: datetime | None = None

    def regular_price(self, at: datetime) -> Decimal | None:
        begun = self.next_price_from is not None and self.next_price_from <= at
        return self.next_price if begun else self.price


@dataclass(frozen=True)
class PriceChange:
    """A change of one price from a moment on. `start` is None if that is now.

    `old_list` is the list that the old price is of: another one if an account gets another list.
    `old` and `new` are prices of one unit, and None if there is none.
    """

    key: Key
    price_list: ListId
    old_list: ListId
    at: datetime
    start: datetime | None
    was: Terms
    becomes: Terms
    old: Decimal | None
    new: Decimal | None

    @property
    def old_of_code(self) -> Decimal | None:
        return None if self.old is None else self.old / self.was.step

    @property
    def new_of_code(self) -> Decimal | None:
        return None if self.new is None else self.new / self.becomes.step


@dataclass
class PriceWatch:
    """Prices before a change. `changes` reads those after it, and compares."""

    rows: Sequence[QuerySet[Any]]
    lists: frozenset[int]
    since: datetime
    terms: dict[Key, Terms]
    lines: Lines
    moved: dict[Key, Terms] = field(default_factory=dict)  # the new terms of what has others now
    foreseen: tuple[dict[Key, Terms], list[PriceChange]] | None = None

    def read_terms(self) -> dict[Key, Terms]:
        """The terms now of what was there before the change."""
        return {key: one for key, one in read_terms(*self.rows).items() if key in self.terms}

    def foresee(self, after: dict[Key, Terms]) -> list[PriceChange]:
        """The changes that `changes` returns if a change leads to these terms, before it is made.

        It is for changes of shelves and top-up products only: purchases wait for their rows.
        """
        self.foreseen = after, self.changes(after)
        return self.foreseen[1]

    def changes(
        self, after: dict[Key, Terms] | None = None, *, in_all_lists: bool = False
    ) -> list[PriceChange]:
        """Every price that differs from now on, in order of things, lists and moments.

        `after`: the new terms, if they are not those of now.

        What is new had no price, and is left out. Unless all lists are asked for, so are those that
        only follow the regular prices, and stay above the cost of the codes.
        """
        after = self.read_terms() if after is None else after
        self.moved = {key: one for key, one in after.items() if self.terms[key] != one}
        if self.foreseen and self.foreseen[0] == after and not in_all_lists:
            return self.foreseen[1]
        if not (self.moved or self.lists):
            return []
        now = database_now()
        in_use = lists_in_use({one.currency for one in self.moved.values()}) - self.lists
        some = in_use if in_all_lists else _unstable_lists(in_use, now)
        others = dict.fromkeys(self.moved, some)
        if some != in_use:
            others |= dict.fromkeys(self._of_all_lists(in_use, now), in_use)
        old_lines: Lines = {}
        new_lines: Lines = {}
        for lists in (some, in_use):  # the entries of other lists are as they were
            keys = [key for key in self.moved if others[key] is lists]
            old_lines |= read_lines({key: self.terms[key] for key in keys}, lists, now)
            new_lines |= read_lines({key: self.moved[key] for key in keys}, lists, now)
            if some is in_use:
                break
        old_lines |= self.lines
        if self.lists:
            new_lines |= read_lines(after, self.lists, now)
        return [
            change
            for key, one in (after if self.lists else self.moved).items()
            for price_list in self._lists_of(key, one, others.get(key, set()))
            for change in _differences(
                (key, price_list, price_list), (self.terms[key], one), (old_lines, new_lines), now
            )
        ]

    def _of_all_lists(self, lists: Collection[int], now: datetime) -> list[Key]:
        """The things whose price may fall in a list only, or below cost there. Another category of
        the last week counts, too."""
        entries = PriceListEntry.objects.filter(price_list__in=lists)
        most = entries.aggregate(most=Max("percent_off"))["most"] or Decimal(0)
        costs, earlier = stock_costs(self.moved), _earlier_terms(self.moved, now - PERIOD)
        found = list(earlier)
        for key, new in self.moved.items():
            old = self.terms[key]
            prices = [one for one in (new.price, new.next_price) if one is not None]
            lowest = min(prices, default=Decimal(0)) / new.step * (100 - most) / 100
            if (old.category, old.currency, old.step) != (
                *(new.category, new.currency, new.step),
            ) or lowest < costs.get(key, Decimal(0)):
                found.append(key)
        return found

    def in_lists(self, after: dict[Key, Terms] | None = None) -> list[PriceChange]:
        """The changes in lists that are not those of the regular prices."""
        changes = self.changes(after, in_all_lists=len(self.terms) <= SHOWN)
        regular = {_facts(one) for one in changes if one.price_list is None}
        return [one for one in changes if one.price_list and _facts(one) not in regular]

    def _lists_of(self, key: Key, becomes: Terms, others: set[int]) -> list[ListId]:
        """The lists of which a price may differ. Those of another currency have none."""
        if self.terms[key].currency != becomes.currency:
            return [None]
        return [None, *sorted(self.lists | others)]


def list_names(changes: Iterable[PriceChange]) -> dict[int, str]:
    """The names of the price lists of these changes, by their ids."""
    lists = PriceList.objects.filter(pk__in={one.price_list for one in changes if one.price_list})
    return dict(lists.values_list("pk", "name"))


def watch_prices(*rows: QuerySet[Any], lists: Collection[int] = ()) -> PriceWatch:
    """The prices before a change; `.changes()` after it lists those that differ.

    `rows` are the shelves and top-up products that the change may touch, and `lists` the ids of the
    price lists whose entries it may touch; everything in their currencies is then compared. Call
    both in one transaction. For a rule of two people, use `two_people_set_low_prices`
    (operators/imports/low_prices.py), which calls this.
    """
    lists = frozenset(lists)
    if lists:
        currencies = PriceList.objects.filter(pk__in=lists).values("currency")
        rows = (
            *rows,
            Shelf.objects.filter(product__currency__in=currencies),
            TopUpProduct.objects.filter(currency__in=currencies),
        )
    now, terms = database_now(), read_terms(*rows)
    return PriceWatch(rows, lists, now, terms, read_lines(terms, lists, now) if lists else {})


def changes_of_choice(*, currency: str, old: ListId, new: ListId) -> list[PriceChange]:
    """The prices that differ for an account that gets the list `new` in place of `old`."""
    rows = (
        Shelf.objects.filter(product__currency=currency),
        TopUpProduct.objects.filter(currency=currency),
    )
    terms, now = read_terms(*rows), database_now()
    lines = read_lines(terms, {one for one in (old, new) if one is not None}, now)
    return [
        change
        for key, one in terms.items()
        for change in _differences((key, old, new), (one, one), (lines, lines), now)
    ]


def read_terms(*rows: QuerySet[Any]) -> dict[Key, Terms]:
    """The terms of these shelves and top-up products now."""
    found: dict[Key, Terms] = {}
    for some in rows:
        is_shelf = some.model is Shelf
        columns = some.order_by("pk").values_list(
            "pk",
            *(("product__name", "variation__name") if is_shelf else ("name", "name")),
            *(("product_id", "product__category_id") if is_shelf else ("pk", "category_id")),
            "product__currency" if is_shelf else "currency",
            F("quantity_step") if is_shelf else Value(1, IntegerField()),
            *("price", "next_price", "next_price_from"),
        )
        for pk, name, other, *values in columns:
            whole = f"{name} / {other}" if is_shelf and other else name
            found[some.model._meta.model_name or "", pk] = Terms(whole, *values)
    return found


def read_lines(terms: Mapping[Key, Terms], lists: Collection[int], now: datetime) -> Lines:
    """The prices from now on: regular, and in these lists as far as they say anything."""
    found: Lines = {}
    end = datetime.max.replace(tzinfo=now.tzinfo)
    periods = [_Period(key, one, now, end) for key, one in terms.items()]
    for period, price_list, at, price in _read(periods, lists):
        found.setdefault((period.key, price_list), []).append((at, price))
    return found


def price_at(line: Line, moment: datetime) -> Decimal | None:
    """The price at a moment; before the first one, as then."""
    place = bisect_right(line, moment, key=lambda one: one[0])
    return line[max(0, place - 1)][1]


def _differences(
    pair: tuple[Key, ListId, ListId],
    terms: tuple[Terms, Terms],
    lines: tuple[Lines, Lines],
    now: datetime,
) -> Iterator[PriceChange]:
    """The moments from which on a price differs, one for each pair of prices in a row."""
    key, old_list, new_list = pair
    was, becomes = terms
    old = lines[0].get((key, old_list)) or lines[0].get((key, None)) or [(now, None)]
    new = lines[1].get((key, new_list)) or lines[1].get((key, None)) or [(now, None)]
    last = None
    for at in sorted({now, *(at for at, _price in (*old, *new) if at > now)}):
        prices = (price_at(old, at), price_at(new, at))
        same = prices[0] == prices[1] and _unit(was) == _unit(becomes)
        if not same and prices != last:
            start = None if at == now else at
            yield PriceChange(key, new_list, old_list, at, start, was, becomes, *prices)
        last = None if same else prices


def _facts(change: PriceChange) -> tuple[object, ...]:
    return change.key, change.start, change.old, change.new


def _unit(terms: Terms) -> tuple[int, str]:
    return terms.step, terms.currency


def lists_in_use(currencies: Collection[str]) -> set[int]:
    """The price lists that accounts in these currencies have."""
    accounts = Account.objects.filter(currency__in=currencies, price_list_id__isnull=False)
    return {one for one in accounts.values_list("price_list_id", flat=True).distinct() if one}


def _unstable_lists(lists: Collection[int], now: datetime) -> set[int]:
    if not lists:
        return set()
    with connection.cursor() as cursor:
        cursor.execute(UNSTABLE, {"lists": list(lists), "since": now - PERIOD})
        return {one for (one,) in cursor}


def stock_costs(keys: Iterable[Key]) -> dict[Key, Decimal]:
    """The cost of the most expensive code to sell, of the shelves of which it is known."""
    with connection.cursor() as cursor:
        cursor.execute(COST, {"shelves": [pk for kind, pk in keys if kind == "shelf"]})
        return {("shelf", pk): cost for pk, cost in cursor if cost is not None}


@dataclass(frozen=True)
class _Period:
    """A time in which terms held."""

    key: Key
    terms: Terms
    since: datetime
    until: datetime


def _read(
    periods: Sequence[_Period], lists: Collection[int], *, all_lists: bool = False
) -> Iterator[tuple[_Period, ListId, datetime, Decimal | None]]:
    if not periods:
        return
    columns = zip(
        *(
            (
                *one.key,
                *(one.terms.product, one.terms.category, one.terms.currency, one.terms.price),
                *(one.terms.next_price, one.terms.next_price_from, one.since, one.until),
            )
            for one in periods
        ),
        strict=True,
    )
    with connection.cursor() as cursor:
        cursor.execute(LINES, [*map(list, columns), list(lists), all_lists])
        for number, price_list, at, price in cursor:
            yield periods[number - 1], price_list, at, price


# --- The past ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PastPrice:
    """A price of one code that held up to a time."""

    key: Key
    price_list: ListId
    of_code: Decimal
    until: datetime


def past_prices(
    terms: Mapping[Key, Terms], lists: Collection[int], since: datetime, until: datetime
) -> Iterator[PastPrice]:
    """The prices of codes in a time of the past, by the terms and entries of then."""
    periods = [
        replace(one, until=min(one.until, until))
        for one in _periods(terms, since, database_now())
        if one.since < until
    ]
    rows = list(_read(periods, lists, all_lists=True))
    for place, (period, price_list, _at, price) in enumerate(rows):
        following = rows[place + 1] if place + 1 < len(rows) else None
        same = following and (following[0], following[1]) == (period, price_list)
        end = following[2] if following and same else period.until
        if price is not None:
            yield PastPrice(period.key, price_list, price / period.terms.step, end)


def last_prices(terms: Mapping[Key, Terms]) -> dict[Key, Decimal]:
    """The last regular price of a code that there was, however long ago."""
    earlier = _earlier_terms(terms, None)
    found = {}
    for kind, pk, at, price in _rows(LAST, terms, None):
        steps = [step for until, _category, step in earlier.get((kind, pk), ()) if until >= at]
        found[kind, pk] = price / (steps[0] if steps else terms[kind, pk].step)
    return found


def _periods(terms: Mapping[Key, Terms], since: datetime, now: datetime) -> Iterator[_Period]:
    """The periods of the past, each with its terms, from the newest to the oldest."""
    prices: dict[Key, list[tuple[datetime, Decimal | None]]] = {}
    for kind, pk, at, before in _rows(PAST, terms, since):
        prices.setdefault((kind, pk), []).append((at, before))
    earlier = _earlier_terms(terms, since)
    for key, one in terms.items():
        state = replace(one, price=one.regular_price(now), next_price=None, next_price_from=None)
        events: list[tuple[datetime, dict[str, Any]]] = [
            *((at, {"price": before}) for at, before in prices.get(key, ())),
            *(
                (until, {"category": category, "step": step})
                for until, category, step in earlier.get(key, ())
            ),
        ]
        if one.next_price_from is not None and since < one.next_price_from <= now:
            events.append((one.next_price_from, {"price": one.price}))
        end = now
        # The sort keeps the order of events of one time.
        for at, values in sorted(events, key=lambda event: event[0], reverse=True):
            if at < end:
                yield _Period(key, state, at, end)
                end = at
            state = replace(state, **values)
        yield _Period(key, state, since, end)


def _earlier_terms(
    terms: Iterable[Key], since: datetime | None
) -> dict[Key, list[tuple[datetime, int | None, int]]]:
    """When terms ended, their category and step, the oldest first."""
    ids = _ids(terms)
    rows = EarlierTerms.objects.order_by("until", "pk")
    if since is not None:
        rows = rows.filter(until__gt=since)
    found: dict[Key, list[tuple[datetime, int | None, int]]] = {}
    for kind, column in (("shelf", "shelf_id"), ("topupproduct", "topup_product_id")):
        columns = (column, "until", "category", "step")
        some = rows.filter(**{f"{column}__in": ids[kind]})
        for pk, until, category, step in some.values_list(*columns):
            found.setdefault((kind, pk), []).append((until, category, step))
    return found


def _rows(
    statement: str, terms: Iterable[Key], since: datetime | None
) -> list[tuple[str, int, datetime, Decimal]]:
    """The rows of a statement about the history, as it orders them."""
    with connection.cursor() as cursor:
        cursor.execute(statement, {**_ids(terms), "since": since})
        return [row[:4] for row in cursor]


def _ids(terms: Iterable[Key]) -> dict[str, list[int]]:
    keys = list(terms)
    return {kind: [pk for one, pk in keys if one == kind] for kind in ("shelf", "topupproduct")}
