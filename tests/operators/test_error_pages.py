"""Errors are HTML in the back office, and JSON for programs on every other path."""

import pytest
from django.test import Client

from tests.operators.back_office import make_staff, signed_in

pytestmark = pytest.mark.django_db


def test_a_missing_page_of_the_back_office_is_html() -> None:
    answer = signed_in().get("/admin/catalogue/nothing/")

    assert answer.status_code == 404
    assert answer["Content-Type"].startswith("text/html")


def test_a_forbidden_page_of_the_back_office_is_html() -> None:
    answer = signed_in(make_staff("orders.view_order")).get("/admin/catalogue/product/")

    assert answer.status_code == 403
    assert "do not have the permission" in answer.content.decode()


@pytest.mark.parametrize("path", ["/nothing", "/api", "/api/v2/ping", "/docs/nothing"])
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
