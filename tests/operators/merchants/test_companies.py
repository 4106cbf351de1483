"""Company data: owners propose, staff decide, and our own company has a logo."""

import io
import re
from typing import Any

import pytest
from django.core import mail
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from PIL import Image

from accounts.companies import company_of
from accounts.models import Account, Logo, OwnCompany
from audit.models import AuditEntry
from merchants.models import CompanyProposal, Email, Role
from merchants.people.company import decide_proposal
from tests.factories import make_account
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_staff, signed_in

pytestmark = pytest.mark.django_db

GERMAN = {"Accept-Language": "de"}
DATA = {"legal_name": "Games Ltd", "address": "1 Long Street\r\nLondon", "tax_number": "GB 1"}


@pytest.fixture
def account() -> Account:
    return make_account()


@pytest.fixture
def owner(account: Account) -> Client:
    return browser_of(make_member(account, Role.OWNER, email="owner@games.example"))


@pytest.fixture
def staff() -> Client:
    return signed_in(make_staff("accounts.view_account", "accounts.change_account"))


def propose(owner: Client, **data: str) -> CompanyProposal:
    answer = owner.post("/merchant/company/propose/", {**DATA, **data})
    assert answer.status_code == 302, answer.content
    return CompanyProposal.objects.latest("pk")


def decide(staff: Client, proposal: CompanyProposal, **data: str) -> str:
    address = f"/admin/accounts/account/{proposal.account_id}/proposal/"
    page = staff.post(address, {"proposal": proposal.pk, **data}, follow=True)
    return str(page.content.decode())


def actions() -> list[str]:
    return [str(one) for one in AuditEntry.objects.order_by("pk").values_list("action", flat=True)]


def test_staff_see_before_and_after_and_accept(
    account: Account, owner: Client, staff: Client
) -> None:
    hub = f"/admin/accounts/account/{account.pk}/"
    staff.post(f"{hub}company/", {"legal_name": "Old Ltd", "note": "pays late"})
    proposal = propose(owner)
    assert "Old Ltd" in owner.get("/merchant/company/").content.decode()
    assert "pays late" not in owner.get("/merchant/company/").content.decode()
    assert "change proposed" in staff.get(f"{hub}change/").content.decode()

    page = staff.get(f"{hub}proposal/").content.decode()
    assert "Old Ltd" in page
    assert "<strong>Games Ltd</strong>" in page
    assert "The company data are accepted." in decide(staff, proposal, answer="Thank you")

    company = company_of(account)
    assert company is not None
    assert (company.legal_name, company.address) == ("Games Ltd", "1 Long Street\nLondon")
    assert company.note == "pays late"
    last = AuditEntry.objects.latest("pk")
    assert last.action == "company_changed"
    assert last.changes["legal_name"] == ["Old Ltd", "Games Ltd"]
    email = Email.objects.latest("pk")
    assert (email.to, email.facts["change"]) == ("owner@games.example", "Company data accepted")
    assert email.facts["facts"] == [["Reason", "Thank you"]]


def test_company_data_that_look_like_a_time_or_a_number_are_shown_as_written(
    account: Account, owner: Client, staff: Client
) -> None:
    """Owners choose the texts. One that no page can show would hide the account from staff."""
    proposal = propose(owner, legal_name="2026-11-30T99:99:99Z", tax_number="123.45")

    decide(staff, proposal)

    page = staff.get(f"/admin/accounts/account/{account.pk}/change/", headers=GERMAN)
    shown = page.content.decode()
    assert [one for one in ("2026-11-30T99:99:99Z", "123.45") if one not in shown] == []
    assert "123,45" not in shown


def test_a_country_is_chosen_by_its_name_and_stored_as_its_code(
    account: Account, owner: Client, staff: Client
) -> None:
    form = owner.get("/merchant/company/propose/", headers={"Accept-Language": "de"})
    choices = re.findall('<option value="([A-Z]*)"[^>]*>([^<]+)</option>', form.content.decode())
    names = [name for _, name in choices]
    assert names.index("Ägypten") < names.index("Belgien") < names.index("Österreich") < 200
    refused = owner.post("/merchant/company/propose/", {**DATA, "country": "Germany"})
    assert "Germany is not one of the available choices." in refused.content.decode()

    decide(staff, propose(owner, country="DE"))

    company = company_of(account)
    assert (company.country if company else "") == "DE"
    proposal = propose(owner, country="AT")
    page = staff.get(f"/admin/accounts/account/{account.pk}/proposal/").content.decode()
    assert ">Germany</td>" in page
    assert "<strong>Austria</strong>" in page
    for language, name in (("de", "Deutschland"), ("en", "Germany")):
        shown = owner.get("/merchant/company/", headers={"Accept-Language": language})
        assert f"<dd>{name}</dd>" in shown.content.decode()
    decide(staff, proposal)
    own = "/admin/accounts/owncompany/1/change/"
    for path in (f"/admin/accounts/account/{account.pk}/company/", own):
        page = signed_in().get(path).content.decode()
        assert '<option value="DE">Germany</option>' in page


