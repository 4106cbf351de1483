"""Linking Telegram accounts to staff, on the page or by command."""

import json
import re
from datetime import timedelta
from functools import partial
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils import timezone

from audit.models import AuditAction, AuditEntry
from core.inputs import InputProblem
from operators.telegram.models import PlatformSettings, TelegramLink, TelegramLinkCode
from operators.telegram.staff_links import (
    NotAnOperator,
    consume_code,
    issue_code,
    link_user,
    operator_of,
    record_refusal,
    unlink_user,
    void_code,
)
from operators.telegram.updates.texts import Command, answer_command
from tests.concurrency.racing import race
from tests.factories import buy_topup, make_merchant, make_operator
from tests.operators.back_office import make_staff, signed_in, url
from topups.models import Channel, Fulfilment

pytestmark = pytest.mark.django_db


def staff(**fields: Any) -> User:
    return make_operator(**fields).user


def run(*arguments: object) -> Any:
    out = StringIO()
    call_command("link_telegram", *map(str, arguments), stdout=out)
    return json.loads(out.getvalue())


def actions() -> list[str]:
    return list(
        AuditEntry.objects.filter(action__startswith="telegram")
        .order_by("pk")
        .values_list("action", flat=True)
    )


def test_linked_operator_acts_through_telegram() -> None:
    user = staff()
    link_user(user=user, telegram_user_id=77, actor=None)

    operator = operator_of(77)

    assert (operator.user, operator.channel) == (user, Channel.TELEGRAM)
    assert actions() == [AuditAction.TELEGRAM_LINKED]


@pytest.mark.parametrize("lost", ["is_active", "is_staff", "permission", "link", "never"])
def test_anybody_else_is_refused(lost: str) -> None:
    user = staff()
    if lost != "never":
        link_user(user=user, telegram_user_id=77, actor=None)
    if lost in ("is_active", "is_staff"):
        User.objects.filter(pk=user.pk).update(**{lost: False})
    if lost == "permission":
        user.user_permissions.clear()
    if lost == "link":
        unlink_user(user=user, actor=None)

    with pytest.raises(NotAnOperator, match="You cannot use this bot"):
        operator_of(77)


def test_refusal_is_audited_once_a_minute_per_order() -> None:
    reference = buy_topup(make_merchant())
    order = Fulfilment.objects.get(order_reference=reference)
    for _ in range(3):
        record_refusal(telegram_user_id=77, on=order, reference=reference, note="pressed Claim")
    record_refusal(telegram_user_id=78, on=order, reference=reference, note="pressed Claim")

    entries = AuditEntry.objects.filter(action=AuditAction.TELEGRAM_REFUSED, reference=reference)

    assert sorted(entries.values_list("note", flat=True)) == [
        "Telegram user 77: pressed Claim",
        "Telegram user 78: pressed Claim",
    ]


def test_command_links_and_can_run_again() -> None:
    user = staff()

    for _ in range(2):
        assert run(user.username, 77) == {"username": user.username, "telegram_user_id": 77}
    assert run(user.username, 78)["telegram_user_id"] == 78

    assert TelegramLink.objects.get().telegram_user_id == 78
    assert actions() == [AuditAction.TELEGRAM_LINKED] * 2


@pytest.mark.parametrize(
    ("name", "number", "problem"),
    [
        ("nobody", 77, "There is no user"),
        ("clerk", 77, "not active staff"),
        ("anna", 0, "positive"),
        ("anna", -5, "positive"),
        ("anna", 2**63, "positive"),
        ("anna", 99, "another user"),
    ],
)
def test_command_reports_what_is_wrong(name: str, number: int, problem: str) -> None:
    staff(username="anna")
    User.objects.create_user("clerk", is_staff=True)
    link_user(user=staff(username="ben"), telegram_user_id=99, actor=None)

    with pytest.raises(CommandError, match=problem) as error:
        run(name, number) if number >= 0 else call_command("link_telegram", name, "--", str(number))
    assert "\n" not in str(error.value)
    assert TelegramLink.objects.count() == 1


def test_database_refuses_one_account_for_two_users() -> None:
    link_user(user=staff(), telegram_user_id=77, actor=None)
    for number in (77, 0, -1):
        with pytest.raises(IntegrityError), transaction.atomic():
            TelegramLink.objects.create(user=staff(), telegram_user_id=number)


