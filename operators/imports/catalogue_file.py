"""Reads the file of `import_catalogue` and passes each app its part, in one transaction."""

import json
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn
from uuid import uuid4

from django.contrib.auth.models import User
from django.core.validators import BaseValidator
from django.db import OperationalError, connection, transaction
from django.db.models import Max, Model, QuerySet
from django.utils.translation import gettext_noop
from psycopg.errors import QueryCanceled
from rest_framework import serializers

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from catalogue.imports.catalogue_import import (
    WRONG_ROWS,
    CategoryRow,
    FileRow,
    ProductRow,
    Values,
    advance_ids,
    find_problems,
    lock_out_other_editors,
    name_problems,
    save_catalogue,
)
from catalogue.models import Category, Product, Shelf, ShelfPriceChange, Variation
from core.api.serializer_fields import UNKNOWN_FIELD
from core.database.functions import name_actor
from core.files.doubts import doubt_id, refuse_doubts
from core.inputs import BLANK, KEPT_PROBLEMS, InputProblem, raise_problems
from core.json_output import money_text
from core.texts import english
from figures.price_lines import Key, PriceWatch, Terms, list_names, watch_prices
from operators.imports.catalogue_changes import (
    KINDS,
    Change,
    as_stored,
    find_changes,
    marking_entries,
)
from operators.imports.catalogue_table import (
    LISTS,
    NOT_UTF_8,
    TableContent,
    is_table,
    naming_lines,
    parse_table,
)
from operators.imports.low_prices import (
    changing_prices,
    lock_prices,
    rehearse,
    two_people_set_low_prices,
)
from topups.models import TopUpPriceChange, TopUpProduct
from topups.topup_product_import import (
    WRONG_TOPUP_ROWS,
    TopUpProductRow,
    find_topup_problems,
    save_topup_products,
)

Counts = dict[str, dict[str, int]]
Rows = dict[str, list[Values]]  # of each list in the file

CHECK_SECONDS = 3.0  # purchases of the products in the file wait for as long
MAX_ROWS = 50_000  # that a check reads: the messages about wrong rows need memory
# What is wrong with a file. Imports store it in English, and pages translate it.
TOO_SLOW = gettext_noop(
    "The check took too long, and purchases of these products were waiting for it. Split the file"
    " into smaller ones, or have a server administrator run the command import_catalogue."
)
TOO_MANY_ROWS = gettext_noop(
    "The file has more than %(most)s rows. Split it into smaller ones, or have a server"
    " administrator run the command import_catalogue."
)
NOT_JSON = gettext_noop("%(name)s is not JSON: %(problem)s (line %(line)s, column %(column)s).")
TOO_DEEP = gettext_noop("%(name)s is nested too deeply.")
WRONG_NUMBER = gettext_noop("Cannot read the file or a number in it.")
NO_NUMBER = gettext_noop("%(name)s is not a JSON number.")
REPEATED_NAME = gettext_noop("The name %(name)s appears twice in one object.")
# The causes that Python's reader of JSON gives.
WRONG_JSON = (
    gettext_noop("Expecting value"),
    gettext_noop("Expecting property name enclosed in double quotes"),
    gettext_noop("Expecting ':' delimiter"),
    gettext_noop("Expecting ',' delimiter"),
    gettext_noop("Illegal trailing comma before end of object"),
    gettext_noop("Illegal trailing comma before end of array"),
    gettext_noop("Extra data"),
    gettext_noop("Unterminated string starting at"),
    gettext_noop("Invalid control character at"),
    gettext_noop("Invalid \\escape"),
    gettext_noop("Invalid \\uXXXX escape"),
)


class CatalogueFile(FileRow):
    """The whole file. Each top-level list belongs to one app."""

    categories = serializers.ListField(child=CategoryRow(), default=list)
    products = serializers.ListField(child=ProductRow(), default=list)
    topup_products = serializers.ListField(child=TopUpProductRow(), default=list)


def _messages_of(field: serializers.Field[Any, Any, Any, Any]) -> Iterator[str]:
    """The English messages of a field and of its inner fields, with repetitions.

    Limits keep their placeholders, such as `{max_value}`.
    """
    yield from map(english, field.error_messages.values())
    for validator in field.validators:
        # The validator of a limit repeats a message of the field, with the value filled in.
        if hasattr(validator, "message") and not isinstance(validator, BaseValidator):
            yield english(validator.message)
    if isinstance(field, serializers.ListField):
        yield from _messages_of(field.child)
    elif isinstance(field, serializers.Serializer):
        for one in field.fields.values():
            yield from _messages_of(one)


