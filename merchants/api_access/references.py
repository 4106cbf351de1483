"""An account's own names for shelves: one by one, and all at once by CSV."""

import csv
import io
from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from catalogue.models import ReferenceLink, Shelf
from catalogue.reference_format import broken_rules, is_reference
from catalogue.reference_links import link_reference, replace_references, unlink_reference
from catalogue.selectors import products_on_sale, shelves_on_sale, show_products
from config.api.fields import MAX_ID
from config.inputs import InputProblem, refuse

COLUMNS = ("product_id", "variation_id", "merchant_reference")
EXPORTED = (*COLUMNS, "product", "variation", "price", "currency")
MAX_FILE_BYTES = 2_000_000
MAX_LINES = 20_000
PRODUCTS_AT_ONCE = 500


@dataclass(frozen=True)
class ShelfName:
    """A shelf as a merchant names it in the API."""

    product: int
    variation: int | None


class NameTaken(Exception):
    """Another shelf has the name; it is the exception's only argument."""

    def __init__(self, bearer: Shelf) -> None:
        super().__init__(bearer)
        self.bearer = bearer


def sold_shelf(place: ShelfName) -> Shelf | None:
    """The shelf, if it is in the catalogue that merchants see."""
    found = shelves_on_sale().filter(product=place.product, variation=place.variation)
    return found.select_related("product", "variation").first()


def shelf_named(account: Account, reference: str) -> Shelf | None:
    """The shelf that the account calls so."""
    if not is_reference(reference):
        return None
    link = ReferenceLink.objects.filter(account=account, reference=reference)
    found = link.select_related("shelf__product", "shelf__variation").first()
    return None if found is None else found.shelf


@transaction.atomic
def name_shelf(
    *, account: Account, shelf: Shelf, reference: str, actor: User, move_from: int | None = None
) -> None:
    """Names the shelf; an empty name takes its name off. `move_from` is the id of another shelf
    that may lose the name to this one.

    Raises InputProblem with the rules that the name breaks, and NameTaken where another shelf than
    that has it.
    """
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)  # as link_reference does
    bearer = shelf_named(account, reference)
    if bearer is not None and bearer.pk not in (shelf.pk, move_from):
        raise NameTaken(bearer)
    if not reference:
        unlinked = unlink_reference(
            account_id=account.pk, product_id=shelf.product_id, variation_id=shelf.variation_id
        )
        if unlinked is not None:
            record_action(
                actor=actor, action=AuditAction.REFERENCE_UNLINKED, on=shelf,
                reference=unlinked.reference,
            )  # fmt: skip
        return
    refuse(broken_rules(reference))
    link = link_reference(
        account_id=account.pk, reference=reference,
        product_id=shelf.product_id, variation_id=shelf.variation_id,
    )  # fmt: skip
    record_action(
        actor=actor, action=AuditAction.REFERENCE_LINKED, on=link, reference=reference,
        note=str(shelf),
    )  # fmt: skip


def export_references(account: Account) -> Generator[bytes]:
    """The whole catalogue as CSV, line by line, with the account's names in it."""
    out = io.StringIO()
    writer = csv.writer(out)

    def line(values: Iterable[Any]) -> bytes:
        writer.writerow([_harmless(value) for value in values])
        text = out.getvalue()
        out.seek(0)
        out.truncate()
        return text.encode()

    yield b"\xef\xbb\xbf" + line(EXPORTED)  # by which spreadsheets know UTF-8
    last = 0
    while products := list(
        products_on_sale().filter(pk__gt=last).order_by("pk")[:PRODUCTS_AT_ONCE]
    ):
        last = products[-1].pk
        for product in show_products(products, account=account):
            for shelf in (product, *product["variations"]):
                variation = None if shelf is product else shelf
                yield line(
                    [
                        product["id"],
                        variation and variation["id"],
                        shelf["merchant_reference"],
                        product["name"],
                        variation and variation["name"],
                        shelf["price"],
                        product["currency"],
                    ]
                )


def import_references(*, account: Account, data: bytes, actor: User) -> tuple[int, int]:
    """Takes the names from a CSV file, all of them or none; returns how many were set, and how many
    taken off.

    Raises InputProblem that names the lines.
    """
    names = _shelf_ids(_read(data))
    with transaction.atomic():
        made, removed = replace_references(account_id=account.pk, names=names)
        if made or removed:
            record_action(
                actor=actor, action=AuditAction.REFERENCE_LINKED, on=account,
                note=f"By file: {made} set, {removed} taken off.",
            )  # fmt: skip
    return made, removed


def _read(data: bytes) -> dict[ShelfName, tuple[int, str]]:
    """Line number and name of each shelf in the file."""
    if len(data) > MAX_FILE_BYTES:
        raise InputProblem(f"The file is larger than {MAX_FILE_BYTES:,} bytes.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputProblem(f"Line {line} is not UTF-8: save the file as CSV UTF-8.") from None
    first = text.partition("\n")[0]
    delimiter = ";" if first.count(";") > first.count(",") else ","
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
        if missing:
            raise InputProblem(f"The first line lacks the heading {missing[0]}.")
        return _collect(reader)
    except csv.Error as error:
        raise InputProblem(f"Line {reader.line_num} is not CSV: {error}.") from None


def _collect(reader: "csv.DictReader[str]") -> dict[ShelfName, tuple[int, str]]:
    found: dict[ShelfName, tuple[int, str]] = {}
    lines_of: dict[str, int] = {}
    problems = []
    for count, row in enumerate(reader, 1):
        line = reader.line_num
        if count > MAX_LINES:
            raise InputProblem(f"The file has more than {MAX_LINES:,} lines.")
        product, variation = _id(row["product_id"]), _id(row["variation_id"])
        reference = row["merchant_reference"] or ""
        if product is None or (variation is None and (row["variation_id"] or "").strip()):
            problems.append(f"line {line}: an id is a whole number")
            continue
        place = ShelfName(product, variation)
        if place in found:
            problems.append(f"line {line}: the same shelf is in line {found[place][0]}")
        if reference:
            problems += [f"line {line}: {rule}" for rule in broken_rules(reference)]
            if reference in lines_of:
                problems.append(f"line {line}: the same name is in line {lines_of[reference]}")
            lines_of.setdefault(reference, line)
        found.setdefault(place, (line, reference))
    refuse(problems)
    return found


def _shelf_ids(names: dict[ShelfName, tuple[int, str]]) -> dict[int, str]:
    """The names by shelf id. Raises InputProblem for what merchants do not see."""
    products = list({place.product for place in names})
    ids: dict[ShelfName, int] = {}
    for start in range(0, len(products), PRODUCTS_AT_ONCE):
        shelves = shelves_on_sale().filter(product__in=products[start : start + PRODUCTS_AT_ONCE])
        for pk, product, variation in shelves.values_list("pk", "product", "variation"):
            ids[ShelfName(product, variation)] = pk
    refuse(
        f"line {line}: the catalogue has no product {place.product}"
        + (f" with variation {place.variation}" if place.variation else "")
        for place, (line, _) in names.items()
        if place not in ids
    )
    return {ids[place]: reference for place, (_, reference) in names.items()}


def _id(text: str | None) -> int | None:
    text = (text or "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    return int(text) if 1 <= int(text) <= MAX_ID else None


def _harmless(value: Any) -> str:
    """A text that a spreadsheet will not take for a formula."""
    text = "" if value is None else str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
