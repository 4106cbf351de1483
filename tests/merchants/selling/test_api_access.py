"""Members manage the account's clients, keys and allowlists."""

import re

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client
from django.utils import timezone

from accounts.models import ApiClient, ApiKey
from audit.models import AuditAction, AuditEntry
from merchants.api_access.clients import MAX_CLIENTS, MAX_LIVE_KEYS, issue_key, rotate_key
from merchants.email.sending import sweep_emails
from merchants.models import Membership, Role
from merchants.money.book_keys import issue_book_key
from tests.audited import recorded
from tests.factories import make_account, make_client, make_key
from tests.merchants.people import browser_of, make_member
from tests.operators.back_office import make_staff

pytestmark = pytest.mark.django_db


def ping(key: str, address: str = "127.0.0.1") -> tuple[int, str]:
    answer = Client().get(
        "/api/v1/ping", headers={"Authorization": f"Bearer {key}"}, REMOTE_ADDR=address
    )
    return answer.status_code, answer.json().get("error", {}).get("code", "")


def issued(answer: object) -> str:
    """The key that a page shows."""
    (key,) = re.findall(r"vk_[0-9a-f]{12}_[0-9a-f]{64}", answer.content.decode())  # type: ignore[attr-defined]
    return str(key)


def told() -> list[str]:
    sweep_emails()
    return [str(one.subject) for one in mail.outbox]


@pytest.fixture
def owner() -> Membership:
    return make_member()


@pytest.fixture
def shop(owner: Membership) -> ApiClient:
    return make_client(owner.account)


def test_the_list_of_clients_shows_which_keys_each_program_has(
    owner: Membership, shop: ApiClient
) -> None:
    used, fresh = make_key(shop), make_key(shop)
    ended = make_key(shop)
    ApiKey.objects.filter(prefix=ended.split("_")[1]).update(revoked_at=timezone.now())
    ApiKey.objects.filter(prefix=used.split("_")[1]).update(last_used_at=timezone.now())
    make_client(owner.account)
    page = browser_of(owner).get("/merchant/clients/").content.decode()
    rows = page.partition("<tbody>")[2].partition("</tbody>")[0].split("</tr>")
    assert used.split("_")[1] in rows[0]
    assert fresh.split("_")[1] in rows[0]
    assert rows[0].count("last used") == rows[0].count("never used") == 1
    assert ended.split("_")[1] not in page
    assert "no key" in rows[1]


def test_each_key_says_who_created_it(owner: Membership, shop: ApiClient) -> None:
    developer = make_member(owner.account, Role.DEVELOPER)
    by_command, former = make_key(shop), make_staff()
    by_staff = issue_key(client=shop, actor=former)
    User.objects.filter(pk=former.pk).update(is_staff=False)
    by_member = issue_key(client=shop, actor=developer.user)
    by_rotation = rotate_key(client=shop, overlap_hours=1, actor=owner.user)
    books = issue_book_key(account=owner.account, actor=owner.user)
    browser = browser_of(owner)
    pages = "".join(
        browser.get(f"/merchant/clients/{path}").content.decode() for path in ("", f"{shop.pk}/")
    )
    makers = {
        by_command: "support",
        by_staff: "support",
        by_member: developer.user.email,
        by_rotation: owner.user.email,
        books: owner.user.email,
    }
    for key, maker in makers.items():
        row = pages.rpartition(f">{key.split('_')[1]}</th>")[2].partition("</tr>")[0]
        assert f" by {maker}</td>" in row.replace("<wbr>", "")


def test_a_new_client_gets_a_working_key(owner: Membership) -> None:
    developer = make_member(owner.account, Role.DEVELOPER)
    browser = browser_of(developer)
    made = browser.post("/merchant/clients/new/", {"name": " Web shop "})
    client = ApiClient.objects.get(account=owner.account)
    assert made["Location"] == f"/merchant/clients/{client.pk}/"
    assert client.name == "Web shop"
    assert not client.keys.exists()

    shown = browser.post(f"/merchant/clients/{client.pk}/keys/issue/")
    key = issued(shown)
    assert "no-store" in shown["Cache-Control"]
    assert ping(key) == (200, "")
    page = browser.get(f"/merchant/clients/{client.pk}/").content.decode()
    assert key.split("_")[1] in page
    assert key not in page

    entries = recorded().filter(actor=developer.user).order_by("pk")
    assert [one.action for one in entries] == [AuditAction.CLIENT_CREATED, AuditAction.KEY_ISSUED]
    told()
    for member in (owner, developer):
        assert [one.subject for one in mail.outbox if one.to == [member.user.email]] == [
            f"API client created: {owner.account}",
            f"API key issued: {owner.account}",
        ]
    for one in mail.outbox:
        assert key.split("_")[2] not in str(one.message())


