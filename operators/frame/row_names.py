"""The names of rows on pages. `__str__` is in English, because the audit trail stores it."""

import re

from django.db.models import Model
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_noop

from core.texts import FIGURE_NAMES, local_figure, values_in

# What `__str__` says of rows that have no name of their own, by their models.
ROWS = {
    "audit.auditentry": gettext_noop("Entry %(name)s"),
    "accounts.requestrecord": gettext_noop("Request %(name)s"),
    "cases.case": gettext_noop("Case %(name)s"),
    "catalogue.batch": gettext_noop("batch %(name)s"),
    "catalogue.codehold": gettext_noop("hold %(name)s"),
    "catalogue.pricelistentry": gettext_noop("price list entry %(name)s"),
    "catalogue.vouchercode": gettext_noop("code %(name)s"),
    "idempotency.idempotencyrecord": gettext_noop("Idempotency record %(name)s"),
    "merchants.email": gettext_noop("Email %(name)s"),
    "merchants.invitation": gettext_noop("Invitation %(name)s"),
    "merchants.membership": "%(name)s (%(kind)s)",
    "figures.exchangerate": gettext_noop("%(currency)s to %(into)s from %(day)s"),
    "telegram.announcement": gettext_noop("Announcement of %(name)s"),
    "upkeep.reconcilerun": gettext_noop("Reconcile of %(day)s"),
    "wallets.announcedtransfer": gettext_noop("Announced transfer %(name)s"),
    "wallets.bankdetails": gettext_noop("Bank details for %(name)s"),
    "wallets.bookingapproval": gettext_noop("Approval %(name)s"),
    "wallets.bookinglimit": gettext_noop("%(kind)s up to %(amount)s by %(role)s"),
    "wallets.ledgerentry": gettext_noop("Ledger entry %(name)s"),
    "wallets.wallet": gettext_noop("Wallet of %(name)s"),
    "wallets.walletclose": gettext_noop("close of wallet %(name)s on %(day)s"),
    "warnings.staffwarning": gettext_noop("warning %(name)s"),
    "warnings.warningrule": "%(kind)s",
}
# Rows without a name that are not translated.
NUMBERED = re.compile(r"(chat|root|session) \d+")
# Marked for translation: the name of a member contains them.
MEMBER_ROLES = (gettext_noop("owner"), gettext_noop("developer"), gettext_noop("viewer"))


def row_name(model: type[Model], name: str) -> str:
    """The name that `__str__` gives a row, in the language of the reader."""
    words = ROWS.get(model._meta.label_lower, "")
    values = values_in(name, words)
    if values is None:
        return name
    if kind := values.get("kind"):  # a word of ours; other values are names and numbers
        values["kind"] = gettext(kind)
    values |= {each: local_figure(text) for each, text in values.items() if each in FIGURE_NAMES}
    return gettext(words) % values


def row_title(model: type[Model], name: str) -> str:
    """The name of a row at the top of a page. Words and a number begin with a capital."""
    words = ROWS.get(model._meta.label_lower, "%")
    is_name = words.startswith("%") or values_in(name, words) is None
    return (
        row_name(model, name)
        if is_name and not NUMBERED.fullmatch(name)
        else capfirst(row_name(model, name))
    )