def test_a_proposal_is_decided_once_and_as_it_was_read(
    account: Account, owner: Client, staff: Client
) -> None:
    first = propose(owner)
    second = propose(owner, legal_name="Other Ltd")
    assert "no longer waits" in decide(staff, first)
    assert company_of(account) is None

    assert "is rejected" in decide(staff, second, reject="", answer="Not yours")
    assert "no longer waits" in decide(staff, second)
    assert company_of(account) is None
    states = CompanyProposal.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["withdrawn", "rejected"]
    assert actions()[-1] == "proposal_rejected"

    third = propose(owner)
    owner.post("/merchant/company/withdraw/")
    assert actions()[-1] == "proposal_withdrawn"
    assert not decide_proposal(proposal=third, accept=True, actor=make_staff())
    third.refresh_from_db()
    assert third.state == "withdrawn"


def test_an_unchanged_proposal_is_refused(account: Account, owner: Client, staff: Client) -> None:
    decide(staff, propose(owner))

    page = owner.post("/merchant/company/propose/", DATA)

    assert "Change something first" in page.content.decode()
    assert CompanyProposal.objects.count() == 1


def picture(size: tuple[int, int] = (60, 20)) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size).save(buffer, "PNG")
    return buffer.getvalue()


def own_company(browser: Client, values: dict[str, str], content: bytes = b"") -> str:
    """Saves our own company; returns the page."""
    data: dict[str, Any] = {"legal_name": "We", **values}
    if content:
        data["new_logo"] = SimpleUploadedFile("logo.png", content)
    answer = browser.post("/admin/accounts/owncompany/1/change/", data, follow=True)
    return str(answer.content.decode())


@pytest.fixture
def admins() -> list[Client]:
    rights = "accounts.view_owncompany", "accounts.change_owncompany"
    return [signed_in(make_staff(*rights)) for _ in range(2)]


def test_our_own_company_has_a_logo_that_a_statement_can_show(admins: list[Client]) -> None:
    refused = (b"<svg/>", picture()[:60], picture((2_001, 1)), picture() + bytes(200_000))
    for content in refused:
        assert "Choose a PNG or JPEG picture" in own_company(admins[0], {}, content)
    assert not Logo.objects.exists()

    for browser in admins:
        own_company(browser, {"footer": "F"}, picture())
    own = OwnCompany.objects.get()
    assert own.logo is not None
    assert bytes(own.logo.picture) == picture()
    assert AuditEntry.objects.latest("pk").changes["legal_name"] == ["", "We"]
    assert mail.outbox == []


def test_two_administrators_change_our_own_company(admins: list[Client]) -> None:
    """Its address, footer and logo are on each statement, and can name another bank account."""
    OwnCompany.objects.create(legal_name="We", address="Old 1\nBerlin", footer="a\nb")
    same = {"address": "Old 1\r\nBerlin", "footer": "a\r\nb"}
    assert "Not saved yet" not in own_company(admins[0], same)
    attacks: list[tuple[dict[str, str], bytes]] = [
        ({**same, "footer": "A" * 390 + "IBAN 1"}, b""),
        ({**same, "footer": "A" * 390 + "IBAN 2"}, b""),
        ({**same, "address": "IBAN 3"}, b""),
        (same, picture()),
        (same, picture((61, 20))),
    ]
    for _again in range(2):
        for values, logo in attacks:
            assert "Not saved yet" in own_company(admins[0], values, logo)
    assert OwnCompany.objects.get().footer == "a\nb"

    page = admins[1].get("/admin/accounts/owncompany/1/change/").content.decode()
    assert "address: “Old 1 / Berlin” → “IBAN 3”" in page
    assert "Not saved yet" in own_company(admins[1], {**same, "footer": "A" * 390 + "IBAN 4"})
    assert "Not saved yet" not in own_company(admins[1], {**same, "address": "IBAN 3"})

    assert OwnCompany.objects.get().address == "IBAN 3"
    assert "Not saved yet" in own_company(admins[1], same, picture())  # the row has changed


def test_reading_our_own_company_writes_no_row() -> None:
    reader = signed_in(make_staff("accounts.view_owncompany"))
    address = "/admin/accounts/owncompany/1/change/"

    assert reader.get(address).status_code == 200
    assert reader.post(address, {"legal_name": "We"}).status_code == 403
    assert not OwnCompany.objects.exists()


def test_an_address_has_at_most_eight_lines(
    account: Account, owner: Client, staff: Client, admins: list[Client]
) -> None:
    data = {**DATA, "address": "\r\n".join("123456789")}
    for page in (
        owner.post("/merchant/company/propose/", data).content.decode(),
        staff.post(f"/admin/accounts/account/{account.pk}/company/", data).content.decode(),
        own_company(admins[0], data),
    ):
        assert "Write at most 8 lines." in page
