"""Linking merchant references to shelves, one by one or all at once."""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from catalogue.models import ReferenceLink, Shelf
from catalogue.reference_format import validate_reference
from catalogue.selectors import find_shelf, shelves_on_sale
from core.inputs import InputProblem, find_row, raise_problems


def link_reference(
    *,
    account_id: int,
    reference: str,
    product_id: int,
    variation_id: int | None = None,
    actor: User | None,
) -> ReferenceLink:
    """Links the account's `reference` to a shelf; returns the link. `actor` is for the audit trail.

    Per account, a shelf has one reference and a reference one shelf: earlier links of both are
    replaced. Raises InputProblem or ValidationError.
    """
    shelf = find_shelf(product_id=product_id, variation_id=variation_id)
    validate_reference(reference)
    with transaction.atomic():
        # One change at a time per account: the account's row is locked first.
        account = find_row(Account.objects.select_for_update(no_key=True), account_id)
        links = ReferenceLink.objects.filter(account=account)
        links.filter(reference=reference).exclude(shelf=shelf).delete()
        link, _created = links.update_or_create(
            account=account, shelf=shelf, defaults={"reference": reference}
        )
        record_action(
            actor=actor,
            action=AuditAction.REFERENCE_LINKED,
            on=link,
            reference=reference,
            note=str(shelf),
        )
    return link


def unlink_reference(
    *, account_id: int, product_id: int, variation_id: int | None = None
) -> ReferenceLink | None:
    """Removes the account's reference of a shelf; returns the removed link, or None.

    Raises InputProblem for an unknown shelf.
    """
    shelf = find_shelf(product_id=product_id, variation_id=variation_id)
    with transaction.atomic():
        links = ReferenceLink.objects.select_for_update().filter(account=account_id, shelf=shelf)
        link = links.first()
        if link is not None:
            ReferenceLink.objects.filter(pk=link.pk).delete()
    return link


def replace_references(
    *, account_id: int, references: Mapping[int, str]
) -> dict[int, tuple[str, str]]:
    """Links many shelves at once; returns the reference before and after, by shelf, where it
    changed. An empty text is no reference.

    `references` maps shelf ids to validated, distinct references; an empty one removes the link.
    Shelves may swap references. If a reference belongs to a shelf outside `references`, that link
    is removed when its shelf is not on sale. Otherwise InputProblem is raised and nothing changes.
    """
    with transaction.atomic():
        account = find_row(Account.objects.select_for_update(no_key=True), account_id)
        if Shelf.objects.filter(pk__in=references).count() < len(references):
            raise InputProblem(_("A product was removed meanwhile. Choose the file again."))
        links = ReferenceLink.objects.filter(account=account)
        names = [reference for reference in references.values() if reference]
        elsewhere = links.filter(reference__in=names).exclude(shelf__in=references)
        replaced = {}
        for link in elsewhere.exclude(shelf__in=shelves_on_sale()):
            replaced[link.shelf_id] = (link.reference, "")
            link.delete()
        raise_problems(
            _(
                "the reference '%(reference)s' belongs to %(shelf)s. Add %(shelf)s to the file, or"
                " remove its reference first"
            )
            % {"reference": link.reference, "shelf": link.shelf}
            for link in elsewhere.select_related("shelf__product", "shelf__variation")
        )
        before = dict(links.filter(shelf__in=references).values_list("shelf_id", "reference"))
        changed = [shelf for shelf, new in references.items() if before.get(shelf, "") != new]
        links.filter(shelf__in=changed).delete()
        ReferenceLink.objects.bulk_create(
            ReferenceLink(account=account, shelf_id=shelf, reference=references[shelf])
            for shelf in changed
            if references[shelf]
        )
    return {**replaced, **{one: (before.get(one, ""), references[one]) for one in changed}}
