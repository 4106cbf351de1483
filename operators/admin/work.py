"""The work of a person on the first page: how much waits, and the lists of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Exists, Model, OuterRef, QuerySet
from django.utils.html import format_html
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.models import Account
from cases.models import Case
from cases.selectors import REPLACEMENT_PROPOSED
from catalogue.models import CodeHold, VoucherCode
from core.formats import local_number
from core.texts import inside_sentence, lazy
from merchants.models import Invitation
from merchants.people.company import PROPOSES
from merchants.people.invitations import live_invitations
from operators.frame.base import list_url, time_cell, url_of
from operators.imports.models import WAITING, FileImport, ImportKind, ImportState
from operators.imports.pages import may_import
from operators.money.booking import APPROVE
from operators.orders.cases import PROPOSED
from operators.sign_in.asked_changes import (
    describe,
    end_link,
    link_to_page,
    name_of,
    read_rejected_changes,
    read_waiting_changes,
)
from operators.sign_in.models import TwoPersonChange
from operators.staff.staff import LOCKED_OUT, NEVER_SIGNED_IN
from operators.upkeep.models import ReconcileRun, RunState
from orders.models import LostPurchase
from orders.recovery.settlements import open_purchases
from topups.fulfilment.transitions import OPEN
from topups.models import Fulfilment
from wallets.approvals import waiting_approvals
from wallets.models import AnnouncedTransfer, ApprovalState, BookingApproval
from wallets.transfers import open_transfers, with_approvals

MOST = 1_000  # rows that are counted
SHOWN_IMPORTS = 10


@dataclass(frozen=True)
class Work:
    """A line of the first page for those with the permission: a number, and the list it counts.

    `rows` returns what is counted for this person: what somebody must do. `one` and `many` follow
    the number.
    """

    permission: str
    one: str
    many: str
    model: type[Model]
    rows: Callable[[User], QuerySet[Any]]
    query: dict[str, str] = field(default_factory=dict)
    approves: str = ""  # who has this right as well may approve what waits, unless they asked
    asked_by: str = ""  # the column of who asked


def _holds_to_decide(user: User) -> QuerySet[CodeHold]:
    held = VoucherCode.objects.filter(hold=OuterRef("pk"))
    return CodeHold.objects.filter(Exists(held), voided_at=None)


def _asked_imports(user: User) -> QuerySet[FileImport]:
    """The oldest imports that wait for a second person, of the kinds that this person imports."""
    kinds = [kind for kind in ImportKind if may_import(user, kind)]
    rows = FileImport.objects.filter(state=ImportState.READY, result__has_key="asked_by")
    asked = rows.filter(kind__in=kinds, result__has_key="waits").order_by("touched_at")
    return asked.defer("sealed", "problems").select_related("shelf__product")[:SHOWN_IMPORTS]


WORK = [
    Work(
        "topups.view_fulfilment",
        lazy("open top-up"),
        lazy("open top-ups"),
        Fulfilment,
        lambda user: Fulfilment.objects.filter(status__in=OPEN),
    ),
    Work(
        "wallets.view_bookingapproval",
        lazy("booking waits for approval"),
        lazy("bookings wait for approval"),
        BookingApproval,
        lambda user: waiting_approvals(),
        query={"state": ApprovalState.WAITING.value},
        approves=APPROVE,
        asked_by="asked_by",
    ),
    Work(
        "wallets.view_announcedtransfer",
        lazy("announced transfer to look for"),
        lazy("announced transfers to look for"),
        AnnouncedTransfer,
        lambda user: with_approvals(open_transfers()).filter(waits=False),  # type: ignore[misc]
        query={"state": "on-its-way"},
    ),
    Work(
        "orders.view_lostpurchase",
        lazy("lost purchase to settle"),
        lazy("lost purchases to settle"),
        LostPurchase,
        lambda user: open_purchases(),
        query={"state": "open"},
    ),
    Work(
        "merchants.view_invitation",
        lazy("invitation waits for a second person"),
        lazy("invitations wait for a second person"),
        Invitation,
        lambda user: live_invitations().filter(needs_approval=True, approved_at=None),
        approves="merchants.add_invitation",
        asked_by="invited_by",
    ),
    Work(
        "accounts.change_account",
        lazy("account proposes other company data"),
        lazy("accounts propose other company data"),
        Account,
        lambda user: Account.objects.filter(PROPOSES),
        query={"company": "proposes"},
        approves="accounts.change_account",
    ),
    Work(
        "cases.replace_code",
        lazy("replacement proposed, waits for you"),
        lazy("replacements proposed, wait for you"),
        Case,
        lambda user: Case.objects.filter(REPLACEMENT_PROPOSED),
        query={"state": PROPOSED},
        approves="cases.replace_code",
    ),
    Work(
        "imports.view_fileimport",
        lazy("import waits for a decision"),
        lazy("imports wait for a decision"),
        FileImport,
        lambda user: FileImport.objects.filter(state__in=WAITING).exclude(
            pk__in=_asked_imports(user).values("pk")
        ),
    ),
    Work(
        "catalogue.view_codehold",
        lazy("hold of codes to release or void"),
        lazy("holds of codes to release or void"),
        CodeHold,
        _holds_to_decide,
    ),
    Work(
        "auth.change_user",
        lazy("member of staff has never signed in"),
        lazy("members of staff have never signed in"),
        User,
        lambda user: User.objects.filter(NEVER_SIGNED_IN),
        query={"sign-in": "never"},
    ),
    Work(
        "auth.change_user",
        lazy("member of staff is locked out"),
        lazy("members of staff are locked out"),
        User,
        lambda user: User.objects.filter(LOCKED_OUT),
        query={"sign-in": "locked-out"},
    ),
]


def show_work(user: User) -> dict[str, Any]:
    """The lines for this person, for the template of the first page: what they may approve, and
    their other work. Work without a row has no line."""
    approvals: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for work in WORK:
        if user.has_perm(work.permission) and (line := _show(work, user)):
            approves = bool(work.approves) and user.has_perm(work.approves)
            (approvals if approves else lines).append(line)
    if user.has_perm("upkeep.view_reconcilerun"):
        lines += _last_run()
    to_agree, own = read_waiting_changes(user)
    approvals += _changes(user, to_agree, _("{staff} asks for: {change}"))
    lines += _changes(user, own, _("You asked a second person for: {change}"))
    lines += [
        {"number": "", "words": words, "url": change.data["url"]}
        for change, words in read_rejected_changes(user)
    ]
    for row in _asked_imports(user):
        is_own = row.asker() == user
        (lines if is_own else approvals).append(_asked_import(row, is_own=is_own))
    return {"approvals": approvals, "work": lines}


def _asked_import(row: FileImport, *, is_own: bool) -> dict[str, Any]:
    """The line of an import that waits for a second person."""
    if row.shelf is None:
        what = _("import of %(file)s") % {"file": row.file_name}
    else:
        number = row.result["codes"]
        what = ngettext(
            "import of %(number)s code for %(shelf)s",
            "import of %(number)s codes for %(shelf)s",
            number,
        ) % {"number": local_number(number), "shelf": row.shelf}
    words = _("You asked a second person for: {change}") if is_own else _("{staff} asks: {change}")
    line = format_html(words, staff=row.asker() or "", change=what)
    return {"number": "", "words": line, "url": url_of(row)}


def _show(work: Work, user: User) -> dict[str, str] | None:
    rows = work.rows(user).order_by()
    if work.asked_by and user.has_perm(work.approves):
        rows = rows.exclude(**{work.asked_by: user.pk})
    number = rows[:MOST].count()
    if not number:
        return None
    return {
        "number": local_number(number)
        if number < MOST
        else _("%(number)s or more") % {"number": local_number(MOST)},
        "words": work.one if number == 1 else work.many,
        "url": list_url(work.model, **work.query),
    }


def _changes(user: User, waiting: list[TwoPersonChange], words: str) -> list[dict[str, Any]]:
    """Lines for changes of prices, costs, rights and keys that need two members of staff."""
    return [
        {
            "number": "",
            "words": format_html(words, staff=change.asked_by, change=describe(change, name_of)),
            "url": link_to_page(change),
            "end": end_link(change, user),
        }
        for change in waiting
    ]


def _last_run() -> list[dict[str, str]]:
    run = ReconcileRun.objects.order_by("-pk").first()
    if run is None:
        return []
    words = _("Last reconcile: %(state)s, %(time)s") % {
        "state": inside_sentence(RunState(run.state).label),
        "time": time_cell(run.started_at),
    }
    return [{"number": "", "words": words, "url": url_of(run)}]
