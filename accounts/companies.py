"""The companies of accounts, and the company that runs the service. Statements name them."""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction

from accounts.models import Account, Company, CompanyData
from audit.models import AuditAction
from audit.services import Changes, find_changes, record_action
from core.texts import lazy

LABELS = {
    "legal_name": lazy("Legal name"),
    "address": lazy("Address"),
    "country": lazy("Country"),
    "tax_number": lazy("Tax number"),
    "contact": lazy("Contact person"),
    "billing_email": lazy("Billing email"),
}


def company_of(account: Account) -> Company | None:
    """The company of the account, if anybody has entered it."""
    return Company.objects.filter(account=account).first()


def data_of(company: CompanyData | None) -> dict[str, str]:
    """The data of a company by the names of its columns; all empty if there is none."""
    return {name: getattr(company, name, "") for name in LABELS}


def lines_of(company: CompanyData | None) -> list[tuple[str, str]]:
    """The values that are known, each with its label."""
    data = data_of(company)
    return [(str(label), data[name]) for name, label in LABELS.items() if data[name]]


@transaction.atomic
def save_company(
    *, account: Account, data: Mapping[str, str], actor: User, note: str = ""
) -> Changes:
    """Writes these columns of the account's company. Returns what changed.

    Statements that are issued already keep what they say.
    """
    Account.objects.select_for_update(no_key=True).get(pk=account.pk)
    company = company_of(account) or Company(account=account)
    changes = find_changes({name: getattr(company, name) for name in data}, data)
    if changes:
        for name, value in data.items():
            setattr(company, name, value)
        company.save()
        record_action(
            actor=actor,
            action=AuditAction.COMPANY_CHANGED,
            on=account,
            reference=account.name,
            note=note,
            changes=changes,
        )
    return changes
