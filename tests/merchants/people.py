"""What the tests of the merchants' page share: people of an account, and their browsers."""

import itertools

from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page

from accounts.models import Account
from merchants.access import Member
from merchants.models import Membership, Role
from tests.browsing import PASSWORD
from tests.factories import make_account

_numbers = itertools.count(1)


def make_member(
    account: Account | None = None, role: Role = Role.OWNER, *, email: str = ""
) -> Member:
    """Somebody of this account, with the password of the tests; of a new account unless given."""
    email = email or f"{role.value}{next(_numbers)}@example.com"
    account = account or make_account()
    user = User.objects.create_user(email, email, PASSWORD)
    Membership.objects.create(user=user, account=account, role=role)
    return Member(user, account, role)


def sign_in_as(member: Member) -> Client:
    """The browser of this person, signed in."""
    browser = Client()
    browser.force_login(member.user, "django.contrib.auth.backends.ModelBackend")
    return browser


def sign_in(page: Page, member: Member) -> None:
    """Signs in with a real browser, as a person does."""
    page.goto("/merchant/sign-in/")
    page.fill("[name=username]", member.user.email)
    page.fill("[name=password]", PASSWORD)
    page.click("main button")
    page.wait_for_url("**/merchant/")
