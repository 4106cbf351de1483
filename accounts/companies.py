"""The companies of accounts, and the company that runs the service. Statements name them."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from unicodedata import combining, normalize

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import get_language

from accounts.models import Account, Company, CompanyData
from audit.models import AuditAction
from audit.services import Changes, find_changes, record_action
from core.texts import lazy

# The names of countries by ISO 3166 code, in each language. `make texts` writes them from the
# Unicode CLDR, as Babel has it.
COUNTRIES = Path(__file__).with_name("countries.json")
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


def named(data: Mapping[str, str]) -> dict[str, str]:
    """The data with the name of the country for its code."""
    return {**data, "country": country_name(data.get("country", ""))}


def lines_of(company: CompanyData | None) -> list[tuple[str, str]]:
    """The values that are known, each with its label."""
    data = named(data_of(company))
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


def country_name(code: str) -> str:
    """The name of the country. What is no code stays as it is."""
    return _names(get_language() or settings.LANGUAGE_CODE).get(code, code)


def country_choices() -> list[tuple[str, str]]:
    """All countries by their names, for a form, sorted without the marks of letters; the first
    choice is none."""
    names = _names(get_language() or settings.LANGUAGE_CODE)
    return [("", "---------"), *sorted(names.items(), key=lambda pair: _letters(pair[1]))]


def _letters(name: str) -> str:
    return "".join(one for one in normalize("NFKD", name.casefold()) if not combining(one))


@cache
def _names(language: str) -> dict[str, str]:
    names: dict[str, dict[str, str]] = json.loads(COUNTRIES.read_text())
    return names.get(language, names[settings.LANGUAGE_CODE])
