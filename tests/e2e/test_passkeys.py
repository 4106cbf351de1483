"""Passkeys without a browser: who may add one, and what removes them."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django_otp_webauthn.models import WebAuthnCredential

from accounts.models import SecondFactor
from audit.models import AuditAction, AuditEntry
from merchants.people.credentials import reset_factor
from tests.browsing import PASSWORD

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