@pytest.mark.parametrize("name", ["issue", "rotate"])
def test_reloading_the_page_of_a_new_key_issues_no_other(
    owner: Membership, shop: ApiClient, name: str
) -> None:
    browser, path = browser_of(owner), f"/merchant/clients/{shop.pk}/keys/{name}/"

    def form() -> dict[str, str]:
        page = browser.get(path).content.decode()
        return dict(re.findall(r'name="(form)" value="([^"]+)"', page)) | {"overlap_hours": "2"}

    sent = form()
    key = issued(browser.post(path, sent))
    again = browser.post(path, sent, follow=True).content.decode()

    assert f"this form has already created the key {key.split('_')[1]}" in again
    assert not re.search("vk_[0-9a-f]{12}_", again)
    assert shop.keys.count() == 1
    assert len(told()) == 1
    assert issued(browser.post(path, form())) != key


def test_the_last_key_is_not_reported_as_one_too_many(owner: Membership, shop: ApiClient) -> None:
    browser, path = browser_of(owner), f"/merchant/clients/{shop.pk}/keys/issue/"
    for _ in range(MAX_LIVE_KEYS):
        page = browser.get(path).content.decode()
        sent = dict(re.findall(r'name="(form)" value="([^"]+)"', page))
        issued(browser.post(path, sent))

    again = browser.post(path, sent, follow=True).content.decode()

    assert "has already created the key" in again
    assert "revoke one first" not in again


def test_the_old_key_works_during_the_overlap(owner: Membership, shop: ApiClient) -> None:
    browser = browser_of(owner)
    old = issued(browser.post(f"/merchant/clients/{shop.pk}/keys/issue/"))
    rotated = f"/merchant/clients/{shop.pk}/keys/rotate/"
    new = issued(browser.post(rotated, {"overlap_hours": 24}))
    assert (ping(old), ping(new)) == ((200, ""), (200, ""))
    newest = issued(browser.post(rotated, {"overlap_hours": 0}))
    assert [ping(key)[0] for key in (old, new, newest)] == [401, 401, 200]
    for bad in ("", "-1", "2161", "99999999999999999999", "1.5", "x"):
        assert "vk_" not in browser.post(rotated, {"overlap_hours": bad}).content.decode()
    assert shop.keys.count() == 3


def test_a_revoked_key_stops_at_once(owner: Membership, shop: ApiClient) -> None:
    browser = browser_of(owner)
    key = issued(browser.post(f"/merchant/clients/{shop.pk}/keys/issue/"))
    row = ApiKey.objects.get(prefix=key.split("_")[1])
    assert browser.get(f"/merchant/clients/{shop.pk}/keys/{row.pk}/revoke/").status_code == 200
    assert ping(key) == (200, "")  # looking at the question changes nothing
    for _ in range(2):
        browser.post(f"/merchant/clients/{shop.pk}/keys/{row.pk}/revoke/")
    assert ping(key) == (401, "invalid_token")
    assert AuditEntry.objects.filter(action=AuditAction.KEY_REVOKED).count() == 1


def test_a_client_is_switched_off_and_on(owner: Membership, shop: ApiClient) -> None:
    browser = browser_of(owner)
    key = issued(browser.post(f"/merchant/clients/{shop.pk}/keys/issue/"))
    browser.post(f"/merchant/clients/{shop.pk}/switch/", {"enabled": "off"})
    assert ping(key) == (403, "client_disabled")
    browser.post(f"/merchant/clients/{shop.pk}/switch/", {"enabled": "on"})
    assert ping(key) == (200, "")


def test_networks_are_stored_in_standard_form(owner: Membership, shop: ApiClient) -> None:
    browser = browser_of(owner)
    key = issued(browser.post(f"/merchant/clients/{shop.pk}/keys/issue/"))
    path = f"/merchant/clients/{shop.pk}/allowlist/"
    answer = browser.post(path, {"networks": "127.0.0.1\n10.1.2.3/8\n2001:db8::/32\n127.0.0.1"})
    assert answer.status_code == 302
    shop.refresh_from_db()
    assert shop.allowed_networks == ["127.0.0.1", "10.0.0.0/8", "2001:db8::/32"]
    assert ping(key) == (200, "")
    assert ping(key, "10.9.9.9") == (200, "")
    assert ping(key, "203.0.113.9") == (403, "ip_not_allowed")
    for bad in ("nonsense", "1.2.3.4/33", "::ffff:10.0.0.1", "1.2.3.4\x00", "\n".join(["1"] * 300)):
        assert browser.post(path, {"networks": bad}).status_code == 200
    shop.refresh_from_db()
    assert len(shop.allowed_networks) == 3


