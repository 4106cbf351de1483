"""A month of one merchant in real browsers. Nobody in it is a superuser.

Each step is a function; the test has them in the order of the month.
"""

import itertools
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import Group, User
from django.core import mail
from django.urls import reverse
from django_otp.oath import totp
from playwright.sync_api import Browser, Page, expect
from pypdf import PdfReader

from accounts.models import Account, SecondFactor
from cases.models import Case
from core.backoffice.staff_roles import StaffRole
from core.formats import local_amount
from merchants.email.sending import sweep_emails
from operators.upkeep.reconcile import reconcile
from tests.browsing import take_session
from tests.factories import Merchant, make_product, make_topup_product
from tests.live import LiveServer
from tests.merchants.people import PASSWORD
from tests.operators.back_office import make_staff, signed_in, url
from topups.models import Fulfilment
from wallets.evidence import closes
from wallets.models import AnnouncedTransfer, BookingApproval, LedgerEntry, Wallet

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
    page.get_by_role("button", name="Create account", exact=True).click()
    expect(page.locator("body")).to_contain_text("was added successfully")
    account = Account.objects.get(name="Star Games")
    page.goto(f"{reverse('admin:merchants_invitation_add')}?account={account.pk}")
    page.get_by_label("Email").fill("owner@star.example")
    page.get_by_role("button", name="Invite", exact=True).click()
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
    press(page, "Create the client")
    page.get_by_role("link", name="Create an API key").click()
    press(page, "Create an API key")
    return page.locator("#key").inner_text()


def press(page: Page, name: str) -> None:
    with page.expect_navigation():
        page.get_by_role("button", name=name, exact=True).click()


def balance(account: Account) -> Decimal:
    return Wallet.objects.get(pk=account.pk).balance


def announce(owner: Page, amount: str, reference: str) -> None:
    owner.goto("/merchant/wallet/transfers/new/")
    owner.get_by_label("Amount in USD").fill(amount)
    owner.get_by_label("Reference").fill(reference)
    press(owner, "Announce the transfer")


def confirm_transfer(page: Page) -> None:
    page.goto(url(AnnouncedTransfer.objects.latest("pk"), "confirm"))
    press(page, "Continue")
    press(page, "Confirm deposit")


def book(
    page: Page, account: Account, amount: str, reference: str, button: str = "Confirm deposit"
) -> None:
    page.goto(url(account))
    page.get_by_role("link", name="Book money").click()
    page.get_by_label("Amount").fill(amount)
    page.get_by_label("Reason").fill("bank transfer")
    page.get_by_label("Reference").fill(reference)
    press(page, "Continue")
    press(page, button)


def approve(page: Page) -> None:
    page.goto(url(BookingApproval.objects.latest("pk"), "approve"))
    press(page, "Approve and book")


def undo(page: Page, entry: LedgerEntry) -> None:
    page.goto(url(entry, "reverse"))
    page.locator("[name=reason]").fill("booked on the wrong account")
    press(page, "Reverse")


def complain(owner: Page, reference: str, text: str) -> Case:
    owner.goto(f"/merchant/orders/{reference}/")
    owner.get_by_role("link", name="Open a case").click()
    expect(owner.get_by_label("About")).to_contain_text("Code 1 of 1")
    owner.get_by_label("Message").fill(text)
    press(owner, "Open the case")
    return Case.objects.latest("pk")


def replace_code(support: Page, finance: Page, case: Case) -> None:
    support.goto(url(case, "propose"))
    press(support, "Propose")
    finance.goto(url(case, "replace"))
    press(finance, "Replace")


def credit(finance: Page, case: Case, amount: str) -> None:
    finance.goto(url(case, "credit"))
    finance.locator("[name=amount]").fill(amount)
    finance.locator("[name=note]").fill("half of the price, as agreed")
    press(finance, "Credit")


