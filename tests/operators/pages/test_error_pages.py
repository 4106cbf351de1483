"""Errors are pages in the back office, and JSON for programs on every other path."""

from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from operators.upkeep.monitoring import system_page
from tests.operators.back_office import make_staff, signed_in

pytestmark = pytest.mark.django_db


def page_of(answer: Any) -> str:
    """The error page, which names the request and offers a way out."""
    text: str = answer.content.decode()
    assert answer["Content-Type"].startswith("text/html")
    assert answer["X-Request-Id"] in text
    assert '<a class="button" href="/' in text
    return text


def test_a_missing_page_of_the_back_office_is_html() -> None:
    answer = signed_in().get("/admin/catalogue/nothing/")

    assert answer.status_code == 404
    assert "<h1>Page not found</h1>" in page_of(answer)


def test_a_forbidden_page_of_the_back_office_is_html() -> None:
    answer = signed_in(make_staff("orders.view_order")).get("/admin/catalogue/product/")

    assert answer.status_code == 403
    assert "do not have permission" in page_of(answer)


def test_an_expired_form_of_the_back_office_is_a_page_with_the_request_id() -> None:
    answer = signed_in(csrf=True).post("/admin/logout/")

    assert answer.status_code == 403
    assert "<h1>This form has expired</h1>" in page_of(answer)


def test_too_many_wrong_passwords_are_a_page_with_the_request_id(settings: Settings) -> None:
    settings.AXES_FAILURE_LIMIT = 1

    answer = Client().post("/admin/login/", {"username": "anna", "password": "wrong"})

    assert answer.status_code == 429
    assert "<h1>Too many wrong passwords</h1>" in page_of(answer)


def test_a_server_error_of_the_back_office_is_a_page_without_details(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("a secret detail")

    browser = signed_in()
    browser.raise_request_exception = False
    monkeypatch.setattr(system_page, "lines_for", fail)
    answer = browser.get("/admin/system/")

    page = page_of(answer)
    assert answer.status_code == 500
    assert "<h1>Something went wrong</h1>" in page
    assert "secret detail" not in page
    assert "no-store" in answer["Cache-Control"]


@pytest.mark.parametrize("path", ["/nothing", "/api", "/api/v2/ping"])
def test_other_paths_answer_a_json_message(path: str) -> None:
    answer = signed_in().get(path)

    assert answer.status_code == 404
    assert list(answer.json()) == ["message"]


@pytest.mark.parametrize("path", ["/admin/login/", "/docs/", "/healthz"])
def test_a_large_body_is_refused_before_sign_in(path: str) -> None:
    answer = Client().generic(
        "POST", path, b"x", CONTENT_LENGTH="5000000", content_type="multipart/form-data; boundary=x"
    )

    assert answer.status_code == 413
    assert list(answer.json()) == ["message"]
