"""A merchant joins and an operator leaves, in real browsers. Nobody is a superuser."""

import re
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group, User
from django.core import mail
from django.urls import reverse
from django_otp.oath import totp
from playwright.sync_api import Browser, Page, expect

from accounts.models import Account, SecondFactor
from core.backoffice.staff_roles import StaffRole
from merchants.email.sending import sweep_emails
from operators.upkeep.reconcile import reconcile
from tests.browsing import take_session
from tests.factories import Merchant, make_topup_product
from tests.live import LiveServer
from tests.merchants.people import PASSWORD
from tests.operators.back_office import make_staff, signed_in, url
from topups.models import Fulfilment

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone"),
]

QUEUE = "/admin/topups/fulfilment/"


class Staff:
    """A colleague with one role, and their browser."""

    def __init__(self, role: StaffRole, live: LiveServer, browser: Browser) -> None:
        self.user = make_staff()
        self.user.groups.add(Group.objects.get(name=role.value))
        self.page = browser.new_context(base_url=live.base_url).new_page()
        take_session(self.page, live, signed_in(self.user))


def open_account(page: Page) -> Account:
    """A merchant manager opens an account and invites its owner."""
    page.goto(reverse("admin:accounts_account_add"))
    page.get_by_label("Name").fill("Star Games")
    page.get_by_label("Currency").fill("USD")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("body")).to_contain_text("was added successfully")
    account = Account.objects.get(name="Star Games")
    page.goto(f"{reverse('admin:merchants_invitation_add')}?account={account.pk}")
    page.get_by_label("Email").fill("owner@star.example")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("body")).to_contain_text("was added successfully")
    return account


def link_to_join() -> str:
    sweep_emails()
    (sent,) = (each for each in mail.outbox if each.to == ["owner@star.example"])
    parts = urlsplit(re.findall(r"https?://\S+", str(sent.body))[0])
    return f"{parts.path}#{parts.fragment}"


def code_of(user: User) -> str:
    SecondFactor.objects.filter(user=user).update(last_step=-1)
    return f"{totp(SecondFactor.objects.get(user=user).key):06d}"


def join(page: Page) -> None:
    """The owner joins, requires a second factor of everybody, and sets up their own."""
    page.goto(link_to_join())
    page.fill("[name=new_password1]", PASSWORD)
    page.fill("[name=new_password2]", PASSWORD)
    page.get_by_role("button", name="Join").click()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="People").click()
    page.get_by_role("link", name="Require a second factor").click()
    expect(page.get_by_role("main")).to_contain_text("Without one now: owner@star.example")
    page.get_by_role("button", name="Require").click()
    expect(page.get_by_role("main")).to_contain_text("require a second factor of everybody")
    page.get_by_label("Code").fill(code_of(User.objects.get(email="owner@star.example")))
    page.get_by_label("Your password").fill(PASSWORD)
    page.get_by_role("button", name="Turn on").click()
    page.get_by_role("link", name="Done").click()


def issue_key(page: Page) -> str:
    """The owner creates a client and its key, which asks who they are."""
    page.goto("/merchant/clients/new/")
    page.get_by_label("Name").fill("Web shop")
    page.get_by_role("button", name="Create the client").click()
    page.get_by_role("link", name="Create an API key").click()
    page.get_by_role("button", name="Create an API key").click()
    return page.locator("#key").inner_text()


def book_deposit(page: Page, account: Account) -> None:
    page.goto(url(account))
    page.get_by_role("link", name="Book money").click()
    page.get_by_label("Amount").fill("50")
    page.get_by_label("Reason").fill("first transfer")
    page.get_by_label("Reference").fill("bank 1")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Confirm deposit").click()
    page.wait_for_url(re.compile(url(account)))


def test_a_merchant_joins_and_an_operator_is_dismissed_in_the_middle_of_a_claim(
    live: LiveServer, chromium: Browser
) -> None:
    roles = ("MERCHANT_MANAGER", "FINANCE", "OPERATOR", "SENIOR_OPERATOR", "ADMINISTRATOR")
    manager, finance, olga, ben, admin = (Staff(StaffRole[role], live, chromium) for role in roles)
    owner = chromium.new_context(base_url=live.base_url).new_page()
    product = make_topup_product(name="Dragon gems", price="4.99")

    account = open_account(manager.page)
    join(owner)
    book_deposit(finance.page, account)
    key = issue_key(owner)
    merchant = Merchant(account.clients.get(), http=live.http)
    merchant.key = key
    bought = merchant.buy(delivery_type="top_up", system_product_id=product.pk, player_id="0012345")
    assert bought.status_code == 201, bought.content
    reference = bought.json()["data"]["reference"]

    olga.page.goto(QUEUE)
    olga.page.get_by_role("button", name="Claim next").click()
    expect(olga.page.locator("body")).to_contain_text("Processing")
    admin.page.goto(url(olga.user, "end_access"))
    admin.page.get_by_role("button", name="End access").click()
    expect(admin.page.locator("body")).to_contain_text("Claims back in the queue: 1")
    olga.page.goto(QUEUE)
    olga.page.wait_for_url("**/admin/login/**")

    ben.page.goto(QUEUE)
    ben.page.get_by_role("button", name="Claim next").click()
    expect(ben.page.locator("body")).to_contain_text(reference)
    ben.page.get_by_role("link", name="Mark delivered…").click()
    ben.page.get_by_role("button", name="Mark delivered").click()
    expect(ben.page.locator("body")).to_contain_text("1 done")
    assert merchant.get(f"/orders/{reference}").json()["data"]["status"] == "completed"
    owner.goto(f"/merchant/orders/{reference}/")
    expect(owner.get_by_role("main")).to_contain_text("Completed")

    moves = Fulfilment.objects.get(order_reference=reference).events.values_list("move", "actor")
    assert list(moves)[1:] == [
        ("claim", olga.user.username),
        ("release", "system"),
        ("claim", ben.user.username),
        ("complete", ben.user.username),
    ]
    assert not User.objects.filter(is_superuser=True).exists()
    assert reconcile()["findings"] == []
