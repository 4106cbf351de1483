"""`link_reference` gives a shelf the merchant's own name, and renames it on request."""

import pytest

from accounts.models import Account
from catalogue.models import ReferenceLink
from catalogue.reference_links import replace_references, unlink_reference
from catalogue.selectors import references_of
from core.inputs import InputProblem
from tests.commands import refusal, run
from tests.factories import Merchant, make_account, make_merchant, make_product, make_variation
from tests.neighbour import ours

pytestmark = pytest.mark.django_db


def names(merchant: Merchant) -> dict[str, tuple[int, int | None]]:
    """The merchant's references, and the product and variation that each stands for."""
    links = ReferenceLink.objects.filter(account=merchant.client.account).select_related("shelf")
    return {link.reference: (link.shelf.product_id, link.shelf.variation_id) for link in links}


def test_a_linked_name_buys(merchant: Merchant) -> None:
    product = make_product(codes=1)
    account = merchant.client.account_id

    printed = run("link_reference", account, "Steam/10 #1", product.pk)

    assert printed == {
        "account_id": account,
        "reference": "Steam/10 #1",
        "product_id": product.pk,
        "variation_id": None,
    }
    assert merchant.buy(merchant_reference="Steam/10 #1", quantity=1).status_code == 201


def test_the_same_link_again_changes_nothing(merchant: Merchant) -> None:
    product = make_product()
    first = run("link_reference", merchant.client.account_id, "steam", product.pk)
    link = ours(ReferenceLink).get()

    assert run("link_reference", merchant.client.account_id, "steam", product.pk) == first
    assert ours(ReferenceLink).get() == link


def test_a_variation_is_linked_separately(merchant: Merchant) -> None:
    product = make_product()
    variation = make_variation(product)

    run("link_reference", merchant.client.account_id, "all", product.pk)
    run(
        "link_reference",
        merchant.client.account_id,
        "eu",
        product.pk,
        "--variation",
        variation.pk,
    )

    assert names(merchant) == {"all": (product.pk, None), "eu": (product.pk, variation.pk)}


def test_a_shelf_is_renamed(merchant: Merchant) -> None:
    product = make_product()
    run("link_reference", merchant.client.account_id, "old", product.pk)

    run("link_reference", merchant.client.account_id, "new", product.pk)

    assert names(merchant) == {"new": (product.pk, None)}


def test_a_name_moves_to_another_shelf(merchant: Merchant) -> None:
    first, second = make_product(), make_product()
    run("link_reference", merchant.client.account_id, "a", first.pk)
    run("link_reference", merchant.client.account_id, "b", second.pk)

    run("link_reference", merchant.client.account_id, "a", second.pk)

    assert names(merchant) == {"a": (second.pk, None)}


def test_accounts_do_not_share_names(merchant: Merchant) -> None:
    other, product = make_merchant(), make_product()

    run("link_reference", merchant.client.account_id, "steam", product.pk)
    run("link_reference", other.client.account_id, "steam", make_product().pk)

    assert names(merchant) == {"steam": (product.pk, None)}


@pytest.mark.parametrize(
    ("reference", "rule"),
    [
        ("", "at least one character"),
        (" a", "starts with a letter or digit, not with U+0020"),
        ("_a", "starts with a letter or digit, not with _"),
        ("a" * 65, "at most 64 characters; this one has 65"),
        ("a\n", "character 2 is U+000A"),
        ("a\x00", "character 2 is U+0000"),
        ("a@b", "character 2 is @"),
        ("-", "starts with a letter or digit, not with -"),
        ("\u00b2", "starts with a letter or digit, not with \u00b2"),
        ("a\u00bd", "character 2 is \u00bd"),
        ("a\u2167", "character 2 is \u2167"),
    ],
)
def test_a_name_outside_the_rules_is_refused(merchant: Merchant, reference: str, rule: str) -> None:
    words = ["link_reference", merchant.client.account_id, "--", reference, make_product().pk]

    assert rule in refusal(*words)
    assert not ours(ReferenceLink).exists()


def test_what_does_not_exist_is_named(merchant: Merchant) -> None:
    account, product = merchant.client.account_id, make_product()
    other = make_variation(make_product())

    assert "account 999999" in refusal("link_reference", 999999, "a", product.pk)
    assert "product 999999" in refusal("link_reference", account, "a", 999999)
    assert "variation" in refusal(
        "link_reference", account, "a", product.pk, "--variation", other.pk
    )
    assert not ours(ReferenceLink).exists()


def test_accounts_may_give_a_shelf_the_same_name_and_remove_only_their_own() -> None:
    """The other account's link comes first and last, so that a mix-up shows either way."""
    first, mine, last = (make_account().pk for _ in range(3))
    product = make_product()
    shelf = product.shelves.get()
    for account in (first, last):
        run("link_reference", account, f"name of {account}", product.pk)

    for other in (last, first, last):
        named = replace_references(account_id=mine, references={shelf.pk: f"name of {other}"})
        assert [after for _before, after in named.values()] == [f"name of {other}"]

    by_account = dict(shelf.references.values_list("account_id", "reference"))
    assert by_account == {
        first: f"name of {first}",
        last: f"name of {last}",
        mine: f"name of {last}",
    }
    for account, name in by_account.items():
        assert references_of(Account.objects.get(pk=account), [shelf.pk]) == {shelf.pk: name}

    for account in (mine, last):
        removed = unlink_reference(account_id=account, product_id=product.pk)
        assert removed is not None
        assert removed.account_id == account
    assert unlink_reference(account_id=mine, product_id=product.pk) is None
    assert shelf.references.get().account_id == first


def test_a_shelf_that_was_removed_after_the_check_is_refused(merchant: Merchant) -> None:
    shelf = make_product().shelves.get()
    gone = shelf.pk + 1

    with pytest.raises(InputProblem, match="removed meanwhile"):
        replace_references(
            account_id=merchant.account.pk, references={shelf.pk: "one", gone: "two"}
        )

    assert names(merchant) == {}
