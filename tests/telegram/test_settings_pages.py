"""The pages of the platform settings and routes."""

from typing import Any

import pytest
from django.urls import reverse

from core.backoffice.staff_roles import StaffRole
from operators.staff.roles import permissions_of
from operators.telegram.chats import Target, platform_settings, read_platform
from operators.telegram.models import AnnouncementRoute, PlatformSettings
from tests.factories import make_category, make_topup_product
from tests.operators.back_office import form_of, list_url, make_staff, signed_in, url

pytestmark = pytest.mark.django_db

PAGE = reverse("admin:telegram_platformsettings_change", args=[1])
VIEW = "telegram.view_platformsettings"


def save(browser: Any, **fields: Any) -> Any:
    return browser.post(PAGE, {**form_of(browser, PAGE), **fields})


def test_announcing_is_off_by_default() -> None:
    assert platform_settings().announcing is False
    assert PlatformSettings.objects.count() == 0


def test_menu_opens_the_settings_form() -> None:
    answer = signed_in().get(list_url(PlatformSettings), follow=True)

    assert answer.redirect_chain == [(PAGE, 302)]
    assert "Announce orders of top-up products" in answer.content.decode()
    assert PlatformSettings.objects.count() == 1


def test_saved_settings_apply_at_once() -> None:
    browser = signed_in()

    answer = save(
        browser,
        announcing="on",
        chat_id="-1001234567890",
        topic_id="7",
        quiet_from="22:00",
        quiet_until="06:30",
        time_zone="Asia/Dubai",
        repeat_minutes="5",
        repeat_times="1",
    )

    assert answer.status_code == 302
    platform = read_platform()
    assert platform.settings.announcing
    assert platform.zone.key == "Asia/Dubai"
    assert platform.target_of(product_id=1, category_id=None) == Target(-1001234567890, 7)
    assert (platform.settings.repeat_minutes, platform.settings.repeat_times) == (5, 1)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("time_zone", "Mars/Olympus"),
        ("time_zone", ""),
        ("time_zone", "../../etc/passwd"),
        ("chat_id", "@operators"),
        ("chat_id", "9" * 30),
        ("chat_id", "1\x00"),
        ("topic_id", "1"),
        ("topic_id", "7"),  # without a chat
        ("quiet_from", "22:00"),  # without an end
        ("quiet_until", "25:00"),
        ("repeat_minutes", "0"),
        ("repeat_minutes", "1441"),
        ("repeat_times", "21"),
        ("repeat_times", "-1"),
    ],
)
def test_invalid_value_is_reported_at_its_field(field: str, value: str) -> None:
    answer = save(signed_in(), **{field: value})

    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert set(errors) in ({field}, {"quiet_until"})
    assert PlatformSettings.objects.get().chat_id is None


def test_quiet_hours_need_different_ends() -> None:
    answer = save(signed_in(), quiet_from="22:00", quiet_until="22:00")

    assert answer.status_code == 200
    assert "a different beginning and end" in answer.content.decode()


@pytest.mark.parametrize(
    "permissions", [[], [VIEW], ["topups.fulfil"]], ids=["nobody", "viewer", "operator"]
)
def test_settings_need_the_permission(permissions: list[str]) -> None:
    PlatformSettings.objects.create()

    answer = signed_in(make_staff(*permissions)).post(PAGE, {"announcing": "on"})

    assert answer.status_code == 403
    assert not platform_settings().announcing


def test_administrator_edits_settings_and_routes() -> None:
    browser = signed_in(make_staff(*permissions_of(StaffRole.ADMINISTRATOR)))

    assert save(browser, announcing="on").status_code == 302
    for page in (list_url(AnnouncementRoute), reverse("admin:telegram_announcementroute_add")):
        assert browser.get(page).status_code == 200


def test_settings_row_can_be_neither_added_nor_deleted() -> None:
    row = PlatformSettings.objects.create()
    browser = signed_in()

    assert browser.get(reverse("admin:telegram_platformsettings_add")).status_code == 403
    assert browser.post(url(row, "delete"), {"post": "yes"}).status_code == 403


def test_route_needs_either_a_product_or_a_category() -> None:
    browser, add = signed_in(), reverse("admin:telegram_announcementroute_add")
    product, category = make_topup_product(), make_category()

    neither = browser.post(add, {"chat_id": "-5"})
    both = browser.post(add, {"chat_id": "-5", "product": product.pk, "category": category.pk})
    one = browser.post(add, {"chat_id": "-5", "product": product.pk})
    twice = browser.post(add, {"chat_id": "-6", "product": product.pk})

    statuses = [answer.status_code for answer in (neither, both, one, twice)]
    assert statuses == [200, 200, 302, 200]
    assert "a top-up product or a category" in neither.content.decode()
    assert AnnouncementRoute.objects.get().chat_id == -5


@pytest.mark.parametrize("field", ["product", "category"])
def test_administrator_can_search_products_and_categories(field: str) -> None:
    browser = signed_in(make_staff(*permissions_of(StaffRole.ADMINISTRATOR)))
    asked = {"app_label": "telegram", "model_name": "announcementroute", "field_name": field}

    assert browser.get(reverse("admin:autocomplete"), asked).status_code == 200
