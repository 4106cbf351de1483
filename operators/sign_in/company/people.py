"""The staff accounts behind company accounts, and their roles at each sign-in.

The subject (`sub`) at the issuer is the identity. A name or an email is looked at once, at the
first sign-in, and never gives access to a merchant's member or to a superuser.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone

from audit.actor import acting_as, who_and_where
from audit.models import AuditAction
from audit.people import record_on_user
from audit.services import record_action
from core.database.columns import NOTE_LENGTH
from core.texts import english
from merchants.models import Membership
from operators.sign_in.company.settings import CompanySignIn
from operators.sign_in.models import (
    NAME_TAKEN,
    NO_NAME,
    NO_ROLE,
    SWITCHED_OFF,
    UNREADABLE,
    CompanyIdentity,
)

ACTOR = "company sign-in"  # as the audit trail names it
MAX_NAME = 150  # of Django's usernames
MAX_SUBJECT = 255  # OpenID Connect Core, "ID Token"
MAX_EMAIL = 254  # of Django's emails


class Refusal(Exception):
    """A person with a valid company account does not get in. The lazy message is for them, and
    may name the claim that is the reason."""

    def __init__(self, message: str, *, user: User | None = None, claim: str = "") -> None:
        super().__init__(message)
        self.message, self.user, self.claim = message, user, claim

    def __str__(self) -> str:
        return str(self.message) % {"claim": self.claim}


@dataclass(frozen=True)
class Person:
    """A person as a valid ID token describes them. An untrusted name or email is empty."""

    issuer: str
    subject: str
    name: str
    email: str
    roles: Set[str]
    showed_factor: bool


def read_person(claims: Mapping[str, Any], company: CompanySignIn) -> Person:
    """The person whom the checked claims of an ID token describe.

    Raises Refusal, with an entry in the audit trail, if a claim has a wrong type.
    """
    subject, acr = str(claims["sub"]), claims.get("acr")
    try:
        _require(_is_text(subject), "sub")
        _require(acr is None or isinstance(acr, str), "acr")
        methods = {("amr", value) for value in _texts(claims, "amr")}
        roles = _texts(claims, company.roles_claim)
    except Refusal as refusal:
        _record_refusal(refusal, subject=subject)
        raise
    email = _text(claims.get("email")).lower() if claims.get("email_verified") is True else ""
    verified = email if len(email) <= MAX_EMAIL else ""
    name = verified if company.name_claim == "email" else _find(claims, company.name_claim)
    return Person(
        issuer=company.issuer,
        subject=subject,
        name=User.normalize_username(_text(name)),
        email=verified,
        roles={company.roles[value] for value in roles if value in company.roles},
        showed_factor=bool({*methods, ("acr", acr)} & company.second_factors),
    )


def admit(person: Person, company: CompanySignIn) -> User:
    """The staff account of this person, with the roles of the claim. Creates it if needed.

    Raises Refusal, with an entry in the audit trail. A person whose roles are gone also loses
    the groups and all sessions here.
    """
    try:
        with acting_as(ACTOR):
            return _admit(person, company)
    except Refusal as refusal:
        _record_refusal(refusal, subject=person.subject, email=person.email)
        raise


def _admit(person: Person, company: CompanySignIn) -> User:
    identity = _find_identity(person)
    if identity is None:
        try:
            user = _welcome(person, company)
        except IntegrityError:  # another request of the same person was faster, or took the name
            identity = _find_identity(person)
            if identity is None:
                raise Refusal(NAME_TAKEN) from None
    if identity is not None:
        user = identity.user
    if not person.roles:
        _take_access_away(user)
        raise Refusal(NO_ROLE, user=user)
    if not (user.is_active and user.is_staff):
        raise Refusal(SWITCHED_OFF, user=user)
    with transaction.atomic():
        _set_roles(user, person.roles)
        CompanyIdentity.objects.filter(user=user).update(
            email=person.email, signed_in_at=timezone.now()
        )
    return user


def _find_identity(person: Person) -> CompanyIdentity | None:
    identities = CompanyIdentity.objects.select_related("user")
    return identities.filter(issuer=person.issuer, subject=person.subject).first()


@transaction.atomic
def _welcome(person: Person, company: CompanySignIn) -> User:
    """Creates or links the account of a person who signs in for the first time."""
    if not person.roles:
        raise Refusal(NO_ROLE)
    if not _is_username(person.name) or not 0 < len(person.subject) <= MAX_SUBJECT:
        raise Refusal(NO_NAME)
    user = _find_namesake(person, company)
    if user is None:
        # No usable password: without the company account there is no access here.
        user = User.objects.create_user(person.name, person.email, password=None, is_staff=True)
    else:
        user.set_unusable_password()  # also ends the sessions
        user.save(update_fields=["password"])
    CompanyIdentity.objects.create(
        user=user, issuer=person.issuer, subject=person.subject, email=person.email
    )
    record_on_user(user, AuditAction.COMPANY_LINKED, actor=None, note=_describe(person.subject))
    return user


def _is_username(name: str) -> bool:
    """Whether it can be the username of a person.

    Records name the actors of the service in the same columns, such as `system` and `client:7`.
    """
    if not 0 < len(name) <= MAX_NAME or who_and_where(name.lower()) != (name.lower(), ""):
        return False
    return any(_accepts(rule, name) for rule in (User.username_validator, validate_email))


def _accepts(validator: Callable[[str], None], value: str) -> bool:
    try:
        validator(value)
    except ValidationError:
        return False
    return True


def _find_namesake(person: Person, company: CompanySignIn) -> User | None:
    """The existing account to link, or None if the name is free. Raises Refusal otherwise."""
    same = Q(username__iexact=person.name) | Q(email__iexact=person.name)
    if person.email:
        same |= Q(username__iexact=person.email) | Q(email__iexact=person.email)
    namesakes = list(User.objects.select_for_update().filter(same)[:2])
    if not namesakes:
        return None
    user = namesakes[0]
    if (
        len(namesakes) == 1
        and company.links_by_email
        and person.email != ""
        and person.email in (user.email.lower(), user.username.lower())
        and user.is_staff
        and user.is_active
        and not user.is_superuser
        and not Membership.objects.filter(user=user).exists()
        and not CompanyIdentity.objects.filter(user=user).exists()
    ):
        return user
    raise Refusal(NAME_TAKEN)


def _set_roles(user: User, roles: Set[str]) -> None:
    """Gives the user exactly these groups. The audit trail records each change."""
    if roles != set(user.groups.values_list("name", flat=True)):
        user.groups.set(Group.objects.filter(name__in=roles))


@transaction.atomic
def _take_access_away(user: User) -> None:
    _set_roles(user, set())
    user.user_permissions.clear()
    user.set_unusable_password()  # ends the sessions, whose hash depends on it
    user.save(update_fields=["password"])


def _record_refusal(refusal: Refusal, *, subject: str, email: str = "") -> None:
    words = english(refusal.message) % {"claim": refusal.claim}
    with acting_as(ACTOR):
        record_action(
            actor=None,
            action=AuditAction.SIGN_IN_REFUSED,
            on=refusal.user or User,
            reference=refusal.user.get_username() if refusal.user else email,
            note=f"{_describe(subject)}: {words}",
        )


def _describe(subject: str) -> str:
    return f"Subject {subject if _is_text(subject) else ascii(subject)}"[:NOTE_LENGTH]


def _find(claims: Mapping[str, Any], path: str) -> Any:
    """A claim by its name, or by a path such as `realm_access.roles`; None if there is none."""
    if path in claims:
        return claims[path]
    value: Any = claims
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _texts(claims: Mapping[str, Any], path: str) -> list[str]:
    """The values of a claim that is a text, a list of texts, or missing. Raises Refusal."""
    claim = _find(claims, path)
    values = claim if isinstance(claim, list) else [] if claim is None else [claim]
    _require(all(isinstance(one, str) for one in values), path)
    return values


def _require(readable: bool, claim: str) -> None:
    if not readable:
        raise Refusal(UNREADABLE, claim=claim)


def _text(value: Any) -> str:
    """The claim as a text without spaces around it, or empty if it cannot be stored."""
    return value.strip() if isinstance(value, str) and _is_text(value) else ""


def _is_text(value: str) -> bool:
    """Whether PostgreSQL can store the text and people can read it."""
    return value.isprintable()
