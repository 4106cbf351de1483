"""`rotate_key` and `revoke_key`: old keys end on time, and other keys keep working."""

from datetime import timedelta

import pytest
from django.db import DatabaseError
from django.utils import timezone

from accounts.models import ApiKey
from audit.models import AuditAction, AuditEntry
from tests.commands import refusal, run
from tests.factories import Merchant, make_product
from tests.neighbour import ours

pytestmark = pytest.mark.django_db


def works(merchant: Merchant, key: str) -> bool:
    merchant.key = key
    return bool(merchant.get("/ping").status_code == 200)


def prefix_of(key: str) -> str:
    return key.split("_")[1]


def test_after_a_rotation_both_keys_work_for_a_day(merchant: Merchant) -> None:
    old = merchant.key

    new = run("rotate_key", merchant.client.pk)["api_key"]

    assert works(merchant, old)
    assert works(merchant, new)
    expiry = ApiKey.objects.get(prefix=prefix_of(old)).expires_at
    assert expiry is not None
    assert abs(expiry - timezone.now() - timedelta(hours=24)) < timedelta(minutes=1)


def test_a_rotation_without_overlap_ends_the_old_key(merchant: Merchant) -> None:
    old = merchant.key

    new = run("rotate_key", merchant.client.pk, "--overlap-hours", 0)["api_key"]

    assert not works(merchant, old)
    assert works(merchant, new)


def test_a_second_rotation_does_not_extend_an_overlap(merchant: Merchant) -> None:
    old = prefix_of(merchant.key)
    run("rotate_key", merchant.client.pk, "--overlap-hours", 1)
    expiry = ApiKey.objects.get(prefix=old).expires_at

    run("rotate_key", merchant.client.pk, "--overlap-hours", 100)

    assert ApiKey.objects.get(prefix=old).expires_at == expiry


def test_a_second_rotation_may_shorten_an_overlap(merchant: Merchant) -> None:
    old = merchant.key
    middle = run("rotate_key", merchant.client.pk, "--overlap-hours", 100)["api_key"]

    new = run("rotate_key", merchant.client.pk, "--overlap-hours", 0)["api_key"]

    assert not works(merchant, old)
    assert not works(merchant, middle)
    assert works(merchant, new)


def test_a_new_key_sees_and_replays_the_orders_of_the_old_key(merchant: Merchant) -> None:
    bought = merchant.buy("one", product_id=make_product(codes=2).pk, quantity=1)
    merchant.key = run("rotate_key", merchant.client.pk)["api_key"]

    assert merchant.get("/orders").json()["data"]["pagination"]["total"] == 1
    assert merchant.buy("one", **body_of(bought)).content == bought.content


def body_of(answer: object) -> dict[str, int]:
    order = answer.json()["data"]  # type: ignore[attr-defined]
    return {"product_id": order["product_id"], "quantity": order["quantity"]}


def test_a_revoked_key_stops_and_other_keys_keep_working(merchant: Merchant) -> None:
    old = merchant.key
    new = run("rotate_key", merchant.client.pk)["api_key"]

    first = run("revoke_key", prefix_of(old))
    again = run("revoke_key", prefix_of(old))

    assert first == again
    assert first["client_id"] == merchant.client.pk
    assert not works(merchant, old)
    assert works(merchant, new)


def test_a_whole_key_is_refused_and_not_printed(merchant: Merchant) -> None:
    line = refusal("revoke_key", merchant.key)

    assert merchant.key not in line
    assert merchant.key.split("_")[2] not in line
    assert works(merchant, merchant.key)


def test_an_unknown_prefix_is_refused(merchant: Merchant) -> None:
    assert "no key" in refusal("revoke_key", "0" * 12)
    assert "prefix" in refusal("revoke_key", "0" * 11)


@pytest.mark.parametrize("hours", ["-1", "2161", "1e3", "soon", str(10**30)])
def test_a_bad_overlap_changes_nothing(merchant: Merchant, hours: str) -> None:
    refusal("rotate_key", merchant.client.pk, "--overlap-hours", hours)

    assert ours(ApiKey).count() == 1
    assert works(merchant, merchant.key)


def test_each_change_of_a_key_is_in_the_audit_trail(merchant: Merchant) -> None:
    made = run("create_client", "Web shop", "--account", merchant.client.account_id)
    rotated = run("rotate_key", made["client_id"])
    for _ in range(2):  # the second changes nothing
        run("revoke_key", prefix_of(rotated["api_key"]))

    entries = AuditEntry.objects.filter(object_id=str(made["client_id"])).order_by("pk")
    assert [(entry.action, entry.actor, entry.reference) for entry in entries] == [
        (AuditAction.CLIENT_CREATED, None, "Web shop"),
        (AuditAction.KEY_ISSUED, None, prefix_of(made["api_key"])),
        (AuditAction.KEY_ROTATED, None, prefix_of(rotated["api_key"])),
        (AuditAction.KEY_REVOKED, None, prefix_of(rotated["api_key"])),
    ]


def test_a_key_that_cannot_be_recorded_is_not_issued(
    merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = ours(ApiKey).count()
    monkeypatch.setattr(AuditEntry.objects, "create", _fail)

    with pytest.raises(DatabaseError):
        run("rotate_key", merchant.client.pk, "--overlap-hours", 0)

    assert ours(ApiKey).count() == before
    assert works(merchant, merchant.key)


def _fail(**fields: object) -> None:
    raise DatabaseError("the audit trail cannot be written")