def test_locking_yourself_out_needs_a_confirmation(owner: Membership, shop: ApiClient) -> None:
    browser = browser_of(owner)
    path = f"/merchant/clients/{shop.pk}/allowlist/"
    asked = browser.post(path, {"networks": "203.0.113.0/24"}).content.decode()
    shop.refresh_from_db()
    assert shop.allowed_networks == []
    (warning,) = re.findall(r'name="sure" value="([^"]+)"', asked)
    assert "Your own address 127.0.0.1 is not on the list" in warning
    # Another list has another warning, so the first confirmation does not count for it.
    again = browser.post(path, {"networks": "0.0.0.0/0", "sure": warning}).content.decode()
    assert "allows very many addresses" in again
    assert browser.post(path, {"networks": "203.0.113.0/24", "sure": warning}).status_code == 302
    shop.refresh_from_db()
    assert shop.allowed_networks == ["203.0.113.0/24"]


def test_emptying_an_allowlist_needs_a_confirmation(owner: Membership, shop: ApiClient) -> None:
    shop.allowed_networks = ["127.0.0.1"]
    shop.save()
    browser, path = browser_of(owner), f"/merchant/clients/{shop.pk}/allowlist/"
    assert "come from anywhere" in browser.post(path, {"networks": ""}).content.decode()
    shop.refresh_from_db()
    assert shop.allowed_networks == ["127.0.0.1"]


def test_the_callers_own_address_is_offered(owner: Membership, shop: ApiClient) -> None:
    browser = browser_of(owner)
    path = f"/merchant/clients/{shop.pk}/allowlist/"
    page = browser.post(path, {"networks": "203.0.113.7", "add_own": "1"}).content.decode()
    (text,) = re.findall(r"<textarea[^>]*>\n?([^<]*)</textarea>", page)
    assert text.split() == ["203.0.113.7", "127.0.0.1"]
    shop.refresh_from_db()
    assert shop.allowed_networks == []  # offered, not saved


def test_clients_and_keys_are_limited(owner: Membership, shop: ApiClient) -> None:
    another = make_client(make_account())  # whose clients and keys do not count
    for _ in range(max(MAX_CLIENTS, MAX_LIVE_KEYS)):
        make_client(another.account)
        make_key(another)
    browser = browser_of(owner)
    for _ in range(MAX_LIVE_KEYS):
        issued(browser.post(f"/merchant/clients/{shop.pk}/keys/issue/"))
    full = browser.post(f"/merchant/clients/{shop.pk}/keys/issue/", follow=True)
    assert "revoke one first" in full.content.decode()
    rotate = f"/merchant/clients/{shop.pk}/keys/rotate/"
    more = browser.post(rotate, {"overlap_hours": 1}, follow=True)
    assert "revoke one first" in more.content.decode()
    issued(browser.post(rotate, {"overlap_hours": 0}))  # which ends the others
    issued(browser.post(f"/merchant/clients/{shop.pk}/keys/issue/"))
    assert browser.post("/merchant/clients/new/", {"name": "Second"}).status_code == 302
    for _ in range(MAX_CLIENTS - 2):
        make_client(owner.account)
    answer = browser.post("/merchant/clients/new/", {"name": "One more"})
    assert f"at most {MAX_CLIENTS}" in answer.content.decode()


@pytest.mark.parametrize("name", ["", "   ", "x" * 201, "a\x00b", "a\nb"])
def test_an_unusable_name_is_refused(owner: Membership, shop: ApiClient, name: str) -> None:
    browser = browser_of(owner)
    assert browser.post("/merchant/clients/new/", {"name": name}).status_code == 200
    renamed = browser.post(f"/merchant/clients/{shop.pk}/rename/", {"name": name})
    assert renamed.status_code == 200
    assert ApiClient.objects.get(account=owner.account).name == shop.name


def test_two_clients_of_an_account_have_different_names(owner: Membership, shop: ApiClient) -> None:
    browser = browser_of(owner)
    other = make_client(owner.account)
    foreign = make_client(make_account()).name
    for path, name in (
        ("/merchant/clients/new/", f" {shop.name.upper()} "),
        (f"/merchant/clients/{other.pk}/rename/", shop.name.lower()),
    ):
        answer = browser.post(path, {"name": name})
        assert "Another client of this account has this name." in answer.content.decode()
    for path, name in (
        ("/merchant/clients/new/", foreign),
        (f"/merchant/clients/{shop.pk}/rename/", shop.name.upper()),
    ):
        assert browser.post(path, {"name": name}).status_code == 302
    names = ApiClient.objects.filter(account=owner.account).order_by("pk").values_list("name")
    assert [name for (name,) in names] == [shop.name.upper(), other.name, foreign]


def test_a_viewer_cannot_change_anything(owner: Membership, shop: ApiClient) -> None:
    viewer = browser_of(make_member(owner.account, Role.VIEWER))
    page = viewer.get(f"/merchant/clients/{shop.pk}/").content.decode()
    assert "Create an API key" not in page
    assert viewer.post(f"/merchant/clients/{shop.pk}/keys/issue/").status_code == 403
    assert not shop.keys.exists()
