"""Price lists: what they say, until when, and the accounts that have them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from accounts.models import Account
from audit.models import AuditAction
from audit.services import Changes, record_action
from catalogue.models import PriceList, PriceListEntry
from core.database.functions import database_now
from core.inputs import InputProblem, find_row


@dataclass(frozen=True)
class Target:
    """The target of an entry: one id, or none for everything."""

    category_id: int | None = None
    product_id: int | None = None
    shelf_id: int | None = None
    topup_product_id: int | None = None


@dataclass(frozen=True)
class Terms:
    """The terms of an entry: not for sale, a fixed price, percent off, or the regular price."""

    for_sale: bool = True
    price: Decimal | None = None
    percent_off: Decimal | None = None


def add_price_entry(
    *,
    price_list_id: int,
    target: Target,
    terms: Terms,
    actor: User,
    valid_from: datetime | None = None,
    valid_until: datetime | None = None,
) -> PriceListEntry:
    """Adds an entry from a time, or from now. An entry about the same target ends at that time.

    Raises InputProblem if the time is in the past, or a later entry about the target overlaps.
    """
    by = f"admin:{actor.get_username()}"
    with transaction.atomic():
        price_list = find_row(PriceList.objects.select_for_update(no_key=True), price_list_id)
        now = database_now()
        begins = valid_from or now
        if begins < now:
            raise InputProblem(_("The price cannot begin in the past."))
        if valid_until is not None and valid_until <= begins:
            raise InputProblem(_("The price ends before it begins."))
        running = PriceListEntry.objects.filter(
            **vars(target), price_list=price_list, valid_from__lt=begins
        ).filter(Q(valid_until=None) | Q(valid_until__gt=begins))
        running.update(valid_until=begins, ended_by=by)
        try:
            with transaction.atomic():
                entry = PriceListEntry.objects.create(
                    price_list=price_list,
                    **vars(target),
                    **vars(terms),
                    valid_from=begins,
                    valid_until=valid_until,
                    added_by=by,
                )
        except IntegrityError as error:
            raise InputProblem(_problem(error)) from None
        _record(entry, AuditAction.ADDED, actor, _content(entry))
    return entry


def end_price_entry(*, entry_id: int, actor: User) -> None:
    """Ends an entry now; deletes one that has not begun. Raises InputProblem if it has ended."""
    with transaction.atomic():
        entry = find_row(PriceListEntry.objects.select_for_update(), entry_id)
        now = database_now()
        if entry.valid_until is not None and entry.valid_until <= now:
            raise InputProblem(_("This price has ended already."))
        if entry.valid_from > now:
            _record(entry, AuditAction.DELETED, actor, _content(entry))
            entry.delete()
            return
        before, entry.valid_until = entry.valid_until, now
        entry.ended_by = f"admin:{actor.get_username()}"
        entry.save(update_fields=["valid_until", "ended_by"])
        _record(entry, AuditAction.CHANGED, actor, {"valid_until": (_iso(before), _iso(now))})


def assign_price_list(*, account_id: int, price_list_id: int | None, actor: User) -> bool:
    """Gives the account this list, or none; returns whether that changed anything.

    Raises InputProblem if the list has another currency.
    """
    with transaction.atomic():
        account = find_row(Account.objects.select_for_update(no_key=True), account_id)
        if account.price_list_id == price_list_id:
            return False
        names = dict(
            PriceList.objects.filter(
                pk__in=[one for one in (account.price_list_id, price_list_id) if one]
            ).values_list("pk", "name")
        )
        if price_list_id is not None:
            price_list = find_row(PriceList.objects.all(), price_list_id)
            if price_list.currency != account.currency:
                raise InputProblem(
                    _("%(price_list)s is in %(currency)s, and the account in %(other)s.")
                    % {
                        "price_list": price_list,
                        "currency": price_list.currency,
                        "other": account.currency,
                    }
                )
        Account.objects.filter(pk=account.pk).update(price_list_id=price_list_id)
        record_action(
            actor=actor,
            action=AuditAction.CHANGED,
            on=account,
            reference=str(account),
            changes={
                "price_list": (names.get(account.price_list_id or 0), names.get(price_list_id or 0))
            },
        )
    return True


def _problem(error: DatabaseError) -> str:
    name = getattr(getattr(error.__cause__, "diag", None), "constraint_name", "")
    if name == "catalogue_price_entries_do_not_overlap":
        return _("A later price of the list overlaps this one. Let this one end before it begins.")
    if name and "price_entry" in name:
        return _("Choose one target, and a price above 0 or a percentage between 0 and 100.")
    return _("The product, shelf or category does not exist any more.")


def _record(entry: PriceListEntry, action: AuditAction, actor: User, changes: Changes) -> None:
    record_action(
        actor=actor, action=action, on=entry, reference=str(entry.price_list), changes=changes
    )


def _content(entry: PriceListEntry) -> Changes:
    values = {
        "category": entry.category_id,
        "product": entry.product_id,
        "shelf": entry.shelf_id,
        "topup_product": entry.topup_product_id,
        "for_sale": entry.for_sale,
        "fixed_price": None if entry.price is None else str(entry.price),
        "percent_off": None if entry.percent_off is None else str(entry.percent_off),
        "valid_from": _iso(entry.valid_from),
        "valid_until": _iso(entry.valid_until),
    }
    return {name: (None, value) for name, value in values.items() if value is not None}


def _iso(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()
