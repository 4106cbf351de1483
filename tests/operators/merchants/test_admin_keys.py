"""Staff issue, rotate and revoke keys. Each key is shown once, and each change is audited."""

import html
import logging
import re
from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import ApiClient, ApiKey
from tests.audited import recorded
from tests.factories import Merchant, make_merchant
from tests.operators.back_office import make_staff, signed_in, url

KEY = re.compile(r"vk_[0-9a-f]{12}_[0-9a-f]{64}")
SEE = "accounts.view_apiclient"


def revoke_url(key: ApiKey) -> str:
    return reverse("admin:accounts_apiclient_revoke_key", args=[key.client_id, key.pk])


def key_on(answer: object) -> str:
    (key,) = KEY.findall(html.unescape(answer.content.decode()))  # type: ignore[attr-defined]
    return str(key)


def works(client: ApiClient, key: str) -> bool:
    answer = Client().get("/api/v1/ping", headers={"Authorization": f"Bearer {key}"})
    return answer.status_code == 200 and answer.json()["data"]["client"] == client.name


def test_a_new_key_is_shown_once_and_works(merchant: Merchant) -> None:
    user, first = (make_staff(SEE, "accounts.add_apikey") for _ in range(2))
    browser = signed_in(user)
    signed_in(first).post(url(merchant.client, "issue"), {"note": "for the new shop"})

    asked = browser.get(url(merchant.client, "issue"))
    assert not KEY.search(asked.content.decode())
    assert merchant.client.keys.count() == 1

    shown = browser.post(url(merchant.client, "issue"), {"note": "for the new shop"})
    key = key_on(shown)
    assert works(merchant.client, key)
    assert works(merchant.client, merchant.key)
    assert "no-store" in shown["Cache-Control"]
    entry = recorded().get(action="key_issued")
    assert (entry.actor, entry.note) == (user, "for the new shop")
    assert (entry.object_type, entry.object_id) == ("accounts.apiclient", str(merchant.client.pk))
    assert entry.reference == key.split("_")[1]
    assert key not in browser.get(url(merchant.client)).content.decode()


@pytest.mark.parametrize("name", ["issue", "rotate"])
def test_reloading_the_page_of_a_new_key_issues_no_other(merchant: Merchant, name: str) -> None:
    browser, address = signed_in(), url(merchant.client, name)
    form = hidden(browser.get(address)) | {"overlap_hours": "2", "note": "once"}

    key = key_on(browser.post(address, form))
    live = merchant.client.keys.live().count()
    again = browser.post(address, form, follow=True)

    text = html.unescape(again.content.decode())
    assert f"this form has already created the key {key.split('_')[1]}" in text
    assert not KEY.search(text)
    assert merchant.client.keys.live().count() == live == 2
    assert recorded().count() == 1
    assert key_on(browser.post(address, {**form, **hidden(browser.get(address))})) != key


def hidden(page: object) -> dict[str, str]:
    """The id of the form that a page shows."""
    return dict(re.findall(r'name="(form)" value="([^"]+)"', page.content.decode()))  # type: ignore[attr-defined]


def test_rotation_ends_the_old_keys_after_the_overlap(merchant: Merchant) -> None:
    shown = signed_in().post(url(merchant.client, "rotate"), {"overlap_hours": "2"})

    assert works(merchant.client, key_on(shown))
    old = merchant.client.keys.earliest("pk")
    assert old.expires_at is not None
    left = old.expires_at - timezone.now()
    assert timedelta(hours=1, minutes=59) < left <= timedelta(hours=2)
    assert recorded().get().action == "key_rotated"


def test_rotation_without_overlap_ends_the_old_keys_at_once(merchant: Merchant) -> None:
    shown = signed_in().post(url(merchant.client, "rotate"), {"overlap_hours": "0"})

    assert works(merchant.client, key_on(shown))
    assert not works(merchant.client, merchant.key)


@pytest.mark.parametrize("hours", ["", "-1", "x", "1e3", "2161", "99999999999"])
def test_a_bad_overlap_is_refused(merchant: Merchant, hours: str) -> None:
    answer = signed_in().post(url(merchant.client, "rotate"), {"overlap_hours": hours})

    assert answer.status_code == 200
    assert not KEY.search(answer.content.decode())
    assert merchant.client.keys.live().count() == 1
    assert not recorded().exists()


def test_a_revoked_key_stops_at_once(merchant: Merchant) -> None:
    key = merchant.client.keys.get()
    browser = signed_in(make_staff(SEE, "accounts.view_apikey", "accounts.change_apikey"))
    assert revoke_url(key) in browser.get(url(merchant.client)).content.decode()

    browser.get(revoke_url(key))
    assert works(merchant.client, merchant.key)
    browser.post(revoke_url(key))

    assert not works(merchant.client, merchant.key)
    assert revoke_url(key) not in browser.get(url(merchant.client)).content.decode()
    entry = recorded().get()
    assert (entry.action, entry.reference) == ("key_revoked", key.prefix)


def test_revoking_twice_is_reported_and_recorded_once(merchant: Merchant) -> None:
    key = merchant.client.keys.get()
    browser = signed_in()
    browser.post(revoke_url(key))

    again = browser.post(revoke_url(key), follow=True)

    assert "was already revoked" in again.content.decode()
    assert recorded().count() == 1


def test_a_key_is_revoked_only_on_its_own_clients_page(merchant: Merchant) -> None:
    key = make_merchant().client.keys.get()
    foreign = reverse("admin:accounts_apiclient_revoke_key", args=[merchant.client.pk, key.pk])

    assert signed_in().post(foreign).status_code == 404
    assert not recorded().exists()


@pytest.mark.parametrize(
    ("page", "enough"),
    [
        ("issue", {SEE, "accounts.add_apikey"}),
        ("rotate", {SEE, "accounts.add_apikey", "accounts.change_apikey"}),
        ("revoke", {SEE, "accounts.change_apikey"}),
    ],
)
def test_each_page_needs_its_permissions(merchant: Merchant, page: str, enough: set[str]) -> None:
    key = merchant.client.keys.get()
    address = revoke_url(key) if page == "revoke" else url(merchant.client, page)
    for lacking in enough:
        browser = signed_in(make_staff(*enough - {lacking}))

        assert browser.get(address).status_code == 403, lacking
        assert browser.post(address, {"overlap_hours": "0"}).status_code == 403, lacking

    assert merchant.client.keys.live().count() == 1
    assert not recorded().exists()
    assert signed_in(make_staff(*enough)).get(address).status_code == 200


@pytest.mark.parametrize("page", ["issue", "rotate", "revoke"])
def test_key_pages_refuse_forms_without_a_csrf_token(merchant: Merchant, page: str) -> None:
    key = merchant.client.keys.get()
    address = revoke_url(key) if page == "revoke" else url(merchant.client, page)
    browser = signed_in(csrf=True)

    assert browser.post(address, {"overlap_hours": "0"}).status_code == 403
    assert works(merchant.client, merchant.key)
    assert not recorded().exists()


def test_a_new_key_is_never_logged(merchant: Merchant, caplog: pytest.LogCaptureFixture) -> None:
    browser = signed_in()

    with caplog.at_level(logging.DEBUG):
        key = key_on(browser.post(url(merchant.client, "issue")))

    secret = key.rpartition("_")[2]
    assert secret not in caplog.text
    assert secret not in str(dict(browser.session))
    assert secret not in str(list(recorded().values()))
