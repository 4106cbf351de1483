"""Emails members when staff answer, open or close a case.

A sweep finds the cases whose email is due, so it does not matter who decided: a case may be closed
by the approval of its credit.
"""

from django.db import transaction
from django.db.models import Q
from django.utils.translation import override

from accounts.preferences.languages import language_of
from cases.models import Case
from cases.selectors import code_name
from merchants.email.outbox import write_email
from merchants.models import EmailKind, Membership, Role

BATCH = 500  # of one run


def sweep_cases() -> int:
    """Writes the emails that are due; returns about how many cases."""
    due = Case.objects.filter(email_due=True).order_by("pk").values_list("pk", flat=True)[:BATCH]
    return sum(_notify(pk) for pk in due)


@transaction.atomic
def _notify(case_id: int) -> bool:
    """Writes the emails of a case. Returns False if another sweep has written them.

    The owners and the person who opened the case receive one, if they are members.
    """
    if not Case.objects.filter(pk=case_id, email_due=True).update(email_due=False):
        return False
    case = Case.objects.select_related("account", "order", "code").get(pk=case_id)
    receivers = Membership.objects.filter(
        Q(role=Role.OWNER) | Q(user=case.opened_by_id), account=case.account, user__is_active=True
    )
    for email in receivers.order_by("pk").values_list("user__email", flat=True):
        with override(language_of(email)):
            facts = {
                "account": case.account.name,
                "case": case.pk,
                "state": "" if case.is_open else str(case.get_state_display()),
                "order": case.order.reference,
                "about": code_name(case),
            }
        write_email(kind=EmailKind.CASE, to=email, facts=facts)
    return True
