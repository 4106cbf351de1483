"""The path at the top of a page names the list as the menu does, and the row as it is."""

import re

import pytest
from django.db.models import Model

from catalogue.models import VoucherCode
from tests.factories import make_product
from tests.operators.back_office import make_import, make_staff, signed_in, url

pytestmark = pytest.mark.django_db


def path_of(row: Model) -> list[str]:
    page = signed_in().get(url(row)).content.decode()
    parts = re.findall(r'min-w-0 truncate tracking-tight[^"]*">([^<]*)<', page)
    return [part.strip() for part in parts]


def test_a_file_keeps_its_name() -> None:
    assert path_of(make_import()) == ["Imports", "catalogue.json"]


def test_a_person_keeps_their_name() -> None:
    staff = make_staff()

    assert path_of(staff) == ["Staff", staff.username]


def test_a_row_without_a_name_begins_with_a_capital_letter() -> None:
    make_product(codes=1)
    code = VoucherCode.objects.latest("pk")

    assert path_of(code) == ["Voucher codes", f"Code {code.pk}"]
