"""A merchant's own names for shelves."""

from collections.abc import Mapping

from django.db import transaction

from accounts.models import Account
from catalogue.code_import import find_shelf
from catalogue.models import ReferenceLink
from catalogue.reference_format import validate_reference
from catalogue.selectors import shelves_on_sale
from config.inputs import find_row, refuse


def link_reference(
    *, account_id: int, reference: str, product_id: int, variation_id: int | None = None
) -> ReferenceLink:
    """Makes `reference` the account's name of a shelf; returns the link.

    One name per shelf and one shelf per name: what either of the two stood for before is let go,
    so a merchant renames by linking anew. Raises InputProblem or ValidationError.
    """
    shelf = find_shelf(product_id=product_id, variation_id=variation_id)
    validate_reference(reference)
    with transaction.atomic():
        # Links of one account are made one after the other.
        account = find_row(Account.objects.select_for_update(no_key=True), account_id)
        links = ReferenceLink.objects.filter(account=account)
        links.filter(reference=reference).exclude(shelf=shelf).delete()
        link, _ = links.update_or_create(
            account=account, shelf=shelf, defaults={"reference": reference}
        )
    return link


def unlink_reference(
    *, account_id: int, product_id: int, variation_id: int | None = None
) -> ReferenceLink | None:
    """Takes the account's name off a shelf; returns the link that was, if there was one.

    Raises InputProblem for an unknown shelf.
    """
    shelf = find_shelf(product_id=product_id, variation_id=variation_id)
    with transaction.atomic():
        links = ReferenceLink.objects.select_for_update().filter(account=account_id, shelf=shelf)
        link = links.first()
        if link is not None:
            ReferenceLink.objects.filter(pk=link.pk).delete()
    return link


def replace_references(*, account_id: int, names: Mapping[int, str]) -> tuple[int, int]:
    """Gives each of these shelves its name, by shelf id; an empty one takes the name off.

    Names may be exchanged among the shelves. Returns how many links were made or changed, and how
    many taken off. Raises InputProblem, and changes nothing, where a name stands for a shelf on
    sale that is not among these; one that is not on sale any more loses it. The names have been
    validated, and no two are the same.
    """
    with transaction.atomic():
        account = find_row(Account.objects.select_for_update(no_key=True), account_id)
        links = ReferenceLink.objects.filter(account=account)
        wanted = [name for name in names.values() if name]
        elsewhere = links.filter(reference__in=wanted).exclude(shelf__in=names)
        for link in elsewhere.exclude(shelf__in=shelves_on_sale()):
            link.delete()
        refuse(
            f"{link.reference!r} is the name of another shelf ({link.shelf}): name that in the file"
            " too, or take the name off it first"
            for link in elsewhere.select_related("shelf__product", "shelf__variation")
        )
        before = dict(links.filter(shelf__in=names).values_list("shelf_id", "reference"))
        changed = [shelf for shelf, name in names.items() if before.get(shelf, "") != name]
        links.filter(shelf__in=changed).delete()
        made = ReferenceLink.objects.bulk_create(
            ReferenceLink(account=account, shelf_id=shelf, reference=names[shelf])
            for shelf in changed
            if names[shelf]
        )
    return len(made), len(changed) - len(made)
