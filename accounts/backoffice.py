"""What `accounts` declares for the back office (config/backoffice.py)."""

from accounts.models import Account, ApiClient
from config.backoffice import BackOffice, MenuEntry, Role, Section

BACK_OFFICE = BackOffice(
    triggers=["accounts_currency_is_fixed"],
    permissions={
        Role.FINANCE: ["accounts.view_account", "accounts.view_apiclient"],
        Role.PLATFORM_MANAGER: ["accounts.view_account"],
    },
    menu=[
        MenuEntry(Section.MERCHANTS, "Accounts", Account, "storefront"),
        MenuEntry(Section.MERCHANTS, "API clients", ApiClient, "key"),
    ],
)
