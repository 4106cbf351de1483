"""Encryption keys are checked before they are used: all processes have the same key per id."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounts.models import SecondFactor
from core.checks import refuse_wrong_keys
from core.database import key_ring as module
from core.database import sealing
from core.database.key_ring import LOST, WrongKeys, check_keys, key_ring, root_problem
from core.models import EncryptionKey, RootFingerprint
from tests.concurrency.racing import without_triggers
from tests.factories import (
    Merchant,
    buy_topup,
    make_operator,
    make_product,
    make_topup_product,
    new_encryption_key,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_rings", {})


def test_a_new_key_is_registered_and_wraps_the_same_secret(settings: Settings) -> None:
    before = check_keys()
    settings.CODE_ENCRYPTION_KEYS = [*settings.CODE_ENCRYPTION_KEYS, new_encryption_key(2)]

    after = check_keys()

    assert after.root == before.root
    assert after.ids == b"\x01\x02"
    rows = EncryptionKey.objects.order_by("key_id")
    assert [(row.key_id, row.sealing_since is not None) for row in rows] == [(1, True), (2, False)]


def test_a_key_may_be_missing_until_somebody_seals_with_it(settings: Settings) -> None:
    old, new = settings.CODE_ENCRYPTION_KEYS[0], new_encryption_key(2)
    settings.CODE_ENCRYPTION_KEYS = [old, new]
    check_keys()
    settings.CODE_ENCRYPTION_KEYS = [old]
    check_keys()
    settings.CODE_ENCRYPTION_KEYS = [new, old]
    check_keys()

    settings.CODE_ENCRYPTION_KEYS = [old]
    with pytest.raises(WrongKeys, match="lacks key 2"):
        check_keys()


def test_another_key_with_the_same_id_is_refused(settings: Settings) -> None:
    settings.CODE_ENCRYPTION_KEYS = [new_encryption_key(1)]

    with pytest.raises(WrongKeys, match="key 1 differs"):
        check_keys()


def test_a_wrong_second_key_is_refused_before_anybody_seals_with_it(settings: Settings) -> None:
    old = settings.CODE_ENCRYPTION_KEYS[0]
    settings.CODE_ENCRYPTION_KEYS = [old, new_encryption_key(2)]
    check_keys()

    settings.CODE_ENCRYPTION_KEYS = [old, new_encryption_key(2)]
    with pytest.raises(WrongKeys, match="key 2 differs"):
        check_keys()


def test_keys_that_wrap_different_secrets_are_refused(settings: Settings) -> None:
    settings.CODE_ENCRYPTION_KEYS = [*settings.CODE_ENCRYPTION_KEYS, new_encryption_key(2)]
    check_keys()
    another = sealing.wrap(b"another secret, of 32 bytes too.", 2)
    without_triggers("UPDATE core_encryptionkey SET wrapped = %s WHERE key_id = 2", another)

    with pytest.raises(WrongKeys):
        check_keys()


def test_a_process_with_none_of_the_keys_registers_nothing(settings: Settings) -> None:
    settings.CODE_ENCRYPTION_KEYS = [new_encryption_key(2)]

    with pytest.raises(WrongKeys, match="lacks key 1"):
        check_keys()

    assert EncryptionKey.objects.count() == 1


def test_the_first_process_of_a_service_makes_the_root_secret(settings: Settings) -> None:
    without_triggers("DELETE FROM core_encryptionkey; DELETE FROM core_rootfingerprint")

    first = check_keys()
    settings.CODE_ENCRYPTION_KEYS = [new_encryption_key(2), *settings.CODE_ENCRYPTION_KEYS]

    assert check_keys().root == first.root
    assert len(first.root) == 32


def test_an_empty_table_is_no_new_service(client: Client) -> None:
    """It would seal new codes with another root secret, and sell imported ones again."""
    check_keys()
    without_triggers("DELETE FROM core_encryptionkey")

    with pytest.raises(WrongKeys, match="is empty"):
        check_keys()
    assert client.get("/readyz").status_code == 503
    assert "Restore it from a backup" in str(root_problem())
    assert not EncryptionKey.objects.exists()


SEALED: dict[str, Callable[[Merchant], object]] = {
    "a code": lambda merchant: make_product(codes=1),
    "a replay": buy_topup,
    "a second factor": lambda merchant: SecondFactor.objects.create(user=make_operator().user),
}


@pytest.mark.parametrize("kind", SEALED)
def test_a_service_that_has_sealed_something_is_no_new_service(
    client: Client, merchant: Merchant, caplog: pytest.LogCaptureFixture, kind: str
) -> None:
    """An earlier version had no fingerprint, or somebody deleted it, too."""
    SEALED[kind](merchant)
    without_triggers("DELETE FROM core_encryptionkey; DELETE FROM core_rootfingerprint")

    with pytest.raises(WrongKeys, match="is empty"), transaction.atomic():
        check_keys()
    assert client.get("/readyz").json()["keys"] is False
    assert LOST in caplog.text
    assert not EncryptionKey.objects.exists()


@pytest.mark.parametrize("kind", SEALED)
def test_a_key_with_which_something_is_sealed_stays(merchant: Merchant, kind: str) -> None:
    SEALED[kind](merchant)
    EncryptionKey.objects.create(key_id=255, wrapped=b"", sealing_since=timezone.now())

    with pytest.raises(IntegrityError, match="values are sealed"), transaction.atomic():
        EncryptionKey.objects.exclude(key_id=255).delete()
    EncryptionKey.objects.get(key_id=255).delete()


def test_another_root_secret_is_refused() -> None:
    check_keys()
    with connection.cursor() as cursor:
        cursor.execute("SELECT wrapped FROM core_encryptionkey")
        ours = cursor.fetchone()[0]
    without_triggers("DELETE FROM core_encryptionkey; DELETE FROM core_rootfingerprint")
    check_keys()
    other = EncryptionKey.objects.get()
    without_triggers("UPDATE core_encryptionkey SET wrapped = %s", bytes(ours))

    assert bytes(other.wrapped) != bytes(ours)
    with pytest.raises(WrongKeys, match="another root secret"):
        check_keys()
    assert "another root secret" in str(root_problem())


def test_a_service_of_an_earlier_version_gets_its_fingerprint() -> None:
    before = check_keys()
    make_product(codes=1)
    without_triggers("DELETE FROM core_rootfingerprint")

    assert check_keys() == before
    assert RootFingerprint.objects.count() == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM core_encryptionkey",
        "UPDATE core_encryptionkey SET wrapped = 'x'",
        "UPDATE core_encryptionkey SET key_id = 255",
        "INSERT INTO core_encryptionkey (key_id, wrapped) VALUES (255, '');"
        "DELETE FROM core_encryptionkey WHERE key_id <> 255",
        "DELETE FROM core_rootfingerprint",
        "UPDATE core_rootfingerprint SET fingerprint = 'x'",
    ],
)
def test_the_database_keeps_the_root_secret(statement: str) -> None:
    check_keys()
    with connection.cursor() as cursor, pytest.raises(ProgrammingError, match="must stay"):
        cursor.execute(statement)


@pytest.mark.parametrize("keys", [["1"], ["2", "1"]])
def test_derived_secrets_differ_by_purpose_and_subject(settings: Settings, keys: list[str]) -> None:
    entries = {"1": settings.CODE_ENCRYPTION_KEYS[0], "2": new_encryption_key(2)}
    ring = check_keys()
    settings.CODE_ENCRYPTION_KEYS = [entries[key] for key in keys]

    assert check_keys().derive(b"a", b"b") == ring.derive(b"a", b"b")
    assert len({ring.derive(b"a"), ring.derive(b"b"), ring.derive(b"a", b"b")}) == 3


def test_readyz_reports_wrong_keys(client: Client, settings: Settings) -> None:
    assert client.get("/readyz").json()["keys"] is True

    settings.CODE_ENCRYPTION_KEYS = [new_encryption_key(1)]
    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["status"]) == (503, "unready")
    assert answer.json()["keys"] is False


@pytest.mark.django_db(transaction=True)
def test_a_process_with_wrong_keys_does_not_start(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    refuse_wrong_keys()
    settings.CODE_ENCRYPTION_KEYS = [new_encryption_key(1)]

    with pytest.raises(SystemExit):
        refuse_wrong_keys()

    assert capsys.readouterr().err == (
        "CODE_ENCRYPTION_KEYS: key 1 differs from that of other processes.\n"
    )


@pytest.mark.django_db(transaction=True)
def test_the_keys_are_read_once_per_process() -> None:
    ring = key_ring()
    with connection.execute_wrapper(_no_query):
        assert key_ring() is ring


def _no_query(*arguments: object) -> None:
    raise AssertionError("the keys were read again")


@pytest.mark.parametrize("kind", ["voucher", "top-up"])
@pytest.mark.django_db(transaction=True)
def test_a_process_with_wrong_keys_claims_and_debits_nothing(
    merchant: Merchant, settings: Settings, kind: str
) -> None:
    right = settings.CODE_ENCRYPTION_KEYS
    body: dict[str, Any]
    if kind == "voucher":
        body = {"product_id": make_product(codes=1).pk, "quantity": 1}
    else:
        body = {
            "delivery_type": "top_up",
            "system_product_id": make_topup_product().pk,
            "player_id": "007",
        }
    merchant.http.raise_request_exception = False
    settings.CODE_ENCRYPTION_KEYS = [new_encryption_key(1)]

    refused = merchant.buy("one", **body)

    assert refused.status_code == 500
    assert merchant.get("/balance").json()["data"]["balance"] == 100
    settings.CODE_ENCRYPTION_KEYS = right
    assert merchant.buy("one", **body).status_code == 201
