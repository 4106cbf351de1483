"""The page that follows a form leads on, and says first what people look for."""

from typing import Any

import pytest
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.contrib.messages import get_messages
from django.urls import reverse
from django.utils import timezone

from accounts.models import Account, ApiClient
from catalogue.models import PriceList
from core.backoffice.staff_roles import StaffRole
from operators.money.booking import ReversalForm
from tests.cases.complaints import make_complaint
from tests.factories import Merchant, buy_topup, make_account
from tests.operators.back_office import (
    browser_with,
    list_url,
    make_case,
    make_staff,
    signed_in,
    text_of,
    url,
)
from topups.fulfilment.transitions import Move
from topups.models import Fulfilment
from wallets.models import EntryKind

pytestmark = pytest.mark.django_db


def test_a_new_account_client_and_price_list_are_opened() -> None:
    manager = browser_with(StaffRole.MERCHANT_MANAGER)

    form: dict[str, Any] = {
        "name": "New shop",
        "currency": "USD",
        "enabled": "on",
        "open_wallet": "on",
    }
    answer = manager.post(reverse("admin:accounts_account_add"), form)
    account = Account.objects.get(name="New shop")
    assert answer["Location"] == url(account)

    form = {"name": "Web", "account": account.pk, "enabled": "on", "rate_limit_per_minute": 60}
    answer = manager.post(reverse("admin:accounts_apiclient_add"), form)
    assert answer["Location"] == url(ApiClient.objects.get(account=account))

    form = {"account": account.pk, "email": "owner@shop.example", "role": "owner"}
    answer = manager.post(reverse("admin:merchants_invitation_add"), form)
    assert answer["Location"] == url(account)

    keeper = browser_with(StaffRole.STOCK_KEEPER)
    answer = keeper.post(
        reverse("admin:catalogue_pricelist_add"), {"name": "Gold", "currency": "USD"}
    )
    assert answer["Location"] == url(PriceList.objects.get(name="Gold"))


def test_an_invitation_of_staff_says_one_thing() -> None:
    form = {
        "username": "nina",
        "email": "nina@staff.example",
        "groups": [Group.objects.get(name=StaffRole.OPERATOR.value).pk],
    }
    answer = browser_with(StaffRole.ADMINISTRATOR).post(reverse("admin:auth_user_add"), form)

    assert answer["Location"] == url(User.objects.get(username="nina"))
    assert [str(one) for one in get_messages(answer.wsgi_request)] == [
        "The invitation is being sent to nina@staff.example."
    ]


def test_what_waits_for_a_second_person_is_a_warning() -> None:
    answer = browser_with(StaffRole.ADMINISTRATOR).post(
        url(factor_holder(), "remove_second_factor")
    )

    (message,) = get_messages(answer.wsgi_request)
    assert (message.level_tag, str(message)[:15]) == ("warning", "Not removed yet")


def factor_holder() -> User:
    person = make_staff("wallets.move_money")
    signed_in(person)
    return person


def test_the_first_page_leads_to_staff_who_are_locked_out_or_never_came() -> None:
    locked, new, other = (make_staff() for _ in range(3))
    AccessAttempt.objects.create(
        username=locked.username, failures_since_start=settings.AXES_FAILURE_LIMIT
    )
    admin = browser_with(StaffRole.ADMINISTRATOR)
    User.objects.exclude(pk=new.pk).update(last_login=timezone.now())
    first = text_of(admin.get("/admin/"))

    for query, person in (("locked-out", locked), ("never", new)):
        address = list_url(User, **{"sign-in": query})
        assert address in first
        assert list(admin.get(address).context["cl"].queryset) == [person]
    assert other.username in text_of(admin.get(list_url(User)))
    long_ago = timezone.now() - 2 * settings.AXES_COOLOFF_TIME
    AccessAttempt.objects.update(attempt_time=long_ago)
    address = list_url(User, **{"sign-in": "locked-out"})
    assert list(admin.get(address).context["cl"].queryset) == []


def test_an_open_case_has_no_empty_lines_and_the_merchants_own_number() -> None:
    complaint, support = make_complaint(), browser_with(StaffRole.SUPPORT)
    case = make_case(complaint.order.reference)

    page = text_of(support.get(url(case)))

    assert complaint.order.idempotency_key
    assert complaint.order.idempotency_key in page
    for label in ("decided by", "Closed", "Outcome", "Replacement proposed by"):
        assert label not in page
    support.post(url(case, "propose"), {"version": "1"})
    assert "Replacement proposed by" in text_of(support.get(url(case)))
    support.post(url(case, "reject"), {"text": "It works.", "version": "2"})
    page = text_of(support.get(url(case)))
    assert f"Closed {timezone.now():%Y-%m-%d}" in page
    assert "decided by" in page


def test_the_proof_comes_before_the_note(merchant: Merchant) -> None:
    order = Fulfilment.objects.get(order_reference=buy_topup(merchant))
    address = reverse("admin:topups_fulfilment_move", args=[order.pk, Move.COMPLETE])

    page = text_of(browser_with(StaffRole.OPERATOR).get(address))

    places = [page.index(f'name="{name}"') for name in ("transaction_number", "file", "note")]
    assert places == sorted(places)


@pytest.mark.parametrize(
    ("kind", "help_text"),
    [
        (EntryKind.DEPOSIT, "Only staff read it."),
        (EntryKind.CREDIT, "The merchant reads it in the statement."),
    ],
)
def test_the_reason_of_a_reversal_says_who_reads_it(kind: EntryKind, help_text: str) -> None:
    assert ReversalForm(None, kind=kind).fields["reason"].help_text == help_text


def test_a_list_has_its_button_in_words_and_the_page_of_a_row_has_none() -> None:
    manager, account = browser_with(StaffRole.MERCHANT_MANAGER), make_account()

    assert "Add account</span>" in text_of(manager.get(list_url(Account)))
    assert "addlink" not in text_of(manager.get(url(account)))
