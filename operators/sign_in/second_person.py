"""Changes that let people reach more: two members of staff must do the same within a day.

The table of operators/sign_in/reach.py says which permissions two administrators give.

One administrator alone could otherwise invite two people with the role Finance, take over the
account of a colleague with that role, or raise the limit above which a booking waits for a second
person.
"""

import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from hashlib import sha256
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import connection, transaction
from django.db.models import Model, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext_noop

from accounts.models import Account, ApiClient
from audit.models import AuditAction
from audit.services import record_action
from catalogue.models import Batch, PriceList, Shelf
from core.texts import english
from operators.sign_in.models import TwoPersonChange
from operators.sign_in.reach import NEEDS_TWO
from topups.models import TopUpProduct
from wallets.models import BookingLimit

WAITS_FOR = timedelta(days=1)
WAITING = Q(
    approved_at=None,
    ended_at=None,
    asked_at__gt=Now() - WAITS_FOR,
    asked_by__is_active=True,
    asked_by__is_staff=True,
)
# Changes of people, as requests name them.
WITH_ROLE = gettext_noop("the role %(role)s")
WITHOUT_ROLE = gettext_noop("without the role %(role)s")
NAME_AND_EMAIL = gettext_noop("the name %(name)s and the email %(email)s")
# The rows that the data of a request names.
ROWS: dict[str, type[Model]] = {
    "account": Account,
    "batch": Batch,
    "client": ApiClient,
    "person": User,
    "pricelist": PriceList,
    "role": Group,
    "shelf": Shelf,
    "topupproduct": TopUpProduct,
}
# People whose change waits for another administrator.
IS_TO_CHANGE = Q(pk__in=TwoPersonChange.objects.filter(WAITING).exclude(about=None).values("about"))
REQUEST = "two_person_request"  # in an audit entry: the id of the request
REJECTED = "rejected"  # in the data of a request: who rejected it, and their note
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"


def lock_roles() -> None:
    """Keeps roles from getting rights while they are given to people, in this transaction."""
    _lock("two people: roles")


def lock_rows_of(model: type[Model]) -> None:
    """Lets changes of these rows that need two people wait for each other, in this transaction.

    Call it before the row is read: two pairs that save different values at once would otherwise
    each agree to a change of the same old values.
    """
    _lock(f"two people: {model._meta.label}")


def _lock(key: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [key])


def needs_two(roles: Collection[Group], *people: User) -> bool:
    """Whether only two administrators together give what these roles, or these people by single
    permissions, may do.

    People who are switched off count: they can be switched on again.
    """
    codes = Permission.objects.filter(Q(group__in=roles) | Q(user__in=people))
    names = codes.values_list("content_type__app_label", "codename")
    return bool({f"{app}.{codename}" for app, codename in names} & NEEDS_TWO)


def given_by_two(role: Group) -> bool:
    """Whether only two administrators together give this role to a person."""
    return needs_two([role]) or BookingLimit.objects.filter(group=role).exists()


def roles_for_two(*, user: User, wants: set[Group]) -> set[Group]:
    """The roles that only two administrators together give to this person or take away.

    Without a role with a limit, a person may book more alone: their other rights may have no limit.
    """
    has = set(user.groups.all())
    given = {role for role in wants - has if given_by_two(role)}
    limited = BookingLimit.objects.filter(group__in=has - wants).values_list("group", flat=True)
    moves = needs_two(has & wants, user)
    return given | {role for role in has - wants if moves and role.pk in set(limited)}


def waiting_for(user: User) -> QuerySet[TwoPersonChange]:
    """The changes of this person that wait for another administrator."""
    return waiting_changes().filter(about=user)


def waiting_changes() -> QuerySet[TwoPersonChange]:
    """The changes that wait for another person."""
    waiting = TwoPersonChange.objects.filter(WAITING)
    return waiting.select_related("asked_by").order_by("pk")


