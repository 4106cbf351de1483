"""Finds, hands over and deletes what is stored about a person (docs/operate/personal-data.md).

Each app declares in its `backoffice.py` what its tables hold about people (`Personal`).
"""

import os
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from django.apps import apps
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Q, Value
from django.db.models.functions import Concat, Lower

from audit.models import AuditAction
from audit.services import record_action
from core.backoffice.declarations import Personal, Whose
from core.backoffice.registry import back_offices
from core.backoffice.search import LONGEST
from core.inputs import InputProblem, clean_text, is_id
from core.json_output import dumps
from merchants.models import Membership, Role
from merchants.people.members import members_of
from topups.models import DELETED_PLAYER_ID

PERSONAL = [personal for app in back_offices() for personal in app.personal]


class By(StrEnum):
    """The kinds of values that find a person."""

    EMAIL = "email"
    NAME = "name"
    TELEGRAM_ID = "telegram_id"
    PLAYER_ID = "player_id"


@dataclass(frozen=True)
class Person:
    """The values by which the rows of a person are found.

    users: members of staff and members; more than one if they share a name.
    products: the top-up products whose players are meant; empty for all.
    """

    users: list[User] = field(default_factory=list)
    emails: list[str] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    player_ids: list[str] = field(default_factory=list)
    products: list[int] = field(default_factory=list)

    def parameters(self) -> dict[str, list[Any]]:
        """The lists that the conditions of `Personal.find` use. Emails and names are in lower case,
        and as they are stored."""
        usernames = [user.username for user in self.users]
        addresses = [user.email for user in self.users if user.email]
        emails = {*self.emails, *addresses, *(name for name in usernames if "@" in name)}
        lower = set(_in_lower_case(emails))
        return {
            "users": [user.pk for user in self.users],
            "usernames": [*usernames, *lower],
            "emails": sorted(emails | lower),
            "names": _in_lower_case(self.names),
            "player_ids": self.player_ids,
            "products": self.products,
        }


def find_person(text: str) -> dict[str, Any]:
    """The number of rows by table, for each thing that the text can be and that finds any."""
    text = _clean(text)
    return {by.value: found for by in By if (found := _describe(_person(by, text)))}


