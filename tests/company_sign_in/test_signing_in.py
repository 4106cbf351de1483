"""Staff sign in with their company account, at a real provider."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from operators.sign_in.company.identities import unlink_company_account
from operators.sign_in.models import CompanyIdentity
from tests.browsing import PASSWORD, open_browser
from tests.company_sign_in import provider
from tests.company_sign_in.conftest import FIRST_PAGES, Company, Visitor, query_of
from tests.factories import make_account
from tests.merchants.people import make_member

pytestmark = pytest.mark.django_db(transaction=True)

DESK = "/admin/topups/fulfilment/"


def recorded() -> set[tuple[str, str, str]]:
    """Action, actor and note of each entry."""
    entries = AuditEntry.objects.select_related("actor")
    return {(e.action, str(e.actor or e.actor_name), e.note) for e in entries}


def test_the_first_sign_in_creates_an_account_with_the_role(
    company: Company, visitor: Visitor
) -> None:
    assert visitor.sign_in("anna", next=DESK) == DESK
    assert visitor.is_inside()

    user = User.objects.get(username="anna@company.example")
    assert [group.name for group in user.groups.all()] == ["Operator"]
    assert (user.is_staff, user.is_superuser, user.has_usable_password()) == (True, False, False)
    by_company = "company sign-in"
    assert recorded() >= {
        (AuditAction.USER_CREATED, by_company, ""),
        (AuditAction.RIGHTS_CHANGED, by_company, "Roles added: Operator"),
        (AuditAction.SIGNED_IN, str(user), "With a company account"),
    }
    sessions = [each for each in Session.objects.all() if "_auth_user_id" in each.get_decoded()]
    [session] = [each for each in sessions if each.get_decoded()["_auth_user_id"] == str(user.pk)]
    assert session.expire_date < timezone.now() + timedelta(minutes=31)

    company.describe("anna", groups=["money", "unknown"], amr=["mfa"], email="new@company.example")
    Visitor(company.server).sign_in("anna")
    again = CompanyIdentity.objects.get()
    assert (again.user, again.email) == (user, "new@company.example")
    assert [group.name for group in user.groups.all()] == ["Finance"]


def test_two_sign_in_at_once(company: Company, visitor: Visitor) -> None:
    names, visitors = ("anna", "ben"), (visitor, Visitor(company.server))
    for name in names:
        company.describe(name, groups=["desk"], amr=["mfa"], seconds=0.4)
    urls = [each.come_back(name) for each, name in zip(visitors, names, strict=True)]

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(Visitor.follow, visitors, urls))

    assert [each.is_inside() for each in visitors] == [True, True]


def test_ours_is_asked_unless_the_provider_asked_for_a_second_factor(
    company: Company, visitor: Visitor
) -> None:
    company.describe("anna", groups=["desk"], amr=["pwd"], acr="phr")
    assert visitor.sign_in("anna") in FIRST_PAGES
    company.describe("anna", groups=["desk"], amr=["pwd"], acr="0")
    again = Visitor(company.server)
    assert again.sign_in("anna") == "/admin/two-factor/enrol/"
    assert not again.is_inside()


def test_a_removed_role_ends_access_and_sessions(company: Company, visitor: Visitor) -> None:
    visitor.sign_in("anna")
    assert visitor.is_inside()
    given = Permission.objects.get(codename="view_order")
    User.objects.get(username="anna@company.example").user_permissions.add(given)
    company.describe("anna", groups=[], amr=["mfa"])
    second = Visitor(company.server)
    assert "has no role in this service" in second.refusal(second.come_back("anna"))
    assert not visitor.is_inside()
    user = User.objects.get(username="anna@company.example")
    assert not user.groups.exists()
    assert not user.user_permissions.exists()
    entry = AuditEntry.objects.get(action=AuditAction.SIGN_IN_REFUSED)
    assert (entry.reference, entry.object_id) == (user.username, str(user.pk))


def test_unlinking_ends_the_sessions(visitor: Visitor) -> None:
    visitor.sign_in("anna")
    assert visitor.is_inside()
    unlink_company_account(username="anna@company.example")
    assert not visitor.is_inside()


def test_going_to_the_provider_leaves_the_end_of_a_session(visitor: Visitor) -> None:
    def end() -> str:
        stored = Session.objects.get(session_key=visitor.session_key)
        return str(stored.get_decoded()["_session_expiry"])

    visitor.sign_in("anna")
    before = end()
    assert "authorize" in visitor.request("/admin/company/")[1]
    assert end() == before


def test_somebody_without_a_role_gets_no_account(company: Company, visitor: Visitor) -> None:
    company.describe("anna", groups=["sales"], amr=["mfa"])
    assert "has no role in this service" in visitor.refusal(visitor.come_back("anna"))
    assert not User.objects.filter(username__contains="anna").exists()
    assert AuditEntry.objects.filter(action=AuditAction.SIGN_IN_REFUSED).count() == 1


def test_a_verified_email_links_an_existing_account_of_staff(
    company: Company, visitor: Visitor
) -> None:
    ben = User.objects.create_user("ben", "Ben@company.example", PASSWORD, is_staff=True)
    visitor.sign_in("ben")
    ben.refresh_from_db()
    assert ben.company_identity.email == "ben@company.example"
    assert not ben.has_usable_password()
    assert visitor.is_inside()


@pytest.mark.parametrize("kind", ["member", "superuser", "inactive", "linked", "two"])
def test_other_accounts_are_never_linked(kind: str, company: Company, visitor: Visitor) -> None:
    email = "ben@company.example"
    if kind == "member":
        owner = make_member(make_account()).user
        User.objects.filter(pk=owner.pk).update(username=email, email=email)
    else:
        owner = User.objects.create_user(
            "ben", email, is_staff=True, is_superuser=kind == "superuser"
        )
    if kind == "inactive":
        User.objects.filter(pk=owner.pk).update(is_active=False)
    if kind == "linked":
        CompanyIdentity.objects.create(user=owner, issuer="https://other.example", subject="1")
    if kind == "two":
        User.objects.create_user("ben2", email, is_staff=True)
    message = visitor.refusal(visitor.come_back("ben"))
    assert "An account with your name or email exists here" in message
    assert not CompanyIdentity.objects.exclude(issuer="https://other.example").exists()


def test_passwords_of_staff_are_off_but_for_the_break_glass_account(
    company: Company, visitor: Visitor
) -> None:
    for name in ("root", "ben"):
        User.objects.create_user(name, password=PASSWORD, is_staff=True, is_superuser=True)
    pages = {}
    for name in ("ben", "root"):
        one = Visitor(company.server)
        page = one.request("/admin/login/")[2]
        assert "Sign in with Acme" in page
        token = next(each.value for each in one.cookies if each.name == "csrftoken")
        form = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token or ""}
        pages[name] = one.follow("/admin/login/?next=/admin/", form)[0]
    assert pages["ben"].endswith("/admin/login/?next=/admin/")
    assert pages["root"].endswith("/admin/two-factor/enrol/?next=%2Fadmin%2F")


def test_no_log_line_holds_a_secret(company: Company, visitor: Visitor) -> None:
    callback = visitor.come_back("anna")
    visitor.follow(callback)
    answer = query_of(callback)
    log = company.server.log
    assert callback.partition("?")[0].removeprefix(company.server.public_url) in log
    for secret in (provider.SECRET, answer["code"], answer["state"], "code_verifier", "id_token"):
        assert secret not in log


@pytest.mark.browser
def test_a_browser_signs_in_with_the_button(company: Company, visitor: Visitor) -> None:
    with open_browser() as browser:
        page = browser.new_page(base_url=company.server.public_url)
        page.goto(DESK)
        page.click("text=Sign in with Acme")
        page.fill("[name=username]", "carla")
        page.fill("[name=password]", provider.PASSWORD)
        page.click("button")
        page.wait_for_url(f"**{DESK}")
        assert page.locator("h1, h2").first.is_visible()
