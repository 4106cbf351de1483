"""A merchant's own names for shelves."""

from django.db import transaction

from accounts.models import Account
from catalogue.code_import import find_shelf
from catalogue.models import ReferenceLink
from catalogue.references import validate_reference
from config.inputs import find_row


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
