"""Makes members of accounts, and browsers in which they are signed in."""

import itertools
import time
from datetime import datetime
from functools import cache
from typing import Any

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in
from django.contrib.sessions.models import Session
from django.http import HttpRequest
from django.test import Client
from django.utils.crypto import get_random_string

from accounts.models import Account
from accounts.sign_in.confirmation import CONFIRMED, CONFIRMED_SECONDS
from accounts.sign_in.sessions import SessionStore
from merchants.models import Membership, Role
from tests.factories import make_account

PASSWORDS = "accounts.sign_in.limits.PasswordBackend"
PASSWORD = "correct horse battery staple"
_numbers = itertools.count(1)


@cache
def _hashed() -> str:
    """Cached, because hashing a password is slow on purpose."""
    return make_password(PASSWORD)


def make_member(
    account: Account | None = None, role: Role = Role.OWNER, *, email: str | None = None
) -> Membership:
    """Makes a member of this account, or of a new one, who signs in with PASSWORD."""
    email = email or f"{role}-{next(_numbers)}@merchant.example"
    user = User.objects.create(username=email, email=email, password=_hashed())
    return Membership.objects.create(user=user, account=account or make_account(), role=role)


def browser_of(member: Membership | User | None = None, *, csrf: bool = False) -> Client:
    """A browser in which this person has just shown their password, or nobody if none is given."""
    browser = Client(enforce_csrf_checks=csrf)
    user = member.user if isinstance(member, Membership) else member
    if user is not None:
        open_session(browser, user)
    return browser


def open_session(browser: Client, user: User, **values: str) -> None:
    """Signs a person in as if they had just entered their password. `values` are added to the
    session. `force_login` of Django's client would write the session several times."""
    request = HttpRequest()
    session = request.session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = PASSWORDS
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    user_logged_in.send(sender=User, request=request, user=user)
    session.update({CONFIRMED: time.time() + CONFIRMED_SECONDS, **values})
    row = Session.objects.create(
        session_key=get_random_string(32),
        session_data=session.encode(dict(session.items())),
        expire_date=session.get_expiry_date(),
    )
    browser.cookies[settings.SESSION_COOKIE_NAME] = row.session_key


def viewer_of(account: Account) -> Client:
    """A browser in which a new viewer of the account is signed in."""
    return browser_of(make_member(account, Role.VIEWER))


def end_of(browser: Client) -> datetime:
    """The fixed end of the browser's session. It ends sooner if nobody uses it."""
    return SessionStore(browser.session.session_key).end


def follow_link(browser: Client, link: str, *, password: str = "") -> Any:
    """Opens a link of an email, as its page's script does; then sends the password, if there is
    one."""
    page, _, token = link.partition("#")
    chosen = {"new_password1": password, "new_password2": password} if password else {}
    return browser.post(page, {"token": token, **chosen})