# What the fields of the file say. Most messages are those of Django REST framework.
MESSAGES_OF_FIELDS = tuple(dict.fromkeys(_messages_of(CatalogueFile())))
WRONG_CATALOGUES = (
    *(TOO_SLOW, TOO_MANY_ROWS, NOT_JSON, TOO_DEEP, WRONG_NUMBER, NO_NUMBER, REPEATED_NAME),
    *(*WRONG_JSON, *WRONG_ROWS, *WRONG_TOPUP_ROWS, UNKNOWN_FIELD, BLANK, *MESSAGES_OF_FIELDS),
)


@dataclass(frozen=True)
class PriceDifference:
    """The change of one price by an import. `percent` is None if the price is removed."""

    name: str
    currency: str
    before: Decimal
    after: Decimal | None

    @property
    def percent(self) -> Decimal | None:
        if self.after is None:
            return None
        return 100 * (self.after - self.before) / self.before

    def in_words(self) -> str:
        """The change as the shell shows it."""
        after = "no price" if self.after is None else f"{money_text(self.after)} {self.currency}"
        return f"{self.name}: {after} instead of {money_text(self.before)}"


class TooSlow(InputProblem):
    """The check of a file took longer than CHECK_SECONDS."""

    def __init__(self) -> None:
        super().__init__(TOO_SLOW)


class PricesChanged(Exception):
    """An import would change other prices than staff confirmed. Nothing was changed."""

    def __init__(self, counts: Counts, prices: list[PriceDifference]) -> None:
        super().__init__("Other prices would change.")
        self.counts, self.prices = counts, prices


def import_catalogue(*, path: Path, actor: str, confirmed: Collection[str] = ()) -> Counts:
    """Creates or updates everything in the file by id, or nothing. Returns counts by kind.

    The price history names `actor` as the person who changed a price. Raises InputProblem with
    each problem and its place in the file, and Doubtful unless the ids of all doubts are
    `confirmed`.
    """
    return import_rows(_read_file(path), actor=actor, confirmed=confirmed)


def doubts_of(content: Any) -> Sequence[str]:
    """The doubts about the content of a file. JSON has none."""
    return content.doubts if isinstance(content, TableContent) else []


def sheet_of(content: Any) -> str:
    """The name of the sheet that was read; empty if the file is no workbook."""
    return content.sheet if isinstance(content, TableContent) else ""


def _read_file(path: Path) -> Any:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputProblem(f"Cannot read {path}: {error.strerror}.") from None
    except ValueError:  # the path contains NUL
        raise InputProblem("Cannot read the file.") from None
    return parse_catalogue(content, name=str(path))


def import_rows(
    content: Any,
    *,
    actor: str,
    user: User | None = None,
    accepts: Callable[[list[PriceDifference]], bool] | None = None,
    confirmed: Collection[str] = (),
) -> Counts:
    """Imports the parsed content of a catalogue file, like `import_catalogue`.

    The audit entry names `user`, or for None who runs the command. Raises PricesChanged if
    `accepts` is False for the prices that change, Doubtful unless the ids of all doubts are
    `confirmed`, and LowPrices if some prices need a second person.
    """
    with naming_lines(content):
        rows, problems = _validate(content)
    with two_people_set_low_prices(*_rows_with_prices(rows), actor=user) as about:
        save = partial(_save, rows, problems, actor=actor)
        in_lists: list[PriceDifference] = []
        with naming_lines(content):
            if Account.objects.exclude(price_list_id=None).exists():  # else there is little to find
                terms = rehearse(about.watched, save)
                in_lists = _differences_in_lists(about.watched, terms) if accepts else []
                about.foresee(terms)
            newest = _newest_changes() if accepts else (0, 0)
            counts = save()
            refuse_doubts(doubts_of(content), confirmed)
        if accepts:
            prices = _price_differences(actor, *newest) + in_lists
            if not accepts(prices):
                raise PricesChanged(counts, prices)
        for model in (Category, Product, Variation, TopUpProduct):
            advance_ids(model)
        note = _in_words(counts)
        record_action(actor=user, action=AuditAction.PRODUCTS_IMPORTED, on=Product, note=note)
    return counts


