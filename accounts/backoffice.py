"""The declarations of `accounts` for the back office (core/backoffice/)."""

from django.core.cache import cache
from django.utils.translation import gettext_noop

from accounts.models import (
    Account,
    ApiClient,
    ApiKey,
    OwnCompany,
    RequestRecord,
    factor_row,
    open_factor_key,
)
from accounts.search import FINDERS
from core.backoffice.declarations import (
    Alert,
    BackOffice,
    Component,
    Expiring,
    Gauges,
    MenuEntry,
    Rights,
    Sealed,
    Section,
    Severity,
    StaffRight,
    Unit,
    ids_of,
    read_access,
)
from core.backoffice.staff_roles import StaffRole
from core.database.sealing import Context
from core.texts import lazy


def _cache_answers() -> list[tuple[int]]:
    try:
        cache.get("readyz")
    except Exception:  # of any kind: the gauge says that it failed
        return [(0,)]
    return [(1,)]


GAUGES = [
    Gauges(
        {
            "voucher_cache_up": "1 if the cache, which counts requests per minute, responded; 0 if"
            " not."
        },
        _cache_answers,
    )
]
COMPONENTS = [
    Component(
        title=lazy("Cache"),
        gauge="voucher_cache_up",
        unit=Unit.UP,
        amber=1,
        red=1,
        low_is_bad=True,
        every_exporter=True,
        advice=lazy(
            "Purchases work without it, but nobody's requests are limited. Start Redis or"
            " Valkey, or correct REDIS_URL."
        ),
        alert=Alert(
            "VoucherCacheDown",
            Severity.WARNING,
            "1m",
            "The cache does not respond: no client is limited.",
        ),
        model=ApiClient,
        leads_to_list=False,
    )
]

BACK_OFFICE = BackOffice(
    triggers=["accounts_currency_is_fixed"],
    expiring=[
        # What django-axes keeps of guesses and sign-ins; accounts/sign_in/limits.py looks back 90
        # days.
        Expiring(
            kind="refused_passwords",
            table="axes_accessattempt",
            old="attempt_time < %(before)s",
            days="sign_ins",
        ),
        Expiring(
            kind="sign_ins",
            table="axes_accesslog",
            old="attempt_time < %(before)s",
            days="sign_ins",
        ),
    ],
    sealed=[
        Sealed(
            kind="second_factors",
            table="accounts_secondfactor",
            column="sealed_key",
            context=Context.SECOND_FACTOR,
            identity=["user_id"],
            row=factor_row,
            check=gettext_noop("every second factor opens"),
            read=open_factor_key,
        ),
    ],
    rights={
        "accounts_account": Rights.KEEP,
        "accounts_apiclient": Rights.KEEP,
        "accounts_apikey": Rights.KEEP,
        "accounts_backupcode": Rights.CHANGE,
        "accounts_clientuse": Rights.KEEP,
        "accounts_company": Rights.KEEP,
        "accounts_logo": Rights.APPEND,
        "accounts_owncompany": Rights.KEEP,
        "accounts_preferences": Rights.KEEP,
        "accounts_requestrecord": Rights.APPEND_AND_EXPIRE,
        "accounts_secondfactor": Rights.CHANGE,
        "auth_group": Rights.CHANGE,
        "auth_group_permissions": Rights.CHANGE,
        "auth_user": Rights.KEEP,
        "auth_user_groups": Rights.CHANGE,
        "auth_user_user_permissions": Rights.CHANGE,
        "axes_accessattempt": Rights.CHANGE,
        "axes_accessattemptexpiration": Rights.CHANGE,
        "axes_accessfailurelog": Rights.CHANGE,
        "axes_accesslog": Rights.CHANGE,
        "django_otp_webauthn_webauthnattestation": Rights.CHANGE,
        "django_otp_webauthn_webauthncredential": Rights.CHANGE,
        "django_otp_webauthn_webauthnuserhandle": Rights.CHANGE,
        "django_session": Rights.CHANGE,
    },
    staff_rights=[
        StaffRight(
            Section.MERCHANTS,
            lazy("See accounts"),
            read_access(Account),
            [
                StaffRole.ADMINISTRATOR,
                StaffRole.MERCHANT_MANAGER,
                StaffRole.SUPPORT,
                StaffRole.FINANCE,
            ],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("See clients and the beginnings of their keys"),
            read_access(ApiClient, ApiKey),
            [StaffRole.MERCHANT_MANAGER, StaffRole.SUPPORT, StaffRole.FINANCE],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("See the requests of merchants' programs"),
            read_access(RequestRecord),
            [StaffRole.MERCHANT_MANAGER, StaffRole.SUPPORT, StaffRole.FINANCE],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("Add accounts, change them, and switch them off"),
            ["accounts.add_account", "accounts.change_account"],
            [StaffRole.ADMINISTRATOR, StaffRole.MERCHANT_MANAGER],
        ),
        StaffRight(
            Section.SYSTEM,
            lazy("See our own company, as statements name it"),
            read_access(OwnCompany),
            [StaffRole.ADMINISTRATOR, StaffRole.FINANCE],
        ),
        StaffRight(
            Section.SYSTEM,
            lazy("Change our own company, as statements name it"),
            ["accounts.change_owncompany"],
            [StaffRole.ADMINISTRATOR],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("Add clients, change their limits and networks, and switch them off"),
            ["accounts.add_apiclient", "accounts.change_apiclient"],
            [StaffRole.MERCHANT_MANAGER],
        ),
        StaffRight(
            Section.MERCHANTS,
            lazy("Issue, rotate and revoke keys, with which a program spends the merchant's money"),
            ["accounts.add_apikey", "accounts.change_apikey"],
            [StaffRole.MERCHANT_MANAGER],
        ),
    ],
    gauges=GAUGES,
    components=COMPONENTS,
    parts={
        "accounts.account": lambda pk: {
            "accounts.apiclient": ids_of(ApiClient.objects.filter(account=pk))
        }
    },
    finders=FINDERS,
    menu=[
        MenuEntry(Section.MERCHANTS, lazy("Accounts"), Account, "storefront"),
        MenuEntry(Section.MERCHANTS, lazy("API clients"), ApiClient, "key"),
        MenuEntry(Section.RECORDS, lazy("Requests"), RequestRecord, "sync_alt"),
        MenuEntry(Section.SETTINGS, lazy("Own company"), OwnCompany, "storefront"),
    ],
)
