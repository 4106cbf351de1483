"""Price lists: what they say, until when, and the accounts that have them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q, Value
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account
from audit.models import AuditAction
from audit.services import Changes, record_action
from catalogue.models import PriceList, PriceListEntry, Shelf
from catalogue.selectors import MerchantPrice, RegularPrice
from core.database.functions import database_now
from core.inputs import InputProblem, find_row

# What is wrong with a change of a price. Imports store it in English, and pages translate it.
BEGINS_EARLY = gettext_noop("The price cannot begin in the past.")
ENDS_EARLY = gettext_noop("The price ends before it begins.")
HAS_ENDED = gettext_noop("This price has ended already.")
MOVES_TO_PAST = gettext_noop("The price cannot end in the past, or before it begins.")
OVERLAPS = gettext_noop(
    "A later price of the list overlaps this one. Let this one end before it begins."
)
WRONG_ENTRY = gettext_noop(
    "Choose one target, and a price above 0 or a percentage between 0 and 100."
)
NO_TARGET = gettext_noop("The product, shelf or category does not exist any more.")
WRONG_ENTRIES = (
    *(BEGINS_EARLY, ENDS_EARLY, HAS_ENDED, MOVES_TO_PAST, OVERLAPS, WRONG_ENTRY, NO_TARGET),
)


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
    actor: User | str,
    valid_from: datetime | None = None,
    valid_until: datetime | None = None,
) -> PriceListEntry:
    """Adds an entry from a time, or from now. An entry about the same target ends at that time.

    `actor` is a user, or a name such as `shell:anna`. Raises InputProblem if the time is in the
    past, or a later entry about the target overlaps.
    """
    by = _name(actor)
    with transaction.atomic():
        price_list = find_row(PriceList.objects.select_for_update(no_key=True), price_list_id)
        now = database_now()
        begins = valid_from or now
        if begins < now:
            raise InputProblem(_(BEGINS_EARLY))
        if valid_until is not None and valid_until <= begins:
            raise InputProblem(_(ENDS_EARLY))
        running = PriceListEntry.objects.filter(
            **vars(target), price_list=price_list, valid_from__lt=begins
        ).filter(Q(valid_until=None) | Q(valid_until__gt=begins))
        before, regular = None, None
        if terms.price is not None:
            before, regular = _prices_before(price_list, target, begins)
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
        changes = dict(_content(entry))
        if before is not None and before == regular:  # the list has had no price of its own
            changes = {"regular_price": (None, str(regular)), **changes}
        elif before is not None:
            changes["fixed_price"] = (str(before), str(terms.price))
        _record(entry, AuditAction.ADDED, actor, changes)
    return entry


def end_price_entry(*, entry_id: int, actor: User | str) -> None:
    """Ends an entry now; deletes one that has not begun. Raises InputProblem if it has ended."""
    with transaction.atomic():
        entry, now = _lock_open_entry(entry_id)
        if entry.valid_from > now:
            _record(entry, AuditAction.DELETED, actor, _content(entry))
            entry.delete()
            return
        _save_end(entry, now, actor)


def move_end_of_price(*, entry_id: int, until: datetime | None, actor: User | str) -> None:
    """Lets an entry end at another time, or never. Raises InputProblem if it has ended, if the time
    is in the past, or if a later entry about the target overlaps."""
    with transaction.atomic():
        entry, now = _lock_open_entry(entry_id)
        if until is not None and until <= max(now, entry.valid_from):
            raise InputProblem(_(MOVES_TO_PAST))
        try:
            with transaction.atomic():
                _save_end(entry, until, actor)
        except IntegrityError as error:
            raise InputProblem(_problem(error)) from None


def _lock_open_entry(entry_id: int) -> tuple[PriceListEntry, datetime]:
    """The entry, which has not ended, and the present time."""
    entry = find_row(PriceListEntry.objects.select_for_update(), entry_id)
    now = database_now()
    if entry.valid_until is not None and entry.valid_until <= now:
        raise InputProblem(_(HAS_ENDED))
    return entry, now


def _save_end(entry: PriceListEntry, until: datetime | None, actor: User | str) -> None:
    before, entry.valid_until = entry.valid_until, until
    entry.ended_by = "" if until is None else _name(actor)
    entry.save(update_fields=["valid_until", "ended_by"])
    _record(entry, AuditAction.CHANGED, actor, {"valid_until": (_iso(before), _iso(until))})


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
        return _(OVERLAPS)
    if name and "price_entry" in name:
        return _(WRONG_ENTRY)
    return _(NO_TARGET)


def _name(actor: User | str) -> str:
    return actor if isinstance(actor, str) else f"admin:{actor.get_username()}"


def _record(
    entry: PriceListEntry, action: AuditAction, actor: User | str, changes: Changes
) -> None:
    record_action(
        actor=actor, action=action, on=entry, reference=str(entry.price_list), changes=changes
    )


def _prices_before(
    price_list: PriceList, target: Target, at: datetime
) -> tuple[Decimal | None, Decimal | None]:
    """The price of a shelf in this list at a time, and its regular one; None for every other
    target."""
    price = MerchantPrice(
        *(Value(price_list.currency), Value(price_list.pk)),
        *("pk", "product_id", "product__category_id", "product__currency"),
        *("price", "next_price", "next_price_from", Value(at)),
    )
    shelves = Shelf.objects.filter(pk=target.shelf_id or 0)
    regular = RegularPrice("price", "next_price", "next_price_from", Value(at))
    return shelves.values_list(price, regular).first() or (None, None)


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
