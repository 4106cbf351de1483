"""Opening, answering and deciding cases.

Every form names the version of the case that its reader saw. A change is one UPDATE of a case with
that version and an allowed state; it locks the case, and the rest of the transaction follows. If
two people decide at once, or a form is sent twice, only the first takes effect.
"""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from accounts.models import Account
from audit.models import AuditAction
from audit.services import record_action
from cases.models import (
    MESSAGE_LENGTH,
    UNDECIDED,
    Case,
    CaseFile,
    CaseMessage,
    CaseState,
)
from cases.selectors import left_to_credit
from catalogue.models import VoucherCode
from core.api.errors import OrderRefused
from core.database.columns import ACTOR_LENGTH, NOTE_LENGTH
from core.files.uploads import fits
from core.formats import local_amount
from core.inputs import InputProblem, clean_text, is_blank
from core.json_output import money_text
from orders.codes import names_a_code
from orders.models import Order
from orders.remedies.bookings import book_or_ask
from orders.remedies.replacements import replace_code
from wallets.approvals import ask_for_approval, reject_booking
from wallets.limits import count_booking
from wallets.models import BookingApproval, EntryKind, LedgerEntry
from wallets.services import BadBooking

MAX_OPEN = 100  # of one account
MAX_FILES = 5  # of one message
MAX_MESSAGES = 200  # of one case; staff may write more, such as its outcome
MAX_STORED = 200_000_000  # bytes of the files of one account

Files = Sequence[tuple[str, bytes]]  # names and contents


@transaction.atomic
def open_case(
    *, order: Order, code: VoucherCode | None, actor: User, text: str, files: Files = ()
) -> Case:
    """Opens a case about an order, or about one of its codes.

    Raises InputProblem if there is one already, or for a text or a file that cannot be used.
    """
    accounts = Account.objects.select_for_update(of=("self",), no_key=True)  # for the count
    account = accounts.get(clients=order.client_id)
    if Case.objects.filter(account=account, state__in=UNDECIDED).count() >= MAX_OPEN:
        raise InputProblem(
            _("%(max_open)s cases of this account are open. Wait for their outcomes.")
            % {"max_open": MAX_OPEN}
        )
    try:
        with transaction.atomic():
            case = Case.objects.create(
                account=account,
                order=order,
                code=code,
                paid_order=order
                if order.case_id is None
                else Case.objects.get(pk=order.case_id).paid_order,
                opened_by=actor,
                email_due=actor.is_staff,
            )
    except IntegrityError:
        raise InputProblem(
            _("There is a case about this order already.")
            if code is None
            else _("There is a case about this code already.")
        ) from None
    case.refresh_from_db()
    _write(case, actor=actor, text=text, files=files)
    _record(case, actor=actor, action=AuditAction.CASE_OPENED)
    return case


@transaction.atomic
def answer_case(*, case: Case, version: int, actor: User, text: str, files: Files = ()) -> None:
    """Adds a message. A merchant's message makes the case wait for staff; theirs ends the wait.

    A case that is assigned to nobody becomes that of the member of staff who answers it.

    Raises InputProblem if the case has changed, or for a text or a file that cannot be used.
    """
    waits = None if actor.is_staff else Coalesce(F("waits_since"), Now())
    changes: dict[str, Any] = {"waits_since": waits}
    if actor.is_staff:
        changes["email_due"] = True
    _change(case, version, UNDECIDED, **changes)
    _write(case, actor=actor, text=text, files=files)
    _record(case, actor=actor, action=AuditAction.CASE_ANSWERED)
    if actor.is_staff:
        _assign_if_nobodys(case, actor)


@transaction.atomic
def assign_case(*, case: Case, to: User | None, seen: int | None, actor: User) -> None:
    """Makes `to` take care of an open case, or nobody.

    `seen` is the id of the assignee that the reader of the form saw. Raises InputProblem if another
    person was assigned meanwhile, or if the case is closed.
    """
    named = Case.objects.filter(pk=case.pk, state__in=UNDECIDED, assigned_to=seen)
    if not named.update(assigned_to=to):
        raise InputProblem(
            _("This case was assigned or closed meanwhile. Read it again. Nothing was changed.")
        )
    before = User.objects.filter(pk=seen or 0).first()
    if to != before:
        _record(case, actor=actor, action=AuditAction.CASE_ASSIGNED, assigned_to=(before, to))