def _rows_with_prices(rows: Rows) -> list[QuerySet[Any]]:
    """The shelves and top-up products whose prices these rows may change."""
    ids = {name: [row["id"] for row in some if "id" in row] for name, some in rows.items()}
    return [
        Shelf.objects.filter(product__in=ids["products"]),
        TopUpProduct.objects.filter(pk__in=ids["topup_products"]),
    ]


def _in_words(counts: Counts) -> str:
    """The counts for the audit trail, such as `products: 2 created, 1 updated`."""
    parts = (
        (kind.replace("_", " "), [f"{count} {what}" for what, count in found.items() if count])
        for kind, found in counts.items()
    )
    return "; ".join(f"{kind}: {', '.join(words)}" for kind, words in parts if words)


def check_catalogue(*, path: Path) -> dict[str, Any]:
    """Reads a file as `import_catalogue` does and changes nothing; returns what would change, and
    the doubts by their ids. Raises InputProblem."""
    content = _read_file(path)
    counts, prices, changes = preview_rows(content)
    return {
        **counts,
        "prices": [one.in_words() for one in prices],
        "sheet": sheet_of(content),
        "doubts": {doubt_id(one): one for one in doubts_of(content)},
        **as_stored(changes),
    }


def preview_rows(content: Any) -> tuple[Counts, list[PriceDifference], list[Change]]:
    """The result of `import_rows` now: the counts, the prices that would change, and all changes.

    It imports everything and rolls back, so it holds the same locks. Raises InputProblem as
    `import_rows` does, and if it takes longer than CHECK_SECONDS; PricesBusy if it waits too long.
    """
    if _count_rows(content) > MAX_ROWS:
        raise InputProblem(TOO_MANY_ROWS % {"most": f"{MAX_ROWS:,}"})
    with naming_lines(content):
        rows, problems = _validate(content)
    watched = watch_prices(*_rows_with_prices(rows))
    actor = f"check:{uuid4().hex}"  # tells its price changes from concurrent ones
    with changing_prices():
        lock_prices()  # else it would wait for another change of prices within its time
        newest = _newest_changes()
        try:
            with naming_lines(content), _for_at_most(CHECK_SECONDS), marking_entries(actor):
                new = _find_new(rows)
                counts = _save(rows, problems, actor=actor)
                prices = _price_differences(actor, *newest)
                changes, terms = [*find_changes(actor), *new], watched.read_terms()
        except TooSlow as slow:
            raise_problems([*problems, str(slow)], kept=KEPT_PROBLEMS)
        transaction.set_rollback(True)
    prices += _differences_in_lists(watched, terms)
    return counts, prices, changes


def _find_new(rows: Rows) -> list[Change]:
    """The name of each row that is not stored yet, as a change."""
    products = rows["products"]
    lists: list[tuple[type[Model], list[Values]]] = [
        (Category, rows["categories"]),
        (Product, products),
        (Variation, [one for product in products for one in product.get("variations", [])]),
        (TopUpProduct, rows["topup_products"]),
    ]
    return [
        Change("", KINDS[model._meta.label_lower], str(row["id"]), name, "name", "", name)
        for model, of_model in lists
        for row in _not_stored(model, of_model)
        for name in [row["name"]]
    ]


def _not_stored(model: type[Model], rows: list[Values]) -> Iterator[Values]:
    found = {row["id"]: row for row in rows if {"id", "name"} <= row.keys()}
    stored = set(model._default_manager.filter(pk__in=list(found)).values_list("pk", flat=True))
    yield from (row for pk, row in found.items() if pk not in stored)


def _count_rows(content: Any) -> int:
    """The number of elements of all lists, the inner ones included."""
    rows, values = 0, [content]
    while values:
        value = values.pop()
        if isinstance(value, list):
            rows += len(value)
            values += value
        elif isinstance(value, dict):
            values += value.values()
    return rows


def _newest_changes() -> tuple[int, int]:
    return _newest(ShelfPriceChange), _newest(TopUpPriceChange)


def _newest(model: type[ShelfPriceChange | TopUpPriceChange]) -> int:
    return model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0


@contextmanager
def _for_at_most(seconds: float) -> Iterator[None]:
    """Ends the transaction around the block after this time. Raises TooSlow then.

    No statement begins later, and none takes longer.
    """
    end = monotonic() + seconds

    def in_time(execute: Callable[..., Any], *statement: Any) -> Any:
        if monotonic() > end:
            raise TooSlow
        return execute(*statement)

    with connection.cursor() as cursor:
        limits = [f"{seconds * 1000:.0f}", f"{seconds * 500:.0f}"]  # who waits is not slow
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, true),"
            " set_config('lock_timeout', %s, true)",
            limits,
        )
    try:
        with connection.execute_wrapper(in_time):
            yield
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooSlow from None
        raise


