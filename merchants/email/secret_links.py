"""Tokens of the secret links in emails: made when an email is sent, and stored nowhere, not even in
a session."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core import signing
from django.db.models import QuerySet
from django.utils.crypto import constant_time_compare, salted_hmac

from core.api.serializer_fields import MAX_ID

INVITATION_VALID_FOR = timedelta(days=7)
STAFF_INVITATION_VALID_FOR = timedelta(days=3)  # emails and pages say "three days"
_SALT = "merchants.invitation"
_STAFF_SALT = "merchants.staff_invitation"


def sign_invitation(invitation_id: int) -> str:
    """The token of an invitation. The caller must check that it is still open."""
    return signing.dumps(invitation_id, salt=_SALT)


def read_invitation(token: str) -> int | None:
    """The id of the token's invitation; None if the token is invalid or older than seven days."""
    try:
        number: int = signing.loads(token, salt=_SALT, max_age=INVITATION_VALID_FOR)
    except signing.BadSignature:
        return None
    return number


def sign_reset(user: User) -> str:
    """The token for a new password. A new password or another sign-in makes it invalid."""
    return f"{user.pk}:{default_token_generator.make_token(user)}"


def read_reset(token: str, users: QuerySet[User]) -> User | None:
    """The user among `users` whom this token belongs to; None if it is invalid or expired."""
    number, _, secret = token.partition(":")
    if not (number.isascii() and number.isdigit() and len(number) < 20) or int(number) > MAX_ID:
        return None
    user = users.filter(pk=int(number)).first()
    return user if user and default_token_generator.check_token(user, secret) else None


def sign_staff_invitation(user: User) -> str:
    """The token with which a new member of staff chooses a password. A new password, a sign-in or
    another address makes it invalid."""
    return signing.dumps([user.pk, _state_of(user)], salt=_STAFF_SALT)


def read_staff_invitation(token: str, users: QuerySet[User]) -> User | None:
    """The user among `users` whom this token belongs to; None if it is invalid or older than three
    days."""
    try:
        number, state = signing.loads(token, salt=_STAFF_SALT, max_age=STAFF_INVITATION_VALID_FOR)
    except signing.BadSignature:
        return None
    user = users.filter(pk=number).first()
    return user if user and constant_time_compare(state, _state_of(user)) else None


def _state_of(user: User) -> str:
    return salted_hmac(_STAFF_SALT, f"{user.password} {user.last_login} {user.email}").hexdigest()
