"""Members of accounts for tests."""

import itertools

from django.contrib.auth.models import User
from django.test import Client

from accounts.models import Account
from merchants.models import Membership, Role

_numbers = itertools.count(1)


def make_member(account: Account, role: Role = Role.OWNER) -> User:
    """A person of the account."""
    email = f"person{next(_numbers)}@example.com"
    user = User.objects.create_user(email, email)
    Membership.objects.create(user=user, account=account, role=role)
    return user


def sign_in_as(user: User) -> Client:
    """A browser in which this person is signed in."""
    browser = Client()
    browser.force_login(user)
    return browser
