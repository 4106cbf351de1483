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
    Personal,
    Rights,
    Sealed,
    Section,
    Severity,
    StaffRight,
    Unit,
    Whose,
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

# What is kept of a company if a person who is its contact, or who receives its bills, is deleted.
COMPANY_KEPT = "the company, which statements name; staff change it on the page of the account"
OWN_COMPANY_KEPT = "the company; staff change it in the back office"

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
    personal=[
        Personal(
            "accounts_account",
            Whose.CONTACTS,
            "the name of a merchant, who may be a person",
            withheld=["name"],
            kept="everything: orders and the ledger name the account; staff rename it",
        ),
        Personal(
            "auth_user_groups",
            Whose.STAFF,
            "the roles of a person",
            context=["group_id"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "auth_user_user_permissions",
            Whose.STAFF,
            "the single permissions of a person",
            context=["permission_id"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "accounts_preferences",
            Whose.BOTH,
            "how a person reads times and pages",
            columns=["time_zone", "language", "seen_language"],
            find="user_id = ANY(%(users)s)",
            delete="time_zone = 'UTC', language = '', seen_language = ''",
        ),
        Personal(
            "accounts_backupcode",
            Whose.BOTH,
            "replaces a lost second factor",
            withheld=["digest"],
            find="factor_id IN (SELECT id FROM accounts_secondfactor"
            " WHERE user_id = ANY(%(users)s))",
            delete="DELETE",
        ),
        Personal(
            "accounts_secondfactor",
            Whose.BOTH,
            "checks the codes of a person's app",
            columns=["name"],
            withheld=["sealed_key"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "django_otp_webauthn_webauthnattestation",
            Whose.BOTH,
            "what a device said of its passkey",
            withheld=["data", "client_data_json"],
            find="credential_id IN (SELECT id FROM django_otp_webauthn_webauthncredential"
            " WHERE user_id = ANY(%(users)s))",
            delete="DELETE",
        ),
        Personal(
            "django_otp_webauthn_webauthncredential",
            Whose.BOTH,
            "the passkeys of a person",
            columns=["name"],
            withheld=[
                "credential_id",
                "credential_id_sha256",
                "public_key",
                "aaguid",
                "transports",
            ],
            context=["created_at", "last_used_at"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "django_otp_webauthn_webauthnuserhandle",
            Whose.BOTH,
            "by which devices know the person",
            withheld=["handle_hex"],
            find="user_id = ANY(%(users)s)",
            delete="DELETE",
        ),
        Personal(
            "axes_accessattempt",
            Whose.BOTH,
            "limits wrong passwords; the name is what somebody typed",
            columns=[
                *("username", "ip_address", "user_agent", "http_accept", "path_info"),
                *("get_data", "post_data"),
            ],
            context=["attempt_time"],
            find="username = ANY(%(usernames)s)",
            delete="DELETE",
        ),
        Personal(
            "axes_accesslog",
            Whose.BOTH,
            "from where people signed in",
            columns=["username", "ip_address", "user_agent", "http_accept", "path_info"],
            withheld=["session_hash"],
            context=["attempt_time", "logout_time"],
            find="username = ANY(%(usernames)s)",
            delete="DELETE",
        ),
        Personal(
            "accounts_company",
            Whose.CONTACTS,
            "whom staff ask; the company may be a person, too",
            columns=["contact"],
            withheld=["legal_name", "address", "country", "tax_number", "note"],
            context=["account_id"],
            find="lower(contact) = ANY(%(names)s)",
            delete="contact = ''",
            kept=COMPANY_KEPT,
        ),
        Personal(
            "accounts_company",
            Whose.CONTACTS,
            "who receives bills",
            columns=["billing_email"],
            context=["account_id"],
            find="lower(billing_email) = ANY(%(emails)s)",
            delete="billing_email = ''",
            kept=COMPANY_KEPT,
        ),
        Personal(
            "accounts_owncompany",
            Whose.CONTACTS,
            "the company that sells, as statements name it",
            columns=["contact"],
            withheld=["legal_name", "address", "country", "tax_number", "footer"],
            find="lower(contact) = ANY(%(names)s)",
            delete="contact = ''",
            kept=OWN_COMPANY_KEPT,
        ),
        Personal(
            "accounts_owncompany",
            Whose.CONTACTS,
            "who answers questions about bills",
            columns=["billing_email"],
            find="lower(billing_email) = ANY(%(emails)s)",
            delete="billing_email = ''",
            kept=OWN_COMPANY_KEPT,
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
