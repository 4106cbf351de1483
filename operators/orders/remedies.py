"""The remedies for a complaint about an order, as its page shows them: replace, refund, credit."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext as _
from django.utils.translation import pgettext

from cases.models import Case
from cases.selectors import (
    WHOLE_ORDER,
    case_of_credit,
    left_to_credit,
    replacements_of,
    subjects_of,
)
from operators.frame.base import amount, link_to, url_of
from operators.money.booking import replaced_codes
from orders.models import Order
from topups.fulfilment.transitions import OPEN
from topups.models import FulfilmentStatus
from wallets.approvals import waiting_approvals
from wallets.models import BookingApproval, EntryKind
from wallets.selectors import paid_back


def remedies_of(page: Any, request: HttpRequest, order: Order) -> Iterator[dict[str, Any]]:
    """The remedies, each with its name, a text and the steps that this person can take. The text
    says what the remedy does to money, or why it is not possible."""
    is_voucher = order.fulfilment is None
    answers = page.has_open_case_permission(request)
    case = [(_("Open a case…"), url_of(order, "open_case"))] if answers else []
    replaced = replaced_codes(order)
    problem = _why_not_replaced(order) if is_voucher else ""
    if is_voucher:
        text = problem or (
            _("No money moves: the merchant gets another code. Open a case about the code.")
            if answers
            else _("No money moves: the merchant gets another code. Support opens a case.")
        )
        yield {"name": _("Replace a code"), "text": text, "steps": [] if problem else case}
    yield {"name": _("Refund"), "text": _refund_rule(order), "steps": []}
    waiting = waiting_approvals().filter(
        kind=EntryKind.CREDIT, order_reference=order.reference, amount__gt=0
    )
    asked = list(waiting.order_by("pk"))
    left = left_to_credit(order) - sum(one.amount for one in asked)
    sums = {"left": amount(left, order.currency), "account": order.client.account}
    steps = []
    if order.case_id:
        text = _("Not possible: this order cost nothing. Credit the order that was paid.")
    elif left <= 0 and asked:
        text = _("Nothing else is left to credit.")
    elif left <= 0:
        text = (
            _("Not possible: nothing is left to credit.")
            if replaced
            else _("Not possible: the whole price was paid back.")
        )
    elif page.has_credit_permission(request):
        text = _("Pays up to %(left)s back to the wallet of %(account)s.") % sums
        address = url_of(order, "credit")
        steps = [(_("Credit %(amount)s…") % {"amount": sums["left"]}, address)]
        one = round(order.total_price / order.quantity, 2)
        if is_voucher and order.quantity > 1 and 0 < one <= left:
            name = _("Credit one code, %(amount)s…") % {"amount": amount(one, order.currency)}
            steps.append((name, f"{address}?amount={one}"))
    elif answers:
        text = _("Up to %(left)s. Propose it in a case; finance approves it.") % sums
        # The replacement of a code has the link.
        steps = [] if is_voucher and not problem else case
    else:
        text = _("Up to %(left)s. Finance books it.") % sums
    waits = [_credit_that_waits(one, order) for one in asked]
    text = format_html_join(" ", "{}", ((one,) for one in [*waits, text, *replaced]))
    yield {"name": pgettext("noun", "Credit"), "text": text, "steps": steps}


def left_to_give(order: Order) -> Decimal:
    """The amount that a new case about the order could give, as a credit or as a code."""
    paid = order
    if order.case_id is not None:
        paid = Case.objects.select_related("paid_order").get(pk=order.case_id).paid_order
    return left_to_credit(paid, Case(order=order, paid_order=paid))


def _why_not_replaced(order: Order) -> str:
    """Why no code of the order can be replaced; empty if one can."""
    is_spent = left_to_give(order) <= 0
    if is_spent and not replacements_of(order):
        return _("Not possible: the whole price was paid back.")
    if is_spent:
        return _("Not possible: each code was replaced or credited.")
    offers_code = any(subject not in ("", WHOLE_ORDER) for subject, _name in subjects_of(order))
    return "" if offers_code else _("Each code has a case already.")


def _credit_that_waits(booking: BookingApproval, order: Order) -> str:
    """Says that a credit of the order waits, and where."""
    return format_html(
        _("A credit of {amount} waits for approval in {page}."),
        amount=amount(booking.amount, order.currency),
        page=link_to(case_of_credit(booking) or booking),
    )


def _refund_rule(order: Order) -> str:
    """When an order like this one is refunded, or why it is not."""
    topup = order.fulfilment
    if topup is None and left_to_give(order) <= 0:
        return _("Not possible for codes that were delivered.")
    if topup is None:
        return _("Not possible for codes that were delivered. Replace the code, or credit it.")
    if topup.status in OPEN:
        return _("Automatic and in full, if the desk rejects the top-up.")
    if topup.status == FulfilmentStatus.COMPLETED:
        return _("Not possible for a top-up that was delivered. Credit it.")
    if topup.refunded:
        if EntryKind.REFUND not in paid_back([order.reference]).get(order.reference, {}):
            return _("Not necessary: the price was credited.")
        return _("Done: the merchant has the money back.")
    if topup.refund_due_at:
        return _("Automatic and in full, within a minute.")
    return _("Not possible: this top-up failed without a refund. Credit it.")
