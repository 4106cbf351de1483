"""The demo shop is made once, and the curl command that it prints buys a code."""

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from pytest_django import Settings

from accounts.models import Account
from audit.models import AuditEntry
from catalogue.models import Product, VoucherCode
from operators.upkeep.reconcile import reconcile
from tests.factories import make_account, make_product, make_topup_product
from tests.neighbour import ours
from tests.operators.back_office import make_staff
from topups.models import TopUpProduct

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _own_var(settings: Settings, tmp_path: Path) -> None:
    settings.VAR_DIR = tmp_path / "var"


@pytest.fixture(autouse=True)
def _empty_database(alone: None) -> None:
    pass


def welcome(*options: str) -> str:
    out = io.StringIO()
    options = options or ("--no-history",)
    call_command("load_demo", "--base-url", "http://localhost:8123", *options, stdout=out)
    return out.getvalue()


def paste(text: str) -> Any:
    """Sends the request of the printed curl command."""
    headers = dict(re.findall(r"-H '([^:]+): ([^']+)'", text))
    (body,) = re.findall(r"-d '([^']+)'", text)
    return Client().post("/api/v1/orders", body, content_type="application/json", headers=headers)


def test_the_printed_command_buys_a_code_and_replays() -> None:
    text = welcome()

    first, again = paste(text), paste(text)

    assert first.status_code == 201
    assert len(first.json()["data"]["codes"]) == 1
    assert (again.content, again["Idempotent-Replay"]) == (first.content, "true")
    assert reconcile()["ok"] is True


def test_a_second_run_adds_nothing_and_prints_the_same_key() -> None:
    first = welcome()
    codes = ours(VoucherCode).count()

    again = welcome()

    assert ours(VoucherCode).count() == codes
    assert re.findall(r"vk_\w+", again) == re.findall(r"vk_\w+", first)


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    welcome()

    file = tmp_path / "var" / "demo.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text())["api_key"].startswith("vk_")


@pytest.mark.parametrize("make", [make_staff, make_product, make_account, make_topup_product])
def test_the_demo_is_refused_where_other_data_is(make: Callable[[], Any]) -> None:
    make()
    before = count_rows()

    with pytest.raises(CommandError, match="Use an empty database"):
        welcome("--force")

    assert count_rows() == before


def count_rows() -> int:
    models = (User, Account, Product, TopUpProduct, VoucherCode, AuditEntry)
    return sum(model._default_manager.count() for model in models)


def test_the_demo_is_refused_in_production(settings: Settings) -> None:
    settings.HTTPS = True

    with pytest.raises(CommandError, match="Demo data is not loaded"):
        welcome()

    assert not ours(VoucherCode).exists()


def test_the_printed_password_signs_in_to_the_merchant_site() -> None:
    found = re.search(r"/merchant/   email (\S+), password (\S+)", welcome())
    assert found
    browser = Client()
    email, password = found.groups()
    browser.post("/merchant/sign-in/", {"username": email, "password": password})
    assert "Demo merchant" in browser.get("/merchant/").content.decode()
    assert found.group() in welcome()
