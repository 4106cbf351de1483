"""What an attacker, or a faulty provider, may send to the callback."""

import time
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from django.contrib.auth.models import User

from accounts.sign_in.sessions import SessionStore
from audit.models import AuditAction, AuditEntry
from operators.sign_in.models import CompanyIdentity
from tests.company_sign_in.conftest import CALLBACK, FIRST_PAGES, Company, Visitor, query_of

pytestmark = pytest.mark.django_db(transaction=True)

FAILED = "Signing in with your company account did not work"
OK: dict[str, Any] = {"groups": ["desk"], "amr": ["mfa"]}
HOUR = 3600


def with_query(url: str, **changes: str) -> str:
    return f"{url.partition('?')[0]}?{urlencode({**query_of(url), **changes})}"


@pytest.mark.parametrize(
    ("token", "cause"),
    [
        ({"nonce": "of another sign-in"}, "InvalidClaimError: nonce"),
        ({"nonce": None}, "nonce"),
        ({"aud": "another-client"}, "aud"),
        ({"aud": ["another-client"], "azp": "voucher-service"}, "aud"),
        ({"aud": ["voucher-service", "another-client"], "azp": "another-client"}, "azp"),
        ({"iss": "https://another.example"}, "iss"),
        ({"exp": -HOUR}, "exp"),
        ({"iat": HOUR}, "iat"),
        ({"sub": ""}, "sub"),
    ],
    ids=str,
)
def test_a_wrong_token_is_refused(
    token: dict[str, Any], cause: str, company: Company, visitor: Visitor
) -> None:
    now = int(time.time())
    times = {name: now + value for name, value in token.items() if isinstance(value, int)}
    company.describe("anna", **OK, **token | times)
    assert FAILED in visitor.refusal(visitor.come_back("anna"))
    assert not User.objects.filter(username__contains="anna").exists()
    last = [line for line in company.server.log.splitlines() if "company_sign_in_failed" in line]
    assert cause in last[-1]


def test_a_wrong_state_is_refused(visitor: Visitor) -> None:
    callback = visitor.come_back("anna")
    assert FAILED in visitor.refusal(with_query(callback, state="another"))


def test_a_callback_works_only_once_and_only_in_its_own_browser(
    company: Company, visitor: Visitor
) -> None:
    callback = visitor.come_back("anna")
    other = Visitor(company.server)
    assert FAILED in other.refusal(callback)
    url, _ = visitor.follow(callback)
    assert urlsplit(url).path in FIRST_PAGES
    assert FAILED in other.refusal(callback)
    repeated, _ = visitor.follow(callback)
    assert urlsplit(repeated).path in (*FIRST_PAGES, "/admin/login/")


def test_a_code_of_another_sign_in_is_refused(company: Company, visitor: Visitor) -> None:
    """The attacker's code in the victim's session: PKCE binds a code to the browser that asked."""
    code = query_of(Visitor(company.server).come_back("ben"))["code"]
    own = visitor.come_back("anna")
    assert FAILED in visitor.refusal(with_query(own, code=code))


def test_the_provider_is_asked_with_pkce_state_and_nonce(visitor: Visitor) -> None:
    location = visitor.request("/admin/company/")[1]
    asked = query_of(location)
    assert asked["code_challenge_method"] == "S256"
    assert asked["acr_values"] == "phr"
    assert len(asked["code_challenge"]) == 43
    assert len(asked["state"]) >= 20
    assert len(asked["nonce"]) >= 20
    assert asked["redirect_uri"].endswith(CALLBACK)
    assert "code_verifier" not in asked


@pytest.mark.parametrize(
    ("claim", "value"), [("acr", ["phr"]), ("amr", [7]), ("groups", [{"name": "desk"}])]
)
def test_a_claim_of_a_wrong_type_is_refused(
    claim: str, value: Any, company: Company, visitor: Visitor
) -> None:
    company.describe("anna", **{**OK, claim: value})
    assert f"cannot read: {claim}" in visitor.refusal(visitor.come_back("anna"))
    assert claim in AuditEntry.objects.get(action=AuditAction.SIGN_IN_REFUSED).note
    assert not User.objects.filter(username__contains="anna").exists()


def test_an_answer_is_refused_a_quarter_of_an_hour_later(visitor: Visitor) -> None:
    callback = visitor.come_back("anna")
    session = SessionStore(visitor.session_key)
    session["company_sign_in.started"] -= 16 * 60
    session.save()
    assert FAILED in visitor.refusal(callback)


@pytest.mark.parametrize("verified", [False, None, "true"])
def test_an_unverified_email_is_no_name(verified: Any, company: Company, visitor: Visitor) -> None:
    ben = User.objects.create_user("ben", "ben@company.example", is_staff=True)
    company.describe("anna", **OK, email="ben@company.example", email_verified=verified)
    assert "no verified email" in visitor.refusal(visitor.come_back("anna"))
    assert not CompanyIdentity.objects.filter(user=ben).exists()


@pytest.mark.parametrize(
    "next",
    ["https://evil.example/admin/", "//evil.example/admin/", "/admin/\\evil.example", "/merchant/",
     "javascript:alert(1)", "/\\evil.example/admin/", "/admin/../merchant/"],
)  # fmt: skip
def test_next_never_leads_away(next: str, visitor: Visitor) -> None:
    callback = visitor.come_back("anna", next=next)
    location = visitor.request(callback)[1]
    assert location.startswith(f"{visitor.base_url}/")
    if "evil" in location:  # a path of ours that does not exist
        assert location == f"{visitor.base_url}/admin/%5Cevil.example"


def test_an_answer_with_an_error_signs_nobody_in(visitor: Visitor) -> None:
    visitor.request("/admin/company/")
    assert FAILED in visitor.refusal(f"{CALLBACK}?error=access_denied&state=x")
    assert FAILED in visitor.refusal(CALLBACK)


def test_attempts_are_limited_for_each_address(company: Company) -> None:
    for _ in range(2):  # a new minute may begin during the first attempts
        visitor = Visitor(company.server)
        places = [visitor.request("/admin/company/")[1] for _ in range(21)]
        assert "authorize" in places[19]
        if places[20].endswith("/admin/login/"):
            break
    assert places[20].endswith("/admin/login/")
    assert "Too many attempts" in visitor.follow(places[20])[1]
