"""Without COMPANY_SIGN_IN_ISSUER, nothing of company sign-in is loaded or routed."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.urls import NoReverseMatch, reverse
from django.utils import timezone
from pytest_django import Settings

from core.inputs import InputProblem
from operators.sign_in.models import CompanyIdentity
from operators.telegram.staff_links import (
    NotAnOperator,
    consume_code,
    issue_code,
    link_user,
    may_operate,
    operator_of,
)
from tests.commands import refusal, run
from tests.company_sign_in.test_people import COMPANY
from tests.factories import make_operator

NO_DATABASE = "postgresql://127.0.0.1:1/voucher"
LOADED = """
import json, sys
import config.wsgi
from django.urls import get_resolver
get_resolver().url_patterns
parts = ("authlib", "joserfc", "operators.sign_in.company")
print(json.dumps(sorted(name for name in sys.modules if name.startswith(parts))))
"""


def test_only_its_settings_are_loaded(db: None) -> None:
    started = subprocess.run(
        [sys.executable, "-c", LOADED],
        env={**os.environ, "GRANIAN_WORKERS": "1", "DATABASE_URL": NO_DATABASE},
        capture_output=True,
        text=True,
        check=True,
    )
    package = "operators.sign_in.company"
    assert json.loads(started.stdout.splitlines()[-1]) == [package, f"{package}.settings"]


def test_nothing_is_routed() -> None:
    with pytest.raises(NoReverseMatch):
        reverse("company_sign_in")


def test_an_unlinked_account_is_gone(db: None) -> None:
    user = make_operator().user
    CompanyIdentity.objects.create(user=user, issuer="https://id.example", subject="1")
    assert run("unlink_company_account", user.username)["unlinked"] is True
    assert run("unlink_company_account", user.username)["unlinked"] is False
    assert not CompanyIdentity.objects.exists()
    assert "There is no user" in refusal("unlink_company_account", "nobody")


def test_unlinking_ends_the_right_to_use_telegram(db: None) -> None:
    user = make_operator().user
    CompanyIdentity.objects.create(
        user=user, issuer="https://id.example", subject="1", signed_in_at=timezone.now()
    )
    link_user(user=user, telegram_user_id=7, actor=None)
    code = issue_code(user=user)

    run("unlink_company_account", user.username)

    with pytest.raises(NotAnOperator, match="not linked"):
        operator_of(7)
    with pytest.raises(InputProblem, match="wrong, used or expired"):
        consume_code(code=code, telegram_user_id=7)


@pytest.mark.parametrize(("only", "name", "may"), [
    (False, "ben", True), (True, "ben", False), (True, "root", True)
])  # fmt: skip
def test_telegram_is_closed_to_staff_who_must_sign_in_with_a_company_account(
    only: bool, name: str, may: bool, db: None, settings: Settings
) -> None:
    settings.COMPANY_SIGN_IN = replace(COMPANY, only=only, break_glass=frozenset(["root"]))
    assert may_operate(make_operator(username=name).user) is may


@pytest.mark.parametrize(("hours", "may"), [(11, True), (13, False), (None, False)])
def test_telegram_asks_for_a_sign_in_within_the_longest_session(
    hours: int | None, may: bool, db: None
) -> None:
    """Telegram has no sessions: somebody who left the company must not go on there."""
    user = make_operator().user
    assert may_operate(user)
    CompanyIdentity.objects.create(
        user=user,
        issuer="https://id.example",
        subject="1",
        signed_in_at=timezone.now() - timedelta(hours=hours) if hours else None,
    )
    assert may_operate(User.objects.get(pk=user.pk)) is may
