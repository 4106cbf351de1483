"""The page of a case: its conversation, and what staff need beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.html import format_html
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from accounts.sign_in.second_factor import may_act
from audit.models import AuditAction
from cases.models import UNDECIDED, Case, CaseFile, CaseState
from cases.selectors import (
    code_name,
    conversation_of,
    left_to_credit,
    people_for_cases,
    replacement_of,
)
from core.backoffice.staff import names_of_staff_who_may
from core.formats import local_number
from core.texts import lazy
from operators.frame.base import (
    EMPTY,
    MASK,
    amount,
    link_to,
    link_to_list,
    staff_of,
    time_cell,
    url_of,
)
from operators.frame.reader import is_reader, may_view, reader_has, reader_may_view
from operators.history.audit_trail import EntryQuery, entry_of, hidden_actions, read_entries
from operators.history.entries import rows
from operators.history.order_timeline import CREDITS, outcome_of_credit
from operators.history.timeline import NoteForm, note_url
from operators.money.booking import APPROVE
from wallets.approvals import waiting_booking
from wallets.models import BookingApproval, LedgerEntry

# Entries of the audit trail that are read at most. A case has at most 200 messages.
MOST_EVENTS = 300
# The newest parts that are shown. The parts between them and the first one are folded if they are
# FOLDED or more.
NEWEST, FOLDED = 6, 3
LATE = timedelta(days=1)
REPLACE = "cases.replace_code"
# Their messages are in the conversation.
WRITTEN = (AuditAction.CASE_OPENED, AuditAction.CASE_ANSWERED)
COLOURS = {
    CaseState.OPEN: "warning",
    CaseState.CREDITING: "warning",
    CaseState.REJECTED: "info",
    CaseState.REPLACED: "success",
    CaseState.CREDITED: "success",
}


@dataclass(frozen=True)
class Part:
    """A part of the conversation.

    kind: `merchant` or `staff` for a message, `note` for an internal note, and `event` for what
        staff did, whose note only staff read.
    """

    at: datetime
    kind: str
    who: str
    text: str
    changes: Sequence[tuple[str, str, str]] = ()
    note: str = ""
    files: Sequence[CaseFile] = ()


class AssignForm(forms.Form):
    """The form that assigns a case. `seen` is the assignee that the page showed."""

    assignee: forms.ModelChoiceField[User] = forms.ModelChoiceField(
        queryset=User.objects.none(),
        label=lazy("Assigned to"),
        required=False,
        empty_label=lazy("Nobody"),
        widget=UnfoldAdminSelectWidget,
    )
    seen = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, data: QueryDict | None = None, *, case: Case) -> None:
        super().__init__(data, auto_id="assign_%s")
        self.fields["assignee"].queryset = people_for_cases()  # type: ignore[attr-defined]
        self.fields["assignee"].initial = self.fields["seen"].initial = case.assigned_to_id


def case_context(
    request: HttpRequest, case: Case, refused_note: NoteForm | None = None
) -> dict[str, Any]:
    """The context of admin/case.html for this reader, apart from the forms of the answer."""
    credit = waiting_booking(case.credit_reference)
    since = credit.asked_at if credit else case.waits_since
    parts = sorted(_parts(request, case), key=lambda part: part.at)
    folds = len(parts) > NEWEST + FOLDED
    note = refused_note or NoteForm() if may_act(staff_of(request)) else None
    if note is not None:
        note.auto_id = "note_%s"
        note.fields["note"].widget = UnfoldAdminTextareaWidget(attrs={"rows": 4})
    return {
        "case": case,
        "subject": f"{case.order.goods}, {code_name(case)}",
        "first": parts[:1],
        "folded": parts[1:-NEWEST] if folds else [],
        "newest": parts[-NEWEST:] if folds else parts[1:],
        "state": dict(zip(("text", "colour"), state_of(case), strict=True)),
        "waits": timesince(since, depth=1)
        if since and (credit or case.state == CaseState.OPEN)
        else "",
        "is_late": bool(since and since < timezone.now() - LATE),
        "age": timesince(case.opened_at, depth=1),
        "note_form": note,
        "note_url": note_url(case),
        "outcome": outcome_of(case),
        "decided_by": decider_of(case),
        "proposal": proposal_of(case, credit),
        "decision": decision_of(case, credit),
        "cards": list(_cards(request, case)),
    }


def state_of(case: Case) -> tuple[str, str]:
    """The state of a case in words, and its colour."""
    if case.waits_for_merchant:
        return case.state_in_words, "info"
    return case.state_in_words, COLOURS[CaseState(case.state)]


def deciders_of(maker: User | None) -> str:
    """The names of people who may decide the proposal of `maker`."""
    return names_of_staff_who_may(REPLACE, *([maker.username] if maker else [])) or _("nobody yet")


def outcome_of(case: Case) -> str:
    """A link to what a case gave, or to the approval that it waits for."""
    if case.state == CaseState.REPLACED:
        return link_to(replacement_of(case))
    entry = LedgerEntry.objects.filter(booking_reference=case.credit_reference).first()
    if entry is not None:
        return link_to(entry, amount(entry.amount, case.paid_order.currency))
    if case.state == CaseState.CREDITING and reader_may_view(BookingApproval):
        return link_to_list(BookingApproval, _("Approval"), q=case.credit_reference)
    return ""


def decider_of(case: Case) -> User | None:
    """The person who decided the case, or who approved its credit if that waited for approval."""
    approval = _approval_of(case)
    return case.decided_by if approval is None else approval.decided_by


def _approval_of(case: Case) -> BookingApproval | None:
    """The approval of the credit that closed the case; None if it needed none."""
    approved = BookingApproval.objects.filter(entry__booking_reference=case.credit_reference)
    return approved.select_related("decided_by").first()


def decision_of(case: Case, credit: BookingApproval | None) -> str:
    """Names what waits for a decision, and who may decide; empty if nothing waits."""
    if credit:
        return _(
            "%(person)s proposed a credit of %(amount)s on %(time)s. These people decide:"
            " %(people)s."
        ) % {
            "person": credit.asked_by,
            "amount": amount(credit.amount, case.paid_order.currency),
            "time": time_cell(credit.asked_at),
            "people": names_of_staff_who_may(APPROVE, str(credit.asked_by)) or _("nobody yet"),
        }
    if not case.waits_for_decision:
        return ""
    return _("Replacement proposed by %(who)s. These people decide: %(deciders)s.") % {
        "who": case.replacement_proposed_by,
        "deciders": deciders_of(case.replacement_proposed_by),
    }


def proposal_of(case: Case, credit: BookingApproval | None) -> dict[str, Any] | None:
    """The proposal of a colleague, as a sentence with the next steps; None if the reader may decide
    none."""
    if case.state == CaseState.OPEN and case.replacement_proposed_by and reader_has(REPLACE):
        return {
            "text": _("%(person)s proposes to replace %(code)s.")
            % {"person": case.replacement_proposed_by, "code": code_name(case)},
            "steps": [
                (name, url_of(case, step))
                for name, step in ((_("Replace the code…"), "replace"), (_("Decline…"), "decline"))
            ],
        }
    if credit is None or is_reader(credit.asked_by_id) or not reader_has(APPROVE):
        return None
    return {
        "text": _("%(person)s proposes a credit of %(amount)s.")
        % {
            "person": credit.asked_by,
            "amount": amount(credit.amount, case.paid_order.currency),
        },
        "steps": [
            (name, url_of(credit, step))
            for name, step in ((_("Approve…"), "approve"), (_("Reject…"), "reject"))
        ],
    }


def paid_text(case: Case) -> str:
    """The price of the order that was paid, and what of it can still be credited."""
    order = case.paid_order
    return _("%(price)s, of which %(left)s is left to credit") % {
        "price": amount(order.total_price, order.currency),
        "left": amount(left_to_credit(order, case), order.currency),
    }


def stock_of(case: Case) -> str:
    """The number of codes that could replace the code of a case."""
    shelf = case.order.shelf
    return EMPTY if case.code_id is None or shelf is None else local_number(shelf.available_stock)


def _parts(request: HttpRequest, case: Case) -> Iterator[Part]:
    """Messages, internal notes and what staff did, in no order."""
    for message in conversation_of(case):
        yield Part(
            at=message.created_at,
            kind="staff" if message.from_staff else "merchant",
            who=message.author.get_username(),
            text=message.text,
            files=list(message.files.all()),
        )
    own = EntryQuery(
        objects={case._meta.label_lower: [str(case.pk)]},
        without=[*hidden_actions(lambda model: may_view(request, model)), *WRITTEN],
    )
    credits = EntryQuery(
        reference=case.paid_order.reference,
        where=Q(action__in=CREDITS, changes__booking_reference__1=case.credit_reference),
    )
    entries = [one for query in (own, credits) for one in read_entries(query, limit=MOST_EVENTS)]
    shown = [outcome_of_credit(one) or entry_of(one) for one in entries]
    for entry, row in zip(entries, rows(request, shown), strict=True):
        part = Part(
            at=row.at, kind="event", who=row.who, text=row.what, changes=row.changes, note=row.note
        )
        if entry.action == AuditAction.NOTE_ADDED:
            part = replace(part, kind="note", text=row.note, note="")
        elif entry.action == AuditAction.CASE_REPLACED:
            words = format_html(_("Code replaced by order {}"), link_to(replacement_of(case)))
            part = replace(part, text=words, changes=())
        elif entry.action == AuditAction.CASE_ASSIGNED:
            old, new = entry.changes["assigned_to"]
            if new == part.who and old:
                to = _("Took over the case from %(name)s") % {"name": old}
            elif new == part.who:
                to = _("Took over the case")
            else:
                to = _("Assigned to %(name)s") % {"name": new} if new else _("Assigned to nobody")
            part = replace(part, text=to, changes=())
        yield part


def _cards(request: HttpRequest, case: Case) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The cards beside the conversation: a heading, and the lines with their names."""
    order, paid = case.order, case.paid_order
    bought = [
        (_("Order"), link_to(order)),
        (_("Product"), str(order.goods)),
        (_("About"), code_name(case)),
    ]
    if case.code is not None:
        bought.append((_("Code"), link_to(case.code, MASK)))
        bought.append((_("Codes in stock"), stock_of(case)))
    if case.paid_order_id != case.order_id:
        bought.append((_("Paid with"), link_to(case.paid_order)))
    bought += [
        (_("Bought"), time_cell(order.created_at)),
        (_("Price"), paid_text(case) if case.is_open else amount(paid.total_price, paid.currency)),
        (_("Client"), link_to(order.client)),
        (_("Idempotency key"), order.idempotency_key or EMPTY),
    ]
    yield _("Order"), bought

    of_account = Case.objects.filter(account=case.account_id)
    open_now = of_account.filter(state__in=UNDECIDED).count()
    yield (
        _("Merchant"),
        [
            (_("Account"), link_to(case.account)),
            (
                _("Open cases"),
                link_to_list(
                    Case,
                    local_number(open_now),
                    account__id__exact=case.account_id,
                    state="undecided",
                ),
            ),
        ],
    )