@transaction.atomic
def ask_or_agree(
    *,
    what: str,
    about: User | None,
    actor: User,
    right: str = "",
    data: Mapping[str, Any] | None = None,
) -> bool:
    """Whether the change may be made: another member of staff asked for it within a day.

    If nobody did, the request of `actor` waits, and False is returned. Superusers act alone. The
    request and the agreement are in the audit trail, on what they are about. `right` and `data`
    (operators/sign_in/asked_changes.py) are for pages and the audit trail; only `what` and `about`
    make two requests the same.
    """
    _lock_change(what, about)
    now = timezone.now()
    others = waiting_changes().filter(what=what, about=about).exclude(asked_by=actor)
    asked = others.first()
    if asked and others.update(approved_by=actor, approved_at=now):
        note = f"Asked by {asked.asked_by}: {without_digest(what)}"
        _record(asked, AuditAction.REQUEST_AGREED, actor=actor, note=note)
        return True
    if actor.is_superuser:
        return True
    change, _made = TwoPersonChange.objects.update_or_create(
        what=what,
        about=about,
        approved_at=None,
        defaults={"asked_by": actor, "asked_at": now, "ended_at": None}
        | {"right": right, "data": data or {}},
    )
    note = f"Waits for another: {without_digest(what)}"
    _record(change, AuditAction.REQUEST_MADE, actor=actor, note=note)
    return False


@transaction.atomic
def end_changes_of(leaver: User, *, actor: User) -> int:
    """Ends the changes that a person asked for, with their access. Returns how many."""
    done = f"Ended with the access of {leaver}"
    asked = waiting_changes().filter(asked_by=leaver)
    return sum(end_change(change, actor=actor, done=done) for change in asked)


@transaction.atomic
def end_change(change: TwoPersonChange, *, actor: User, note: str = "", done: str = "") -> bool:
    """Withdraws a change for its asker, or rejects it for another person. `done` names another end.

    Returns False if it no longer waits. The audit entry is on the same rows as its request.
    """
    _lock_change(change.what, change.about)
    rejects = not done and change.asked_by != actor
    data = change.data | ({REJECTED: [str(actor), note]} if rejects else {})
    if not waiting_changes().filter(pk=change.pk).update(ended_at=timezone.now(), data=data):
        return False
    done = done or ("Rejected" if rejects else "Withdrawn")
    action = AuditAction.REQUEST_REJECTED if rejects else AuditAction.REQUEST_ENDED
    note = f"{note + '. ' if note else ''}{done}: {without_digest(change.what)}"
    _record(change, action, actor=actor, note=note)
    return True


def _record(change: TwoPersonChange, action: AuditAction, *, actor: User, note: str) -> None:
    """Adds an audit entry about each row that the change is about; if it names none, about the
    person who asked. Pages show the request that it names in words (history/entries.py)."""
    rows: list[Any] = [change.about] if change.about else _rows_of(change.data)
    for row in rows or [change.asked_by]:
        record_action(
            actor=actor,
            action=action,
            on=row,
            reference=english(row),
            note=note,
            changes={REQUEST: (None, change.pk)},
        )


def _rows_of(data: Mapping[str, Any]) -> list[Model]:
    """The rows that a change is about: an account, price lists, or what has a regular price."""
    pairs: list[Any]
    if "account" in data:
        pairs = [("account", data["account"])]
    elif "row" in data:
        pairs = [tuple(data["row"])]
    else:
        pairs = [
            ("pricelist", one["list"]) if one.get("list") else (one["kind"], one["pk"])
            for one in data.get("prices", ())
            if "pk" in one
        ]
    found = (ROWS[kind]._default_manager.filter(pk=pk).first() for kind, pk in dict.fromkeys(pairs))
    return [row for row in found if row is not None]


def digest_of(*values: object) -> str:
    """A digest for the end of a request: requests are the same only with the same values."""
    return sha256(repr(values).encode()).hexdigest()[:32]


def without_digest(what: str) -> str:
    """The words of a change for people: those without the digest at their end."""
    return re.sub(r"[:,] [0-9a-f]{32}\Z", "", what)


def _lock_change(what: str, about: User | None) -> None:
    """Lets people who ask for one change, agree to it or end it wait for each other."""
    key = what if about is None else f"{what} of user {about.pk}"
    _lock(f"two people: {key}")
