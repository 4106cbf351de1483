"""The path at the top of a page names the list as the menu does, and the row as it is."""

import re
from datetime import date

import pytest
from django.db.models import Model

from catalogue.models import VoucherCode
from merchants.models import Role
from tests.factories import make_account, make_batch, make_product, own_shelf
from tests.merchants.people import make_member
from tests.operators.back_office import make_close, make_import, make_staff, signed_in, url
from wallets.models import WalletClose

pytestmark = pytest.mark.django_db


def path_of(row: Model, language: str = "en") -> list[str]:
    page = signed_in().get(url(row), headers={"Accept-Language": language}).content.decode()
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


def test_a_close_and_a_member_are_named_in_the_readers_language() -> None:
    member, account = make_member(role=Role.DEVELOPER), make_account()
    make_close(account, date(2026, 1, 31))
    close, email = WalletClose.objects.get(wallet=account.pk), member.user.email

    assert path_of(close)[-1] == f"{account} · 2026-01-31"
    assert path_of(member)[-1] == f"{email} (developer) · {member.account}"
    assert path_of(member, "de")[-1] == f"{email} (Entwickler) · {member.account}"


def test_who_bought_of_a_batch_is_named_in_the_readers_language() -> None:
    batch = make_batch(own_shelf(make_product()))

    page = signed_in().get(url(batch, "recall"), headers={"Accept-Language": "de"}).text
    assert f"Niemand hat einen Code von Charge {batch.pk} gekauft." in page
