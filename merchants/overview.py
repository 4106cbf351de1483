"""The first page of the merchant site."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from accounts.models import Account, ApiKey
from accounts.sign_in.second_factor import has_factor
from cases.selectors import cases_of
from core.database.functions import StatementTimeout
from figures.sales import spend_of_account
from merchants.frame.pages import show
from merchants.models import Role
from merchants.money.charts import charted_days, draw_days, draw_products
from merchants.money.wallet_pages import alert_of, balance_of
from merchants.people.access import Member, member_page
from orders.account_orders import count_open_topups, list_account_orders
from orders.models import ClientCounter
from wallets.transfers import open_transfers

LATEST = 5


@dataclass(frozen=True)
class SetupStep:
    """A setup step of a new merchant."""

    done: bool
    what: str
    url: str


@require_safe
@member_page()
def overview(request: HttpRequest, member: Member) -> HttpResponse:
    """Shows the balance, the spend, open top-ups and cases, the latest orders and next steps."""
    account = member.account
    latest = list_account_orders(account)
    open_cases = cases_of(account).order_by().filter(closed_at=None)
    balance, alert = balance_of(account), alert_of(account)
    steps = _steps(member, paid_in=bool(balance), alert=alert is not None)
    return show(
        request,
        member,
        "merchants/overview.html",
        title=_("Overview"),
        balance=balance,
        alert=alert,
        may_set_alert=member.may(Role.OWNER),
        on_its_way=sum(one.amount for one in open_transfers().filter(account=account)),
        **_spent(account),
        open_topups=count_open_topups(account),
        open_cases=open_cases.count(),
        answered_cases=open_cases.filter(waits_since=None).count(),
        orders=latest.orders(latest.rows.order_by(f"-{latest.key}")[:LATEST]),
        steps=[] if all(step.done for step in steps) else steps,
    )


def _spent(account: Account) -> dict[str, Any]:
    """The spend since midnight UTC, and charts of the last days; empty while too many orders are
    not counted yet."""
    first, last = charted_days()
    try:
        spent = spend_of_account(account, since=first, until=last)
    except StatementTimeout:
        return {}
    return {
        "spent_today": sum((row.amount for row in spent if row.day == last), Decimal(0)),
        "days": draw_days(spent, first=first, last=last),
        "products": draw_products(spent),
    }


def _steps(member: Member, *, paid_in: bool, alert: bool) -> list[SetupStep]:
    account, is_owner = member.account, member.may(Role.OWNER)
    wallet, docs = reverse("merchants:wallet"), reverse("docs:start")
    clients = reverse("merchants:clients")
    keys = ApiKey.objects.filter(client__account=account)
    steps = [
        SetupStep(paid_in, _("Add money to the wallet"), wallet),
        SetupStep(keys.exists(), _("Create a client and its first API key"), clients),
        SetupStep(
            ClientCounter.objects.filter(client__account=account, orders__gt=0).exists(),
            _("Buy the first order with the quick start"),
            docs,
        ),
        SetupStep(
            alert,
            _("Set a balance alert"),
            reverse("merchants:alert") if is_owner else wallet,
        ),
    ]
    if is_owner:
        page = reverse("merchants:two_factor_on")
        steps.append(SetupStep(has_factor(member.user), _("Turn on a second factor"), page))
    return steps
