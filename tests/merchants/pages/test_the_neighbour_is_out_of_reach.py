"""What a merchant changes leaves the neighbour's rows alone, even where names are the same."""

from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import Account, ApiClient, ApiKey
from catalogue.models import Product, ReferenceLink, Shelf
from merchants.email.secret_links import sign_invitation
from merchants.models import BalanceAlert, Email, Invitation, MemberSession, Membership, Role
from merchants.people.invitations import invite_person
from tests.factories import (
    NEIGHBOUR,
    Merchant,
    buy_topup,
    link,
    make_client,
    make_key,
    make_product,
    own_shelf,
)
from tests.merchants.people import browser_of, follow_link, make_member
from topups.models import Fulfilment

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner() -> Membership:
    return make_member()


def neighbour() -> Account:
    return Account.objects.get(name=NEIGHBOUR)


def belongings() -> list[list[dict[str, Any]]]:
    """Everything of the neighbour that a page of the merchant site can change."""
    account = neighbour()
    people = Membership.objects.filter(account=account)
    users = people.values("user")
    found: list[Any] = [
        ApiClient.objects.filter(account=account),
        ApiKey.objects.filter(client__account=account),
        ReferenceLink.objects.filter(account=account),
        people,
        Invitation.objects.filter(account=account),
        BalanceAlert.objects.filter(account=account),
        MemberSession.objects.filter(user__in=users),
        Email.objects.filter(to__endswith="@neighbour.example"),
        people.values("user__password", "user__is_active").order_by("pk"),
    ]
    return [list(rows.values() if rows._fields is None else rows) for rows in found]


def test_a_key_of_another_client_is_not_revoked_through_ones_own(owner: Membership) -> None:
    mine, sibling = make_client(owner.account), make_client(owner.account)
    make_key(mine)
    make_key(sibling)
    theirs = ApiKey.objects.get(client__account=neighbour(), revoked_at=None)
    browser = browser_of(owner)

    for key in (theirs, sibling.keys.get()):
        path = reverse("merchants:revoke_key", kwargs={"client_id": mine.pk, "key_id": key.pk})
        assert browser.get(path).status_code == browser.post(path).status_code == 404
        key.refresh_from_db()
        assert key.revoked_at is None


def test_a_reference_file_leaves_the_names_of_others(owner: Membership) -> None:
    first, second = own_shelf(make_product()), own_shelf(make_product())
    gone = own_shelf(make_product(active=False))
    link(owner.account, "one", first)
    link(owner.account, "two", second)
    link(owner.account, "three", gone)
    before = belongings()
    assert names_of(neighbour(), first, second) != {}

    import_references(owner, {first: "two", second: "one"})
    import_references(owner, {first: "", second: "three"})

    assert names_of(owner.account, first, second, gone) == {second.pk: "three"}
    assert belongings() == before


def names_of(account: Account, *shelves: Shelf) -> dict[int, str]:
    links = ReferenceLink.objects.filter(account=account, shelf__in=shelves)
    return dict(links.values_list("shelf_id", "reference"))


def import_references(owner: Membership, names: dict[Shelf, str]) -> None:
    lines = [f"{shelf.product_id},,{name}" for shelf, name in names.items()]
    text = "\n".join(["product_id,variation_id,merchant_reference", *lines])
    file = SimpleUploadedFile("references.csv", text.encode())
    browser, address = browser_of(owner), "/merchant/references/import/"
    page = browser.post(address, {"file": file}).content.decode()
    checked = page.partition('name="checked" value="')[2].partition('"')[0]
    assert browser.post(address, {"checked": checked}).status_code == 302


def test_a_name_is_set_moved_and_removed_for_one_account(owner: Membership) -> None:
    product, other = make_product(), make_product()
    link(owner.account, "mine", own_shelf(other))
    before, browser = belongings(), browser_of(owner)

    def send(product: Product, reference: str, **more: int) -> None:
        form = {"product": product.pk, "reference": reference, **more}
        assert browser.post("/merchant/references/name/", form).status_code == 302

    send(product, "mine", move_from=own_shelf(other).pk)
    send(product, f"theirs-{own_shelf(other).pk}")
    assert names_of(owner.account, own_shelf(product), own_shelf(other)) == {
        own_shelf(product).pk: f"theirs-{own_shelf(other).pk}"
    }
    send(product, "")

    assert names_of(owner.account, own_shelf(product)) == {}
    assert belongings() == before