def test_code_links_its_first_sender() -> None:
    user = staff()
    code = issue_code(user=user)

    assert TelegramLinkCode.objects.get().digest != code
    assert consume_code(code=f" {code.upper()} ", telegram_user_id=77).user == user
    for telegram_user_id in (77, 78):
        with pytest.raises(InputProblem, match="wrong, used or expired"):
            consume_code(code=code, telegram_user_id=telegram_user_id)
    assert operator_of(77).user == user


def test_new_code_replaces_the_previous_one() -> None:
    user = staff()
    first, second = issue_code(user=user), issue_code(user=user)

    with pytest.raises(InputProblem):
        consume_code(code=first, telegram_user_id=77)
    consume_code(code=second, telegram_user_id=77)


@pytest.mark.parametrize("code", ["", "x", "0" * 20, "\ud800", "🙂" * 5000])
def test_wrong_code_is_refused(code: str) -> None:
    issue_code(user=staff())

    with pytest.raises(InputProblem, match="wrong, used or expired"):
        consume_code(code=code, telegram_user_id=77)


def test_expired_code_is_refused() -> None:
    code = issue_code(user=staff())
    TelegramLinkCode.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    with pytest.raises(InputProblem):
        consume_code(code=code, telegram_user_id=77)


def test_code_of_an_inactive_user_is_refused() -> None:
    user = staff()
    code = issue_code(user=user)
    User.objects.filter(pk=user.pk).update(is_active=False)

    with pytest.raises(InputProblem):
        consume_code(code=code, telegram_user_id=77)
    assert not TelegramLink.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_simultaneous_senders_of_a_code_get_one_link() -> None:
    code = issue_code(user=staff())

    def send(telegram_user_id: int) -> bool:
        try:
            consume_code(code=code, telegram_user_id=telegram_user_id)
        except InputProblem:
            return False
        return True

    linked = race([partial(send, number) for number in (77, 78, 79, 80)])

    assert sorted(linked) == [False, False, False, True]
    assert TelegramLink.objects.count() == 1


def test_staff_link_and_unlink_their_own_account() -> None:
    user = staff()
    browser, page = signed_in(user), reverse("telegram_link")

    assert "not linked to a Telegram account" in browser.get(page).content.decode()
    given = browser.post(page)
    found = re.search(r"/start ([0-9a-f]{20})", given.content.decode())
    assert found is not None
    assert "no-store" in given["Cache-Control"]
    consume_code(code=found[1], telegram_user_id=77)
    assert "Telegram user 77" in browser.get(page).content.decode()
    browser.post(page)

    assert not TelegramLink.objects.exists()
    assert actions() == [
        AuditAction.TELEGRAM_CODE_ISSUED,
        AuditAction.TELEGRAM_LINKED,
        AuditAction.TELEGRAM_UNLINKED,
    ]
    assert not AuditEntry.objects.filter(note__contains=found[1]).exists()


def test_staff_without_the_permission_get_no_code() -> None:
    answer = signed_in(make_staff()).post(reverse("telegram_link"), follow=True)

    assert "You cannot use the bot" in answer.content.decode()
    assert not TelegramLinkCode.objects.exists()


def test_link_page_is_for_staff_only(client: Any) -> None:
    assert client.get(reverse("telegram_link")).status_code == 302


def test_platform_manager_removes_a_link() -> None:
    link = link_user(user=staff(), telegram_user_id=77, actor=None)
    viewer = signed_in(make_staff("telegram.view_telegramlink"))
    manager = signed_in(make_staff("telegram.view_telegramlink", "telegram.delete_telegramlink"))

    assert viewer.post(url(link, "delete"), {"post": "yes"}).status_code == 403
    assert manager.post(url(link, "delete"), {"post": "yes"}).status_code == 302

    assert not TelegramLink.objects.exists()
    assert actions()[-1] == AuditAction.TELEGRAM_UNLINKED


@pytest.mark.parametrize("chat_id", [-5, -6], ids=["ours", "another"])
def test_code_shown_in_a_group_is_cancelled(chat_id: int) -> None:
    """Everybody in the group could send the code and act as its owner."""
    PlatformSettings.objects.create(chat_id=-5)
    code = issue_code(user=staff())

    answer_command(
        Command(telegram_user_id=77, chat_id=chat_id, private=False, name="link", words=code)
    )

    with pytest.raises(InputProblem):
        consume_code(code=code, telegram_user_id=78)


def test_the_codes_of_others_stay_valid() -> None:
    anna, boris, chris = staff(), staff(), staff()
    shown, _, kept = (issue_code(user=user) for user in (anna, boris, chris))

    void_code(shown)
    unlink_user(user=boris, actor=None)

    assert consume_code(code=kept, telegram_user_id=7).user == chris
