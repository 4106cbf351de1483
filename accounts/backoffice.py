"""What `accounts` declares for the back office (config/backoffice.py)."""

from accounts.models import Account, ApiClient, factor_row, open_factor_key
from config.backoffice import BackOffice, MenuEntry, Sealed, Section, StaffRole
from config.database.sealing import Context

BACK_OFFICE = BackOffice(
    triggers=["accounts_currency_is_fixed"],
    sealed=[
        Sealed(
            kind="second_factors",
            table="accounts_secondfactor",
            column="sealed_key",
            context=Context.SECOND_FACTOR,
            identity=["user_id"],
            row=factor_row,
            check="every second factor opens",
            read=open_factor_key,
        ),
    ],
    permissions={
        StaffRole.FINANCE: ["accounts.view_account", "accounts.view_apiclient"],
        StaffRole.PLATFORM_MANAGER: ["accounts.view_account"],
    },
    menu=[
        MenuEntry(Section.MERCHANTS, "Accounts", Account, "storefront"),
        MenuEntry(Section.MERCHANTS, "API clients", ApiClient, "key"),
    ],
)
