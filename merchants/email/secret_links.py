"""Tokens of the secret links in emails: made when an email is sent, and stored nowhere, not even in
a session."""

from datetime import timedelta

from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.core import signing
from django.db.models import QuerySet

from core.api.serializer_fields import MAX_ID

INVITATION_VALID_FOR = timedelta(days=7)
_SALT = "merchants.invitation"


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
