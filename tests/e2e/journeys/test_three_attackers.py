"""Three members of staff try in a real browser what they did alone before, and fail."""

import re
from decimal import Decimal

import pytest
from django.contrib.auth.models import Group, User
from django.urls import reverse
from playwright.sync_api import Browser, Page, expect

from accounts.models import ApiKey
from audit.models import AuditAction, AuditEntry
from catalogue.models import Product
from core.backoffice.staff_roles import StaffRole
from merchants.models import Email
from tests.e2e.journeys.test_month_in_browser import Staff, press
from tests.factories import Merchant, make_merchant, make_product, own_shelf
from tests.live import LiveServer
from tests.merchants.people import make_member
from tests.operators.back_office import url

pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("alone"),
]

KEY = re.compile("vk_[0-9a-f]{12}_")


def test_three_attackers_fail(live: LiveServer, chromium: Browser) -> None:
    merchant = make_merchant(balance="1000.00")
    product = make_product(price="2.50", codes=100)
    assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    manager, administrator, keeper = (
        Staff(role, live, chromium)
        for role in (
            StaffRole.MERCHANT_MANAGER,
            StaffRole.ADMINISTRATOR,
            StaffRole.STOCK_KEEPER,
        )
    )
    take_a_key(manager.page, merchant)
    reveal_codes_as_a_puppet(administrator.page)
    sell_at_a_cent(keeper.page, merchant, product)


def take_a_key(page: Page, merchant: Merchant) -> None:
    """The manager blocks the only owner, starts keys and invites a second address of their own."""
    owner, keys = make_member(merchant.account), ApiKey.objects.count()
    page.goto(url(owner))
    page.get_by_role("link", name="Block…").click()
    page.get_by_label("Reason").fill("stolen phone")
    press(page, "Block")
    for name in ("Create an API key", "Create an API key", "Rotate keys"):
        page.goto(url(merchant.client))
        page.get_by_role("link", name=name).click()
        press(page, name)
        assert not KEY.search(page.content())
    page.goto(f"{reverse('admin:merchants_invitation_add')}?account={merchant.account.pk}")
    page.get_by_label("Email").fill("puppet@shop.example")
    page.get_by_label("Role").select_option("owner")
    press(page, "Invite")

    assert ApiKey.objects.count() == keys
    told = Email.objects.filter(to=owner.user.email).order_by("pk")
    assert [one.facts["change"] for one in told] == [
        "Person blocked",
        *["Creation of an API key started"] * 2,
        "Rotation of API keys started",
        "Person invited",
    ]
    assert not Email.objects.filter(to="puppet@shop.example").exists()


def reveal_codes_as_a_puppet(page: Page) -> None:
    """The administrator makes a role that reveals codes, and gives it to a second address of their
    own."""
    page.goto(reverse("admin:auth_group_add"))
    page.locator("[name=name]").fill("Helpers")
    page.get_by_label("Reveal the text of a code").check()
    press(page, "Create role")
    role = Group.objects.get(name="Helpers")
    page.goto(reverse("admin:auth_user_add"))
    page.locator("[name=username]").fill("puppet")
    page.locator("[name=email]").fill("puppet@staff.example")
    page.get_by_label("Helpers").check()
    press(page, "Invite")
    expect(page.locator("body")).to_contain_text("Ask another administrator")

    puppet = User.objects.get(username="puppet")
    page.goto(url(puppet))
    page.get_by_label("Helpers").check()
    press(page, "Save")
    assert not puppet.groups.filter(pk=role.pk).exists()
    assert not puppet.has_perm("catalogue.reveal_vouchercode")


def sell_at_a_cent(page: Page, merchant: Merchant, product: Product) -> None:
    """The stock keeper confirms their own low price, on the form and on the page of many prices."""
    shelf = own_shelf(product)
    page.goto(url(shelf))
    page.get_by_label("Price", exact=False).first.fill("0.01")
    press(page, "Save")
    page.get_by_label("Yes, the new price is 0.01").check()
    press(page, "Save")
    expect(page.locator("body")).to_contain_text("needs a second person")

    for _time in (1, 2):
        page.goto(f"/admin/catalogue/shelf/prices/?row={shelf.pk}")
        page.select_option("[name=change]", "prices")
        page.locator(f"[name=price-{shelf.pk}]").fill("0.01")
        press(page, "Show the changes")
        press(page, "Ask for approval")
        expect(page.locator("body")).to_contain_text("needs a second person")

    answer = merchant.buy(product_id=product.pk, quantity=99)
    assert Decimal(str(answer.json()["data"]["total_price"])) == Decimal("247.50")
    assert AuditEntry.objects.filter(
        action=AuditAction.REQUEST_MADE, note__contains="0.01"
    ).exists()
