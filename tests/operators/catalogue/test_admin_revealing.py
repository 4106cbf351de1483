"""A code is shown on one page only, after the audit trail has recorded who sees it."""

import logging
from typing import Any

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.test.utils import override_settings

from catalogue.models import VoucherCode
from core.backoffice.registry import watches
from core.backoffice.staff_roles import StaffRole
from operators.catalogue.code_reveal import reveal_codes
from operators.warnings.models import StaffWarning
from operators.warnings.raising import open_warnings, rules, sweep_kind
from orders.models import Order
from tests.audited import recorded
from tests.factories import add_codes, make_merchant, make_product, own_shelf
from tests.neighbour import ours
from tests.operators.back_office import make_staff, signed_in, staff_with, url

SEE_CODES = ("catalogue.view_vouchercode", "orders.view_order")
REVEAL = "catalogue.reveal_vouchercode"


@pytest.fixture
def sold(db: None) -> tuple[Order, list[str]]:
    """An order of two codes, and the codes."""
    product = make_product()
    codes = add_codes(own_shelf(product), 2)
    make_merchant().buy(product_id=product.pk, quantity=2)
    return ours(Order).get(), codes


def test_a_code_is_shown_after_a_confirmation(sold: tuple[Order, list[str]]) -> None:
    order, codes = sold
    user = make_staff(*SEE_CODES, REVEAL)
    browser = signed_in(user)
    code = ours(VoucherCode).earliest("position")

    asked = browser.get(url(code, "reveal"))
    assert codes[0] not in asked.content.decode()
    assert not recorded().exists()

    shown = browser.post(url(code, "reveal"), {"note": "merchant lost it"})
    assert codes[0] in shown.content.decode()
    assert f"SN-{codes[0]}" in shown.content.decode()
    assert "no-store" in shown["Cache-Control"]
    entry = recorded().get()
    assert (entry.actor, entry.action, entry.note) == (user, "code_revealed", "merchant lost it")
    assert (entry.object_type, entry.object_id) == ("catalogue.vouchercode", str(code.pk))
    assert (entry.reference, entry.request_id) == (order.reference, shown["X-Request-Id"])


def test_each_revealed_code_has_an_audit_entry(sold: tuple[Order, list[str]]) -> None:
    order, codes = sold

    shown = signed_in().post(url(order, "reveal"))

    assert all(code in shown.content.decode() for code in codes)
    entries = recorded().values_list("object_id", flat=True)
    ids = ours(VoucherCode).values_list("pk", flat=True)
    assert sorted(entries) == sorted(map(str, ids))


@pytest.mark.parametrize("page", ["order", "code"])
def test_revealing_needs_the_permission(sold: tuple[Order, list[str]], page: str) -> None:
    order, _ = sold
    target: Any = order if page == "order" else ours(VoucherCode).earliest("position")
    browser = signed_in(make_staff(*SEE_CODES))

    answers = [browser.get(url(target, "reveal")), browser.post(url(target, "reveal"))]

    assert [answer.status_code for answer in answers] == [403, 403]
    assert "/reveal/" not in browser.get(url(target)).content.decode()
    assert not recorded().exists()


@pytest.mark.parametrize("page", ["order", "code"])
def test_revealing_also_needs_the_view_permission(sold: tuple[Order, list[str]], page: str) -> None:
    order, _ = sold
    target: Any = order if page == "order" else ours(VoucherCode).earliest("position")
    browser = signed_in(make_staff(REVEAL))

    assert browser.post(url(target, "reveal")).status_code == 403
    assert not recorded().exists()


def test_revealing_needs_a_csrf_token(sold: tuple[Order, list[str]]) -> None:
    browser = signed_in(csrf=True)

    answer = browser.post(url(sold[0], "reveal"))

    assert answer.status_code == 403
    assert not recorded().exists()


def test_anonymous_visitors_are_sent_to_the_log_in(sold: tuple[Order, list[str]]) -> None:
    answer = Client().post(url(sold[0], "reveal"))

    assert answer.status_code == 302
    assert answer["Location"].startswith("/admin/login/")


def test_a_code_appears_only_on_its_page(
    sold: tuple[Order, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    order, codes = sold
    browser = signed_in()

    with caplog.at_level(logging.DEBUG):
        shown = browser.post(url(order, "reveal"))
    later = browser.get(url(order))

    kept = [
        caplog.text,
        later.content.decode(),
        str(dict(browser.session)),
        *(str(session.get_decoded()) for session in ours(Session).all()),
        str(list(recorded().values())),
        str(shown.headers),
        str(browser.cookies),
    ]
    assert codes[0] in shown.content.decode()
    assert [text for text in kept if codes[0] in text or codes[1] in text] == []


def test_a_code_that_cannot_be_opened_is_reported(sold: tuple[Order, list[str]]) -> None:
    other = "9:" + "A" * 43
    browser = signed_in()

    with override_settings(CODE_ENCRYPTION_KEYS=[other]):
        answer = browser.post(url(sold[0], "reveal"), follow=True)

    assert "does not have the encryption key" in answer.content.decode()
    assert not recorded().exists()


def test_an_unsold_code_has_a_warning(db: None) -> None:
    add_codes(own_shelf(make_product()), 1)

    asked = signed_in().get(url(ours(VoucherCode).get(), "reveal"))

    assert "This code is not sold yet" in asked.content.decode()


@pytest.mark.django_db
def test_one_person_reveals_twenty_codes_an_hour_and_administrators_are_warned() -> None:
    shelf = own_shelf(make_product())
    texts = add_codes(shelf, 21)
    *first, last = VoucherCode.objects.filter(shelf=shelf).order_by("position")
    greedy = make_staff(*SEE_CODES, REVEAL)
    browser, other = signed_in(greedy), signed_in(make_staff(*SEE_CODES, REVEAL))
    reveal_codes(codes=first, order=None, actor=greedy, note="")

    refused = browser.post(url(last, "reveal"), follow=True)

    assert "at most 20 codes an hour" in refused.content.decode()
    assert texts[-1] not in refused.content.decode()
    assert recorded().filter(actor=greedy).count() == 20
    assert texts[-1] in other.post(url(last, "reveal")).content.decode()
    sweep_kind(watches()["revealed_codes"], rules()["revealed_codes"])
    warning = StaffWarning.objects.get(kind="revealed_codes")
    assert warning.text == f"{greedy.username} revealed 20 codes within an hour"
    administrator = staff_with(StaffRole.ADMINISTRATOR)
    assert warning in open_warnings(administrator)
