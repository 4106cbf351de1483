"""The headers of back office pages: browsers load nothing from other hosts and cache no page."""

import pytest
from django.test import Client
from django.urls import reverse

from catalogue.models import VoucherCode
from operators.telegram.models import PlatformSettings
from orders.models import Order
from tests.factories import buy_topup, make_merchant
from tests.neighbour import ours
from tests.operators.back_office import (
    World,
    is_guarded,
    list_url,
    signed_in,
    url,
    without_frame,
)
from tests.operators.pages.test_admin_pages import ELSEWHERE
from topups.models import Fulfilment

pytestmark = pytest.mark.django_db


def test_every_page_has_security_headers_and_is_not_cached() -> None:
    """`test_admin_pages.py` asks the pages of the models that have a list."""
    World().grow(1)
    browser = signed_in()
    browser.get(list_url(PlatformSettings), follow=True)  # the page makes the only row
    fulfilment = ours(Fulfilment).latest("pk")
    pages = [reverse(f"admin:{name}") for name in ("index", "login", "password_change")]
    pages += [reverse("two_factor_enrol"), reverse("admin:autocomplete")]
    for name in ("dashboard", "glance", "strip"):
        pages.append(reverse(f"admin:topups_fulfilment_{name}"))
    pages.append(reverse("admin:topups_fulfilment_move", args=[fulfilment.pk, "complete"]))
    for model in ELSEWHERE:
        pages += [list_url(model), url(model.objects.latest("pk"))]
    with without_frame(""):  # only the headers are read
        for page in pages:
            answer = browser.get(page)
            assert is_guarded(answer.headers), page
            assert "no-store" in answer.headers["Cache-Control"], page


def test_pages_with_players_or_codes_are_not_cached() -> None:
    merchant = make_merchant()
    reference = buy_topup(merchant, player_id="5550123")
    World().grow(1)
    browser = signed_in()
    player = Fulfilment.objects.get(order_reference=reference)
    code = VoucherCode.objects.exclude(order_id=None).latest("pk")
    asked = url(code).replace("change/", "reveal/")
    shown = [
        browser.get(list_url(Fulfilment)),
        browser.get(url(player)),
        browser.get(url(Order.objects.get(reference=reference))),
        browser.get(reverse("admin:topups_fulfilment_move", args=[player.pk, "complete"])),
    ]
    for answer in shown:
        assert "5550123" in answer.content.decode()
        assert "no-store" in answer.headers["Cache-Control"]
    revealed = browser.post(asked, {"note": "asked by the merchant"})
    assert revealed.status_code == 200
    assert "CODE-" in revealed.content.decode()
    assert "no-store" in revealed.headers["Cache-Control"]


def test_refusals_have_security_headers_too() -> None:
    assert is_guarded(signed_in().get("/admin/nothing/here/").headers)
    assert is_guarded(Client().get("/admin/").headers)
    assert "Content-Security-Policy" not in Client().get("/api/v1/ping").headers
