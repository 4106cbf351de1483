"""Passkeys without a browser: who may add one, and what removes them."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django_otp.oath import totp
from django_otp_webauthn.models import WebAuthnCredential

from accounts.models import SecondFactor
from accounts.sign_in.confirmation import CONFIRMED
from audit.models import AuditAction, AuditEntry
from merchants.people.credentials import reset_factor
from tests.browsing import PASSWORD
from tests.operators.back_office import make_staff, signed_in

pytestmark = pytest.mark.django_db


def recorded() -> list[str]:
    wanted = ("passkey_added", "passkey_removed", "second_factor_refused", "second_factor_reset")
    return list(
        AuditEntry.objects.filter(action__in=wanted).order_by("id").values_list("action", flat=True)
    )


def test_an_administrator_removes_passkeys_with_the_second_factor() -> None:
    anna = User.objects.create_user("anna", password=PASSWORD, is_staff=True)
    SecondFactor.objects.create(user=anna)
    WebAuthnCredential.objects.create(
        user=anna, name="key", credential_id=b"1", public_key=b"2", aaguid="0"
    )
    reset_factor(user=anna, actor=None)
    assert not WebAuthnCredential.objects.exists()
    assert recorded() == [AuditAction.SECOND_FACTOR_RESET]


def test_strangers_and_unverified_staff_cannot_add_a_passkey(client: Any) -> None:
    begin = "/admin/passkeys/add/begin/"
    assert client.post(begin).status_code == 302
    anna = User.objects.create_user("anna", password=PASSWORD, is_staff=True, is_superuser=True)
    SecondFactor.objects.create(user=anna)
    client.force_login(anna, backend="accounts.sign_in.limits.PasswordBackend")
    assert client.post(begin)["Location"].endswith("/admin/two-factor/")
    assert not WebAuthnCredential.objects.exists()


def test_adding_and_removing_a_passkey_asks_for_the_second_factor_again() -> None:
    anna = make_staff(superuser=True)
    browser = signed_in(anna)
    row = {"user": anna, "credential_id": b"1", "public_key": b"2", "aaguid": "0"}
    passkey = WebAuthnCredential.objects.create(name="key", **row)
    page, remove = "/admin/passkeys/", f"/admin/passkeys/{passkey.pk}/remove/"
    begin = f"{page}add/begin/"
    assert browser.post(begin).status_code == 200
    session = browser.session
    del session[CONFIRMED]
    session.save()

    assert browser.post(begin).status_code == 403
    assert "passkey-register-button" not in browser.get(page).content.decode()
    assert "factor_code" in browser.post(remove).content.decode()
    assert WebAuthnCredential.objects.exists()

    key = SecondFactor.objects.get(user=anna).key
    browser.post(page, {"factor_code": f"{totp(key):06}"})
    assert browser.post(begin).status_code == 200
    browser.post(remove)
    assert not WebAuthnCredential.objects.exists()
