"""An account's merchant references: its own names for shelves, set one by one or by a file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from catalogue.models import ReferenceLink, Shelf
from catalogue.reference_format import broken_rules, is_reference
from catalogue.reference_links import link_reference, replace_references, unlink_reference
from catalogue.selectors import products_on_sale, shelves_on_sale, show_products
from core.api.serializer_fields import MAX_ID
from core.files.table_files import write_table
from core.files.tables import WRONG_TABLES, Columns, Table, read_bytes
from core.files.workbook_sentences import WRONG_WORKBOOKS
from core.files.xml_parts import Limits
from core.formats import local_number
from core.inputs import InputProblem, raise_problems
from core.texts import translate_stored

COLUMNS = ("product_id", "variation_id", "merchant_reference")
EXPORTED = (*COLUMNS, "product", "variation", "price", "currency")
MAX_FILE_BYTES = 2_000_000
MAX_LINES = 20_000
PRODUCTS_AT_ONCE = 500
COLUMNS_OF_TABLE = Columns(
    known=COLUMNS,
    required=COLUMNS,
    keys=frozenset({"merchant_reference"}),
    exact=frozenset({"merchant_reference"}),  # a reference may end with a space
    unread=frozenset(EXPORTED) - frozenset(COLUMNS),
    short_rows=True,
    # A merchant waits for it in a request. 20,000 lines of an exported file have 600,000 elements.
    most=Limits(elements=1_000_000, unpacked_bytes=32 * 1024 * 1024),
)


@dataclass(frozen=True)
class ShelfIds:
    """The ids by which the API names a shelf: `product_id` and `variation_id`."""

    product: int
    variation: int | None


# The reference before and after, by shelf. An empty text is no reference.
Changes = dict[int, tuple[str, str]]
# Why a change is dangerous, in files. Pages say it in the reader's language.
MOVED = "buys something else"
GONE = "buys nothing"
CHANGE_COLUMNS = ("danger", *COLUMNS[:2], "name", "before", "after")


@dataclass(frozen=True)
class CheckedReferences:
    """The changes that a file would make, how many of its rows change nothing, the doubts about it,
    and the name of the sheet of a workbook."""

    changes: Changes
    unchanged: int
    doubts: list[str]
    sheet: str


@dataclass(frozen=True)
class ReferenceChange:
    """A shelf whose reference changes. `is_moved`: the new reference was that of another shelf.
    `is_gone`: the old one is not that of any."""

    is_moved: bool
    is_gone: bool
    shelf: Shelf
    before: str
    after: str


class ChangesMoved(Exception):
    """An import would make other changes than the member confirmed. Nothing was changed."""

    def __init__(self, changes: Changes) -> None:
        super().__init__("Other references would change.")
        self.changes = changes


class ReferenceTaken(Exception):
    """Another shelf, `holder`, has the reference."""

    def __init__(self, holder: Shelf) -> None:
        super().__init__(holder)
        self.holder = holder


def shelf_on_sale(ids: ShelfIds) -> Shelf | None:
    """The shelf with these ids, if merchants see it in the catalogue; None otherwise."""
    shelves = shelves_on_sale().filter(product=ids.product, variation=ids.variation)
    return shelves.select_related("product", "variation").first()


def shelf_of_reference(account: Account, reference: str) -> Shelf | None:
    """The shelf that has this reference of the account; None if no shelf has it."""
    if not is_reference(reference):
        return None
    links = ReferenceLink.objects.filter(account=account, reference=reference)
    link = links.select_related("shelf__product", "shelf__variation").first()
    return None if link is None else link.shelf


@transaction.atomic
def set_reference(
    *, account: Account, shelf: Shelf, reference: str, actor: User, move_from: int | None = None
) -> None:
    """Sets the shelf's reference; an empty `reference` removes it.

    `move_from` is the id of a shelf that may lose the reference to this one. Raises InputProblem
    with the rules that `reference` breaks, and ReferenceTaken if any other shelf has it.
    """
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)  # as link_reference does
    holder = shelf_of_reference(account, reference)
    if holder is not None and holder.pk not in (shelf.pk, move_from):
        raise ReferenceTaken(holder)
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
    raise_problems(broken_rules(reference))
    link_reference(
        account_id=account.pk, reference=reference, actor=actor,
        product_id=shelf.product_id, variation_id=shelf.variation_id,
    )  # fmt: skip


def reference_rows(account: Account) -> Iterator[list[Any]]:
    """The cells of EXPORTED for each shelf of the visible catalogue."""
    last = 0
    while products := list(
        products_on_sale().filter(pk__gt=last).order_by("pk")[:PRODUCTS_AT_ONCE]
    ):
        last = products[-1].pk
        for product in show_products(products, account=account):
            for shelf in (product, *product["variations"]):
                variation = None if shelf is product else shelf
                yield [
                    product["id"],
                    variation and variation["id"],
                    shelf["merchant_reference"],
                    product["name"],
                    variation and variation["name"],
                    shelf["price"],
                    product["currency"],
                ]


def check_references(*, account: Account, data: bytes) -> CheckedReferences:
    """What a CSV or XLSX file would change. Nothing is changed. Raises InputProblem with every bad
    line and its number."""
    table = _open(data)
    references = _shelf_ids(_collect(table))
    changes = changes_of(account, references)
    return CheckedReferences(
        changes=changes,
        unchanged=len(references.keys() - changes.keys()),
        doubts=table.doubts.sentences(),
        sheet=table.sheet,
    )


def import_references(
    *, account: Account, references: Mapping[int, str], digest: str, actor: User
) -> Changes:
    """Sets references by shelf, all of them or none, and returns what changed.

    `digest` is that of the changes that the member confirmed. Raises ChangesMoved with other
    changes, and InputProblem if a reference belongs to another shelf by now.
    """
    with transaction.atomic():
        changes = replace_references(account_id=account.pk, references=references)
        if digest_of(changes) != digest:
            raise ChangesMoved(changes)
        set_, removed = count(changes)
        record_action(
            actor=actor, action=AuditAction.REFERENCE_LINKED, on=account,
            note=f"By file: {set_} set, {removed} removed.",
        )  # fmt: skip
    return changes


def count(changes: Changes) -> tuple[int, int]:
    """How many references are set, and how many removed."""
    removed = sum(not after for _before, after in changes.values())
    return len(changes) - removed, removed


def digest_of(changes: Changes) -> str:
    """A text that differs if any change differs."""
    lines = sorted(f"{shelf} {before!r} {after!r}" for shelf, (before, after) in changes.items())
    return sha256("\n".join(lines).encode()).hexdigest()


def list_changes(changes: Changes) -> list[ReferenceChange]:
    """The changes with the names of their shelves, the dangerous ones first."""
    shelves = Shelf.objects.select_related("product", "variation__product").in_bulk(changes)
    before = {before for before, _after in changes.values() if before}
    after = {after for _before, after in changes.values() if after}
    rows = [
        ReferenceChange(
            is_moved=new in before,
            is_gone=old != "" and old not in after,
            shelf=shelves[pk],
            before=old,
            after=new,
        )
        for pk, (old, new) in changes.items()
    ]
    return sorted(rows, key=lambda one: (not one.is_moved, not one.is_gone, one.shelf.pk))


def changes_as_csv(changes: Changes) -> bytes:
    """All changes as a file for a spreadsheet."""
    rows = (
        [
            *(_danger(one), one.shelf.product_id, one.shelf.variation_id),
            *(str(one.shelf), one.before, one.after),
        ]
        for one in list_changes(changes)
    )
    return b"".join(write_table("csv", CHANGE_COLUMNS, rows))


def _danger(change: ReferenceChange) -> str:
    return ", ".join([MOVED] * change.is_moved + [GONE] * change.is_gone)


def changes_of(account: Account, references: Mapping[int, str]) -> Changes:
    """The changes that these references by shelf would make."""
    with transaction.atomic():
        changes = replace_references(account_id=account.pk, references=references)
        transaction.set_rollback(True)
    return changes


def _open(data: bytes) -> Table:
    if len(data) > MAX_FILE_BYTES:
        raise InputProblem(
            gettext("The file is larger than %(max_file_bytes)s bytes.")
            % {"max_file_bytes": local_number(MAX_FILE_BYTES)}
        )
    return read_bytes(data, COLUMNS_OF_TABLE)


def _collect(table: Table) -> dict[ShelfIds, tuple[int, str]]:
    lines: dict[ShelfIds, tuple[int, str]] = {}
    lines_of: dict[str, int] = {}
    problems = []
    for count, (line, cells, wrong) in enumerate(table.rows, 1):
        if count > MAX_LINES:
            raise InputProblem(
                gettext("The file has more than %(max_lines)s lines.")
                % {"max_lines": local_number(MAX_LINES)}
            )
        problems += [
            gettext("line %(line)s: %(problem)s")
            % {"line": line, "problem": translate_stored(one, *WRONG_TABLES, *WRONG_WORKBOOKS)}
            for one in wrong.values()
        ]
        if wrong:
            continue
        row = dict(zip(table.names, cells, strict=False))
        product_id, variation_id, reference = (row.get(name, "") for name in COLUMNS)
        product, variation = _id(product_id), _id(variation_id)
        if product is None or (variation is None and variation_id):
            problems.append(
                gettext("line %(line)s: product_id and variation_id must be whole numbers")
                % {"line": line}
            )
            continue
        ids = ShelfIds(product, variation)
        if ids in lines:
            first = lines[ids][0]
            problems.append(
                gettext("line %(line)s: line %(first)s has the same product or variation")
                % {"line": line, "first": first}
            )
        if reference:
            problems += [
                gettext("line %(line)s: %(problem)s") % {"line": line, "problem": rule}
                for rule in broken_rules(reference)
            ]
            if reference in lines_of:
                problems.append(
                    gettext("line %(line)s: the same reference is in line %(other)s")
                    % {"line": line, "other": lines_of[reference]}
                )
            lines_of.setdefault(reference, line)
        lines.setdefault(ids, (line, reference))
    raise_problems(problems)
    return lines


def _shelf_ids(lines: dict[ShelfIds, tuple[int, str]]) -> dict[int, str]:
    """The references by shelf id. Raises InputProblem for shelves that merchants do not see."""
    products = list({ids.product for ids in lines})
    shelf_ids: dict[ShelfIds, int] = {}
    for start in range(0, len(products), PRODUCTS_AT_ONCE):
        shelves = shelves_on_sale().filter(product__in=products[start : start + PRODUCTS_AT_ONCE])
        for pk, product, variation in shelves.values_list("pk", "product", "variation"):
            shelf_ids[ShelfIds(product, variation)] = pk
    raise_problems(
        gettext("line %(line)s: %(problem)s") % {"line": line, "problem": _unknown_product(ids)}
        for ids, (line, _) in lines.items()
        if ids not in shelf_ids
    )
    return {shelf_ids[ids]: reference for ids, (_, reference) in lines.items()}


def _unknown_product(ids: ShelfIds) -> str:
    if ids.variation is None:
        return gettext("the catalogue has no product %(product)s") % {"product": ids.product}
    return gettext("the catalogue has no product %(product)s with variation %(variation)s") % {
        "product": ids.product,
        "variation": ids.variation,
    }


def _id(text: str) -> int | None:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    return int(text) if 1 <= int(text) <= MAX_ID else None
