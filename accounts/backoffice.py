"""What `accounts` declares for the back office (config/backoffice.py)."""

from accounts.models import Account, ApiClient
from config.backoffice import BackOffice, MenuEntry, Section, StaffRole

BACK_OFFICE = BackOffice(
    triggers=["accounts_currency_is_fixed"],
    permissions={
        StaffRole.FINANCE: ["accounts.view_account", "accounts.view_apiclient"],
        StaffRole.PLATFORM_MANAGER: ["accounts.view_account"],
    },
    menu=[
        MenuEntry(Section.MERCHANTS, "Accounts", Account, "storefront"),
        MenuEntry(Section.MERCHANTS, "API clients", ApiClient, "key"),
    ],
)
