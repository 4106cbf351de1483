"""Passkeys in a real browser, with Chromium's virtual authenticator."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.models import User
from django_otp.oath import totp
from django_otp_webauthn.models import WebAuthnCredential

from accounts.models import SecondFactor
from audit.models import AuditAction
from tests.browsing import PASSWORD, open_browser, sign_in
from tests.e2e.test_passkeys import recorded
from tests.live import LiveServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.browser]


def plug_in(page: Any) -> Any:
    """Gives the page's browser a security key. Returns the session that controls it, and its id."""
    control = page.context.new_cdp_session(page)
    control.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2",
        "transport": "usb",
        "hasResidentKey": True,
        "hasUserVerification": True,
        "isUserVerified": True,
        "automaticPresenceSimulation": True,
    }
    added = control.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    return control, added["authenticatorId"]


def type_password(page: Any) -> None:
    page.context.clear_cookies()
    page.goto("/admin/")
    page.fill("[name=username]", "anna")
    page.fill("[name=password]", PASSWORD)
    page.click("[type=submit]")
    page.wait_for_url("**/admin/two-factor/?next=%2Fadmin%2F")


def type_code(page: Any) -> None:
    """Types a code of the app where a page asks for it again."""
    SecondFactor.objects.update(last_step=-1)  # accepts the code of the sign-in again
    key = SecondFactor.objects.get(user__username="anna").key
    page.fill("[name=factor_code]", f"{totp(key):06d}")


def opened(page: Any) -> str:
    """Where the page of products leads."""
    page.goto("/admin/catalogue/product/")
    return str(urlsplit(page.url).path)


def test_a_passkey_is_added_used_lost_and_removed(live: LiveServer) -> None:
    anna = User.objects.create_user("anna", password=PASSWORD, is_staff=True, is_superuser=True)
    with open_browser() as browser:
        page = browser.new_page(base_url=live.public_url)
        sign_in(page, "anna")
        control, key = plug_in(page)

        page.goto("/admin/passkeys/")
        type_code(page)
        page.click("form button:has-text('Continue')")
        page.click("#passkey-register-button")
        page.wait_for_function("document.body.innerText.includes('success')")
        assert WebAuthnCredential.objects.get().user == anna

        type_password(page)
        assert opened(page) == "/admin/two-factor/"
        page.click("#passkey-verification-button")
        page.wait_for_url("**/admin/catalogue/product/")  # the page that was asked for
        assert opened(page) == "/admin/catalogue/product/"

        # The key is lost: another one is refused, and the app still works.
        credentials = control.send("WebAuthn.getCredentials", {"authenticatorId": key})
        [credential] = credentials["credentials"]
        control.send("WebAuthn.clearCredentials", {"authenticatorId": key})
        type_password(page)
        with page.expect_response("**/show/begin/"):
            page.click("#passkey-verification-button")
        assert opened(page) == "/admin/two-factor/"
        elsewhere = browser.new_page(base_url=live.public_url)
        sign_in(elsewhere, "anna")
        elsewhere.goto("/admin/passkeys/")
        elsewhere.click("text=Remove")
        type_code(elsewhere)
        elsewhere.click("form button:has-text('Remove')")
        elsewhere.wait_for_url("**/admin/passkeys/")
        assert not WebAuthnCredential.objects.exists()

        # The removed key turns up again, and is refused.
        control.send("WebAuthn.addCredential", {"authenticatorId": key, "credential": credential})
        type_password(page)
        assert page.locator("#passkey-verification-button").count() == 0
    assert recorded() == [AuditAction.PASSKEY_ADDED, AuditAction.PASSKEY_REMOVED]
