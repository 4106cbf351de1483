"""Reading cases, and naming codes without showing them."""

from decimal import ROUND_DOWN, Decimal

from django.contrib.auth.hashers import UNUSABLE_PASSWORD_PREFIX
from django.contrib.auth.models import User
from django.db.models import (
    DecimalField,
    F,
    Func,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
)
from django.utils.translation import gettext as _

from accounts.models import Account
from cases.models import CREDIT_OF, Case, CaseFile, CaseMessage, CaseState
from catalogue.models import VoucherCode
from core.backoffice.staff import staff_who_may
from core.database.columns import MONEY_DECIMALS
from core.inputs import is_id
from orders.models import Order
from wallets.models import BookingApproval, LedgerEntry

# A proposal that nobody has decided. An index has the cases that are not closed.
REPLACEMENT_PROPOSED = Q(
    closed_at=None, state=CaseState.OPEN, replacement_proposed_by__isnull=False
)
# The queue of those who answer. A proposal waits for those who may replace codes, and a credit for
# those who approve bookings.
WAITS_FOR_STAFF = Q(
    waits_since__isnull=False, state=CaseState.OPEN, replacement_proposed_by__isnull=True
)
WHOLE_ORDER = "order"  # the subject of a case that is about no code


def cases_of(account: Account) -> QuerySet[Case]:
    """The cases of an account, newest first."""
    return (
        Case.objects.filter(account=account)
        .select_related(
            *("order__shelf__product", "order__shelf__variation__product"),
            *("order__fulfilment__product", "paid_order"),
        )
        .order_by("-pk")
    )


def people_for_cases() -> QuerySet[User]:
    """The active staff who may answer or decide cases: those to whom a case can be assigned. Who
    has not accepted an invitation yet cannot sign in, and is left out."""
    people = staff_who_may("cases.answer_case", "cases.replace_code").order_by("username")
    return people.exclude(last_login=None, password__startswith=UNUSABLE_PASSWORD_PREFIX)


def conversation_of(case: Case) -> QuerySet[CaseMessage]:
    """The messages of a case with their files, but not the contents of these; the oldest first."""
    files = Prefetch("files", CaseFile.objects.defer("sealed").order_by("pk"))
    return case.messages.select_related("author").prefetch_related(files).order_by("pk")


def codes_of_order(order: Order) -> QuerySet[VoucherCode]:
    """The codes of an order, as `GET /orders/{reference}` lists them."""
    return VoucherCode.objects.filter(order_id=order.pk).order_by("position")


def code_name(case: Case) -> str:
    """The place of a case's code in its order, such as `code 3 of 10`."""
    if case.code is None:
        return _("the whole order")
    place = codes_of_order(case.order).filter(position__lte=case.code.position).count()
    return _("code %(place)s of %(quantity)s") % {
        "place": place,
        "quantity": case.order.quantity,
    }


def subjects_of(order: Order) -> list[tuple[str, str]]:
    """The subjects of a new case: the id of a code, or WHOLE_ORDER, and a name.

    Codes that have a case are left out, except after a rejection. A case about an order of one code
    is about the code: only that can be replaced. Of several subjects none is chosen before: a case
    about the whole order gives no other code.
    """
    taken = Case.objects.filter(~Q(state=CaseState.REJECTED), order=order, code__isnull=False)
    without = set(taken.values_list("code", flat=True))
    codes = [
        (
            str(pk),
            _("Code %(place)s of %(quantity)s") % {"place": place, "quantity": order.quantity},
        )
        for place, pk in enumerate(codes_of_order(order).values_list("pk", flat=True), start=1)
        if pk not in without
    ]
    if codes and order.quantity == 1:
        return codes
    subjects = [*codes, (WHOLE_ORDER, _("The whole order"))]
    return [("", _("Choose a code or the whole order")), *subjects] if codes else subjects


def code_of_subject(order: Order, subject: str) -> VoucherCode | None:
    """The code of the order that a subject names; None for the whole order."""
    return codes_of_order(order).filter(pk=subject).first() if is_id(subject) else None


def with_replacements(cases: QuerySet[Case]) -> QuerySet[Case]:
    """Adds `replacement`: the reference of the order that replaced the code; None without one."""
    orders = Order.objects.filter(case_id=OuterRef("pk")).values("reference")
    return cases.annotate(replacement=Subquery(orders[:1]))


def replacement_of(case: Case) -> Order | None:
    """The order that replaced the code of a case."""
    return Order.objects.filter(case_id=case.pk).first()


def replacements_of(order: Order) -> dict[int, Order]:
    """The orders that replaced codes of an order, by the place of the code, which begins at 1."""
    replaced = Case.objects.filter(order=order, state=CaseState.REPLACED)
    cases = {case.code_id: case.pk for case in replaced}
    orders = {one.case_id: one for one in Order.objects.filter(case_id__in=cases.values())}
    codes = enumerate(codes_of_order(order), start=1) if cases else []
    return {place: orders[cases[code.pk]] for place, code in codes if code.pk in cases}


def left_to_credit(order: Order, case: Case | None = None) -> Decimal:
    """The cost of an order, less refunds, credits and the codes that were replaced: what the ledger
    accepts as credits (cases/sql/given_back.sql). The credit of a `case` about a replacement takes
    the place of its value."""
    given = Func(F("pk"), function="cases_given_back", output_field=DecimalField())
    left: Decimal = Order.objects.values_list(F("total_price") - given, flat=True).get(pk=order.pk)
    if case is not None:
        left += _value_of_replacement(case)
    return max(Decimal(0), left.quantize(Decimal(10) ** -MONEY_DECIMALS, ROUND_DOWN))


def case_of_credit(booking: BookingApproval) -> Case | None:
    """The case whose credit this is."""
    key = booking.booking_reference.removeprefix(CREDIT_OF)
    is_of_case = booking.booking_reference.startswith(CREDIT_OF) and is_id(key)
    return Case.objects.filter(pk=key).first() if is_of_case else None


def _value_of_replacement(case: Case) -> Decimal:
    """The value that the order of a case has as given back: 0 if it replaced no code, or was
    replaced."""
    cases = Case.objects.filter(order=case.order_id)
    if case.order_id == case.paid_order_id or cases.filter(state=CaseState.REPLACED).exists():
        return Decimal(0)
    credits = LedgerEntry.objects.filter(
        booking_reference__in=[one.credit_reference for one in cases]
    )
    reversals = LedgerEntry.objects.filter(
        booking_reference__in=[entry.reversal_reference for entry in credits]
    )
    credited = sum(entry.amount for entry in (*credits, *reversals))
    return max(Decimal(0), case.paid_order.total_price / case.paid_order.quantity - credited)