CHANGES: dict[str, Callable[[Client, Membership, ApiClient], Any]] = {
    "rename": lambda http, me, shop: http.post(
        f"/merchant/clients/{shop.pk}/rename/", {"name": "New"}
    ),
    "switch off": lambda http, me, shop: http.post(
        f"/merchant/clients/{shop.pk}/switch/", {"enabled": "off"}
    ),
    "allowlist": lambda http, me, shop: http.post(
        f"/merchant/clients/{shop.pk}/allowlist/", {"networks": "127.0.0.1"}
    ),
    "rotate": lambda http, me, shop: http.post(
        f"/merchant/clients/{shop.pk}/keys/rotate/", {"overlap_hours": "0"}
    ),
    "revoke": lambda http, me, shop: http.post(
        f"/merchant/clients/{shop.pk}/keys/{shop.keys.get().pk}/revoke/"
    ),
    "set an alert": lambda http, me, shop: http.post("/merchant/wallet/alert/", {"level": "12"}),
    "invite": lambda http, me, shop: http.post(
        "/merchant/people/invite/", {"email": "invited@neighbour.example", "role": "owner"}
    ),
    "change a role": lambda http, me, shop: http.post(
        f"/merchant/people/{make_member(me.account, Role.VIEWER).pk}/role/", {"role": "owner"}
    ),
    "remove": lambda http, me, shop: http.post(
        f"/merchant/people/{make_member(me.account, Role.VIEWER).pk}/remove/"
    ),
    "end sessions": lambda http, me, shop: http.post("/merchant/profile/sessions/end/"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_leaves_the_neighbour_alone(
    change: Callable[[Client, Membership, ApiClient], Any], owner: Membership
) -> None:
    shop = make_client(owner.account, allowed_networks=["203.0.113.0/24"])
    make_key(shop)
    invited = Email.objects.filter(to="invited@neighbour.example", kind="invitation")
    before = belongings()

    answer = change(browser_of(owner), owner, shop)

    assert answer.status_code in (200, 302), answer.content
    invited.delete()
    assert belongings() == before


def test_removing_an_alert_leaves_the_neighbours(owner: Membership) -> None:
    browser = browser_of(owner)
    browser.post("/merchant/wallet/alert/", {"level": "12"})
    assert BalanceAlert.objects.filter(account=owner.account).exists()

    browser.post("/merchant/wallet/alert/", {"level": ""})

    assert not BalanceAlert.objects.filter(account=owner.account).exists()
    assert BalanceAlert.objects.filter(account=neighbour()).exists()


def test_lists_and_counts_hold_only_ones_own_top_ups(owner: Membership) -> None:
    shop = Merchant(make_client(owner.account))
    reference = buy_topup(shop)
    browser = browser_of(owner)
    theirs = Fulfilment.objects.filter(account=neighbour())

    for status in ("", "pending", "completed", "failed"):
        shown = browser.get("/merchant/orders/", {"status": status}).content.decode()
        assert (reference in shown) == (status in ("", "pending"))
        assert not [one for one in theirs if one.order_reference in shown]
    assert browser.get("/merchant/").context["open_topups"] == 1
    assert browser_of(make_member()).get("/merchant/").context["open_topups"] == 0


def test_a_former_member_of_the_neighbour_joins_only_there(owner: Membership) -> None:
    """Their user must not change hands: the audit trail of the neighbour names it."""
    former = Membership.objects.get(account=neighbour(), user__is_active=False)
    invitation = invite_person(
        account=owner.account, email=former.user.email, role=Role.OWNER, invited_by=owner.user
    )
    link = f"/merchant/join/#{sign_invitation(invitation.pk)}"

    answer = follow_link(Client(), link, password="a long and unusual password")

    assert "already signs in here" in answer.content.decode()
    former.refresh_from_db()
    assert (former.account, former.user.is_active) == (neighbour(), False)