def deliver_in_spite_of_a_dismissal(olga: "Staff", ben: "Staff", admin: "Staff") -> None:
    """An operator is dismissed in the middle of a claim, and a colleague delivers the order."""
    olga.page.goto(QUEUE)
    press(olga.page, "Claim next")
    expect(olga.page.locator("body")).to_contain_text("Processing")
    admin.page.goto(url(olga.user, "end_access"))
    press(admin.page, "End access")
    expect(admin.page.locator("body")).to_contain_text("Claims back in the queue: 1")
    olga.page.goto(QUEUE)
    olga.page.wait_for_url("**/admin/login/**")
    ben.page.goto(QUEUE)
    press(ben.page, "Claim next")
    ben.page.get_by_role("link", name="Mark delivered…").click()
    press(ben.page, "Mark delivered")
    expect(ben.page.locator("body")).to_contain_text("Delivered.")


def close_the_month(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets the days pass until the present month is over, and closes them."""
    next_month = (datetime.now(UTC).replace(day=1) + timedelta(days=32)).replace(day=1)
    monkeypatch.setattr(closes, "database_now", lambda: next_month + timedelta(hours=2))
    closes.close_days()


def read_statement(owner: Page, month: str, folder: Path) -> str:
    owner.goto("/merchant/wallet/months/")
    with owner.expect_download() as download:
        owner.get_by_role("link", name=f"PDF of {month}").click()
    download.value.save_as(folder / "statement.pdf")
    pages = PdfReader(folder / "statement.pdf").pages
    return "\n".join(page.extract_text() for page in pages)


def test_a_month_without_a_superuser(
    live: LiveServer, chromium: Browser, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    roles = (
        *("MERCHANT_MANAGER", "FINANCE", "FINANCE", "SUPPORT"),
        *("OPERATOR", "SENIOR_OPERATOR", "ADMINISTRATOR"),
    )
    manager, anna, hugo, support, olga, ben, admin = (
        Staff(StaffRole[role], live, chromium) for role in roles
    )
    owner = chromium.new_context(base_url=live.base_url).new_page()
    product = make_product(price="19.99", codes=4)
    topup = make_topup_product(name="Dragon gems", price="4.99")
    month = f"{datetime.now(UTC):%Y-%m}"

    account = open_account(manager.page)
    join(owner)
    announce(owner, "250", "TR-2026/11 a")
    confirm_transfer(anna.page)
    assert balance(account) == 250
    book(anna.page, account, "50000", "TR-2026/12", "Ask for approval")
    assert balance(account) == 250
    approve(hugo.page)
    assert balance(account) == 50_250
    book(anna.page, account, "75", "TR-2026/13")
    undo(anna.page, LedgerEntry.objects.get(booking_reference="TR-2026/13"))
    assert balance(account) == 50_250

    key = issue_key(owner)
    merchant = Merchant(account.clients.get(), http=live.http)
    merchant.key = key

    def buy(number: int, **body: object) -> str:
        bought = merchant.buy(f"shop order {number}", **body)
        assert bought.status_code == 201, bought.content
        return str(bought.json()["data"]["reference"])

    bad, expensive, _ = (buy(number, product_id=product.pk, quantity=1) for number in range(3))
    replace_code(support.page, anna.page, complain(owner, bad, "This code was used before."))
    newest = merchant.get("/orders").json()["data"]["items"][0]
    assert (newest["total_price"], len(newest["codes"])) == (0, 1)
    credit(anna.page, complain(owner, expensive, "It came too late."), "10")
    assert balance(account) == Decimal("50200.03")

    reference = buy(3, delivery_type="top_up", system_product_id=topup.pk, player_id="0012345")
    deliver_in_spite_of_a_dismissal(olga, ben, admin)
    assert merchant.get(f"/orders/{reference}").json()["data"]["status"] == "completed"
    moves = Fulfilment.objects.get(order_reference=reference).events.values_list("move", "actor")
    assert list(moves)[1:] == [
        ("claim", olga.user.username),
        ("release", "system"),
        ("claim", ben.user.username),
        ("complete", ben.user.username),
    ]

    close_the_month(monkeypatch)
    text = read_statement(owner, month, tmp_path)
    for entry in LedgerEntry.objects.filter(wallet=account.pk):
        shown = f"{local_amount(entry.amount)}\n{local_amount(entry.balance_after)}"
        assert shown in text, entry.kind
    closing = next(
        after
        for line, after in itertools.pairwise(text.splitlines())
        if line.startswith("Closing balance, ")
    )
    assert closing == local_amount(balance(account)) == "50,195.04"
    assert not User.objects.filter(is_superuser=True).exists()
    assert reconcile()["findings"] == []
