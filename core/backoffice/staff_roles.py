"""The roles of staff."""

from enum import StrEnum

from core.texts import gettext_noop, lazy


class StaffRole(StrEnum):
    """A job of staff. The value is the name of the Django group, which pages translate."""

    ADMINISTRATOR = gettext_noop("Administrator")
    MERCHANT_MANAGER = gettext_noop("Merchant manager")
    SUPPORT = gettext_noop("Support")
    STOCK_KEEPER = gettext_noop("Stock keeper")
    FINANCE = gettext_noop("Finance")
    OPERATOR = gettext_noop("Operator")
    SENIOR_OPERATOR = gettext_noop("Senior operator")
    AUDITOR = gettext_noop("Auditor")

    @property
    def description(self) -> str:
        """Two sentences for the people who choose a role."""
        return DESCRIPTIONS[self]


DESCRIPTIONS = {
    StaffRole.ADMINISTRATOR: lazy(
        "Invites staff, gives roles, ends access, opens accounts and changes"
        " the settings. Moves no money, and issues no key."
    ),
    StaffRole.MERCHANT_MANAGER: lazy(
        "Looks after merchants: accounts, clients, keys, limits, networks,"
        " references, prices and invitations. Moves no money."
    ),
    StaffRole.SUPPORT: lazy(
        "Answers merchants and their cases: reads orders, requests, top-ups and"
        " where a code is. Moves no money, and changes no account."
    ),
    StaffRole.STOCK_KEEPER: lazy(
        "Keeps the catalogue: products, prices, codes, imports and top-up"
        " products. Sees no merchant's money."
    ),
    StaffRole.FINANCE: lazy(
        "Books deposits, payouts, credits and adjustments, settles lost purchases,"
        " and replaces codes. Reads orders, sales and the ledger."
    ),
    StaffRole.OPERATOR: lazy(
        "Delivers or rejects top-ups at the desk and in Telegram. Acts only on their own claims."
    ),
    StaffRole.SENIOR_OPERATOR: lazy(
        "Does an operator's work. Also decides orders in review, and acts on the claims of others."
    ),
    StaffRole.AUDITOR: lazy(
        "Reads every page, the audit trail included. Changes nothing, and reveals no code."
    ),
}

# Groups of earlier versions. `migrate` creates neither. Where one exists, it keeps its people and
# rights, and administrators edit it like any role that they made.
FORMER_ROLES = ("Catalogue manager", "Platform manager")
