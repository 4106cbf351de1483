"""Staff with a second factor see no page of the back office before entering its code."""

import base64
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client
from django_otp.oath import totp

from accounts.models import SecondFactor
from tests.browsing import PASSWORD
from tests.operators.back_office import make_staff, signed_in, url

pytestmark = pytest.mark.django_db

CHECK = "/admin/two-factor/"
ENROL = "/admin/two-factor/enrol/"
PAGE = "/admin/catalogue/product/"


@pytest.fixture
def anna() -> User:
    """Somebody who may only look, so that a second factor is voluntary."""
    user = User.objects.create_user("anna", password=PASSWORD, is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_product"))
    return user


def log_in() -> Client:
    browser = Client()
    answer = browser.post("/admin/login/", {"username": "anna", "password": PASSWORD})
    assert answer.status_code == 302
    return browser


def code_now(offset: int = 0) -> str:
    device = SecondFactor.objects.get()
    return f"{totp(device.key, drift=offset):06d}"


def enrol(browser: Client) -> list[str]:
    """Turns the second factor on, and returns the backup codes."""
    assert "data:image/svg" in browser.get(ENROL).content.decode()
    answer = browser.post(ENROL, {"code": code_now()})
    codes: list[str] = answer.context["codes"]
    assert len(codes) == 10
    return codes


def forget_the_last_code() -> None:
    """Lets the app's current code count as new: a code is accepted only once."""
    SecondFactor.objects.update(last_step=-1)


def check_before(page: str) -> str:
    """Where a browser that must still show the second factor is sent when it asks for a page."""
    return f"{CHECK}?{urlencode({'next': page})}"


def sees_the_back_office(browser: Client) -> bool:
    answer: Any = browser.get(PAGE)
    assert answer.status_code == 200 or answer.headers["Location"] == check_before(PAGE)
    return bool(answer.status_code == 200)


def test_a_password_is_enough_without_a_second_factor(anna: User) -> None:
    browser = log_in()
    assert sees_the_back_office(browser)

    enrol(browser)
    assert sees_the_back_office(browser)
    assert not sees_the_back_office(log_in())


def test_the_apps_code_opens_the_session(anna: User) -> None:
    enrol(log_in())
    forget_the_last_code()
    browser = log_in()

    wrong = browser.post(CHECK, {"code": "000000"})
    assert "This code is wrong" in wrong.content.decode()
    assert 'class="search-open"' not in wrong.content.decode()
    assert not sees_the_back_office(browser)

    SecondFactor.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)
    assert browser.post(CHECK, {"code": code_now()}).status_code == 302
    assert sees_the_back_office(browser)


def test_wrong_codes_are_throttled(anna: User) -> None:
    enrol(log_in())
    forget_the_last_code()
    browser = log_in()
    browser.post(CHECK, {"code": "000000"})
    assert SecondFactor.objects.get().throttling_failure_count == 1
    SecondFactor.objects.update(throttling_failure_count=6)  # so that the wait outlasts the test

    browser.post(CHECK, {"code": code_now()})
    assert not sees_the_back_office(browser)


def test_a_backup_code_works_once(anna: User) -> None:
    code = enrol(log_in())[0]
    first, second = log_in(), log_in()

    first.post(CHECK, {"code": code})
    second.post(CHECK, {"code": code})

    assert sees_the_back_office(first)
    assert not sees_the_back_office(second)


def test_scanning_without_a_right_code_does_not_turn_it_on(anna: User) -> None:
    browser = log_in()
    browser.get(ENROL)
    browser.post(ENROL, {"code": "123"})

    assert sees_the_back_office(log_in())


def test_a_session_without_the_code_cannot_set_up_another(anna: User) -> None:
    enrol(log_in())

    assert log_in().get(ENROL).headers["Location"] == check_before(ENROL)
    assert SecondFactor.objects.count() == 1


def test_the_key_stays_the_same_until_it_is_confirmed(anna: User) -> None:
    browser = log_in()

    first, second = (browser.get(ENROL).context["key"] for _ in range(2))

    assert first == second
    assert base64.b32decode(first.replace(" ", "")) == SecondFactor.objects.get().key
    with pytest.raises(IntegrityError), transaction.atomic():
        SecondFactor.objects.create(user=anna, confirmed=False)


def test_the_code_is_asked_for_under_any_url_prefix(anna: User) -> None:
    enrol(log_in())
    browser = log_in()

    answer = browser.get(PAGE, SCRIPT_NAME="/shop")

    check, _, asked = answer.headers["Location"].partition("?")
    assert check.endswith(CHECK)
    assert asked == urlencode({"next": f"/shop{PAGE}"})


def test_an_administrator_can_remove_a_lost_second_factor(anna: User) -> None:
    enrol(log_in())

    call_command("forget_second_factors", "anna")

    assert sees_the_back_office(log_in())


def test_only_an_administrator_removes_the_second_factor_of_another_person(anna: User) -> None:
    enrol(log_in())
    colleague = signed_in(make_staff("auth.view_user", "auth.change_user"))

    assert colleague.post(url(anna, "remove_second_factor")).status_code == 403
    assert SecondFactor.objects.filter(user=anna).exists()


def test_anonymous_visitors_are_sent_to_the_log_in() -> None:
    for page in (CHECK, ENROL):
        assert Client().get(page).headers["Location"].startswith("/admin/login/")


def test_the_page_that_was_asked_for_opens_after_the_code(anna: User) -> None:
    enrol(log_in())
    forget_the_last_code()
    browser = log_in()
    asked = f"{PAGE}?q=steam&o=1"

    check = browser.get(asked).headers["Location"]
    wrong = browser.post(check, {"code": "000000"})
    SecondFactor.objects.update(throttling_failure_count=0, throttling_failure_timestamp=None)

    assert wrong.status_code == 200
    assert browser.post(check, {"code": code_now()}).headers["Location"] == asked


@pytest.mark.parametrize("asked", ["https://evil.example/admin/", "//evil.example/", "/merchant/"])
def test_no_other_site_opens_after_the_code(anna: User, asked: str) -> None:
    enrol(log_in())
    forget_the_last_code()

    answer = log_in().post(check_before(asked), {"code": code_now()})

    assert answer.headers["Location"] == "/admin/"


def test_a_password_alone_is_no_last_sign_in(anna: User) -> None:
    enrol(log_in())
    User.objects.update(last_login=None)

    browser = log_in()
    anna.refresh_from_db()
    assert anna.last_login is None

    forget_the_last_code()
    browser.post(CHECK, {"code": code_now()})
    anna.refresh_from_db()
    assert anna.last_login is not None
