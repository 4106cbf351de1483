"""After `reseal`, nothing needs the old encryption key."""

from uuid import uuid4

import pytest
from pytest_django import Settings

from accounts.models import SecondFactor
from cases.models import CaseFile
from cases.services import open_case
from catalogue.models import VoucherCode
from idempotency.models import IdempotencyRecord
from merchants.frame.prepared_files import open_request, read_part, row_of_file
from merchants.models import PreparedFile
from operators.imports import jobs
from operators.imports.models import FileImport, FilePart, open_file, row_of_part
from operators.upkeep.reconcile import reconcile
from operators.upkeep.reseal import reseal_all, retire_keys
from orders.models import Order
from tests.cases.complaints import PNG
from tests.factories import (
    Merchant,
    add_codes,
    make_operator,
    make_product,
    new_encryption_key,
    own_shelf,
)
from tests.operators.back_office import make_import, make_prepared_file, make_proof
from topups.models import DeliveryFile

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("alone")]


def test_everything_is_resealed_under_the_first_key(merchant: Merchant, settings: Settings) -> None:
    product = make_product(codes=3)
    bought = merchant.buy("one", product_id=product.pk, quantity=1)
    factor = SecondFactor.objects.create(user=make_operator().user)
    key = factor.key
    file = make_import()
    upload = uuid4()
    jobs.add_part(upload=upload, number=0, content=b"code", actor=factor.user)
    order = Order.objects.get()
    files = [("code.png", PNG)]
    open_case(order=order, code=None, actor=factor.user, text="See the picture.", files=files)
    proof = make_proof(merchant)
    prepared = make_prepared_file(factor.user)
    settings.CODE_ENCRYPTION_KEYS = [new_encryption_key(9), *settings.CODE_ENCRYPTION_KEYS]

    kinds = {"second_factors": 1, "codes": 3, "replays": 2, "case_files": 1}
    kinds |= {"delivery_files": 1, "file_imports": 1, "file_parts": 1}
    kinds |= {"prepared_files": 1, "prepared_parts": 1}
    assert reseal_all() == kinds
    assert reseal_all() == dict.fromkeys(kinds, 0)
    assert retire_keys() == [9]

    settings.CODE_ENCRYPTION_KEYS = settings.CODE_ENCRYPTION_KEYS[:1]
    assert merchant.buy("one", product_id=product.pk, quantity=1).content == bought.content
    assert CaseFile.objects.get().content() == PNG
    assert DeliveryFile.objects.get(proof=proof).content() == b"%PDF-1.7"
    add_codes(own_shelf(product), 1)
    for row in VoucherCode.objects.all():
        assert bytes(row.sealed)[0] == 9
    assert SecondFactor.objects.get().key == key
    assert FileImport.objects.get(pk=file.pk).content() == b"{}"
    assert open_file(FilePart.objects.get().sealed, row_of_part(upload, 0)) == b"code"
    assert read_part(prepared, 0) == b"line"
    assert open_request(PreparedFile.objects.get().sealed, row_of_file(prepared.token))
    for record in IdempotencyRecord.objects.all():
        assert bytes(record.response or b"")[0] == 9
    reference = bought.json()["data"]["reference"]
    assert merchant.get(f"/orders/{reference}").json()["data"] == bought.json()["data"]


@pytest.mark.django_db(transaction=True)
def test_a_lost_key_is_reported_by_reconcile(merchant: Merchant, settings: Settings) -> None:
    product = make_product(codes=3)
    assert merchant.buy(product_id=product.pk, quantity=1).status_code == 201
    settings.CODE_ENCRYPTION_KEYS = [new_encryption_key(9)]

    checks = [finding["check"] for finding in reconcile(decrypt=True)["findings"]]
    assert checks == [
        "the root secret of all sealed values is there, and no other one",
        *["every stored code opens"] * 3,
        "every stored replay opens",
        "each voucher order has the codes that it was sold with",
    ]


@pytest.mark.django_db(transaction=True)
def test_reconcile_decrypts_with_a_key_that_is_new(settings: Settings) -> None:
    make_product(codes=1)
    settings.CODE_ENCRYPTION_KEYS = [new_encryption_key(9), *settings.CODE_ENCRYPTION_KEYS]

    assert reconcile(decrypt=True)["ok"] is True