@transaction.atomic
def reject_case(*, case: Case, version: int, actor: User, text: str) -> None:
    """Closes a case without giving anything; the merchant reads `text`. Raises InputProblem."""
    _change(
        case,
        version,
        [CaseState.OPEN],
        state=CaseState.REJECTED,
        decided_by=actor,
        closed_at=Now(),
        waits_since=None,
        email_due=True,
    )
    _write(case, actor=actor, text=text)
    _record(case, actor=actor, action=AuditAction.CASE_REJECTED)


@transaction.atomic
def propose_replacement(*, case: Case, version: int, actor: User, note: str = "") -> None:
    """Asks the people who may replace codes to do so; only staff read the note. A case that is
    assigned to nobody becomes that of `actor`. Raises InputProblem."""
    _require_code(case)
    waits = Coalesce(F("waits_since"), Now())
    _change(case, version, [CaseState.OPEN], replacement_proposed_by=actor, waits_since=waits)
    _record(case, actor=actor, action=AuditAction.REPLACEMENT_PROPOSED, note=note)
    _assign_if_nobodys(case, actor)


@transaction.atomic
def decline_replacement(*, case: Case, version: int, actor: User, note: str = "") -> None:
    """Ends the proposal of a replacement: its maker withdraws it. The case stays open; only staff
    read the note. Raises InputProblem if the case has changed, or if nobody proposes one."""
    if case.replacement_proposed_by_id is None:
        raise InputProblem(_("Nobody proposes a replacement. Nothing was changed."))
    own = case.replacement_proposed_by_id == actor.pk
    _change(case, version, [CaseState.OPEN], replacement_proposed_by=None)
    action = AuditAction.REPLACEMENT_WITHDRAWN if own else AuditAction.REPLACEMENT_DECLINED
    _record(case, actor=actor, action=action, note=note)


@transaction.atomic
def replace_code_of_case(*, case: Case, version: int, actor: User, note: str = "") -> Order:
    """Closes a case with a code of the same shelf, as an order that costs nothing. Only staff read
    the note.

    The code counts, at the price of the one that was paid, like a credit that `actor` books alone.

    Raises InputProblem if the case has changed or is about no code, if the shelf is empty, if the
    order has given back what it cost, or above a limit of `actor`.
    """
    _require_code(case)
    _change(case, version, [CaseState.OPEN], decided_by=actor)
    paid = case.paid_order
    price = round(paid.total_price / paid.quantity, 4)
    if not count_booking(user=actor, kind=EntryKind.CREDIT, currency=paid.currency, amount=price):
        raise InputProblem(
            _("This is above your limit for credits. Ask another person to replace the code.")
        )
    try:
        order = replace_code(case_id=case.pk, of=case.order, actor=_name(actor))
    except OrderRefused:
        raise InputProblem(_("No code of this shelf is in stock. Nothing was changed.")) from None
    except BadBooking:
        raise InputProblem(
            _("This order was paid back, or its codes were replaced. Nothing is left to give.")
        ) from None
    _record(
        case,
        actor=actor,
        action=AuditAction.CASE_REPLACED,
        note=note,
        replacement=(None, order.reference),
    )
    return order


@transaction.atomic
def credit_case(
    *, case: Case, version: int, actor: User, amount: Decimal, note: str, may_book: bool
) -> LedgerEntry | BookingApproval:
    """Pays back a part or all of the order that was paid; the merchant reads `note`.

    The credit is booked and closes the case at once, if `actor` may book and the amount is within
    their limit. Otherwise it waits until another person approves it, and so does the case, which
    becomes that of `actor` if it is assigned to nobody.

    Raises InputProblem if the case has changed, and what `book_or_ask` raises.
    """
    _change(case, version, [CaseState.OPEN], state=CaseState.CREDITING, decided_by=actor)
    _refuse_codes(case, note)
    booking = BookingApproval(
        wallet_id=case.account_id,
        kind=EntryKind.CREDIT,
        amount=amount,
        order_reference=case.paid_order.reference,
        note=clean_text(note, what=gettext_noop("note"), max_length=NOTE_LENGTH),
        booking_reference=case.credit_reference,
        asked_by=actor,
    )
    _record(
        case,
        actor=actor,
        action=AuditAction.CASE_CREDITED,
        amount=(None, f"{money_text(amount)} {case.paid_order.currency}"),
    )
    if may_book:
        made = book_or_ask(booking=booking)
    else:
        left = left_to_credit(case.paid_order, case)
        if not 0 < amount <= left:
            raise InputProblem(
                _("Between 0 and %(left)s can be credited.") % {"left": local_amount(left)}
            )
        made = ask_for_approval(booking=booking)
    if isinstance(made, BookingApproval):
        _assign_if_nobodys(case, actor)
    return made


