"""A person for the demo shop's merchant, so that `make run` has somebody to sign in."""

import secrets
from dataclasses import replace

from django.contrib.auth.models import User
from django.db import transaction

from accounts.models import Account
from merchants.models import Membership, Role
from operators.demo import MERCHANT, Demo, keep_demo, load_demo, welcome

OWNER = "owner@demo.example"


def load_demo_with_owner() -> Demo:
    """The demo shop, with an owner of its merchant's account. A lost password stays lost."""
    with transaction.atomic():
        demo = load_demo()
        account = Account.objects.filter(name=MERCHANT).order_by("pk")[0]
        demo = replace(demo, owner_password=_keep_owner(account, demo.owner_password))
        keep_demo(demo)
    return demo


def welcome_with_owner(demo: Demo, *, base_url: str) -> str:
    """What to do next, with the merchants' page and who can sign in there."""
    page = f"{base_url.rstrip('/')}/merchant/"
    password = demo.owner_password or f"(yours; `manage.py changepassword {OWNER}` sets another)"
    line = f"Merchant {page}   user {OWNER}, password {password}\n"
    before, api_key, after = welcome(demo, base_url=base_url).partition("API key ")
    return f"{before}{line}{api_key}{after}"


def _keep_owner(account: Account, password: str) -> str:
    user = User.objects.filter(username=OWNER).first()
    if user is not None:
        return password if user.check_password(password) else ""
    if Membership.objects.filter(account=account).exists():
        return ""  # somebody made it theirs
    password = password or secrets.token_urlsafe(12)
    user = User.objects.create_user(OWNER, OWNER, password)
    Membership.objects.create(user=user, account=account, role=Role.OWNER)
    return password