def _validate(content: Any) -> tuple[Rows, list[str]]:
    """The rows of each list, and the mistakes that a single row shows. Wrong values are left
    out of their rows, and the rows keep their places."""
    problems = list(content.problems) if isinstance(content, TableContent) else []
    file = CatalogueFile(data=content)
    is_valid = file.is_valid()
    problems += name_problems(file.errors)
    rows = file.validated_data if is_valid else _without(content, file.errors)
    return {name: rows.get(name, []) for name in LISTS.values()}, problems


def _without(content: Any, errors: Any) -> Any:
    """The content without the values that have errors. A row that is no object becomes empty."""
    if not isinstance(errors, dict) or "non_field_errors" in errors:
        return {}
    if isinstance(content, list):
        return [
            _without(one, errors[place]) if place in errors else one
            for place, one in enumerate(content)
        ]
    if isinstance(content, dict):
        return {
            name: _without(one, errors[name]) if name in errors else one
            for name, one in content.items()
            if isinstance(errors.get(name, {}), dict)
        }
    return content


def _save(rows: Rows, problems: list[str], *, actor: str) -> Counts:
    """Saves the rows. Raises InputProblem with `problems` and what `find_problems` and
    `find_topup_problems` find."""
    categories, products, topups = rows["categories"], rows["products"], rows["topup_products"]
    with transaction.atomic():
        name_actor(actor)
        lock_out_other_editors()
        more = chain(find_problems(categories, products), find_topup_problems(categories, topups))
        raise_problems(chain(problems, more), kept=KEPT_PROBLEMS)
        return {
            **save_catalogue(categories=categories, products=products),
            **save_topup_products(products=topups),
        }


def _price_differences(actor: str, after_shelves: int, after_topups: int) -> list[PriceDifference]:
    """The prices that this actor changed, in rows after these. First prices are left out."""
    of_shelves = (
        ShelfPriceChange.objects.filter(pk__gt=after_shelves, changed_by=actor)
        .select_related("shelf__product", "shelf__variation__product")
        .order_by("pk")
    )
    of_topups = (
        TopUpPriceChange.objects.filter(pk__gt=after_topups, changed_by=actor)
        .select_related("product")
        .order_by("pk")
    )
    return [
        *(
            PriceDifference(str(one.shelf), one.shelf.product.currency, one.before, one.after)
            for one in of_shelves
            if one.before is not None  # else its first price
        ),
        *(
            PriceDifference(one.product.name, one.product.currency, one.before, one.after)
            for one in of_topups
        ),
    ]


def _differences_in_lists(watched: PriceWatch, terms: dict[Key, Terms]) -> list[PriceDifference]:
    """The prices in price lists that change otherwise than the regular ones, with these terms."""
    changes = watched.in_lists(terms)
    names = list_names(changes)
    return [
        PriceDifference(
            f"{one.becomes.name} ({names.get(one.price_list or 0, '')})",
            one.becomes.currency,
            one.old,
            one.new,
        )
        for one in changes
        if one.old is not None
    ]


def parse_catalogue(content: bytes, *, name: str) -> Any:
    """The content of a catalogue file: JSON, CSV or a workbook. `name` is that of the file.

    Raises InputProblem.
    """
    if is_table(content, name):
        return parse_table(content)
    try:
        return json.loads(
            content.decode("utf-8-sig"),
            parse_float=Decimal,
            parse_constant=_refuse_constant,
            object_pairs_hook=_refuse_repeated_names,
        )
    except UnicodeDecodeError:
        raise InputProblem(NOT_UTF_8 % {"name": name}) from None
    except json.JSONDecodeError as error:
        values = {"problem": error.msg, "line": error.lineno, "column": error.colno}
        raise InputProblem(NOT_JSON % {"name": name, **values}) from None
    except RecursionError:
        raise InputProblem(TOO_DEEP % {"name": name}) from None
    except InputProblem:
        raise
    except (ValueError, ArithmeticError):  # a number has thousands of digits, or a huge exponent
        raise InputProblem(WRONG_NUMBER) from None


def _refuse_constant(name: str) -> NoReturn:
    raise InputProblem(NO_NUMBER % {"name": name})


def _refuse_repeated_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise InputProblem(REPEATED_NAME % {"name": repr(repeated)})
    return members