def withdraw_credit(
    *, case: Case, version: int, booking: BookingApproval, actor: User, note: str = ""
) -> None:
    """Withdraws a credit for its maker. The case is open again (cases/sql/outcomes.sql); only staff
    read the note. Raises InputProblem if the case has changed, if the credit no longer waits, or
    for a note with a code of the order."""
    # Without a lock: an approval locks the booking before the case.
    if not Case.objects.filter(pk=case.pk, version=version).exists():
        raise _changed()
    _refuse_codes(case, note)
    if not reject_booking(booking=booking, actor=actor, note=note):
        raise InputProblem(_("This booking no longer waits for approval."))


def _change(case: Case, version: int, states: Sequence[str], **changes: Any) -> None:
    """Changes the case and locks it, if nobody has changed it since `version`."""
    seen = Case.objects.filter(pk=case.pk, version=version, state__in=states)
    if not seen.update(version=F("version") + 1, **changes):
        raise _changed()


def _assign_if_nobodys(case: Case, actor: User) -> None:
    if Case.objects.filter(pk=case.pk, assigned_to=None).update(assigned_to=actor):
        _record(case, actor=actor, action=AuditAction.CASE_ASSIGNED, assigned_to=(None, actor))


def _changed() -> InputProblem:
    return InputProblem(_("This case has changed meanwhile. Read it again. Nothing was changed."))


def _require_code(case: Case) -> None:
    if case.code_id is None:
        raise InputProblem(_("Only a case about one code can be replaced."))


def _write(case: Case, *, actor: User, text: str, files: Files = ()) -> None:
    text = text.strip()
    if is_blank(text):
        raise InputProblem(_("Write what happened."))
    if len(text) > MESSAGE_LENGTH:
        raise InputProblem(
            _("The message is longer than %(message_length)s characters.")
            % {"message_length": MESSAGE_LENGTH}
        )
    if len(files) > MAX_FILES:
        raise InputProblem(
            _("A message has at most %(max_files)s files.") % {"max_files": MAX_FILES}
        )
    if not actor.is_staff and case.messages.count() >= MAX_MESSAGES:
        raise InputProblem(
            _("A case has at most %(max_messages)s messages.") % {"max_messages": MAX_MESSAGES}
        )
    attached = [CaseFile.of(name, content) for name, content in files]
    of_account = CaseFile.objects.filter(message__case__account=case.account_id)
    if files and not fits(attached, beside=of_account, limit=MAX_STORED):
        raise InputProblem(
            _("The files of this account's cases take up %(limit)s MB, the most they may.")
            % {"limit": MAX_STORED // 1_000_000}
        )
    # Last: who tries out PINs leaves a message for each that is wrong.
    if names_a_code(text, order_id=case.order_id):
        raise InputProblem(
            _(
                "This message has a code of the order in it. Do not send codes: the case names"
                " the code, and messages are kept."
            )
        )
    message = CaseMessage.objects.create(
        case=case, author=actor, from_staff=actor.is_staff, text=text
    )
    for file in attached:
        file.message = message
        file.save()


def _record(
    case: Case,
    *,
    actor: User,
    action: AuditAction,
    note: str = "",
    **changes: tuple[object, object],
) -> None:
    """Writes the audit entry, without texts and files. Raises InputProblem if the note has a code
    of the order in it."""
    _refuse_codes(case, note)
    record_action(
        actor=actor,
        action=action,
        on=case,
        reference=case.order.reference,
        note=note,
        changes={
            name: (before and str(before), after and str(after))
            for name, (before, after) in changes.items()
        },
    )


def _refuse_codes(case: Case, note: str) -> None:
    if note and names_a_code(note, order_id=case.order_id):
        raise InputProblem(_("This note has a code of the order in it. Notes are kept."))


def _name(actor: User) -> str:
    return f"admin:{actor.get_username()}"[:ACTOR_LENGTH]