def hand_over_person(
    by: By, text: str, *, products: Collection[int] = (), to: Path
) -> dict[str, Any]:
    """Writes what is stored about one person to a new file, without secrets, and without texts that
    may be about somebody else. Returns the number of rows by table.

    Raises InputProblem if there is no such person or more than one, or if the file exists.
    """
    person = _one_person(by, text, products)
    found: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for personal in PERSONAL:
        if personal.columns or personal.context:
            found[personal.table] += _rows(personal, person)
    rows = {table: each for table, each in found.items() if each}
    content, counts = dumps(rows), {table: len(each) for table, each in rows.items()}
    with transaction.atomic():
        _record(AuditAction.PERSON_HANDED_OVER, person, counts)
        try:
            with os.fdopen(os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
        except OSError as error:
            raise InputProblem(f"Cannot write {to}: {error.strerror}.") from None
    return {"file": str(to), "rows": counts}


@transaction.atomic
def delete_person(
    by: By, text: str, *, products: Collection[int] = (), apply: bool
) -> dict[str, Any]:
    """Deletes what is stored about one person; without `apply` it only counts.

    Returns the number of rows by table that are deleted or emptied, and what is kept and why.
    Raises InputProblem if there is no such person or more than one, if they can sign in, or if they
    are the only owner of an account in use.
    """
    person = _one_person(by, text, products)
    for user in person.users:
        _refuse_user(user)
    _refuse_shared_address(person)
    deleted: Counter[str] = Counter()
    kept = {}
    for personal, found in [(each, _keys(each, person)) for each in PERSONAL]:
        if found and personal.delete:
            deleted[personal.table] += _delete(personal, found, apply=apply)
        if found and personal.kept:
            kept[personal.table] = {"rows": len(found), "kept": personal.kept}
    deleted = +deleted
    if apply:
        _record(AuditAction.PERSON_DELETED, person, deleted)
    return {"applied": apply, "deleted": dict(deleted), "kept": kept}


def _clean(text: str) -> str:
    return clean_text(text, what="text", max_length=LONGEST)


def _one_person(by: By, text: str, products: Collection[int]) -> Person:
    text = _clean(text)
    person = replace(_person(by, text), products=[*products])
    found = _describe(person)
    if not found:
        raise InputProblem(f"Nothing is stored about a person with this {by.replace('_', ' ')}.")
    several = [user.username for user in person.users] + _contacts(person.names)
    if len(several) > 1:
        raise InputProblem(
            f"Several people are found: {', '.join(several)}. Give an email or a username."
        )
    if by is By.PLAYER_ID and not products and len(games := _products(person)) > 1:
        raise InputProblem(
            "Players of different games may have the same ID. Give the top-up products of this"
            f" player with --product: {', '.join(f'{pk} ({name})' for pk, name in games)}."
        )
    return person


def _person(by: By, text: str) -> Person:
    if by is By.PLAYER_ID:
        return Person(player_ids=[text] if text != DELETED_PLAYER_ID else [])
    if by is By.TELEGRAM_ID:
        links = Q(telegram_link__telegram_user_id=int(text)) if is_id(text) else Q(pk=None)
        return Person(users=list(User.objects.filter(links)))
    if by is By.EMAIL:
        users = User.objects.filter(Q(email__iexact=text) | Q(username__iexact=text))
        return Person(users=list(users.order_by("pk")), emails=[text]) if "@" in text else Person()
    full = Lower(Concat("first_name", Value(" "), "last_name"))
    users = User.objects.annotate(full_name=full).order_by("pk")
    if exact := users.filter(username=text):
        return Person(users=list(exact))
    named = users.filter(Q(username__iexact=text) | Q(full_name=Lower(Value(text))))
    return Person(users=list(named), names=[text])


def _in_lower_case(texts: Collection[str]) -> list[str]:
    """As the database writes them. Python writes letters such as İ otherwise."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT lower(each) FROM unnest(%s::text[]) AS each", [list(texts)])
        return [text for (text,) in cursor]


def _describe(person: Person) -> dict[str, int]:
    """The number of rows by table."""
    counts: Counter[str] = Counter()
    for personal in PERSONAL:
        counts[personal.table] += len(_keys(personal, person))
    return dict(+counts)


def _refuse_shared_address(person: Person) -> None:
    """Rows with an address would be deleted for somebody else, too."""
    values = person.parameters()
    others = User.objects.filter(
        Q(email__in=values["emails"]) | Q(username__in=values["usernames"]), is_active=True
    ).exclude(pk__in=values["users"])
    if other := others.first():
        raise InputProblem(
            f"{other.username} can sign in, and has the same email. Change it first, on the page of"
            " one of them."
        )


def _refuse_user(user: User) -> None:
    if user.is_active:
        raise InputProblem(
            f"{user.username} can still sign in. End their access first, on their page in the back"
            " office, or let an owner of the account remove them."
        )
    membership = Membership.objects.select_related("account").filter(user=user).first()
    if membership and membership.role == Role.OWNER and membership.blocked_at:
        owners = members_of(membership.account).filter(role=Role.OWNER)
        if membership.account.enabled and not owners.exists():
            raise InputProblem(
                f"{user.username} is the only owner of {membership.account}, which is in use."
                " Invite another owner, or switch the account off first."
            )


def _contacts(names: list[str]) -> list[str]:
    """The companies whose contact has this name, in words: each contact may be somebody else."""
    accounts = {
        row.get("account_id")
        for personal in PERSONAL
        if personal.whose is Whose.CONTACTS
        for row in _rows(personal, Person(names=names))
    }
    return sorted(f"the contact of account {pk}" if pk else "our contact" for pk in accounts)


def _products(person: Person) -> list[tuple[int, str]]:
    """The top-up products of the orders of a player."""
    sql = (
        "SELECT DISTINCT product.id, product.name FROM topups_fulfilment"
        " JOIN topups_topupproduct AS product ON product.id = product_id"
        " WHERE player_id = ANY(%(player_ids)s) ORDER BY product.id"
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, person.parameters())
        return list(cursor.fetchall())


# The parts of these statements are declared in the code. None comes from a person.


def _keys(personal: Personal, person: Person) -> list[Any]:
    return [next(iter(row.values())) for row in _read(personal, person, [_key_of(personal.table)])]


def _rows(personal: Personal, person: Person) -> list[dict[str, Any]]:
    columns = [_key_of(personal.table), *personal.context, *personal.columns]
    return list(_read(personal, person, list(dict.fromkeys(columns))))


def _read(personal: Personal, person: Person, columns: list[str]) -> Iterator[dict[str, Any]]:
    """These columns of the person's rows. A table is not read if no value could find a row."""
    parameters = person.parameters()
    used = set(re.findall(r"%\((\w+)\)s", personal.find)) - {"products"}
    if not any(parameters[name] for name in used):
        return
    names = ", ".join(map(connection.ops.quote_name, columns))
    sql = f"SELECT {names} FROM {personal.table} WHERE {personal.find} ORDER BY 1"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        for row in cursor:
            yield dict(zip(columns, row, strict=True))


def _delete(personal: Personal, keys: list[Any], *, apply: bool) -> int:
    """Deletes or empties those rows for which it is allowed now. Returns how many."""
    chosen = f"WHERE {_key_of(personal.table)} = ANY(%(keys)s) AND ({personal.when or 'true'})"
    if not apply:
        sql = f"SELECT FROM {personal.table} {chosen}"
    elif personal.delete == "DELETE":
        sql = f"DELETE FROM {personal.table} {chosen}"  # noqa: S608
    else:
        sql = f"UPDATE {personal.table} SET {personal.delete} {chosen}"  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, {"keys": keys})
        number: int = cursor.rowcount
    return number


def _key_of(table: str) -> str:
    models = apps.get_models(include_auto_created=True)
    (key,) = (model._meta.pk.column for model in models if model._meta.db_table == table)
    return str(key)


def _record(action: AuditAction, person: Person, counts: Mapping[str, int]) -> None:
    """The entry names the row of a user, and no address, player id or name."""
    on = person.users[0] if person.users else User
    rows = ", ".join(f"{table} {number}" for table, number in counts.items())
    record_action(actor=None, action=action, on=on, note=f"Rows: {rows or 'none'}")
